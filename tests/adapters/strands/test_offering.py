"""``offer_tool="when needed"`` in real agents: the model gets the retrieval tool with the first offloaded result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.hooks import BeforeModelCallEvent
from strands.session import FileSessionManager

from coatcheck import InvalidRequest, OverTokens
from coatcheck.adapting import OFFERED
from coatcheck_strands import ContextOffloader, FileStorage, InMemoryStorage, offloaded_references
from tests.adapters.strands.agents import (
    BIG,
    MIDDLE,
    RETRIEVE,
    agent,
    call,
    reading,
    references,
    results,
    returning,
    text_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from strands import Agent

try:
    import strands.middleware  # noqa: F401 - only whether it is there
except ImportError:
    IS_THERE = False
else:
    IS_THERE = True

needs_middleware = pytest.mark.skipif(not IS_THERE, reason="this version of Strands cannot leave a tool out")

TOOLS = [returning(BIG), returning("small", name="tiny")]


def late(storage: object = None, **options: Any) -> ContextOffloader:  # noqa: ANN401
    return ContextOffloader(storage, offer_tool="when needed", **options)


def late_agent(*turns: Any, plugin: ContextOffloader | None = None, **more: Any) -> Agent:  # noqa: ANN401
    return agent(late() if plugin is None else plugin, turns=turns, **{"tools": TOOLS, **more})


def offers(subject: Agent) -> list[bool]:
    """Return, for each call of the model, whether it was offered the retrieval tool. Check that the rest always was."""
    offered: list[list[str]] = subject.model.offered  # type: ignore[attr-defined] # the scripted model
    assert all({"fetch", "tiny"} <= {*names} for names in offered)
    return [RETRIEVE in names for names in offered]


@needs_middleware
def test_the_tool_is_offered_in_the_first_call_after_the_first_offload() -> None:
    subject = late_agent(call("tiny"), call(), reading(pattern=MIDDLE), call("tiny"))

    subject("go")

    assert offers(subject) == [False, False, True, True, True]
    assert MIDDLE in text_of(results(subject)[2])


@needs_middleware
async def test_an_async_run_offers_the_tool_in_the_same_call() -> None:
    subject = late_agent(call("tiny"), call(), reading(pattern=MIDDLE))

    await subject.invoke_async("go")

    assert offers(subject) == [False, False, True, True]
    assert MIDDLE in text_of(results(subject)[2])


def test_by_default_the_tool_is_always_offered_and_no_state_is_kept() -> None:
    subject = late_agent(call("tiny"), call(), plugin=ContextOffloader())

    subject("go")

    assert offers(subject) == [True, True, True]
    assert subject.state.get(OFFERED) is None


@needs_middleware
def test_without_an_offload_the_tool_is_never_offered() -> None:
    subject = late_agent(call("tiny"), call("tiny"))

    subject("go")

    assert offers(subject) == [False, False, False]
    assert subject.state.get(OFFERED) is None


@needs_middleware
@pytest.mark.parametrize("window", [40, 2], ids=["whole", "without the placeholder"])
def test_a_new_agent_with_the_same_session_is_offered_the_tool_at_once(window: int, tmp_path: Path) -> None:
    def resumed(*turns: Any) -> Agent:  # noqa: ANN401
        session = FileSessionManager("s1", storage_dir=str(tmp_path / "sessions"))
        manager = SlidingWindowConversationManager(window_size=window)
        plugin = late(FileStorage(str(tmp_path / "kept")))
        return late_agent(*turns, plugin=plugin, session_manager=session, conversation_manager=manager, agent_id="a")

    first = resumed(call(), "done")
    first("go")
    (reference,) = [one for result in results(first) for one in references(result)] or [""]
    first("thanks")

    second = resumed([(RETRIEVE, {"reference": reference, "pattern": MIDDLE})] if reference else "done")
    is_there = any(offloaded_references(message) for message in second.messages)
    second("go on")

    assert is_there is (window == 40)
    assert offers(second)[0]
    if reference:
        assert MIDDLE in text_of(results(second)[-1])


@needs_middleware
def test_the_tool_is_offered_even_if_the_placeholder_is_dropped_before_the_next_call() -> None:
    subject = late_agent(call())

    def forget(event: BeforeModelCallEvent) -> None:
        del event.agent.messages[1:]

    subject.add_hook(forget, BeforeModelCallEvent)
    subject("go")

    assert not results(subject)
    assert offers(subject) == [False, True]


@needs_middleware
def test_the_tool_is_still_offered_when_the_messages_are_gone() -> None:
    subject = late_agent(call(), "done", "done")
    subject("go")

    subject.messages.clear()
    subject("go")

    assert offers(subject) == [False, True, True]


@needs_middleware
def test_the_tool_is_offered_for_placeholders_of_another_agent() -> None:
    first = late_agent(call())
    first("go")
    messages = list(first.messages)

    second = late_agent("done", "done", messages=messages)
    second("go on")
    second.messages.clear()
    second("go on")

    assert offers(second) == [True, True]


@needs_middleware
def test_a_recorded_direct_call_counts() -> None:
    subject = late_agent("done")

    subject.tool.fetch()
    subject("what did it say?")

    assert offers(subject) == [True]


@needs_middleware
def test_two_agents_with_one_plugin_are_offered_the_tool_independently() -> None:
    plugin = late()
    first, second = late_agent(call(), plugin=plugin), late_agent("done", plugin=plugin)

    first("go")
    second("go")

    assert offers(first) == [False, True]
    assert offers(second) == [False]


@needs_middleware
def test_a_model_that_calls_the_hidden_tool_gets_an_answer() -> None:
    storage = InMemoryStorage()
    first = late_agent(call(), plugin=late(storage))
    first("go")
    (reference,) = references(results(first)[0])

    second = late_agent([(RETRIEVE, {"reference": reference, "pattern": MIDDLE})], plugin=late(storage))
    second("go")

    assert not offers(second)[0]
    assert MIDDLE in text_of(results(second)[0])


@needs_middleware
def test_the_users_own_tool_with_the_same_name_is_never_hidden() -> None:
    subject = late_agent(
        "done", plugin=late(include_retrieval_tool=False), tools=[*TOOLS, returning("mine", name=RETRIEVE)]
    )

    subject("go")

    assert offers(subject) == [True]


@needs_middleware
def test_a_result_that_a_policy_keeps_does_not_count() -> None:
    subject = late_agent(call(), plugin=late(policies={"fetch": OverTokens(49_000)}))

    subject("go")

    assert offers(subject) == [False, False]


def test_an_older_strands_is_refused_with_the_version_that_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coatcheck_strands.offering.find_spec", lambda _: None)

    with pytest.raises(InvalidRequest, match=r"needs strands-agents 1\.62 or newer"):
        late()
    ContextOffloader(offer_tool="always")


@pytest.mark.parametrize("wrong", ["when_needed", "never", None, True, ["always"]])
def test_a_wrong_value_is_refused_with_both_valid_ones(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match="offer_tool must be 'always' or 'when needed', not"):
        ContextOffloader(offer_tool=wrong)
