"""Fixtures for the pages: a scripted model, and the environment that points OpenAI's and Google's clients to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import coatcheck.testing.server as wire
from coatcheck.testing import ModelCall, Received
from coatcheck.testing.responses import received as received_of
from coatcheck.testing.scripting import shown_references
from coatcheck.testing.server import received_in
from tests.contract.conftest import loopback_only, server
from tests.contract.gemini import GeminiServer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coatcheck.testing.server import Conversation, ScriptedServer

__all__ = ("conversation", "loopback_only", "server")


@pytest.fixture(scope="session")
def gemini() -> Iterator[ScriptedServer]:
    with GeminiServer().serving() as serving:
        yield serving


@pytest.fixture
def conversation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Conversation]:
    """Yield the conversation in which the agents of a page talk to the scripted model."""
    is_googles = request.node.callspec.params["part"] == "google-adk"
    server: ScriptedServer = request.getfixturevalue("gemini" if is_googles else "server")
    monkeypatch.setattr(wire, "received_in", results_in)
    with server.conversation(reads_the_log) as conversation:
        # LlamaIndex reads the second variable.
        for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE", "GOOGLE_GEMINI_BASE_URL"):
            monkeypatch.setenv(name, conversation.base_url)
        monkeypatch.setenv("GOOGLE_API_KEY", "none")
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield conversation


def results_in(body: dict[str, Any]) -> tuple[Received, ...]:
    """Return the tool results in a request. smolagents sends each as a user message."""
    said = [message["content"] for message in body.get("messages", ()) if message["role"] == "user"]
    observed = [received_of(content, text_type="text") for content in said]
    return received_in(body) or tuple(each for each in observed if each.text.startswith("Observation:"))


def reads_the_log(received: Sequence[Received]) -> Sequence[ModelCall]:
    """Play the model of every agent on the pages: read the log, search its stored content for errors, answer."""
    if not received:
        return [ModelCall(tool="read_log", arguments={}, call_id="1")]
    if references := shown_references(received[-1].text):
        arguments = {"reference": references[0], "pattern": "ERROR"}
        return [ModelCall(tool="retrieve_offloaded_content", arguments=arguments, call_id="2")]
    return []
