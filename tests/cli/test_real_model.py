"""``--model``: the same demo with a real client, against a server on loopback that speaks the OpenAI wire format."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from werkzeug import Request, Response

from coatcheck.cli.demo_input import FindWord
from coatcheck.core.notice import OPENINGS
from coatcheck.core.references import find_references
from tests.cli.running import facts, run

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_httpserver import HTTPServer

WORDS = "\n".join(f"line {number} holds word{number:05}" for number in range(20_000))
SCRIPT = FindWord("word10000")


def message(request: Request) -> dict[str, object]:
    """Return the next message of a model that has seen the messages of a request."""
    results = [each["content"] for each in request.get_json()["messages"] if each["role"] == "tool"]
    if not results:
        return call("read_file", {})
    assert results[0].startswith(OPENINGS)
    reference = next(find_references(results[0]))[0]
    if len(results) == 1:
        return call("retrieve_offloaded_content", {"reference": reference, **SCRIPT.first_call()})
    if len(results) == 2:
        return call("retrieve_offloaded_content", {"reference": reference, **SCRIPT.second_call(results[1])})
    return {"role": "assistant", "content": f"Found it! {SCRIPT.sentence(SCRIPT.facts(results[1], results[2]))}"}


def call(name: str, arguments: dict[str, object]) -> dict[str, object]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]}


def reply(request: Request) -> Response:
    choice = {"index": 0, "finish_reason": "stop", "message": message(request)}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "gpt-4o", "choices": [choice]}
    return Response(json.dumps(body), content_type="application/json")


@pytest.fixture
def server(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> HTTPServer:
    monkeypatch.setenv("OPENAI_BASE_URL", httpserver.url_for("/v1"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    return httpserver


@pytest.fixture
def words(tmp_path: Path) -> Path:
    (tmp_path / "words").write_text(WORDS)
    return tmp_path / "words"


def test_a_real_model_answers_the_same_question(server: HTTPServer, words: Path, tmp_path: Path) -> None:
    server.expect_request("/v1/chat/completions").respond_with_handler(reply)

    found = facts("--model", "openai:gpt-4o", "--input", words, "--storage", tmp_path)

    (part,) = found["parts"]
    assert found["model"] == "openai:gpt-4o"
    assert part["answer"] == "Found it! On line 10,001: line 10000 holds word10000"
    assert part["answer_in_data"]
    assert len(part["retrievals"]) == 2
    assert len(server.log) == part["model_calls"] == 4


def test_a_model_that_does_not_call_the_tool_has_not_answered(server: HTTPServer, words: Path, tmp_path: Path) -> None:
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "gpt-4o"}
    guess = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "On line 7, I guess."}}
    server.expect_request("/v1/chat/completions").respond_with_json({**body, "choices": [guess]})

    ran = run("demo", "--model", "openai:gpt-4o", "--input", words, "--storage", tmp_path)

    assert ran.exit_code == 1
    assert "the model did not call the tool" in ran.output


def test_a_model_that_fails_is_reported_on_one_line(server: HTTPServer, words: Path, tmp_path: Path) -> None:
    server.expect_request("/v1/chat/completions").respond_with_json({"error": {"message": "no such key"}}, status=401)

    ran = run("demo", "--model", "openai:gpt-4o", "--input", words, "--storage", tmp_path)

    assert ran.exit_code == 2
    assert "no such key" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_missing_key_is_reported_on_one_line(words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    ran = run("demo", "--model", "openai:gpt-4o", "--input", words, "--storage", tmp_path / "new")

    assert ran.exit_code == 2
    assert "OPENAI_API_KEY" in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("model", "said"), [("nobody:model", "nobody"), ("mistralai:large", "langchain-mistralai")])
def test_an_unknown_model_or_a_missing_package_is_reported_on_one_line(model: str, said: str, words: Path) -> None:
    ran = run("demo", "--model", model, "--input", words)

    assert ran.exit_code == 2
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1
