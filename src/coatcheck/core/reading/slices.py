"""Slice the content by character and by line, and make any answer fit.

The body of a character slice is exactly what is between the first and the last line end of the answer, so that joined
pages give the original. A line slice has whole lines with their numbers. If a line does not fit by itself, its
beginning is shown, and the next call continues inside it by character.

A tokenizer's counts do not add up exactly, so ``Writer`` counts each answer as a whole and cuts it until it fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from coatcheck.core.arguments import LAST_LINE
from coatcheck.core.blocks import to_valid_unicode
from coatcheck.core.reading import wording
from coatcheck.core.reading.index import START
from coatcheck.core.reading.source import Answer, Walk, clip_range, orient, resolve_offset, walk_to

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from coatcheck.core.arguments import Request
    from coatcheck.core.reading.index import LineIndex
    from coatcheck.core.reading.source import Reading, Source
    from coatcheck.core.tokens import TokenCounter

__all__ = ("Writer", "read_characters", "read_lines")

_SLACK = 4
"""Tokens kept free at first: about what joining text at two places adds to the tokens of its pieces."""

_CALL_SHARE = 4
"""A next call that would take more than a quarter of the budget is described instead of written out."""

_SELECTOR_SHARE = 8
"""A pattern or query in a header takes at most an eighth of the budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Writes the answers to one request, within its budget."""

    counter: TokenCounter
    budget: int
    tool_name: str
    reference: str

    def overflows(self, text: str) -> bool:
        """Return whether ``text`` is more than any answer can hold: a cheap early check."""
        return self.counter.exceeds(to_valid_unicode(text), self.budget)

    def selector(self, text: str) -> str:
        """Shorten a pattern or query for a header."""
        shown = wording.one_line(to_valid_unicode(text))
        while self.counter.count(shown) > self.budget // _SELECTOR_SHARE:
            shown = wording.one_line(shown[: len(shown) // 2] + "…")
        return shown

    def more(self, arguments: Mapping[str, object], *, changed: str = "offset") -> str:
        """Return the line with the literal next call, or one that describes it if it would be too long."""
        line = to_valid_unicode(wording.more(self.tool_name, self.reference, arguments))
        if self.counter.count(line) * _CALL_SHARE <= self.budget:
            return line
        return wording.more_in_short(changed, arguments[changed])

    def page(self, text: str, compose: Callable[[str], Answer]) -> Answer:
        """Return what ``compose`` makes of as much of the beginning of ``text`` as fits: at least one character."""
        room = max(1, self.budget - self.counter.count(compose("").text) - _SLACK)
        shown = self.counter.head(text, room) or text[:1]
        while True:
            answer = compose(shown)
            if len(shown) <= 1 or (cost := self.counter.count(answer.text)) <= self.budget:
                return answer
            shown = shown[: max(1, min(len(shown) - 1, len(shown) * self.budget // cost))]

    def whole_rows(self, rows: Sequence[str], compose: Callable[[int], Answer], *, least: int = 1) -> Answer | None:
        """Return what ``compose`` makes of as many of ``rows`` as fit; None if fewer than ``least`` do."""
        joined = "\n".join(rows)
        room = max(1, self.budget - self.counter.count(compose(0).text))
        head = self.counter.head(joined, room)
        count = len(rows) if len(head) == len(joined) else head.count("\n")
        while count >= least:
            answer = compose(count)
            cost = self.counter.count(answer.text)
            if cost <= self.budget:
                return answer
            count = min(count - 1, count * self.budget // cost)
        return None


def read_characters(source: Source, request: Request, writer: Writer) -> Reading:
    """Show the content from an offset on."""
    total, start, place = source.characters, request.offset or 0, START
    if start or total is None:
        index = yield from orient(source)
        total = index.characters
        start = resolve_offset(start, total)
        place = index.nearest(character=start)
    walk = Walk(place, source.size - place.byte)
    yield from walk.to_character(start)
    text = walk.text
    while walk.left and not writer.overflows(text):
        yield from walk.read()
        text += walk.text
    text = to_valid_unicode(text)

    def compose(shown: str) -> Answer:
        stop = start + len(shown)
        rest = {"offset": stop} if walk.left or len(shown) < len(text) else None
        footer = wording.END_OF_CONTENT if rest is None else writer.more(rest)
        return Answer(text=f"{wording.characters_header(start, stop, total)}\n{shown}\n{footer}", next_call=rest)

    return writer.page(text, compose)


def read_lines(source: Source, request: Request, writer: Writer) -> Reading:
    """Show a range of lines."""
    index = yield from orient(source)
    first, last = clip_range(request.line_range or (1, LAST_LINE), index)
    walk = yield from walk_to(index, line=first)
    start, text = walk.place.character, walk.text
    while walk.left and text.count("\n") <= last - first and not writer.overflows(text):
        yield from walk.read()
        text += walk.text
    pieces = to_valid_unicode(text).split("\n")
    lines = [piece.removesuffix("\r") for piece in pieces[:-1]]
    if not walk.left:
        lines.append(pieces[-1])  # no line end after it: a "\r" at its end is content
    lines = lines[: last - first + 1]
    width = len(str(first + len(lines) - 1))
    rows = [wording.numbered(first + n, line, width=width) for n, line in enumerate(lines)]
    answer = writer.whole_rows(rows, partial(_compose_lines, lines, (first, last), index.lines, writer))
    return answer or _beginning(pieces[0], first, start, index, writer)


def _compose_lines(lines: list[str], bounds: tuple[int, int], total: int, writer: Writer, count: int) -> Answer:
    """Return an answer with ``count`` of ``lines``; ``bounds`` are the first and the last line number wanted."""
    first, last = bounds
    width = len(str(first + count - 1))
    rows = [wording.numbered(first + n, line, width=width) for n, line in enumerate(lines[:count])]
    body = "\n".join([wording.lines_header(first, first + count - 1, total), "", *rows])
    if first + count > last:
        return Answer(text=body)
    rest = {"line_range": f"{first + count}-{last}"}
    more = writer.more(rest, changed="line_range")
    return Answer(text=f"{body}\n{wording.RANGE_TRUNCATED}\n{more}", next_call=rest)


def _beginning(text: str, line: int, start: int, index: LineIndex, writer: Writer) -> Answer:
    """Return an answer with the beginning of a line that does not fit as a whole."""

    def compose(shown: str) -> Answer:
        stop = start + len(shown)
        header = wording.long_line_header(line, index.lines, start, stop)
        row = wording.numbered(line, shown, width=len(str(line)))
        more = writer.more({"offset": stop})
        text = f"{header}\n\n{row}…\n{wording.RANGE_TRUNCATED}\n{more}"
        return Answer(text=text, next_call={"offset": stop})

    return writer.page(text, compose)
