"""Text in which most lines differ from others in numbers only: each sort of line once, with how many there are of it.

Digits in a name, such as ``file_3.txt`` or ``G101``, tell lines apart: the names are what the agent needs.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING

from coatcheck.core.preview.source import IN_NUMBERS, join_lines, lines_of, pick, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("preview_sorts",)

_LEAST_LINES = 20
_LEAST_ALIKE = 4
_LEAST_SHARE = 2 / 3
"""Of the lines that are not blank: where fewer are of a sort, head and tail of the text say more."""

_MOST_DIGITS = 0.25
"""Of the characters of a line: in a line of figures, these are what the agent needs."""

_LEAST_WORDS = 2
_WORD = re.compile(r"[^\W\d_]{2,}")
_NUMBERED_NAME = re.compile(r"[^\W\d][/._-]?\d")


def preview_sorts(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return lines within ``budget`` tokens, one of each sort before the second of any, or None if few are alike."""
    if content.lines < _LEAST_LINES:
        return None
    raw = lines_of(content)
    keys = "\n".join(raw.values()).encode("utf-8", "surrogatepass").translate(None, IN_NUMBERS).split(b"\n")
    counts = Counter(keys)
    if sum(count for count in counts.values() if count >= _LEAST_ALIKE) < _LEAST_SHARE * len(keys):
        return None  # nearly always, and without a look at the lines
    firsts = dict(zip(reversed(keys), reversed(raw), strict=True))
    sorts = {
        firsts[key]: count for key, count in counts.items() if count >= _LEAST_ALIKE and _is_sort(raw[firsts[key]])
    }
    blank = sum(counts[key] for key in counts if not key.strip())
    if sum(sorts.values()) < _LEAST_SHARE * (len(keys) - blank) or not sorts:
        return None
    collapsed = {key for key in counts if firsts[key] in sorts}
    single = [number for number, key in zip(raw, keys, strict=True) if key not in collapsed]
    wanted = chain([next(iter(raw)), next(reversed(raw))], sorts, _from_both_ends(single), _from_both_ends(list(raw)))

    def line(number: int) -> str:
        alike = f" ({sorts[number]:,} alike)" if number in sorts else ""
        return plain(raw[number]) + alike

    chosen = pick(wanted, line, content.lines, budget, counter)
    shown = join_lines(chosen, content.lines)
    return shown if len(chosen) > 1 and counter.count(shown) <= budget else None


def _is_sort(line: str) -> bool:
    """Return whether a line says the same as one with other digits."""
    has_words = len(_WORD.findall(line)) >= _LEAST_WORDS
    return has_words and not _NUMBERED_NAME.search(line) and sum(map(str.isdigit, line)) <= _MOST_DIGITS * len(line)


def _from_both_ends(numbers: list[int]) -> Iterator[int]:
    """Yield the first, the last, the second, the last but one, and so on."""
    for first, last in islice(zip(numbers, reversed(numbers), strict=True), (len(numbers) + 1) // 2):
        yield first
        yield last
