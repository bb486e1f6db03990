"""One short conversation as each format records it, and files with it, for the tests of ``coatcheck replay``."""

# ruff: noqa: ANN401 - the content of a message is any JSON value

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

TOOL = "search"
ARGUMENTS = {"words": "lost umbrella"}
QUESTION = "Where is it?"
ANSWER = "In the cloakroom."
BIG = "\n".join(f"row {number}: a coat, a hat and an umbrella" for number in range(1_000))


def openai(result: Any, **details: Any) -> list[dict[str, Any]]:
    call = {"id": "c1", "type": "function", "function": {"name": TOOL, "arguments": json.dumps(ARGUMENTS)}}
    return [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": result, **details},
        {"role": "assistant", "content": ANSWER},
    ]


def anthropic(result: Any, **details: Any) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": TOOL, "input": ARGUMENTS}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": result, **details}]},
        {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]},
    ]


def langchain(result: Any, **details: Any) -> list[dict[str, Any]]:
    call = {"name": TOOL, "args": ARGUMENTS, "id": "c1", "type": "tool_call"}
    return [
        {"type": "human", "content": QUESTION},
        {"type": "ai", "content": "", "tool_calls": [call], "invalid_tool_calls": []},
        {"type": "tool", "content": result, "tool_call_id": "c1", "name": None, **details},
        {"type": "ai", "content": ANSWER, "tool_calls": []},
    ]


def langchain_as_dict(result: Any, **details: Any) -> list[dict[str, Any]]:
    return [{"type": message["type"], "data": message} for message in langchain(result, **details)]


def langchain_dumped(result: Any, **details: Any) -> list[dict[str, Any]]:
    names = {"human": "HumanMessage", "ai": "AIMessageChunk", "tool": "ToolMessage"}
    return [
        {"lc": 1, "type": "constructor", "id": ["langchain", "schema", names[message["type"]]], "kwargs": message}
        for message in langchain(result, **details)
    ]


def strands(result: Any, **details: Any) -> list[dict[str, Any]]:
    content = [{"text": result}] if isinstance(result, str) else result
    return [
        {"role": "user", "content": [{"text": QUESTION}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": TOOL, "input": ARGUMENTS}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": content, **details}}]},
        {"role": "assistant", "content": [{"text": ANSWER}]},
    ]


def haystack(result: Any, *, meta: dict[str, Any] | None = None, **details: Any) -> list[dict[str, Any]]:
    call = {"tool_name": TOOL, "arguments": ARGUMENTS, "id": "c1"}
    returned = {"tool_call_result": {"result": result, "origin": call, "error": False, **details}}
    return [
        {"role": "user", "meta": {}, "name": None, "content": [{"text": QUESTION}]},
        {"role": "assistant", "meta": {}, "name": None, "content": [{"tool_call": call}]},
        {"role": "tool", "meta": meta or {}, "name": None, "content": [returned]},
        {"role": "assistant", "meta": {}, "name": None, "content": [{"text": ANSWER}]},
    ]


def responses(result: Any, **details: Any) -> list[dict[str, Any]]:
    call = {"type": "function_call", "call_id": "c1", "name": TOOL, "arguments": json.dumps(ARGUMENTS)}
    said = [{"type": "output_text", "text": ANSWER, "annotations": []}]
    return [
        {"role": "user", "content": QUESTION},
        {**call, "id": "fc_1", "status": "completed"},
        {"type": "function_call_output", "call_id": "c1", "output": result, **details},
        {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "content": said},
    ]


RECORDERS = {
    "OpenAI messages": [openai],
    "Anthropic messages": [anthropic],
    "LangChain messages": [langchain, langchain_as_dict, langchain_dumped],
    "Haystack messages": [haystack],
    "Strands messages": [strands],
    "OpenAI Responses items": [responses],
}
"""The functions that record the conversation, by the name of the format."""


def saved(path: Path, value: object) -> Path:
    """Write a value as JSON; return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def session(folder: Path, messages: list[dict[str, Any]], *, agent: str = "default") -> Path:
    """Write messages as Strands' session manager does; return its folder."""
    for number, message in enumerate(messages):
        held = {"message": message, "message_id": number, "redact_message": None}
        saved(folder / f"session_1/agents/agent_{agent}/messages/message_{number}.json", held)
    return folder
