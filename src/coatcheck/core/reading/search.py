"""Search: which part of the content is scanned, which of its matches are shown, and the rows that show them.

All matches count, from the start of the content or of the line range; an offset only moves the first one shown. Rows
follow the order of the content: matching lines, their context, windows into long lines. Overlapping context is shown
once. ``scan`` finds the matches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from coatcheck.core.blocks import to_valid_unicode
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.reading import scan, wording
from coatcheck.core.reading.index import START, WIDEST, Place, align, byte_of_character, complete, decode, first_start
from coatcheck.core.reading.meanings import other_readings, why_not_found
from coatcheck.core.reading.pattern import Matcher, compile_pattern
from coatcheck.core.reading.scan import LONG_LINE, MARGIN, Excerpts
from coatcheck.core.reading.source import MAX_PART, Answer, clip_range, fetch, orient, resolve_offset, walk_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from coatcheck.core.arguments import Request
    from coatcheck.core.reading.index import LineIndex
    from coatcheck.core.reading.scan import Hit
    from coatcheck.core.reading.slices import Writer
    from coatcheck.core.reading.source import Reading, Source, Steps

__all__ = ("read_matches",)

MAX_WORK = 10_000_000_000
"""RE2 instructions times bytes for one piece of the content, which is searched without checking the time. On hostile
content RE2 does 300 million per second; other content needs far fewer."""

LINE_START_REACH = 65_536
"""How many bytes before an offset to look for the start of its line. A longer line is searched from the offset on."""

AROUND = 100
"""Characters on both sides of an occurrence in a long line."""

OCCURRENCE = 200
"""Characters shown of the occurrence itself."""

REACHES = (MARGIN, 16_384, 65_536)
"""Bytes read before or after a match, in steps until they contain its context. A longer line is shown in part. Without
context, only the first step is read."""

_CUT = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The matches that a scan found in a part of the content, and the part."""

    start: int  # the byte at which the part begins; ``stop``: at which it ends
    stop: int
    lines: tuple[int, int] | None  # the part as line numbers, if a line range was given
    count: int
    capped: bool
    hits: list[Hit]  # to be shown, from the offset on
    next_character: int | None  # where the first hit beyond those kept is found
    origin: Place  # the place of the offset
    before: int | None  # matches before the offset; None if they are too many to be numbered
    excerpts: Excerpts
    crlf: bool  # whether a line of the part ends with "\r\n"
    colours: bool  # whether the part has terminal colour codes
    tags: bool  # whether it has XML or HTML tags


def read_matches(source: Source, request: Request, writer: Writer) -> Reading:
    """Show the lines that match a pattern, with their context."""
    pattern = request.pattern or ""
    matcher = compile_pattern(pattern)
    index = yield from orient(source)
    start, stop, lines = START, source.size, None
    if request.line_range is not None:
        lines = clip_range(request.line_range, index)
        start = (yield from walk_to(index, line=lines[0])).place
        stop = (yield from walk_to(index, line=lines[1] + 1)).place.byte if lines[1] < index.lines else stop
    if matcher.size * min(scan.WINDOW, stop - start.byte) > MAX_WORK:
        raise InvalidRequest(wording.too_complex(stop - start.byte))
    origin = START
    if request.offset:
        origin = (yield from walk_to(index, character=resolve_offset(request.offset, index.characters))).place
    find = partial(_find, index=index, start=start, stop=stop, origin=origin, lines=lines)
    found = yield from find(matcher)
    if not found.count or "|" in pattern or pattern.endswith("]"):  # a copied row or word may have matched too much
        matcher, found = yield from _or_otherwise(matcher, found, pattern, find)
    if not found.count:
        searched = lines[1] - lines[0] + 1 if lines else index.lines
        reasons = () if matcher.literal else why_not_found(pattern, crlf=found.crlf, colours=found.colours)
        text = wording.no_matches(writer.selector(pattern), lines, searched, literal=matcher.literal, reasons=reasons)
        return Answer(text=text, matches=0)
    return (yield from _Report(request, writer, matcher, found, _RowMaker(found, index)).answer())


def _or_otherwise(
    matcher: Matcher, found: _Found, pattern: str, find: Callable[[Matcher], Steps[_Found]]
) -> Steps[tuple[Matcher, _Found]]:
    """Try what else a pattern may mean if it found nothing or too much. Return the first that finds anything.

    If none does, return ``matcher``. Models copy text from the content without escaping it, and from a preview, which
    shows JSON and HTML unescaped.
    """
    markup = found.colours or found.tags
    for other in other_readings(pattern, matcher, found_any=found.count > 0, markup=markup):
        if other.size * min(scan.WINDOW, found.stop - found.start) <= MAX_WORK:
            otherwise = yield from find(other)
            if otherwise.count:
                return other, otherwise
    return matcher, found


def _find(
    matcher: Matcher, *, index: LineIndex, start: Place, stop: int, origin: Place, lines: tuple[int, int] | None
) -> Steps[_Found]:
    excerpts = Excerpts(origin.byte)
    scanner_at = partial(scan.Scanner, matcher, index=index, excerpts=excerpts, to_end=stop == index.size)
    scanner = scanner_at(start)
    yield from _feed(scanner, start.byte, stop)
    count, capped = len(scanner.hits), scanner.next_character is not None
    before: int | None = sum(hit.start < origin.byte for hit in scanner.hits)
    if capped and before == count:
        line, context = yield from _line_start(origin, start.byte)
        scanner = scanner_at(line, context=context, since=origin.byte)
        yield from _feed(scanner, line.byte, stop)
        before = None
    return _Found(
        start=start.byte,
        stop=stop,
        lines=lines,
        count=count,
        capped=capped,
        hits=[hit for hit in scanner.hits if hit.start >= origin.byte],
        next_character=scanner.next_character,
        origin=origin,
        before=before,
        excerpts=excerpts,
        crlf=scanner.has_crlf,
        colours=scanner.has_colours,
        tags=scanner.has_tags,
    )


def _feed(scanner: scan.Scanner, at: int, stop: int) -> Steps[None]:
    while at < stop and scanner.next_character is None:
        data = memoryview((yield from fetch(at, min(stop, at + MAX_PART))))
        for start in range(0, len(data), scan.WINDOW):
            piece = data[start : start + scan.WINDOW]
            at += len(piece)
            scanner.feed(piece, final=at == stop)
            if scanner.next_character is not None:
                return


def _line_start(origin: Place, floor: int) -> Steps[tuple[Place, bytes]]:
    """Return the start of the line of ``origin``, or ``origin`` itself in a very long line, and the bytes before it."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One row of search results. A ``line`` of 0 is the separator between two groups."""

    owner: int
    """The match that the row belongs to, by its number among those to be shown."""

    line: int = 0
    text: str = wording.BETWEEN_GROUPS

    hits: int = 0
    """How many matches it shows; 0 if it is context."""

    start: int | None = None
    """The first character of a window, as an offset in the content; None for a whole line."""

    before: str = ""
    after: str = ""

    item: int | None = None
    """The number of the joined text block that contains the match; None if the content is a single block."""

    def render(self, width: int) -> str:
        """Return the row with its number right-aligned to ``width``."""
        if not self.line:
            return self.text
        text = f"{self.before}{self.text}{self.after}"
        if self.start is None:
            return wording.numbered(self.line, text, width=width, marked=self.hits > 0, item=self.item)
        stop = self.start + len(self.text)
        return wording.numbered_window(self.line, text, width=width, start=self.start, stop=stop, item=self.item)


@dataclass(frozen=True, slots=True)
class _RowMaker:
    """Makes rows for the matches found; ``index`` knows the items that they are in."""

    found: _Found
    index: LineIndex

    def rows(self, context: int, writer: Writer) -> Steps[list[_Row]]:
        """Return the rows of as many matches as may fit, and at least those of the first one."""
        hits, rows = self.found.hits, list[_Row]()
        number = last = spent = 0
        while number < len(hits) and spent <= writer.budget:
            hit, made = hits[number], list[_Row]()
            if hit.line != last:
                made = yield from self._before(hit, number, last, context)
            row, behind = yield from self._shown(hit, number)
            covered = 1
            while number + covered < len(hits):  # a window may show the next matches, too
                following = hits[number + covered]
                if following.line != hit.line or following.stop > behind:
                    break
                covered += 1
            made.append(replace(row, hits=covered, item=self.index.item_at(hit.start)))
            number, last = number + covered, hit.line
            next_line = hits[number].line if number < len(hits) else None
            if next_line != hit.line:
                count = context if next_line is None else min(context, next_line - hit.line - 1)
                _, lines = yield from self._ahead(hit.stop, count)
                made += [_Row(owner=number - 1, line=hit.line + 1 + n, text=text) for n, text in enumerate(lines)]
                last = made[-1].line
            spent += sum(writer.counter.count(row.text) + 1 for row in made)
            rows += made
        return rows

    def occurrence(self, hit: Hit) -> Steps[_Row]:
        """Return a window at the beginning of a match, without what is before it."""
        row, _ = yield from self._window(hit, 0, around=0)
        return replace(row, before=_CUT, item=self.index.item_at(hit.start))

    def _before(self, hit: Hit, number: int, last: int, context: int) -> Steps[list[_Row]]:
        """Return the context before a match, back to line ``last``, which is already shown."""
        _, lines = yield from self._behind(hit.start, min(context, hit.line - last - 1))
        first = hit.line - len(lines)
        rows = [_Row(owner=number, line=first + n, text=text) for n, text in enumerate(lines)]
        if last and first > last + 1:
            rows.insert(0, _Row(owner=number))
        return rows

    def _shown(self, hit: Hit, number: int) -> Steps[tuple[_Row, int]]:
        """Return the row of a match, and the byte up to which it shows the line."""
        if hit.long:
            return (yield from self._window(hit, number))
        prefix, _ = yield from self._behind(hit.start, 0)
        suffix, _ = yield from self._ahead(hit.stop, 0)
        match = yield from self.found.excerpts.get(hit.start, hit.stop)
        text = to_valid_unicode(decode(prefix + match + suffix))
        return _Row(owner=number, line=hit.line, text=text, hits=1), hit.stop

    def _window(self, hit: Hit, number: int, *, around: int = AROUND) -> Steps[tuple[_Row, int]]:
        """Return a window with ``around`` characters before a match, and the byte up to which it shows the line."""
        prefix, _ = yield from self._behind(hit.start, 0)
        suffix, _ = yield from self._ahead(hit.stop, 0)
        most = OCCURRENCE * WIDEST
        match = yield from self.found.excerpts.get(hit.start, min(hit.stop, hit.start + most))
        left, middle = decode(prefix), decode(match)
        if len(middle) > OCCURRENCE or hit.stop - hit.start > most:
            middle, right, behind = middle[:OCCURRENCE], "", hit.start
            after = _CUT
        else:
            right = decode(suffix[: align(suffix, AROUND * WIDEST)])[:AROUND]
            behind = hit.stop + byte_of_character(suffix, len(right))
            after = _CUT if behind < hit.stop + len(suffix) else ""
        at = hit.character if hit.long else hit.character + len(left)
        before = _CUT if len(left) > around else ""
        left = left[max(0, len(left) - around) :]
        row = _Row(
            owner=number,
            line=hit.line,
            text=to_valid_unicode(left + middle + right),
            hits=1,
            start=at - len(left),
            before=before,
            after=after,
        )
        return row, behind

    def _behind(self, at: int, count: int) -> Steps[tuple[bytes, list[str]]]:
        """Return what is before ``at`` in its line, and the ``count`` lines before that one."""
        for reach in REACHES if count else REACHES[:1]:
            low = max(self.found.start, at - reach)
            data = (yield from self.found.excerpts.get(low, at)) if low < at else b""
            if low == self.found.start or data.count(b"\n") > count:
                break
        data = data[first_start(data) :] if low > self.found.start else data
        pieces = data.split(b"\n")
        earlier = pieces[:-1][-count:] if count else []
        lines = [_shortened(piece.removesuffix(b"\r")) for piece in earlier]
        if len(earlier) == len(pieces) - 1 and earlier and low > self.found.start:
            lines[0] = _CUT + to_valid_unicode(decode(earlier[0]).removesuffix("\r"))[-OCCURRENCE:]
        return pieces[-1], lines

    def _ahead(self, at: int, count: int) -> Steps[tuple[bytes, list[str]]]:
        """Return the rest of the line after ``at``, and the ``count`` lines after that line."""
        for reach in REACHES if count else REACHES[:1]:
            high = min(self.found.stop, at + reach)
            data = (yield from self.found.excerpts.get(at, high)) if at < high else b""
            if high == self.found.stop or data.count(b"\n") > count:
                break
        cut = high < self.found.stop
        data = data[: complete(data)] if cut else data
        pieces = data.split(b"\n")
        own = pieces[0].removesuffix(b"\r") if len(pieces) > 1 else pieces[0]
        *later, last = pieces[1:] or [b""]
        lines = [_shortened(piece.removesuffix(b"\r")) for piece in later[:count]]
        if last and len(lines) < count:  # no line end after it
            text = _shortened(last)
            lines.append(text + _CUT if cut and not text.endswith(_CUT) else text)
        return own, lines


def _shortened(line: bytes) -> str:
    text = to_valid_unicode(decode(line))
    return text if len(text) <= LONG_LINE else text[:OCCURRENCE] + _CUT


@dataclass(frozen=True, slots=True)
class _Report:
    """Writes the answer."""

    request: Request
    writer: Writer
    matcher: Matcher
    found: _Found
    maker: _RowMaker

    def answer(self) -> Reading:
        """Show the matches with their context, or with less of it if not even the first match fits."""
        if not self.found.hits:
            text = f"{self._head(0)}\n{wording.none_behind(self.found.origin.character)}"
            return Answer(text=text, matches=self.found.count)
        context = self.request.context_lines
        while True:
            rows = yield from self.maker.rows(context, self.writer)
            width = len(str(rows[-1].line))
            least = 1 + next(number for number, row in enumerate(rows) if row.hits)
            texts = [row.render(width) for row in rows]
            answer = self.writer.whole_rows(texts, partial(self._compose, rows, context), least=least)
            if answer is not None:
                return answer
            if not context:
                return (yield from self._first_only())
            context //= 2

    def _first_only(self) -> Reading:
        """Answer with the beginning of the first match, because its line does not fit."""
        row = yield from self.maker.occurrence(self.found.hits[0])

        def compose(shown: str) -> Answer:
            cut = row if shown == row.text else replace(row, text=shown, after=_CUT)
            return self._frame([cut.render(len(str(row.line)))], 1, context=0)

        return self.writer.page(row.text, compose)

    def _compose(self, rows: list[_Row], context: int, count: int) -> Answer:
        """Return the answer with the first ``count`` rows, without the context of a match that is not shown."""
        shown = sum(row.hits for row in rows[:count])
        while count and rows[count - 1].owner >= shown:
            count -= 1
        width = len(str(max((row.line for row in rows[:count]), default=0)))
        return self._frame([row.render(width) for row in rows[:count]], shown, context=context)

    def _frame(self, body: list[str], shown: int, *, context: int) -> Answer:
        """Return the answer that shows ``shown`` matches in ``body``, each with at most ``context`` lines around it."""
        fewer = [wording.less_context(context)] if context < self.request.context_lines else []
        lines = [self._head(shown), *fewer, "", *body]
        rest = self._rest(shown)
        if rest is not None:
            lines += [wording.SEARCH_TRUNCATED, self.writer.more(rest)]
        return Answer(text="\n".join(lines), next_call=rest, matches=self.found.count)

    def _head(self, shown: int) -> str:
        found, pattern = self.found, self.writer.selector(self.request.pattern or "")
        count = f"{found.count}+" if found.capped else f"{found.count}"
        part: tuple[int, int] | int | None = None
        if found.before is None:
            part = found.origin.character
        elif shown and (found.before or shown < len(found.hits) or found.next_character is not None):
            part = found.before + 1, found.before + shown
        head = wording.matches_header(count, pattern, lines=found.lines, shown=part)
        return f"{head}\n{self.matcher.note}" if self.matcher.note else head

    def _rest(self, shown: int) -> dict[str, object] | None:
        """Return the arguments of the call that shows the matches after the first ``shown`` ones."""
        hits, request, lines = self.found.hits, self.request, self.found.lines
        character = hits[shown].character if shown < len(hits) else self.found.next_character
        if character is None:
            return None
        arguments = request.given()
        if lines is not None:
            arguments["line_range"] = f"{lines[0]}-{lines[1]}"
        return {**arguments, "offset": character}
