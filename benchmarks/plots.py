"""The plots of docs/benchmarks.md, drawn from results: offloading by size, reading back, event-loop waits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from matplotlib import pyplot as plt
from matplotlib.ticker import NullFormatter

from benchmarks.bench import MEGABYTE
from benchmarks.svg import save
from benchmarks.systems import LIMIT, OURS
from benchmarks.works import many_agents, offloading, reading_back

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.results import Results

__all__ = ("draw",)

_COLUMNS = 3

_LEFT_OUT = (f"{OURS}, fsync", f"{OURS} in LangChain", f"{OURS} in Strands", f"{OURS} in Haystack")
"""Left out of the plots, so that the peers' lines can be told apart. The tables have all systems."""


def draw(results: Results, folder: Path) -> None:
    """Draw what the results contain: ``benchmarks-offload.svg``, ``-read.svg`` and ``-agents.svg``."""
    if results.cases(offloading.WORK):
        _draw_offloading(results, folder / "benchmarks-offload.svg")
    if results.cases(reading_back.WORK):
        _draw_bars(results, reading_back.WORK, folder / "benchmarks-read.svg")
    if results.cases(many_agents.WORK):
        _draw_bars(results, many_agents.WORK, folder / "benchmarks-agents.svg")


def _draw_offloading(results: Results, path: Path) -> None:
    cases = [case.rpartition(", ") for case in results.cases(offloading.WORK)]
    kinds = list(dict.fromkeys(kind for kind, _, _ in cases))
    figure, rows = plt.subplots(
        1, len(kinds), figsize=(4 * len(kinds), 5), sharey=True, squeeze=False, layout="constrained"
    )
    for axes, kind in zip(rows[0], kinds, strict=True):
        for name in results.systems(offloading.WORK):
            sizes = [size for found, _, size in cases if found == kind]
            medians = {size: results.median(offloading.WORK, f"{kind}, {size}", name) for size in sizes}
            points = {_bytes(size): median for size, median in medians.items() if median is not None}
            if points and name not in _LEFT_OUT:
                style = {"linestyle": "--", "color": "black"} if name == LIMIT else {}
                width = 2.5 if name == OURS else 1
                axes.plot(list(points), list(points.values()), marker="o", linewidth=width, label=name, **style)
        axes.set(title=kind, xscale="log", yscale="log", xlabel="bytes")
    rows[0][0].set_ylabel("seconds, median")
    figure.legend(*rows[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2 * len(kinds))
    save(figure, path)
    plt.close(figure)


def _draw_bars(results: Results, work: str, path: Path) -> None:
    cases = results.cases(work)
    shown = [name for name in results.systems(work) if any(results.median(work, case, name) for case in cases)]
    rows = -(-len(cases) // _COLUMNS)
    figure, grid = plt.subplots(
        rows, _COLUMNS, figsize=(12, 4 * rows), sharey=True, squeeze=False, layout="constrained"
    )
    for axes, case in zip(grid.flat, cases, strict=False):
        medians = [results.median(work, case, name) for name in shown]
        colors = ["C0" if name.startswith(OURS) else "black" if name == LIMIT else "C1" for name in shown]
        axes.barh(shown, [median or 0 for median in medians], color=colors)
        # Bars on a logarithmic scale have no natural origin, so they start at a power of ten below the shortest.
        least = min((median for median in medians if median), default=1.0)
        axes.set(title=case, xscale="log", xlabel="seconds, median", xlim=(10 ** math.floor(math.log10(least)), None))
        axes.xaxis.set_minor_formatter(NullFormatter())
    for axes in grid.flat[len(cases) :]:
        axes.remove()
    grid[0][0].invert_yaxis()
    save(figure, path)
    plt.close(figure)


def _bytes(size: str) -> int:
    number, unit = size.split()
    return int(number) * (MEGABYTE if unit == "MB" else MEGABYTE // 1_000)
