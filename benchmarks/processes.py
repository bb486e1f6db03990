"""The processes of the systems, and how to send them jobs. ``worker`` does the jobs."""

from __future__ import annotations

import json
import os
import select
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.systems.system import Missing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.environments import Environments
    from benchmarks.systems import Candidate

__all__ = ("Process", "Processes", "surroundings")

ROOT = Path(__file__).parents[1]

ANSWER_SECONDS = 120.0
"""The longest time for a job. If it takes longer, its process is ended."""

QUIET = {
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "HEADROOM_OFFLINE": "1",
    "HEADROOM_TELEMETRY": "off",
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "NO_PROXY": "127.0.0.1,localhost",
    "OTEL_SDK_DISABLED": "true",
}
"""Keeps systems from sending or fetching anything, whatever the environment says. The network is not measured."""

ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "2500000", "MALLOC_TRIM_THRESHOLD_": "64000000"}
"""Bytes. The C library requests each block from 2.5 MB up from the kernel and returns it, and reuses smaller ones.

By default, it starts like that and adapts to the blocks it sees. A copy of 10 MB then takes half a millisecond if such
a block is left over, and 2 to 6 if not. Which of the two happens depends on what ran before, and on which thread."""


def surroundings(python: str) -> dict[str, str]:
    """Return a process's environment variables. ``PATH`` leads to programs that a system puts next to its Python."""
    path = os.pathsep.join([str(Path(python).parent), os.environ.get("PATH", "")])
    return {**os.environ, **QUIET, **ALLOCATOR, "PATH": path, "PYTHONPATH": os.fspath(ROOT), "PYTHONUTF8": "1"}


class Process:
    """The process of one system or, if it cannot run, the reason."""

    def __init__(self, name: str, place: str, *, python: str | None, reason: str, variables: Mapping[str, str]) -> None:
        self.name = name
        self._reason = reason
        self._process: subprocess.Popen[bytes] | None = None
        if python is not None:
            self._process = subprocess.Popen(  # noqa: S603 - this project's own program
                [python, "-m", "benchmarks.worker", place],
                env={**surroundings(python), **variables},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if os.environ.get("BENCHMARKS_LOUD") else subprocess.DEVNULL,
            )

    def ask(self, job: str, **arguments: object) -> Any:  # noqa: ANN401 - what the job returns
        """Have the process do a job.

        Raises:
            Missing: the system cannot do it, failed, took too long, or does not run.

        """
        if self._process is None or self._process.stdin is None or self._process.stdout is None:
            raise Missing(self._reason)
        try:
            self._process.stdin.write(json.dumps({"job": job, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
            if not select.select([self._process.stdout], [], [], ANSWER_SECONDS)[0]:
                self.end(f"gave up after {ANSWER_SECONDS:.0f} s")
                raise Missing(self._reason)
            answer = json.loads(self._process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError) as error:
            self.end("its process ended")
            raise Missing(self._reason) from error
        if "missing" in answer:
            raise Missing(answer["missing"])
        return answer["result"]

    def end(self, reason: str = "its process has ended") -> None:
        """End the process. From now on, it answers every job with the reason."""
        self._reason = reason
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


class Processes:
    """One process for each system, started when first needed. All of them end with the block."""

    def __init__(
        self,
        candidates: Mapping[str, Candidate],
        environments: Environments,
        *,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.candidates = candidates
        self._environments = environments
        self._variables = variables or {}
        self._running: dict[str, Process] = {}

    def __enter__(self) -> Processes:  # noqa: PYI034 - nobody subclasses this
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            process.end()

    def all(self, *, adapters: bool = True, variants: bool = False) -> list[Process]:
        """Return the systems' processes in the order of the tables, with or without our adapters and the variants."""
        return [
            self.of(name)
            for name, candidate in self.candidates.items()
            if (adapters or not candidate.rival) and (variants or not candidate.variant)
        ]

    def of(self, name: str) -> Process:
        """Return the process of a system."""
        if name not in self._running:
            candidate = self.candidates[name]
            self._running[name] = Process(
                name,
                candidate.place,
                python=self._environments.pythons.get(candidate.environment),
                reason=self._environments.reasons.get(candidate.environment, ""),
                variables=self._variables,
            )
        return self._running[name]
