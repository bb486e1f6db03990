"""Slices by line: a range of lines with their numbers, whole lines only.

A line that does not fit by itself is shown from its beginning, and the next call goes on inside it by character.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.arguments import LAST_LINE
from coatcheck.core.blocks import to_valid_unicode
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.reading import wording
from coatcheck.core.reading.source import Answer
from coatcheck.core.reading.walk import Walk, orient

if TYPE_CHECKING:
    from coatcheck.core.reading.index import LineIndex
    from coatcheck.core.reading.request import Request
    from coatcheck.core.reading.source import Reading, Source
    from coatcheck.core.reading.writer import Writer

__all__ = ("clip_range", "read_lines")


def read_lines(source: Source, request: Request, writer: Writer) -> Reading:
    """Show a range of lines."""
    index = yield from orient(source)
    first, last = clip_range(request.line_range or (1, LAST_LINE), index)
    wanted = last - first + 1
    walk = Walk(index.nearest(line=first), source.size)
    yield from walk.to_line(first)
    start = walk.place.character
    text = yield from walk.gather(lambda text: text.count("\n") >= wanted or writer.overflows(text))
    pieces = to_valid_unicode(text).split("\n")
    lines = [piece.removesuffix("\r") for piece in pieces[:-1]]
    if walk.ended:
        lines.append(pieces[-1])  # no line end after it: a "\r" at its end is content
    answer = _whole_lines(lines[:wanted], (first, last), index, writer)
    return answer or _beginning(pieces[0], first, start, index, writer)


def clip_range(line_range: tuple[int, int], index: LineIndex) -> tuple[int, int]:
    """Return ``line_range`` without the part after the last line.

    Raises:
        InvalidRequest: all of it does.

    """
    first, last = line_range
    if first > index.lines:
        raise InvalidRequest(wording.start_beyond(first, index.lines))
    return first, min(last, index.lines)


def _whole_lines(lines: list[str], bounds: tuple[int, int], index: LineIndex, writer: Writer) -> Answer | None:
    """Return an answer with as many of ``lines`` as fit, or None if not even one does."""
    first, last = bounds

    def rows(count: int) -> list[str]:
        width = len(str(first + count - 1))
        return [wording.numbered(first + n, line, width=width) for n, line in enumerate(lines[:count])]

    def rest(count: int) -> dict[str, object]:
        return {"line_range": f"{first + count}-{last}"}

    def compose(count: int) -> str:
        head = [wording.lines_header(first, first + count - 1, index.lines), "", *rows(count)]
        if first + count > last:
            return "\n".join(head)
        return "\n".join([*head, wording.RANGE_TRUNCATED, writer.more(rest(count), changed="line_range")])

    count = writer.whole_rows(rows(len(lines)), compose)
    if not count:
        return None
    return Answer(text=compose(count), next_call=None if first + count > last else rest(count))


def _beginning(text: str, line: int, start: int, index: LineIndex, writer: Writer) -> Answer:
    """Return an answer with the beginning of a line that does not fit as a whole."""

    def compose(shown: str) -> str:
        stop = start + len(shown)
        header = wording.long_line_header(line, index.lines, start, stop)
        row = wording.numbered(line, shown, width=len(str(line)))
        return f"{header}\n\n{row}…\n{wording.RANGE_TRUNCATED}\n{writer.more({'offset': stop})}"

    shown = writer.page(text, compose)
    return Answer(text=compose(shown), next_call={"offset": start + len(shown)})
