"""Exceptions that steer LangGraph pass through untouched, and what runs again after a resume changes nothing."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp, GraphInterrupt, ParentCommand
from langgraph.types import Command, interrupt

from coatcheck_langchain import (
    OffloadMiddleware,
    offload_tool,
    offload_tool_calls,
    offload_tool_node,
    offloaded_references,
    retrieval_tool,
)
from tests.adapters.langchain.samples import LONG, OPENING, make_offloader, text_of
from tests.adapters.langgraph.agents import agent_of, answers, call, graph_of, question, say, thread, tool_node

if TYPE_CHECKING:
    from coatcheck import Event, Offloader

RUNS = pytest.mark.parametrize("mode", ["sync", "async"])


async def run(graph: Any, mode: str, given: Any) -> dict[str, Any]:
    config = thread("a")
    result: dict[str, Any] = graph.invoke(given, config) if mode == "sync" else await graph.ainvoke(given, config)
    return result


@tool
def ask(what: str) -> str:
    """Ask a person."""
    return str(interrupt(what)) + LONG


def search_counting(runs: list[str]) -> Any:
    @tool
    def search(query: str) -> str:
        """Search for rows."""
        runs.append(query)
        return query + LONG

    return search


PARALLEL = (call(("search", {"query": "one"}), ("ask", {"what": "may I?"}), ("search", {"query": "two"})), say())


@RUNS
async def test_an_agent_that_is_interrupted_in_one_of_several_parallel_calls_goes_on(mode: str) -> None:
    runs: list[str] = []
    middleware = OffloadMiddleware()
    agent, _ = agent_of([search_counting(runs), ask], *PARALLEL, middleware=[middleware], checkpointer=InMemorySaver())

    paused = await run(agent, mode, question())
    done = await run(agent, mode, Command(resume="yes"))

    assert [each.value for each in paused["__interrupt__"]] == ["may I?"]
    assert sorted(runs) == ["one", "two"]
    load = middleware.offloader.load
    texts = [load(offloaded_references(message)[0], scope="a").text for message in answers(done["messages"])]
    assert sorted(texts) == sorted(["one" + LONG, "yes" + LONG, "two" + LONG])


def by_calls(offloader: Offloader, *tools: Any) -> Any:
    return tool_node([*tools, retrieval_tool(offloader)], **offload_tool_calls(offloader))


def by_node(offloader: Offloader, *tools: Any) -> Any:
    return offload_tool_node(tool_node([*tools, retrieval_tool(offloader)]), offloader)


def by_tool(offloader: Offloader, *tools: Any) -> Any:
    return tool_node([*(offload_tool(each, offloader) for each in tools), retrieval_tool(offloader)])


WAYS = pytest.mark.parametrize("way", [by_calls, by_node, by_tool])


@RUNS
@WAYS
async def test_finished_siblings_that_run_again_after_a_resume_store_nothing_new(way: Any, mode: str) -> None:
    runs: list[str] = []
    events: list[Event] = []
    offloader = make_offloader(on_event=events.append)
    graph, _ = graph_of(way(offloader, search_counting(runs), ask), *PARALLEL, checkpointer=InMemorySaver())

    await run(graph, mode, question())
    done = await run(graph, mode, Command(resume="yes"))

    # How often each runs is up to LangGraph: a thread may not have begun when the other interrupts.
    assert set(runs) == {"one", "two"}
    assert all(text_of(message).startswith(OPENING) for message in answers(done["messages"]))
    references = [reference for event in events for reference in event.references]
    assert len(set(references)) == 3
    # Around a node, an interrupted step returns no result to us; the other ways see each run of a call.
    assert len(references) > 3 or way is by_node or len(runs) == 2


@RUNS
@pytest.mark.parametrize("way", [by_calls, by_node])
async def test_each_of_several_calls_without_an_id_is_offloaded(way: Any, mode: str) -> None:
    @tool
    def search(query: str) -> ToolMessage:
        """Search for rows."""
        return ToolMessage(query + LONG, tool_call_id="")

    without_id = {"name": "search", "args": {"query": "x"}, "id": None}
    turns = (AIMessage("", tool_calls=[without_id]), AIMessage("", tool_calls=[without_id]), say())
    graph, _ = graph_of(way(make_offloader(), search), *turns)

    done = await run(graph, mode, question())

    texts = [text_of(message) for message in answers(done["messages"])]
    assert len(texts) == 2
    assert all(text.startswith(OPENING) and "\n  search-" in text for text in texts)


CONTROL = [GraphInterrupt(), GraphBubbleUp(), ParentCommand(Command(goto="next")), KeyboardInterrupt(), ValueError("x")]


class Request:
    tool_call: ClassVar[Any] = {"name": "search", "args": {}, "id": "call-1", "type": "tool_call"}
    tool = None
    state: ClassVar[Any] = {"messages": []}
    runtime = None


@pytest.mark.parametrize("error", CONTROL, ids=lambda error: type(error).__name__)
async def test_exceptions_from_the_handler_propagate_untouched_and_unlogged(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    request: Any = Request()
    middleware = OffloadMiddleware()

    def handler(_: Any) -> Any:
        raise error

    async def ahandler(_: Any) -> Any:
        raise error

    with caplog.at_level(logging.DEBUG, logger="coatcheck_langchain"):
        with pytest.raises(type(error)) as raised:
            middleware.wrap_tool_call(request, handler)
        with pytest.raises(type(error)) as araised:
            await middleware.awrap_tool_call(request, ahandler)

    assert raised.value is araised.value is error
    assert not [record for record in caplog.records if record.name == "coatcheck_langchain"]


@RUNS
async def test_a_handler_is_called_once_for_each_call(mode: str) -> None:
    runs: list[str] = []
    agent, _ = agent_of([search_counting(runs)], call(("search", {"query": "one"})), say())

    await run(agent, mode, question())

    assert runs == ["one"]
