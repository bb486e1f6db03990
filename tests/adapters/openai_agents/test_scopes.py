"""Who reads whose content: groups, arguments, the ambient scope; a reference from another scope is unknown."""

# ruff: noqa: ANN401 - what the SDK passes is of any type

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from agents import function_tool
from agents.tool_context import ToolContext  # noqa: TC002 - the SDK evaluates the annotations of a tool

import coatcheck
from coatcheck import RETRIEVAL_TOOL
from coatcheck.testing.scripting import shown_references
from coatcheck_openai import ToolOffloader
from tests.adapters.openai_agents.agents import BIG, MIDDLE, call, config, reading, returning, run

if TYPE_CHECKING:
    from coatcheck.testing import ScriptedServer
    from tests.adapters.openai_agents.agents import Script

WANTED: dict[str, Any] = {"pattern": "line 1,000 "}


async def stored_and_read(
    server: ScriptedServer, offload: ToolOffloader, *, then: dict[str, Any], **more: Any
) -> tuple[str, str]:
    """Return the reference that one run stored, and what a second run with other options reads with it."""
    first = await run(server, offload.tools([returning(BIG)]), call(), **more)
    reference = shown_references(first.shown[-1][0])[0]
    read = [(RETRIEVAL_TOOL, {"reference": reference, **WANTED})]
    second = await run(server, offload.tools(), read, **then)
    return reference, second.shown[-1][0]


async def test_the_group_of_a_run_is_the_scope(server: ScriptedServer) -> None:
    offload = ToolOffloader()

    reference, found = await stored_and_read(server, offload, then={"run_config": config("conversation-1")})

    assert MIDDLE in found
    assert offload.offloader.load(reference, scope="conversation-1").text == BIG


async def test_another_group_reads_nothing(server: ScriptedServer) -> None:
    _, found = await stored_and_read(server, ToolOffloader(), then={"run_config": config("conversation-2")})

    assert found.startswith("reference not found")


async def test_a_scope_callable_gets_the_context_of_the_tool(server: ScriptedServer) -> None:
    offload = ToolOffloader(scope=lambda context: context.context["tenant"])
    run_config = config("conversation-2")

    reference, found = await stored_and_read(
        server, offload, context={"tenant": "t-7"}, then={"context": {"tenant": "t-7"}, "run_config": run_config}
    )
    _, refused = await stored_and_read(server, offload, context={"tenant": "t-7"}, then={"context": {"tenant": "t-8"}})

    assert MIDDLE in found
    assert offload.offloader.load(reference, scope="t-7").text == BIG
    assert refused.startswith("reference not found")


async def test_the_ambient_scope_takes_precedence_over_the_group(server: ScriptedServer) -> None:
    offload = ToolOffloader()

    with coatcheck.scope("tenant-7"):
        script = await run(server, offload.tools([returning(BIG)]), call(), reading(**WANTED))

    assert MIDDLE in script.shown[-1][1]
    assert offload.offloader.load(shown_references(script.shown[-1][0])[0], scope="tenant-7").text == BIG


async def test_without_a_group_the_default_scope_applies(server: ScriptedServer) -> None:
    offload = ToolOffloader()

    reference, found = await stored_and_read(
        server, offload, run_config=config(None), then={"run_config": config(None)}
    )

    assert MIDDLE in found
    assert offload.offloader.load(reference, scope="default").text == BIG


async def test_a_failing_scope_callable_reads_nothing_and_the_agent_goes_on(server: ScriptedServer) -> None:
    offload = ToolOffloader(scope=lambda context: context.context["tenant"])
    read = [(RETRIEVAL_TOOL, {"reference": "fetch-0123456789abcdef-0123"})]

    script = await run(server, offload.tools([returning(BIG)]), call(), read, context={})

    assert script.shown[-1][0] == BIG
    assert "internal error" in script.shown[-1][1]


async def ask_another_agent_with_the_config(server: ScriptedServer, offload: ToolOffloader, passed_on: Any) -> Script:
    return await run(server, offload.tools([returning(BIG)]), call(), run_config=passed_on)


async def ask_another_agent_in_the_ambient_scope(server: ScriptedServer, offload: ToolOffloader, _: Any) -> Script:
    with coatcheck.scope("conversation-1"):
        return await run(server, offload.tools([returning(BIG)]), call(), run_config=None)


@pytest.mark.parametrize(
    "ask_another_agent", [ask_another_agent_with_the_config, ask_another_agent_in_the_ambient_scope]
)
async def test_the_outer_agent_reads_what_a_run_inside_a_tool_stored_if_the_tool_passes_the_scope_on(
    ask_another_agent: Any, server: ScriptedServer
) -> None:
    offload = ToolOffloader(require_scope=True)

    @function_tool
    async def ask(context: ToolContext[Any]) -> str:
        inner = await ask_another_agent(server, offload, context.run_config)
        return str(inner.shown[-1][0])

    script = await run(server, offload.tools([ask]), call("ask"), reading(**WANTED))

    assert MIDDLE in script.shown[-1][1]
