"""What ``grep -n`` and its like print: matches by file, each file with how many there are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from coatcheck.core.preview.notation import count_of
from coatcheck.core.preview.source import gap_of_lines, lines_of, plain, shortened

if TYPE_CHECKING:
    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("MATCH", "preview_matches")

_TIME = r"(?<=\d\d:)\d\d:\d\d(?!\d)"
MATCH = re.compile(rf"((?:[A-Za-z]:[\\/])?[^\s:](?=[^:\n]*[./\\])[^:\n]*):(?!{_TIME})(\d+):(.*)", re.DOTALL)
"""A path holds a dot or a slash: looked for ahead, so that a long line without a colon is read in linear time. The
minutes of a time are not the number of a line."""

_HEADING_TOKENS = 48


def preview_matches(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return files and matches within ``budget`` tokens, or None if no match fits."""
    files: dict[str, list[str]] = {}
    last = 0
    for number, line in lines_of(content).items():
        found = MATCH.fullmatch(plain(line)) if number == last + 1 else None
        if found is None:
            break
        files.setdefault(found[1], []).append(f"  {found[2]}:{shortened(found[3])}")
        last = number
    rest = [gap_of_lines(last + 1, content.lines, content.lines)] if last < content.lines else []
    left = budget - counter.count("\n".join(rest)) - _HEADING_TOKENS
    shown: dict[str, list[str]] = {}
    full = False
    # Every file is named before any shows a second match.
    for turn in range(max(map(len, files.values()), default=0)):
        if full:
            break
        for name, matches in files.items():
            if (turn and name not in shown) or turn >= len(matches):
                continue
            text = matches[turn] if turn else f"{name} ({len(matches):,})\n{matches[0]}"
            cost = counter.count(text) + 1
            if cost > left:
                full = True
                break
            shown.setdefault(name, []).append(text)
            left -= cost
    hidden = len(files) - len(shown)
    more = [f"[… {count_of(hidden, 'more file')} …]"] if hidden else []
    seen = f"{'the first ' if rest else ''}{last:,} matches"
    what = f"{count_of(len(files), 'file')}, {sum(map(len, shown.values())):,} of {seen} shown, the rest is not:"
    text = "\n".join((what, *(line for lines in shown.values() for line in lines), *more, *rest))
    return text if shown and counter.count(text) <= budget else None
