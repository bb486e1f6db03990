"""What a small result and an import cost: counted, not timed, because a busy machine slows everything down."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition

import coatcheck_pydantic_ai
from benchmarks.hops import OURS, ROOT, walk
from coatcheck_pydantic_ai import ToolOffloader

if TYPE_CHECKING:
    from pydantic_ai import RunContext

MAX_FUNCTIONS = 8
"""That a small result passes. Measured with these: 2.4 microseconds for 1 KB."""

MAX_MODULES = 33
"""That are loaded after the framework, ours among them. Measured with these: as long as importing asyncio."""


def our_file(path: str) -> str | None:
    inside = Path(path).relative_to(ROOT).as_posix() if Path(path).is_relative_to(ROOT) else ""
    return inside if inside.startswith(OURS) else None


def test_a_small_result_passes_few_functions() -> None:
    offload, few, context = ToolOffloader(), "few words " * 100, cast("RunContext[object]", SimpleNamespace(run_id="1"))
    call, definition = ToolCallPart("fetch"), ToolDefinition(name="fetch")

    async def give(_: object) -> str:
        return few

    async def twice() -> None:
        for _ in range(2):
            assert (
                await offload.wrap_tool_execute(context, call=call, tool_def=definition, args={}, handler=give) is few
            )

    way = walk(lambda: asyncio.run(twice()), our_file)

    assert 0 < len(way.functions) <= MAX_FUNCTIONS, list(way.functions)


def test_importing_it_after_the_framework_loads_little_else() -> None:
    script = (
        "import sys, pydantic_ai\nbefore = set(sys.modules)\n"
        f"from {coatcheck_pydantic_ai.__name__} import ToolOffloader\nprint(*(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    loaded = {name for name in done.stdout.split() if not name.startswith("coatcheck")}
    assert not loaded & {"mcp", "tiktoken", "orjson", "jmespath", "re2"}
    assert len(done.stdout.split()) <= MAX_MODULES, sorted(loaded)
