"""The tables on the screen and in docs/benchmarks.md, made from results. The page explains them in prose."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from benchmarks.systems import LIMIT
from benchmarks.targets import outcomes
from benchmarks.works import importing, in_bucket, many_agents, many_stores, offloading, passing, reading_back

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.results import Results

__all__ = ("put_into", "report")

_CLEARLY = 1.05
"""From this multiple of a limit on, a number with one decimal shows that the limit was missed."""

_BEGIN, _END = "<!-- figures: written by nox -s bench -->", "<!-- end of figures -->"

_TIME_UNITS = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6))
_MEGABYTE = 1e6


def report(results: Results) -> str:
    """Return everything that a run found, as Markdown."""
    parts = [
        "### Targets",
        _targets(results),
        "### What ran",
        "\n".join(f"- {name}: {fact}" for name, fact in results.facts.items()),
    ]
    for title, work, show in _TABLES:
        cases = results.cases(work)
        if cases:
            parts += [f"### {title}", *_by_kind(results, work, cases, show)]
    return "\n\n".join(parts)


def put_into(page: Path, text: str) -> None:
    """Replace the results in a page.

    Raises:
        ValueError: the page lacks the marks around them.

    """
    before, begin, rest = page.read_text(encoding="utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        msg = f"{page} lacks the lines {_BEGIN} and {_END}"
        raise ValueError(msg)
    page.write_text(f"{before}{_BEGIN}\n\n{text}\n\n{_END}{after}", encoding="utf-8")


def _targets(results: Results) -> str:
    rows = []
    for outcome in outcomes(results):
        times = outcome.worst / outcome.limit
        missed = f"{times:.1f} times the limit" if times >= _CLEARLY else "just above the limit"
        verdict = "met" if outcome.met else f"**missed**, {missed}"
        measured = f"{_significant(outcome.worst)} {outcome.unit} ({outcome.case})"
        rows.append([outcome.target, f"{outcome.limit:g} {outcome.unit}", measured, verdict])
    return _table(["target", "at most", "measured, the worst case", ""], rows)


def _by_kind(results: Results, work: str, cases: Sequence[str], show: Callable[[float], str]) -> list[str]:
    """Return one table or, for cases of several kinds of text, one per kind, with the sizes side by side."""
    kinds = list(dict.fromkeys(case.rpartition(", ")[0] for case in cases))
    if len(kinds) == 1 or len(kinds) == len(cases):
        return [_figures(results, work, dict(zip(cases, cases, strict=True)), show, corner="")]
    return [
        _figures(
            results,
            work,
            {case.rpartition(", ")[2]: case for case in cases if case.rpartition(", ")[0] == kind},
            show,
            corner=kind,
        )
        for kind in kinds
    ]


def _figures(results: Results, work: str, columns: dict[str, str], show: Callable[[float], str], *, corner: str) -> str:
    names = results.systems(work)
    rows = [[name, *(_cell(results, work, case, name, show=show) for case in columns.values())] for name in names]
    kept = [row for row in rows if any(row[1:])]
    return _table([corner, *columns], kept)


def _cell(results: Results, work: str, case: str, system: str, *, show: Callable[[float], str]) -> str:
    spread = results.figures.get((work, case, system))
    if spread is None:
        return results.missing.get((work, case, system), "")
    shown = show(spread.median)
    if spread.runs > 1 and show(spread.low) != show(spread.high):
        shown += f" ({show(spread.low)} to {show(spread.high)})"
    least = None if system == LIMIT or show is _whole else results.median(work, case, LIMIT)
    return shown if not least else f"{shown}, {_significant(spread.median / least)} times"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(re.sub(r'[|]', '/', cell) for cell in line)} |" for line in lines)


def _seconds(value: float) -> str:
    unit, scale = next((pair for pair in _TIME_UNITS if value >= pair[1]), _TIME_UNITS[-1])
    return f"{_significant(value / scale)} {unit}"


def _megabytes(value: float) -> str:
    return f"{_significant(value / _MEGABYTE)} MB"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _significant(value: float) -> str:
    """Return a number with about three significant digits."""
    for least, digits in ((100, 0), (10, 1)):
        if value >= least:
            return f"{value:,.{digits}f}"
    return f"{value:.2f}"


_TABLES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("A result of 1 KB, which stays", passing.WORK, _seconds),
    ("Offloading to disk", offloading.WORK, _seconds),
    ("Peak memory of offloading, beyond what was in use before", offloading.MEMORY, _megabytes),
    ("Tokens left in the conversation", offloading.LEFT, _whole),
    ("Finding a line, and reading 20", reading_back.WORK, _seconds),
    ("Peak memory of finding and reading", reading_back.MEMORY, _megabytes),
    ("Storing into a storage that fills up", many_stores.WORK, _seconds),
    ("Entries stored by the end", many_stores.STORED, _whole),
    ("64 agents in one event loop, 1 MB each, to disk", many_agents.WORK, _seconds),
    ("64 agents in one event loop, 1 MB each, to S3 with 50 ms added", in_bucket.WORK, _seconds),
    ("Importing", importing.WORK, _seconds),
)
