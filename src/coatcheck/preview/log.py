"""Logs and the output of commands: head and tail, and between them the lines that tell of errors.

Colours are left out, and what a progress bar overwrote. Line numbers are those of the stored text.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING

from coatcheck.preview.source import join_lines, lines_of, pick, plain, sample_of

if TYPE_CHECKING:
    from coatcheck.preview.source import Previewed
    from coatcheck.tokens import TokenCounter

__all__ = ("looks_like_a_log", "preview_log")

_TROUBLE = re.compile(
    r"Traceback \(most recent call last\)"
    r"|^(?:E  |(?:\w+\.)*\w*(?:Error|Exception|Warning)\b:|error(?:\[\w+\])?:|fatal:|panic:|npm ERR!"
    r"|make.*\*\*\*|FAILED? )"
    r"|\b(?:ERROR|FATAL|CRITICAL|PANIC|SEVERE|FAILURE|FAILED|WARN(?:ING)?)\b"
    r"|: (?:fatal )?error:|\b\d+ (?:failed|errors?|failures?)\b|[Ss]egmentation fault|Killed$"
)
_STAMPED = re.compile(
    r"\W{0,2}(?:\d{4}[-/.]\d\d[-/.]\d\d[T ,]|\d\d[:.]\d\d[:.]\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d|\d{10}[. ]"
    r"|(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b)"
)
_TERMINAL = re.compile(r"\x1b\[[0-9;]*[mK]|[^\n\r]\r[^\n\r]")
_DIGITS = re.compile(r"\d+")

_STAMPED_SHARE = 0.5
_LEAST_LINES = 8
_TROUBLE_SHARE = 0.4
"""Of the budget, at most, for lines of trouble; head and tail tell what ran and how it ended."""

_ALIKE = 3
"""Lines of trouble shown of those that differ in numbers only."""

_LAST_LINES = 2
_TAIL_EVERY = 4
_TAIL_CHARACTERS = 16_384


def looks_like_a_log(content: Previewed) -> bool:
    """Return whether lines have time stamps or levels, or the text has what only terminals and stack traces have."""
    if content.lines < _LEAST_LINES:
        return False
    sample = sample_of(content)
    stamped = sum(_STAMPED.match(plain(line)) is not None for line in sample)
    if sample and stamped >= _STAMPED_SHARE * len(sample):
        return True
    ends = (content.text[:_TAIL_CHARACTERS], content.text[-_TAIL_CHARACTERS:])
    return any(_TERMINAL.search(end) or "\nTraceback (most recent call last):\n" in f"\n{end}" for end in ends)


def preview_log(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return head, tail and lines of trouble within ``budget`` tokens, or None if hardly a line fits."""
    if not counter.exceeds(content.text, budget):
        return content.text
    lines = {number: plain(line) for number, line in lines_of(content).items()}
    numbers = [number for number, line in lines.items() if line.strip()]
    if not numbers:
        return None
    trouble = pick(_trouble(lines, numbers), lines.__getitem__, content.lines, int(budget * _TROUBLE_SHARE), counter)
    fill: list[int] = []
    head, tail = iter(numbers), reversed(numbers)
    for step, _ in enumerate(numbers):
        fill.append(next(tail if step % _TAIL_EVERY == _TAIL_EVERY - 1 else head))
    chosen = pick(
        [numbers[0], *reversed(numbers[-_LAST_LINES:]), *trouble, *fill],
        lines.__getitem__,
        content.lines,
        budget,
        counter,
    )
    shown = join_lines(chosen, content.lines)
    return shown if len(chosen) > 1 and counter.count(shown) <= budget else None


def _trouble(lines: dict[int, str], numbers: list[int]) -> list[int]:
    """Return the lines of trouble: the first, the last, the second, and so on, few of each sort."""
    found: list[int] = []
    alike: dict[str, int] = {}
    for number in numbers:
        line = lines[number][:400]
        if _TROUBLE.search(line):
            sort = _DIGITS.sub("0", line)
            alike[sort] = alike.get(sort, 0) + 1
            if alike[sort] <= _ALIKE:
                found.append(number)
    half = (len(found) + 1) // 2
    pairs = zip_longest(found[:half], reversed(found[half:]))
    return [number for pair in pairs for number in pair if number is not None]
