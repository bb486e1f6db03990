"""A result of 1 KB, which stays: what every small result costs that has nothing to do with offloading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.systems import LIMIT

if TYPE_CHECKING:
    from benchmarks.bench import Bench

__all__ = ("CASE", "WORK", "measure")

WORK = "pass"
CASE = "1 KB"
ROUNDS_FOR_EACH = 3
"""Rounds are short here, and the differences small: hence more rounds."""


def measure(bench: Bench) -> None:
    """Measure all but the least, which is nothing at all."""
    processes = [process for process in bench.processes.all() if process.name != LIMIT]
    able = bench.prepared(WORK, [CASE], processes, {"job": "passing"})
    rounds = bench.scale.rounds * ROUNDS_FOR_EACH
    measured = bench.in_turns(able, lambda process, _: float(process.ask("passing")), rounds=rounds)
    bench.results.add_all(WORK, CASE, measured)
