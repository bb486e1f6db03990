"""The plot of the documentation: the budget on x, the share kept on y, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def plot(curves: Mapping[str, Sequence[tuple[float, float, float]]], budgets: Sequence[int], path: Path) -> None:
    """Draw the mean and the interval of each way for each budget into an SVG file, the same bytes for the same data."""
    from matplotlib import pyplot as plt  # noqa: PLC0415 - only --write draws

    from benchmarks.svg import save  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(8, 5))
    for order, (name, points) in enumerate(curves.items()):
        means = [mean * 100 for mean, _, _ in points]
        spread = [[(mean - low) * 100 for mean, low, _ in points], [(high - mean) * 100 for mean, _, high in points]]
        axes.errorbar(budgets, means, spread, marker="o", capsize=3, linewidth=1 if order else 2.5, label=name)
    axes.set_xscale("log")
    axes.set_xticks(budgets, [f"{budget:,}" for budget in budgets])
    axes.minorticks_off()
    axes.set(xlabel="budget in tokens", ylabel="needed spans in the preview, %", ylim=(0, 100))
    axes.legend()
    save(figure, path)
