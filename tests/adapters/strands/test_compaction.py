"""What Strands' own conversation managers do to our placeholders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from strands.agent.conversation_manager import SlidingWindowConversationManager
from strands.types.exceptions import ContextWindowOverflowException

from coatcheck import keep_references
from coatcheck_strands import ContextOffloader, offloaded_references
from tests.adapters.strands.agents import BIG, MIDDLE, agent, call, reading, references, results, returning, text_of

if TYPE_CHECKING:
    from strands.types.content import Messages

LONGEST_NAME = "n" * 64
"""The longest tool name that Strands accepts."""


def overflow(_: Messages) -> Any:  # noqa: ANN401 - never returns
    raise ContextWindowOverflowException


@pytest.mark.parametrize("name", ["fetch", LONGEST_NAME])
@pytest.mark.parametrize("managed", [{}, {"conversation_manager": SlidingWindowConversationManager(window_size=10)}])
def test_after_an_overflow_the_model_can_still_read_back_by_the_reference(name: str, managed: dict[str, Any]) -> None:
    turns = (call(name), overflow, reading(pattern=MIDDLE))
    subject = agent(ContextOffloader(), turns=turns, tools=[returning(BIG, name=name)], **managed)

    subject("go")

    cut, answer = results(subject)
    assert "... [truncated: " in text_of(cut), "the manager had nothing to do"
    assert len(text_of(cut)) < 600
    assert len(references(cut)) == 1
    assert MIDDLE in text_of(answer)


def test_an_overflow_leaves_the_first_references_and_the_host_still_knows_all() -> None:
    tools = [returning(BIG, BIG + "2", BIG + "3")]
    subject = agent(ContextOffloader(), turns=(call(), overflow, reading()), tools=tools)

    subject("go")

    cut, answer = results(subject)
    known = [reference for message in subject.messages for reference in offloaded_references(message)]
    assert len(known) == 3
    assert references(cut) == known[:2]
    assert "line 1 of 2,000" in text_of(answer)


def test_the_placeholder_of_an_image_survives_an_overflow() -> None:
    image = {"image": {"format": "png", "source": {"bytes": b"\x89PNG" * 300}}}
    subject = agent(ContextOffloader(), turns=(call(), overflow), tools=[returning(BIG, image)])

    subject("go")

    assert "[image: png, 1200 bytes | ref: fetch-" in text_of(results(subject)[0])


def test_keep_references_names_the_references_of_a_conversation() -> None:
    subject = agent(ContextOffloader(), turns=(call(), call()), tools=[returning(BIG)])

    subject("go")

    known = offloaded_references(subject.messages[2])
    assert len(known) == 1
    assert known[0] in keep_references(subject.messages)
    assert keep_references(subject.messages[:1]) == ""


def test_a_summary_with_the_line_of_keep_references_loses_no_reference() -> None:
    subject = agent(ContextOffloader(), turns=(call(),), tools=[returning(BIG)])
    subject("go")
    known = offloaded_references(subject.messages[2])

    line = keep_references(subject.messages)
    subject.messages[:] = [{"role": "user", "content": [{"text": "Summary."}, {"text": line}]}]

    assert known[0] in keep_references(subject.messages), "the next summary keeps it as well"
