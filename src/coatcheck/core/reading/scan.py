r"""Finding matches in content that is fed in pieces: line by line, in long lines occurrence by occurrence.

    pieces ─▶ buffer ─▶ whole lines: one hit for each line that matches
                    └─▶ a long line: one hit for each occurrence, in short looks that overlap

The buffer always starts with a byte of context, so that ``^`` and ``\b`` see what is really before the piece. Costs
are linear: a look is at most ``LOOK_MOST`` bytes, and a hit is found in the shortest look that shows it. No I/O, and
no words: hits only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coatcheck.core.reading.excerpts import MARGIN
from coatcheck.core.reading.index import CHUNK_CHARACTERS, align, decode

if TYPE_CHECKING:
    from coatcheck.core.reading.excerpts import Excerpts
    from coatcheck.core.reading.index import LineIndex, Place
    from coatcheck.core.reading.pattern import Matcher

__all__ = ("MAX_HITS", "Hit", "Scanner")

MAX_HITS = 10_000
"""Counting stops here: a model that gets this many narrows its pattern anyway."""

LONG_LINE = 1_000
"""Characters. In a longer line each occurrence is a match of its own, shown as a window."""

WINDOW = 1_048_576
"""Bytes searched in one piece, which a processor's cache holds. A line that is longer is searched before its end is at
hand."""

LOOK_FIRST = 4_096
"""Bytes ahead that an occurrence in a long line is first looked for. Short, because a pattern such as ``a.*b|a`` reads
to the end of its look for each match: 10,000 of them cost 40 MB of reading, not 40 GB."""

LOOK_MOST = 131_072
"""Most bytes searched at once. Windows overlap by half, so a match of up to 64 KiB is found anywhere."""

_WIDEST = 4  # bytes of a character


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One match: a line, or an occurrence in a long line. Positions are bytes of the content."""

    line: int
    """Number of the line, from 1."""

    start: int
    stop: int

    character: int
    """Where a search goes on from to find it again: the line's first character, or the occurrence's."""

    long: bool
    """Whether it is an occurrence in a long line."""


class Scanner:
    """Searches what it is fed, and keeps the hits."""

    def __init__(
        self,
        matcher: Matcher,
        start: Place,
        *,
        index: LineIndex,
        excerpts: Excerpts,
        context: bytes = b"\n",
        since: int = 0,
        to_end: bool = True,
    ) -> None:
        """Start at ``start``, with the bytes before it as ``context``: a line end, or the beginning of its line.

        Hits before byte ``since`` do not count. ``to_end`` says that the last piece ends where the content does.
        """
        self.hits: list[Hit] = []
        self.next_character: int | None = None  # where to go on, once there are more hits than are kept
        self._matcher = matcher
        self._index = index
        self._excerpts = excerpts
        self._since = since
        self._to_end = to_end
        context = context if start.byte else b""
        self._buffer = context
        self._sight = context  # the buffer as the matcher sees it
        self._base = start.byte - len(context)  # of the buffer, in the content
        self._at = len(context)  # searched up to here
        self._line = start.line + 1  # number of the line at _counted
        self._counted = len(context)
        self._known = (len(context), start.character)  # a place in the buffer whose character is known
        self._inside = not context.endswith(b"\n") and start.byte > 0  # within a line that counts as long

    @property
    def full(self) -> bool:
        """Whether counting has stopped."""
        return self.next_character is not None

    def feed(self, data: bytes | memoryview, *, final: bool) -> None:
        """Search the next piece of the content, best one of at most ``WINDOW`` bytes."""
        self._buffer += data
        # RE2 knows "\n" alone as the end of a line. Same length, so that positions stay. Looking for the single byte
        # first costs a twentieth of looking for both.
        has_crlf = b"\r" in self._buffer and b"\r\n" in self._buffer
        self._sight = self._buffer.replace(b"\r\n", b"\n\n") if has_crlf else self._buffer
        stop = len(self._buffer) if final else self._buffer.rfind(b"\n", self._at) + 1
        last = final and self._to_end
        if last:
            stop = self._end_of_last_line()
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

    def _end_of_last_line(self) -> int:
        r"""Return where the content's last line ends, so that ``\z`` matches there and no line follows it."""
        size = len(self._buffer)
        if not self._buffer.endswith(b"\n"):
            return size
        return size - (2 if self._buffer.endswith(b"\r\n") else 1)

    def _leave_line(self, stop: int, *, final: bool) -> None:
        """Search the rest of a line that began in an earlier piece, as far as it is at hand."""
        end = self._sight.find(b"\n", self._at)
        unfinished = end < 0 and not final
        if end < 0:
            end = len(self._sight) if unfinished else stop
        self._at = self._search_occurrences(self._at, end, unfinished=unfinished)
        if not unfinished:
            self._inside = False
            self._at = self._next_line(end)

    def _search_lines(self, stop: int, *, last: bool) -> None:
        """Search whole lines up to ``stop``; the last line of the content may be empty and ends there."""
        while not self.full and (self._at < stop or (last and self._at == stop)):
            found = self._matcher.find(self._sight, self._at, stop)
            if found is None or (found[0] >= stop and not last):
                break
            if self._between_crlf(found[0]):
                self._at = found[0] + 1
                continue
            self._line_found(*found, stop=stop)
        self._at = max(self._at, stop)

    def _line_found(self, start: int, end: int, *, stop: int) -> None:
        line_start = self._sight.rfind(b"\n", self._at, start) + 1 or self._at
        line_end = self._sight.find(b"\n", start, stop)
        line_end = stop if line_end < 0 else line_end
        end = min(end, line_end)
        if self._is_long(line_start, line_end):
            before = len(self.hits)
            self._search_occurrences(start, line_end, unfinished=False)
            if len(self.hits) == before:  # longer than any look
                self._record(start, end, start)
        else:
            self._record(start, end, line_start, long=False)
        self._at = self._next_line(line_end)

    def _search_occurrences(self, at: int, end: int, *, unfinished: bool) -> int:
        """Search a long line from ``at`` to ``end`` and return how far that got."""
        look = LOOK_FIRST
        while not self.full and (end - at > LOOK_MOST if unfinished else at <= end):
            edge = min(end, at + look)
            cut = unfinished or edge < end
            found = self._matcher.find(self._sight, at, edge)
            if found is None or (cut and found[1] >= edge and (look < LOOK_MOST or found[0] > at)):
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
        """Return where, and how far ahead, to look after nothing, or a match that touches the edge, was found."""
        if found is not None and found[0] > at:
            return found[0], LOOK_FIRST
        if look < LOOK_MOST:
            return at, min(LOOK_MOST, 2 * look)
        return at + LOOK_MOST // 2, LOOK_MOST

    def _between_crlf(self, at: int) -> bool:
        r"""Return whether ``at`` is the ``\n`` of a ``\r\n``, which looks like an empty line to the matcher."""
        return 0 < at < len(self._buffer) and self._buffer[at - 1 : at + 1] == b"\r\n"

    def _next_line(self, end: int) -> int:
        """Return where the line after the one that ends at ``end`` begins."""
        at = self._buffer.find(b"\n", end)
        return len(self._buffer) + 1 if at < 0 else at + 1

    def _next_character(self, at: int) -> int:
        return next((n for n in range(at + 1, at + _WIDEST) if align(self._buffer, n) == n), at + _WIDEST)

    def _is_long(self, start: int, end: int) -> bool:
        if end - start <= LONG_LINE:
            return False
        return end - start > LONG_LINE * _WIDEST or len(decode(self._buffer[start:end])) > LONG_LINE

    def _record(self, start: int, end: int, place: int, *, long: bool = True) -> None:
        """Keep a hit that is found again from ``place`` on, and the bytes around it."""
        if self._base + start < self._since:
            return
        self._count_lines(place)
        # A line starts after a line end, even with a broken byte; an occurrence may not.
        character = self._character(align(self._buffer, place) if long else place)
        if len(self.hits) == MAX_HITS:
            self.next_character = character
            return
        hit = Hit(line=self._line, start=self._base + start, stop=self._base + end, character=character, long=long)
        self.hits.append(hit)
        begin = max(0, min(start, place) - MARGIN)
        self._excerpts.add(self._base + begin, self._buffer[begin : min(end, start + MARGIN) + MARGIN])

    def _count_lines(self, at: int) -> None:
        """Let ``_line`` be the number of the line at ``at``, unless it is known further on already."""
        if at - self._counted > CHUNK_CHARACTERS:  # the index knows a nearer place
            nearest = self._index.nearest(byte=self._base + at)
            if nearest.byte - self._base > self._counted:
                self._counted, self._line = nearest.byte - self._base, nearest.line + 1
        self._line += self._buffer.count(b"\n", self._counted, at)
        self._counted = max(self._counted, at)

    def _character(self, at: int) -> int:
        """Return the number of characters before ``at``. Asked in rising order."""
        known, character = self._known
        if at - known > CHUNK_CHARACTERS:
            nearest = self._index.nearest(byte=self._base + at)
            if nearest.byte - self._base > known:
                known, character = nearest.byte - self._base, nearest.character
        if at > known:
            known, character = at, character + len(decode(self._buffer[known:at]))
        self._known = known, character
        return character

    def _forget(self) -> None:
        """Let go of what is searched, but for a margin of context."""
        cut = align(self._buffer, max(0, min(self._at, len(self._buffer)) - MARGIN))
        self._character(cut)
        self._count_lines(cut)
        self._counted = max(0, self._counted - cut)
        self._known = self._known[0] - cut, self._known[1]
        self._buffer = self._buffer[cut:]
        self._base += cut
        self._at -= cut
