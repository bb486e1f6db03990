# /// script
# requires-python = ">=3.10"
# dependencies = ["coatcheck[langgraph]"]
#
# [tool.uv.sources]
# coatcheck = { path = ".." }  # not on the package index yet: this checkout
# ///
"""A hand-built LangGraph graph with a wrapped tool node: a whole step of parallel calls gets one budget.

    python examples/langchain_tool_node.py

No model is needed: the graph starts with the calls that a model would make.
"""

import tempfile

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from coatcheck import FileStorage, Offloader
from coatcheck_langchain import offload_tool_node, offloaded_references, retrieval_tool


@tool
def list_orders(customer: str) -> list[dict[str, object]]:
    """Return all orders of a customer."""
    return [{"id": number, "customer": customer, "total": number / 4} for number in range(60)]


with tempfile.TemporaryDirectory() as folder:
    # Each result has about 1,300 tokens and would stay, but the four together may take at most 3,000.
    offloader = Offloader(FileStorage(folder), max_step_tokens=3_000)
    node = offload_tool_node(ToolNode([list_orders, retrieval_tool(offloader)]), offloader)
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()

    names = ["Ada", "Grace", "Edsger", "Barbara"]
    calls = [{"name": "list_orders", "args": {"customer": name}, "id": name} for name in names]
    thread: RunnableConfig = {"configurable": {"thread_id": "conversation-1"}}
    result = graph.invoke({"messages": [AIMessage("", tool_calls=calls)]}, thread)
    messages = result["messages"][1:]
    for message in messages:
        print(f"{message.tool_call_id}: {len(message.content):,} characters, {offloaded_references(message) or 'kept'}")

    offloaded = [reference for message in messages for reference in offloaded_references(message)]
    assert 0 < len(offloaded) <= len(names)

    question = {"reference": offloaded[0], "query": "[?total > `14`].id"}
    calls = [{"name": "retrieve_offloaded_content", "args": question, "id": "again"}]
    result = graph.invoke({"messages": [AIMessage("", tool_calls=calls)]}, thread)
    print(result["messages"][-1].content)
    assert "57" in result["messages"][-1].content
