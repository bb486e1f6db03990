"""Offloaded results in whole runs: sessions, streams, parallel calls, agents as tools, handoffs."""

from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from agent_framework import AgentSession, Content, Message
from agent_framework.orchestrations import ConcurrentBuilder, HandoffBuilder, SequentialBuilder

import coatcheck
from coatcheck import RETRIEVAL_TOOL, keep_references
from coatcheck.testing.scripting import shown_references
from coatcheck_agent_framework import ToolOffloader, offloaded_references
from tests.adapters.agent_framework.agents import agent_on, playing, results_in, returning, run
from tests.adapters.scripts import BIG, MIDDLE, Script, call, reading
from tests.contract.agent_framework_harness import client_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coatcheck.testing import Received, ScriptedServer


async def test_references_are_found_in_messages_and_in_a_session(server: ScriptedServer) -> None:
    offload, script = ToolOffloader(), Script(call())
    with playing(server, script) as client:
        agent = agent_on(client, offload, [returning(BIG)])
        session = agent.create_session(session_id="conversation-1")
        response = await agent.run("Go.", session=session)

    shown = tuple(shown_references(script.shown[-1][0]))
    (result,) = results_in(response.messages)
    (saved,) = (value["messages"] for value in session.to_dict()["state"].values() if "messages" in value)
    assert offloaded_references(result) == shown
    for messages in (response.messages, saved):
        assert [found for each in messages if (found := offloaded_references(each))] == [shown]
    assert [found for each in saved for part in each["contents"] if (found := offloaded_references(part))] == [shown]
    assert shown[0] in keep_references(response.messages)
    assert keep_references(saved) == keep_references(response.messages)
    quoting = Content.from_text(script.shown[-1][0])
    assert (offloaded_references(quoting), offloaded_references(Message("assistant", [quoting]))) == ((), ())
    assert offload.offloader.load(shown[0], scope="conversation-1").text == BIG


@pytest.mark.parametrize("is_text", [True, False], ids=["text", "output"])
async def test_no_part_of_a_session_holds_the_output_of_a_command(server: ScriptedServer, is_text: bool) -> None:
    wrote: dict[str, Any] = {"stdout": BIG, "stderr": "", "exit_code": 3, "timed_out": False}
    said = {**wrote, "truncated": False}
    item = Content.from_text(BIG, additional_properties=said) if is_text else Content.from_shell_command_output(**wrote)
    script, session = Script(call(), reading(pattern="line 1,000 ")), AgentSession(session_id="conversation-1")
    with playing(server, script) as client:
        response = await agent_on(client, ToolOffloader(), [returning([item])]).run("Go.", session=session)

    shown, found = script.shown[-1]
    (result, _) = results_in(response.messages)
    assert result.items[0].additional_properties == {**said, "stdout": shown}
    assert "line 500 of 2,000" not in json.dumps(session.to_dict())
    assert MIDDLE in found


async def test_a_reference_that_a_tool_returned_is_not_taken_for_ours(server: ScriptedServer) -> None:
    with playing(server, Script(call())) as client:
        response = await agent_on(client, None, [returning("fetch-0123456789abcdef-0123")]).run("Go.")

    assert keep_references(response.messages) == ""
    assert offloaded_references(results_in(response.messages)[0]) == ()


async def test_a_stream_shows_no_raw_result(server: ScriptedServer) -> None:
    script = Script(call(), reading(offset=-10))
    with playing(server, script) as client:
        stream = agent_on(client, ToolOffloader(), [returning(BIG)]).run("Go.", stream=True)
        seen = [str(item.to_dict()) async for update in stream for item in update.contents]
        response = await stream.get_final_response()

    assert any("Tool result offloaded." in text for text in seen)
    assert not any(MIDDLE in text for text in [*seen, str(response.to_dict())])
    assert response.text == "done"


async def test_each_parallel_call_gets_its_own_result(server: ScriptedServer) -> None:
    tools = [returning(f"{number} {BIG}", f"fetch_{number}") for number in range(4)]

    script = await run(server, ToolOffloader(), tools, [(tool.name, {}) for tool in tools])

    references = [shown_references(text)[0] for text in script.shown[-1]]
    assert [reference[:8] for reference in references] == [f"fetch_{number}-" for number in range(4)]
    assert len(set(references)) == 4


async def found_by(server: ScriptedServer, offload: ToolOffloader, number: int) -> str:
    """Run a conversation. Return what its agent reads back from its own tool's result, and what it lists."""
    session, script = f"conversation-{number}", Script(call(), reading(pattern="tenant"), [(RETRIEVAL_TOOL, {})])
    with playing(server, script) as client:
        agent = agent_on(client, offload, [returning(f"tenant {number}.\n{BIG}")])
        await agent.run("Go.", session=AgentSession(session_id=session))
    assert len(script.shown[-1]) == 3
    return "".join(script.shown[-1][1:])


async def test_concurrent_conversations_read_and_list_only_their_own_content(server: ScriptedServer) -> None:
    offload = ToolOffloader()

    found = await asyncio.gather(*(found_by(server, offload, number) for number in range(6)))

    assert [set(re.findall(r"tenant \d\.", text)) for text in found] == [{f"tenant {number}."} for number in range(6)]


async def test_one_tool_offloader_serves_agents_in_threads_each_with_its_own_event_loop(server: ScriptedServer) -> None:
    offload = ToolOffloader()

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda number: asyncio.run(found_by(server, offload, number)), range(4)))

    assert [set(re.findall(r"tenant \d\.", text)) for text in found] == [{f"tenant {number}."} for number in range(4)]


async def test_a_call_that_waits_for_an_approval_goes_on_from_a_saved_session(server: ScriptedServer) -> None:
    offload, script = ToolOffloader(), Script(call(), reading(pattern="^line 1,000 "))
    tools = [returning(BIG, approval_mode="always_require")]
    with playing(server, script) as client:
        agent = agent_on(client, offload, tools)
        session = agent.create_session(session_id="conversation-1")
        asked = (await agent.run("Go.", session=session)).user_input_requests
        saved = json.dumps(session.to_dict())
        answer = Message("user", [request.to_function_approval_response(approved=True) for request in asked])
        await agent_on(client, offload, tools).run(answer, session=AgentSession.from_dict(json.loads(saved)))

    placeholder, found = script.shown[-1]
    assert MIDDLE in found
    assert offload.offloader.load(shown_references(placeholder)[0], scope="conversation-1").text == BIG


@pytest.mark.parametrize("builder", [ConcurrentBuilder, SequentialBuilder])
async def test_no_event_of_a_workflow_holds_a_raw_result(server: ScriptedServer, builder: Any) -> None:  # noqa: ANN401
    offload, script = ToolOffloader(), Script(call(), call())
    with playing(server, script) as client, coatcheck.scope("conversation-1"):
        agents = [agent_on(client, offload, [returning(BIG)], name=name) for name in ("first", "second")]
        workflow = builder(participants=agents).build()
        events = [event async for event in workflow.run("Go.", stream=True)]

    data = [event.data for event in events]
    held = json.dumps(data, default=lambda each: each.to_dict() if hasattr(each, "to_dict") else vars(each))
    assert "Tool result offloaded." in held
    assert MIDDLE not in held


async def test_the_stream_of_an_agent_as_a_tool_holds_no_raw_result(server: ScriptedServer) -> None:
    seen: list[str] = []
    with playing(server, Script(call())) as client:
        helper = agent_on(client, ToolOffloader(), [returning(BIG)], name="helper")
        tool = helper.as_tool(name="ask", stream_callback=lambda update: seen.append(str(update.to_dict())))
        await run(server, None, [tool], call("ask", task="Go."))

    assert any("Tool result offloaded." in text for text in seen)
    assert not any(MIDDLE in text for text in seen)


@pytest.mark.parametrize("shares", [True, False], ids=["with the session", "with a session of its own"])
async def test_what_an_agent_as_a_tool_stored_is_readable_outside_only_if_it_shares_the_session(
    server: ScriptedServer, shares: bool
) -> None:
    offload, inner = ToolOffloader(), Script(call())

    def passing_on(_: Any) -> Any:  # noqa: ANN401 - as a turn
        reference = shown_references(inner.shown[-1][0])[0]
        return [(RETRIEVAL_TOOL, {"reference": reference, "pattern": "line 1,000 "})]

    with playing(server, inner) as client:
        helper = agent_on(client, offload, [returning(BIG)], name="helper")
        tool = helper.as_tool(name="ask", propagate_session=shares)
        outer = await run(server, offload, [tool], call("ask", task="Go."), passing_on)

    assert (MIDDLE in outer.shown[-1][1]) is shares
    assert outer.shown[-1][1].startswith("reference not found") is not shares


async def test_a_large_answer_of_an_agent_as_a_tool_is_offloaded(server: ScriptedServer) -> None:
    with server.conversation(lambda _: (), final_answer=BIG) as conversation:
        helper = agent_on(client_on(conversation), None, name="helper")
        outer = await run(server, ToolOffloader(), [helper.as_tool(name="ask")], call("ask", task="Go."))

    assert outer.shown[-1][0].startswith("Tool result offloaded.")


async def test_after_a_handoff_an_agent_reads_what_the_previous_one_stored_in_their_common_scope(
    server: ScriptedServer,
) -> None:
    offload = ToolOffloader()
    list_all: Any = [(RETRIEVAL_TOOL, {"reference": "*"})]

    def listed(received: Sequence[Received]) -> list[tuple[str, Any]]:
        (reference,) = re.findall(r"fetch-[0-9a-f]{16}-[0-9a-f]{4}", received[-1].text)
        return [(RETRIEVAL_TOOL, {"reference": reference, "pattern": "line 1,000 "})]

    script = Script(call(), call("handoff_to_billing"), list_all, listed)
    with playing(server, script) as client, coatcheck.scope("conversation-1"):
        triage, billing = (
            agent_on(client, offload, tools, name=name, require_per_service_call_history_persistence=True)
            for name, tools in {"triage": [returning(BIG)], "billing": []}.items()
        )
        workflow = HandoffBuilder(participants=[triage, billing]).with_start_agent(triage).build()
        events = [event async for event in workflow.run("Go.", stream=True)]

    assert any(event.type == "handoff_sent" for event in events)
    assert MIDDLE in script.shown[-1][-1]
