"""Which results the capability leaves alone, what it keeps when it offloads, and what it refuses."""

# ruff: noqa: ANN401 - what the framework passes is of any type

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai import Agent, ImageUrl, ModelRetry, RunContext, Tool, ToolReturn
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

from coatcheck import RETRIEVAL_TOOL, InMemoryStorage, InvalidRequest, Offloader
from coatcheck.testing.scripting import shown_references
from coatcheck_pydantic_ai import ToolOffloader
from tests.adapters.pydantic_ai.agents import parts_of, returning, run
from tests.adapters.scripts import BIG, MIDDLE, Script, call
from tests.contract.pydantic_ai_harness import model_on

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from coatcheck.testing import ScriptedServer

IMAGE = ImageUrl("https://127.0.0.1/x.png")


def test_a_budget_for_a_step_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="one call at a time"):
        ToolOffloader(max_step_tokens=1_000)


def test_an_invalid_scope_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="scope"):
        ToolOffloader(scope=7)  # type: ignore[arg-type]


def test_a_flag_that_is_no_boolean_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="native_media must be True or False, not 'false'"):
        ToolOffloader(native_media="false")  # type: ignore[arg-type]


def test_options_next_to_a_ready_offloader_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="preview_tokens"):
        ToolOffloader(Offloader(InMemoryStorage()), preview_tokens=100)


def test_two_capabilities_are_never_equal() -> None:
    one = ToolOffloader()

    assert one != ToolOffloader()
    assert {one: 1}[one] == 1


async def test_the_content_that_a_tool_adds_to_its_value_is_offloaded_with_it(server: ScriptedServer) -> None:
    output = ToolReturn(return_value="few", content=["first", BIG, IMAGE], metadata={"rows": 7})
    offload = ToolOffloader()

    script, result = await run(server, offload, call(), tools=[returning(output)])

    parts = parts_of(result)
    (part,) = (part for part in parts if isinstance(part, ToolReturnPart) and part.tool_name == "fetch")
    assert part.metadata == {"rows": 7}
    assert part.content == script.shown[-1][0]
    assert [part.content for part in parts if isinstance(part, UserPromptPart)] == ["Go.", [IMAGE]]
    assert MIDDLE not in part.content
    stored = [offload.offloader.load(each, scope="conversation-1").text for each in shown_references(part.content)]
    assert stored == ["few", "first", BIG]
    assert output.content == ["first", BIG, IMAGE]


async def test_a_file_that_stays_in_a_list_does_not_change_the_placeholder(server: ScriptedServer) -> None:
    script, _ = await run(server, ToolOffloader(), call(), tools=[returning([BIG, IMAGE])])

    assert script.shown[-1][0].startswith("Tool result offloaded.")
    assert "\n[Stored references:]\n" in script.shown[-1][0]


async def test_both_apis_of_openai_get_the_same_placeholder(server: ScriptedServer) -> None:
    tool, shown = returning([BIG, IMAGE]), []
    for api in ("chat completions", "responses"):
        with server.conversation(script := Script(call())) as conversation:
            agent = Agent(model_on(conversation, api), tools=[tool], capabilities=[ToolOffloader()])
            await agent.run("Go.", conversation_id="conversation-1")
        shown += script.shown[-1]

    assert shown[0] == shown[1]


@pytest.mark.parametrize("output", [[{"rows": [1]}], ToolReturn(return_value="few", content="few")], ids=repr)
async def test_a_small_result_is_the_very_same_object(output: object) -> None:
    async def give(_: object) -> object:
        return output

    context: Any = RunContext(deps=None, model=None, usage=None)  # type: ignore[arg-type]
    context.messages = []

    result = await ToolOffloader().wrap_tool_execute(
        context, call=ToolCallPart("fetch"), tool_def=returning(output).tool_def, args={}, handler=give
    )

    assert result is output


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: (row for row in rows),
        lambda rows: {"rows": iter(rows)},
        lambda rows: [("rows", map(str, rows))],
        lambda rows: ToolReturn(return_value=iter(rows), metadata={"rows": 7}),
    ],
    ids=["generator", "in a dictionary", "deeper", "in a ToolReturn"],
)
async def test_a_small_result_that_can_be_read_only_once_reaches_the_model(make: Any, server: ScriptedServer) -> None:
    tool = Tool(lambda: make(["row 1", "row 2"]), name="fetch", description="Gives a result.")

    script, _ = await run(server, ToolOffloader(), call(), tools=[tool])

    assert "row 1" in script.shown[-1][0]
    assert "row 2" in script.shown[-1][0]


async def test_code_gets_the_very_iterator_that_a_tool_returns() -> None:
    output = iter(["row 1"])

    async def give(_: object) -> object:
        return output

    context: Any = RunContext(deps=None, model=None, usage=None)  # type: ignore[arg-type]
    context.messages = [ModelResponse(parts=[])]

    result = await ToolOffloader().wrap_tool_execute(
        context, call=ToolCallPart("fetch"), tool_def=returning(output).tool_def, args={}, handler=give
    )

    assert result is output
    assert list(output) == ["row 1"]


async def test_what_a_generator_raises_is_the_tools_own_error(server: ScriptedServer) -> None:
    def rows() -> Any:  # Pydantic AI evaluates the annotation
        yield "row 1"
        msg = "the table is locked"
        raise ModelRetry(msg)

    tool = Tool(rows, name="fetch", description="Gives a result.")
    script, _ = await run(server, ToolOffloader(), call(), tools=[tool])

    assert "the table is locked" in script.shown[-1][0]


async def test_a_tool_may_ask_to_keep_its_results(server: ScriptedServer) -> None:
    tools = [returning(BIG, metadata={"coatcheck": "keep"}), returning(BIG, "grep")]

    script, _ = await run(server, ToolOffloader(), [("fetch", {}), ("grep", {})], tools=tools)

    assert script.shown[-1][0] == BIG
    assert script.shown[-1][1].startswith("Tool result offloaded.")


async def test_a_run_may_ask_to_keep_its_results(server: ScriptedServer) -> None:
    script, _ = await run(server, ToolOffloader(), call(), tools=[returning(BIG)], metadata={"coatcheck": "keep"})

    assert script.shown[-1] == [BIG]


async def test_code_that_calls_a_tool_gets_the_real_result(server: ScriptedServer) -> None:
    got: list[object] = []

    async def execute(context: RunContext[Any]) -> Any:
        assert context.tool_manager is not None
        got.append(await context.tool_manager.handle_call(ToolCallPart("fetch", {}, tool_call_id="code__1")))
        return got[0]

    tools = [returning(BIG), Tool(execute, description="Runs code.")]

    script, _ = await run(server, ToolOffloader(), call("execute"), tools=tools)

    assert got == [BIG]
    assert script.shown[-1][0].startswith("Tool result offloaded.")


async def test_a_call_next_to_a_streamed_answer_is_offloaded() -> None:
    output, messages = await stream_an_answer_and_a_call("fetch", tools=[returning(BIG)])

    assert output == "Here it is."
    assert "Tool result offloaded." in messages
    assert MIDDLE not in messages


async def test_code_in_a_call_next_to_a_streamed_answer_gets_the_real_result() -> None:
    got: list[object] = []

    async def execute(context: RunContext[Any]) -> str:
        assert context.tool_manager is not None
        got.append(await context.tool_manager.handle_call(ToolCallPart("fetch", {}, tool_call_id="code__1")))
        return BIG

    _, messages = await stream_an_answer_and_a_call("execute", tools=[returning(BIG), execute])

    assert got == [BIG]
    assert "Tool result offloaded." in messages
    assert MIDDLE not in messages


async def stream_an_answer_and_a_call(name: str, *, tools: Sequence[Any]) -> tuple[str, str]:
    """Let a model stream an answer and a call in one turn. Return the answer, and the messages of the run."""

    async def answer(*_: object) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        yield "Here it is."
        yield {1: DeltaToolCall(name, "{}", tool_call_id="1")}

    agent = Agent(FunctionModel(stream_function=answer), tools=tools, capabilities=[ToolOffloader()])
    async with agent.run_stream("Go.") as streamed:
        return await streamed.get_output(), streamed.all_messages_json().decode()


async def test_the_result_of_a_tool_search_stays(server: ScriptedServer) -> None:
    hidden = [returning("found it", f"fetch_{number}", defer_loading=True) for number in range(20)]
    for tool in hidden:
        tool.description = f"Fetches rows. {'It takes long. ' * 40}"

    def search(_: object) -> list[tuple[str, dict[str, Any]]]:
        return [("search_tools", {"queries": ["fetches rows"]})]

    script, _ = await run(server, ToolOffloader(max_result_tokens=10), search, call("fetch_7"), tools=hidden)

    assert script.shown[-1][1] == "found it"


async def test_a_hidden_retrieval_tool_logs_a_warning_and_is_not_named(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture
) -> None:
    class Hiding(AbstractCapability[Any]):
        async def prepare_tools(self, ctx: Any, tool_defs: list[Any]) -> list[Any]:
            return [tool for tool in tool_defs if tool.name != RETRIEVAL_TOOL]

    script, _ = await run(server, ToolOffloader(), call(), tools=[returning(BIG)], more=[Hiding()])

    assert RETRIEVAL_TOOL not in script.shown[-1][0]
    assert caplog.messages[-1].endswith("Let no toolset or capability hide it")


class Prefixing(AbstractCapability[Any]):
    """Gives all tools of an agent a prefix."""

    def get_wrapper_toolset(self, toolset: Any) -> Any:
        return toolset.prefixed("ws")


@pytest.mark.parametrize("all_tools", [True, False], ids=["all tools", "ours alone"])
async def test_every_call_that_the_model_is_shown_has_the_prefix_of_the_retrieval_tool(
    server: ScriptedServer, all_tools: bool, caplog: pytest.LogCaptureFixture
) -> None:
    offload, renamed = ToolOffloader(), f"ws_{RETRIEVAL_TOOL}"

    def read(shown: Any) -> list[tuple[str, dict[str, Any]]]:
        return [(renamed, {"reference": shown_references(shown[-1].text)[0]})]

    capabilities = [offload, Prefixing()] if all_tools else [offload.prefix_tools("ws")]
    with server.conversation(script := Script(call("ws_fetch" if all_tools else "fetch"), read)) as conversation:
        agent = Agent(model_on(conversation), tools=[returning(BIG)], capabilities=capabilities)
        await agent.run("Go.", conversation_id="conversation-1")

    placeholder, page = script.shown[-1]
    assert f"To read more: {renamed}(" in placeholder
    assert f"{renamed}(" in page
    assert "no retrieval tool" not in caplog.text


@pytest.mark.parametrize("last", [True, False])
async def test_with_two_offloaders_a_placeholder_names_the_tool_that_reads_it(
    server: ScriptedServer, last: bool
) -> None:
    def read(shown: Any) -> list[tuple[str, dict[str, Any]]]:
        (name,) = re.findall(r"To read more: (\w+)\(", shown[-1].text)
        return [(name, {"reference": shown_references(shown[-1].text)[0]})]

    capabilities = [ToolOffloader(), ToolOffloader().prefix_tools("b")]
    with server.conversation(script := Script(call(), read)) as conversation:
        order = capabilities if last else capabilities[::-1]
        agent = Agent(model_on(conversation), tools=[returning(BIG)], capabilities=order)
        await agent.run("Go.", conversation_id="conversation-1")

    placeholder, page = script.shown[-1]
    (name,) = re.findall(r"To read more: (\w+)\(", placeholder)
    assert "line 1 of 2,000" in page
    assert f"[More: {name}(" in page


class Cutting(AbstractCapability[Any]):
    """Cuts a result as the output limits of Pydantic AI's harness do, in the same hook."""

    async def after_tool_execute(self, ctx: Any, *, result: Any, **_: Any) -> Any:
        return f"{result[:12_000]} [cut]" if isinstance(result, str) and len(result) > 12_000 else result


async def test_a_result_that_another_capability_cuts_has_a_reference_too(server: ScriptedServer) -> None:
    offload = ToolOffloader()

    script, _ = await run(server, offload, call(), tools=[returning(BIG)], more=[Cutting()])

    stored = offload.offloader.load(shown_references(script.shown[-1][0])[0], scope="conversation-1")
    assert stored.text in {f"{BIG[:12_000]} [cut]", BIG}  # before 2.50, ours came first


@pytest.mark.parametrize("threshold", [4_000, 1_000_000])
async def test_the_output_limits_of_the_harness_go_first_and_lose_nothing(
    server: ScriptedServer, threshold: int, tmp_path: Any
) -> None:
    limits = pytest.importorskip("pydantic_ai_harness.tool_output_limits", reason="needs pydantic-ai-harness")
    theirs = limits.ToolOutputLimits(
        bands=[limits.Band(over=threshold, action=limits.Spill())], store=limits.LocalFileStore(tmp_path)
    )
    storage = InMemoryStorage()
    offload = ToolOffloader(storage)

    script, _ = await run(server, offload, call(), tools=[returning(BIG)], more=[theirs])

    (shown,) = script.shown[-1]
    if threshold < len(BIG):
        assert "read_tool_result" in shown
        assert list(storage.entries("")) == []
    else:
        assert offload.offloader.load(shown_references(shown)[0], scope="conversation-1").text == BIG
