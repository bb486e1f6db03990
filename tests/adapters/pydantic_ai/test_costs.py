"""What a small result and an import cost: counted, not timed, because a busy machine slows everything down."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolDefinition

from coatcheck_pydantic_ai import ToolOffloader
from tests.adapters.costs import functions_passed, modules_loaded

if TYPE_CHECKING:
    from pydantic_ai import RunContext

MAX_FUNCTIONS = 8
"""The most of our functions that a small result may pass through. With so many, 1 KB takes 2.4 microseconds."""

MAX_MODULES = 33
"""The most modules, ours included, that may load after the framework. So many take as long as importing asyncio."""


def test_a_small_result_passes_through_few_functions() -> None:
    offload, few, context = ToolOffloader(), "few words " * 100, cast("RunContext[object]", SimpleNamespace(run_id="1"))
    call, definition = ToolCallPart("fetch"), ToolDefinition(name="fetch")

    async def give(_: object) -> str:
        return few

    async def call_tool() -> None:
        assert await offload.wrap_tool_execute(context, call=call, tool_def=definition, args={}, handler=give) is few

    passed = functions_passed(call_tool)

    assert 0 < len(passed) <= MAX_FUNCTIONS, passed


def test_importing_the_adapter_after_the_framework_loads_little_else() -> None:
    loaded = modules_loaded("from coatcheck_pydantic_ai import ToolOffloader", after="import pydantic_ai")

    assert not loaded & {"mcp", "tiktoken", "orjson", "jmespath", "re2"}
    assert len(loaded) <= MAX_MODULES, sorted(loaded)
