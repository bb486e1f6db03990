"""What the newest adapters add to their frameworks' import time, and to a 1 KB result that stays.

    python -m benchmarks.frameworks           a table, in about two minutes
    python -m benchmarks.frameworks --check   exit with 1 if a goal is missed

Each framework is installed from the package index in its own environment. Imports alternate, each in a new process. A
call with our hook alternates with the same call without it. Everything runs on one thread that never waits, so CPU time
is measured, and the best run counts, because other load on the machine only adds time. Programs on other cores can
still slow this one down up to three times, so the import of asyncio is measured as a yardstick.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

from benchmarks.corpus import SMALL
from benchmarks.environments import prepare
from benchmarks.processes import surroundings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

__all__ = ("FRAMEWORKS", "Framework", "main", "passing")

PROCESSES = 15
ROUNDS = 31
CALLS = 1_000

YARDSTICK = "asyncio"

MAX_MILLISECONDS = 30.0
MAX_MICROSECONDS = 10.0

Ways: TypeAlias = "tuple[Callable[[], Awaitable[object]], Callable[[], Awaitable[object]]]"
"""Two ways to call a tool: without us, and with us."""

SCRIPT = """
from time import process_time
started = process_time()
{theirs}
before = process_time()
{ours}
print(before - started, process_time() - before)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """A framework: what its users import anyway, what they import from us, and how a result passes."""

    imports: str
    ours: str
    ways: Callable[[], Ways]


def in_openai_agents() -> Ways:
    """Return calls of a tool, and of the same tool wrapped by us."""
    from agents import FunctionTool  # noqa: PLC0415 - each framework has its own environment
    from agents.tool_context import ToolContext  # noqa: PLC0415

    from coatcheck_openai import ToolOffloader  # noqa: PLC0415

    async def give(_: object, __: str) -> str:
        return SMALL

    theirs = FunctionTool(name="f", description="", params_json_schema={}, on_invoke_tool=give)
    (ours, *_) = ToolOffloader().tools([theirs])
    assert isinstance(ours, FunctionTool)
    context: Any = ToolContext(context=None, tool_name="f", tool_call_id="1", tool_arguments="{}")
    return lambda: theirs.on_invoke_tool(context, "{}"), lambda: ours.on_invoke_tool(context, "{}")


def in_google_adk() -> Ways:
    """Return a call that does nothing, because ADK without plugins calls none, and a call of both our callbacks."""
    from google.adk.tools import FunctionTool  # noqa: PLC0415 - as above

    from coatcheck_adk import OffloadPlugin  # noqa: PLC0415

    plugin: Any = OffloadPlugin()
    session = SimpleNamespace(app_name="app", user_id="ada", id="1")
    call = {
        "tool": FunctionTool(lambda: None),
        "tool_args": {},
        "tool_context": SimpleNamespace(session=session, function_call_id="1"),
    }
    result = {"result": SMALL}

    async def without() -> None:
        pass

    async def passing_us() -> None:
        await plugin.before_tool_callback(**call)
        await plugin.after_tool_callback(**call, result=result)

    return without, passing_us


def in_pydantic_ai() -> Ways:
    """Return calls of a handler, and of our capability around it."""
    from pydantic_ai.messages import ToolCallPart  # noqa: PLC0415 - as above
    from pydantic_ai.tools import ToolDefinition  # noqa: PLC0415

    from coatcheck_pydantic_ai import ToolOffloader  # noqa: PLC0415

    async def give(_: object) -> str:
        return SMALL

    offload, context = ToolOffloader(), SimpleNamespace()
    call: Any = {"call": ToolCallPart("f"), "tool_def": ToolDefinition(name="f"), "args": {}, "handler": give}
    return lambda: give({}), lambda: offload.wrap_tool_execute(context, **call)  # type: ignore[arg-type] # a small result uses none of them


def in_agent_framework() -> Ways:
    """Return calls of the rest of a middleware chain, and of ours in front of it."""
    from agent_framework import Content, FunctionInvocationContext, FunctionTool  # noqa: PLC0415 - as above

    from coatcheck_agent_framework import ToolOffloader  # noqa: PLC0415

    hook: Any = ToolOffloader().middleware[-1]
    tool = FunctionTool(name="f", description="", func=lambda: SMALL)
    context, result = FunctionInvocationContext(function=tool, arguments={}), [Content.from_text(SMALL)]

    async def call_next() -> None:
        context.result = result

    return call_next, lambda: hook.process(context, call_next)


FRAMEWORKS = {
    "agent-framework": Framework(
        imports="from agent_framework import Agent",
        ours="from coatcheck_agent_framework import ToolOffloader",
        ways=in_agent_framework,
    ),
    "google-adk": Framework(
        imports="from google.adk.agents import LlmAgent\nfrom google.adk.runners import InMemoryRunner",
        ours="from coatcheck_adk import OffloadPlugin",
        ways=in_google_adk,
    ),
    "openai-agents": Framework(
        imports="from agents import Agent, Runner",
        ours="from coatcheck_openai import ToolOffloader",
        ways=in_openai_agents,
    ),
    "pydantic-ai": Framework(
        imports="from pydantic_ai import Agent",
        ours="from coatcheck_pydantic_ai import ToolOffloader",
        ways=in_pydantic_ai,
    ),
}


async def passing(ways: Ways, *, rounds: int = ROUNDS, calls: int = CALLS) -> float:
    """Return the seconds that we add to one call: the best round with us minus the best without."""

    async def seconds(way: Callable[[], Awaitable[object]]) -> float:
        started = time.process_time()
        for _ in range(calls):
            await way()
        return (time.process_time() - started) / calls

    without, with_us = zip(*[[await seconds(way) for way in ways] for _ in range(rounds)], strict=True)
    return min(with_us) - min(without)


def import_seconds(pythons: Mapping[str, str]) -> dict[str, list[float]]:
    """Return for each framework the seconds of its own import and of ours after it, each the best of all processes.

    The yardstick is included, without an import of ours.
    """
    scripts = {name: SCRIPT.format(theirs=one.imports, ours=one.ours) for name, one in FRAMEWORKS.items()}
    scripts[YARDSTICK] = SCRIPT.format(theirs="import asyncio", ours="")
    found: dict[str, list[list[float]]] = {name: [] for name in scripts}
    for run in range(PROCESSES + 1):
        for name, script in scripts.items():
            said = ask(pythons.get(name, sys.executable), "-c", script)
            if run:  # the first run compiles
                found[name].append([float(each) for each in said.split()])
    return {name: [min(column) for column in zip(*runs, strict=True)] for name, runs in found.items()}


def ask(python: str, *arguments: str) -> str:
    """Return what a process in a framework's environment prints."""
    env = surroundings(python)
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # with it, each import would compile all our files again
    command = [python, *arguments]
    return subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603 - a fixed program


def main() -> int:
    """Measure, print a table, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a goal is missed")
    parser.add_argument("--passing", choices=list(FRAMEWORKS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.passing:
        print(asyncio.run(passing(FRAMEWORKS[arguments.passing].ways())))
        return 0
    environments = prepare(FRAMEWORKS)
    for name, reason in environments.reasons.items():
        sys.exit(f"{name}: {reason}")
    imports = import_seconds(environments.pythons)
    yardstick, _ = imports.pop(YARDSTICK)
    missed = False
    print(
        "| extra | importing the framework | the adapter adds | it adds to a 1 KB result |\n| --- | --- | --- | --- |"
    )
    for name, (own, added) in imports.items():
        passed = 1e6 * float(ask(environments.pythons[name], "-m", "benchmarks.frameworks", "--passing", name))
        print(f"| `{name}` | {1e3 * own:,.0f} ms | {1e3 * added:.1f} ms | {passed:.1f} µs |")
        missed |= 1e3 * added > MAX_MILLISECONDS or passed > MAX_MICROSECONDS
    print(f"\n`import asyncio` took {1e3 * yardstick:.0f} ms in the same turns.")
    return int(arguments.check and missed)


if __name__ == "__main__":
    sys.exit(main())
