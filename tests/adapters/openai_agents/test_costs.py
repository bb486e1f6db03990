"""What a small result and an import cost: counted, not timed, because a busy machine slows everything down."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import coatcheck_openai
from benchmarks.hops import OURS, ROOT, walk
from coatcheck_openai import ToolOffloader
from tests.adapters.openai_agents.agents import returning

MAX_FUNCTIONS = 7
"""That a small result passes. Measured with these: 3.6 microseconds for 1 KB."""

MAX_MODULES = 33
"""That are loaded after the SDK, ours among them. Measured with these: as long as importing asyncio."""


def our_file(path: str) -> str | None:
    inside = Path(path).relative_to(ROOT).as_posix() if Path(path).is_relative_to(ROOT) else ""
    return inside if inside.startswith(OURS) else None


def test_a_small_result_passes_few_functions() -> None:
    tool: Any = ToolOffloader().tools([returning("few words " * 100)])[0]

    async def twice() -> None:
        for _ in range(2):
            await tool.on_invoke_tool(None, "{}")

    way = walk(lambda: asyncio.run(twice()), our_file)

    assert 0 < len(way.functions) <= MAX_FUNCTIONS, list(way.functions)


def test_importing_it_after_the_sdk_loads_little_else() -> None:
    script = (
        "import sys, agents\nbefore = set(sys.modules)\n"
        f"from {coatcheck_openai.__name__} import ToolOffloader\nprint(*(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    loaded = {name for name in done.stdout.split() if not name.startswith("coatcheck")}
    assert not loaded & {"mcp", "tiktoken", "orjson", "jmespath", "re2"}
    assert len(done.stdout.split()) <= MAX_MODULES, sorted(loaded)
