"""Offloaded results in whole runs: sessions, streams, other plugins, sub-agents, agents as tools."""

# ruff: noqa: ANN401 - what ADK passes is of any type

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents import ParallelAgent, RunConfig, SequentialAgent
from google.adk.agents.run_config import StreamingMode  # type: ignore[attr-defined] # where ADK's documentation has it
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.sessions import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.computer_use.base_computer import ComputerState
from google.adk.tools.computer_use.computer_use_tool import ComputerUseTool
from google.adk.tools.function_tool import FunctionTool

from coatcheck import RETRIEVAL_TOOL, InMemoryStorage
from coatcheck.testing.scripting import shown_references
from coatcheck_adk import OffloadPlugin, offloaded_references
from tests.adapters.google_adk.agents import (
    APP,
    CONVERSATION,
    SESSION,
    USER,
    Talk,
    playing,
    returning,
    run,
    texts_in,
)
from tests.adapters.scripts import BIG, MIDDLE, Script, call, reading
from tests.contract.google_adk_harness import agent_on

if TYPE_CHECKING:
    from tests.contract.gemini import GeminiServer

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning"),  # ADK's own AgentTool
    pytest.mark.filterwarnings("ignore:(Sequential|Parallel)Agent is deprecated:DeprecationWarning"),
]

OFFLOADED = "Tool result offloaded."
WANTED = "line 1,000 "


def asking(script: Script) -> Any:
    """Return a turn that reads back the reference that another script was shown."""

    def turn(_: Any) -> Any:
        (reference,) = shown_references(script.shown[-1][0])
        return [(RETRIEVAL_TOOL, {"reference": reference, "pattern": WANTED})]

    return turn


async def test_a_session_keeps_the_placeholder_and_a_later_turn_reads_it(server: GeminiServer) -> None:
    plugin, service = OffloadPlugin(), InMemorySessionService()

    await run(server, plugin, [returning(BIG)], call(), service=service)
    kept = await service.get_session(app_name=APP, user_id=USER, session_id=SESSION)
    script = await run(server, plugin, [returning(BIG)], reading(pattern=WANTED), service=service)

    assert kept is not None
    assert OFFLOADED in kept.model_dump_json()
    assert MIDDLE not in kept.model_dump_json()
    assert MIDDLE in script.shown[-1][-1]


@pytest.mark.parametrize("mode", list(StreamingMode)[:2], ids=str)
async def test_no_event_of_a_run_holds_the_raw_result(server: GeminiServer, mode: StreamingMode) -> None:
    with playing(server, Script(call(), reading(offset=-10)), [returning(BIG)]) as agent:
        config = RunConfig(streaming_mode=mode)
        events = await Talk(agent=agent, plugins=[OffloadPlugin()], config=config).ask()

    assert OFFLOADED in texts_in(events)
    assert MIDDLE not in texts_in(events)
    assert events[-1].content is not None
    assert "done" in texts_in(events[-1:])


async def test_references_are_found_in_events(server: GeminiServer) -> None:
    plugin, script = OffloadPlugin(), Script(call())
    with playing(server, script, [returning(BIG)]) as agent:
        events = await Talk(agent=agent, plugins=[plugin]).ask()

    shown = tuple(shown_references(script.shown[-1][0]))
    assert [references for event in events if (references := offloaded_references(event))] == [shown]
    assert plugin.offloader.load(shown[0], scope=CONVERSATION).text == BIG


async def test_each_parallel_call_gets_its_own_result(server: GeminiServer) -> None:
    tools = [returning(f"{number} {BIG}", f"fetch_{number}") for number in range(4)]

    script = await run(server, OffloadPlugin(), tools, [(tool.name, {}) for tool in tools])

    references = [shown_references(text)[0] for text in script.shown[-1]]
    assert [reference[:8] for reference in references] == [f"fetch_{number}-" for number in range(4)]


async def test_a_plugin_before_ours_sees_the_raw_result_and_one_after_ours_does_not(server: GeminiServer) -> None:
    seen: list[Any] = []

    class Noting(BasePlugin):
        async def after_tool_callback(self, *, result: Any, **_: Any) -> None:
            seen.append(result)

    with playing(server, Script(call()), [returning(BIG)]) as agent:
        await Talk(agent=agent, plugins=[Noting("before"), OffloadPlugin(), Noting("behind")]).ask()

    assert seen == [BIG]


async def test_a_result_that_a_plugin_before_ours_changes_in_place_is_offloaded(server: GeminiServer) -> None:
    class Redacting(BasePlugin):
        async def after_tool_callback(self, *, result: Any, **_: Any) -> None:
            result["result"] = result["result"].replace("line", "row")

    plugin, script = OffloadPlugin(), Script(call())
    with playing(server, script, [returning({"result": BIG})]) as agent:
        await Talk(agent=agent, plugins=[Redacting("redacting"), plugin]).ask()

    (reference,) = shown_references(script.shown[-1][0])
    assert plugin.offloader.load(reference, scope=CONVERSATION).text == BIG.replace("line", "row")


async def test_a_result_that_a_plugin_before_ours_returns_reaches_the_model_unchanged(server: GeminiServer) -> None:
    class Redacting(BasePlugin):
        async def after_tool_callback(self, *, result: Any, **_: Any) -> dict[str, Any]:
            return {"result": result["result"].replace("line", "row")}

    script = Script(call())
    with playing(server, script, [returning({"result": BIG})]) as agent:
        await Talk(agent=agent, plugins=[Redacting("redacting"), OffloadPlugin()]).ask()

    assert script.shown[-1] == [BIG.replace("line", "row")]


async def test_after_a_transfer_an_agent_reads_what_the_previous_one_stored(server: GeminiServer) -> None:
    first = Script(call(), call("transfer_to_agent", agent_name="billing"))
    second = Script(asking(first))
    with playing(server, second, name="billing") as billing, playing(server, first, [returning(BIG)]) as triage:
        triage.sub_agents = [billing]
        billing.parent_agent = triage
        await Talk(agent=triage, plugins=[OffloadPlugin()]).ask()

    assert MIDDLE in second.shown[-1][-1]


async def test_the_next_agent_of_a_workflow_is_offered_the_tool_if_it_sees_a_placeholder(server: GeminiServer) -> None:
    first = Script(call())
    second = Script(asking(first))
    with playing(server, first, [returning(BIG)], name="first") as one, playing(server, second, name="second") as two:
        workflow = SequentialAgent(name="workflow", sub_agents=[one, two])
        await Talk(agent=workflow, plugins=[OffloadPlugin()]).ask()

    assert MIDDLE in second.shown[-1][-1]


async def test_agents_that_run_at_once_share_the_scope(server: GeminiServer) -> None:
    plugin, scripts = OffloadPlugin(), [Script(call()), Script(call())]
    with (
        playing(server, scripts[0], [returning(f"1 {BIG}")], name="one") as one,
        playing(server, scripts[1], [returning(f"2 {BIG}")], name="two") as two,
    ):
        workflow = ParallelAgent(name="workflow", sub_agents=[one, two])
        await Talk(agent=workflow, plugins=[plugin]).ask()

    for number, script in enumerate(scripts, 1):
        (reference,) = shown_references(script.shown[-1][0])
        assert plugin.offloader.load(reference, scope=CONVERSATION).text == f"{number} {BIG}"


async def test_an_agent_as_a_tool_shares_the_scope_of_the_conversation(server: GeminiServer) -> None:
    plugin, inner = OffloadPlugin(), Script(call(), reading(pattern=WANTED))
    outer = Script(call("helper", request="Go."), asking(inner))
    with (
        playing(server, inner, [returning(BIG)], name="helper") as helper,
        playing(server, outer, [AgentTool(helper)]) as agent,
    ):
        await Talk(agent=agent, plugins=[plugin]).ask()

    assert inner.shown[-1][0].startswith(OFFLOADED)
    assert MIDDLE in inner.shown[-1][1]
    assert MIDDLE in outer.shown[-1][1]
    assert plugin.offloader.load(shown_references(inner.shown[-1][0])[0], scope=CONVERSATION).text == BIG


async def test_an_agent_that_a_tool_runs_for_another_user_does_not_share_the_scope(server: GeminiServer) -> None:
    plugin, inner = OffloadPlugin(), Script(call())
    with playing(server, inner, [returning(BIG)], name="helper") as helper:

        async def ask() -> str:
            """Ask for somebody else."""
            await Talk(agent=helper, plugins=[plugin], user="bob", session="session-2").ask()
            return "asked"

        outer = await run(server, plugin, [ask], call("ask"), asking(inner))

    assert outer.shown[-1][1].startswith("reference not found")
    (reference,) = shown_references(inner.shown[-1][0])
    assert plugin.offloader.load(reference, scope=(APP, "bob", "session-2")).text == BIG


async def test_a_large_answer_of_an_agent_as_a_tool_is_offloaded(server: GeminiServer) -> None:
    outer = Script(call("helper", request="Go."))
    with server.conversation(lambda _: (), final_answer=BIG) as conversation:
        helper = AgentTool(agent_on(conversation, [], name="helper"))
        with playing(server, outer, [helper]) as agent:
            await Talk(agent=agent, plugins=[OffloadPlugin()]).ask()

    assert outer.shown[-1][0].startswith(OFFLOADED)


async def test_a_large_answer_of_an_agent_as_a_tool_for_the_user_stays(server: GeminiServer) -> None:
    storage = InMemoryStorage()
    with server.conversation(lambda _: (), final_answer=BIG) as conversation:
        helper = AgentTool(agent_on(conversation, [], name="helper"), skip_summarization=True)
        with playing(server, Script(call("helper", request="Go.")), [helper]) as agent:
            events = await Talk(agent=agent, plugins=[OffloadPlugin(storage)]).ask()

    assert MIDDLE in texts_in(events)
    assert list(storage.entries("")) == []


async def test_the_answer_of_a_sub_agent_in_task_mode_stays(server: GeminiServer) -> None:
    outer = Script(call("helper", request="Go."))
    with server.conversation(Script(call("finish_task", result=BIG))) as conversation:
        helper = agent_on(conversation, [], name="helper", description="Helps.", mode="task")
        with playing(server, outer, sub_agents=[helper]) as agent:
            await Talk(agent=agent, plugins=[OffloadPlugin()]).ask()

    assert outer.shown[-1] == [BIG]


async def test_the_agents_callback_sees_only_results_that_stay(server: GeminiServer) -> None:
    seen: list[Any] = []

    def note(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> None:
        seen.append(tool_response)

    tools = [returning(BIG), returning("few", "few")]
    await run(server, OffloadPlugin(), tools, [("fetch", {}), ("few", {})], agent={"after_tool_callback": note})

    assert seen == ["few"]


async def test_the_output_of_a_tool_as_a_workflow_node_stays(server: GeminiServer) -> None:
    workflows = pytest.importorskip("google.adk.workflow")
    got: list[Any] = []

    def read_log(question: str) -> dict[str, Any]:
        return {"asked": question, "lines": BIG.splitlines()}

    def ask(node_input: object) -> dict[str, str]:  # before ADK 2.12, a tool takes only a dictionary from a node
        return {"question": "Go."}

    def count(node_input: dict[str, Any]) -> str:
        got.append(node_input)
        return "counted"

    script = Script(call())
    with playing(server, script, [returning(BIG)]) as agent:
        edges = [(workflows.START, ask, FunctionTool(read_log), count, agent)]
        await Talk(agent=workflows.Workflow(name="nodes", edges=edges), plugins=[OffloadPlugin()]).ask()

    assert got == [read_log("Go.")]
    assert script.shown[-1][-1].startswith("Tool result offloaded.")


async def test_a_screenshot_of_a_computer_reaches_the_model_as_an_image(server: GeminiServer) -> None:
    class Screen(ComputerUseTool):
        async def process_llm_request(self, **request: Any) -> None:
            await FunctionTool.process_llm_request(self, **request)  # declares it, as a ComputerUseToolset does

    async def look() -> ComputerState:
        return ComputerState(screenshot=bytes(250_000), url="http://127.0.0.1/")

    with playing(server, Script(call("look")), [Screen(func=look, screen_size=(1_000, 1_000))]) as agent:
        events = await Talk(agent=agent, plugins=[OffloadPlugin()]).ask()

    (response,) = [found for event in events for found in event.get_function_responses()]
    assert response.response == {"url": "http://127.0.0.1/"}
    (image,) = response.parts or []
    assert image.inline_data is not None
    assert image.inline_data.data == bytes(250_000)


async def test_an_agent_may_have_the_name_unknown_which_adk_gives_a_missing_agent(server: GeminiServer) -> None:
    script = await run(server, OffloadPlugin(), [returning(BIG)], call(), agent={"name": "unknown"})

    assert script.shown[-1][0].startswith("Tool result offloaded.")


async def test_a_copy_of_the_retrieval_tool_may_have_another_name(server: GeminiServer) -> None:
    plugin = OffloadPlugin()
    renamed = copy.copy(plugin.retrieval_tool)
    renamed.name = "read_back"
    script = Script(call(), lambda shown: [("read_back", {"reference": shown_references(shown[-1].text)[0]})])
    tools = [returning(BIG), returning("mine", RETRIEVAL_TOOL), renamed]
    with playing(server, script, tools) as agent:
        await Talk(agent=agent, plugins=[plugin]).ask()

    placeholder, page = script.shown[-1]
    assert "To read more: read_back(" in placeholder
    assert "[More: read_back(" in page
