"""Stored content as reading sees it: what is known about it, how to ask for its bytes, and how to walk through them.

This is the seam between this package, which does no I/O, and the engine, which does. A reading is a generator that
yields ``ByteRange`` and ``IndexNeeded``, is sent bytes, and returns an ``Answer``. Every byte comes through ``fetch``.
A ``Walk`` starts small and grows, so that a few lines cost a few kilobytes, and all of the content few requests.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from coatcheck.core.errors import CorruptContent, InvalidRequest
from coatcheck.core.reading import wording
from coatcheck.core.reading.index import (
    MAX_CHECKPOINTS,
    START,
    LineIndex,
    Place,
    byte_of_character,
    columns_of,
    complete,
    count_lines,
    decode,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = (
    "MAX_PART",
    "Answer",
    "ByteRange",
    "IndexNeeded",
    "Reading",
    "Source",
    "Steps",
    "Walk",
    "clip_range",
    "fetch",
    "orient",
    "resolve_offset",
    "walk_to",
)

FIRST_PART = 65_536
"""Bytes of a walk's first request: what a page of text needs, and one round trip on a network storage."""

MAX_PART = 2_097_152
"""The most bytes of one request: enough that round trips do not matter, and few enough that memory can hold several."""

_GROWTH = 4

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is known about stored content without reading it."""

    reference: str
    """The reference as the model sees it; the next call in an answer repeats it."""

    content_type: str
    """MIME type of the stored bytes."""

    size: int
    """Bytes stored."""

    characters: int | None
    """Characters of the decoded text; None if nobody has counted them."""

    lines: int | None
    """Lines of the decoded text; None if nobody has counted them."""

    has_index: bool = False
    """Whether a line index was stored with the content, so that asking for it is worthwhile."""

    has_items: bool = False
    """Whether text blocks were joined, so that the index says where each begins."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Asks for the ``length`` bytes from ``start``. The answer has exactly that many."""

    start: int
    length: int


@dataclass(frozen=True, slots=True)
class IndexNeeded:
    """Asks for the stored line index. The answer is its bytes, or None if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model reads, and what it may ask for next."""

    text: str
    """The whole answer: valid Unicode, within the budget."""

    next_call: Mapping[str, object] | None = None
    """Keyword arguments of the next call, without the reference; None when nothing is left to read."""

    matches: int | None = None
    """How many matches the pattern has, counted up to 10,000; 0 if a query gave null or an empty list; else None."""


Steps: TypeAlias = Generator[ByteRange | IndexNeeded, bytes | None, _Result]
"""A computation that asks for bytes on its way to a result."""

Reading: TypeAlias = Steps[Answer]


def clip_range(line_range: tuple[int, int], index: LineIndex) -> tuple[int, int]:
    """Return ``line_range`` without the part after the last line.

    Raises:
        InvalidRequest: all of it is after the last line.

    """
    first, last = line_range
    if first > index.lines:
        raise InvalidRequest(wording.start_beyond(first, index.lines))
    return first, min(last, index.lines)


def resolve_offset(offset: int, total: int, what: str = "content") -> int:
    """Convert ``offset`` to a position among ``total`` characters; a negative one counts from the end.

    Raises:
        InvalidRequest: it is after the last character.

    """
    if offset < 0:
        return max(0, total + offset)
    if offset >= total > 0:
        raise InvalidRequest(wording.offset_beyond(offset, total, what))
    return offset


def fetch(start: int, stop: int) -> Steps[bytes]:
    """Ask for the bytes from ``start`` to ``stop``.

    Raises:
        CorruptContent: there are fewer, so the content is no longer what was saved.

    """
    data = yield ByteRange(start, stop - start)
    if data is None or len(data) != stop - start:
        msg = (
            f"stored content ends early: bytes {start:,} to {stop:,} were expected; the tool result must be made again"
        )
        raise CorruptContent(msg)
    return data


def orient(source: Source) -> Steps[LineIndex]:
    """Return totals and checkpoints of the content: from its stored index, from what is known, or by a scan."""
    if source.has_index:
        stored = yield IndexNeeded()
        index = LineIndex.from_bytes(stored, size=source.size) if stored is not None else None
        if index is not None:
            return index
    if source.characters is not None and source.lines is not None:
        return LineIndex(size=source.size, characters=source.characters, lines=source.lines)
    return (yield from _survey(source.size))


def walk_to(index: LineIndex, *, line: int | None = None, character: int = 0) -> Steps[Walk]:
    """Return a walk through the content that begins at a ``line`` (from 1) or else a ``character``."""
    place = index.nearest(line=line, character=character)
    walk = Walk(place, index.size - place.byte)
    yield from walk.to_character(character) if line is None else walk.to_line(line)
    return walk


def _survey(size: int) -> Steps[LineIndex]:
    """Read everything once, and record where each part began."""
    walk, places, last = Walk(START, size), [], b""
    while walk.left:
        yield from walk.read()
        places.append(walk.place)
        last = walk.data[-1:] or last
    walk.skip(len(walk.data))
    spacing = -(-len(places) // MAX_CHECKPOINTS)
    return LineIndex(
        size=size,
        characters=walk.place.character,
        lines=count_lines(walk.place.line, last),
        checkpoints=columns_of(places[::spacing]),
    )


@dataclass(slots=True)
class Walk:
    """A window that moves forward through the content. It always holds whole characters."""

    place: Place
    """Where the window begins."""

    left: int
    """Bytes after the window that are not read yet."""

    data: bytes = b""
    text: str = ""
    _size: int = 0
    _held: bytes = b""
    """The first bytes of a character that continues after what has been read."""

    def read(self) -> Steps[None]:
        """Move the window to the bytes that follow it."""
        self.skip(len(self.data))
        self._size = min(MAX_PART, self._size * _GROWTH) or FIRST_PART
        size = min(self.left, self._size)
        start = self.place.byte + len(self._held)
        data = self._held + (yield from fetch(start, start + size))
        self.left -= size
        cut = complete(data) if self.left else len(data)
        self.data, self._held = data[:cut], data[cut:]
        self.text = decode(self.data)

    def to_character(self, character: int) -> Steps[None]:
        """Move the start of the window to ``character``, at or after its current start."""
        while self.left and self.place.character + len(self.text) <= character:
            yield from self.read()
        self.skip(byte_of_character(self.data, character - self.place.character))

    def to_line(self, line: int) -> Steps[None]:
        """Move the start of the window to ``line`` (from 1), at or after its current start."""
        missing = line - 1 - self.place.line
        while missing > self.data.count(b"\n"):
            missing -= self.data.count(b"\n")
            yield from self.read()
        at = 0
        for _ in range(missing):
            at = self.data.index(b"\n", at) + 1
        self.skip(at)

    def skip(self, at: int) -> None:
        """Move the start of the window forward by ``at`` bytes."""
        skipped = self.data[:at]
        characters = len(self.text) if at == len(self.data) else len(decode(skipped))
        place = self.place
        self.place = Place(place.byte + at, place.line + skipped.count(b"\n"), place.character + characters)
        self.data, self.text = self.data[at:], self.text[characters:]
