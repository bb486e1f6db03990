"""Many texts of one result as one content, joined as they are, with the byte at which each begins; and copies of them.

Tools of MCP servers return a list as one block per item. Stored separately, thousands of items could not be searched
at once. Pure; where the starts are stored belongs to ``contents``. A copy says the same as the texts next to it, as
MCP's structured content does.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from coatcheck.core.blocks import Block, TextBlock, utf8_length
from coatcheck.core.forks import loading

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("MOST_APART", "Copy", "Part", "find_copy", "join_texts", "split_items")

MOST_APART = 8
"""Texts of one result that are stored one by one, each with a preview of its own. More become one content."""

_BETWEEN = "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One block of a result, or many texts joined: stored as one content, or passed on as it came."""

    block: Block
    """The block as it came; for many texts, one that holds them joined."""

    text: str | None = None
    """The text that is stored; None for media and unknown blocks."""

    content_type: str = "text/plain"
    """The MIME type that it is stored with."""

    starts: tuple[int, ...] | None = None
    """The byte at which each of many texts begins; None for one block."""


def join_texts(parts: Sequence[Part]) -> list[Part]:
    """Return the parts of a result with all its texts joined, in the place of the first one.

    Empty texts are joined too, so that each item has the number that it came with, and JSON is one text per item.
    """
    items = [part.text for part in parts if part.text is not None]
    joined = _BETWEEN.join(items)
    lengths = (utf8_length(text) + len(_BETWEEN) for text in items[:-1])
    whole = Part(block=TextBlock(joined), text=joined, starts=tuple(accumulate(lengths, initial=0)))
    first = next(place for place, part in enumerate(parts) if part.text is not None)
    return [
        whole if place == first else part for place, part in enumerate(parts) if part.text is None or place == first
    ]


def split_items(data: bytes, starts: Sequence[int]) -> tuple[bytes, ...]:
    """Return each of the texts that were joined into ``data``."""
    ends = (*starts, len(data) + len(_BETWEEN))
    return tuple(data[start : end - len(_BETWEEN)] for start, end in pairwise(ends))


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
    with loading:
        import json  # noqa: PLC0415 - as above

    try:
        # As JSON, since 1, 1.0 and True are equal in Python.
        return json.dumps(json.loads(text), sort_keys=True) == json.dumps(value, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return False
