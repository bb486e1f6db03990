"""The scripted model in the Gemini API: ``contents`` in, a candidate with function calls or text out.

Only the wire format belongs here. ``ScriptedServer`` serves it, and Google's own client sends the requests.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from coatcheck.testing import Conversation, Received, Response, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coatcheck.testing import ModelCall

__all__ = ("GeminiConversation", "GeminiServer")

WHOLE, STREAMED = ":generateContent", ":streamGenerateContent"


class GeminiConversation(Conversation):
    """A conversation over the Gemini API."""

    def takes(self, path: str) -> bool:
        """Return whether a request to ``path`` asks for content."""
        return path.partition("?")[0].endswith((WHOLE, STREAMED))

    def received_in(self, body: dict[str, Any]) -> tuple[Received, ...]:
        """Return the function responses in a request."""
        parts = (part for content in body["contents"] for part in content["parts"])
        return tuple(received(part["functionResponse"]) for part in parts if "functionResponse" in part)

    def offered_in(self, body: dict[str, Any]) -> frozenset[str]:
        """Return the names of the functions in a request."""
        tools = body.get("tools", ())
        return frozenset(each["name"] for tool in tools for each in tool.get("functionDeclarations", ()))

    def respond(self, body: dict[str, Any], calls: Sequence[ModelCall], *, says: str | None, path: str) -> Response:
        """Return a candidate, in one piece or as one server-sent event."""
        parts = [{"text": says}] if says is not None else [*map(function_call, calls)]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        text = json.dumps({"candidates": [candidate], "usageMetadata": {"promptTokenCount": 1}})
        is_stream = STREAMED in path
        return Response(f"data: {text}\n\n", "text/event-stream") if is_stream else Response(text)


class GeminiServer(ScriptedServer):
    """Serves conversations over the Gemini API."""

    speaks: ClassVar[type[Conversation]] = GeminiConversation


def function_call(call: ModelCall) -> dict[str, Any]:
    """Return a call in the wire format."""
    named = {} if call.call_id is None else {"id": call.call_id}
    return {"functionCall": {**named, "name": call.tool, "args": dict(call.arguments)}}


def received(response: dict[str, Any]) -> Received:
    """Return one tool result: its strings joined by line ends, and all of it but its id."""
    content = {name: value for name, value in response.items() if name != "id"}
    texts = texts_in(*response["response"].values()) if len(response["response"]) == 1 else ()
    is_error = "error" in response["response"]  # by ADK's convention
    return Received(text="\n".join(texts), raw=json.dumps(content, ensure_ascii=False), is_error=is_error)


def texts_in(content: object) -> Iterator[str]:
    """Yield the strings of a result: itself, or those in a list."""
    for entry in content if isinstance(content, list) else [content]:
        text = entry.get("text") if isinstance(entry, dict) else entry
        if isinstance(text, str):
            yield text
