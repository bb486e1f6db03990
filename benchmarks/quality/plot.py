"""The plot in the documentation: the budget on x, the share kept on y, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.quality.intervals import interval
from benchmarks.quality.methods import OURS, WHOLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from benchmarks.quality.measured import Measured


def plot(measured: Mapping[int, Sequence[Measured]], path: Path) -> None:
    """Draw each way's mean and interval at each budget into an SVG file. The same data gives the same bytes."""
    from matplotlib import pyplot as plt  # noqa: PLC0415 - only --write draws

    from benchmarks.svg import save  # noqa: PLC0415

    budgets = [budget for budget, ones in measured.items() if ones]
    figure, axes = plt.subplots(figsize=(8, 5))
    for name in measured[budgets[0]][0].shown:
        points = [
            interval([100 * one.shown[name] for one in ones], [one.result.conversation for one in ones])
            for ones in (measured[budget] for budget in budgets)
        ]
        spread = [[point.mean - point.low for point in points], [point.high - point.mean for point in points]]
        width = 2.5 if name in {OURS, WHOLE} else 1
        means = [point.mean for point in points]
        axes.errorbar(budgets, means, spread, marker="o", capsize=3, linewidth=width, label=name)
    axes.set_xscale("log")
    axes.set_xticks(budgets, [f"{budget:,}" for budget in budgets])
    axes.minorticks_off()
    axes.set(xlabel="budget in tokens", ylabel="needed spans in the preview, %", ylim=(0, 100))
    axes.legend()
    save(figure, path)
