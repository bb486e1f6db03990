"""Offloaded results in whole runs: sessions, streams, hooks, handoffs, agents as tools, resumed states."""

# ruff: noqa: ANN401 - what the SDK passes is of any type

from __future__ import annotations

import json
import re
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from agents import (
    Agent,
    RunConfig,
    RunHooks,
    Runner,
    RunState,
    SQLiteSession,
    ToolGuardrailFunctionOutput,
    TracingProcessor,
    function_tool,
    set_trace_processors,
    set_tracing_disabled,
    tool_output_guardrail,
)
from agents.extensions import ToolOutputTrimmer
from agents.items import ToolCallOutputItem

from coatcheck import RETRIEVAL_TOOL, InMemoryStorage, keep_references
from coatcheck.replay.conversation import Result
from coatcheck.replay.formats import read_messages
from coatcheck.testing.scripting import shown_references
from coatcheck_openai import ToolOffloader, offloaded_references
from tests.adapters.openai_agents.agents import (
    BIG,
    MIDDLE,
    Script,
    call,
    config,
    playing,
    reading,
    returning,
    run,
    text_outputs,
)
from tests.contract.openai_agents_harness import model_on

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coatcheck.testing import Received, ScriptedServer


@pytest.fixture
def session() -> Iterator[SQLiteSession]:
    with closing(SQLiteSession("conversation-1")) as opened:
        yield opened


async def test_a_session_keeps_the_placeholder_and_a_later_run_reads_it(
    server: ScriptedServer, session: SQLiteSession
) -> None:
    offload = ToolOffloader()

    await run(server, offload.tools([returning(BIG)]), call(), session=session)
    kept = await session.get_items()
    script = await run(server, offload.tools(), reading(pattern="line 1,000 "), session=session)

    assert MIDDLE not in json.dumps(kept)
    assert MIDDLE in script.shown[-1][-1]


async def test_references_are_found_in_run_items_and_in_a_session(
    server: ScriptedServer, session: SQLiteSession
) -> None:
    offload, script = ToolOffloader(), Script(call())
    with playing(server, script) as model:
        agent = Agent(name="a", model=model, tools=offload.tools([returning(BIG)]))
        result = await Runner.run(agent, "Go.", session=session, run_config=config())

    shown = tuple(shown_references(script.shown[-1][0]))
    (item,) = (item for item in result.new_items if isinstance(item, ToolCallOutputItem))
    items = await session.get_items()
    assert offloaded_references(item) == shown
    assert [references for each in items if (references := offloaded_references(each))] == [shown]
    assert shown[0] in keep_references(items)
    quoting: Any = {"role": "assistant", "content": f"It says: {script.shown[-1][0]}"}
    assert offloaded_references(quoting) == ()
    recorded_as, parts = read_messages(items)
    assert recorded_as == "OpenAI Responses items"
    assert [part.result.tool_name for part in parts if isinstance(part, Result)] == ["fetch"]
    assert offload.offloader.load(shown[0], scope="conversation-1").text == BIG


async def test_a_stream_and_hooks_see_no_raw_result(server: ScriptedServer) -> None:
    ended: list[object] = []

    class Ends(RunHooks[Any]):
        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: object) -> None:
            ended.append(result)

    with playing(server, Script(call(), reading(offset=-10))) as model:
        agent = Agent(name="a", model=model, tools=ToolOffloader().tools([returning(BIG)]))
        result = Runner.run_streamed(agent, "Go.", hooks=Ends(), run_config=config())
        seen = [repr(event) async for event in result.stream_events()]

    assert any("Tool result offloaded." in event for event in seen)
    assert not any(MIDDLE in text for text in [*seen, *map(str, ended)])
    assert len(ended) == 2
    assert result.final_output == "done"


async def test_traces_hold_no_raw_result(server: ScriptedServer) -> None:
    spans: list[str] = []

    class Keeping(TracingProcessor):
        def on_trace_start(self, trace: Any) -> None: ...

        def on_trace_end(self, trace: Any) -> None: ...

        def on_span_start(self, span: Any) -> None: ...

        def on_span_end(self, span: Any) -> None:
            spans.append(json.dumps(span.export(), default=repr))

        def shutdown(self) -> None: ...

        def force_flush(self) -> None: ...

    set_trace_processors([Keeping()])
    set_tracing_disabled(
        disabled=False
    )  # whatever the environment says; only `Keeping` gets the spans, so nothing is sent
    try:
        await run(server, ToolOffloader().tools([returning(BIG)]), call(), run_config=RunConfig(group_id="a"))
    finally:
        set_trace_processors([])
        set_tracing_disabled(disabled=True)

    assert any("Tool result offloaded." in span for span in spans)
    assert not any(MIDDLE in span for span in spans)


async def test_each_parallel_call_gets_its_own_result(server: ScriptedServer) -> None:
    storage = InMemoryStorage()
    tools = [returning(f"{number} {BIG}", f"fetch_{number}") for number in range(4)]

    script = await run(server, ToolOffloader(storage).tools(tools), [(tool.name, {}) for tool in tools])

    assert [text.rpartition("\n\n")[0].partition("  ")[2][:8] for text in script.shown[-1]] == [
        f"fetch_{number}-" for number in range(4)
    ]
    assert len({one for text in script.shown[-1] for one in shown_references(text)}) == 4


async def test_after_a_handoff_an_agent_reads_what_the_previous_one_stored(server: ScriptedServer) -> None:
    offload = ToolOffloader()
    script = Script(call(), call("transfer_to_billing"), reading(pattern="line 1,000 "))
    with playing(server, script) as model:
        billing = Agent(name="billing", model=model, tools=offload.tools())
        triage = Agent(name="triage", model=model, tools=offload.tools([returning(BIG)]), handoffs=[billing])
        result = await Runner.run(triage, "Go.", run_config=config())

    assert result.last_agent is billing
    assert MIDDLE in script.shown[-1][-1]


async def test_an_agent_as_a_tool_shares_the_scope_and_its_placeholders_are_readable_outside(
    server: ScriptedServer,
) -> None:
    offload, inner = ToolOffloader(), Script(call())
    outer = Script(call("ask", input="Go."), reading(pattern="line 1,000 "))

    async def only_result(result: Any) -> str:
        return text_outputs(result.to_input_list())[0]

    with playing(server, inner) as inner_model, playing(server, outer) as outer_model:
        helper = Agent(name="helper", model=inner_model, tools=offload.tools([returning(BIG)]))
        ask = helper.as_tool("ask", "Asks.", custom_output_extractor=only_result)
        asking = Agent(name="a", model=outer_model, tools=offload.tools([ask]))
        await Runner.run(asking, "Go.", run_config=config())

    assert outer.shown[-1][0] == inner.shown[-1][0]
    assert MIDDLE in outer.shown[-1][1]


async def test_a_large_answer_of_an_agent_as_a_tool_is_offloaded(server: ScriptedServer) -> None:
    offload, outer = ToolOffloader(), Script(call("ask", input="Go."))
    with server.conversation(lambda _: (), final_answer=BIG) as conversation, playing(server, outer) as model:
        helper = Agent(name="helper", model=model_on(conversation, "responses"))
        asking = Agent(name="a", model=model, tools=offload.tools([helper.as_tool("ask", "Asks.")]))
        await Runner.run(asking, "Go.", run_config=config())

    assert outer.shown[-1][0].startswith("Tool result offloaded.")


async def test_an_approval_inside_an_agent_as_a_tool_stops_the_outer_run_which_then_resumes(
    server: ScriptedServer,
) -> None:
    @function_tool(needs_approval=True)
    async def delete() -> str:
        """Delete."""
        return f"deleted: {BIG}"

    offload, inner, outer = ToolOffloader(), Script(call("delete")), Script(call("ask", input="Go."))
    with playing(server, inner) as inner_model, playing(server, outer) as outer_model:
        helper = Agent(name="helper", model=inner_model, tools=offload.tools([delete]))
        ask = helper.as_tool("ask", "Asks.")
        asking = Agent(name="a", model=outer_model, tools=offload.tools([ask]))
        stopped = await Runner.run(asking, "Go.", run_config=config())
        state = stopped.to_state()
        (interruption,) = stopped.interruptions
        state.approve(interruption)
        result = await Runner.run(asking, state, run_config=config())

    assert result.final_output == "done"
    assert inner.shown[-1][0].startswith("Tool result offloaded.")
    assert outer.shown[-1] == ["done"]


async def test_an_output_guardrail_checks_what_the_model_sees(server: ScriptedServer) -> None:
    checked: list[str] = []

    @tool_output_guardrail
    def check(data: Any) -> ToolGuardrailFunctionOutput:
        checked.append(data.output)
        return ToolGuardrailFunctionOutput.allow()

    offload = ToolOffloader()
    offload.retrieval_tool.tool_output_guardrails = [check]
    tool = returning(BIG, tool_output_guardrails=[check])

    script = await run(server, offload.tools([tool]), call(), reading(pattern="line 1,000 "))

    assert checked == script.shown[-1]


async def test_a_run_resumes_from_a_state_that_was_saved_as_json(server: ScriptedServer) -> None:
    @function_tool(needs_approval=True)
    async def delete(count: int) -> str:
        """Delete."""
        return f"deleted {count}: {BIG}"

    offload = ToolOffloader()
    script = Script([("fetch", {}), ("delete", {"count": 5})], reading(1, pattern="^deleted 5"))
    with playing(server, script) as model:

        def agent() -> Agent:
            return Agent(name="a", model=model, tools=offload.tools([returning(BIG), delete]))

        stopped = await Runner.run(agent(), "Go.", run_config=config())
        saved = stopped.to_state().to_json()
        state = await RunState.from_json(agent(), json.loads(json.dumps(saved)))
        for interruption in state.get_interruptions():
            state.approve(interruption)
        result = await Runner.run(agent(), state, run_config=config())

    assert MIDDLE not in json.dumps(saved)
    assert result.final_output == "done"
    fetched, deleted, found = script.shown[-1]
    assert fetched.startswith("Tool result offloaded.")
    assert deleted.startswith("Tool result offloaded.")
    assert "deleted 5: line 1 " in found


def reading_what_is_left(received: Sequence[Received]) -> list[tuple[str, Any]]:
    (reference,) = re.findall(r"fetch-[0-9a-f]{16}-[0-9a-f]{4}", received[0].text)
    return [(RETRIEVAL_TOOL, {"reference": reference, "pattern": "line 1,000 "})]


async def test_the_sdks_trimmer_leaves_a_reference_that_can_be_read(
    server: ScriptedServer, session: SQLiteSession
) -> None:
    offload = ToolOffloader()
    trimming = config(call_model_input_filter=ToolOutputTrimmer(recent_turns=1))

    await run(server, offload.tools([returning(BIG)]), call(), session=session)
    script = await run(server, offload.tools(), reading_what_is_left, session=session, run_config=trimming)

    trimmed, found = script.shown[-1]
    assert trimmed.startswith("[Trimmed: ")
    assert len(trimmed) < 600
    assert MIDDLE in found
