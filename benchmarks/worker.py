"""The process of one system: takes jobs as JSON lines, does them, and answers with what they took.

    python -m benchmarks.worker core:Coatcheck

There is one process for each system. All run at once and are asked in turn, so that other load on the machine slows all
of them alike. A job is the name of a method of ``Jobs`` and its arguments. The answer is the result, or why there is
none.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import shutil
import sys
import tempfile
import time
import timeit
from contextlib import contextmanager, redirect_stdout, suppress
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks import corpus
from benchmarks.measuring import seconds, watched_loop, watched_memory
from benchmarks.systems import system_class
from benchmarks.systems.system import Missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.systems.system import System

__all__ = ("Jobs", "serve")

WARM_UP_BYTES = 100_000
STORED_SHARE = 0.9
"""The share of the input that must be on disk after offloading. With less, the system threw content away."""

PASSING_SECONDS = 0.02
"""The total time of the calls whose mean is one measurement."""

FEW = 100
"""Entries in a nearly empty storage."""


class Jobs:
    """The jobs that the process can do."""

    def __init__(self, place: str, folder: Path) -> None:
        self._place = place
        self._folder = folder
        self._opened = 0
        self._text = ""
        self._kind = ""
        self._kept: System | None = None

    def versions(self) -> str:
        """Return the versions of what runs."""
        return self._make.versions()

    def load(self, path: str, kind: str) -> None:
        """Read the text that the next jobs work on."""
        self._kind = kind
        self._text = Path(path).read_bytes().decode()

    def warm_up(self) -> None:
        """Offload once, so that no measurement includes what happens only the first time."""
        with self._open() as system:
            system.offloading(self._fresh(0)[:WARM_UP_BYTES])()

    def passing(self) -> float:
        """Return the seconds for one small result that stays, as the mean of many calls."""
        with self._open() as system:
            step = system.passing(corpus.SMALL)
            once = min(timeit.repeat(step, number=1, repeat=5))
            calls = 1 + int(PASSING_SECONDS / once)
            return timeit.timeit(step, number=calls) / calls

    def offload(self, run: int, *, memory: bool) -> dict[str, Any]:
        """Offload the text into a new folder. Return what it took, and what the conversation holds."""
        with self._open() as system:  # deleted at once, so that no run waits for another's dirty pages
            step = system.offloading(self._fresh(run))
            left: list[str] = []
            taken = self._measured(lambda: left.append(step()), memory=memory)
            if len(left[0]) > len(self._text) * STORED_SHARE:
                msg = "leaves it in the conversation"
                raise Missing(msg)
            stored = sum(path.stat().st_size for path in system.folder.rglob("*") if path.is_file())
            if system.stores and stored < len(self._text) * STORED_SHARE:
                msg = "does not store it"
                raise Missing(msg)
            return {"taken": taken, "left": left[0]}

    def cpu(self, rounds: int) -> float:
        """Return the median CPU time of offloading the text, over all threads, each time into a new folder."""
        taken = []
        for _ in range(rounds):
            with self._open() as system:
                system.offloading(corpus.SMALL * 20)()  # creates folders and starts threads, once per storage
                step = system.offloading(self._text)
                gc.collect()
                started = time.process_time()
                step()
                taken.append(time.process_time() - started)
        return median(taken)

    def keep(self) -> None:
        """Offload the text for finding and reading, and drop it from memory."""
        if self._make.cannot_read:
            raise Missing(self._make.cannot_read)
        self._kept = self._make(self._new_folder())
        self._kept.offloading(self._fresh(1))()
        self._text = ""

    def find(self, pattern: str, *, memory: bool) -> float:
        """Find the odd line in the kept content."""
        return self._read_back(lambda system: system.find(pattern), corpus.LITERAL, memory=memory)

    def read(self, first: int, last: int, expected: str, *, memory: bool) -> float:
        """Read lines of the kept content. ``expected`` is in the first of them."""
        return self._read_back(lambda system: system.read(first, last), expected, memory=memory)

    def _read_back(self, ask: Callable[[System], str], expected: str, *, memory: bool) -> float:
        kept = self._kept
        assert kept is not None, "nothing is kept"
        answers: list[str] = []
        taken = self._measured(lambda: answers.append(ask(kept)), memory=memory)
        if expected not in answers[0]:
            msg = "does not find it"
            raise Missing(msg)
        return taken

    def agents(self, count: int, run: int) -> dict[str, float]:
        """Offload the text for ``count`` agents at once in one loop. Return what it took, and how late the loop was."""
        with self._open() as system:
            texts = [self._fresh(run * count + number) for number in range(count)]

            async def all_at_once() -> dict[str, float]:
                gc.collect()  # garbage from the setup would be collected during the measurement
                started = time.perf_counter()
                async with watched_loop() as loop:
                    await asyncio.gather(*(system.aoffload(text) for text in texts))
                    taken = time.perf_counter() - started
                return {"taken": taken, "longest": loop.longest, "percentile 99": loop.percentile_99}

            return asyncio.run(all_at_once())

    def stores(self, count: int, samples: int, at_most_seconds: float) -> dict[str, Any]:
        """Store ``count`` small entries, or as many as fit into the time.

        Return the seconds of single stores around the hundredth entry and around the last one, measured in turn, and
        the number of entries stored in the end.
        """
        deadline = time.perf_counter() + at_most_seconds
        few: list[float] = []
        many: list[float] = []
        with self._open() as full:
            number = 0
            while number < count - samples and time.perf_counter() < deadline:
                full.storing(number, corpus.SMALL)()
                number += 1
            for _ in range(samples // FEW):
                with self._open() as fresh:  # new each time, so that it has few entries
                    for entry in range(FEW):
                        fresh.storing(entry, corpus.SMALL)()
                    for entry in range(FEW):
                        many.append(seconds(full.storing(number, corpus.SMALL)))
                        few.append(seconds(fresh.storing(FEW + entry, corpus.SMALL)))
                        number += 1
        return {"few": few, "many": many, "stored": number}

    @cached_property
    def _make(self) -> type[System]:
        return system_class(self._place)

    def _fresh(self, run: int) -> str:
        return corpus.fresh(self._text, kind=self._kind, run=run)

    @contextmanager
    def _open(self) -> Iterator[System]:
        folder = self._new_folder()
        try:
            yield self._make(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _new_folder(self) -> Path:
        self._opened += 1
        folder = self._folder / str(self._opened)
        folder.mkdir()
        return folder

    @staticmethod
    def _measured(call: Callable[[], object], *, memory: bool) -> float:
        gc.collect()
        if not memory:
            return seconds(call)
        with watched_memory() as watched:
            call()
        return float(watched.peak_bytes)


def serve(jobs: Jobs, answer: Callable[[str], object]) -> None:
    """Do jobs from standard input until it ends."""
    for line in sys.stdin:
        job = json.loads(line)
        try:
            answered = {"result": getattr(jobs, job.pop("job"))(**job)}
        except Missing as missing:
            answered = {"missing": str(missing)}
        except Exception as error:  # noqa: BLE001 - any exception counts as the system's answer
            answered = {"missing": f"fails: {type(error).__name__}: {error}"}
        answer(json.dumps(answered) + "\n")


def main() -> None:
    """Serve until standard input ends. What a system prints goes to standard error."""
    with tempfile.TemporaryDirectory() as folder, os.fdopen(os.dup(1), "w", buffering=1) as pipe:
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr), suppress(KeyboardInterrupt):
            serve(Jobs(sys.argv[1], Path(folder)), pipe.write)


if __name__ == "__main__":
    main()
