"""One run: which systems, at which scale, and where its files and results are. ``works`` says what is measured."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks import corpus
from benchmarks.results import Results
from benchmarks.systems.system import Missing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.environments import Environments
    from benchmarks.processes import Process, Processes

__all__ = ("FULL", "MEGABYTE", "QUICK", "Bench", "Scale", "named")

KILOBYTE = 1_000
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The scale of a run."""

    rounds: int
    """The most times that each system is asked."""

    enough_seconds: float
    enough_rounds: int
    """A system that has spent more than these seconds on a case, in at least these rounds, is not asked again."""

    memory_rounds: int

    sizes: Sequence[int]
    """Bytes of each text that is offloaded."""

    kinds: Sequence[str]
    """Kinds of text that are offloaded."""

    sizes_read: Sequence[int]
    """Bytes of each text that is read back."""

    touched_bytes: int
    """Bytes of memory to write before anything is measured: about what all systems use together at the largest size."""

    stores: int
    """Entries in one storage."""

    store_samples: int
    store_seconds: float
    """How long a peer may take to store ``stores`` entries."""

    agents: int
    agent_rounds: int
    imports: int


FULL = Scale(
    rounds=11,
    enough_seconds=2.0,
    enough_rounds=1,
    memory_rounds=3,
    sizes=(100 * KILOBYTE, MEGABYTE, 10 * MEGABYTE, 100 * MEGABYTE),
    kinds=tuple(corpus.KINDS),
    sizes_read=(10 * MEGABYTE, 100 * MEGABYTE),
    touched_bytes=6_000 * MEGABYTE,
    stores=100_000,
    store_samples=1_000,
    store_seconds=8.0,
    agents=64,
    agent_rounds=5,
    imports=7,
)
QUICK = Scale(
    rounds=5,
    enough_seconds=0.4,
    enough_rounds=1,
    memory_rounds=1,
    sizes=(100 * KILOBYTE, 10 * MEGABYTE),
    kinds=("log text", "Chinese text"),
    sizes_read=(100 * MEGABYTE,),
    touched_bytes=1_000 * MEGABYTE,
    stores=3_000,
    store_samples=200,
    store_seconds=2.0,
    agents=64,
    agent_rounds=1,
    imports=1,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What every kind of work gets."""

    processes: Processes
    """The processes of the systems that keep content in files."""

    environments: Environments

    folder: Path
    """Holds the input and what is stored, on the disk that is measured."""

    scale: Scale
    results: Results = field(default_factory=Results)

    def in_turns(
        self, processes: Sequence[Process], ask: Callable[[Process, int], float], *, rounds: int | None = None
    ) -> dict[str, list[float] | str]:
        """Ask all processes once per round, each round in another order. Return their answers, or why there are none.

        In a fixed order, what one process leaves behind, such as dirty pages, would always slow the same other one.
        """
        scale = self.scale
        answers: dict[str, list[float] | str] = {process.name: [] for process in processes}
        spent = dict.fromkeys(answers, 0.0)
        for number in range(1, (rounds or scale.rounds) + 1):
            for process in random.Random(number).sample(processes, len(processes)):  # noqa: S311 - no secret
                got = answers[process.name]
                long = spent[process.name] > scale.enough_seconds and number > scale.enough_rounds
                if isinstance(got, str) or long:
                    continue
                started = time.perf_counter()
                answer = _answer(process, ask, number)
                if isinstance(answer, str):
                    answers[process.name] = answer
                else:
                    got.append(answer)
                spent[process.name] += time.perf_counter() - started
        return answers

    def text(self, kind: str, size: int) -> Path:
        """Return the file with this kind and size of text. Write it the first time."""
        path = self.folder / f"{list(corpus.KINDS).index(kind)}-{size}"
        corpus.write(path, kind=kind, size=size)
        return path

    def prepared(
        self, work: str, cases: Sequence[str], processes: Sequence[Process], *jobs: dict[str, object]
    ) -> list[Process]:
        """Return the processes that can do ``jobs``. For the others, record the reason under each case."""
        able = []
        for process in processes:
            reason = _refusal(process, jobs)
            if reason is None:
                able.append(process)
            else:
                for case in cases:
                    self.results.add(work, case, process.name, reason)
        return able


def _refusal(process: Process, jobs: Sequence[dict[str, object]]) -> str | None:
    try:
        for job in jobs:
            process.ask(**job)  # type: ignore[arg-type]
    except Missing as missing:
        return str(missing)
    return None


def _answer(process: Process, ask: Callable[[Process, int], float], number: int) -> float | str:
    try:
        return ask(process, number)
    except Missing as missing:
        return str(missing)


def named(size: int) -> str:
    """Return a size in MB or KB."""
    return f"{size // MEGABYTE} MB" if size >= MEGABYTE else f"{size // KILOBYTE} KB"
