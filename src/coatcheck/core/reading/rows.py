"""Matches as the rows that the model reads: matching lines, their context, windows into long lines.

Rows are made in the order of the content, context that overlaps is shown once, and making stops when the budget is
certainly used up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from coatcheck.core.blocks import to_valid_unicode
from coatcheck.core.reading import wording
from coatcheck.core.reading.excerpts import MARGIN
from coatcheck.core.reading.index import align, byte_of_character, complete, decode, first_start
from coatcheck.core.reading.scan import LONG_LINE

if TYPE_CHECKING:
    from collections.abc import Callable

    from coatcheck.core.reading.excerpts import Excerpts
    from coatcheck.core.reading.index import LineIndex
    from coatcheck.core.reading.scan import Hit
    from coatcheck.core.reading.source import Steps

__all__ = ("Row", "RowMaker")

AROUND = 100
"""Characters on both sides of an occurrence in a long line."""

OCCURRENCE = 200
"""Characters of the occurrence itself."""

REACH = 65_536
"""Bytes read before or after a match for its context. A longer line is shown in part."""

_WIDEST = 4  # bytes of a character
_GROWTH = 4
_CUT = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of search results. ``line`` 0 is the mark between two groups."""

    owner: int
    """The number of the match, among those to be shown, that the row is there for."""

    line: int = 0
    text: str = wording.BETWEEN_GROUPS

    hits: int = 0
    """How many matches it shows; none if it is context."""

    marked: bool = False
    """Whether the line matches."""

    start: int | None = None
    """For a window: its first character in the content."""

    before: str = ""
    after: str = ""

    item: int | None = None
    """The number of the joined text that holds the match, where the content is many."""

    def render(self, width: int) -> str:
        """Return the row with its number right-aligned to ``width``."""
        if not self.line:
            return self.text
        text = f"{self.before}{self.text}{self.after}"
        if self.start is None:
            return wording.numbered(self.line, text, width=width, marked=self.marked, item=self.item)
        stop = self.start + len(self.text)
        return wording.numbered_window(self.line, text, width=width, start=self.start, stop=stop, item=self.item)

    def cut(self, text: str) -> Row:
        """Return the row with only ``text``, its beginning."""
        return self if text == self.text else replace(self, text=text, after=_CUT)


class RowMaker:
    """Makes rows from hits, within the bytes from ``floor`` to ``ceiling``; ``index`` knows the items they are in."""

    def __init__(self, excerpts: Excerpts, index: LineIndex, floor: int, ceiling: int, context: int) -> None:
        self._excerpts = excerpts
        self._index = index
        self._floor = floor
        self._ceiling = ceiling
        self._context = context

    def rows(self, hits: list[Hit], cost: Callable[[Row], int], budget: int) -> Steps[list[Row]]:
        """Return the rows of ``hits``, as many as can fit and at least those of the first one."""
        rows: list[Row] = []
        number = last = spent = 0
        while number < len(hits) and spent <= budget:
            hit, made = hits[number], []
            if hit.line != last:
                made = yield from self._before(hit, number, last)
            row, behind = yield from self._shown(hit, number)
            covered = _covered(hits, number, behind)
            made.append(replace(row, hits=covered, item=self._index.item_at(hit.start)))
            number += covered
            last = hit.line
            following = hits[number].line if number < len(hits) else None
            if following != hit.line:
                made += yield from self._after(hit, number - 1, following)
                last = made[-1].line
            spent += sum(map(cost, made))
            rows += made
        return rows

    def occurrence(self, hit: Hit) -> Steps[Row]:
        """Return the beginning of a match as a window, without what is before it."""
        row, _ = yield from self._window(hit, 0)
        skipped = hit.character
        if not hit.long:
            prefix, _ = yield from self._behind(hit.start, 0)
            skipped += len(decode(prefix))
        item = self._index.item_at(hit.start)
        return replace(row, text=row.text[skipped - (row.start or 0) :], start=skipped, before=_CUT, item=item)

    def _before(self, hit: Hit, number: int, last: int) -> Steps[list[Row]]:
        """Return the context before a match, down to line ``last``, which is shown already."""
        count = min(self._context, hit.line - last - 1)
        _, lines = yield from self._behind(hit.start, count)
        first = hit.line - len(lines)
        rows = [Row(owner=number, line=first + n, text=text) for n, text in enumerate(lines)]
        if last and first > last + 1:
            rows.insert(0, Row(owner=number))
        return rows

    def _after(self, hit: Hit, number: int, following: int | None) -> Steps[list[Row]]:
        """Return the context after a match, up to the line of the ``following`` one."""
        count = self._context if following is None else min(self._context, following - hit.line - 1)
        _, lines = yield from self._ahead(hit.stop, count)
        return [Row(owner=number, line=hit.line + 1 + n, text=text) for n, text in enumerate(lines)]

    def _shown(self, hit: Hit, number: int) -> Steps[tuple[Row, int]]:
        """Return the row of a match, and the byte up to which it shows the line."""
        if hit.long:
            return (yield from self._window(hit, number))
        prefix, _ = yield from self._behind(hit.start, 0)
        suffix, _ = yield from self._ahead(hit.stop, 0)
        match = yield from self._excerpts.get(hit.start, hit.stop)
        text = to_valid_unicode(decode(prefix + match + suffix))
        return Row(owner=number, line=hit.line, text=text, hits=1, marked=True), hit.stop

    def _window(self, hit: Hit, number: int) -> Steps[tuple[Row, int]]:
        """Return a window around a match, and the byte after it."""
        prefix, _ = yield from self._behind(hit.start, 0)
        suffix, _ = yield from self._ahead(hit.stop, 0)
        most = OCCURRENCE * _WIDEST
        match = yield from self._excerpts.get(hit.start, min(hit.stop, hit.start + most))
        left, middle = decode(prefix), decode(match)
        if len(middle) > OCCURRENCE or hit.stop - hit.start > most:
            middle, right, behind = middle[:OCCURRENCE], "", hit.start
            after = _CUT
        else:
            right = decode(suffix[: align(suffix, AROUND * _WIDEST)])[:AROUND]
            behind = hit.stop + byte_of_character(suffix, len(right))
            after = _CUT if behind < hit.stop + len(suffix) else ""
        before = _CUT if len(left) > AROUND else ""
        left = left[-AROUND:]
        prefix_characters = len(left) if hit.long else len(decode(prefix))
        start = hit.character - len(left) if hit.long else hit.character + prefix_characters - len(left)
        row = Row(
            owner=number,
            line=hit.line,
            text=to_valid_unicode(left + middle + right),
            hits=1,
            marked=True,
            start=start,
            before=before,
            after=after,
        )
        return row, behind

    def _behind(self, at: int, count: int) -> Steps[tuple[bytes, list[str]]]:
        """Return what is before ``at`` in its line, and the ``count`` lines before that one."""
        reach, most = MARGIN, REACH if count else MARGIN
        while True:
            low = max(self._floor, at - reach)
            data = (yield from self._excerpts.get(low, at)) if low < at else b""
            if low == self._floor or data.count(b"\n") > count or reach >= most:
                break
            reach *= _GROWTH
        data = data[first_start(data) :] if low > self._floor else data
        pieces = data.split(b"\n")
        earlier = pieces[:-1][-count:] if count else []
        lines = [_context_text(piece) for piece in earlier]
        if len(earlier) == len(pieces) - 1 and earlier and low > self._floor:
            lines[0] = _CUT + to_valid_unicode(decode(earlier[0]).removesuffix("\r"))[-OCCURRENCE:]
        return pieces[-1], lines

    def _ahead(self, at: int, count: int) -> Steps[tuple[bytes, list[str]]]:
        """Return the rest of the line after ``at``, and the ``count`` lines after that line."""
        reach, most = MARGIN, REACH if count else MARGIN
        while True:
            high = min(self._ceiling, at + reach)
            data = (yield from self._excerpts.get(at, high)) if at < high else b""
            if high == self._ceiling or data.count(b"\n") > count or reach >= most:
                break
            reach *= _GROWTH
        cut = high < self._ceiling
        data = data[: complete(data)] if cut else data
        pieces = data.split(b"\n")
        own = pieces[0].removesuffix(b"\r") if len(pieces) > 1 else pieces[0]
        *later, last = pieces[1:] or [b""]
        lines = [_context_text(piece) for piece in later[:count]]
        if last and len(lines) < count:  # no line end after it
            text = _shortened(last)
            lines.append(text + _CUT if cut and not text.endswith(_CUT) else text)
        return own, lines


def _covered(hits: list[Hit], number: int, behind: int) -> int:
    """Return how many hits, from ``number`` on, a row shows that reaches to byte ``behind``."""
    covered = 1
    while number + covered < len(hits):
        hit = hits[number + covered]
        if hit.line != hits[number].line or hit.stop > behind:
            break
        covered += 1
    return covered


def _context_text(line: bytes) -> str:
    return _shortened(line.removesuffix(b"\r"))


def _shortened(line: bytes) -> str:
    text = to_valid_unicode(decode(line))
    return text if len(text) <= LONG_LINE else text[:OCCURRENCE] + _CUT
