"""Means with 95% intervals, from a seeded bootstrap that draws whole conversations.

Results of one conversation resemble each other, so they are drawn together. Differences between two ways are paired:
they are taken result by result, before anything is drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ("Interval", "interval")

_SEED = 5
_RESAMPLES = 2_000


class Interval(NamedTuple):
    """A mean, and the bounds of its 95% interval."""

    mean: float
    low: float
    high: float


def interval(values: Iterable[float], conversations: Sequence[str]) -> Interval:
    """Return the interval of the mean of ``values``. Each comes from the conversation at the same position."""
    groups: dict[str, tuple[float, int]] = {}
    for value, conversation in zip(values, conversations, strict=True):
        total, count = groups.get(conversation, (0.0, 0))
        groups[conversation] = (total + value, count + 1)
    # Not a Bayesian bootstrap with random weights: if no difference is negative, its interval is above zero as soon as
    # one is positive.
    totals, counts = np.array(list(groups.values()), dtype=float).T
    drawn = np.random.default_rng(_SEED).multinomial(len(totals), np.full(len(totals), 1 / len(totals)), _RESAMPLES)
    low, high = np.percentile(drawn @ totals / (drawn @ counts), [2.5, 97.5])
    return Interval(float(totals.sum() / counts.sum()), float(low), float(high))
