"""Commands, lists of them, and the messages inside: everything but an oversized answer stays as the tool made it."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.prebuilt import ToolRuntime  # noqa: TC002 - LangGraph finds the parameter by its annotation
from langgraph.types import Command, Send
from pydantic import BaseModel

from coatcheck_langchain import (
    OffloadMiddleware,
    offload_tool_calls,
    offload_tool_node,
    offloaded_references,
    retrieval_tool,
)
from tests.adapters.langchain.samples import LONG, OPENING, SHORT, make_offloader, text_of
from tests.adapters.langgraph.agents import agent_of, answers, call, graph_of, question, say, tool_node

if TYPE_CHECKING:
    from collections.abc import Callable

CallId = Annotated[str, InjectedToolCallId]

RUNS = pytest.mark.parametrize("mode", ["sync", "async"])


async def run(graph: Any, mode: str, given: Any = None) -> list[BaseMessage]:
    given = question() if given is None else given
    result = graph.invoke(given) if mode == "sync" else await graph.ainvoke(given)
    messages: list[BaseMessage] = result["messages"]
    return messages


def wrapped(tools: list[Any], way: str) -> Any:
    offloader = make_offloader()
    everything = [*tools, retrieval_tool(offloader)]
    if way == "calls":
        return tool_node(everything, **offload_tool_calls(offloader))
    return offload_tool_node(tool_node(everything), offloader)


WAYS = pytest.mark.parametrize("way", ["calls", "node"])


def answer(call_id: str, content: str = LONG, **fields: Any) -> ToolMessage:
    return ToolMessage(content=content, tool_call_id=call_id, **fields)


@RUNS
async def test_a_command_of_an_agents_tool_is_rewritten(mode: str) -> None:
    @tool
    def fetch(call_id: CallId) -> Command[Any]:
        """Fetch rows."""
        return Command(update={"messages": [HumanMessage("by the way"), answer(call_id, artifact={"a": 1})]})

    agent, model = agent_of([fetch], call(("fetch", {})), say())

    messages = await run(agent, mode)

    (message,) = answers(messages)
    assert text_of(message).startswith(OPENING)
    assert message.artifact == {"a": 1}
    assert [type(each) for each in model.seen[1]] == [HumanMessage, AIMessage, HumanMessage, ToolMessage]


@RUNS
@WAYS
async def test_a_list_of_messages_and_commands_is_rewritten(mode: str, way: str) -> None:
    @tool
    def fetch(call_id: CallId) -> Any:
        """Fetch rows."""
        return [Command(update={"messages": [HumanMessage("first")]}), answer(call_id)]

    graph, _ = graph_of(wrapped([fetch], way), call(("fetch", {})), say())

    messages = await run(graph, mode)

    assert [type(each).__name__ for each in messages[2:4]] == ["HumanMessage", "ToolMessage"]
    assert text_of(messages[3]).startswith(OPENING)


@RUNS
@WAYS
async def test_removals_and_other_messages_keep_their_places(mode: str, way: str) -> None:
    @tool
    def start_over(call_id: CallId, runtime: ToolRuntime) -> Command[Any]:
        """Start over with a summary."""
        last = runtime.state["messages"][-1]
        history = [RemoveMessage(id=REMOVE_ALL_MESSAGES), HumanMessage("summary"), last, answer(call_id)]
        return Command(update={"messages": history})

    graph, model = graph_of(wrapped([start_over], way), call(("start_over", {})), say())

    messages = await run(graph, mode)

    assert [type(each).__name__ for each in messages] == ["HumanMessage", "AIMessage", "ToolMessage", "AIMessage"]
    assert messages[0].content == "summary"
    assert text_of(messages[2]).startswith(OPENING)
    assert messages[2].tool_call_id == model.seen[1][1].tool_calls[0]["id"]  # type: ignore[attr-defined]


@RUNS
@WAYS
async def test_a_removal_alone_passes_through(mode: str, way: str) -> None:
    @tool
    def forget(call_id: CallId) -> Command[Any]:
        """Forget everything."""
        return Command(update={"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]})

    graph, _ = graph_of(wrapped([forget], way), call(("forget", {})), say())

    assert [type(each).__name__ for each in await run(graph, mode)] == ["AIMessage"]


@RUNS
@WAYS
async def test_earlier_answers_are_not_rewritten(mode: str, way: str) -> None:
    """A hand-off passes the whole history on. Rewriting it now would break the prompt cache for no gain."""

    @tool
    def hand_off(call_id: CallId, runtime: ToolRuntime) -> Command[Any]:
        """Hand everything over."""
        return Command(update={"messages": [*runtime.state["messages"], answer(call_id)]})

    earlier = [call(("other", {}), prefix="earlier"), answer("earlier-1", id="m-1", name="other")]
    graph, _ = graph_of(wrapped([hand_off], way), call(("hand_off", {})), say())

    messages = await run(graph, mode, {"messages": [HumanMessage("hello"), *earlier]})

    first, second = answers(messages)
    assert text_of(first) == LONG
    assert first.additional_kwargs == {}
    assert text_of(second).startswith(OPENING)


@RUNS
@WAYS
async def test_new_answers_to_other_calls_are_rewritten_too(mode: str, way: str) -> None:
    @tool
    def delegate(call_id: CallId) -> Command[Any]:
        """Let a sub-agent work, and show what it did."""
        asked = call(("inner", {}), prefix="inner")
        return Command(update={"messages": [answer(call_id, SHORT), asked, answer("inner-1", name="inner")]})

    graph, _ = graph_of(wrapped([delegate], way), call(("delegate", {})), say())

    first, second = answers(await run(graph, mode))

    assert text_of(first) == SHORT
    assert offloaded_references(second)[0].startswith("inner-")


@RUNS
@WAYS
async def test_a_message_given_as_a_mapping_is_rewritten(mode: str, way: str) -> None:
    @tool
    def fetch(call_id: CallId) -> Command[Any]:
        """Fetch rows."""
        return Command(update={"messages": [{"role": "tool", "content": LONG, "tool_call_id": call_id}]})

    graph, _ = graph_of(wrapped([fetch], way), call(("fetch", {})), say())

    (message,) = answers(await run(graph, mode))

    assert text_of(message).startswith(OPENING)


def wrap(result: Any, **arguments: Any) -> Any:
    """Return what the wrapper makes of a handler's result, without a graph around it."""
    wrapper = offload_tool_calls(make_offloader(), **arguments)["wrap_tool_call"]
    request: Any = Request()
    handler: Callable[[Any], Any] = lambda _: result  # noqa: E731 - the smallest handler
    return wrapper(request, handler)


class Request:
    tool_call: ClassVar[Any] = {"name": "fetch", "args": {}, "id": "call-1", "type": "tool_call"}
    tool = None
    state: ClassVar[Any] = {"messages": []}
    runtime = None


def test_a_command_is_rebuilt_with_all_its_fields() -> None:
    command: Command[Any] = Command(
        graph=Command.PARENT,
        resume={"interrupt": 1},
        goto=[Send("next", {"a": 1})],
        update={"messages": [HumanMessage("hello"), answer("call-1")], "count": 3},
    )

    new = wrap(command)

    assert isinstance(new, Command)
    assert (new.graph, new.resume, new.goto) == (command.graph, command.resume, command.goto)
    assert new.update["count"] == 3  # type: ignore[index]
    assert new.update["messages"][0] is command.update["messages"][0]  # type: ignore[index]
    assert text_of(new.update["messages"][1]).startswith(OPENING)  # type: ignore[index]
    assert command.update["messages"][1].content == LONG  # type: ignore[index]


def test_a_command_whose_update_is_a_list_is_rebuilt() -> None:
    new = wrap(Command(update=[HumanMessage("hello"), answer("call-1")]))

    assert text_of(new.update[1]).startswith(OPENING)


@RUNS
async def test_a_command_whose_update_is_pairs_is_applied(mode: str) -> None:
    """LangGraph takes only tuples as pairs. It would ignore lists, and the call would have no answer."""

    @tool
    def fetch() -> str:
        """Fetch rows."""
        return LONG

    def as_pairs(message: Any) -> Command[Any]:
        return Command(update=[("messages", [HumanMessage("by the way"), message])])

    class Pairs(AgentMiddleware[Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            return as_pairs(handler(request))

        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            return as_pairs(await handler(request))

    agent, _ = agent_of([fetch], call(("fetch", {})), say(), middleware=[OffloadMiddleware(), Pairs()])

    messages = await run(agent, mode)

    assert [type(each) for each in messages] == [HumanMessage, AIMessage, HumanMessage, ToolMessage, AIMessage]
    assert text_of(messages[3]).startswith(OPENING)


@dataclass
class DataclassState:
    messages: Annotated[list[BaseMessage], add_messages]
    count: int = 0


class ModelState(BaseModel):
    messages: Annotated[list[BaseMessage], add_messages]
    count: int = 0


@pytest.mark.parametrize("state", [DataclassState, ModelState])
def test_a_typed_state_is_rewritten(state: type[DataclassState | ModelState]) -> None:
    given = state(messages=[HumanMessage("hello"), answer("call-1")], count=3)

    for new in (wrap(given), wrap(Command(update=given)).update):
        assert isinstance(new, state)
        assert new.count == 3
        assert new.messages[0] is given.messages[0]
        assert text_of(new.messages[1]).startswith(OPENING)
    assert given.messages[1].content == LONG


class OnlyOne(DataclassState):
    """A state that cannot be copied: its copy is itself."""

    def __copy__(self) -> OnlyOne:
        return self


def test_a_state_whose_copy_is_itself_stays_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    given = OnlyOne(messages=[answer("call-1")])

    assert wrap(given) is given
    assert given.messages[0].content == LONG
    assert "TypeError" in caplog.text


@pytest.mark.parametrize(
    "result",
    [
        DataclassState(messages=[answer("call-1", SHORT)]),
        ModelState(messages=[answer("call-1", SHORT)]),
        Command(update=[("messages", [answer("call-1", SHORT)])]),
        Command(goto="next"),
        Command(update={"count": 1}),
        Command(update={"messages": [answer("call-1", SHORT)]}),
        Command(update=[answer("call-1", SHORT)]),
        Command(update="anything"),
        Command(resume=1),
        answer("call-1", SHORT),
        [answer("call-1", SHORT), Command(goto="next")],
        None,
        "text",
    ],
    ids=repr,
)
def test_an_unchanged_result_is_the_very_same_object(result: Any) -> None:
    assert wrap(result) is result


@RUNS
async def test_a_command_for_the_parent_graph_is_rewritten(mode: str) -> None:
    @tool
    def hand_off(call_id: CallId) -> Command[Any]:
        """Hand over to the parent's node."""
        return Command(graph=Command.PARENT, goto="after", update={"messages": [answer(call_id)]})

    inner, _ = agent_of([hand_off], call(("hand_off", {})), say(), middleware=[OffloadMiddleware()])
    seen: list[BaseMessage] = []

    def after(state: MessagesState) -> dict[str, Any]:
        seen.extend(state["messages"])
        return {"messages": []}

    builder = StateGraph(MessagesState)
    builder.add_node("inner", inner, destinations=("after",))
    builder.add_node("after", after)
    builder.add_edge(START, "inner")

    await run(builder.compile(), mode)

    assert text_of(answers(seen)[0]).startswith(OPENING)
