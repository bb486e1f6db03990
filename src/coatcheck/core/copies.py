"""Copies of the texts of a result: a value next to them that says the same, as MCP's structured content does.

Such a value need not be stored: it can be made again from the stored texts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from coatcheck.core.forks import loading

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("Copy", "find_copy")

MAX_COMPARED = 8_000_000
"""The longest text, in characters, that is compared as JSON: reading and writing it holds the interpreter's lock. For a
longer text, a JSON copy is not recognized, and is stored too."""

_LONG_INTEGER = re.compile(r"\d{19}")


class Copy(NamedTuple):
    """How to make a value again from the texts of a result."""

    key: str | None
    """The only key of the object around the value, such as ``result``; None if there is no such object."""

    is_list: bool
    """Whether the value is a list with one text for each item; else there is one text."""

    is_json: bool
    """Whether a text is the JSON of its value; else it is the value."""

    def make(self, texts: Sequence[str]) -> Any:  # noqa: ANN401 - any JSON value
        """Return the value."""
        with loading:
            import json  # noqa: PLC0415 - few results have a copy

        values = [json.loads(text) for text in texts] if self.is_json else list(texts)
        value = values if self.is_list else values[0]
        return value if self.key is None else {self.key: value}


def find_copy(value: object, texts: Sequence[str]) -> Copy | None:
    """Return how ``value`` follows from the texts of a result; None if it holds anything else."""
    candidates: list[tuple[str | None, object]] = [(None, value)]
    if isinstance(value, dict) and len(value) == 1:  # MCP wraps whatever is not an object: {"result": [...]}
        candidates += list(value.items())
    for key, candidate in candidates:
        for is_list in (False, True):
            values = candidate if is_list else [candidate]
            if not isinstance(values, list) or len(values) != len(texts) or not texts:
                continue
            if values == list(texts):
                return Copy(key, is_list, is_json=False)
            if all(map(_is_json_of, texts, values)):
                return Copy(key, is_list, is_json=True)
    return None


def _is_json_of(text: str, value: object) -> bool:
    if len(text) > MAX_COMPARED:
        return False
    with loading:
        import json  # noqa: PLC0415 - as above

        import orjson  # noqa: PLC0415

    try:
        # As JSON, since 1, 1.0 and True are equal in Python.
        options = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
        read = orjson.loads(text)
        same = orjson.dumps(read, option=options) == orjson.dumps(value, option=options)
        if not (same and _LONG_INTEGER.search(text)):  # of which orjson makes a float
            return same and bool(read == value)  # orjson writes NaN as null, a UUID as a str, a tuple as a list
    except (TypeError, ValueError, RecursionError):  # a long integer, a lone surrogate, many levels, or no JSON at all
        pass
    try:
        read = json.loads(text)
        return json.dumps(read, sort_keys=True) == json.dumps(value, sort_keys=True) and bool(read == value)
    except (TypeError, ValueError, RecursionError):
        return False
