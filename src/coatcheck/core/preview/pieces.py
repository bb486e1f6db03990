"""Searches long text for odd records, piece by piece, so that other threads get the interpreter in between.

The reader of each kind adds the records of a piece to an ``OddSearch``, and yields where the piece is. Only the places
of the odd records are kept, since all records of 8 MB of JSON take about 50 MB.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from coatcheck.core.preview.odd import OddSearch
from coatcheck.core.preview.source import Found

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from coatcheck.core.preview.source import Previewed, Search

__all__ = (
    "MAX_SEARCHED",
    "PIECE",
    "found_in",
    "line_pieces",
    "search_pieces",
    "split_lines",
    "unsearched_lines",
)

MAX_SEARCHED = 8_000_000
"""Characters. Longer text is not searched for odd records. A million takes about 20 ms."""

PIECE = 65_536
"""Characters of a piece: parsing one holds the interpreter's lock for less than a millisecond."""

_LONGEST_LINE = 1_000_000
"""The longest line, in characters, that may be a piece of its own."""

_MAX_CELLS = 6_000_000
"""The most values counted. That takes about 0.3 s for records that have hardly a field in common."""


def found_in(content: Previewed, search: Search) -> Found:
    """Return what ``search`` finds, or has found before."""
    if content.found is not None and content.found.by is search:
        return content.found
    found = Found()
    for _ in search(found, content):
        pass
    return found


def search_pieces(
    found: Found,
    text: str,
    read: Callable[[OddSearch], Iterator[tuple[int, int]]],
    split: Callable[[int, int], Sequence[tuple[int, int]]],
) -> Iterator[None]:
    """Add what is odd among the records of ``text`` to ``found``; yield after each piece.

    ``read`` adds each piece to a search and yields where it begins and ends. ``split`` returns where each record of
    such a piece begins and ends.
    """
    search = OddSearch()
    pieces: list[tuple[int, int]] = []
    firsts: list[int] = []
    before = 0
    for piece in read(search) if len(text) <= MAX_SEARCHED else ():
        pieces.append(piece)
        firsts.append(before)
        before, found.tail, found.end = search.total, pieces[-2:][0][0], piece[1]
        yield
        if search.cells > _MAX_CELLS:
            break
    odd = search.found()
    for position in odd.positions:
        at = bisect_right(firsts, position) - 1
        found.places[position] = split(*pieces[at])[position - firsts[at]]
        yield
    found.odd, found.total = odd, search.total


def line_pieces(text: str, start: int, *, first: int = PIECE) -> Iterator[tuple[int, int]]:
    """Yield where each piece of whole lines begins and ends. Stop at a line that is too long for one.

    ``first`` is the size of the first piece, in characters, which may be smaller than the others.
    """
    size = first
    while start < len(text):
        end = len(text) if len(text) - start <= size else text.rfind("\n", start, start + size) + 1
        end = end or text.find("\n", start, start + _LONGEST_LINE) + 1
        if not end:
            return
        yield start, end
        start, size = end, PIECE


def split_lines(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return where each line of a piece begins and ends, without blank lines."""
    places: list[tuple[int, int]] = []
    for line in text[start:end].split("\n"):
        if line and not line.isspace():
            places.append((start, start + len(line)))
        start += len(line) + 1
    return places


def unsearched_lines(found: Found, content: Previewed) -> str:
    """Return which lines were not searched; empty if all were."""
    if found.end == len(content.text):
        return ""
    first = content.text.count("\n", 0, found.end) + 1
    return f"lines {first:,}-{content.lines:,} not searched for odd ones"
