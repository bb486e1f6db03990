"""The scripted model in OpenAI's Responses API: a request's ``input`` in, a response with ``output`` items out.

Only the wire format belongs here; ``server`` serves it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from coatcheck.testing.harness import Received

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coatcheck.testing.harness import ModelCall

__all__ = ("events", "received", "received_in", "response")


def received_in(body: dict[str, Any]) -> tuple[Received, ...]:
    """Return the tool results in a request."""
    items = body["input"] if isinstance(body["input"], list) else ()
    outputs = (item["output"] for item in items if item.get("type") == "function_call_output")
    return tuple(received(output, text_type="input_text") for output in outputs)


def received(content: str | list[dict[str, Any]], *, text_type: str) -> Received:
    """Return one tool result: its parts of ``text_type``, joined by newlines, and its whole content."""
    texts = [content] if isinstance(content, str) else [one["text"] for one in content if one.get("type") == text_type]
    return Received(text="\n".join(texts), raw=json.dumps(content, ensure_ascii=False))


def response(calls: Sequence[ModelCall], says: str | None, *, number: int) -> dict[str, Any]:
    """Return the response: tool calls, or what the model says. ``number`` is unique within the conversation."""
    program = f"program_{number}"
    items = [call_item(call, f"fc_{number}_{index}", program=program) for index, call in enumerate(calls)]
    if any(call.by_code for call in calls):
        items.insert(0, {"type": "program", "id": program, "call_id": program, "code": "", "fingerprint": ""})
    if says is not None:
        text = {"type": "output_text", "text": says, "annotations": []}
        items = [{"type": "message", "id": f"msg_{number}", "role": "assistant", "content": [text]}]
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "model": "scripted",
        "status": "completed",
        "output": [{**item, "status": "completed"} for item in items],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        },
    }


def call_item(call: ModelCall, item_id: str, *, program: str) -> dict[str, Any]:
    """Return a tool call in the wire format, its arguments as JSON text. ``program`` is the id of the calling code."""
    identified = {} if call.call_id is None else {"call_id": call.call_id}
    called = {"caller": {"type": "program", "caller_id": program}} if call.by_code else {}
    arguments = json.dumps(dict(call.arguments))
    return {"type": "function_call", "id": item_id, "name": call.tool, "arguments": arguments, **identified, **called}


def events(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of a streamed response: each item in one piece, then the whole response."""
    started = {**whole, "status": "in_progress", "output": []}
    steps: list[dict[str, Any]] = [{"type": "response.created", "response": started}]
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        steps.append({"type": "response.output_item.added", "output_index": index, "item": item})
        # Clients that build items piece by piece wait for these.
        if item["type"] == "function_call":
            arguments = {"name": item["name"], "arguments": item["arguments"]}
            steps.append({"type": "response.function_call_arguments.delta", **place, "delta": item["arguments"]})
            steps.append({"type": "response.function_call_arguments.done", **place, **arguments})
        if item["type"] == "message":
            delta = {"content_index": 0, "delta": item["content"][0]["text"], "logprobs": []}
            steps.append({"type": "response.output_text.delta", **place, **delta})
        steps.append({"type": "response.output_item.done", "output_index": index, "item": item})
    steps.append({"type": "response.completed", "response": whole})
    yield from ({**step, "sequence_number": number} for number, step in enumerate(steps))
