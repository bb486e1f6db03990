"""The scripted model behind a real wire: an HTTP server on loopback that speaks OpenAI's chat completions.

A framework's own OpenAI client talks to it, whole or streaming, so that what a test sees is what a model would get.
Only the wire format belongs here: what the model says is decided by ``Run.model``.
"""

from __future__ import annotations

import itertools
import json
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_httpserver import HTTPServer
from werkzeug import Response

from coatcheck.testing import ModelCall, Received, Transcript

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from werkzeug import Request

    from coatcheck.testing.harness import Model

__all__ = ("Conversation", "ScriptedServer")

FINAL_ANSWER = "done"


@dataclass
class Conversation:
    """One conversation of one agent: its own address, and every request that reached it."""

    base_url: str
    model: Model
    final_answer: str = FINAL_ANSWER
    bodies: list[dict[str, Any]] = field(default_factory=list)
    error: BaseException | None = None

    def transcript(self) -> Transcript:
        """Return what the model received, or raise what went wrong in the script."""
        if self.error is not None:
            raise self.error
        last = self.bodies[-1]
        offered = frozenset(tool["function"]["name"] for tool in last.get("tools", ()))
        return Transcript(received=received_in(last), offered=offered)

    def answer(self, body: dict[str, Any]) -> Response:
        """Answer one request as the script says."""
        self.bodies.append(body)
        try:
            calls = self.model(received_in(body))
        except Exception as error:  # noqa: BLE001 - shown to the test, which runs on another thread
            self.error = error
            return Response("the script failed", status=400)  # no client tries again after a 400
        says = None if calls else self.final_answer
        return streamed(calls, says) if body.get("stream") else whole(calls, says)


class ScriptedServer:
    """Serves any number of conversations at once, each at a path of its own."""

    def __init__(self) -> None:
        self._http = HTTPServer(host="127.0.0.1", threaded=True)
        self._http.expect_request(re.compile(r"/\d+/chat/completions"), method="POST").respond_with_handler(
            self._answer
        )
        self._conversations: dict[str, Conversation] = {}
        self._numbers = itertools.count()

    @contextmanager
    def serving(self) -> Iterator[ScriptedServer]:
        """Listen on a free port until the end of the block."""
        with self._http:
            yield self

    @contextmanager
    def conversation(self, model: Model, *, final_answer: str = FINAL_ANSWER) -> Iterator[Conversation]:
        """Serve one conversation until the end of the block; if the script failed, raise that instead."""
        number = str(next(self._numbers))
        conversation = Conversation(self._http.url_for(f"/{number}"), model, final_answer)
        self._conversations[number] = conversation
        try:
            yield conversation
        except Exception as error:
            raise (conversation.error or error) from error
        finally:
            del self._conversations[number]
            self._http.clear_log()

    def _answer(self, request: Request) -> Response:
        return self._conversations[request.path.split("/")[1]].answer(json.loads(request.get_data()))


def received_in(body: dict[str, Any]) -> tuple[Received, ...]:
    """Return the tool results in a request."""
    return tuple(received(message["content"]) for message in body["messages"] if message["role"] == "tool")


def received(content: str | list[dict[str, Any]]) -> Received:
    """Return one tool result: its text parts joined by line ends, and the whole."""
    texts = [content] if isinstance(content, str) else [part["text"] for part in content if part.get("type") == "text"]
    return Received(text="\n".join(texts), raw=json.dumps(content, ensure_ascii=False))


def whole(calls: Sequence[ModelCall], says: str | None) -> Response:
    """Return a completion in one piece."""
    message = {"role": "assistant", "content": says, "tool_calls": tool_calls(calls) or None}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason(calls)}
    return Response(json.dumps(completion("chat.completion", choice)), content_type="application/json")


def streamed(calls: Sequence[ModelCall], says: str | None) -> Response:
    """Return a completion as server-sent events: one with the message, one with the reason why it ended."""
    indexed = [{"index": index, **call} for index, call in enumerate(tool_calls(calls))]
    delta = {"role": "assistant", "content": says, "tool_calls": indexed or None}
    choices = (
        {"index": 0, "delta": delta, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": finish_reason(calls)},
    )
    events = [json.dumps(completion("chat.completion.chunk", choice)) for choice in choices]
    text = "".join(f"data: {event}\n\n" for event in (*events, "[DONE]"))
    return Response(text, content_type="text/event-stream")


def completion(kind: str, choice: dict[str, Any]) -> dict[str, Any]:
    """Return the frame around a choice."""
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "1", "object": kind, "created": 0, "model": "scripted", "choices": [choice], "usage": usage}


def tool_calls(calls: Sequence[ModelCall]) -> list[dict[str, Any]]:
    """Return tool calls as the wire has them: arguments are JSON text."""
    return [
        {
            **({} if call.call_id is None else {"id": call.call_id}),
            "type": "function",
            "function": {"name": call.tool, "arguments": json.dumps(dict(call.arguments))},
        }
        for call in calls
    ]


def finish_reason(calls: Sequence[ModelCall]) -> str:
    """Return why the message ended."""
    return "tool_calls" if calls else "stop"
