"""How other providers' generators send our messages: their real clients talk to a server on loopback.

Several generators pass a tool's result on unchanged, and only a ``str`` works. A result that a client cannot send ends
the run.
"""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from haystack.dataclasses import ChatMessage, FileContent, ImageContent, TextContent, ToolCall
from haystack.utils import Secret
from haystack_integrations.components.generators.ollama import OllamaChatGenerator
from werkzeug import Response

from coatcheck import InMemoryStorage
from coatcheck_haystack import AlwaysOffload, ToolResultOffloadHook
from tests.adapters.haystack.agents import IMAGE, LONG, OPENING, PDF, state_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_httpserver import HTTPServer
    from werkzeug import Request

KEY = Secret.from_token("none")


def client_of(provider: str) -> Any:
    module = f"haystack_integrations.components.generators.{provider}"
    return pytest.importorskip(module, reason="needs Python 3.11")


def ollama(url: str) -> Any:
    return OllamaChatGenerator(model="m", url=url, timeout=60)


def cohere(url: str) -> Any:
    return client_of("cohere").CohereChatGenerator(api_key=KEY, model="m", api_base_url=url)


def hugging_face(url: str) -> Any:
    return client_of("huggingface_api").HuggingFaceAPIChatGenerator(
        "text_generation_inference", {"url": url}, token=None
    )


COUNTS = {"eval_count": 1, "prompt_eval_count": 1}
SAID = {"role": "assistant", "content": "done"}
ANSWERS = {
    "/api/chat": {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": SAID, "done": True, **COUNTS},
    "/v2/chat": {
        "id": "1",
        "finish_reason": "COMPLETE",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
        "usage": {"billed_units": {"input_tokens": 1, "output_tokens": 1}, "tokens": {"input_tokens": 1}},
    },
    "/v1/chat/completions": {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "system_fingerprint": "",
        "choices": [{"index": 0, "message": SAID, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    },
}


def sent_by(make: Callable[[str], Any], messages: list[ChatMessage], server: HTTPServer) -> str:
    """Let a generator send a conversation; return the text of the tool's result in it."""
    requests: list[Any] = []

    def answer(request: Request) -> Response:
        requests.append(request.get_json())
        return Response(json.dumps(ANSWERS[request.path]), content_type="application/json")

    for path in ANSWERS:
        server.expect_request(path).respond_with_handler(answer)
    replies = make(server.url_for("").rstrip("/")).run(messages=messages)["replies"]
    assert replies[0].text == "done"
    content: str = next(message["content"] for message in requests[0]["messages"] if message["role"] == "tool")
    return content


@pytest.mark.parametrize("make", [ollama, cohere, hugging_face])
@pytest.mark.parametrize(
    "result",
    [
        [IMAGE],
        [PDF],
        [TextContent("caption"), IMAGE, PDF],
        [TextContent(LONG), TextContent(LONG + "x")],
        [TextContent(f"item {n}") for n in range(30)],
        LONG,
    ],
    ids=["image", "file", "text, image and file", "two texts", "thirty texts", "text"],
)
def test_a_placeholder_is_sent_as_one_str(
    make: Callable[[str], Any], result: str | list[TextContent | ImageContent | FileContent], httpserver: HTTPServer
) -> None:
    state = state_of(result)
    hook = ToolResultOffloadHook(InMemoryStorage(), {"*": AlwaysOffload()})
    hook.run(state)

    sent = sent_by(make, state.data["messages"], httpserver)

    message = state.data["messages"][-1]
    assert OPENING in sent
    assert all(reference in sent for reference in message.meta["tool_result_offloaded"][-1:])
    assert isinstance(message.tool_call_result.result, str)


@pytest.mark.parametrize("make", [ollama, cohere])
def test_without_an_offload_these_generators_cannot_send_media(
    make: Callable[[str], Any], httpserver: HTTPServer
) -> None:
    origin = ToolCall("search", {}, id="1")
    messages = [ChatMessage.from_assistant(tool_calls=[origin]), ChatMessage.from_tool([IMAGE], origin=origin)]

    with pytest.raises((TypeError, ValueError)):
        sent_by(make, messages, httpserver)
