"""What a small result and an import cost: counted, not timed, because a busy machine slows everything down."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from agent_framework import Content, FunctionInvocationContext

import coatcheck_agent_framework
from benchmarks.hops import OURS, ROOT, walk
from coatcheck_agent_framework import ToolOffloader
from coatcheck_agent_framework.hook import OffloadMiddleware
from tests.adapters.agent_framework.agents import returning

MAX_FUNCTIONS = 9
"""That a small result passes."""

MAX_MODULES = 35
"""That are loaded after the framework, ours among them."""


def our_file(path: str) -> str | None:
    inside = Path(path).relative_to(ROOT).as_posix() if Path(path).is_relative_to(ROOT) else ""
    return inside if inside.startswith(OURS) else None


def test_a_small_result_passes_few_functions() -> None:
    _, hook = ToolOffloader().middleware
    assert isinstance(hook, OffloadMiddleware)
    context = FunctionInvocationContext(function=returning(""), arguments={})

    async def call_next() -> None:
        context.result = [Content.from_text("few words " * 100)]

    async def twice() -> None:
        for _ in range(2):
            await hook.process(context, call_next)

    way = walk(lambda: asyncio.run(twice()), our_file)

    assert 0 < len(way.functions) <= MAX_FUNCTIONS, list(way.functions)


def test_importing_it_after_the_framework_loads_little_else() -> None:
    script = (
        "import sys, agent_framework\nfrom agent_framework import Agent, ContextProvider\nbefore = set(sys.modules)\n"
        f"from {coatcheck_agent_framework.__name__} import ToolOffloader\nprint(*(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    loaded = {name for name in done.stdout.split() if not name.startswith("coatcheck")}
    assert not loaded & {"mcp", "openai", "tiktoken", "orjson", "jmespath", "re2", "agents", "langchain_core"}
    assert len(done.stdout.split()) <= MAX_MODULES, sorted(loaded)
