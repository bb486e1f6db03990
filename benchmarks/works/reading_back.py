"""Finding the one odd line in a stored log, by a literal and by a character class, and reading 20 of its lines."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks import corpus
from benchmarks.bench import named
from benchmarks.systems import LIMIT

if TYPE_CHECKING:
    from benchmarks.bench import Bench
    from benchmarks.processes import Process

__all__ = ("CHARACTER_CLASS", "LITERAL", "MEMORY", "READ", "WORK", "measure")

WORK = "read back"
MEMORY = "memory of reading back"
LITERAL, CHARACTER_CLASS, READ = "find a literal", "find a character class", "read 20 lines"
KIND = "log text"
LINES = 20


def measure(bench: Bench) -> None:
    """Measure the time of all systems that can find and read, in turn, and then their memory."""
    for size in bench.scale.sizes_read:
        path = bench.text(KIND, size)
        with path.open(encoding="utf-8") as file:
            first = sum(1 for _ in file) // 2
        asks: dict[str, dict[str, object]] = {
            LITERAL: {"job": "find", "pattern": corpus.LITERAL},
            CHARACTER_CLASS: {"job": "find", "pattern": corpus.CHARACTER_CLASS},
            READ: {"job": "read", "first": first, "last": first + LINES - 1, "expected": f"number {first},"},
        }
        cases = {f"{case}, {named(size)}": ask for case, ask in asks.items()}
        loading: dict[str, object] = {"job": "load", "path": str(path), "kind": KIND}
        # Our adapters are left out, because reading is the same with or without a framework.
        able = bench.prepared(WORK, list(cases), bench.processes.all(adapters=False), loading, {"job": "keep"})
        for case, ask in cases.items():
            measured = bench.in_turns(able, partial(_ask, ask=ask, memory=False))
            bench.results.add_all(WORK, case, measured)
            watched = [one for one in able if one.name != LIMIT and isinstance(measured[one.name], list)]
            peaks = bench.in_turns(watched, partial(_ask, ask=ask, memory=True), rounds=bench.scale.memory_rounds)
            bench.results.add_all(MEMORY, case, peaks)


def _ask(process: Process, _: int, *, ask: dict[str, object], memory: bool) -> float:
    # The least reads bytes from the middle, whatever lines they hold.
    asked = {**ask, "expected": ""} if process.name == LIMIT and "expected" in ask else ask
    return float(process.ask(memory=memory, **asked))  # type: ignore[arg-type]
