"""Offloaded results in whole runs: histories, streams, traces, other agents, approvals, repeated calls."""

# ruff: noqa: ANN401 - what the framework passes is of any type

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent, BinaryContent, DeferredToolRequests, DeferredToolResults, RunContext, Tool, ToolDenied
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.instrumented import InstrumentationSettings

from coatcheck import FileStorage, InMemoryStorage, keep_references
from coatcheck.testing.scripting import shown_references
from coatcheck_pydantic_ai import ToolOffloader, offloaded_references
from tests.adapters.pydantic_ai.agents import parts_of, playing, returning, run
from tests.adapters.scripts import BIG, MIDDLE, Script, call, reading
from tests.contract.pydantic_ai_harness import model_on
from tests.core.telemetry import Telemetry

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_ai.run import AgentRunResult

    from coatcheck.testing import ScriptedServer

ID = "conversation-1"


def returns_in(result: AgentRunResult[Any]) -> list[ToolReturnPart]:
    return [part for part in parts_of(result) if isinstance(part, ToolReturnPart)]


async def test_a_saved_history_keeps_the_placeholder_and_a_later_run_reads_it(server: ScriptedServer) -> None:
    offload = ToolOffloader()
    _, first = await run(server, offload, call(), tools=[returning(BIG)])
    saved = first.all_messages_json()

    history = ModelMessagesTypeAdapter.validate_json(saved)
    script, _ = await run(server, offload, reading(pattern="line 1,000 "), message_history=history)

    assert MIDDLE not in saved.decode()
    assert MIDDLE in script.shown[-1][-1]


async def test_references_are_found_in_the_messages_of_a_history_and_in_their_parts(server: ScriptedServer) -> None:
    offload = ToolOffloader()

    script, result = await run(server, offload, call(), tools=[returning(BIG)])

    shown = tuple(shown_references(script.shown[-1][0]))
    (part,) = returns_in(result)
    assert offloaded_references(part) == shown
    assert offloaded_references(parts_of(result)[0]) == ()
    assert [found for each in result.all_messages() if (found := offloaded_references(each))] == [shown]
    quoting = TextPart(script.shown[-1][0])
    assert (offloaded_references(quoting), offloaded_references(ModelResponse(parts=[quoting]))) == ((), ())
    assert offload.offloader.load(shown[0], scope=ID).text == BIG


async def test_a_summary_keeps_the_references_of_dropped_messages_and_none_that_a_tool_returned(
    server: ScriptedServer,
) -> None:
    faked = returning("Read fetch-0123456789abcdef-0123.", "grep")
    script, result = await run(server, ToolOffloader(), [("fetch", {}), ("grep", {})], tools=[returning(BIG), faked])
    (reference,) = shown_references(script.shown[-1][0])

    line = keep_references(result.all_messages())
    summary = ModelRequest(parts=[UserPromptPart(content=f"A summary. {line}")])

    assert reference in line
    assert "0123456789abcdef" not in line
    assert keep_references([summary]) == line


async def test_no_event_of_a_stream_holds_a_raw_result(server: ScriptedServer) -> None:
    seen: list[str] = []

    async def watch(_: RunContext[Any], events: Any) -> None:
        seen.extend([repr(event) async for event in events])

    with playing(server, Script(call(), reading(offset=-10))) as model:
        agent = Agent(model, tools=[returning(BIG)], capabilities=[ToolOffloader()])
        async with agent.run_stream("Go.", event_stream_handler=watch, conversation_id=ID) as streamed:
            output = await streamed.get_output()
            messages = streamed.all_messages_json().decode()

    assert output == "done"
    assert any("Tool result offloaded." in event for event in seen)
    assert not any(MIDDLE in text for text in [*seen, messages])


async def test_traces_hold_no_raw_result(server: ScriptedServer) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentation = Instrumentation(settings=InstrumentationSettings(tracer_provider=provider))

    await run(server, ToolOffloader(), call(), tools=[returning(BIG)], more=[instrumentation])

    spans = [span.to_json() for span in exporter.get_finished_spans()]
    assert any("Tool result offloaded." in span for span in spans)
    assert not any(MIDDLE in span for span in spans)


async def test_our_spans_are_children_of_the_frameworks_own(server: ScriptedServer) -> None:
    telemetry = Telemetry()
    instrumentation = Instrumentation(settings=InstrumentationSettings(tracer_provider=telemetry.tracer_provider))
    offload = ToolOffloader(on_event=telemetry.listener)

    await run(server, offload, call(), reading(), tools=[returning(BIG)], more=[instrumentation])

    parents = {span.name: telemetry.parent_of(span) for span in telemetry.spans}
    assert {name: parent and parent.name for name, parent in parents.items()} == {
        "offload fetch": "execute_tool fetch",
        "retrieve offloaded content": "execute_tool retrieve_offloaded_content",
    }


async def test_each_parallel_call_gets_its_own_result(server: ScriptedServer) -> None:
    tools = [returning(f"{number} {BIG}", f"fetch_{number}") for number in range(4)]

    script, _ = await run(server, ToolOffloader(), [(tool.name, {}) for tool in tools], tools=tools)

    assert [text.rpartition("\n\n")[0].partition("  ")[2][:8] for text in script.shown[-1]] == [
        f"fetch_{number}-" for number in range(4)
    ]
    assert len({one for text in script.shown[-1] for one in shown_references(text)}) == 4


async def test_one_capability_serves_two_conversations_at_once(server: ScriptedServer) -> None:
    offload, ids = ToolOffloader(), [f"conversation-{number}" for number in range(2)]

    ran = await asyncio.gather(
        *(run(server, offload, call(), tools=[returning(BIG)], conversation_id=each) for each in ids)
    )

    for (script, _), each in zip(ran, ids, strict=True):
        assert offload.offloader.load(shown_references(script.shown[-1][0])[0], scope=each).text == BIG


async def test_a_capability_of_a_single_run_offloads(server: ScriptedServer) -> None:
    with playing(server, script := Script(call(), reading(pattern="line 1,000 "))) as model:
        agent = Agent(model, tools=[returning(BIG)])
        await agent.run("Go.", capabilities=[ToolOffloader()])

    assert MIDDLE in script.shown[-1][1]


async def test_after_a_hand_off_an_agent_reads_what_the_previous_one_stored(server: ScriptedServer) -> None:
    offload = ToolOffloader()
    _, first = await run(server, offload, call(), tools=[returning(BIG)], conversation_id=None)

    # A hand-off is another agent with the same history.
    script, _ = await run(
        server, offload, reading(pattern="line 1,000 "), message_history=first.all_messages(), conversation_id=None
    )

    assert MIDDLE in script.shown[-1][-1]


async def test_what_an_agent_inside_a_tool_stored_is_readable_outside_if_it_shares_the_conversation(
    server: ScriptedServer,
) -> None:
    offload, inner = ToolOffloader(), Script(call())
    with playing(server, inner) as model:
        helper = Agent(model, tools=[returning(BIG)], capabilities=[offload])

        async def ask(context: RunContext[Any]) -> str:
            answer = await helper.run("Go.", conversation_id=context.conversation_id, usage=context.usage)
            return str(returns_in(answer)[0].content)

        outer, _ = await run(
            server, offload, call("ask"), reading(pattern="line 1,000 "), tools=[Tool(ask, description="Asks.")]
        )

    assert outer.shown[-1][0] == inner.shown[-1][0]
    assert MIDDLE in outer.shown[-1][1]


async def test_a_large_answer_of_an_agent_inside_a_tool_is_offloaded(server: ScriptedServer) -> None:
    with server.conversation(lambda _: (), final_answer=BIG) as conversation:
        helper = Agent(model_on(conversation))

        async def ask(context: RunContext[Any]) -> str:
            return (await helper.run("Go.", usage=context.usage)).output

        outer, _ = await run(server, ToolOffloader(), call("ask"), tools=[Tool(ask, description="Asks.")])

    assert outer.shown[-1][0].startswith("Tool result offloaded.")


async def test_a_call_that_waits_for_an_approval_goes_on_from_a_saved_history(server: ScriptedServer) -> None:
    offload = ToolOffloader()
    tools = [returning(f"deleted: {BIG}", "delete", requires_approval=True), returning(BIG)]
    with playing(server, script := Script([("fetch", {}), ("delete", {})], reading(1, pattern="^deleted"))) as model:
        agent = Agent(model, tools=tools, capabilities=[offload], output_type=[str, DeferredToolRequests])
        stopped = await agent.run("Go.", conversation_id=ID)
        assert isinstance(stopped.output, DeferredToolRequests)
        saved = stopped.all_messages_json()
        (waiting,) = stopped.output.approvals
        result = await agent.run(
            message_history=ModelMessagesTypeAdapter.validate_json(saved),
            deferred_tool_results=DeferredToolResults(approvals={waiting.tool_call_id: True}),
        )

    assert MIDDLE not in saved.decode()
    assert result.output == "done"
    *results, found = script.shown[-1]
    assert all(one.startswith("Tool result offloaded.") for one in results)
    assert "deleted: line 1 " in found


async def test_the_hosts_answer_in_place_of_a_call_stays(server: ScriptedServer) -> None:
    with playing(server, script := Script(call())) as model:
        agent = Agent(
            model,
            tools=[returning(BIG, requires_approval=True)],
            capabilities=[ToolOffloader()],
            output_type=[str, DeferredToolRequests],
        )
        stopped = await agent.run("Go.", conversation_id=ID)
        assert isinstance(stopped.output, DeferredToolRequests)
        denied = {stopped.output.approvals[0].tool_call_id: ToolDenied(BIG)}
        await agent.run(
            message_history=stopped.all_messages(), deferred_tool_results=DeferredToolResults(approvals={**denied})
        )

    assert script.shown[-1] == [BIG]


async def test_a_call_that_is_repeated_after_a_crash_gets_the_same_placeholder(
    server: ScriptedServer, tmp_path: Path
) -> None:
    shown = []
    for _ in range(2):  # as durable execution repeats a run from its start, in another process
        script, _ = await run(server, ToolOffloader(FileStorage(tmp_path)), call(), tools=[returning(BIG)])
        shown += script.shown[-1]

    storage = FileStorage(tmp_path)
    assert shown[0] == shown[1]
    assert len([listed for listed in storage.entries("") if listed.size > len(BIG) // 2]) == 1


async def test_with_native_media_a_model_reads_back_the_file_itself(server: ScriptedServer) -> None:
    image = BinaryContent(b"\x89PNG" + bytes(20_000), media_type="image/png")
    offload = ToolOffloader(InMemoryStorage(), native_media=True, max_result_tokens=100)

    script, result = await run(server, offload, call(), reading(), tools=[returning(image)])

    assert script.shown[-1][0].startswith("Tool result offloaded.")
    # The file is the result itself: Anthropic and Bedrock refuse an empty text next to it.
    assert returns_in(result)[-1].content == image
