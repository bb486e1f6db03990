"""Harnesses of the LangChain adapter: the three ways to build an agent, each with the real OpenAI client.

A harness builds the agent and runs it, sync or async. It also converts the fixture's blocks to LangChain's.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

import httpx
from langchain.agents import create_agent
from langchain.agents.middleware import after_model
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, ToolRuntime, tools_condition
from langgraph.types import Command, Send, interrupt

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck_langchain import (
    OffloadMiddleware,
    offload_tool_calls,
    offload_tool_node,
    offloaded_references,
    retrieval_tool,
)
from tests.serving import CLIENT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import ToolCall
    from langchain_core.runnables import Runnable, RunnableConfig
    from langchain_core.tools.base import ArgsSchema

    from coatcheck import Offloader, Scope
    from coatcheck.testing import Returned, Run, Transcript
    from coatcheck.testing.server import Conversation, ScriptedServer

__all__ = ("CreateAgentHarness", "LangChainHarness", "ToolNodeHarness", "WrappedNodeHarness")

QUESTION = {"messages": [("user", "Find out.")]}
INTERRUPTS = "__interrupt__"
"""The key in an agent's state that holds the interrupts that stopped it."""

RESUME: Command[Any] = Command(resume="go on")

MAX_STEPS = 2_000
"""The step limit. A model that reads page after page takes many steps."""

FROM_A_TOOL = {"text", "json", "image", "file"}
"""Types of blocks that LangChain accepts in a tool's list. Any other turns the list into one JSON string."""


class LangChainHarness:
    """Runs an agent that ``build`` makes."""

    def __init__(self, server: ScriptedServer, *, streaming: bool = False) -> None:
        self._server = server
        self._streaming = streaming

    def build(self, case: Run, model: BaseChatModel) -> Runnable[Any, Any]:
        """Build the agent."""
        raise NotImplementedError

    def run(self, case: Run) -> Transcript:
        with self._server.conversation(case.model) as conversation, client() as sync:
            agent = self.build(case, self.model(conversation, sync, async_client()))
            config = config_of(case)
            stopped = state = agent.invoke(QUESTION, config)
            while INTERRUPTS in state:
                state = agent.invoke(RESUME, config)
            return transcript_of(conversation, state, case, was_interrupted=state is not stopped)

    async def arun(self, case: Run) -> Transcript:
        with self._server.conversation(case.model) as conversation:
            async with async_client() as asynchronous:
                agent = self.build(case, self.model(conversation, client(), asynchronous))
                config = config_of(case)
                stopped = state = await agent.ainvoke(QUESTION, config)
                while INTERRUPTS in state:
                    state = await agent.ainvoke(RESUME, config)
            return transcript_of(conversation, state, case, was_interrupted=state is not stopped)

    def model(self, conversation: Conversation, sync: httpx.Client, asynchronous: httpx.AsyncClient) -> BaseChatModel:
        """Return one of LangChain's own models, connected to the scripted server."""
        return ChatOpenAI(
            model="scripted",
            base_url=conversation.base_url,
            api_key="none",  # type: ignore[arg-type] # a plain `str` is accepted
            max_retries=0,
            timeout=CLIENT_SECONDS,
            streaming=self._streaming,
            # Both, although only one is used: LangChain would make the other, which takes 70 ms to read certificates,
            # and the async client that LangChain shares would outlive its event loop.
            http_client=sync,
            http_async_client=asynchronous,
        )


def client() -> httpx.Client:
    """Return a client that uses no proxy and reads no certificates."""
    return httpx.Client(transport=httpx.HTTPTransport(verify=False, trust_env=False), trust_env=False)


def async_client() -> httpx.AsyncClient:
    """Return an async client that uses no proxy and reads no certificates."""
    return httpx.AsyncClient(transport=httpx.AsyncHTTPTransport(verify=False, trust_env=False), trust_env=False)


class CreateAgentHarness(LangChainHarness):
    """``create_agent`` with ``OffloadMiddleware``."""

    def build(self, case: Run, model: BaseChatModel) -> Runnable[Any, Any]:
        middleware: list[AgentMiddleware[Any, Any, Any]] = []
        if case.offloader is not None:
            middleware.append(case.share(partial(OffloadMiddleware, case.offloader, scope=case.scope)))
        if case.cancelled_tools:
            middleware.append(after_model(lambda state, _: cancelled(state, case)))
        return create_agent(model, tools_of(case), middleware=middleware, checkpointer=checkpointer_of(case))


class ToolNodeHarness(LangChainHarness):
    """A graph built by hand around a ``ToolNode`` that calls through ``offload_tool_calls``."""

    def build(self, case: Run, model: BaseChatModel) -> Runnable[Any, Any]:
        tools = tools_of(case)
        if case.offloader is None:
            return graph(case, model, tools, ToolNode(tools))
        make = partial(wrappers_and_reader, case.offloader, case.scope)
        wrappers, reader = case.share(make)
        tools = with_reader(tools, reader)
        return graph(case, model, tools, ToolNode(tools, **wrappers))


class WrappedNodeHarness(LangChainHarness):
    """The same graph around a node that ``offload_tool_node`` wraps."""

    def build(self, case: Run, model: BaseChatModel) -> Runnable[Any, Any]:
        tools = tools_of(case)
        if case.offloader is None:
            return graph(case, model, tools, ToolNode(tools))
        tools = with_reader(tools, retrieval_tool(case.offloader, scope=case.scope))
        make = partial(offload_tool_node, ToolNode(tools), case.offloader, scope=case.scope)
        return graph(case, model, tools, case.share(make))


def graph(case: Run, model: BaseChatModel, tools: list[BaseTool], node: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """Build the usual graph: the model, then its tools, until it calls none. A node may answer for some tools."""
    bound = model.bind_tools(tools)

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound.invoke(state["messages"])]}

    async def aask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await bound.ainvoke(state["messages"])]}

    builder = StateGraph(MessagesState)
    builder.add_node("model", RunnableLambda(ask, aask))
    builder.add_node("tools", node)
    builder.set_entry_point("model")
    if case.cancelled_tools:
        builder.add_conditional_edges("model", tools_condition, {"tools": "cancel", END: END})
        builder.add_node("cancel", lambda state: cancelled(state, case))
        builder.add_conditional_edges("cancel", lambda state: pending(state, case), ["tools", "model"])
    else:
        builder.add_conditional_edges("model", tools_condition)
    final = {tool.name for tool in tools if tool.return_direct}
    builder.add_conditional_edges("tools", lambda state: END if state["messages"][-1].name in final else "model")
    return builder.compile(checkpointer=checkpointer_of(case))


def cancelled(state: Mapping[str, Any], case: Run) -> dict[str, Any]:
    """Answer for the tools that the host cancels, as a node with a human in the loop does."""
    messages = [
        ToolMessage(text_of(case, call), tool_call_id=call["id"], name=call["name"], status="error")
        for call in state["messages"][-1].tool_calls
        if call["name"] in case.cancelled_tools
    ]
    return {"messages": messages}


def pending(state: Mapping[str, Any], case: Run) -> list[Send] | str:
    """Send the other calls to their tools, if there are any."""
    asked = next(message for message in reversed(state["messages"]) if isinstance(message, AIMessage))
    calls = [call for call in asked.tool_calls if call["name"] not in case.cancelled_tools]
    return [Send("tools", calls)] if calls else "model"


def text_of(case: Run, call: ToolCall) -> str:
    """Return the text that a tool would return."""
    returned = case.tools[call["name"]][call["args"]["number"]]
    return "\n".join(block.text for block in returned.blocks if isinstance(block, TextBlock))


def checkpointer_of(case: Run) -> InMemorySaver | None:
    """Return the checkpointer, which only an agent that stops and continues needs."""
    return InMemorySaver() if case.interrupting_tools else None


def transcript_of(
    conversation: Conversation, state: Mapping[str, Any], case: Run, *, was_interrupted: bool
) -> Transcript:
    """Return the transcript with a tool's answer to the user, and with the marks that are not sent."""
    results = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    transcript = conversation.transcript()
    received = [
        replace(one, is_error=message.status == "error", references=offloaded_references(message))
        for one, message in zip(transcript.received, results, strict=False)  # the model does not see a final answer
    ]
    last = state["messages"][-1]
    answer = str(last.content) if isinstance(last, ToolMessage) and last.name in case.final_tools else None
    return replace(transcript, received=tuple(received), answer=answer, was_interrupted=was_interrupted)


def config_of(case: Run) -> RunnableConfig:
    """Return the configuration of a run. An agent that stops needs a thread, so it gets one if none is given."""
    thread = case.identity or ("made up" if case.interrupting_tools else None)
    return {"recursion_limit": MAX_STEPS, "configurable": {} if thread is None else {"thread_id": thread}}


def wrappers_and_reader(offloader: Offloader, scope: Scope | None) -> tuple[dict[str, Any], BaseTool]:
    """Return the wrappers that a ``ToolNode`` calls through, and the retrieval tool."""
    return {**offload_tool_calls(offloader, scope=scope)}, retrieval_tool(offloader, scope=scope)


def with_reader(tools: list[BaseTool], reader: BaseTool) -> list[BaseTool]:
    """Return the tools with the retrieval tool. Users add it themselves, but not twice under one name."""
    return tools if reader.name in {tool.name for tool in tools} else [*tools, reader]


def tools_of(case: Run) -> list[BaseTool]:
    """Return the tools of a run."""
    return [tool_of(name, results, case) for name, results in case.tools.items()]


def tool_of(name: str, results: Mapping[int, Returned], case: Run) -> BaseTool:
    """Return a tool that gives a result for each number."""

    def give(number: int, runtime: ToolRuntime) -> object:
        if name in case.interrupting_tools:
            interrupt("may I?")
        result: Any = case.watch_result(native_result(results[number], runtime.tool_call_id or ""))
        # LangChain turns what a tool returns into a message only if the call has an id.
        return result if runtime.tool_call_id is not None else ToolMessage(result, tool_call_id="")

    is_final = name in case.final_tools
    made = StructuredTool.from_function(
        give,
        args_schema=arguments_of_a_tool(),
        name=name,
        description="Gives a result.",
        handle_tool_error=True,
        return_direct=is_final,
        metadata={"coatcheck": "keep"} if name in case.kept_tools else None,
        extras={"allowed_callers": ["programmatic"]} if name in case.code_tools else None,
    )
    return cast("BaseTool", case.watch(made))


@cache
def arguments_of_a_tool() -> ArgsSchema:
    """Return the schema that all tools here share. Pydantic takes longer to build one than an agent takes to run."""

    def give(number: int, runtime: ToolRuntime) -> object:
        raise NotImplementedError

    made = StructuredTool.from_function(give, description="Gives a result.").args_schema
    assert made is not None
    return made


def native_result(result: Returned, call_id: str) -> object:
    """Return a result as a LangChain tool would: a ``str``, a list of blocks, or a command if a list cannot hold it."""
    if len(result.blocks) == 1 and isinstance(result.blocks[0], TextBlock):
        if result.is_error:
            raise ToolException(result.blocks[0].text)
        return result.blocks[0].text
    content = [native_block(block) for block in result.blocks]
    if not result.is_error and all(block["type"] in FROM_A_TOOL for block in content):
        return content
    message = ToolMessage(content, tool_call_id=call_id, status="error" if result.is_error else "success")  # type: ignore[arg-type] # any block
    return Command(update={"messages": [message]})


def native_block(block: Block) -> dict[str, Any]:
    """Convert a content block to LangChain's format."""
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case JsonBlock():
            return {"type": "json", "json": block.value}
        case MediaBlock():
            kind = block.media_type.partition("/")[0]
            encoded = base64.b64encode(block.data).decode()
            native = {"type": kind if kind in {"image", "audio", "video"} else "file", "base64": encoded}
            return {**native, "mime_type": block.media_type, **({"filename": block.name} if block.name else {})}
        case OpaqueBlock():
            return {"type": "search_result", "title": "unknown to coatcheck", "content": block.native}
