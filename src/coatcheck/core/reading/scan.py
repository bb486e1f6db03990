r"""Find matches in content that is fed in pieces: line by line, in long lines occurrence by occurrence.

    pieces ─▶ buffer ─▶ whole lines: one hit for each line that matches
                    └─▶ a long line: one hit for each occurrence, in short looks that overlap

The buffer always starts with a byte of context, so that ``^`` and ``\b`` see what really precedes the piece. Costs are
linear: a look, which is one search in a long line, covers at most ``MAX_LOOK`` bytes, and a hit is found in the
shortest look that shows it. ``Excerpts`` keeps the bytes around each hit, so that showing it costs no second read.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from coatcheck.core.reading.index import CHUNK_CHARACTERS, WIDEST, Place, align, decode
from coatcheck.core.reading.source import fetch

if TYPE_CHECKING:
    from coatcheck.core.reading.index import LineIndex
    from coatcheck.core.reading.pattern import Matcher
    from coatcheck.core.reading.source import Steps

__all__ = ("LONG_LINE", "MARGIN", "MAX_HITS", "Excerpts", "Hit", "Scanner")

MAX_HITS = 10_000
"""Counting stops here: a model that gets this many narrows its pattern anyway."""

LONG_LINE = 1_000
"""Characters. The longest line that counts as one match. In a longer line, each occurrence is a match of its own, shown
as a window."""

WINDOW = 1_048_576
"""Bytes searched in one piece, which fits a processor's cache. A longer line is searched before its end has been
read."""

LOOK_FIRST = 4_096
"""Bytes of the first look for an occurrence in a long line. Short, because a pattern such as ``a.*b|a`` reads to the
end of its look for each match: 10,000 of them cost 40 MB of reading, not 40 GB."""

MAX_LOOK = 131_072
"""The most bytes of one look. Looks overlap by half, so a match of up to 64 KiB is found anywhere."""

MARGIN = 4_096
"""Bytes kept on both sides of a match: nearly always enough for five lines of context."""

MAX_KEPT = 8_388_608
"""The most bytes kept in total. Anything beyond is read again if it is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One match: a line, or an occurrence in a long line. Positions are byte offsets in the content."""

    line: int
    """Line number, from 1."""

    start: int
    stop: int

    character: int
    """Where a search must start to find it again: the line's first character, or the occurrence's."""

    long: bool
    """Whether it is an occurrence in a long line."""


@dataclass(slots=True)
class Excerpts:
    """Pieces of the content, by their position."""

    wanted_from: int
    """Nothing that ends before this byte is kept: it will not be shown."""

    _starts: list[int] = field(default_factory=list)
    _pieces: list[bytes] = field(default_factory=list)
    _kept: int = 0

    def add(self, start: int, data: bytes) -> None:
        """Keep a piece that starts at or after the start of the last one."""
        if self._kept > MAX_KEPT or start + len(data) <= self.wanted_from:
            return
        if self._starts and start <= self._starts[-1] + len(self._pieces[-1]):
            known = self._starts[-1] + len(self._pieces[-1]) - start
            if known >= len(data):
                return
            start, data = start + known, data[known:]
        self._starts.append(start)
        self._pieces.append(data)
        self._kept += len(data)

    def get(self, start: int, stop: int) -> Steps[bytes]:
        """Return the bytes from ``start`` to ``stop``, from what is kept or by reading again."""
        found = []
        at = start
        for number in range(max(0, bisect_right(self._starts, start) - 1), len(self._starts)):
            first, piece = self._starts[number], self._pieces[number]
            if at >= stop or first > at:
                break
            found.append(piece[at - first : stop - first])
            at += len(found[-1])
        return b"".join(found) if at >= stop else (yield from fetch(start, stop))


class Scanner:
    """Searches the pieces that it is fed, and keeps the hits."""

    def __init__(
        self,
        matcher: Matcher,
        start: Place,
        *,
        index: LineIndex,
        excerpts: Excerpts,
        context: bytes = b"\n",
        since: int = 0,
        to_end: bool,
    ) -> None:
        """Start at ``start``, with the bytes before it as ``context``: a line end, or the beginning of its line.

        Hits before byte ``since`` do not count. ``to_end`` says that the last piece ends with the content.
        """
        self.hits: list[Hit] = []
        self.next_character: int | None = None  # set once there are more hits than are kept, which ends the search
        self.has_crlf: bool = False  # whether the input so far has "\r\n" as a line end
        self.has_colours: bool = False  # whether it has terminal colour codes, up to the first hit
        self.has_tags: bool = False  # whether it has a closing XML or HTML tag, up to there
        self._matcher = matcher
        self._index = index
        self._excerpts = excerpts
        self._since = since
        self._to_end = to_end
        self._buffer = context if start.byte else b""
        self._sight = self._buffer  # the buffer as the matcher sees it
        self._base = start.byte - len(self._buffer)  # where the buffer begins in the content
        self._at = len(self._buffer)  # searched up to here
        self._known = start  # the place from which lines and characters are counted
        self._inside = start.byte > 0 and not context.endswith(b"\n")  # within a line that counts as long

    def feed(self, data: bytes | memoryview, *, final: bool) -> None:
        """Search the next piece of the content, ideally one of at most ``WINDOW`` bytes."""
        self._buffer += data
        # RE2 takes only "\n" as a line end. The replacement has the same length, so positions stay valid. Searching for
        # the single byte first costs a twentieth of searching for both.
        has_crlf = b"\r" in self._buffer and b"\r\n" in self._buffer
        self.has_crlf |= has_crlf
        if not self.hits:  # matters only if nothing is found
            self.has_colours = self.has_colours or (b"\x1b" in self._buffer and b"\x1b[" in self._buffer)
            self.has_tags = self.has_tags or (b"<" in self._buffer and b"</" in self._buffer)
        self._sight = self._buffer.replace(b"\r\n", b"\n\n") if has_crlf else self._buffer
        stop = len(self._buffer) if final else self._buffer.rfind(b"\n", self._at) + 1
        last = final and self._to_end
        if last:  # end before the last line end, so that "\z" matches there and no line follows
            stop -= self._buffer.endswith(b"\n") + self._buffer.endswith(b"\r\n")
            self._sight = self._sight[:stop]
        if self._inside:
            self._leave_line(stop, final=final)
        if not self._inside:
            self._search_lines(stop, last=last)
            if not final and len(self._buffer) - self._at > WINDOW:
                self._inside = True
                self._leave_line(stop, final=final)
        if not final:
            self._forget()

    def _leave_line(self, stop: int, *, final: bool) -> None:
        """Search the rest of a line that began in an earlier piece, as far as it has been read."""
        end = self._sight.find(b"\n", self._at)
        unfinished = end < 0 and not final
        if end < 0:
            end = len(self._sight) if unfinished else stop
        self._at = self._search_occurrences(self._at, end, unfinished=unfinished)
        if not unfinished:
            self._inside = False
            self._at = self._next_line(end)

    def _search_lines(self, stop: int, *, last: bool) -> None:
        """Search whole lines up to ``stop``; with ``last``, the end of the content, whose last line may be empty."""
        while self.next_character is None and (self._at < stop or (last and self._at == stop)):
            found = self._matcher.find(self._sight, self._at, stop)
            if found is None or (found[0] >= stop and not last):
                break
            if found[0] > 0 and self._buffer[found[0] - 1 : found[0] + 1] == b"\r\n":  # not really an empty line
                self._at = found[0] + 1
                continue
            self._line_found(*found, stop=stop)
        self._at = max(self._at, stop)

    def _line_found(self, start: int, end: int, *, stop: int) -> None:
        line_start = self._sight.rfind(b"\n", self._at, start) + 1 or self._at
        line_end = self._sight.find(b"\n", start, stop)
        line_end = stop if line_end < 0 else line_end
        end, size = min(end, line_end), line_end - line_start
        is_long = size > LONG_LINE * WIDEST
        if not is_long and size > LONG_LINE:
            is_long = len(decode(self._buffer[line_start:line_end])) > LONG_LINE
        if is_long:
            before = len(self.hits)
            self._search_occurrences(start, line_end, unfinished=False)
            if len(self.hits) == before:  # the match is longer than any look
                self._record(start, end, start)
        else:
            self._record(start, end, line_start, long=False)
        self._at = self._next_line(line_end)

    def _search_occurrences(self, at: int, end: int, *, unfinished: bool) -> int:
        """Search a long line from ``at`` to ``end``; return the first byte not searched."""
        look = LOOK_FIRST
        while self.next_character is None and (end - at > MAX_LOOK if unfinished else at <= end):
            edge = min(end, at + look)
            cut = unfinished or edge < end
            if cut:  # never inside a character: a match that continues would end before it, and seem complete
                edge = align(self._sight, edge)
            found = self._matcher.find(self._sight, at, edge)
            if found is None or (cut and found[1] >= edge and (look < MAX_LOOK or found[0] > at)):
                if found is None and not cut:
                    return end
                at, look = self._look_on(at, found, look)
            else:
                self._record(*found, found[0])
                at = found[1] if found[1] > found[0] else self._next_character(found[0])
                look = LOOK_FIRST
        return at

    @staticmethod
    def _look_on(at: int, found: tuple[int, int] | None, look: int) -> tuple[int, int]:
        """Return the next position and look size, after a miss or a match that touches the edge of the look."""
        if found is not None and found[0] > at:
            return found[0], LOOK_FIRST
        if look < MAX_LOOK:
            return at, min(MAX_LOOK, 2 * look)
        return at + MAX_LOOK // 2, MAX_LOOK

    def _next_line(self, end: int) -> int:
        """Return where the line after the one that ends at ``end`` begins."""
        at = self._buffer.find(b"\n", end)
        return len(self._buffer) + 1 if at < 0 else at + 1

    def _next_character(self, at: int) -> int:
        return next((n for n in range(at + 1, at + WIDEST) if align(self._buffer, n) == n), at + WIDEST)

    def _record(self, start: int, end: int, place: int, *, long: bool = True) -> None:
        """Keep a hit, which a search from ``place`` finds again, and the bytes around it."""
        if self._base + start < self._since:
            return
        # A line starts after a line end, even if a broken byte follows; an occurrence may start inside a character.
        found = self._locate(align(self._buffer, place) if long else place)
        if len(self.hits) == MAX_HITS:
            self.next_character = found.character
            return
        begin = max(0, min(start, place) - MARGIN)
        self._excerpts.add(self._base + begin, self._buffer[begin : min(end, start + MARGIN) + MARGIN])
        start, stop = self._base + start, self._base + end
        self.hits.append(Hit(line=found.line + 1, start=start, stop=stop, character=found.character, long=long))

    def _locate(self, at: int) -> Place:
        """Return the place of byte ``at`` of the buffer. Callers ask in ascending order."""
        byte, known = self._base + at, self._known
        if byte - known.byte > CHUNK_CHARACTERS:
            known = max(known, self._index.nearest(byte=byte))  # compared by byte
        if byte > known.byte:
            between = self._buffer[known.byte - self._base : at]
            known = Place(byte, known.line + between.count(b"\n"), known.character + len(decode(between)))
        self._known = known
        return known

    def _forget(self) -> None:
        """Drop what has been searched, except a margin of context."""
        cut = align(self._buffer, max(0, min(self._at, len(self._buffer)) - MARGIN))
        self._locate(cut)
        self._buffer = self._buffer[cut:]
        self._base += cut
        self._at -= cut
