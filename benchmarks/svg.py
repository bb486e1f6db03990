"""Save plots as SVG files with the same bytes for the same data. Other modules draw them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

__all__ = ("save",)

mpl.use("svg")


def save(figure: Figure, path: Path) -> None:
    """Write a figure without its date, and with ids that do not change from run to run."""
    with mpl.rc_context({"svg.hashsalt": "coatcheck"}):
        figure.savefig(path, metadata={"Date": None})
