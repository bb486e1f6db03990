"""Logs and the output of commands: head and tail, and between them the lines that tell of errors.

Colours are left out, and what a progress bar overwrote. Line numbers are those of the stored text.
"""

from __future__ import annotations

import re
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING

import re2

from coatcheck.core.preview.source import join_lines, lines_of, parts_of, pick, plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("preview_log",)

_TROUBLE = re2.compile(
    r"Traceback \(most recent call last\)"
    r"|^(?:E  |(?:\w+\.)*\w*(?:Error|Exception|Warning)\b:|error(?:\[\w+\])?:|fatal:|panic:|npm ERR!"
    r"|make.*\*\*\*|FAILED? )"
    r"|\b(?:[A-Za-z_$][\w$]*\.)+[\w$]*(?:Exception|Error)\b|^Caused by:"
    r"|\b(?:ERROR|FATAL|CRITICAL|PANIC|SEVERE|FAILURE|FAILED|WARN(?:ING)?)\b"
    r"|: (?:fatal )?error:|\b\d+ (?:failed|errors?|failures?)\b|[Ss]egmentation fault|Killed$"
)
"""RE2: a dotted name may begin at each of its dots and at each ``$``, and ``re`` would read it from all of them."""

_SIGN = re2.compile(
    r"(?i)(?:traceback|e  |error|exception|warn|fatal|panic|err!|\*\*\*|fail|critical|severe"
    r"|segmentation fault|killed|caused by)"
    r"[^\n]*"
)
"""One in each line; whatever ``_TROUBLE`` finds holds one. RE2 looks for all at once, four times as fast as one by one
with ``str.find``, and lets other threads work meanwhile."""

_MOST_SUSPECTS = 1_000
"""Lines that are looked at for trouble, from both ends: a pattern takes some microseconds for each."""

_DIGITS = re.compile(r"\d+")

_TROUBLE_SHARE = 0.4
"""Of the budget, at most, for lines of trouble; head and tail tell what ran and how it ended."""

_ALIKE = 3
"""Lines of trouble shown of those that differ in numbers only."""

_LAST_LINES = 2
_TAIL_EVERY = 4


def preview_log(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return head, tail and lines of trouble within ``budget`` tokens, or None if hardly a line fits."""
    raw = lines_of(content)
    head, tail = (
        (number for number in numbers if raw[number] and not raw[number].isspace()) for numbers in (raw, reversed(raw))
    )
    first, last = next(head, None), list(islice(tail, _LAST_LINES))
    if first is None:
        return None

    suspects = {number: plain(raw[number]) for number in _suspects(content) if number in raw}
    trouble = pick(_trouble(suspects), suspects.__getitem__, content.lines, int(budget * _TROUBLE_SHARE), counter)
    most = min(len(raw), budget)  # a line takes a token at least
    ends = (tail if step % _TAIL_EVERY == _TAIL_EVERY - 1 else head for step in range(most))
    chosen = pick(
        chain([first], last, trouble, (number for end in ends for number in islice(end, 1))),
        lambda number: plain(raw[number]),
        content.lines,
        budget,
        counter,
    )
    shown = join_lines(chosen, content.lines)
    return shown if len(chosen) > 1 and counter.count(shown) <= budget else None


def _suspects(content: Previewed) -> list[int]:
    """Return the numbers of lines that hold a sign of trouble; most of a log is not worth a pattern."""
    found: list[int] = []
    for first, part in parts_of(content):
        data = part.encode("utf-8", "surrogatepass")
        number, before = first, 0
        for sign in _SIGN.finditer(data):
            start = sign.start()
            number += data.count(b"\n", before, start)
            before = start
            if found[-1:] != [number]:  # bytes that are no UTF-8 end a match amid the line
                found.append(number)
    half = _MOST_SUSPECTS // 2
    return found if len(found) <= _MOST_SUSPECTS else [*found[:half], *found[-half:]]


def _trouble(suspects: Mapping[int, str]) -> list[int]:
    """Return the numbers of lines of trouble: the first, the last, the second, and so on, few of each sort."""
    found: list[int] = []
    alike: dict[str, int] = {}
    for number, line in suspects.items():
        beginning = line[:400]
        if _TROUBLE.search(beginning.encode("utf-8", "surrogatepass")):
            sort = _DIGITS.sub("0", beginning)
            alike[sort] = alike.get(sort, 0) + 1
            if alike[sort] <= _ALIKE:
                found.append(number)
    half = (len(found) + 1) // 2
    pairs = zip_longest(found[:half], reversed(found[half:]))
    return [number for pair in pairs for number in pair if number is not None]
