"""Getting at the bytes: one checked request, and a walk forward through content from a known place.

Every byte that this package sees comes through ``fetch``. A walk starts small and grows, so that a few lines cost a
few kilobytes and a whole content costs few requests. What the text means is none of its business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.errors import CorruptContent
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
from coatcheck.core.reading.source import IndexNeeded, Part

if TYPE_CHECKING:
    from collections.abc import Callable

    from coatcheck.core.reading.source import Source, Steps

__all__ = ("LARGEST_PART", "Walk", "fetch", "orient")

FIRST_PART = 65_536
"""Bytes of a walk's first request: what a page of text needs, and one round trip on a network storage."""

LARGEST_PART = 2_097_152
"""Bytes of any request: large enough that round trips do not count, small enough to hold a few."""

_GROWTH = 4


def fetch(start: int, stop: int) -> Steps[bytes]:
    """Ask for the bytes from ``start`` to ``stop``.

    Raises:
        CorruptContent: there are not that many, so the content is no longer the one that was saved.

    """
    data = yield Part(start, stop - start)
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


def _survey(size: int) -> Steps[LineIndex]:
    """Read everything once, and note where each part began."""
    walk, places, last = Walk(START, size), [], b""
    while not walk.ended:
        yield from walk.read()
        places.append(walk.place)
        last = walk.data[-1:] or last
    end = walk.end
    spacing = -(-len(places) // MAX_CHECKPOINTS)
    return LineIndex(
        size=size,
        characters=end.character,
        lines=count_lines(end.line, last),
        checkpoints=columns_of(places[::spacing]),
    )


class Walk:
    """A window that moves forward through the content. It always holds whole characters."""

    def __init__(self, start: Place, stop: int) -> None:
        self.place = start
        self.data = b""
        self.text = ""
        self._read_to = start.byte
        self._stop = stop
        self._size = FIRST_PART
        self._held = b""

    @property
    def ended(self) -> bool:
        """Whether nothing is left to read after the window."""
        return self._read_to >= self._stop

    @property
    def end(self) -> Place:
        """The place right after the window."""
        place = self.place
        return Place(
            place.byte + len(self.data),
            place.line + self.data.count(b"\n"),
            place.character + len(self.text),
        )

    def read(self) -> Steps[None]:
        """Move the window on to what comes next."""
        self.place = self.end
        stop = min(self._stop, self._read_to + self._size)
        data = self._held + (yield from fetch(self._read_to, stop))
        self._read_to = stop
        self._size = min(LARGEST_PART, self._size * _GROWTH)
        cut = len(data) if self.ended else complete(data)
        self.data, self._held = data[:cut], data[cut:]
        self.text = decode(self.data)

    def to_character(self, character: int) -> Steps[None]:
        """Move the start of the window to ``character``, at or after its present start."""
        while not self.ended and self.place.character + len(self.text) <= character:
            yield from self.read()
        self._skip(byte_of_character(self.data, character - self.place.character))

    def to_line(self, line: int) -> Steps[None]:
        """Move the start of the window to ``line`` (from 1), at or after its present start."""
        missing = line - 1 - self.place.line
        while missing > self.data.count(b"\n"):
            missing -= self.data.count(b"\n")
            yield from self.read()
        at = 0
        for _ in range(missing):
            at = self.data.index(b"\n", at) + 1
        self._skip(at)

    def gather(self, enough: Callable[[str], bool]) -> Steps[str]:
        """Return the text from the window's beginning on, up to the end or until ``enough`` of it."""
        text = self.text
        while not self.ended and not enough(text):
            yield from self.read()
            text += self.text
        return text

    def _skip(self, at: int) -> None:
        skipped = self.data[:at]
        characters = len(decode(skipped))
        self.place = Place(
            self.place.byte + at,
            self.place.line + skipped.count(b"\n"),
            self.place.character + characters,
        )
        self.data, self.text = self.data[at:], self.text[characters:]
