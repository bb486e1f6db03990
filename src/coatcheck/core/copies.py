"""Find values that repeat the text blocks of a result, as MCP's structured content does.

Such a value need not be stored: it can be rebuilt from the stored text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from coatcheck.core.forks import loading

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("Copy", "find_copy")

MAX_COMPARED = 8_000_000
"""Characters of the longest text that is compared as JSON: parsing and encoding it hold the interpreter's lock. A JSON
copy of longer text is not recognized, and is stored too."""

_LONG_INTEGER = re.compile(r"\d{19}")


class Copy(NamedTuple):
    """How to rebuild a value from the text blocks of a result."""

    key: str | None
    """The only key of the object that wraps the value, such as ``result``; None if nothing wraps it."""

    is_list: bool
    """Whether the value is a list with one text block per item. If not, there is one text block."""

    is_json: bool
    """Whether each text block is the JSON of its value. If not, it is the value."""

    def make(self, texts: Sequence[str]) -> Any:  # noqa: ANN401 - any JSON value
        """Rebuild the value from ``texts``."""
        with loading:
            import json  # noqa: PLC0415 - few results have a copy

        values = [json.loads(text) for text in texts] if self.is_json else list(texts)
        value = values if self.is_list else values[0]
        return value if self.key is None else {self.key: value}


def find_copy(value: object, texts: Sequence[str]) -> Copy | None:
    """Return how to rebuild ``value`` from the text blocks of a result; None if it holds anything else."""
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
        # Compare as JSON: 1, 1.0 and True are equal in Python.
        options = orjson.OPT_SORT_KEYS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS
        read = orjson.loads(text)
        same = orjson.dumps(read, option=options) == orjson.dumps(value, option=options)
        if not (same and _LONG_INTEGER.search(text)):  # which orjson makes a float
            return same and bool(read == value)  # orjson writes NaN as null, a UUID as a str, a tuple as a list
    except (TypeError, ValueError, RecursionError):  # a long integer, a lone surrogate, deep nesting, or no JSON at all
        pass
    try:
        read = json.loads(text)
        return json.dumps(read, sort_keys=True) == json.dumps(value, sort_keys=True) and bool(read == value)
    except (TypeError, ValueError, RecursionError):
        return False
