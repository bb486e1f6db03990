"""What a small result and an import cost: counted, not timed, because a busy machine slows everything down."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from coatcheck_adk import OffloadPlugin
from tests.adapters.costs import functions_passed, modules_loaded
from tests.adapters.google_adk.agents import returning

MAX_FUNCTIONS = 17
"""That a small result passes before the tool and after it. Measured with these: 4 to 6 microseconds for 1 KB."""

MAX_MODULES = 34
"""That are loaded after the plugin's base class, ours among them, with the oldest ADK."""

TEXT = "few words " * 100


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

    async def call_tool() -> None:
        await plugin.before_tool_callback(**call)
        await plugin.after_tool_callback(**call, result=result)

    passed = functions_passed(call_tool)

    assert 0 < len(passed) <= MAX_FUNCTIONS, passed


def test_importing_it_after_adk_loads_little_else() -> None:
    base = "from google.adk.plugins.base_plugin import BasePlugin"

    loaded = modules_loaded("from coatcheck_adk import OffloadPlugin", after=base)

    assert not loaded & {"mcp", "tiktoken", "orjson", "jmespath", "re2"}
    assert len(loaded) <= MAX_MODULES, sorted(loaded)
