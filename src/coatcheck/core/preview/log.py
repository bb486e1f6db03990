"""Logs and command output, and the lines of any text that report errors, the worst first.

A log is shown by its head, its tail and such lines between them. Colours are removed, and so is what a progress bar has
overwritten. Line numbers are those of the stored text. Above a preview of any other kind, errors that it lacks are
listed if they are rare: if every other line reports one, as in source code about errors, none is odd.
"""

from __future__ import annotations

import re
from itertools import accumulate, chain, islice, zip_longest
from typing import TYPE_CHECKING

from coatcheck.core.preview.signs import SIGNS
from coatcheck.core.preview.source import (
    IN_NUMBERS,
    LEVELS,
    LONGEST_LINE,
    LineGroup,
    Trouble,
    join_lines,
    lines_of,
    pick,
    plain,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("RARE", "find_rare_trouble", "find_trouble", "missing_from", "name_trouble", "preview_log")

_SAY_NOTHING = frozenset({b"[FATAL]", b"[ERROR]", b"[WARNING]", b"[WARN]"})
"""Maven's blank lines, which would be shown in place of the errors around them."""

_WORDS = {b"FATA": "FATAL", b"CRIT": "FATAL", b"ERRO": "ERROR", b"FAIL": "ERROR", b"WARN": "WARN"}
"""The level of a sign, where its first four letters tell it."""

MAX_SEARCHED = 32_000_000
"""Characters searched for trouble, from the beginning of the text. A million takes 2 to 5 ms."""

_COLOURS = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]")
"""Terminal colours. They may stand between a level and the space or bracket by which it is recognized."""

_PIECE = 250_000
MAX_COUNTED = 10_000
"""The most lines counted for each level. Each takes about 5 microseconds."""

_MAX_MENTIONS = 16
"""The most mentions removed from a line. Each takes about 5 microseconds."""

_KEPT = 200
"""Groups of similar lines kept for each level: half of them the first groups, half the last."""

_ALIKE = 3
"""Lines of trouble shown from a group whose lines differ only in numbers."""

RARE = 25
"""Errors are rare if at most one line in this many reports one, so text with fewer lines has no rare errors."""

_SHARE = 0.25
"""The share of the budget that rare errors may take above a preview of another kind."""

_TROUBLE_SHARE = 0.6
"""The share of the budget that lines of trouble may take. Of 250 tokens, that is two lines and the gaps around them.

The rest is for head and tail, which tell what ran and how it ended."""

_MIN_FOR_TROUBLE = 80
"""Tokens. A line and the gaps around it need as many."""

_LAST_LINES = 2
_TAIL_EVERY = 4

_AROUND = (60, 120)
"""Characters of a long line shown before and after its sign of trouble, if there is room."""

_MAX_SHARE = 0.35
"""A line of trouble is shown whole if it takes at most this share of the tokens for all of them."""

_MAX_NAMED = 6
_BEGINS_A_GAP = "[… "
_NOT_SEARCHED = "not searched for trouble"
_WORD = re.compile(r"\w+")


def find_rare_trouble(trouble: Trouble, content: Previewed) -> Iterator[None]:
    """Add the errors in ``content`` to ``trouble`` while they are rare; yield after each piece."""
    return find_trouble(trouble, content.text, rare=content.lines // RARE + 1)


def find_trouble(trouble: Trouble, text: str, *, rare: int | None = None) -> Iterator[None]:
    """Add the trouble in ``text`` to ``trouble``; yield after each piece.

    With ``rare``, add only lines with sure signs of an error, not those that only mention one. Stop after ``rare``
    lines of both sorts together: errors are then not rare.
    """
    at, end = 0, min(len(text), MAX_SEARCHED)
    mentions: dict[bytes, bool] = {}
    while at < end:
        stop = min(at + _PIECE, end)
        if stop < len(text):
            stop = text.rfind("\n", at, stop) + 1 or stop  # or inside a line longer than a piece
        data = text[at:stop].encode("utf-8", "surrogatepass")
        if b"\x1b" in data:  # finding one byte takes a tenth of the time
            data = _COLOURS.sub(b"", data)
        # A level at its limit, like all milder ones, is searched for only in the last piece: only its last lines still
        # matter.
        full = [level for level, count in trouble.counts.items() if count >= MAX_COUNTED] if stop < end else []
        worst = LEVELS.index(full[0]) if full else len(LEVELS)
        signs = SIGNS.searched_for[worst] if rare is None else SIGNS.errors
        number, before = trouble.searched + 1, 0
        for found in signs.finditer(data) if worst else ():
            sign = found.start()
            number, before = number + data.count(b"\n", before, sign), sign
            if number == trouble.last:
                continue  # bytes that are not UTF-8 end a match within a line
            trouble.last = number
            trouble.noted += 1
            if trouble.noted == rare:
                return
            begin, end_of_line = data.rfind(b"\n", 0, sign) + 1, data.find(b"\n", sign)
            begin = max(begin, data.rfind(b"\r", begin, sign + 1) + 1)  # of an overwritten line, the part with the sign
            line = data[begin : end_of_line if end_of_line >= 0 else len(data)].partition(b"\r")[0]
            is_cut = sign - begin >= LONGEST_LINE  # the sign would be cut off
            line = ("…".encode() + line[sign - begin - _AROUND[0] :] if is_cut else line)[: LONGEST_LINE * 4]
            level = _WORDS.get(data[sign : sign + 4])
            is_mention = (
                not (level or SIGNS.searched_for[-1].search(SIGNS.classes.sub(b" ", line))) and SIGNS.quiet.search(line)
                if rare is None
                else _only_mentions(line, mentions)
            )
            if is_mention or line.strip() in _SAY_NOTHING:
                continue
            level = level or next((one for one, its in SIGNS.is_level.items() if its.match(data, sign)), "ERROR")
            trouble.counts[level] = min(trouble.counts[level] + 1, MAX_COUNTED)
            groups = trouble.groups[level]
            group = groups.setdefault(line.translate(None, IN_NUMBERS), LineGroup())
            group.count += 1
            if len(group.lines) == _ALIKE:
                group.lines.popitem()  # the last one so far
            group.lines[number] = line.decode("utf-8", "replace")
            if len(groups) > _KEPT:
                groups.pop(next(islice(groups, _KEPT // 2, None)))
        trouble.searched += data.count(b"\n") + (stop == len(text) and not text.endswith("\n"))
        at = stop
        yield


def _only_mentions(line: bytes, known: dict[bytes, bool]) -> bool:
    """Return whether ``line`` only mentions errors, and the rest of it reports none; ``known`` caches the answers."""
    kind = line.translate(None, IN_NUMBERS)
    if kind not in known:
        rest, mentions = SIGNS.mention.subn(b" ", line, _MAX_MENTIONS)
        known[kind] = mentions > 0 and not SIGNS.errors.search(rest)
    return known[kind]


def preview_log(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return head, tail and lines of trouble within ``budget`` tokens, or None if fewer than two lines fit."""
    raw = lines_of(content)
    first = next((number for number in raw if raw[number].strip()), None)
    last = list(islice((number for number in reversed(raw) if raw[number].strip()), _LAST_LINES))
    if first is None:
        return None
    trouble = content.trouble or Trouble()
    for _ in find_trouble(trouble, content.text) if content.trouble is None else ():
        pass
    share = max(_MIN_FOR_TROUBLE, int(budget * _TROUBLE_SHARE))
    summary, suspects = _summarize(trouble, content)

    def line(number: int) -> str:
        text, alike = suspects.get(number) or (plain(raw[number]), "")
        if number in suspects and counter.count(text) > share * _MAX_SHARE:
            text = _around_sign(text, share)
        return text + alike

    left = budget - (counter.count(summary) if summary else 0)
    chosen_of_them = pick(suspects, line, content.lines, share, counter)
    most = min(len(raw), budget)  # a line takes at least a token
    taken = {first, *last}
    head, tail = ((number for number in order if number not in taken) for order in (raw, reversed(raw)))
    ends = (tail if step % _TAIL_EVERY == _TAIL_EVERY - 1 else head for step in range(most))
    chosen = pick(
        chain([first], last[:1], chosen_of_them, last[1:], (number for end in ends for number in islice(end, 1))),
        line,
        content.lines,
        left,
        counter,
    )
    shown = f"{summary}{join_lines(chosen, content.lines)}"
    return shown if len(chosen) > 1 and counter.count(shown) <= budget else None


def _summarize(trouble: Trouble, content: Previewed) -> tuple[str, dict[int, tuple[str, str]]]:
    """Return a summary, empty if all is well, and lines of trouble by number, the most important first, with remarks.

    For each level, the worst first, come the first line that states a level of its own, the first line of all, and the
    last. Then one line of each group comes before the second of any. Groups are ordered by level, then those that state
    a level before those that do not, and then as first, last, second, and so on. The remark on the first line shown of
    a group says how many lines it has, if not all are listed.
    """
    # Once a level is counted up to its limit, the search skips it and milder ones.
    worst = accumulate(trouble.counts.values(), max)
    more = {level: "+" if count >= MAX_COUNTED else "" for level, count in zip(trouble.counts, worst, strict=True)}
    counts = ", ".join(f"{count:,}{more[level]} {level}" for level, count in trouble.counts.items() if count)
    if counts:  # lines, not records: lines below an error may be about it too
        counts += " lines" if sum(trouble.counts.values()) > 1 else " line"
    unseen = f"lines {trouble.searched + 1:,}-{content.lines:,} {_NOT_SEARCHED}"
    said = "; ".join(filter(None, (counts, unseen if trouble.searched < content.lines else "")))
    ends: list[tuple[str, LineGroup, int]] = []
    order: list[tuple[str, LineGroup]] = []
    for level in LEVELS:
        own: list[LineGroup] = []
        rest: list[LineGroup] = []
        for group in trouble.groups[level].values():
            first_line = next(iter(group.lines.values()))
            (own if SIGNS.own.search(first_line.encode()) else rest).append(group)
        for groups in (own, rest):
            half = (len(groups) + 1) // 2
            pairs = zip_longest(groups[:half], reversed(groups[half:]))
            order += ((level, group) for pair in pairs for group in pair if group)
        by_number = {number: group for group in (*own, *rest) for number in group.lines}
        firsts = (next(iter(by_number)), min(by_number), max(by_number)) if by_number else ()
        ends += ((level, by_number[at], at) for at in dict.fromkeys(firsts))
    ranked: dict[int, tuple[str, str]] = {}
    turns = (
        (level, group, left[0])
        for turn in range(_ALIKE)
        for level, group in order
        for first, *others in [group.lines]
        if (left := [number for number in (first, *reversed(others)) if number not in ranked])
        and len(group.lines) - len(left) <= turn
    )
    for level, group, number in chain(ends, turns):
        several = group.count > len(group.lines) and group.lines.keys().isdisjoint(ranked)
        alike = f" ({group.count:,}{more[level]} alike)" if several else ""
        ranked.setdefault(number, (plain(group.lines[number]), alike))
    return f"[{said}]\n" if said else "", ranked


def name_trouble(content: Previewed, budget: int, counter: TokenCounter) -> list[str]:
    """Return a summary and lines about the errors in ``content``, the worst first, to put above a preview.

    Return an empty list if errors are not rare, or if none fits into their share of ``budget`` tokens.
    """
    if content.lines < RARE:
        return []
    trouble = content.rare or Trouble()
    for _ in find_rare_trouble(trouble, content) if content.rare is None else ():
        pass
    if trouble.noted > content.lines // RARE:
        return []
    summary, suspects = _summarize(trouble, content)
    lines = [summary]
    left = max(int(budget * _SHARE), min(_MIN_FOR_TROUBLE, budget // 2)) - counter.count(summary)
    for number, (line, alike) in islice(suspects.items(), _MAX_NAMED):
        named = f"[line {number:,}] {_around_sign(line.strip(), sum(_AROUND))}{alike}\n"
        left -= counter.count(named)
        if left < 0:
            break
        lines.append(named)
    return lines if len(lines) > 1 or (summary and left >= 0 and not suspects) else []


def missing_from(shown: str, errors: list[str]) -> list[str]:
    """Return the summary and those of ``errors`` that ``shown`` lacks, in any notation.

    Return an empty list if it lacks none, unless the summary names lines that were not searched.
    """
    summary, *named = errors
    rows = [row for row in shown.split("\n") if not row.startswith(_BEGINS_A_GAP)]
    words = ((line, _WORD.findall(line, line.index("]"))) for line in named)
    hidden = [line for line, held in words if not any(all(word in row for word in held) for row in rows)]
    return [summary, *hidden] if hidden or _NOT_SEARCHED in summary else []


def _around_sign(line: str, most: int) -> str:
    """Return ``line``, or of a longer one at most about ``most`` characters around its sign of trouble."""
    before, behind = (min(size, most * size // sum(_AROUND)) for size in _AROUND)
    if len(line) <= before + behind:
        return line
    found = SIGNS.errors.search(line) or SIGNS.searched_for[-1].search(line)
    start = max(0, found.start() - before) if found else 0
    end = start + before + behind
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"
