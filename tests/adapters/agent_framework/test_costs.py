"""What a small result and an import cost: counted, not timed, because a busy machine slows everything down."""

from __future__ import annotations

from agent_framework import Content, FunctionInvocationContext

from coatcheck_agent_framework import ToolOffloader
from coatcheck_agent_framework.hook import OffloadMiddleware
from tests.adapters.agent_framework.agents import returning
from tests.adapters.costs import functions_passed, modules_loaded

MAX_FUNCTIONS = 9
"""The most of our functions that a small result may pass through."""

MAX_MODULES = 35
"""The most modules, ours included, that may load after the framework."""


def test_a_small_result_passes_through_few_functions() -> None:
    _, hook = ToolOffloader().middleware
    assert isinstance(hook, OffloadMiddleware)
    context = FunctionInvocationContext(function=returning(""), arguments={})

    async def call_next() -> None:
        context.result = [Content.from_text("few words " * 100)]

    passed = functions_passed(lambda: hook.process(context, call_next))

    assert 0 < len(passed) <= MAX_FUNCTIONS, passed


def test_importing_the_adapter_after_the_framework_loads_little_else() -> None:
    classes = "from agent_framework import Agent, ContextProvider"

    loaded = modules_loaded("from coatcheck_agent_framework import ToolOffloader", after=classes)

    assert not loaded & {"mcp", "openai", "tiktoken", "orjson", "jmespath", "re2", "agents", "langchain_core"}
    assert len(loaded) <= MAX_MODULES, sorted(loaded)
