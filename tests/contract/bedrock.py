"""The scripted model in the wire format of Bedrock's Converse API, in one piece: botocore checks each request.

Only the wire format belongs here, and what Bedrock refuses although botocore sends it.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from coatcheck.testing import Conversation, Received, Response, ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coatcheck.testing import ModelCall

__all__ = ("BedrockServer",)

NAME = re.compile(r"(?:[A-Za-z0-9_()\[\]-]|\s(?!\s)){1,200}")
"""The names that a document may have. Bedrock accepts underscores too, although its documentation does not say so."""


class BedrockConversation(Conversation):
    """A conversation over the Converse API. Fails on what that refuses."""

    def takes(self, path: str) -> bool:
        """Return whether a request to ``path`` asks a model."""
        return path.startswith("model/") and path.endswith("/converse")

    def received_in(self, body: dict[str, Any]) -> tuple[Received, ...]:
        """Return the tool results in a request."""
        turns = [message["content"] for message in body["messages"]]
        for asked, answered in pairwise(turns):
            ids = [part["toolUse"]["toolUseId"] for part in asked if "toolUse" in part]
            assert sorted(ids) == sorted(part["toolResult"]["toolUseId"] for part in answered if "toolResult" in part)
        results = [part["toolResult"] for turn in turns for part in turn if "toolResult" in part]
        parts = [
            *(part for result in results for part in result["content"]),
            *(part for turn in turns for part in turn),
        ]
        assert all(part.get("text", "x") for part in parts), "a text is empty"
        assert all(isinstance(part.get("json", {}), dict) for part in parts), "JSON is no object"
        names = [part["document"]["name"] for part in parts if "document" in part]
        assert all(map(NAME.fullmatch, names)), "a document has a wrong name"
        assert len(names) == len(set(names)), "two documents have one name"
        return tuple(map(received, results))

    def offered_in(self, body: dict[str, Any]) -> frozenset[str]:
        """Return the names of the tools in a request."""
        tools = body.get("toolConfig", {}).get("tools", ())
        return frozenset(tool["toolSpec"]["name"] for tool in tools)

    def respond(self, body: dict[str, Any], calls: Sequence[ModelCall], *, says: str | None, path: str) -> Response:
        """Return a message with calls or with the model's words."""
        asked: list[dict[str, Any]] = [
            {"toolUse": {"toolUseId": call.call_id, "name": call.tool, "input": call.arguments}} for call in calls
        ]
        response = {
            "output": {"message": {"role": "assistant", "content": asked or [{"text": says}]}},
            "stopReason": "tool_use" if asked else "end_turn",
            "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
            "metrics": {"latencyMs": 1},
        }
        return Response(json.dumps(response))


class BedrockServer(ScriptedServer):
    """Serves conversations over the Converse API."""

    speaks: ClassVar[type[Conversation]] = BedrockConversation


def received(result: dict[str, Any]) -> Received:
    """Return one tool result: its text parts joined by line ends, and its content."""
    texts = [part["text"] for part in result["content"] if "text" in part]
    raw = json.dumps(result["content"], ensure_ascii=False)
    return Received(text="\n".join(texts), raw=raw, is_error=result.get("status") == "error")
