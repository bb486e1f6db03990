"""A tool that fails: a message that is too large is offloaded, and the failure stays a failure."""

# ruff: noqa: ANN401 - what the framework passes is of any type

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, ValidationError
from pydantic_ai import Agent, ModelRetry, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from coatcheck import RETRIEVAL_TOOL, keep_references
from coatcheck.testing.scripting import shown_references
from coatcheck_pydantic_ai import ToolOffloader, hook, offloaded_references
from tests.adapters.pydantic_ai.agents import parts_of, returning, run
from tests.adapters.scripts import BIG, MIDDLE, call

if TYPE_CHECKING:
    from pydantic_ai.run import AgentRunResult

    from coatcheck.testing import ScriptedServer


class Row(BaseModel):
    number: int


def invalid() -> Exception:
    try:
        Row.model_validate({"number": BIG})
    except ValidationError as error:
        return error
    raise AssertionError


def results_in(result: AgentRunResult[str]) -> list[Any]:
    """Return the parts that answer calls, in order: results, or retries in older versions."""
    return [
        part for part in parts_of(result) if getattr(part, "tool_name", None) and not isinstance(part, ToolCallPart)
    ]


async def test_a_failure_stays_below_the_inline_limit(server: ScriptedServer) -> None:
    _, result = await run(server, ToolOffloader(), call(), tools=[returning(ToolFailed(BIG))])

    (part,) = results_in(result)
    assert part.content == BIG


@pytest.mark.parametrize("error", [ToolFailed(BIG), ModelRetry(BIG), invalid()], ids=lambda error: type(error).__name__)
async def test_a_large_failure_is_offloaded_and_stays_a_failure(server: ScriptedServer, error: Exception) -> None:
    offload = ToolOffloader(offload_errors=True)
    script, result = await run(server, offload, call(), tools=[returning(error)])
    _, raw = await run(server, ToolOffloader(), call(), tools=[returning(error)])

    (part,), (same,) = results_in(result), results_in(raw)
    assert part.content.startswith("Tool result offloaded.")
    assert (type(part), getattr(part, "outcome", "")) == (type(same), getattr(same, "outcome", ""))
    assert MIDDLE not in result.all_messages_json().decode()
    stored = offload.offloader.load(shown_references(part.content)[0], scope="conversation-1")
    assert MIDDLE in stored.text
    assert json.dumps(script.shown[-1]).count(shown_references(part.content)[0]) >= 1


async def test_a_failure_that_another_capability_raises_is_offloaded_too(server: ScriptedServer) -> None:
    class Failing(AbstractCapability[Any]):
        async def wrap_tool_execute(self, ctx: Any, **_: Any) -> Any:
            raise ToolFailed(BIG)

    offload = ToolOffloader(offload_errors=True)
    _, result = await run(server, offload, call(), tools=[returning("few")], more=[Failing()])

    (part,) = results_in(result)
    assert part.outcome == "failed"
    assert part.content.startswith("Tool result offloaded.")


async def test_a_failure_that_cannot_be_read_stays_as_it_is(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(error: object) -> object:
        raise TypeError

    monkeypatch.setattr(hook, "said_by", broken)

    _, result = await run(server, ToolOffloader(offload_errors=True), call(), tools=[returning(ToolFailed(BIG))])

    (part,) = results_in(result)
    assert (part.content, part.outcome) == (BIG, "failed")
    assert "could not offload" in caplog.text


async def test_a_large_retry_message_counts_as_one_retry(server: ScriptedServer) -> None:
    left = [BIG, BIG]

    async def fetch() -> str:
        if left:
            raise ModelRetry(left.pop())
        return "found"

    tool = Tool(fetch, max_retries=2)
    _, result = await run(server, ToolOffloader(offload_errors=True), call(), call(), call(), tools=[tool])

    assert results_in(result)[-1].content == "found"


async def test_a_retry_has_references_if_it_was_offloaded_and_none_that_a_tool_wrote(server: ScriptedServer) -> None:
    faked = returning(ModelRetry("Read fetch-0123456789abcdef-0123."), "grep")
    tools = [returning(ModelRetry(BIG)), faked]

    _, result = await run(server, ToolOffloader(offload_errors=True), [("fetch", {}), ("grep", {})], tools=tools)

    offloaded, written = results_in(result)
    (reference,) = shown_references(offloaded.content)
    assert (offloaded_references(offloaded), offloaded_references(written)) == ((reference,), ())
    line = keep_references(result.all_messages())
    assert reference in line
    assert "0123456789abcdef" not in line


async def test_any_other_exception_still_ends_the_run(server: ScriptedServer) -> None:
    with pytest.raises(LookupError, match="gone"):
        await run(server, ToolOffloader(), call(), tools=[returning(LookupError("gone"))])


async def test_a_failed_read_back_is_a_failure(server: ScriptedServer) -> None:
    wrong = call("retrieve_offloaded_content", reference="fetch-0123456789abcdef-0123")

    _, result = await run(server, ToolOffloader(), wrong)

    (part,) = results_in(result)
    assert isinstance(part, ToolReturnPart)
    assert part.outcome == "failed"
    assert str(part.content).startswith("reference not found")


@pytest.mark.parametrize("name", ["context", "ctx", "self", "sent"])
async def test_an_unknown_argument_of_any_name_does_not_end_the_run(server: ScriptedServer, name: str) -> None:
    script, result = await run(server, ToolOffloader(), call(RETRIEVAL_TOOL, **{name: 3}))

    assert f"unknown arguments: '{name}'" in script.shown[-1][0]
    assert result.output == "done"


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ("null", "Nothing is stored"),
        ("[]", "reference must be"),
        ("7", "reference must be"),
        ('"fetch-0123456789abcdef-0123"', "reference not found"),
    ],
)
async def test_arguments_that_are_not_an_object_do_not_end_the_run(sent: str, said: str) -> None:
    turns = [ModelResponse([ToolCallPart(RETRIEVAL_TOOL, sent)]), ModelResponse([TextPart("done")])]
    agent = Agent(FunctionModel(lambda *_: turns.pop(0)), capabilities=[ToolOffloader()])

    result = await agent.run("Go.")

    (part,) = results_in(result)
    assert said in str(part.content)
    assert result.output == "done"
