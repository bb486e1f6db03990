"""Graphs for LangGraph's server: a middleware, a wrapped tool node, content in the server's store, a blocking node."""

from __future__ import annotations

import os
import time

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph_sdk.runtime import ServerRuntime  # noqa: TC002 - the server reads the annotation

from coatcheck import FileStorage, LangGraphStoreBridge, Offloader
from coatcheck.testing.samples import numbered_lines
from coatcheck_langchain import OffloadMiddleware, offload_tool_node, retrieval_tool

ARTIFACTS = os.environ["COATCHECK_ARTIFACTS"]
model = ChatOpenAI(model="m", base_url=os.environ["COATCHECK_MODEL"], api_key="none", max_retries=0)  # type: ignore[arg-type] # a plain `str` is accepted


@tool
async def fetch() -> str:
    """Give a large result."""
    return numbered_lines(2_000)


middleware = create_agent(model, [fetch], middleware=[OffloadMiddleware(FileStorage(ARTIFACTS))])

offloader = Offloader(FileStorage(ARTIFACTS))
tools = [fetch, retrieval_tool(offloader)]
asked = model.bind_tools(tools)


async def ask(state: MessagesState) -> dict[str, list[AIMessage]]:
    """Ask the model."""
    return {"messages": [await asked.ainvoke(state["messages"])]}


def wants_tools(state: MessagesState) -> str:
    """Return the node that follows the model."""
    last = state["messages"][-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else END


graph = StateGraph(MessagesState).add_node("model", ask)
graph.add_node("tools", offload_tool_node(ToolNode(tools), offloader))
graph.add_edge(START, "model").add_conditional_edges("model", wants_tools, ["tools", END]).add_edge("tools", "model")
node = graph.compile()


async def store(runtime: ServerRuntime[None]) -> object:
    """Return an agent that keeps content in the server's store."""
    return create_agent(model, [fetch], middleware=[OffloadMiddleware(LangGraphStoreBridge(runtime.store))])


async def block(state: MessagesState) -> dict[str, list[AIMessage]]:
    """Block the event loop."""
    del state
    time.sleep(0.001)  # noqa: ASYNC251 - the server must notice this one
    return {"messages": []}


blocking = StateGraph(MessagesState).add_node("block", block).add_edge(START, "block").compile()
