"""One large result: the time and memory that offloading it to disk takes, and the tokens that it leaves."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from benchmarks.bench import MEGABYTE, named
from coatcheck import TiktokenCounter

if TYPE_CHECKING:
    from benchmarks.bench import Bench
    from benchmarks.processes import Process

__all__ = ("LEFT", "MEMORY", "WORK", "measure")

WORK = "offload"
MEMORY = "memory of offloading"
LEFT = "tokens left"

TOO_SLOW_SECONDS = 5.0
"""A system that would take longer than this for the next size skips it."""

MIN_BYTES_WATCHED = 10 * MEGABYTE
"""The smallest size whose memory is measured. A smaller peak cannot be seen."""


def measure(bench: Bench) -> None:
    """Measure all systems, on every kind of text, from the smallest size up."""
    for kind in bench.scale.kinds:
        slow: dict[str, str] = {}
        for size, following in zip_longest(bench.scale.sizes, bench.scale.sizes[1:], fillvalue=0):
            _measure_text(bench, kind, size, slow, times=following / size)


def _measure_text(bench: Bench, kind: str, size: int, slow: dict[str, str], *, times: float) -> None:
    """Measure one text. Add systems too slow for the next one, ``times`` times as large, to ``slow``."""
    case = f"{kind}, {named(size)}"
    left: dict[str, str] = {}

    def ask(process: Process, run: int, *, memory: bool = False) -> float:
        answer = process.ask("offload", run=run, memory=memory)
        left[process.name] = answer["left"]
        return float(answer["taken"])

    quick = [process for process in bench.processes.all(variants=True) if process.name not in slow]
    for name, reason in slow.items():
        bench.results.add(WORK, case, name, reason)
    loading: dict[str, object] = {"job": "load", "path": str(bench.text(kind, size)), "kind": kind}
    able = bench.prepared(WORK, [case], quick, loading, {"job": "warm_up"})
    measured = bench.in_turns(able, ask)
    bench.results.add_all(WORK, case, measured)
    for process in able:
        name = process.name
        median = bench.results.median(WORK, case, name)
        if median is None:
            slow[name] = bench.results.missing[WORK, case, name]
        elif median * times > TOO_SLOW_SECONDS:
            slow[name] = f"skipped: {named(size)} took {median:.1f} s"
        if median is not None and left[name]:
            bench.results.add(LEFT, case, name, [TiktokenCounter().count(left[name])])
    if size >= MIN_BYTES_WATCHED:
        watched = [process for process in able if isinstance(measured[process.name], list)]
        scale = bench.scale
        peaks = bench.in_turns(
            watched, lambda process, run: ask(process, scale.rounds + run, memory=True), rounds=scale.memory_rounds
        )
        bench.results.add_all(MEMORY, case, peaks)
