"""The scripted model behind a real wire: an HTTP server on loopback that speaks OpenAI's two APIs.

A framework's own OpenAI client talks to it, with or without streaming, so that a test sees what a model would get. The
path of a request selects the API. Only the wire formats belong here, that of the Responses API in ``responses``;
``Run.model`` decides what the model says. For another provider's wire format, subclass ``Conversation`` and set
``ScriptedServer.speaks``. Needs nothing but Python::

    with ScriptedServer().serving() as server, server.conversation(case.model) as conversation:
        client = OpenAI(base_url=conversation.base_url, api_key="none", max_retries=0)
        ...
        return conversation.transcript()
"""

from __future__ import annotations

import itertools
import json
import threading
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from coatcheck.testing import responses
from coatcheck.testing.harness import Transcript

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coatcheck.testing.harness import Model, ModelCall, Received

__all__ = ("Conversation", "Response", "ScriptedServer")

FINAL_ANSWER = "done"
PATHS = ("chat/completions", "responses")


class Response(NamedTuple):
    """What the server sends back: JSON, or server-sent events."""

    text: str
    content_type: str = "application/json"
    status: int = 200


class Conversation:
    """One conversation of one agent: its own address, and every request that reached it."""

    def __init__(self, base_url: str, model: Model, *, final_answer: str = FINAL_ANSWER) -> None:
        """Begin a conversation. ``ScriptedServer.conversation`` does it for you.

        Args:
            base_url: the address for the framework's OpenAI client.
            model: the scripted model.
            final_answer: what the model says once it calls no more tools.

        """
        self.base_url = base_url
        self.sent: list[bytes] = []
        self.error: BaseException | None = None
        self._model = model
        self._final_answer = final_answer

    def transcript(self) -> Transcript:
        """Return what the model received, or raise the script's error."""
        if self.error is not None:
            raise self.error
        last = json.loads(self.sent[-1])
        return Transcript(received=self.received_in(last), offered=self.offered_in(last))

    def answer(self, data: bytes, *, path: str = PATHS[0]) -> Response:
        """Answer one request as the script says; ``path`` is relative to the conversation's address."""
        if not self.takes(path):
            return Response("{}", status=404)
        self.sent.append(data)
        body = json.loads(data)
        try:
            calls = self._model(self.received_in(body))
        except Exception as error:  # noqa: BLE001 - shown to the test, which runs on another thread
            self.error = error
            return Response("{}", status=400)  # no client retries after a 400
        return self.respond(body, calls, says=None if calls else self._final_answer, path=path)

    # The wire format.

    def takes(self, path: str) -> bool:
        """Return whether there is an API at ``path``."""
        return path in PATHS

    def received_in(self, body: dict[str, Any]) -> tuple[Received, ...]:
        """Return the tool results in a request."""
        return received_in(body)

    def offered_in(self, body: dict[str, Any]) -> frozenset[str]:
        """Return the names of the tools in a request."""
        tools = [tool.get("function", tool) for tool in body.get("tools", ())]
        return frozenset(tool["name"] for tool in tools if "name" in tool)  # the provider's own tools have none

    def respond(self, body: dict[str, Any], calls: Sequence[ModelCall], *, says: str | None, path: str) -> Response:
        """Return a response with tool calls, or with what the model says."""
        del path  # the body says it all
        if "input" in body:
            return responded(responses.response(calls, says, number=len(self.sent)), streams=bool(body.get("stream")))
        return streamed(calls, says) if body.get("stream") else whole(calls, says)


class ScriptedServer:
    """Serves any number of conversations at once on 127.0.0.1, each at its own path."""

    speaks: ClassVar[type[Conversation]] = Conversation
    """The class of its conversations, which knows the wire format."""

    def __init__(self) -> None:
        self._conversations: dict[str, Conversation] = {}
        self._numbers = itertools.count()
        self._url = ""

    @contextmanager
    def serving(self) -> Iterator[ScriptedServer]:
        """Listen on a free port until the end of the block."""
        with _Server(("127.0.0.1", 0), partial(_Handler, self._conversations)) as http:
            self._url = f"http://127.0.0.1:{http.server_address[1]}"
            thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
            thread.start()
            try:
                yield self
            finally:
                http.shutdown()
                thread.join()

    @contextmanager
    def conversation(self, model: Model, *, final_answer: str = FINAL_ANSWER) -> Iterator[Conversation]:
        """Serve one conversation until the end of the block; if the script failed, raise that instead."""
        number = str(next(self._numbers))
        conversation = self.speaks(f"{self._url}/{number}", model, final_answer=final_answer)
        self._conversations[number] = conversation
        try:
            yield conversation
        except Exception as error:
            if conversation.error is None:
                raise
            raise conversation.error from error
        finally:
            del self._conversations[number]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"  # one request per connection: a client that nobody closes leaves none open
    disable_nagle_algorithm = True  # head and body are two writes; with delayed acknowledgements, Nagle costs 40 ms

    def __init__(self, conversations: dict[str, Conversation], *args: Any) -> None:  # noqa: ANN401 - as the base has it
        self._conversations = conversations
        super().__init__(*args)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        _, number, path = self.path.split("/", 2)
        conversation = self._conversations.get(number)
        response = Response("{}", status=404) if conversation is None else conversation.answer(body, path=path)
        data = response.text.encode()
        self.send_response(response.status)
        self.send_header("Content-Type", response.content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Log nothing, to keep the test's output clean."""


def received_in(body: dict[str, Any]) -> tuple[Received, ...]:
    """Return the tool results in a request."""
    if "input" in body:
        return responses.received_in(body)
    contents = (message["content"] for message in body["messages"] if message["role"] == "tool")
    return tuple(responses.received(content, text_type="text") for content in contents)


def whole(calls: Sequence[ModelCall], says: str | None) -> Response:
    """Return a completion in one piece."""
    message = {"role": "assistant", "content": says, "tool_calls": tool_calls(calls) or None}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason(calls)}
    return Response(json.dumps(completion("chat.completion", choice)))


def streamed(calls: Sequence[ModelCall], says: str | None) -> Response:
    """Return a completion as server-sent events: one with the message, one with its finish reason."""
    indexed = [{"index": index, **call} for index, call in enumerate(tool_calls(calls))]
    delta = {"role": "assistant", "content": says, "tool_calls": indexed or None}
    choices = (
        {"index": 0, "delta": delta, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": finish_reason(calls)},
    )
    events = [json.dumps(completion("chat.completion.chunk", choice)) for choice in choices]
    return sent_as_events([*events, "[DONE]"])


def responded(response: dict[str, Any], *, streams: bool) -> Response:
    """Return a response of the Responses API, in one piece or as server-sent events."""
    if streams:
        return sent_as_events([json.dumps(event) for event in responses.events(response)])
    return Response(json.dumps(response))


def sent_as_events(events: Sequence[str]) -> Response:
    """Return server-sent events."""
    return Response("".join(f"data: {event}\n\n" for event in events), content_type="text/event-stream")


def completion(kind: str, choice: dict[str, Any]) -> dict[str, Any]:
    """Wrap a choice in a completion."""
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "1", "object": kind, "created": 0, "model": "scripted", "choices": [choice], "usage": usage}


def tool_calls(calls: Sequence[ModelCall]) -> list[dict[str, Any]]:
    """Return tool calls in the wire format, their arguments as JSON text."""
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
