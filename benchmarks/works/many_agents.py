"""64 agents in one event loop, each with a 1 MB result at once: how late the loop is for its other tasks.

A task asks for a turn each millisecond and records how late each comes. Reported are the longest wait, and the wait
that 99 of 100 turns stay below.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.bench import MEGABYTE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.bench import Bench
    from benchmarks.processes import Process

__all__ = ("LONGEST", "PERCENTILE", "TAKEN", "WORK", "measure", "measure_agents")

WORK = "64 agents"
TAKEN, LONGEST, PERCENTILE = "all of them", "longest wait", "99th percentile"
KIND = "log text"


def measure(bench: Bench) -> None:
    """Measure all systems that can be awaited, with files."""
    measure_agents(bench, WORK, bench.processes.all())


def measure_agents(bench: Bench, work: str, processes: Sequence[Process]) -> None:
    """Measure as many agents as the scale says, in each process."""
    loading: dict[str, object] = {"job": "load", "path": str(bench.text(KIND, MEGABYTE)), "kind": KIND}
    able = bench.prepared(work, [TAKEN], processes, loading, {"job": "agents", "count": 2, "run": 0})
    waits: dict[str, dict[str, list[float]]] = {LONGEST: {}, PERCENTILE: {}}

    def ask(process: Process, run: int) -> float:
        answer = process.ask("agents", count=bench.scale.agents, run=run)
        waits[LONGEST].setdefault(process.name, []).append(answer["longest"])
        waits[PERCENTILE].setdefault(process.name, []).append(answer["percentile 99"])
        return float(answer["taken"])

    measured = bench.in_turns(able, ask, rounds=bench.scale.agent_rounds)
    bench.results.add_all(work, TAKEN, measured)
    for case, by_system in waits.items():
        bench.results.add_all(work, case, by_system)
