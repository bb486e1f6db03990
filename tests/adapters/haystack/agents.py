"""Real agents around a scripted chat generator, and what tools return in Haystack, for the tests of this adapter.

Only building, running and small samples belong here. The generator plays its script, and keeps the messages that it was
sent.
"""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

from haystack import component
from haystack.components.agents import Agent
from haystack.components.agents.state import State
from haystack.dataclasses import ChatMessage, FileContent, ImageContent, TextContent, ToolCall, ToolCallResult
from haystack.tools.tool import Tool

from coatcheck_haystack import RetrievalTool, ToolResultOffloadHook, offloaded_references

Turn = ChatMessage | Callable[[list[ChatMessage]], ChatMessage]

UPSTREAM_OUTLIVES_ITS_STORE = tuple(map(int, version("haystack-ai").split(".")[:2])) >= (3, 4)
"""Whether Haystack's own hook outlives an error of its store. Before 3.4, such an error ended the run."""

OPENING = "Tool result offloaded."
SHORT = "a few words"
LONG = "".join(f"row {number}: the quick brown fox jumps over the lazy dog\n" for number in range(2_000))
PNG = b"\x89PNG" + bytes(range(256)) * 8
IMAGE = ImageContent(base64.b64encode(PNG).decode(), mime_type="image/png", detail="low", meta={"page": 1})
PDF = FileContent(base64.b64encode(b"%PDF" * 500).decode(), mime_type="application/pdf", filename="report.pdf")
NO_ARGUMENTS = {"type": "object", "properties": {}}


@component
class Scripted:
    """Answers with the next turn of its script; a callable gets the conversation."""

    def __init__(self, *script: Turn) -> None:
        self.script = script
        self.seen: list[list[ChatMessage]] = []
        self.tools: list[str] = []

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None, **kwargs: Any) -> dict[str, Any]:
        turn = self.script[min(len(self.seen), len(self.script) - 1)]
        self.seen.append(list(messages))
        self.tools = [tool.name for tool in tools or ()]
        return {"replies": [turn(messages) if callable(turn) else turn]}

    @component.output_types(replies=list[ChatMessage])
    async def run_async(self, messages: list[ChatMessage], tools: Any = None, **kwargs: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.run(messages, tools, **kwargs)
        return answer


def call(*requests: tuple[str, dict[str, Any]], prefix: str | None = "call") -> ChatMessage:
    """Return a turn that calls tools, in parallel if there are several. Without a prefix, calls have no id."""
    calls = [
        ToolCall(name, arguments, id=None if prefix is None else f"{prefix}-{place}")
        for place, (name, arguments) in enumerate(requests, 1)
    ]
    return ChatMessage.from_assistant(tool_calls=calls)


def say(text: str = "done") -> ChatMessage:
    return ChatMessage.from_assistant(text)


def read(name: str = "retrieve_offloaded_content", **selectors: Any) -> Callable[[list[ChatMessage]], ChatMessage]:
    """Return a turn that calls the retrieval tool with the first reference of the conversation."""

    def turn(messages: list[ChatMessage]) -> ChatMessage:
        reference = next(reference for message in messages for reference in offloaded_references(message))
        return call((name, {"reference": reference, **selectors}), prefix="read")

    return turn


def tool(name: str, result: Any, *, raw: bool = False) -> Tool:
    """Return a tool that always returns the same result, or raises it. With ``raw``, it is a list of content."""

    def give() -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    outputs = {"raw_result": True} if raw else None
    return Tool(name, f"Gives {name}.", NO_ARGUMENTS, function=give, outputs_to_string=outputs)


def agent_of(
    tools: Sequence[Tool],
    *script: Turn,
    hook: Any = None,
    reads: bool = True,
    hooks: Sequence[Any] | None = None,
    **kwargs: Any,
) -> tuple[Agent, Scripted]:
    """Return an agent with a hook and, if ``reads``, the hook's retrieval tool. Return its generator too."""
    generator = Scripted(*script)
    chosen: list[Tool] = [*tools, *([RetrievalTool(hook)] if reads and isinstance(hook, ToolResultOffloadHook) else ())]
    after = [hook] if hooks is None else list(hooks)
    return Agent(chat_generator=generator, tools=chosen, hooks={"after_tool": after}, **kwargs), generator


async def run(agent: Agent, mode: str = "sync", question: str | list[ChatMessage] = "hello", **kwargs: Any) -> Any:
    """Run an agent sync or async; return its answer."""
    messages = [ChatMessage.from_user(question)] if isinstance(question, str) else question
    if mode == "sync":
        return agent.run(messages=messages, **kwargs)
    return await agent.run_async(messages=messages, **kwargs)


def results(messages: Sequence[ChatMessage]) -> list[ToolCallResult]:
    return [result for message in messages if (result := message.tool_call_result) is not None]


def tool_messages(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    return [message for message in messages if message.tool_call_result is not None]


def text_of(result: ToolCallResult) -> str:
    """Return the text parts of a result."""
    if isinstance(result.result, str):
        return result.result
    return "\n".join(part.text for part in result.result if isinstance(part, TextContent))


def state_of(*contents: Any, name: str = "search", **data: Any) -> State:
    """Return the state of a run after a step whose tool calls, all of one tool, had these results."""
    calls = [ToolCall(name, {"number": number}, id=f"call-{number}") for number in range(len(contents))]
    messages = [
        ChatMessage.from_user("hello"),
        ChatMessage.from_assistant(tool_calls=calls),
        *(ChatMessage.from_tool(content, origin=origin) for content, origin in zip(contents, calls, strict=True)),
    ]
    schema = {"messages": {"type": list[ChatMessage]}, "hook_context": {"type": dict}, "step_count": {"type": int}}
    state = State(schema={**schema, "tools": {"type": list}})
    for key, value in {"messages": messages, "step_count": 0, **data}.items():
        state.set(key, value)
    return state


def last(state: State) -> ToolCallResult:
    """Return the last tool result in a state."""
    return results(state.data["messages"])[-1]
