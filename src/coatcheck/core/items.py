"""Many texts of one result as one content: joined as they are, with the byte at which each begins.

Tools of MCP servers return a list as one block an item. Stored one by one, thousands of them could be found by no
search. Pure; where the starts are stored belongs to ``contents``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from coatcheck.core.blocks import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck.core.tokens import utf8_length

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ("MOST_APART", "Part", "are_joined", "parts_of", "split_items")

MOST_APART = 8
"""Texts of one result that are stored one by one, each with a preview of its own. More become one content."""

_BETWEEN = "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What is stored as one content, or passes as one block."""

    block: Block
    """The block as it came; for many texts, one that holds them joined."""

    text: str | None
    """What is stored of it as text; None for media and unknown blocks."""

    starts: tuple[int, ...] | None = None
    """The byte at which each of many texts begins; None for what is one block."""

    @property
    def content_type(self) -> str:
        """The MIME type that it is stored with."""
        match self.block:
            case JsonBlock():
                return "application/json"
            case MediaBlock():
                return self.block.media_type
            case TextBlock() | OpaqueBlock():
                return "text/plain"


def are_joined(texts: Iterable[str | None]) -> bool:
    """Return whether the texts of a result, among which media and unknown blocks are None, become one content."""
    return sum(1 for text in texts if text) > MOST_APART


def parts_of(blocks: Sequence[Block], texts: Sequence[str | None]) -> list[Part]:
    """Return the parts of a result, in order: its blocks, or, in the place of its first text, all of them joined.

    Empty texts are joined too, so that each item has the number that it came with, and JSON is one text an item.
    """
    if not are_joined(texts):
        return [Part(block=block, text=text) for block, text in zip(blocks, texts, strict=True)]
    items = [text for text in texts if text is not None]
    joined = _BETWEEN.join(items)
    lengths = (utf8_length(text) + len(_BETWEEN) for text in items[:-1])
    whole = Part(block=TextBlock(joined), text=joined, starts=tuple(accumulate(lengths, initial=0)))
    first = next(place for place, text in enumerate(texts) if text is not None)
    return [
        whole if place == first else Part(block=block, text=None)
        for place, (block, text) in enumerate(zip(blocks, texts, strict=True))
        if text is None or place == first
    ]


def split_items(data: bytes, starts: Sequence[int]) -> tuple[bytes, ...]:
    """Return each of the texts that were joined into ``data``."""
    ends = (*starts, len(data) + len(_BETWEEN))
    return tuple(data[start : end - len(_BETWEEN)] for start, end in pairwise(ends))
