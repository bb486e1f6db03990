r"""The line index: at which bytes lines and characters start, in at most 4,096 checkpoints.

It is built in one pass while content is saved, so that reading twenty lines of a gigabyte takes one or two reads.
Encoding, decoding and counting of stored text are here too, because they must agree to the byte. A line ends at ``\n``
and nowhere else.
"""

from __future__ import annotations

import io
import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence

__all__ = (
    "CHUNK_CHARACTERS",
    "INDEX_THRESHOLD",
    "MAX_CHECKPOINTS",
    "START",
    "WIDEST",
    "Encoded",
    "LineIndex",
    "Place",
    "align",
    "byte_of_character",
    "columns_of",
    "complete",
    "count_lines",
    "decode",
    "encode_bytes",
    "first_start",
    "index_text",
)

CHUNK_CHARACTERS = 65_536
"""Characters encoded in one step, which takes about 50 microseconds. Other threads can run between steps."""

PIECE_CHUNKS = 16
"""Chunks in one piece of work, which takes 1 to 3 milliseconds. Next to that, a pause between pieces costs nothing."""

COPIED_AT_ONCE = 16_777_216
"""The most ASCII characters encoded at once. That is a plain copy: 2 milliseconds, and twice as long in pieces."""

MAX_CHECKPOINTS = 4_096
"""At most about 140 KB of index. With more than 268 million characters, the checkpoints are further apart."""

INDEX_THRESHOLD = 1_048_576
"""Bytes. Content up to this size has no index: a scan from its start takes less time than fetching one."""

_LONG_LINE = 48
"""Bytes per line. In longer lines, ``bytes.replace`` counts line ends faster than ``bytes.count``; measured on CPython
3.11."""

_VERSION = 2
_SURROGATES = re.compile(rb"((?:\xed[\xa0-\xbf][\x80-\xbf])+)")

WIDEST = 4
"""Bytes of the widest character in UTF-8."""


class Place(NamedTuple):
    """A position in the content, in three units."""

    byte: int
    line: int  # the number of "\n" before it
    character: int


START = Place(0, 0, 0)


class Checkpoints(NamedTuple):
    """Places between two characters, in ascending order, the first at the start.

    Columns are read and checked in a quarter of the time that as many ``Place`` objects take.
    """

    bytes: tuple[int, ...] = (START.byte,)
    lines: tuple[int, ...] = (START.line,)
    characters: tuple[int, ...] = (START.character,)


_ONLY_THE_START = Checkpoints()


@dataclass(frozen=True, slots=True, kw_only=True)
class LineIndex:
    """Totals, and places to start reading from, in ascending order."""

    size: int
    """Bytes."""

    characters: int
    lines: int

    checkpoints: Checkpoints = _ONLY_THE_START

    items: tuple[int, ...] = ()
    """The byte at which each joined text block begins; empty if the content is a single block."""

    def item_at(self, byte: int) -> int | None:
        """Return the number, from 1, of the joined text block at ``byte``; None if the content is a single block."""
        return bisect_right(self.items, byte) or None

    def nearest(self, *, line: int | None = None, character: int | None = None, byte: int | None = None) -> Place:
        """Return the last checkpoint before the start of ``line`` (from 1), or up to a ``character`` or a ``byte``."""
        marks = self.checkpoints
        if line is not None:
            # A checkpoint after line - 1 line ends may be past the start of the line.
            after = bisect_right(marks.lines, line - 2)
        elif character is not None:
            after = bisect_right(marks.characters, character)
        else:
            after = bisect_right(marks.bytes, byte or 0)
        last = max(0, after - 1)
        return Place(marks.bytes[last], marks.lines[last], marks.characters[last])

    def to_bytes(self) -> bytes:
        """Return the index as JSON."""
        return orjson.dumps(
            {
                "version": _VERSION,
                "size": self.size,
                "characters": self.characters,
                "lines": self.lines,
                "checkpoints": tuple(self.checkpoints),
                **({"items": self.items} if self.items else {}),
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes, *, size: int) -> LineIndex | None:
        """Return the index that ``to_bytes`` encoded for content of ``size`` bytes, or None for anything else."""
        try:
            stored = orjson.loads(data)
        except ValueError:
            return None
        if not isinstance(stored, dict) or stored.get("version") != _VERSION or stored.get("size") != size:
            return None
        columns, lines, characters = (stored.get(name, 0) for name in ("checkpoints", "lines", "characters"))
        if not _are_checkpoints(columns, size, lines, characters):
            return None
        items = stored.get("items") or []
        if items and not _are_starts(items, size):
            return None
        checkpoints = Checkpoints._make(map(tuple, columns))
        return cls(size=size, characters=characters, lines=lines, checkpoints=checkpoints, items=tuple(items))


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """Text as it is stored, its totals and its index."""

    data: bytes
    """UTF-8, with lone surrogates through ``surrogatepass``."""

    characters: int
    lines: int

    index: LineIndex | None
    """None for small content, which needs none."""

    def with_items(self, starts: tuple[int, ...]) -> Encoded:
        """Return a copy with an index, even for small content, that says where each joined text block begins."""
        index = self.index or LineIndex(size=len(self.data), characters=self.characters, lines=self.lines)
        return replace(self, index=replace(index, items=starts))


def encode_bytes(text: str) -> Generator[None, None, tuple[bytes, Sequence[int]]]:
    """Encode ``text``. Return the bytes and where each chunk of ``CHUNK_CHARACTERS`` starts; yield after each piece."""
    sink, starts = io.BytesIO(), []
    piece = PIECE_CHUNKS * CHUNK_CHARACTERS
    if text.isascii():
        if len(text) <= COPIED_AT_ONCE:
            return text.encode("ascii"), range(0, len(text), CHUNK_CHARACTERS)
        for start in range(0, len(text), piece):
            sink.write(text[start : start + piece].encode("ascii"))
            yield
        return sink.getvalue(), range(0, len(text), CHUNK_CHARACTERS)
    for number, start in enumerate(range(0, len(text), CHUNK_CHARACTERS), start=1):
        starts.append(sink.tell())
        sink.write(text[start : start + CHUNK_CHARACTERS].encode("utf-8", "surrogatepass"))
        if number % PIECE_CHUNKS == 0:
            yield
    return sink.getvalue(), starts


def index_text(text: str, data: bytes, starts: Sequence[int]) -> Generator[None, None, Encoded]:
    """Return what ``encode_bytes`` made of ``text``, with its totals and index; yield after each piece.

    It is separate from encoding, because it can run while the bytes are hashed.
    """
    newlines, places, are_long = 0, [], False
    every = max(1, -(-len(starts) // MAX_CHECKPOINTS))
    for number, (byte, end) in enumerate(pairwise((*starts, len(data)))):
        if number % every == 0:
            places.append(Place(byte, newlines, number * CHUNK_CHARACTERS))
        chunk = data[byte:end]
        # bytes.replace jumps from one line end to the next, bytes.count does not. It is up to ten times as fast in long
        # lines, but twenty times slower in short ones. Lines tend to be as long as in the previous chunk.
        found = len(chunk) - len(chunk.replace(b"\n", b"")) if are_long else chunk.count(b"\n")
        are_long = found * _LONG_LINE < len(chunk)
        newlines += found
        if number % PIECE_CHUNKS == PIECE_CHUNKS - 1:
            yield
    lines = newlines + (text != "" and not text.endswith("\n"))
    index = None
    if len(data) > INDEX_THRESHOLD:
        index = LineIndex(size=len(data), characters=len(text), lines=lines, checkpoints=columns_of(places))
    return Encoded(data=data, characters=len(text), lines=lines, index=index)


def columns_of(places: Iterable[Place]) -> Checkpoints:
    """Convert places, at least one, to the columns that an index holds."""
    return Checkpoints._make(zip(*places, strict=True))


def count_lines(newlines: int, last: bytes) -> int:
    r"""Return the number of lines, given the number of ``\n`` and the last byte, which is empty for empty content."""
    return newlines + (last not in {b"", b"\n"})


def decode(data: bytes) -> str:
    """Decode stored text. Bytes that are not UTF-8 become U+FFFD; nothing is raised."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    try:
        return data.decode("utf-8", "surrogatepass")  # in one call: piece by piece it takes seven times as long
    except UnicodeDecodeError:
        pieces = _SURROGATES.split(data)
        return "".join(piece.decode("utf-8", "surrogatepass" if n % 2 else "replace") for n, piece in enumerate(pieces))


def complete(data: bytes) -> int:
    """Return how many bytes of ``data`` form whole characters; the rest begins a character that continues after it."""
    for back in range(1, min(WIDEST, len(data) + 1)):
        byte = data[-back]
        if byte >= 0xC0:  # noqa: PLR2004 - the first byte of a character of two to four bytes
            return len(data) - back if back < _length(byte) else len(data)
        if byte < 0x80:  # noqa: PLR2004 - a character of one byte
            break
    return len(data)


def align(data: bytes, at: int) -> int:
    """Return ``at``, moved back to the start of its character."""
    if at >= len(data):
        return len(data)
    for back in range(min(WIDEST, at + 1)):
        if data[at - back] & 0xC0 != 0x80:  # noqa: PLR2004 - not a continuation byte
            return at - back
    return at


def first_start(data: bytes) -> int:
    """Return where the first character in ``data`` starts, looking no further than one character is long."""
    return next((n for n in range(min(WIDEST, len(data))) if data[n] & 0xC0 != 0x80), 0)  # noqa: PLR2004


def byte_of_character(data: bytes, character: int) -> int:
    """Return the byte at which a character of ``data`` starts. Broken bytes count as ``decode`` counts them."""
    if data.isascii():
        return character
    low, high = 0, len(data)
    while high - low > WIDEST:
        middle = align(data, (low + high) // 2)
        if middle <= low:
            break
        characters = len(decode(data[low:middle]))
        if characters <= character:
            low, character = middle, character - characters
        else:
            high = middle
    while character and low < len(data):
        low += _first_character(data[low : low + WIDEST])
        character -= 1
    return low


def _first_character(data: bytes) -> int:
    """Return the length in bytes of the first character of ``data``."""
    return next(n for n in range(len(data), 0, -1) if n == 1 or len(decode(data[:n])) == 1)


def _length(first: int) -> int:
    return 2 if first < 0xE0 else 3 if first < 0xF0 else 4  # noqa: PLR2004 - as UTF-8 defines it


def _are_starts(items: Any, size: int) -> bool:  # noqa: ANN401 - any JSON may be stored
    """Return whether these are whole numbers that rise from 0 to at most ``size``, without repeats."""
    return isinstance(items, list) and _rise(items, size) and len(set(items)) == len(items)


def _rise(numbers: list[Any], most: Any) -> bool:  # noqa: ANN401 - any JSON may be stored
    """Return whether ``numbers``, at least one, rise from 0 to at most ``most``, and all are whole numbers."""
    if {type(number) for number in (*numbers, most)} != {int}:
        return False
    return bool(numbers[0] == 0 and numbers[-1] <= most and numbers == sorted(numbers))


def _are_checkpoints(columns: Any, *totals: Any) -> bool:  # noqa: ANN401 - any JSON may be stored
    """Return whether these are three equally long columns of whole numbers that rise from 0 to at most their totals."""
    if not isinstance(columns, list) or {type(column) for column in columns} != {list}:
        return False
    return (
        len(columns) == len(totals)
        and len({len(column) for column in columns}) == 1
        and 0 < len(columns[0]) <= MAX_CHECKPOINTS
        and all(map(_rise, columns, totals))
    )
