"""The scripted model in Anthropic's wire format: messages of content blocks in, a message out, whole or streaming.

Only the wire format and what Anthropic refuses belong here. A framework's own client sends the requests.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from coatcheck.testing import Conversation, Received, Response, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coatcheck.testing import ModelCall

__all__ = ("AnthropicServer",)

IN_A_RESULT = {"document", "image", "search_result", "text"}


class AnthropicConversation(Conversation):
    """A conversation over Anthropic's API. Fails on what that refuses."""

    def takes(self, path: str) -> bool:
        """Return whether a request to ``path`` asks for a message."""
        return path.partition("?")[0] == "v1/messages"

    def received_in(self, body: dict[str, Any]) -> tuple[Received, ...]:
        """Return the tool results in a request."""
        turns = [parts_of(message["content"]) for message in body["messages"]]
        for asked, answered in pairwise(turns):
            ids = [part["id"] for part in asked if part["type"] == "tool_use"]
            first = [part.get("tool_use_id") for part in answered[: len(ids)]]
            assert sorted(map(str, ids)) == sorted(map(str, first)), "the next message does not begin with the results"
        results = [part for turn in turns for part in turn if part["type"] == "tool_result"]
        inside = [part for result in results for part in parts_of(result.get("content", ""))]
        assert {part["type"] for part in inside} <= IN_A_RESULT
        assert all(part.get("text", "x") for turn in (*turns, inside) for part in turn), "a text is empty"
        return tuple(map(received, results))

    def offered_in(self, body: dict[str, Any]) -> frozenset[str]:
        """Return the names of the tools in a request."""
        return frozenset(tool["name"] for tool in body.get("tools", ()))

    def respond(self, body: dict[str, Any], calls: Sequence[ModelCall], *, says: str | None, path: str) -> Response:
        """Return a message, in one piece or as server-sent events."""
        asked = [{"type": "tool_use", "id": call.call_id, "name": call.tool, "input": call.arguments} for call in calls]
        message: dict[str, Any] = {
            "id": f"msg_{len(self.sent)}",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": asked or [{"type": "text", "text": says}],
            "stop_reason": "tool_use" if asked else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        if not body.get("stream"):
            return Response(json.dumps(message))
        sent = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events(message))
        return Response("".join(sent), "text/event-stream")


class AnthropicServer(ScriptedServer):
    """Serves conversations over Anthropic's API."""

    speaks: ClassVar[type[Conversation]] = AnthropicConversation


def parts_of(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts of a message's content. A plain string counts as one part."""
    return ([{"type": "text", "text": content}] if content else []) if isinstance(content, str) else content


def received(result: dict[str, Any]) -> Received:
    """Return one tool result: its text parts joined by line ends, and its content."""
    parts = parts_of(result.get("content", ""))
    texts = [part["text"] for part in parts if part["type"] == "text"]
    return Received(text="\n".join(texts), raw=json.dumps(parts, ensure_ascii=False), is_error=result.get("is_error"))


def events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of a message."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, part in enumerate(message["content"]):
        is_text = part["type"] == "text"
        empty = {**part, "text": ""} if is_text else {**part, "input": {}}
        text = {"type": "text_delta", "text": part.get("text")}
        delta = text if is_text else {"type": "input_json_delta", "partial_json": json.dumps(part["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}
