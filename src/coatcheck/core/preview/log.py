"""Logs and the output of commands: head and tail, and between them the lines that tell of errors, the worst first.

Colours are left out, and what a progress bar overwrote. Line numbers are those of the stored text.
"""

from __future__ import annotations

from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING

import re2

from coatcheck.core.preview.source import IN_NUMBERS, LONGEST_LINE, Sort, Trouble, join_lines, lines_of, pick, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("find_trouble", "preview_log")

_FATAL = r"\b(?:FATAL|CRITICAL|PANIC|SEVERE)\b|^(?:fatal|panic):|: fatal error:|[Ss]egmentation fault|Killed$"
_ERROR = (
    r"Traceback \(most recent call last\)"
    r"|^(?:E  |(?:\w+\.)*\w*(?:Error|Exception)\b:|error(?:\[\w+\])?:|npm ERR!|make[^\n]*\*\*\*|FAILED? |Caused by:)"
    r"|\b(?:[A-Za-z_$][\w$]*\.)+[\w$]*(?:Exception|Error)\b"
    r"|\b(?:ERROR|FAILURE|FAILED)\b|: error:|\b\d+ (?:failed|errors?|failures?)\b"
)
_WARN = r"\bWARN(?:ING)?\b|^(?:\w+\.)*\w*Warning\b:"
_LEVELS = {"FATAL": _FATAL, "ERROR": _ERROR, "WARN": _WARN}
"""By level, the worst first: what tells of it in a line."""

_SEARCHED_FOR = [re2.compile(f"(?m)(?:{'|'.join([*_LEVELS.values()][:most])})[^\n]*") for most in range(4)]
"""The signs of no level, of the worst, of two, and of all. RE2: linear in time whatever the text, and other threads
work meanwhile."""

_WORDS = {b"FATA": "FATAL", b"CRIT": "FATAL", b"ERRO": "ERROR", b"FAIL": "ERROR", b"WARN": "WARN"}
_IS_LEVEL = {level: re2.compile(f"(?m)(?:{signs})") for level, signs in _LEVELS.items()}

MOST_SEARCHED = 32_000_000
"""Characters of a text that are searched for trouble, 2 to 5 ms for each million; of a longer one, the beginning."""

_PIECE = 250_000
MOST_COUNTED = 10_000
"""Lines of each level that are counted, some 5 microseconds each."""

_KEPT = 200
"""Sorts of lines of each level that may be shown, half of them the first."""

_TROUBLE_SHARE = 0.4
"""The share of the budget that lines of trouble may take. Head and tail tell what ran and how it ended."""

_LEAST_FOR_TROUBLE = 80
"""Tokens: a line and the gaps around it."""

_ALIKE = 3
"""Lines of trouble shown of those that differ in numbers only."""

_LAST_LINES = 2
_TAIL_EVERY = 4


def find_trouble(trouble: Trouble, text: str) -> Iterator[None]:
    """Add the trouble in ``text`` to ``trouble``; yield after each piece."""
    at, end = 0, min(len(text), MOST_SEARCHED)
    while at < end:
        stop = min(at + _PIECE, end)
        if stop < len(text):
            stop = text.rfind("\n", at, stop) + 1 or stop  # or within a line of more than a piece
        data = text[at:stop].encode("utf-8", "surrogatepass")
        # Of a level that is counted up to its limit, only the last lines are of interest, so only the last piece.
        full = [level for level, count in trouble.counts.items() if count >= MOST_COUNTED] if stop < end else []
        most = [*_LEVELS].index(full[0]) if full else len(_LEVELS)
        number, before = trouble.searched + 1, 0
        for found in _SEARCHED_FOR[most].finditer(data) if most else ():
            number += data.count(b"\n", before, found.start())
            before = found.start()
            if number == trouble.last:
                continue  # bytes that are not UTF-8 end a match within a line
            trouble.last = number
            ending = data.find(b"\n", before)
            line = data[data.rfind(b"\n", 0, before) + 1 : ending if ending >= 0 else len(data)][: LONGEST_LINE * 4]
            level = _WORDS.get(data[before : before + 4]) or next(
                (one for one, signs in _IS_LEVEL.items() if signs.match(data, before)), "ERROR"
            )
            trouble.counts[level] = min(trouble.counts[level] + 1, MOST_COUNTED)
            sorts = trouble.sorts[level]
            sort = sorts.setdefault(line.translate(None, IN_NUMBERS), Sort())
            sort.count += 1
            if len(sort.lines) == _ALIKE:
                sort.lines.popitem()  # the last one so far
            sort.lines[number] = line.decode("utf-8", "replace")
            if len(sorts) > _KEPT:
                sorts.pop(next(islice(sorts, _KEPT // 2, None)))
        trouble.searched += data.count(b"\n") + (stop == len(text) and not text.endswith("\n"))
        at = stop
        yield


def preview_log(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return head, tail and lines of trouble within ``budget`` tokens, or None if hardly a line fits."""
    raw = lines_of(content)
    head, tail = (
        (number for number in numbers if raw[number] and not raw[number].isspace()) for numbers in (raw, reversed(raw))
    )
    first, last = next(head, None), list(islice(tail, _LAST_LINES))
    if first is None:
        return None
    trouble = content.trouble or Trouble()
    for _ in find_trouble(trouble, content.text) if content.trouble is None else ():
        pass
    counts = (
        f"{count:,}{'+' if count >= MOST_COUNTED else ''} {level}" for level, count in trouble.counts.items() if count
    )
    unseen = f"lines {trouble.searched + 1:,}-{content.lines:,} not searched for trouble"
    summary = "; ".join(filter(None, (", ".join(counts), unseen if trouble.searched < content.lines else "")))
    left = budget - (counter.count(f"[{summary}]\n") if summary else 0)
    suspects = _ranked(trouble)
    chosen_of_them = pick(
        suspects, suspects.__getitem__, content.lines, max(_LEAST_FOR_TROUBLE, int(left * _TROUBLE_SHARE)), counter
    )
    most = min(len(raw), budget)  # a line takes a token at least
    ends = (tail if step % _TAIL_EVERY == _TAIL_EVERY - 1 else head for step in range(most))
    chosen = pick(
        chain([first], last[:1], chosen_of_them, last[1:], (number for end in ends for number in islice(end, 1))),
        lambda number: suspects[number] if number in suspects else plain(raw[number]),
        content.lines,
        left,
        counter,
    )
    shown = join_lines(chosen, content.lines)
    shown = f"[{summary}]\n{shown}" if summary else shown
    return shown if len(chosen) > 1 and counter.count(shown) <= budget else None


def _ranked(trouble: Trouble) -> dict[int, str]:
    """Return lines of trouble: the worst level first, of each the first sort, the last, the second, and so on.

    A line of each sort comes before the second of any, with how many there are of it.
    """
    ranked: dict[int, str] = {}
    for level in _LEVELS:
        sorts = list(trouble.sorts[level].values())
        half = (len(sorts) + 1) // 2
        order = [sort for pair in zip_longest(sorts[:half], reversed(sorts[half:])) for sort in pair if sort]
        for turn in (0, -1, 1):
            for sort in order:
                number, line = [*sort.lines.items()][turn if turn < len(sort.lines) else 0]
                alike = f" ({sort.count:,} alike)" if turn == 0 and sort.count > len(sort.lines) else ""
                ranked.setdefault(number, plain(line) + alike)
    return ranked
