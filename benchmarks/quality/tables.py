"""The tables on the page about previews: every way by budget, ours by kind and by source, and the kinds that lose."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING

from benchmarks.quality.intervals import Interval, interval
from benchmarks.quality.methods import HEAD, HEAD_AND_TAIL, OURS, PLAIN, WHOLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from benchmarks.quality.measured import Measured

    ByBudget: TypeAlias = Mapping[int, Sequence[Measured]]

__all__ = ("Loss", "find_losses", "held_out", "report")

MIN_RESULTS = 5
"""A kind or source with fewer results gets no row."""

MIN_TO_DECIDE = 30
"""A kind with fewer results cannot lose."""

_HELD_OUT = "### The held-out half, which was not used to choose any rule\n"
_EVERYTHING = "### All conversations, including those used to choose rules\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A kind for which our preview keeps less than a plain way does, at one budget."""

    among: str
    kind: str
    budget: int
    results: int
    plain: str
    gain: Interval

    def __str__(self) -> str:
        return (
            f"{self.among}: {self.kind} at {self.budget:,} tokens loses to {self.plain}:"
            f" {_points(self.gain)}, {self.results} results"
        )


def held_out(measured: ByBudget) -> dict[int, Sequence[Measured]]:
    """Return what was measured on conversations that were not used to choose rules."""
    return {budget: [one for one in ones if one.result.held_out] for budget, ones in measured.items()}


def find_losses(measured: ByBudget) -> Iterator[Loss]:
    """Yield the kinds with enough results whose whole interval against a plain way is below zero."""
    for among, by_budget in (("held out", held_out(measured)), ("all", measured)):
        for kind, budget, ones in _groups(by_budget, lambda one: one.result.kind):
            if len(ones) >= MIN_TO_DECIDE:
                gains = {plain: _gain(ones, plain) for plain in PLAIN}
                yield from (
                    Loss(among=among, kind=kind, budget=budget, results=len(ones), plain=plain, gain=gain)
                    for plain, gain in gains.items()
                    if gain.high < 0
                )


def report(measured: ByBudget) -> str:
    """Return all tables as Markdown, those of the held-out half first."""
    half = held_out(measured)
    parts = [
        *([_HELD_OUT + "\n" + _tables(half)] if any(half.values()) else []),
        _EVERYTHING + "\n" + _tables(measured),
        (
            "Share of the needed spans in the preview, or in the answer to one search for words that the agent knows,"
            " in percent:"
        ),
        _ways(measured, lambda ones, name: _percent(_mean_of([one.reached[name] for one in ones], ones))),
        "Average tokens of a preview:",
        _ways(measured, lambda ones, name: f"{mean(one.tokens[name] for one in ones):,.0f}"),
    ]
    return "\n\n".join(parts)


def _tables(measured: ByBudget) -> str:
    columns = "| results | preview | whole placeholder | preview, against *head* | against *head and tail* |"
    return "\n\n".join(
        (
            "Share of the needed spans in the preview, in percent, over all results that exceed the budget:",
            _ways(measured, lambda ones, name: _percent(_mean_of([one.shown[name] for one in ones], ones))),
            "By kind of content, with the paired difference in points:",
            f"| kind | budget {columns}\n{_ruled(7)}\n" + _rows(_groups(measured, lambda one: one.result.kind)),
            "By source:",
            f"| source | budget {columns}\n{_ruled(7)}\n" + _rows(_groups(measured, lambda one: one.result.source)),
        )
    )


def _groups(measured: ByBudget, key: Callable[[Measured], str]) -> Iterator[tuple[str, int, Sequence[Measured]]]:
    for name in sorted({key(one) for ones in measured.values() for one in ones}):
        for budget, ones in measured.items():
            chosen = [one for one in ones if key(one) == name]
            if len(chosen) >= MIN_RESULTS:
                yield name, budget, chosen


def _rows(groups: Iterator[tuple[str, int, Sequence[Measured]]]) -> str:
    rows = [
        [
            name,
            f"{budget:,}",
            f"{len(ones)}",
            *(f"{100 * mean(one.shown[way] for one in ones):.1f}" for way in (OURS, WHOLE)),
            *(_points(_gain(ones, plain)) for plain in (HEAD, HEAD_AND_TAIL)),
        ]
        for name, budget, ones in groups
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _ways(measured: ByBudget, cell: Callable[[Sequence[Measured], str], str]) -> str:
    used = {budget: ones for budget, ones in measured.items() if ones}
    names = sorted(next(iter(used.values()))[0].shown, key=lambda name: name not in {OURS, WHOLE})
    head = ["method", *(f"{budget:,} ({len(ones)})" for budget, ones in used.items())]
    rows = [[name, *(cell(ones, name) for ones in used.values())] for name in names]
    return "\n".join(("| " + " | ".join(head) + " |", _ruled(len(head)), *(f"| {' | '.join(row)} |" for row in rows)))


def _ruled(columns: int) -> str:
    return "|" + "---|" * columns


def _gain(ones: Sequence[Measured], other: str) -> Interval:
    return _mean_of([one.shown[OURS] - one.shown[other] for one in ones], ones)


def _mean_of(values: Sequence[float], ones: Sequence[Measured]) -> Interval:
    return interval(values, [one.result.conversation for one in ones])


def _percent(share: Interval) -> str:
    return f"{share.mean * 100:.1f} [{share.low * 100:.0f}, {share.high * 100:.0f}]"


def _points(gain: Interval) -> str:
    return f"{gain.mean * 100:+.1f} [{gain.low * 100:+.1f}, {gain.high * 100:+.1f}]"
