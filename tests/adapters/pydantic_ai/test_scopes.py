"""Who reads whose content: conversations, arguments, the ambient scope; a reference from another scope is unknown."""

# ruff: noqa: ANN401 - what the framework passes is of any type

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import ModelMessagesTypeAdapter

import coatcheck
from coatcheck import RETRIEVAL_TOOL
from coatcheck.testing.scripting import shown_references
from coatcheck_pydantic_ai import ToolOffloader
from tests.adapters.pydantic_ai.agents import returning, run
from tests.adapters.scripts import BIG, MIDDLE, call, reading

if TYPE_CHECKING:
    from coatcheck.testing import ScriptedServer

WANTED: dict[str, Any] = {"pattern": "line 1,000 "}


async def stored_and_read(
    server: ScriptedServer, offload: ToolOffloader, *, then: dict[str, Any], **options: Any
) -> tuple[str, str]:
    """Return the reference that one run stored, and what a second run with other options reads with it."""
    first, _ = await run(server, offload, call(), tools=[returning(BIG)], **options)
    reference = shown_references(first.shown[-1][0])[0]
    second, _ = await run(server, offload, [(RETRIEVAL_TOOL, {"reference": reference, **WANTED})], **then)
    return reference, second.shown[-1][0]


async def test_the_conversation_of_a_run_is_the_scope(server: ScriptedServer) -> None:
    offload = ToolOffloader()

    reference, found = await stored_and_read(server, offload, then={})

    assert MIDDLE in found
    assert offload.offloader.load(reference, scope="conversation-1").text == BIG


async def test_another_conversation_reads_nothing(server: ScriptedServer) -> None:
    _, found = await stored_and_read(server, ToolOffloader(), then={"conversation_id": "conversation-2"})

    assert "reference not found" in found


async def test_runs_without_an_id_share_nothing_and_store_nothing_in_the_default_scope(server: ScriptedServer) -> None:
    offload = ToolOffloader()

    _, found = await stored_and_read(server, offload, conversation_id=None, then={"conversation_id": None})

    assert "reference not found" in found
    assert not offload.offloader.delete_scope("default")


async def test_with_an_empty_id_a_result_is_stored_in_the_default_scope(server: ScriptedServer) -> None:
    offload = ToolOffloader()

    reference, found = await stored_and_read(server, offload, conversation_id="", then={"conversation_id": ""})

    assert MIDDLE in found
    assert offload.offloader.load(reference, scope="default").text == BIG


async def test_a_restored_history_is_the_same_conversation_even_if_the_host_gives_no_id(
    server: ScriptedServer,
) -> None:
    offload = ToolOffloader()
    _, first = await run(server, offload, call(), tools=[returning(BIG)], conversation_id=None)
    history = ModelMessagesTypeAdapter.validate_json(first.all_messages_json())

    script, _ = await run(server, offload, reading(**WANTED), conversation_id=None, message_history=history)

    assert MIDDLE in script.shown[-1][-1]


async def test_a_scope_callable_gets_the_context_of_the_run(server: ScriptedServer) -> None:
    offload = ToolOffloader(scope=lambda context: context.deps["tenant"])
    other = {"conversation_id": "conversation-2"}

    reference, found = await stored_and_read(
        server, offload, deps={"tenant": "t-7"}, then={"deps": {"tenant": "t-7"}, **other}
    )
    _, refused = await stored_and_read(server, offload, deps={"tenant": "t-7"}, then={"deps": {"tenant": "t-8"}})

    assert MIDDLE in found
    assert offload.offloader.load(reference, scope="t-7").text == BIG
    assert "reference not found" in refused


async def test_the_ambient_scope_takes_precedence_over_the_conversation(server: ScriptedServer) -> None:
    offload = ToolOffloader()

    with coatcheck.scope("tenant-7"):
        script, _ = await run(server, offload, call(), reading(**WANTED), tools=[returning(BIG)])

    assert MIDDLE in script.shown[-1][1]
    assert offload.offloader.load(shown_references(script.shown[-1][0])[0], scope="tenant-7").text == BIG


async def test_a_failing_scope_callable_reads_nothing_and_the_agent_goes_on(server: ScriptedServer) -> None:
    offload = ToolOffloader(scope=lambda context: context.deps["tenant"])
    read = [(RETRIEVAL_TOOL, {"reference": "fetch-0123456789abcdef-0123"})]

    script, _ = await run(server, offload, call(), read, tools=[returning(BIG)], deps={})

    assert script.shown[-1][0] == BIG
    assert "internal error" in script.shown[-1][1]
