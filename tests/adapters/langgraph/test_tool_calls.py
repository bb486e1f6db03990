"""``offload_tool_calls`` for a hand-built ``ToolNode``, and ``offload_tool_node`` around one."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pytest
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from langgraph.prebuilt import InjectedState, ToolRuntime
from typing_extensions import TypedDict

import coatcheck
from coatcheck import InMemoryStorage, InvalidRequest, TiktokenCounter
from coatcheck_langchain import (
    OffloadMiddleware,
    offload_tool,
    offload_tool_calls,
    offload_tool_node,
    offloaded_references,
    retrieval_tool,
)
from tests.adapters.langchain.samples import LONG, OPENING, SHORT, make_offloader, text_of
from tests.adapters.langgraph.agents import (
    answers,
    call,
    graph_of,
    question,
    read,
    reference_in,
    say,
    thread,
    tool_node,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.runnables import Runnable

    from coatcheck import Offloader


@tool
def search(query: str) -> str:
    """Search for rows."""
    return LONG


def by_calls(offloader: Offloader, *tools: Any, **arguments: Any) -> Runnable[Any, Any]:
    return tool_node([*tools, retrieval_tool(offloader)], **offload_tool_calls(offloader, **arguments))


def by_node(offloader: Offloader, *tools: Any, **arguments: Any) -> Runnable[Any, Any]:
    return offload_tool_node(tool_node([*tools, retrieval_tool(offloader)]), offloader, **arguments)


def by_tool(offloader: Offloader, *tools: Any, **arguments: Any) -> Runnable[Any, Any]:
    return tool_node([*(offload_tool(each, offloader, **arguments) for each in tools), retrieval_tool(offloader)])


WAYS = pytest.mark.parametrize("way", [by_calls, by_node, by_tool])
WRAPPERS = pytest.mark.parametrize("way", [by_calls, by_node])
RUNS = pytest.mark.parametrize("mode", ["sync", "async"])


async def run(graph: Any, mode: str, config: Any = None) -> list[BaseMessage]:
    result = graph.invoke(question(), config) if mode == "sync" else await graph.ainvoke(question(), config)
    messages: list[BaseMessage] = result["messages"]
    return messages


@RUNS
async def test_a_small_result_passes_through_without_reading_the_conversation(mode: str) -> None:
    class Unread:
        tool_call: ClassVar = {"name": "search", "args": {}, "id": "1"}
        tool = None

        @property
        def state(self) -> object:
            raise AssertionError

    message = ToolMessage(SHORT, tool_call_id="1")
    offloader = make_offloader()
    wrappers: Any = offload_tool_calls(offloader)

    async def handler(_: object) -> ToolMessage:
        return message

    if mode == "sync":
        result = wrappers["wrap_tool_call"](Unread(), lambda _: message)
    else:
        result = await wrappers["awrap_tool_call"](Unread(), handler)

    assert result is message
    assert offloader.stats().results == 1
    assert offloader.stats().failed == 0


@RUNS
@WAYS
async def test_a_hand_built_graph_offloads_a_result_and_reads_it_back(way: Callable[..., Any], mode: str) -> None:
    offloader = make_offloader()
    graph, model = graph_of(way(offloader, search), call(("search", {"query": "q"})), read_first, say("found"))

    messages = await run(graph, mode, thread("a"))

    placeholder, match = answers(messages)
    assert text_of(placeholder).startswith(OPENING)
    assert "row 1999: the quick" in text_of(match)
    assert not offloaded_references(match)
    assert (offloader.stats().results, offloader.stats().retrieved) == (1, 1)  # a read-back does not count as a result
    assert all(LONG not in text_of(message) for seen in model.seen for message in seen)


def read_first(messages: list[BaseMessage]) -> AIMessage:
    """Call the retrieval tool with the reference that the placeholder shows, as a model would."""
    text = text_of(answers(messages)[0])
    reference = text.partition("[Stored references:]\n  ")[2].partition(" ")[0]
    return call(("retrieve_offloaded_content", {"reference": reference, "pattern": "row 1999:"}), prefix="read")


@RUNS
@WAYS
async def test_injected_state_ids_and_runtime_are_kept(way: Callable[..., Any], mode: str) -> None:
    seen: list[Any] = []

    @tool
    def fetch(
        query: str,
        runtime: ToolRuntime,
        state: Annotated[dict[str, Any], InjectedState],
        call_id: Annotated[str, InjectedToolCallId],
    ) -> str:
        """Fetch rows."""
        seen.extend([runtime.config["configurable"]["thread_id"], len(state["messages"]), call_id])
        return LONG

    graph, _ = graph_of(way(make_offloader(), fetch), call(("fetch", {"query": "q"})), say())

    messages = await run(graph, mode, thread("a"))

    assert seen == ["a", 2, "call-1"]
    assert text_of(answers(messages)[0]).startswith(OPENING)


@RUNS
async def test_the_async_form_is_used_in_async_runs(mode: str) -> None:
    offloader = make_offloader()
    used: list[str] = []

    def sync(*args: Any, **kwargs: Any) -> Any:
        used.append("sync")
        return type(offloader).offload(offloader, *args, **kwargs)

    async def asynchronous(*args: Any, **kwargs: Any) -> Any:
        used.append("async")
        return await type(offloader).aoffload(offloader, *args, **kwargs)

    offloader.offload, offloader.aoffload = sync, asynchronous  # type: ignore[method-assign]
    graph, _ = graph_of(by_calls(offloader, search), call(("search", {"query": "q"})), say())

    await run(graph, mode)

    assert used == [mode]


@RUNS
@WRAPPERS
async def test_errors_that_the_node_handles_keep_their_mark(way: Callable[..., Any], mode: str) -> None:
    @tool
    def fail(query: str) -> str:
        """Fail at length."""
        raise ValueError(LONG)

    offloader = make_offloader()
    arguments: Any = offload_tool_calls(offloader) if way is by_calls else {}
    node: Any = tool_node([fail], handle_tool_errors=True, **arguments)
    if way is by_node:
        node = offload_tool_node(node, offloader, retrieval_tool=None)
    graph, _ = graph_of(node, call(("fail", {"query": "q"})), say())

    (message,) = answers(await run(graph, mode))

    assert message.status == "error"
    assert text_of(message).startswith("Error: ValueError(")
    assert not offloaded_references(message)


@RUNS
@WRAPPERS
async def test_final_answers_stay(way: Callable[..., Any], mode: str) -> None:
    @tool(return_direct=True)
    def final() -> str:
        """Answer the user."""
        return LONG

    graph, _ = graph_of(way(make_offloader(), final), call(("final", {})), say())

    assert text_of(answers(await run(graph, mode))[0]) == LONG


@RUNS
async def test_a_step_of_parallel_calls_fits_its_budget(mode: str) -> None:
    @tool
    def part(name: str) -> str:
        """Give a part."""
        return name + LONG[:7_000]

    offloader = make_offloader(max_step_tokens=5_000)
    graph, _ = graph_of(by_node(offloader, part), call(*(("part", {"name": name}) for name in "abcd")), say())

    messages = answers(await run(graph, mode))

    assert sum(TiktokenCounter().count(text_of(message)) for message in messages) <= 5_000
    assert {text_of(message).startswith(OPENING) for message in messages} == {True, False}


class Chat(TypedDict):
    history: Annotated[list[AnyMessage], add_messages]


@RUNS
@pytest.mark.parametrize("way", ["calls", "node"])
async def test_messages_may_be_under_another_key(way: str, mode: str) -> None:
    offloader = make_offloader()
    tools = [search, retrieval_tool(offloader)]
    node: Any
    if way == "calls":
        wrappers = offload_tool_calls(offloader, messages_key="history")
        node = tool_node(tools, messages_key="history", **wrappers)
    else:
        node = offload_tool_node(tool_node(tools, messages_key="history"), offloader, messages_key="history")
    builder = StateGraph(Chat)
    builder.add_node("tools", node)
    builder.add_edge(START, "tools")
    graph = builder.compile()
    given: Any = {"history": [call(("search", {"query": "q"}))]}

    result = graph.invoke(given) if mode == "sync" else await graph.ainvoke(given)

    assert text_of(result["history"][-1]).startswith(OPENING)


@pytest.mark.parametrize("way", [by_calls, by_node])
def test_a_list_of_messages_may_be_the_whole_input(way: Callable[..., Any]) -> None:
    node = way(make_offloader(), search)
    builder = StateGraph(MessagesState)
    builder.add_node("tools", lambda state, config: {"messages": node.invoke(state["messages"], config)})
    builder.add_edge(START, "tools")

    result = builder.compile().invoke({"messages": [call(("search", {"query": "q"}))]})

    assert text_of(result["messages"][-1]).startswith(OPENING)


@RUNS
async def test_a_node_without_the_retrieval_tool_does_not_name_it(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    node = tool_node([search], **offload_tool_calls(make_offloader()))
    graph, _ = graph_of(node, call(("search", {"query": "q"})), call(("search", {"query": "r"})), say())

    messages = answers(await run(graph, mode))

    assert all(text_of(message).startswith(OPENING) for message in messages)
    assert all(coatcheck.RETRIEVAL_TOOL not in text_of(message) for message in messages)
    assert len([record for record in caplog.records if "Add retrieval_tool" in record.getMessage()]) == 1
    assert caplog.messages[-1].endswith("to its tools, or pass retrieval_tool=None")


def test_without_the_retrieval_tool_the_middlewares_warning_names_its_own_option(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = tool_node([search], wrap_tool_call=OffloadMiddleware(make_offloader()).wrap_tool_call)
    graph, _ = graph_of(node, call(("search", {"query": "q"})), say())

    (message,) = answers(graph.invoke(question())["messages"])

    assert text_of(message).startswith(OPENING)
    assert caplog.messages[-1].endswith("to its tools, or pass include_retrieval_tool=False")


def test_a_retrieval_tool_that_is_left_out_on_purpose_logs_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    node = tool_node([search], **offload_tool_calls(make_offloader(), retrieval_tool=None))
    graph, _ = graph_of(node, call(("search", {"query": "q"})), say())

    (message,) = answers(graph.invoke(question())["messages"])

    assert coatcheck.RETRIEVAL_TOOL not in text_of(message)
    assert not caplog.records


@RUNS
@pytest.mark.parametrize("by", ["calls", "node"])
async def test_the_retrieval_tool_may_have_another_name(by: str, mode: str) -> None:
    offloader = make_offloader()
    tools = [search, retrieval_tool(offloader, name="read_more")]
    node: Any
    if by == "calls":
        node = tool_node(tools, **offload_tool_calls(offloader, retrieval_tool="read_more"))
    else:
        node = offload_tool_node(tool_node(tools), offloader, retrieval_tool="read_more")
    graph, _ = graph_of(
        node,
        call(("search", {"query": "q"})),
        lambda messages: call(("read_more", {"reference": reference_in(messages), "line_range": "5"}), prefix="r"),
        say(),
    )

    placeholder, answer = answers(await run(graph, mode))

    assert "read_more(reference" in text_of(placeholder)
    assert "row 5: the quick" in text_of(answer)


@RUNS
async def test_a_users_tool_with_the_retrieval_tools_name_logs_a_warning_and_is_not_exempt(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    @tool
    def retrieve_offloaded_content(reference: str) -> str:
        """Read something of the user's own."""
        return LONG

    node = tool_node([search, retrieve_offloaded_content], **offload_tool_calls(make_offloader()))
    turns = (call(("search", {"query": "q"})), call(("retrieve_offloaded_content", {"reference": "x"})), say())
    graph, _ = graph_of(node, *turns)

    messages = answers(await run(graph, mode))

    assert all(text_of(message).startswith(OPENING) for message in messages)
    assert coatcheck.RETRIEVAL_TOOL + "(reference" not in text_of(messages[0])
    assert "is taken by another tool" in caplog.text


@RUNS
@WRAPPERS
async def test_a_scope_callable_applies_to_results_and_to_reading(way: Callable[..., Any], mode: str) -> None:
    def tenant(given: Any) -> str:
        config = given.config if way is by_calls else given
        return f"tenant-{config['configurable']['tenant']}"

    offloader = make_offloader()
    graph, _ = graph_of(way(offloader, search, scope=tenant), call(("search", {"query": "q"})), read_first, say())

    messages = await run(graph, mode, thread("a", tenant=7))

    assert offloader.load(reference_in(messages), scope="tenant-7").text == LONG
    assert "row 1999: the quick" in text_of(answers(messages)[1])


@RUNS
async def test_a_scope_that_cannot_be_found_refuses_the_read(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    offloader = make_offloader()
    outcome = offloader.offload([coatcheck.TextBlock(LONG)], tool_name="search")
    reference = str(outcome.references[0])

    def broken(runtime: object) -> str:
        raise LookupError

    scopes: list[Any] = [broken, lambda runtime: 7]
    for scope in scopes:
        node = tool_node([retrieval_tool(offloader)], **offload_tool_calls(offloader, scope=scope))
        graph, _ = graph_of(node, call(("retrieve_offloaded_content", {"reference": reference})), say("done"))

        messages = await run(graph, mode)

        assert answers(messages)[0].status == "error"
        assert "quick brown fox" not in text_of(answers(messages)[0])
        assert messages[-1].content == "done"


def test_small_results_pass_through() -> None:
    @tool
    def tiny() -> str:
        """Give a few words."""
        return SHORT

    graph, _ = graph_of(by_calls(make_offloader(), tiny), call(("tiny", {})), say())

    (message,) = answers(graph.invoke(question())["messages"])

    assert message.content == SHORT
    assert message.additional_kwargs == {}


def test_a_storage_alone_is_enough() -> None:
    storage = InMemoryStorage()
    node = tool_node([search, retrieval_tool(storage)], **offload_tool_calls(storage, max_result_tokens=1_000))
    graph, _ = graph_of(node, call(("search", {"query": "q"})), read(line_range="7"), say())

    assert "row 7: the quick" in text_of(answers(graph.invoke(question())["messages"])[1])


def test_a_budget_for_a_step_is_refused_if_each_call_is_seen_alone() -> None:
    with pytest.raises(InvalidRequest, match=r"max_step_tokens would do nothing here.*offload_tool_node"):
        offload_tool_calls(InMemoryStorage(), max_step_tokens=5_000)


def test_an_offloader_and_knobs_together_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="max_result_tokens"):
        offload_tool_calls(make_offloader(), max_result_tokens=1_000)
