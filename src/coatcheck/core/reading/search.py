"""Search: which part of the content is scanned, which of its matches are shown, and how the answer reads.

All matches are counted, from the start of the content or of the line range on; an offset only moves where showing
starts. Finding is done in ``scan``, rows are made in ``rows``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from coatcheck.core.arguments import DEFAULT_CONTEXT_LINES
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.reading import scan, wording
from coatcheck.core.reading.characters import resolve_offset
from coatcheck.core.reading.excerpts import Excerpts
from coatcheck.core.reading.index import START, Place, decode, first_start
from coatcheck.core.reading.lines import clip_range
from coatcheck.core.reading.pattern import Matcher, compile_pattern
from coatcheck.core.reading.rows import Row, RowMaker
from coatcheck.core.reading.source import Answer
from coatcheck.core.reading.walk import LARGEST_PART, Walk, fetch, orient

if TYPE_CHECKING:
    from collections.abc import Callable

    from coatcheck.core.reading.index import LineIndex
    from coatcheck.core.reading.request import Request
    from coatcheck.core.reading.source import Reading, Source, Steps
    from coatcheck.core.reading.writer import Writer

__all__ = ("read_matches",)

MAX_WORK = 10_000_000_000
"""RE2 instructions times bytes for one piece of the content, which is searched without a look at the clock. On hostile
content RE2 does 300 million in a second; on any other it does not get near that."""

LINE_START_REACH = 65_536
"""Bytes. How far before an offset the start of its line is looked for; a longer line is searched from the offset on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """What is searched."""

    start: Place
    stop: int
    lines: tuple[int, int]
    size: int  # of the whole content


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """What the scan gave."""

    count: int
    capped: bool
    hits: list[scan.Hit]  # to be shown, from the offset on
    next_character: int | None  # of the first hit that is not kept any more
    before: int | None  # matches before those; None after so many that they are not numbered
    excerpts: Excerpts

    @property
    def label(self) -> str:
        return f"{self.count:,}+" if self.capped else f"{self.count:,}"


def read_matches(source: Source, request: Request, writer: Writer) -> Reading:
    """Show the lines that match a pattern, with their context."""
    pattern = request.pattern or ""
    matcher = compile_pattern(pattern)
    index = yield from orient(source)
    field = yield from _field(source, request, index)
    if matcher.size * min(scan.WINDOW, field.stop - field.start.byte) > MAX_WORK:
        raise InvalidRequest(wording.too_complex(field.stop - field.start.byte))
    origin = yield from _origin(source, request, index)
    found = yield from _find(matcher, field, origin, index)
    shown_range = field.lines if request.line_range else None
    if not found.count:
        searched = field.lines[1] - field.lines[0] + 1
        text = wording.no_matches(writer.selector(pattern), shown_range, searched, literal=matcher.literal)
        return Answer(text=text, matches=0)
    make_rows = partial(RowMaker, found.excerpts, index, field.start.byte, field.stop)
    report = _Report(request, writer, matcher, found, shown_range, origin, request.context_lines)
    return (yield from report.answer(make_rows))


def _field(source: Source, request: Request, index: LineIndex) -> Steps[_Field]:
    """Return the bytes that the line range covers, or all of them."""
    if request.line_range is None:
        return _Field(start=START, stop=source.size, lines=(1, index.lines), size=source.size)
    first, last = clip_range(request.line_range, index)
    start, stop = START, source.size
    if first > 1:
        start = yield from _line_place(source, index, first)
    if last < index.lines:
        stop = (yield from _line_place(source, index, last + 1)).byte
    return _Field(start=start, stop=stop, lines=(first, last), size=source.size)


def _line_place(source: Source, index: LineIndex, line: int) -> Steps[Place]:
    walk = Walk(index.nearest(line=line), source.size)
    yield from walk.to_line(line)
    return walk.place


def _origin(source: Source, request: Request, index: LineIndex) -> Steps[Place]:
    """Return the place of the offset."""
    if not request.offset:
        return START
    character = resolve_offset(request.offset, index.characters)
    walk = Walk(index.nearest(character=character), source.size)
    yield from walk.to_character(character)
    return walk.place


def _find(matcher: Matcher, field: _Field, origin: Place, index: LineIndex) -> Steps[_Found]:
    excerpts = Excerpts(origin.byte)
    to_end = field.stop == field.size
    scanner = scan.Scanner(matcher, field.start, index=index, excerpts=excerpts, to_end=to_end)
    yield from _feed(scanner, field.start.byte, field.stop)
    count, capped = len(scanner.hits), scanner.full
    before: int | None = sum(hit.start < origin.byte for hit in scanner.hits)
    if capped and before == count:
        start, context = yield from _line_start(origin, field.start.byte)
        scanner = scan.Scanner(
            matcher, start, index=index, excerpts=excerpts, context=context, since=origin.byte, to_end=to_end
        )
        yield from _feed(scanner, start.byte, field.stop)
        before = None
    return _Found(
        count=count,
        capped=capped,
        hits=[hit for hit in scanner.hits if hit.start >= origin.byte],
        next_character=scanner.next_character,
        before=before,
        excerpts=excerpts,
    )


def _feed(scanner: scan.Scanner, at: int, stop: int) -> Steps[None]:
    while at < stop and not scanner.full:
        data = memoryview((yield from fetch(at, min(stop, at + LARGEST_PART))))
        for start in range(0, len(data), scan.WINDOW):
            piece = data[start : start + scan.WINDOW]
            at += len(piece)
            scanner.feed(piece, final=at == stop)
            if scanner.full:
                return


def _line_start(origin: Place, floor: int) -> Steps[tuple[Place, bytes]]:
    """Return the start of the line of ``origin``, or in a very long line ``origin`` itself, and the bytes before."""
    low = max(floor, origin.byte - LINE_START_REACH)
    if low == origin.byte:
        return origin, b"\n"
    data = yield from fetch(low, origin.byte)
    data = data[first_start(data) :]
    start = data.rfind(b"\n") + 1
    if not start and low > floor:
        return origin, data
    line = data[start:]
    place = Place(origin.byte - len(line), origin.line, origin.character - len(decode(line)))
    return place, data[:start] or b"\n"


@dataclass(frozen=True, slots=True)
class _Report:
    """Puts the answer together."""

    request: Request
    writer: Writer
    matcher: Matcher
    found: _Found
    lines: tuple[int, int] | None
    origin: Place
    context: int
    """How many lines around a match are shown: fewer than were asked for where those do not fit."""

    def answer(self, make_rows: Callable[[int], RowMaker]) -> Reading:
        """Show the matches with their context, or with half as much where not even the first fits."""
        hits = self.found.hits
        if not hits:
            text = f"{self._head(0, 0)}\n{wording.none_behind(self.origin.character)}"
            return Answer(text=text, matches=self.found.count)
        budget, maker = self.writer.budget, make_rows(self.context)
        rows = yield from maker.rows(hits, lambda row: self.writer.counter.count(row.text) + 1, budget)
        width = len(str(rows[-1].line))
        texts = [row.render(width) for row in rows]
        count = self.writer.whole_rows(texts, lambda count: self._compose(rows, count))
        shown = _hits_shown(rows, _closed(rows, count))
        if shown:
            return Answer(text=self._compose(rows, count), next_call=self._rest(shown), matches=self.found.count)
        if self.context:
            return (yield from replace(self, context=self.context // 2).answer(make_rows))
        return (yield from self._first_only(maker))

    def _first_only(self, maker: RowMaker) -> Reading:
        """Answer with the beginning of the first match, where its line does not fit."""
        row = yield from maker.occurrence(self.found.hits[0])

        def compose(shown: str) -> str:
            return self._frame([row.cut(shown).render(len(str(row.line)))], 1)

        shown = self.writer.page(row.text, compose)
        return Answer(text=compose(shown), next_call=self._rest(1), matches=self.found.count)

    def _compose(self, rows: list[Row], count: int) -> str:
        closed = _closed(rows, count)
        width = len(str(max((row.line for row in rows[:closed]), default=0)))
        return self._frame([row.render(width) for row in rows[:closed]], _hits_shown(rows, closed))

    def _frame(self, body: list[str], shown: int) -> str:
        fewer = [wording.less_context(self.context)] if self.context < self.request.context_lines else []
        lines = [self._head(shown, len(self.found.hits)), *fewer, "", *body]
        rest = self._rest(shown)
        if rest is not None:
            lines += [wording.SEARCH_TRUNCATED, self.writer.more(rest)]
        return "\n".join(lines)

    def _head(self, shown: int, available: int) -> str:
        found, pattern = self.found, self.writer.selector(self.request.pattern or "")
        if found.before is None:
            head = wording.matches_from(found.label, pattern, self.lines, self.origin.character)
        else:
            some = found.before or shown < available or found.next_character is not None
            part = (found.before + 1, found.before + shown) if shown and some else None
            head = wording.matches_header(found.label, pattern, self.lines, part)
        return f"{head}\n{wording.searched_literally(self.matcher.literal)}" if self.matcher.literal else head

    def _rest(self, shown: int) -> dict[str, object] | None:
        """Return the arguments of the call that shows the matches after the first ``shown`` ones."""
        hits, request = self.found.hits, self.request
        character = hits[shown].character if shown < len(hits) else self.found.next_character
        if character is None:
            return None
        arguments: dict[str, object] = {"pattern": request.pattern}
        if request.context_lines != DEFAULT_CONTEXT_LINES:
            arguments["context_lines"] = request.context_lines
        if self.lines is not None:
            arguments["line_range"] = f"{self.lines[0]}-{self.lines[1]}"
        return {**arguments, "offset": character}


def _closed(rows: list[Row], count: int) -> int:
    """Return how many of the first ``count`` rows to keep, so that no context is left of a match that is not shown."""
    shown = _hits_shown(rows, count)
    while count and rows[count - 1].owner >= shown:
        count -= 1
    return count


def _hits_shown(rows: list[Row], count: int) -> int:
    return sum(row.hits for row in rows[:count])
