"""The processes of the systems, and asking them in turns. What a job does is in ``worker``."""

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
"""A job that takes longer is given up, and its process ended."""

QUIET = {
    "HAYSTACK_TELEMETRY_ENABLED": "False",
    "HEADROOM_OFFLINE": "1",
    "HEADROOM_TELEMETRY": "off",
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "NO_PROXY": "127.0.0.1,localhost",
    "OTEL_SDK_DISABLED": "true",
}
"""No system sends or fetches anything, whatever the environment says: the network is not what is measured."""

ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "2500000", "MALLOC_TRIM_THRESHOLD_": "64000000"}
"""Bytes. The C library asks the system for each block from 2.5 MB up, and gives it back; smaller ones are used again.

Left to itself, it begins like that and adapts to the blocks that it meets. A copy of 10 MB then takes half a
millisecond where such a block is left over from before, and 2 to 6 where none is. Which of the two a system meets
depends on what ran before it, and on which thread."""


def surroundings(python: str) -> dict[str, str]:
    """Return the environment variables of a process. A program that a system brings is found next to its Python."""
    path = os.pathsep.join([str(Path(python).parent), os.environ.get("PATH", "")])
    return {**os.environ, **QUIET, **ALLOCATOR, "PATH": path, "PYTHONPATH": os.fspath(ROOT), "PYTHONUTF8": "1"}


class Process:
    """The process of one system; or, where it cannot run, the reason in its place."""

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
        """Have a job done.

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
        """End the process; whatever it is asked from now on, the reason is the answer."""
        self._reason = reason
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


class Processes:
    """One process for each system, started when first asked for; all of them end with the block."""

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
        """Return the processes of the systems in the order of the tables, with or without our adapters and variants."""
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
