"""Plain text: its head and tail, in whole lines if they are short, with a note for the gap between them.

The tail is shown because errors and totals come at the end. If lines are longer than the budget, the cut is inside a
line, never inside a character, and the gap is given in characters, so that ``offset`` can read on from there.

The long borders and rules of a drawn table are shortened: one may take more tokens than a row.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from coatcheck.core.preview.names import names_in, without
from coatcheck.core.preview.source import gap_of_characters, gap_of_lines, sample_of
from coatcheck.core.preview.work import count_parts

if TYPE_CHECKING:
    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("preview_text",)

_FOR_A_BEGINNING, _FOR_AN_END = 120, 72
"""Tokens. Head and tail get the same room, since nobody knows which end holds the answer: the head says what ran, the
tail how it ended. If half of the room is too little for a beginning, such as the first commit of a log with its
subject, the head gets more, as long as the tail keeps a few lines. Found like ``_SHARE_OF_NAMES``."""

_NUMBERED = re.compile(r"\s*(\d{1,9})[:|\t]")
_NUMBERED_LINES, _IN_ORDER = 0.5, 0.8
"""The share of the first lines that must have numbers, and the share of these numbers that must exceed the previous
one: file sizes are in no order. Tools print a part of a file with line numbers; its end is not an outcome, so no tail
is shown."""

_SHARE_OF_NAMES = (0.6, 0.4)
"""The share of the room for names from the text that is not shown: without and with line numbers, which take some of
it. Found on one half of the conversations of ``docs/quality.md``, and confirmed on the other."""

_WORTH_THE_ROOM = 0.85
_IN_THEM = ", in them:"

_MIN_OF_A_CUT = 0.5
"""A piece is cut back to a line end only if at least this share of it is left."""

_RULE = re.compile(r"^(?=[-=─━═ ]*[+│-╏║-╿])([-=+─-╿ ]{8})[-=+─-╿ ]{32,}$", re.MULTILINE)
"""A border of a table, or a line between its rows. A rule without a crossing or a corner, such as ``=====``, does not
match: it takes few tokens, and so does that of a Markdown table."""

_READ_FOR_A_TOKEN = 16
"""Characters at each end, per token of the preview, in which rules are shortened."""


def preview_text(content: Previewed, budget: int, counter: TokenCounter) -> str:
    """Return head and tail of the text within ``budget`` tokens."""
    ruled = _with_short_rules(content, budget)
    if ruled is not content:
        if not counter.exceeds(ruled.text, budget):
            return ruled.text
        shown = _ends(ruled, budget, counter, only_lines=True)  # positions in a line would not be those of the whole
        if shown is not None:
            return shown
    return _ends(content, budget, counter) or counter.head(content.text, budget)


def _with_short_rules(content: Previewed, budget: int) -> Previewed:
    """Return the text with the long rules near its ends shortened: the same lines, with fewer characters."""
    text, reach = content.text, budget * _READ_FOR_A_TOKEN
    head = text.rfind("\n", 0, reach) + 1
    tail = text.find("\n", max(0, head - 1, len(text) - reach)) + 1 or len(text)
    above, below = (_RULE.sub(_shortened, part) for part in (text[:head], text[tail:]))
    if len(above) + len(below) == head + len(text) - tail:
        return content
    return replace(content, text=f"{above}{text[head:tail]}{below}")


def _shortened(rule: re.Match[str]) -> str:
    # A template such as "\\1…" would be parsed by a module that Python no longer imports while it exits.
    return f"{rule[1]}…"


def _ends(content: Previewed, budget: int, counter: TokenCounter, *, only_lines: bool = False) -> str | None:
    """Return head and tail, or None if nothing fits or, with ``only_lines``, if a line would be cut."""
    text = content.text
    # Reserve room for the longest note; the numbers in the real one are at most as long.
    room = budget - counter.count(f"\n{_gap(0, len(text), content)}\n")
    numbered = _is_numbered(content)
    for_names = int(room * _SHARE_OF_NAMES[numbered])
    cut = _cut(content, room, for_names, counter, numbered=numbered)
    taken = for_names
    if cut.has_all:
        taken = count_parts(counter, _IN_THEM, f" {cut.names}") if cut.names else 0
        if taken < for_names * _WORTH_THE_ROOM:  # head and tail get the room that a few names leave
            cut = _cut(content, room, taken, counter, numbered=numbered, among=cut.names)
    while room > 0:
        if only_lines and not _is_of_lines(cut.start, cut.end, content):
            break
        gap = f"{_gap(cut.start, cut.end, content, names=cut.names)}\n"
        head, tail = f"{text[: cut.start].removesuffix(chr(10))}\n", text[cut.end :]
        parts = head, *(gap.partition(f" {cut.names}") if cut.names else (gap,)), tail
        over = count_parts(counter, *parts) - budget  # head and tail have been counted already
        if over <= 0:
            return "".join(parts)
        room -= over  # joined parts can have more tokens than separate ones
        kept = counter.head(cut.names, max(0, counter.count(cut.names) - over - 1)).rpartition(" ")[0]
        if kept and not numbered:
            cut = cut._replace(names=kept)
        else:
            cut = _cut(content, room, min(taken, for_names), counter, numbered=numbered)
    return None


class _Cut(NamedTuple):
    """What is not shown, and the names in it."""

    start: int
    end: int
    names: str
    has_all: bool
    """Whether no name was left out for want of room."""


def _cut(
    content: Previewed, room: int, for_names: int, counter: TokenCounter, *, numbered: bool, among: str | None = None
) -> _Cut:
    """Return the cut that leaves head, tail and names within about ``room`` tokens; ``among`` has all names, if known.

    If lines are ``numbered``, the names are searched for again, since the number of a line is not a name.
    """
    text = content.text
    left = room - for_names
    for_head = left if numbered else max(left // 2, min(_FOR_A_BEGINNING, left - _FOR_AN_END))
    head = _end_at_a_line(counter.head(text, for_head))
    left -= counter.count(head)  # room that a line does not fit into goes to the tail, then to the names
    tail = "" if numbered else _start_at_a_line(counter.tail(text, left))
    left += for_names - counter.count(tail)
    start, end = len(head), max(len(text) - len(tail), len(head))
    shown = f"{head}\n{tail}"
    if among is not None and not numbered:
        return _Cut(start, end, without(among, shown), has_all=True)
    left -= counter.count(f"{_IN_THEM} ")
    names, has_all = names_in(text, counter, start=start, end=end, shown=shown, budget=left, numbered=numbered)
    return _Cut(start, end, names, has_all)


def _is_numbered(content: Previewed) -> bool:
    sample = sample_of(content)
    numbers = [int(found[1]) for found in map(_NUMBERED.match, sample) if found]
    in_order = sum(before < number for before, number in pairwise([-1, *numbers]))
    return 0 < _NUMBERED_LINES * len(sample) <= len(numbers) and in_order >= _IN_ORDER * len(numbers)


def _gap(start: int, end: int, content: Previewed, *, names: str = "") -> str:
    """Return the note that replaces the characters from ``start`` up to ``end``."""
    text = content.text
    held = f"{_IN_THEM} {names}" if names else ""
    if _is_of_lines(start, end, content):
        first = text.count("\n", 0, start) + 1
        last = content.lines - text.count("\n", end) - (0 if text.endswith("\n") or end == len(text) else 1)
        return gap_of_lines(first, last, content.lines, held=held)
    return gap_of_characters(start, end - 1, len(text), held=held)


def _is_of_lines(start: int, end: int, content: Previewed) -> bool:
    text = content.text
    whole_lines = (start == 0 or text[start - 1] == "\n") and (end == len(text) or text[end - 1] == "\n")
    return whole_lines and content.lines > 1


def _end_at_a_line(piece: str) -> str:
    cut = piece.rfind("\n") + 1
    return piece[:cut] if cut >= len(piece) * _MIN_OF_A_CUT else piece


def _start_at_a_line(piece: str) -> str:
    cut = piece.find("\n") + 1
    return piece[cut:] if 0 < cut <= len(piece) * _MIN_OF_A_CUT else piece
