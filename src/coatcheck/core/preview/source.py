"""What a preview is made from: text and what is known about it, its lines at both ends, and the notes for gaps."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from coatcheck.core.blocks import fits_bytes
from coatcheck.core.preview.odd import NOTHING_ODD, Odd
from coatcheck.core.tokens import ends_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping
    from typing import TypeAlias

    from coatcheck.core.tokens import TokenCounter

    Search: TypeAlias = Callable[["Found", "Previewed"], Iterator[None]]

__all__ = (
    "IN_NUMBERS",
    "LARGE_CHARACTERS",
    "LEVELS",
    "LONGEST_LINE",
    "Found",
    "LineGroup",
    "Previewed",
    "Trouble",
    "ends_within",
    "gap_of_characters",
    "gap_of_lines",
    "join_lines",
    "lines_of",
    "moved_by",
    "pick",
    "plain",
    "sample_of",
    "shortened",
)

LARGE_CHARACTERS = 256 * 1024
"""In longer text, only the lines of a window at each end are read, and ``search_for_odd`` searches the text in pieces
before the preview is made. ``preview`` searches shorter text itself."""

_WINDOW = 32 * 1024
"""Characters of that window: eight times what a preview of 1,000 tokens shows."""

_SAMPLE_CHARACTERS = 8_192
_SAMPLE_LINES = 60

_MAX_MISSES = 16
"""How many lines may fail to fit before no more are tried."""

LONGEST_LINE = 600
"""The longest line, in characters, that is shown whole where whole lines are picked."""

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")


IN_NUMBERS = b"0123456789.,"
"""Lines that differ only in these characters are in one group."""

LEVELS = ("FATAL", "ERROR", "WARN")
"""The levels of trouble, the worst first."""


@dataclass(slots=True)
class LineGroup:
    """Lines that differ only in numbers."""

    count: int = 0
    lines: dict[int, str] = field(default_factory=dict)
    """Some of them, by line number."""


@dataclass(slots=True)
class Trouble:
    """The lines of text that report trouble, as far as it has been searched."""

    counts: dict[str, int] = field(default_factory=dict.fromkeys(LEVELS, 0).copy)
    groups: dict[str, dict[bytes, LineGroup]] = field(default_factory=partial(defaultdict, dict))
    """For each level, its first and last groups, by the line without its numbers."""

    searched: int = 0
    """Lines that were searched."""

    last: int = 0
    """The number of the last line with a sign of trouble."""

    noted: int = 0
    """Lines with a sign of trouble, including those that only mention it."""


@dataclass(slots=True)
class Found:
    """The odd records or lines of text, as far as it has been searched for them."""

    odd: Odd = NOTHING_ODD
    places: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Where each odd record begins and ends, by its position."""

    total: int = 0
    """Records that were searched."""

    end: int = 0
    """Where the search ended, in characters."""

    tail: int = 0
    """Where the second to last of the searched pieces begins."""

    groups: dict[bytes, LineGroup] = field(default_factory=dict)
    """Groups of lines, by the line without its numbers, each with its first line."""

    by: Search | None = None
    """The function that searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Previewed:
    """Text to be previewed, and what is known about it."""

    text: str
    """The whole text, as it is stored."""

    content_type: str
    """MIME type, as declared; ``text/plain`` says nothing about the kind."""

    lines: int
    """Lines in the text. ``\\n`` ends a line; the last one may do without."""

    more_than: int = 0
    """Tokens that the text is known to exceed; nothing is known by default."""

    trouble: Trouble | None = None
    """The lines that report trouble, if the text was searched for them before."""

    rare: Trouble | None = None
    """The errors in text that is not a log, if it was searched for rare ones before."""

    found: Found | None = None
    """The odd records, if the text was searched for them before."""

    failures: dict[str, Exception] = field(default_factory=dict, compare=False, repr=False)
    """The kinds of preview that raised on this text, with their errors. ``preview`` adds to them and tries none
    twice."""

    @classmethod
    def of(cls, text: str, content_type: str = "text/plain") -> Previewed:
        """Return ``text`` with its lines counted."""
        return cls(text=text, content_type=content_type, lines=text.count("\n") + (text[-1:] not in {"", "\n"}))

    @property
    def declared(self) -> str:
        """The declared type without parameters, in lower case."""
        return self.content_type.partition(";")[0].strip().lower()


def lines_of(content: Previewed) -> dict[int, str]:
    """Return lines by number, counted from 1: all of them or, if the content is large, those of its head and tail."""
    text = content.text
    if len(text) <= LARGE_CHARACTERS:
        return dict(enumerate(text.removesuffix("\n").split("\n"), 1))
    head = text[:_WINDOW].split("\n")[:-1]
    tail = text[-_WINDOW:].removesuffix("\n").split("\n")[1:]
    return {**dict(enumerate(head, 1)), **dict(enumerate(tail, content.lines - len(tail) + 1))}


def sample_of(content: Previewed) -> list[str]:
    """Return the first whole lines of the text that are not blank, from which its kind is told."""
    head = content.text[:_SAMPLE_CHARACTERS]
    lines = head.split("\n")
    if len(head) < len(content.text):
        lines.pop()
    return [line for line in lines if line.strip()][:_SAMPLE_LINES]


def plain(line: str) -> str:
    """Return a line as a terminal leaves it: without colours, and without what carriage returns overwrite."""
    if "\x1b" in line:
        line = _ANSI.sub("", line)
    line = line.rstrip("\r")
    return line.rpartition("\r")[2] if "\r" in line else line


def shortened(line: str, longest: int = LONGEST_LINE) -> str:
    """Return a line as it is or, if it has more than ``longest`` characters, its head and its length."""
    return line if len(line) <= longest else f"{line[:longest]}… ({len(line):,} characters)"


def ends_within(text: str, size: int) -> str:
    """Return head and tail of ``text`` in at most ``size`` UTF-8 bytes, and so in at most as many tokens.

    Uses no tokenizer and no structure of the text, so that it works where every preview has failed.
    """
    if fits_bytes((text,), size):
        return text
    gap = f"\n{gap_of_characters(len(text), len(text), len(text))}\n"
    half = (size - len(gap.encode())) // 2
    if half <= 0:
        return ends_of([text], size)[0]
    head, tail = ends_of([text], half)
    return f"{head}\n{gap_of_characters(len(head), len(text) - len(tail) - 1, len(text))}\n{tail}"


def gap_of_characters(first: int, last: int, total: int, *, held: str = "") -> str:
    """Return a note that names the characters not shown and, if given, what they hold."""
    return f"[… characters {first:,}-{last:,} of {total:,} not shown{held} …]"


def gap_of_lines(first: int, last: int, total: int, *, held: str = "") -> str:
    """Return a note that names the lines not shown and, if given, what they hold."""
    return f"[… lines {first:,}-{last:,} of {total:,} not shown{held} …]"


def moved_by(text: str, start: int) -> str:
    """Return a note on how far lines and characters after ``start`` are from those of the whole ``text``."""
    return f"line numbers are {text.count(chr(10), 0, start):,} and characters {start:,} higher in the whole"


def join_lines(chosen: Mapping[int, str], total: int) -> str:
    """Return the chosen lines in order, with a note for every gap."""
    shown: list[str] = []
    expected = 1
    for number in sorted(chosen):
        if number > expected:
            shown.append(gap_of_lines(expected, number - 1, total))
        shown.append(chosen[number])
        expected = number + 1
    if expected <= total:
        shown.append(gap_of_lines(expected, total, total))
    return "\n".join(shown)


def pick(
    wanted: Iterable[int],
    line: Callable[[int], str],
    total: int,
    budget: int,
    counter: TokenCounter,
    *,
    longest: int = LONGEST_LINE,
) -> dict[int, str]:
    """Return lines by number, the most wanted first, as long as they and the notes for gaps fit ``budget``.

    A gap is filled if its lines take no more tokens than its note. A line of more than ``longest`` characters is
    shortened. ``line`` may raise ``KeyError`` for a line that is not in ``wanted``.
    """
    chosen: dict[int, str] = {}
    gap = counter.count(gap_of_lines(total, total, total)) + 1
    left, misses = budget - gap, 0
    known = {0, total + 1}
    for number in wanted:
        if number in chosen:
            continue
        text = shortened(line(number), longest)
        apart = (number - 1 not in known) + (number + 1 not in known) - 1
        cost = counter.count(f"{text}\n") + gap * apart
        if cost > left:
            misses += 1
            if misses > _MAX_MISSES:
                break
            continue
        chosen[number] = text
        known.add(number)
        left -= cost
        for beside in (range(number - 1, number - gap - 2, -1), range(number + 1, number + gap + 2)):
            if beside[0] in known or known.isdisjoint(beside):
                continue
            short, tokens = _up_to_known(beside, known, line, gap, counter)
            if short:
                chosen.update(short)
                known.update(short)
                left += gap - tokens
        if left <= 0:
            break
    return chosen


def _up_to_known(
    beside: range, known: Container[int], line: Callable[[int], str], most: int, counter: TokenCounter
) -> tuple[dict[int, str], int]:
    """Return the lines before the first ``known`` one and their tokens; no line if those are more than ``most``."""
    lines: dict[int, str] = {}
    tokens = 0
    for number in beside:
        if number in known:
            return lines, tokens
        try:
            lines[number] = shortened(line(number))
        except KeyError:
            break
        tokens += counter.count(f"{lines[number]}\n")
        if tokens > most:
            break
    return {}, 0
