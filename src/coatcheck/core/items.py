"""Many texts of one result as one content, joined as they are, with the byte at which each begins.

Tools of MCP servers return a list as one block per item. Stored separately, thousands of items could not be searched
at once. Pure; where the starts are stored belongs to ``contents``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from coatcheck.core.blocks import Block, TextBlock, utf8_length

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("MAX_APART", "Part", "join_texts", "split_items")

MAX_APART = 8
"""How many texts of one result are stored one by one, each with its own preview. More are joined into one content."""

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

    Empty texts are joined too, so that each item keeps its number. Each JSON value is one of the texts.
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
