"""Text in which most lines differ from others only in numbers: the size of each group, and one of its lines as it is.

Digits in a name, such as ``file_3.txt`` or ``G101``, tell lines apart: the names are what the agent needs.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING

from coatcheck.core.preview.names import next_to_names
from coatcheck.core.preview.pieces import MAX_SEARCHED, found_in, line_pieces
from coatcheck.core.preview.source import IN_NUMBERS, LineGroup, join_lines, lines_of, pick, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from coatcheck.core.preview.source import Found, Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("preview_repeats", "search_repeats")

_MIN_LINES = 20
_MIN_ALIKE = 4
_MIN_SHARE = 2 / 3
"""The share of the non-blank lines that must be in a group. With less, head and tail of the text say more."""

_MAX_DIGITS = 0.25
"""The share of a line that may be digits. In a line of numbers, the numbers are what the agent needs."""

_MIN_WORDS = 2
_RARE = 0.1
"""A group with a smaller share of the lines is rare."""

_MAX_NAMED = 4
"""The most groups that the heading names: those with the most lines."""

_LAST_LINES = 3
"""Lines looked at from the end, where totals come."""

_MAX_GROUPS = 20_000
"""With more groups of lines than this, text is not treated as repetitive."""

_WORD = re.compile(r"[^\W\d_]{2,}")
_NUMBERED_NAME = re.compile(r"[^\W\d][/._-]?\d")


def search_repeats(found: Found, content: Previewed) -> Iterator[None]:
    """Count the lines of each group; yield after each piece. Stop if few lines are alike."""
    text, number = content.text, 1
    for start, end in line_pieces(text, 0) if len(text) <= MAX_SEARCHED else ():
        lines = text[start:end].removesuffix("\n").split("\n")
        keys = _keys(lines)
        counts = Counter(keys)
        alike = sum(count for count in counts.values() if count >= _MIN_ALIKE)
        if alike < _MIN_SHARE * len(keys) and not found.groups:
            return
        firsts = dict(zip(reversed(keys), reversed(range(len(keys))), strict=True))
        for key, count in counts.items():
            if key not in found.groups:
                found.groups[key] = LineGroup(lines={number + firsts[key]: lines[firsts[key]]})
            found.groups[key].count += count
        if len(found.groups) > _MAX_GROUPS:
            return
        number += len(lines)
        found.end = end
        yield


def preview_repeats(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return lines within ``budget`` tokens, one of each group before the second of any, or None if few are alike.

    Names and numbers in lines of the rarer groups follow: what is rare is what the agent asks for.
    """
    if content.lines < _MIN_LINES:
        return None
    found = found_in(content, search_repeats)
    if found.end < len(content.text):
        return None
    firsts = {number: (line, group.count) for group in found.groups.values() for number, line in group.lines.items()}
    alike = {number: count for number, (line, count) in firsts.items() if count >= _MIN_ALIKE and _is_of_a_group(line)}
    others = {number: count for number, (line, count) in firsts.items() if number not in alike and line.strip()}
    if sum(alike.values()) < _MIN_SHARE * (sum(alike.values()) + sum(others.values())):
        return None
    raw = lines_of(content)
    most = sorted(sorted(alike, key=alike.__getitem__, reverse=True)[:_MAX_NAMED])
    last = islice((number for number in reversed(raw) if raw[number].strip()), _LAST_LINES)
    closing = [one for one in last if found.groups[_keys([raw[one]])[0]].count < _MIN_ALIKE] or [content.lines]
    # Not said after the line itself, where it would read as part of what the tool returned.
    named = ", ".join(f"{alike[number]:,} like line {number:,}" for number in most)
    heading = f"[lines alike but for their numbers: {named}]\n"
    cost = counter.count(heading)

    def line(number: int) -> str:
        return plain(firsts[number][0] if number in firsts else raw[number])

    def fit(room: int) -> tuple[str | None, bool]:
        wanted = chain([1, *closing], most, alike, _from_both_ends(list(others)), _from_both_ends(list(raw)))
        chosen = pick(wanted, line, content.lines, room - cost, counter)
        return heading + join_lines(chosen, content.lines) if alike.keys() & chosen.keys() else None, False

    rare = (one for one, key in zip(raw.values(), _keys(raw.values()), strict=True)
            if found.groups[key].count < _RARE * content.lines)  # fmt: skip
    made = next_to_names(fit, "\n".join(rare), budget, counter, may_fit=False, or_alone=True)
    return made if made and not counter.exceeds(made, budget) else None


def _keys(lines: Iterable[str]) -> list[bytes]:
    """Return each line without its numbers."""
    return "\n".join(lines).encode("utf-8", "surrogatepass").translate(None, IN_NUMBERS).split(b"\n")


def _is_of_a_group(line: str) -> bool:
    """Return whether ``line`` would say the same with other digits."""
    has_words = sum(_WORD.search(part) is not None for part in line.split()) >= _MIN_WORDS
    return has_words and not _NUMBERED_NAME.search(line) and sum(map(str.isdigit, line)) <= _MAX_DIGITS * len(line)


def _from_both_ends(numbers: list[int]) -> Iterator[int]:
    """Yield the first, the last, the second, the last but one, and so on."""
    for first, last in islice(zip(numbers, reversed(numbers), strict=True), (len(numbers) + 1) // 2):
        yield first
        yield last
