"""What a small result and an import cost: counted, not timed, because a busy machine slows everything down."""

from __future__ import annotations

from typing import Any

from coatcheck_openai import ToolOffloader
from tests.adapters.costs import functions_passed, modules_loaded
from tests.adapters.openai_agents.agents import returning

MAX_FUNCTIONS = 7
"""The most of our functions that a small result may pass through. With so many, 1 KB takes 3.6 microseconds."""

MAX_MODULES = 33
"""The most modules, ours included, that may load after the SDK. So many take as long as importing asyncio."""


def test_a_small_result_passes_through_few_functions() -> None:
    tool: Any = ToolOffloader().tools([returning("few words " * 100)])[0]

    passed = functions_passed(lambda: tool.on_invoke_tool(None, "{}"))

    assert 0 < len(passed) <= MAX_FUNCTIONS, passed


def test_importing_the_adapter_after_the_sdk_loads_little_else() -> None:
    loaded = modules_loaded("from coatcheck_openai import ToolOffloader", after="import agents")

    assert not loaded & {"mcp", "tiktoken", "orjson", "jmespath", "re2"}
    assert len(loaded) <= MAX_MODULES, sorted(loaded)
