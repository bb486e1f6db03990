"""``coatcheck replay`` on recordings of real LangChain agents, in the three forms that LangChain writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import BaseMessage, convert_to_openai_messages, messages_to_dict
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from coatcheck import Offloader
from coatcheck.core.blocks import json_text
from coatcheck.replay.measure import definition_tokens
from coatcheck_langchain import retrieval_tool
from tests.adapters.langgraph.agents import agent_of, call, question, say, thread
from tests.adapters.recordings import COUNTER, SCOPE, already_offloaded, in_view, recorded, said_to_stay

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

BIG = "\n".join(f"row {number}: a coat, a hat and an umbrella" for number in range(1_000))


def model_dump(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    return [message.model_dump(mode="json") for message in messages]


def conversation(middleware: list[Any] | None) -> list[BaseMessage]:
    @tool
    def search() -> str:
        """Search."""
        return BIG

    @tool
    def picture() -> list[dict[str, Any]]:
        """Take a picture."""
        return [
            {"type": "text", "text": "a picture"},
            {"type": "image", "base64": "cGljdHVyZQ==", "mime_type": "image/png"},
        ]

    script = (call(("search", {}), ("picture", {})), call(("search", {}), prefix="again"), say())
    agent, _ = agent_of([search, picture], *script, middleware=middleware)
    messages: list[BaseMessage] = agent.invoke(question(), thread(SCOPE))["messages"]
    return messages


@pytest.mark.parametrize("dump", [dumpd, messages_to_dict, model_dump, convert_to_openai_messages])
def test_a_replay_predicts_exactly_what_stays(dump: Callable[[Any], Any], tmp_path: Path) -> None:
    before = recorded(tmp_path / "before", dump(conversation([])))
    after = recorded(tmp_path / "after", dump(conversation(None)))

    assert [name for name, _ in in_view(before)] == ["search", "picture", "search"]
    assert said_to_stay(before) == in_view(after) != in_view(before)


@pytest.mark.parametrize("dump", [dumpd, messages_to_dict, model_dump])
def test_offloaded_results_are_left_alone(dump: Callable[[Any], Any], tmp_path: Path) -> None:
    assert already_offloaded(recorded(tmp_path / "after", dump(conversation(None)[:-3]))) == 1


def test_a_replay_counts_as_many_tokens_for_the_tool_definition_as_are_sent() -> None:
    sent = convert_to_openai_tool(retrieval_tool(Offloader()))

    assert definition_tokens(COUNTER) == COUNTER.count(json_text(sent))


def test_a_dumped_state_of_a_graph_is_a_conversation_too(tmp_path: Path) -> None:
    messages = conversation([])

    whole = recorded(tmp_path / "state", dumpd({"messages": messages, "step": 3}))

    assert whole.recorded_as == "LangChain messages"
    assert in_view(whole) == in_view(recorded(tmp_path / "list", dumpd(messages)))
