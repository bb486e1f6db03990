"""Who reads whose content: sessions, arguments, the ambient scope; a reference from another scope is unknown."""

# ruff: noqa: ANN401 - what the framework passes is of any type

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
from agent_framework import AgentSession, ContextProvider

import coatcheck
from coatcheck import RETRIEVAL_TOOL, InvalidRequest
from coatcheck.testing.scripting import shown_references
from coatcheck_agent_framework import ToolOffloader
from tests.adapters.agent_framework.agents import agent_on, playing, returning, run
from tests.adapters.scripts import BIG, MIDDLE, Script, call, reading

if TYPE_CHECKING:
    from coatcheck.testing import ScriptedServer

WANTED: dict[str, Any] = {"pattern": "line 1,000 "}


async def stored_and_read(
    server: ScriptedServer, offload: ToolOffloader, *, then: dict[str, Any], **more: Any
) -> tuple[str, str]:
    """Return the reference that one run stored, and what a second run with other options reads with it."""
    first = await run(server, offload, [returning(BIG)], call(), **more)
    reference = shown_references(first.shown[-1][0])[0]
    read = [(RETRIEVAL_TOOL, {"reference": reference, **WANTED})]
    second = await run(server, offload, [], read, **then)
    return reference, second.shown[-1][0]


async def test_the_session_of_a_run_is_the_scope(server: ScriptedServer) -> None:
    offload = ToolOffloader()

    reference, found = await stored_and_read(server, offload, then={"session": "conversation-1"})

    assert MIDDLE in found
    assert offload.offloader.load(reference, scope="conversation-1").text == BIG


async def test_a_session_that_was_saved_and_restored_still_reads_back(server: ScriptedServer) -> None:
    offload, session = ToolOffloader(), AgentSession(session_id="conversation-1")

    await run(server, offload, [returning(BIG)], call(), session=session)
    saved = session.to_dict()
    script = await run(server, offload, [], reading(**WANTED), session=AgentSession.from_dict(saved))

    assert MIDDLE not in str(saved)
    assert MIDDLE in script.shown[-1][-1]


async def test_another_session_reads_nothing(server: ScriptedServer) -> None:
    _, found = await stored_and_read(server, ToolOffloader(), then={"session": "conversation-2"})

    assert found.startswith("reference not found")


async def test_a_scope_callable_gets_the_context_of_the_call(server: ScriptedServer) -> None:
    offload = ToolOffloader(scope=lambda context: context.kwargs["tenant"])
    mine, others = ({"function_invocation_kwargs": {"tenant": tenant}} for tenant in ("t-7", "t-8"))

    reference, found = await stored_and_read(
        server, offload, options=mine, then={"options": mine, "session": "conversation-2"}
    )
    _, refused = await stored_and_read(server, offload, options=mine, then={"options": others})

    assert MIDDLE in found
    assert offload.offloader.load(reference, scope="t-7").text == BIG
    assert refused.startswith("reference not found")


async def test_the_ambient_scope_takes_precedence_over_the_session(server: ScriptedServer) -> None:
    offload = ToolOffloader()

    with coatcheck.scope("tenant-7"):
        script = await run(server, offload, [returning(BIG)], call(), reading(**WANTED))

    assert MIDDLE in script.shown[-1][1]
    assert offload.offloader.load(shown_references(script.shown[-1][0])[0], scope="tenant-7").text == BIG


class Memory(ContextProvider):
    """Some other context provider. With one, the framework makes a session when the host gives none."""


async def test_a_deep_copy_of_the_provider_reads_what_the_middleware_stored(server: ScriptedServer) -> None:
    offload = ToolOffloader()
    more = {"middleware": offload.middleware, "context_providers": [copy.deepcopy(offload)]}
    with playing(server, script := Script(call(), reading(**WANTED))) as client:
        agent = agent_on(client, None, [returning(BIG)], **more)
        await agent.run("Go.", session=agent.create_session(session_id="s-1"))

    placeholder, found = script.shown[-1]
    assert MIDDLE in found
    assert offload.offloader.load(shown_references(placeholder)[0], scope="s-1").text == BIG


@pytest.mark.parametrize("providers", [(), (Memory("memory"),)], ids=["alone", "next to another provider"])
async def test_without_a_session_the_default_scope_applies(
    server: ScriptedServer, providers: tuple[ContextProvider, ...]
) -> None:
    offload = ToolOffloader()
    more = {"session": None, "context_providers": [*providers, offload]}

    reference, found = await stored_and_read(server, offload, **more, then=more)

    assert MIDDLE in found
    assert offload.offloader.load(reference, scope="default").text == BIG


async def test_a_stream_has_the_scope_of_its_session(server: ScriptedServer) -> None:
    offload, script = ToolOffloader(), Script(call(), reading(**WANTED))
    with playing(server, script) as client:
        agent = agent_on(client, offload, [returning(BIG)])
        await agent.run("Go.", stream=True, session=agent.create_session(session_id="s-1")).get_final_response()

    placeholder, found = script.shown[-1]
    assert MIDDLE in found
    assert offload.offloader.load(shown_references(placeholder)[0], scope="s-1").text == BIG


async def test_middleware_that_a_run_adds_knows_the_session_too(server: ScriptedServer) -> None:
    offload, script = ToolOffloader(), Script(call())
    with playing(server, script) as client:
        agent = agent_on(client, None, [returning(BIG)], context_providers=[offload])
        session = agent.create_session(session_id="s-1")
        await agent.run("Go.", session=session, middleware=offload.middleware)

    assert offload.offloader.load(shown_references(script.shown[-1][0])[0], scope="s-1").text == BIG


async def test_a_failing_scope_callable_reads_nothing_and_the_agent_goes_on(server: ScriptedServer) -> None:
    offload = ToolOffloader(scope=lambda context: context.kwargs["tenant"])
    read = [(RETRIEVAL_TOOL, {"reference": "fetch-0123456789abcdef-0123"})]

    script = await run(server, offload, [returning(BIG)], call(), read)

    assert script.shown[-1][0] == BIG
    assert "internal error" in script.shown[-1][1]


def test_an_invalid_scope_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="scope"):
        ToolOffloader(scope=7)  # type: ignore[arg-type]


def test_a_flag_that_is_no_boolean_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="native_media must be True or False, not 'false'"):
        ToolOffloader(native_media="false")  # type: ignore[arg-type]
