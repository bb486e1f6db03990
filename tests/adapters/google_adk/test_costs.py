"""What a small result and an import cost: counted, not timed, because a busy machine slows everything down."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from coatcheck_adk import OffloadPlugin
from tests.adapters.costs import functions_passed, modules_loaded
from tests.adapters.google_adk.agents import returning

MAX_FUNCTIONS = 17
"""The most of our functions that a small result may pass through, before and after the tool. With so many, 1 KB takes
4 to 6 microseconds."""

MAX_MODULES = 34
"""The most modules, ours included, that may load after the plugin's base class, with the oldest ADK."""

TEXT = "few words " * 100


@pytest.mark.parametrize(
    "result",
    [TEXT, {"result": TEXT}, {"status": "success", "rows": [{"id": 7, "text": TEXT}]}],
    ids=["str", "result", "rows"],
)
def test_a_small_result_passes_through_few_functions(result: object) -> None:
    plugin: Any = OffloadPlugin()
    session = SimpleNamespace(app_name="app", user_id="ada", id="1")
    context = SimpleNamespace(session=session, function_call_id="1")
    call: Any = {"tool": returning(result), "tool_args": {}, "tool_context": context}

    async def call_tool() -> None:
        await plugin.before_tool_callback(**call)
        await plugin.after_tool_callback(**call, result=result)

    passed = functions_passed(call_tool)

    assert 0 < len(passed) <= MAX_FUNCTIONS, passed


def test_importing_the_adapter_after_adk_loads_little_else() -> None:
    base = "from google.adk.plugins.base_plugin import BasePlugin"

    loaded = modules_loaded("from coatcheck_adk import OffloadPlugin", after=base)

    assert not loaded & {"mcp", "tiktoken", "orjson", "jmespath", "re2"}
    assert len(loaded) <= MAX_MODULES, sorted(loaded)
