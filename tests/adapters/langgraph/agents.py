"""Real agents and graphs around a scripted model, for the tests of the ``langgraph`` extra.

Only building and running them belongs here. The model plays its script, and keeps what it was sent.
"""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from coatcheck_langchain import OffloadMiddleware, offloaded_references

if TYPE_CHECKING:
    from langchain_core.callbacks import CallbackManagerForLLMRun
    from langchain_core.runnables import Runnable
    from langchain_core.tools import BaseTool

Turn = AIMessage | Callable[[list[BaseMessage]], AIMessage]


class ScriptedModel(BaseChatModel):
    """Answers with the next turn of its script; a callable gets the conversation."""

    script: list[Any]
    seen: list[list[BaseMessage]]
    tools: list[str]
    offered: list[list[str]]

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        turn = self.script[min(len(self.seen), len(self.script) - 1)]
        self.seen.append(list(messages))
        self.offered.append(list(self.tools))
        message = turn(messages) if callable(turn) else turn
        return ChatResult(generations=[ChatGeneration(message=message)])

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        self.tools[:] = [each.name for each in tools]
        return self

    @property
    def _llm_type(self) -> str:
        return "scripted"


def call(*requests: tuple[str, dict[str, Any]], prefix: str = "call") -> AIMessage:
    """Return a turn that calls tools, in parallel if there are several."""
    calls = [
        {"type": "tool_call", "name": name, "args": args, "id": f"{prefix}-{place}"}
        for place, (name, args) in enumerate(requests, 1)
    ]
    return AIMessage("", tool_calls=calls)


def say(text: str = "done") -> AIMessage:
    return AIMessage(text)


def answers(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    return [message for message in messages if isinstance(message, ToolMessage)]


def reference_in(messages: Sequence[BaseMessage]) -> str:
    """Return the first reference that the conversation shows."""
    return next(reference for message in answers(messages) for reference in offloaded_references(message))


def read(**selectors: Any) -> Callable[[list[BaseMessage]], AIMessage]:
    """Return a turn that calls the retrieval tool with the first reference of the conversation."""

    def turn(messages: list[BaseMessage]) -> AIMessage:
        args = {"reference": reference_in(messages), **selectors}
        return call(("retrieve_offloaded_content", args), prefix="read")

    return turn


def model_of(*script: Turn) -> ScriptedModel:
    return ScriptedModel(script=list(script), seen=[], tools=[], offered=[])


def agent_of(
    tools: Sequence[BaseTool | Callable[..., Any]],
    *script: Turn,
    middleware: Sequence[Any] | None = None,
    **kwargs: Any,
) -> tuple[Any, ScriptedModel]:
    """Return an agent, with ``OffloadMiddleware`` unless others are given, and its model."""
    model = model_of(*script)
    chosen = [OffloadMiddleware()] if middleware is None else list(middleware)
    return create_agent(model, list(tools), middleware=chosen, **kwargs), model


def graph_of(node: Runnable[Any, Any], *script: Turn, **kwargs: Any) -> tuple[Any, ScriptedModel]:
    """Return a hand-built graph with a model and a tool node in a loop. Return its model too."""
    model = model_of(*script)

    def think(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    def go_on(state: MessagesState) -> str:
        last = state["messages"][-1]
        return "tools" if isinstance(last, AIMessage) and last.tool_calls else "__end__"

    graph = StateGraph(MessagesState)
    graph.add_node("think", think)
    graph.add_node("tools", node)
    graph.add_edge(START, "think")
    graph.add_conditional_edges("think", go_on, ["tools", "__end__"])
    graph.add_edge("tools", "think")
    return graph.compile(**kwargs), model


def tool_node(tools: Sequence[BaseTool | Callable[..., Any]], **kwargs: Any) -> ToolNode:
    return ToolNode(list(tools), **kwargs)


def question(text: str = "hello") -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def thread(name: str, **configurable: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": name, **configurable}}


async def run(agent: Any, mode: str, given: Any = None, config: Any = None) -> list[BaseMessage]:
    """Run an agent to its end, ``"sync"`` or ``"async"``, and return the whole conversation."""
    given = question() if given is None else given
    result = agent.invoke(given, config) if mode == "sync" else await agent.ainvoke(given, config)
    messages: list[BaseMessage] = result["messages"]
    return messages
