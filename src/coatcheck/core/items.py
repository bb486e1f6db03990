"""Join many text blocks of a result into one content, unchanged, and record the byte at which each begins.

Tools of MCP servers return a list as one block per item. Stored separately, thousands of items could not be searched at
once. Pure: ``contents`` stores the starts.
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
"""The most text blocks of one result that are stored separately, each with its own preview. More are joined into one
content."""

_BETWEEN = "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One block of a result, or many text blocks joined. It is stored as one content, or passed on unchanged."""

    block: Block
    """The original block; for joined text blocks, one that holds the joined text."""

    text: str | None = None
    """The text that is stored; None for media and opaque blocks."""

    content_type: str = "text/plain"
    """The MIME type stored with it."""

    starts: tuple[int, ...] | None = None
    """The byte at which each joined text block begins; None for a single block."""


def join_texts(parts: Sequence[Part]) -> list[Part]:
    """Return the parts of a result with all text joined, in place of the first text part.

    Empty parts are joined too, so that each item keeps its number. JSON values count as text.
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
    """Split ``data`` into the text blocks that were joined."""
    ends = (*starts, len(data) + len(_BETWEEN))
    return tuple(data[start : end - len(_BETWEEN)] for start, end in pairwise(ends))
