"""A result of 1 KB, which stays: the cost added to every small result, which is never offloaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.systems import LIMIT

if TYPE_CHECKING:
    from benchmarks.bench import Bench

__all__ = ("CASE", "WORK", "measure")

WORK = "pass"
CASE = "1 KB"
ROUNDS_FOR_EACH = 3
"""There are more rounds here, because they are short and the differences small."""


def measure(bench: Bench) -> None:
    """Measure all systems but the least, which does nothing here."""
    processes = [process for process in bench.processes.all() if process.name != LIMIT]
    able = bench.prepared(WORK, [CASE], processes, {"job": "passing"})
    rounds = bench.scale.rounds * ROUNDS_FOR_EACH
    measured = bench.in_turns(able, lambda process, _: float(process.ask("passing")), rounds=rounds)
    bench.results.add_all(WORK, CASE, measured)
