"""What an import costs beyond what the framework's users pay anyway, each in a fresh interpreter."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from benchmarks.environments import CORE
from benchmarks.processes import surroundings
from benchmarks.systems import OURS

if TYPE_CHECKING:
    from benchmarks.bench import Bench

__all__ = ("ADDED", "ALONE", "FRAMEWORK", "WORK", "imported", "measure")

WORK = "import"
FRAMEWORK, ALONE, ADDED = "the framework itself", "`import coatcheck`", "added"

_LANGCHAIN = "from langchain.agents import create_agent"
_STRANDS = "from strands import Agent"
_HAYSTACK = "from haystack.components.agents import Agent"

IMPORTS: dict[str, tuple[str, str, str]] = {
    "coatcheck": (CORE, "", "from coatcheck import FileStorage, Offloader"),
    "coatcheck in LangChain": ("langgraph", _LANGCHAIN, "from coatcheck_langchain import OffloadMiddleware"),
    "deepagents": ("langgraph", _LANGCHAIN, "from deepagents.middleware.filesystem import FilesystemMiddleware"),
    "coatcheck in Strands": ("strands", _STRANDS, "from coatcheck_strands import ContextOffloader"),
    "Strands": ("strands", _STRANDS, "from strands.vended_plugins.context_offloader import ContextOffloader"),
    "coatcheck in Haystack": ("haystack", _HAYSTACK, "from coatcheck_haystack import ToolResultOffloadHook"),
    "Haystack": ("haystack", _HAYSTACK, "from haystack.hooks.tool_result_offloading import ToolResultOffloadHook"),
    "ctxtual": ("ctxtual", "from fastmcp import FastMCP", "from ctxtual.mcp import Offload"),
    "tooltrim": ("tooltrim", "", "from tooltrim import ToolCompressor"),
    "headroom": ("headroom", "", "from headroom import compress"),
}
"""For each system: its environment, what its users import anyway, and what they import for it."""

_SCRIPT = """
import time
started = time.perf_counter()
{framework}
before = time.perf_counter()
{alone}
between = time.perf_counter()
{added}
print(before - started, between - before, time.perf_counter() - before)
"""


def measure(bench: Bench) -> None:
    """Measure all systems of this run, in turn. The first import of each compiles its files and does not count."""
    chosen = {name: IMPORTS[name] for name in bench.processes.candidates if name in IMPORTS}
    seconds: dict[str, dict[str, list[float] | str]] = {FRAMEWORK: {}, ALONE: {}, ADDED: {}}
    for run in range(bench.scale.imports + 1):
        for name, (environment, framework, added) in chosen.items():
            if environment in bench.environments.reasons:
                seconds[ADDED][name] = bench.environments.reasons[environment]
                continue
            alone = "import coatcheck" if name == OURS else ""  # what a user waits for who writes only this
            taken = imported(bench.environments.pythons[environment], framework, alone=alone, added=added)
            if isinstance(taken, str):
                seconds[ADDED][name] = taken
            elif run:
                for case, value in taken.items():
                    if case != ALONE or alone:
                        found = seconds[case].setdefault(name, [])
                        assert isinstance(found, list)
                        found.append(value)
    for case, by_system in seconds.items():
        bench.results.add_all(WORK, case, by_system)


def imported(python: str, framework: str, *, alone: str, added: str) -> dict[str, float] | str:
    """Return the seconds of each case, or why there are none. Those of ``added`` include those of ``alone``."""
    script = _SCRIPT.format(framework=framework, alone=alone, added=added)
    env = surroundings(python)
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # with it, each import would compile all our files again
    said = subprocess.run([python, "-c", script], env=env, check=False, capture_output=True, text=True)  # noqa: S603 - a fixed program
    if said.returncode:
        return f"fails: {said.stderr.strip().splitlines()[-1]}"
    return dict(zip((FRAMEWORK, ALONE, ADDED), map(float, said.stdout.split()[-3:]), strict=True))
