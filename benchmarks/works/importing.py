"""What an import costs that whoever has the framework has not paid already, each in a fresh interpreter."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from benchmarks.environments import CORE
from benchmarks.processes import surroundings

if TYPE_CHECKING:
    from benchmarks.bench import Bench

__all__ = ("ADDED", "FRAMEWORK", "WORK", "measure")

WORK = "import"
FRAMEWORK, ADDED = "the framework itself", "added"

_LANGCHAIN = "from langchain.agents import create_agent"
_STRANDS = "from strands import Agent"
_HAYSTACK = "from haystack.components.agents import Agent"

IMPORTS: dict[str, tuple[str, str, str]] = {
    "coatcheck": (CORE, "", "import coatcheck; coatcheck.Offloader, coatcheck.FileStorage"),
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
"""For each system its environment, what its users import anyway, and what they import for it."""

_SCRIPT = """
import time
started = time.perf_counter()
{framework}
between = time.perf_counter()
{added}
print(between - started, time.perf_counter() - between)
"""


def measure(bench: Bench) -> None:
    """Measure all systems of this run, in turns; the first import of each compiles its files and does not count."""
    chosen = {name: IMPORTS[name] for name in bench.processes.candidates if name in IMPORTS}
    seconds: dict[str, dict[str, list[float] | str]] = {FRAMEWORK: {}, ADDED: {}}
    for run in range(bench.scale.imports + 1):
        for name, (environment, framework, added) in chosen.items():
            if environment in bench.environments.reasons:
                seconds[ADDED][name] = bench.environments.reasons[environment]
                continue
            command = [bench.environments.pythons[environment], "-c", _SCRIPT.format(framework=framework, added=added)]
            said = subprocess.run(  # noqa: S603 - a fixed program
                command, env=surroundings(command[0]), check=False, capture_output=True, text=True
            )
            if said.returncode:
                seconds[ADDED][name] = f"fails: {said.stderr.strip().splitlines()[-1]}"
            elif run:
                taken = map(float, said.stdout.split()[-2:])
                for case, value in zip((FRAMEWORK, ADDED), taken, strict=True):
                    found = seconds[case].setdefault(name, [])
                    assert isinstance(found, list)
                    found.append(value)
    for case, by_system in seconds.items():
        bench.results.add_all(WORK, case, by_system)
