"""Output of ``grep -n`` and similar tools: matches by file, with the number of matches in each."""

from __future__ import annotations

import re
from itertools import chain, product
from typing import TYPE_CHECKING

from coatcheck.core.preview.notation import count_of
from coatcheck.core.preview.source import gap_of_lines, lines_of, plain, shortened

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("are_matches", "preview_matches")

_TIME = r"(?<=\d\d:)\d\d:\d\d(?!\d)"
_DRIVE = r"(?:[A-Za-z]:[\\/])?"
_PLACE = rf":(?!{_TIME})(\d+)|\((\d+(?:,\d+)?)\)(?=: ?(?:fatal )?(?:error|warning) )"
"""``:12``, or ``(12,5)`` before a message, as the compilers of TypeScript and .NET write it."""

_MATCH = re.compile(rf"({_DRIVE}[^\s:](?=[^:\n]*[./\\])[^:\n]*|[A-Za-z][\w-]*)(?:{_PLACE}):(.*)", re.DOTALL)
"""A match. Its path has a dot or a slash, which a lookahead finds, so that a long line without a colon takes linear
time; or it is a name such as ``Makefile``. The minutes of a time are not a line number."""

_AROUND = re.compile(rf"--|{_DRIVE}(?:[^\s:./\\]*[./\\][^\s:]*?|[A-Za-z]\w*)-\d+-.*", re.DOTALL)
"""A line that ``-C`` shows around a match, or the ``--`` between two groups of lines."""

_MIN_LINES, _MAX_LINES_OF_A_MATCH = 5, 12
_SPARE_TOKENS = 4
"""Tokens kept free: the number of matches in the heading grows, and lines may take more tokens together than apart."""

_CLOSING_LINES, _LONGEST_CLOSING_LINE = 3, 200
"""The most lines, and characters in each, of what a checker says at its end, such as how many errors it found."""


def are_matches(lines: Sequence[str]) -> bool:
    """Return whether ``lines`` are matches and lines around them, and at least one path has a dot or a slash."""
    found = [*map(_MATCH.fullmatch, lines)]
    return (
        len(lines) >= _MIN_LINES
        and any(match and re.search(r"[./\\]", match[1]) for match in found)
        and len(lines) <= _MAX_LINES_OF_A_MATCH * sum(match is not None for match in found)
        and all(match or _AROUND.fullmatch(line) for match, line in zip(found, lines, strict=True))
    )


def preview_matches(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return files and matches within ``budget`` tokens, or None if no match fits."""
    files: dict[str, list[str]] = {}
    last = around = 0
    lines = lines_of(content)
    for number, line in lines.items():
        found = _MATCH.fullmatch(plain(line))
        if number != last + 1 or not (found or _AROUND.fullmatch(plain(line))):
            break
        last = number
        if found:
            files.setdefault(found[1], []).append(f"  {found[2] or found[3]}:{shortened(found[4])}")
        else:
            around += 1
    closing = _closing(lines, last, content.lines)
    end = content.lines - len(closing)
    gap = [gap_of_lines(last + 1, end, content.lines)] if last < end else []
    seen = f"{'the first ' if gap else ''}{last - around:,} matches"
    left_out = "the lines around them and the rest are" if around else "the rest are"
    shown: dict[str, list[str]] = {}

    def made() -> str:
        hidden = len(files) - len(shown)
        more = [f"[… {count_of(hidden, 'more file')} …]"] if hidden else []
        what = f"{count_of(len(files), 'file')}, {sum(map(len, shown.values())):,} of {seen} shown, {left_out} not:"
        return "\n".join((what, *chain.from_iterable(shown.values()), *more, *gap, *closing))

    left = budget - counter.count(made()) - _SPARE_TOKENS
    # Every file is named before any shows a second match.
    turns = range(max(map(len, files.values()), default=0))
    for turn, (name, matches) in product(turns, files.items()):
        if turn < len(matches):
            text = matches[turn] if turn else f"{name} ({len(matches):,})\n{matches[0]}"
            left -= counter.count(f"{text}\n")
            if left < 0:
                break
            shown.setdefault(name, []).append(text)
    text = made()
    return text if shown and counter.count(text) <= budget else None


def _closing(lines: Mapping[int, str], last: int, total: int) -> list[str]:
    """Return the last few lines, as far as they are short and not among the matches, which end at line ``last``."""
    closing: list[str] = []
    for number in range(total, max(last, total - _CLOSING_LINES), -1):
        line = plain(lines.get(number, ""))
        if (
            number not in lines
            or len(line) > _LONGEST_CLOSING_LINE
            or _MATCH.fullmatch(line)
            or _AROUND.fullmatch(line)
        ):
            break
        closing.append(line)
    return closing[::-1]
