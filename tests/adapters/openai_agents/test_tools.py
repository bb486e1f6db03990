"""``ToolOffloader.tools`` returns copies of tools that differ only in their output."""

# ruff: noqa: ANN401 - what the SDK and tools pass is of any type

from __future__ import annotations

import asyncio
import copy
import dataclasses
import json
import threading
import typing
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from agents import (
    Agent,
    FunctionTool,
    RunContextWrapper,
    Runner,
    ToolCallOutputItem,
    ToolGuardrailFunctionOutput,
    ToolTimeoutError,
    WebSearchTool,
    function_tool,
    tool_namespace,
    tool_output_guardrail,
)
from agents.tool_context import ToolContext

from coatcheck import RETRIEVAL_TOOL, FileStorage, InMemoryStorage, InvalidRequest, Offloader
from coatcheck.testing.scripting import shown_references
from coatcheck_openai import ToolOffloader
from tests.adapters.openai_agents.agents import BIG, MIDDLE, Script, call, config, playing, reading, returning, run
from tests.contract.openai_agents_harness import model_on

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from coatcheck.testing import ScriptedServer


def context_of(tool: FunctionTool, arguments: str = "{}", **more: Any) -> ToolContext[Any]:
    return ToolContext(context=None, tool_name=tool.name, tool_call_id="1", tool_arguments=arguments, **more)


async def invoke(tool: Any, arguments: str = "{}", **more: Any) -> Any:
    return await tool.on_invoke_tool(context_of(tool, arguments, **more), arguments)


async def test_a_result_is_stored_and_its_search_finds_a_line(server: ScriptedServer, tmp_path: Path) -> None:
    offload = ToolOffloader(FileStorage(tmp_path))

    script = await run(server, offload.tools([returning(BIG)]), call(), reading(pattern="^line 1,000 "))

    placeholder, found = script.shown[-1]
    assert placeholder.startswith("Tool result offloaded.")
    assert MIDDLE not in placeholder
    assert MIDDLE in found
    assert offload.offloader.load(shown_references(placeholder)[0], scope="conversation-1").text == BIG


def test_hosted_tools_stay_the_same_objects_and_the_retrieval_tool_comes_last() -> None:
    offload, search, fetch = ToolOffloader(), WebSearchTool(), returning(BIG)

    tools = offload.tools([search, fetch])

    assert tools[0] is search
    assert [tool.name for tool in tools[1:]] == ["fetch", RETRIEVAL_TOOL]
    assert tools[-1] is offload.retrieval_tool
    assert offload.tools() == [offload.retrieval_tool]


@pytest.mark.parametrize("make", [list, copy.deepcopy])
def test_tools_of_one_agent_may_be_passed_on_to_another(make: Callable[[Any], Any]) -> None:
    offload = ToolOffloader()

    again = offload.tools(make(offload.tools([returning(BIG)])))

    assert [tool.name for tool in again] == ["fetch", RETRIEVAL_TOOL]


async def test_the_retrieval_tool_may_have_a_custom_description(server: ScriptedServer) -> None:
    offload = ToolOffloader()
    (fetch, _) = offload.tools([returning(BIG)])

    described = dataclasses.replace(offload.retrieval_tool, description="Reads more.")
    script = await run(server, [fetch, described], call(), reading(pattern="^line 1,000 "))

    assert RETRIEVAL_TOOL in script.shown[-1][0]
    assert MIDDLE in script.shown[-1][1]


async def test_the_retrieval_tool_may_have_a_custom_name(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    offload = ToolOffloader()
    (fetch, _) = offload.tools([returning(BIG)])

    renamed = dataclasses.replace(offload.retrieval_tool, name="read_back")

    def read(shown: Any) -> list[tuple[str, dict[str, Any]]]:
        return [("read_back", {"reference": shown_references(shown[-1].text)[0]})]

    script = await run(server, [fetch, renamed], call(), read)

    placeholder, page = script.shown[-1]
    assert "To read more: read_back(" in placeholder
    assert "read_back(" in page
    assert "no retrieval tool" not in caplog.text


def declaring(annotation: Any, got: list[Any], name: str) -> FunctionTool:
    """Return a tool whose invoker declares its context as ``annotation`` and adds the type that it gets to ``got``."""

    async def give(context: Any, _: str) -> str:
        got.append(type(context))
        return BIG

    give.__annotations__["context"] = annotation
    return dataclasses.replace(returning("", name), on_invoke_tool=give)


Base = RunContextWrapper
MyToolContext = RunContextWrapper[dict[str, str]]
DECLARED = (
    RunContextWrapper[Any],
    ToolContext[Any],
    "RunContextWrapper[Any]",
    "ToolContext[Any]",
    "Base[Any] | None",  # an alias, as in a module with postponed annotations
    "MyToolContext",
    "RunContextWrapperOf[str]",  # a name that only type checkers can resolve
    "Unknown[RunContextWrapper]",
)


async def test_an_invoker_gets_the_context_that_it_declares(server: ScriptedServer) -> None:
    got: list[Any] = []
    tools = [declaring(annotation, got, f"tool{number}") for number, annotation in enumerate(DECLARED)]
    calls = [call(tool.name) for tool in tools]

    script = await run(server, ToolOffloader().tools(tools), *calls)
    ours, got[:] = list(got), []
    await run(server, tools, *calls)

    assert ours == got
    assert set(got) == {RunContextWrapper, ToolContext}
    assert all(placeholder.startswith("Tool result offloaded.") for placeholder in script.shown[-1])


def test_the_annotations_of_the_retrieval_tool_can_be_evaluated() -> None:
    assert typing.get_type_hints(ToolOffloader().retrieval_tool.on_invoke_tool)["context"] == ToolContext[Any]


def test_a_tool_with_the_name_of_the_retrieval_tool_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="rename it"):
        ToolOffloader().tools([returning(BIG, RETRIEVAL_TOOL)])


def test_a_function_that_is_not_yet_a_tool_is_refused() -> None:
    def read_log() -> str:
        return BIG

    with pytest.raises(InvalidRequest, match="not 'read_log': put @function_tool above"):
        ToolOffloader().tools([read_log])  # type: ignore[list-item]


def test_one_tool_without_a_list_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"not one FunctionTool: pass \[tool\]"):
        ToolOffloader().tools(returning(BIG))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "said"), [(None, "pass \\[server\\]"), ([None], "servers of the SDK"), ("ab", "not 'a'")]
)
def test_anything_but_a_list_of_servers_is_refused(wrong: Any, said: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"^offload\.mcp_servers takes .*{said}"):
        ToolOffloader().mcp_servers(wrong)


def test_the_users_tool_is_not_changed() -> None:
    tool = returning(BIG)
    before = dict(vars(tool))

    (copied, _) = ToolOffloader().tools([tool])

    assert vars(tool) == before
    assert {name for name, value in vars(copied).items() if value != before[name]} == {"on_invoke_tool"}


def test_a_budget_for_a_step_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="one call at a time"):
        ToolOffloader(max_step_tokens=1_000)


def test_an_invalid_scope_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="scope"):
        ToolOffloader(scope=7)  # type: ignore[arg-type]


def test_a_flag_that_is_no_boolean_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="native_media must be True or False, not 'false'"):
        ToolOffloader(native_media="false")  # type: ignore[arg-type]


async def test_a_small_result_is_the_very_same_object() -> None:
    few = [{"rows": [1, 2, 3]}]

    (tool, _) = ToolOffloader().tools([returning(few)])

    assert await invoke(tool) is few


async def test_a_long_list_is_never_walked_on_the_event_loop() -> None:
    walkers = set()

    class Watched(list[Any]):
        def __iter__(self) -> Iterator[Any]:
            walkers.add(threading.current_thread())
            return super().__iter__()

    (tool, _) = ToolOffloader().tools([returning(Watched([{"type": "text", "text": "line"}] * 20_000))])

    assert (await invoke(tool)).startswith("Tool result offloaded.")
    assert walkers
    assert threading.current_thread() not in walkers


async def test_a_copy_of_a_copy_offloads_too() -> None:
    @function_tool
    async def fetch() -> str:
        """Fetch."""
        return BIG

    (tool, _) = ToolOffloader().tools([fetch])

    assert (await invoke(copy.copy(tool))).startswith("Tool result offloaded.")


@pytest.mark.parametrize("is_replaced", [False, True], ids=["by us", "by a guardrail"])
async def test_an_extractor_of_custom_data_gets_what_the_tool_returned(
    server: ScriptedServer, is_replaced: bool
) -> None:
    @tool_output_guardrail
    def refuse(_: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content("refused")

    async def count(context: Any) -> dict[str, Any]:
        return {"output": context.output if is_replaced else len(context.output["rows"])}

    more: dict[str, Any] = {"tool_output_guardrails": [refuse]} if is_replaced else {}
    tool = returning({"rows": BIG.splitlines()}, custom_data_extractor=count, **more)
    with playing(server, Script(call())) as model:
        agent = Agent(name="scripted", model=model, tools=ToolOffloader().tools([tool]))
        result = await Runner.run(agent, "Go.", run_config=config())

    (item,) = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert item.output.startswith("refused" if is_replaced else "Tool result offloaded.")
    assert item.custom_data == {"output": "refused" if is_replaced else 2_000}


async def test_a_tool_that_fails_says_so_in_the_sdks_words() -> None:
    @function_tool
    async def fetch() -> str:
        """Fetch."""
        raise LookupError

    (tool, _) = ToolOffloader().tools([fetch])

    assert await invoke(tool) == await invoke(fetch)


async def test_an_exception_from_a_tool_propagates() -> None:
    (tool, _) = ToolOffloader().tools([returning(LookupError("no such page"))])

    with pytest.raises(LookupError, match="no such page"):
        await invoke(tool)


@pytest.mark.parametrize("behavior", ["error_as_result", "raise_exception"])
async def test_the_time_limit_of_a_tool_does_not_cover_storing_its_result(
    server: ScriptedServer, behavior: str
) -> None:
    tool = returning(BIG, timeout_seconds=1e-6, timeout_behavior=behavior)  # no storage is that fast

    script = await run(server, ToolOffloader().tools([tool]), call())

    assert script.shown[-1][0].startswith("Tool result offloaded.")


async def never_ends(_: Any, __: str) -> str:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize(
    "more", [{}, {"timeout_error_function": lambda _, error: f"Sorry: {error}"}], ids=["default", "own"]
)
async def test_a_tool_that_takes_too_long_says_so_in_the_sdks_words(server: ScriptedServer, more: Any) -> None:
    tool = dataclasses.replace(returning(""), on_invoke_tool=never_ends, timeout_seconds=0.01, **more)

    script = await run(server, ToolOffloader().tools([tool]), call())

    assert "timed out" in script.shown[-1][0]
    assert script.shown[-1] == (await run(server, [tool], call())).shown[-1]


async def test_a_tool_that_takes_too_long_may_end_the_run(server: ScriptedServer) -> None:
    tool = dataclasses.replace(
        returning(""), on_invoke_tool=never_ends, timeout_seconds=0.01, timeout_behavior="raise_exception"
    )

    with pytest.raises(ToolTimeoutError, match="'fetch' timed out"):
        await run(server, ToolOffloader().tools([tool]), call())


async def test_a_host_that_invokes_a_tool_itself_has_no_time_limit() -> None:
    tool: Any = ToolOffloader().tools([returning("few", timeout_seconds=1.0)])[0]

    assert await tool.on_invoke_tool(None, "{}") == "few"


async def test_an_output_with_a_schema_stays() -> None:
    schema = {"type": "object", "properties": {"rows": {"type": "string"}}, "required": ["rows"]}
    tool = returning(json.dumps({"rows": BIG}), output_json_schema=schema)

    (copied, _) = ToolOffloader().tools([tool])

    assert copied is tool


def asks_for_large(_: Any, arguments: dict[str, Any], __: str) -> Any:
    async def answer() -> bool:
        return int(arguments["count"]) > 10

    return answer()


@function_tool(needs_approval=asks_for_large)
async def delete(count: int, *, force: bool = False) -> str:
    """Delete."""
    return f"deleted {count}, {force}"


@pytest.mark.parametrize(
    "arguments", [{"count": 5, "force": False}, {"count": 5}, {"count": "5"}, {"count": 50, "force": False}], ids=repr
)
async def test_the_same_calls_need_approval_with_and_without_us(
    server: ScriptedServer, arguments: dict[str, Any]
) -> None:
    async def interruptions(tools: list[Any]) -> int:
        with playing(server, Script(call("delete", **arguments))) as model:
            result = await Runner.run(Agent(name="a", model=model, tools=tools), "Go.", run_config=config())
        return len(result.interruptions)

    assert await interruptions(ToolOffloader().tools([delete])) == await interruptions([delete])


@pytest.mark.parametrize(
    "behavior",
    ["stop_on_first_tool", {"stop_at_tool_names": ["fetch"]}],
    ids=["stop_on_first_tool", "stop_at_tool_names"],
)
async def test_a_final_answer_reaches_the_user_whole(server: ScriptedServer, behavior: Any) -> None:
    storage = InMemoryStorage()
    tools = ToolOffloader(storage).tools([returning(BIG)])
    with playing(server, Script(call())) as model:
        agent = Agent(name="a", model=model, tools=tools, tool_use_behavior=behavior)
        result = await Runner.run(agent, "Go.", run_config=config())

    assert result.final_output == BIG
    assert list(storage.entries("")) == []


async def test_a_final_answer_is_recognised_by_the_new_name_of_a_copy(server: ScriptedServer) -> None:
    wrapped: Any = ToolOffloader().tools([returning(BIG)])[0]
    tool = dataclasses.replace(wrapped, name="search")
    with playing(server, Script(call("search"))) as model:
        agent = Agent(name="a", model=model, tools=[tool], tool_use_behavior={"stop_at_tool_names": ["search"]})
        result = await Runner.run(agent, "Go.", run_config=config())

    assert result.final_output == BIG


@pytest.mark.parametrize("name", ["fetch", "logs.fetch"])
async def test_a_final_answer_is_recognised_by_its_name_with_or_without_a_namespace(name: str) -> None:
    tools: Any = ToolOffloader().tools([returning(BIG)])[:1]
    (tool,) = tool_namespace(name="logs", description="Logs.", tools=tools)
    agent: Agent[None] = Agent(name="a", tools=[tool], tool_use_behavior={"stop_at_tool_names": [name]})

    assert tool.qualified_name == "logs.fetch"
    assert await invoke(tool, tool_namespace="logs", agent=agent) == BIG


@pytest.mark.parametrize(
    "more",
    [{"context": {"coatcheck": "keep"}}, {"run_config": config(trace_metadata={"coatcheck": "keep"})}],
    ids=["context", "trace_metadata"],
)
async def test_a_run_may_ask_to_keep_its_results(server: ScriptedServer, more: dict[str, Any]) -> None:
    script = await run(server, ToolOffloader().tools([returning(BIG)]), call(), **more)

    assert script.shown[-1] == [BIG]


async def test_a_result_that_code_asked_for_stays() -> None:
    by_code: Any = SimpleNamespace(caller={"type": "program", "caller_id": "program_1"}, namespace=None)

    (tool, _) = ToolOffloader().tools([returning(BIG)])

    assert await invoke(tool, tool_call=by_code) == BIG


async def test_a_host_that_invokes_a_tool_itself_gets_what_the_model_would() -> None:
    tool: Any = ToolOffloader().tools([returning(BIG)])[0]

    assert (await tool.on_invoke_tool(None, "no JSON")).startswith("Tool result offloaded.")


async def test_policies_see_the_arguments(server: ScriptedServer) -> None:
    def by_rows(result: Any) -> bool:
        return bool(result.tool_args["rows"] > 1)

    tools = ToolOffloader(policies={"fetch": by_rows}).tools([returning(BIG)])

    script = await run(server, tools, [("fetch", {"rows": 1}), ("fetch", {"rows": 2})])

    assert [text == BIG for text in script.shown[-1]] == [True, False]


async def test_an_agent_without_the_retrieval_tool_logs_a_warning(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    tools = ToolOffloader().tools([returning(BIG)])[:1]

    script = await run(server, tools, call())

    assert RETRIEVAL_TOOL not in script.shown[-1][0]
    assert caplog.messages[-1].endswith("Pass its tools through ToolOffloader.tools")


@pytest.mark.parametrize("make", [dict, lambda: {"native_media": True}], ids=["described", "native"])
async def test_an_image_is_read_back_as_itself_only_with_native_media(
    server: ScriptedServer, make: Callable[[], dict[str, Any]]
) -> None:
    url = "data:image/png;base64," + "iVBORw0K" * 2_000
    tool = returning([{"type": "text", "text": BIG}, {"type": "image", "image_url": url}])
    options = make()

    def second(received: Any) -> Any:
        references = [word for word in received[0].text.split() if word.startswith("fetch-")]
        return [(RETRIEVAL_TOOL, {"reference": references[1]})]

    script = Script(call(), second)
    with server.conversation(script) as conversation:
        model = model_on(conversation, "responses")
        agent = Agent(name="a", model=model, tools=ToolOffloader(**options).tools([tool]))
        await Runner.run(agent, "Go.", run_config=config())
        raw = conversation.transcript().received[-1].raw

    assert ("input_image" in raw) is bool(options)
    assert (url in raw) is bool(options)


def test_several_tool_offloaders_may_share_one_offloader() -> None:
    offloader = Offloader()

    assert ToolOffloader(offloader).offloader is ToolOffloader(offloader).offloader is offloader
