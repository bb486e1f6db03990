"""Next to ``strands.experimental.context_manager``: one of the two offloads a result, and both can be read back."""

from __future__ import annotations

import re
from typing import Any

import pytest
from strands import Agent, storage

from coatcheck_strands import ContextOffloader, InMemoryStorage, offloaded_references
from tests.adapters.strands.agents import (
    BIG,
    MIDDLE,
    RETRIEVE,
    ScriptedModel,
    call,
    reading,
    references,
    results,
    returning,
    text_of,
)

contexts = pytest.importorskip("strands.experimental.context_manager")

FOUND = ">  7| line 7 of"
READ = (call(), reading(pattern="^line 7 of"))


class SmallModel(ScriptedModel):
    """Has a context window limit, which context managers ask for."""

    def get_config(self) -> dict[str, Any]:
        return {"context_window_limit": 200_000}


def managed(manager: Any, *turns: Any) -> tuple[Agent, InMemoryStorage]:  # noqa: ANN401
    """Return an agent with both, and our storage. It calls a tool with a large result and reads it back with ours."""
    kept = InMemoryStorage()
    subject = Agent(
        SmallModel(*(turns or READ)),
        tools=[returning(BIG)],
        plugins=[ContextOffloader(kept)],
        context_manager=manager,
        callback_handler=None,
    )
    return subject, kept


def stashed_in(stash: Any) -> bytes:  # noqa: ANN401
    """Return everything that a storage of Strands keeps in memory."""
    return b"".join(value for kept in vars(stash).values() if isinstance(kept, dict) for value in kept.values())


@pytest.mark.parametrize("manager", ["auto", "agentic"])
def test_a_preset_leaves_our_placeholder_as_it_is(manager: str) -> None:
    subject, kept = managed(manager)

    subject("go")

    first, second = results(subject)
    assert offloaded_references(first) == tuple(references(first))
    assert FOUND in text_of(second)
    assert "Truncated" not in text_of(first)
    assert len([entry for entry in kept.entries("") if not entry.key.endswith("-lines")]) == 1


def test_their_stash_gets_the_placeholder_and_no_second_copy_of_the_result() -> None:
    stash = storage.InMemoryStorage()
    subject, _ = managed(contexts.ContextManager(stash={"storage": stash}))

    subject("go")

    assert b"Stored references" in stashed_in(stash)
    assert MIDDLE.encode() not in stashed_in(stash)


def test_a_direct_call_is_stashed_as_its_placeholder() -> None:
    stash = storage.InMemoryStorage()
    subject, _ = managed(contexts.ContextManager(stash={"storage": stash}))

    subject.tool.fetch()

    assert b"Stored references" in stashed_in(stash)
    assert MIDDLE.encode() not in stashed_in(stash)


def test_a_strategy_that_cuts_our_placeholder_leaves_a_way_back_to_it() -> None:
    cut = contexts.Offload.truncate("tool_results", {"preview_tokens": 20}).when(threshold=100)

    def from_stash(messages: Any) -> Any:  # noqa: ANN401
        first = next(block["toolResult"] for one in messages for block in one["content"] if "toolResult" in block)
        reference = re.findall(r"\[Stashed\]\D*?(\S+_\d+)", text_of(first))[0]
        return call("retrieve_context", reference=reference)

    def from_ours(messages: Any) -> Any:  # noqa: ANN401
        answer = text_of(results_in(messages)[1])
        reference = re.findall(r"[0-9a-z_]+-[0-9a-f]{16}-[0-9a-f]{4}", answer)[0]
        return call(RETRIEVE, reference=reference, line_range="7-7")

    subject, _ = managed(contexts.ContextManager(strategies=[cut]), call(), from_stash, from_ours)

    subject("go")

    assert "Truncated" in text_of(results(subject)[0])
    assert "line 7 of" in text_of(results(subject)[2])


def results_in(messages: Any) -> list[Any]:  # noqa: ANN401
    return [block["toolResult"] for one in messages for block in one["content"] if "toolResult" in block]


def test_what_is_read_from_their_stash_is_not_offloaded_again() -> None:
    asked = BIG[:30_000]
    cut = contexts.Offload.truncate("user_text", {"preview_tokens": 20}).when(threshold=100)

    def from_stash(messages: Any) -> Any:  # noqa: ANN401
        reference = re.findall(r"\[Stashed\]\D*?(\S+_\d+)", str(messages[0]["content"][0]["text"]))[0]
        return call("retrieve_context", reference=reference)

    subject, kept = managed(contexts.ContextManager(strategies=[cut]), from_stash)

    subject(asked)

    assert "line 600 of" in text_of(results(subject)[0])
    assert kept.entries("") == []
