"""Whether storing gets slower as a storage fills up: the hundredth entry against the last of very many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.systems import LIMIT, OURS
from benchmarks.systems.system import Missing

if TYPE_CHECKING:
    from benchmarks.bench import Bench

__all__ = ("COUNT", "FEW", "MANY", "STORED", "WORK", "measure")

WORK = "store 1 KB"
FEW, MANY = "about the 100th", "the last of many"
STORED = "stored"
COUNT = "entries"

GENEROUS_SECONDS = 90.0
"""For ours and the least, which must reach the end. The others get as far as their time allows."""


def measure(bench: Bench) -> None:
    """Measure one system after another. Each alternates between a full and a nearly empty storage."""
    for process in bench.processes.all(adapters=False):  # in a framework, it is the same storage
        generous = process.name in {LIMIT, OURS}
        try:
            answer = process.ask(
                "stores",
                count=bench.scale.stores,
                samples=bench.scale.store_samples,
                at_most_seconds=GENEROUS_SECONDS if generous else bench.scale.store_seconds,
            )
        except Missing as missing:
            bench.results.add(WORK, FEW, process.name, str(missing))
            continue
        bench.results.add(WORK, FEW, process.name, answer["few"])
        bench.results.add(WORK, MANY, process.name, answer["many"])
        bench.results.add(STORED, COUNT, process.name, [answer["stored"]])
