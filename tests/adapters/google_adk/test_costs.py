"""What a small result and an import cost: counted, not timed, because a busy machine slows everything down."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import coatcheck_adk
from benchmarks.hops import OURS, ROOT, walk
from coatcheck_adk import OffloadPlugin
from tests.adapters.google_adk.agents import returning

MAX_FUNCTIONS = 17
"""That a small result passes before the tool and after it. Measured with these: 4 to 6 microseconds for 1 KB."""

MAX_MODULES = 34
"""That are loaded after the plugin's base class, ours among them, with the oldest ADK."""

TEXT = "few words " * 100


def our_file(path: str) -> str | None:
    inside = Path(path).relative_to(ROOT).as_posix() if Path(path).is_relative_to(ROOT) else ""
    return inside if inside.startswith(OURS) else None


@pytest.mark.parametrize(
    "result",
    [TEXT, {"result": TEXT}, {"status": "success", "rows": [{"id": 7, "text": TEXT}]}],
    ids=["str", "result", "rows"],
)
def test_a_small_result_passes_few_functions(result: object) -> None:
    plugin: Any = OffloadPlugin()
    session = SimpleNamespace(app_name="app", user_id="ada", id="1")
    context = SimpleNamespace(session=session, function_call_id="1")
    call: Any = {"tool": returning(result), "tool_args": {}, "tool_context": context}

    async def twice() -> None:
        for _ in range(2):
            await plugin.before_tool_callback(**call)
            await plugin.after_tool_callback(**call, result=result)

    way = walk(lambda: asyncio.run(twice()), our_file)

    assert 0 < len(way.functions) <= MAX_FUNCTIONS, list(way.functions)


def test_importing_it_after_adk_loads_little_else() -> None:
    script = (
        "import sys\nfrom google.adk.plugins.base_plugin import BasePlugin\nbefore = set(sys.modules)\n"
        f"from {coatcheck_adk.__name__} import OffloadPlugin\nprint(*(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    loaded = {name for name in done.stdout.split() if not name.startswith("coatcheck")}
    assert not loaded & {"mcp", "tiktoken", "orjson", "jmespath", "re2"}
    assert len(done.stdout.split()) <= MAX_MODULES, sorted(loaded)
