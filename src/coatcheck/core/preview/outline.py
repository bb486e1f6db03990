"""A JSON value within a budget: whole if it fits, otherwise breadth before depth.

Every part of the value (``parts``) has a rank, which grows with its depth, its place in its list and, for a long
string, how much of it is shown. Parts are taken by rank, lowest first, as far as the budget goes, and written in their
original order. So every sibling gets a line before the first one is shown in full. Every container says how much it
holds, and lists of records are tables.

The cost of a part is estimated from its characters. Only the whole is counted exactly, a few times: counting each part
took most of the time of a preview.
"""

from __future__ import annotations

import heapq
from itertools import islice
from typing import TYPE_CHECKING

from coatcheck.core.preview.counted import counted
from coatcheck.core.preview.names import ENOUGH, next_to_names
from coatcheck.core.preview.notation import brief, count_of, named, parts_of
from coatcheck.core.preview.parts import DENSITY, ONE_LINE, SHARE_OF_STUBS, SHOWN, Container, before_value
from coatcheck.core.preview.work import spend
from coatcheck.core.tokens import beginning_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.preview.parts import Part
    from coatcheck.core.tokens import TokenCounter

__all__ = ("fit_outline",)

_FEW_TOKENS = 80
"""Tokens. A smaller budget shows the value from its beginning: a line for every part would leave no room for the
contents."""

_CHARACTERS_OF_A_TOKEN = 5
"""The most characters per token of the budget that are ranked before the first exact count."""

_FIRST_GUESS, _MOST = 0.95, 1.6
"""Characters per token of an outline, divided by those of its source text: the mean, and the maximum."""

_NEXT_GUESS = 0.97
"""The same, compared with the last outline counted: what comes next may have fewer characters per token."""

_LARGE_PART = 400
"""Characters beyond the budget that are ranked: if a part does not fit, a later one may."""

_ROUNDS = 5
_LITTLE = 0.7
"""Share of the budget. If the parts that fit use less, the next part is too large, and showing the value from its
beginning says more."""

_LONGEST_TEXT = 100_000
"""The longest string, in characters, that is written whole before the line is cut to what fits."""

_TRIES = 3
"""The beginning of the value gets shorter with each line for another member, and then more members need one."""

_UNITS_OF_A_STEP = 20


def fit_outline(value: JsonValue, budget: int, counter: TokenCounter, *, text: str, names_of: str) -> str | None:
    """Return the outline of ``value`` within ``budget`` tokens, or None if nothing useful fits.

    A value that fits is shown whole. Any other outline is followed by names that it leaves out. They are taken from
    ``names_of``: the source ``text`` without what only its notation needs.
    """
    if not isinstance(value, (dict, list)) or budget <= 0:
        return None
    line = brief(value, ONE_LINE)
    if (line != named(value) or not value) and not counter.exceeds(line, budget):
        return line
    if not value:
        return None
    root = Container(value, 0, budget, counter)
    root.open()
    if budget < _FEW_TOKENS and not root.is_table:
        return _beginning(value, budget, counter)
    outline = _Outline(value, root, counter, density=_density(text, counter))
    may_fit = len(text) <= budget * outline.most
    return next_to_names(outline.fit, names_of, budget, counter, may_fit=may_fit, or_alone=True)


def _density(text: str, counter: TokenCounter) -> float:
    """Estimate the characters per token of ``text`` from its beginning.

    What is known of the whole is not used, although that would cost nothing: a preview would then depend on what was
    counted before.
    """
    part = beginning_of(text)
    return len(part) / max(1, counter.count(part))


class _Outline:
    """The parts of a value by rank, as far as they were needed, and what they show within a budget."""

    def __init__(
        self, value: dict[str, JsonValue] | list[JsonValue], root: Container, counter: TokenCounter, *, density: float
    ) -> None:
        """Start with no part ranked; ``density`` is the characters per token of the value's text."""
        self.most = density * _MOST
        """The most characters per token of an outline."""
        self._value = value
        self._root = root
        self._counter = counter
        self._density = density * _FIRST_GUESS
        """Characters per token of an outline: first a guess, then those of the last outline counted."""
        self._steps: list[tuple[Part, int, int]] = []
        """Each part with its level and about how many characters it takes."""
        self._characters = 0
        self._following = self._ranked()

    def fit(self, budget: int) -> tuple[str | None, bool]:
        """Return the value within ``budget`` tokens, and whether it is whole.

        Above it, lines count what is odd in lists whose tables have no room.
        """
        shown, is_whole = self._fitted(budget)
        if shown is None or is_whole:
            return shown, is_whole
        above = ""
        for what, odd in self._root.odd():
            if odd.what not in shown:
                above += counted(what, odd, budget - 2 * self._counter.count(above), self._counter)
        if not above:
            return shown, is_whole
        below, _ = self._fitted(budget - self._counter.count(above))
        both = f"{above}{below}"
        return both if below is not None and self._counter.count(both) <= budget else shown, False

    def _fitted(self, budget: int) -> tuple[str | None, bool]:
        """Return the value with as many parts as fit, and whether those are all; a few exact counts tell how many."""
        looked_at = budget * min(_CHARACTERS_OF_A_TOKEN, max(DENSITY, self.most)) + _LARGE_PART
        self._reach(looked_at)
        best, used, is_whole = None, 0, False
        total = self._characters
        # In characters. A size above ``fits`` may fit; one above ``most`` does not.
        fits, most, size = 0, total, min(total, int(budget * self._density))
        for _ in range(_ROUNDS):
            taken, following = self._take(size)
            shown = "\n".join(self._root.lines(0))
            tokens = self._counter.count(shown)
            self._density = taken * _NEXT_GUESS / max(1, tokens)
            if tokens > budget:
                most = taken
            else:
                fits = following - 1
                is_whole = fits >= total and total < looked_at
                if tokens > used:
                    best, used = shown, tokens
                if is_whole or tokens >= budget * ENOUGH:
                    break
                if fits >= total:  # the parts took less than guessed, so rank more of them
                    looked_at = int(looked_at * budget / max(1, tokens)) + _LARGE_PART
                    self._reach(looked_at)
                    most = total = self._characters
            size = min(max(int(budget * self._density), fits + 1), most - 1 if most < total else total)
            if size <= fits:
                break
        is_little = used < budget * _LITTLE and not is_whole
        beginning = _beginning(self._value, budget, self._counter) if is_little or best is None else None
        return beginning or best, is_whole

    def _reach(self, most: float) -> None:
        """Rank parts until they have ``most`` characters."""
        while self._characters < most and (step := next(self._following, None)):
            self._steps.append(step)
            self._characters += step[2]

    def _take(self, size: int) -> tuple[int, int]:
        """Take the first parts that fit ``size`` characters together; skip any that does not, and what depends on it.

        Return how many characters they have, and the next size at which others would be taken.
        """
        whole, short = size, self._characters
        for part, _, _ in self._steps:
            part.level, part.is_out = 0, False
        for part, level, cost in self._steps:
            if part.level >= level or part.is_out or part.of.is_out:
                continue
            if cost > size:
                part.is_out = True
                short = min(short, cost - size)
                continue
            part.level = level
            size -= cost
        return whole - size, whole + short

    def _ranked(self) -> Iterator[tuple[Part, int, int]]:
        heap: list[tuple[float, int, Part, int]] = [(0.0, 0, self._root, SHOWN)]
        serial = 0
        while heap:
            rank, _, part, level = heapq.heappop(heap)
            more = part.cost(level) + 1
            before = serial
            for next_rank, next_part, next_level in part.follow(rank, level):
                serial += 1
                heapq.heappush(heap, (next_rank, serial, next_part, next_level))
            spend(self._counter, _UNITS_OF_A_STEP * (1 + serial - before + part.cells) + more // 4)
            yield part, level, more


def _beginning(value: dict[str, JsonValue] | list[JsonValue], budget: int, counter: TokenCounter) -> str | None:
    """Return as many members or items of a value as fit, from the first on."""
    room = budget * _CHARACTERS_OF_A_TOKEN * 2
    lines: list[str] = []
    members = value.items() if isinstance(value, dict) else (("", child) for child in value)
    for key, child in members:
        name = before_value(key) if isinstance(value, dict) else ""
        lines.append(name + _dense(child, room))
        room -= len(lines[-1])
        if room <= 0:
            break
    text = "\n".join(lines)
    if room > 0 and not counter.exceeds(text, budget):
        return text
    kind = "key" if isinstance(value, dict) else "item"
    rest = f"[… of {count_of(len(value), kind)}]"
    best, named_from = None, len(value)
    for _ in range(_TRIES):
        kept = counter.head(text, budget - counter.count(f"…\n{rest}") - 1)
        shown = f"{kept}…\n{rest}"
        begun = kept.count("\n") + (": " in kept[kept.rfind("\n") + 1 :])
        names_all = begun >= named_from  # otherwise the shorter beginning leaves out members that were not named
        if (best is None or names_all) and kept and counter.count(shown) <= budget:
            best = shown
        if names_all or isinstance(value, list):
            break
        # A line takes a token, so more than ``budget`` lines are too many.
        rest, named_from = "\n".join(islice(_stubs(value, begun), budget)), begun
        if counter.exceeds(rest, int(budget * SHARE_OF_STUBS)):
            break
    return best


def _stubs(value: dict[str, JsonValue], start: int) -> Iterator[str]:
    """Yield a line for each member from the one at ``start`` on; a container is shown by its size."""
    for key in islice(value, start, None):
        yield f"{before_value(key)}{brief(value[key], 0)}"


def _dense(value: JsonValue, most: int) -> str:
    """Write a value on one line, in its order, and leave out what is beyond ``most`` characters."""
    parts: list[str] = []
    for piece in parts_of(value, 0, _LONGEST_TEXT):
        parts.append(piece[: most + 1])
        most -= len(piece)
        if most <= 0:
            break
    return "".join(parts)
