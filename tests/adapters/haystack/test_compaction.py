"""What Haystack's own compactors leave of our placeholders, in the conversation of a real agent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from haystack.dataclasses import ChatMessage
from haystack.hooks.tool_result_offloading import FileSystemToolResultStore

from coatcheck import InMemoryStorage, keep_references
from coatcheck_haystack import RetrievalTool, ToolResultOffloadHook, offloaded_references
from tests.adapters.haystack.agents import LONG, Scripted, agent_of, call, results, say, text_of, tool, tool_messages

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

OLD = "newer than the oldest Haystack that we take"
pytestmark = pytest.mark.filterwarnings("ignore:.* is an experimental component")


class Characters:
    """Counts one token for every four characters."""

    def count(self, messages: list[ChatMessage], **_: Any) -> int:  # noqa: ANN401 - as Haystack's
        return sum(len(str(message.to_dict())) for message in messages) // 4


@pytest.fixture(name="compaction")
def _compaction() -> ModuleType:
    module: ModuleType = pytest.importorskip("haystack.hooks.compaction", reason=OLD)
    if not hasattr(module, "SummarizationCompactor"):
        pytest.skip(OLD)
    return module


@pytest.fixture(name="hook")
def _hook() -> ToolResultOffloadHook:
    return ToolResultOffloadHook(InMemoryStorage())


@pytest.fixture(name="conversation")
def _conversation(hook: ToolResultOffloadHook) -> list[ChatMessage]:
    """Return a conversation of three steps, each with its own placeholder."""
    tools = [tool(f"search{number}", f"{number} {LONG}") for number in range(3)]
    calls = [call((each.name, {}), prefix=each.name) for each in tools]
    agent, _ = agent_of(tools, *calls, say(), hook=hook)
    messages: list[ChatMessage] = agent.run(messages=[ChatMessage.from_user("hello")])["messages"]
    assert len(references_in(messages)) == 3
    return messages


def references_in(messages: list[ChatMessage]) -> list[str]:
    return [reference for message in messages for reference in offloaded_references(message)]


def text_in(messages: list[ChatMessage]) -> str:
    return "\n".join([*(each.text or "" for each in messages), *map(text_of, results(messages))])


def raw(conversation: list[ChatMessage]) -> list[ChatMessage]:
    """Return the same conversation with whole results, which the compactors are made for."""
    return [
        ChatMessage.from_tool(LONG, origin=message.tool_call_result.origin) if message.tool_call_result else message
        for message in conversation
    ]


def test_pruning_leaves_our_placeholders_as_they_are(compaction: ModuleType, conversation: list[ChatMessage]) -> None:
    compactor = compaction.ToolResultPruningCompactor(min_keep_steps=1)

    assert compactor.compact(conversation, 10, Characters()) is None
    assert compactor.compact(raw(conversation), 10, Characters()) is not None


def test_the_offload_compactor_leaves_our_placeholders_as_they_are(
    compaction: ModuleType, conversation: list[ChatMessage], tmp_path: Path
) -> None:
    if not hasattr(compaction, "ToolResultOffloadCompactor"):
        pytest.skip("newer than this Haystack")
    compactor = compaction.ToolResultOffloadCompactor(FileSystemToolResultStore(tmp_path), min_keep_steps=1)

    assert compactor.compact(conversation, 10, Characters()) is None
    assert not list(tmp_path.iterdir()), "nothing of ours is stored twice"
    assert compactor.compact(raw(conversation), 10, Characters()) is not None


def test_a_sliding_window_drops_the_references_of_the_steps_that_it_drops(
    compaction: ModuleType, conversation: list[ChatMessage], hook: ToolResultOffloadHook
) -> None:
    left = compaction.SlidingWindowCompactor(min_keep_steps=1).compact(conversation, 10, Characters())
    first, second, last = references_in(conversation)

    assert left is not None
    assert not {first, second, last} & set(re.findall(r"search\S+", text_in(left))), "the answer is the last step"
    assert "row 1000:" in RetrievalTool(hook).invoke(reference=first, pattern="row 1000:"), "what they name is there"


def test_a_sliding_window_keeps_the_references_of_the_steps_that_it_keeps(
    compaction: ModuleType, conversation: list[ChatMessage]
) -> None:
    left = compaction.SlidingWindowCompactor(min_keep_steps=2).compact(conversation, 10, Characters())
    *dropped, kept = references_in(conversation)

    assert left is not None
    assert kept in text_in(left)
    assert not any(reference in text_in(left) for reference in dropped)


@pytest.mark.parametrize("repeats", [True, False])
def test_a_summary_keeps_the_references_that_it_repeats(
    compaction: ModuleType, conversation: list[ChatMessage], *, repeats: bool
) -> None:
    def summary(asked: list[ChatMessage]) -> ChatMessage:
        found = re.findall(r"search\d-[0-9a-f]{16}-[0-9a-f]{4}", text_in(asked))
        return say(f"Searched: {' '.join(dict.fromkeys(found))}." if repeats else "Searched.")

    summarizer = Scripted(summary)
    compactor = compaction.SummarizationCompactor(summarizer, min_keep_steps=1)
    left = compactor.compact(conversation, 10, Characters())

    assert left is not None
    assert not tool_messages(left)
    for reference in references_in(conversation):
        assert any(reference in text_in(asked) for asked in summarizer.seen), "it was there to be repeated"
        assert (reference in text_in(left)) is repeats


def test_keep_references_names_the_references_of_a_conversation(conversation: list[ChatMessage]) -> None:
    line = keep_references(conversation)

    assert re.findall(r"search\d-[0-9a-f]{16}-[0-9a-f]{4}", line) == references_in(conversation)
    assert keep_references([ChatMessage.from_user(f"Summary. {line}")]) != "", "the next summary keeps it as well"
    assert keep_references([ChatMessage.from_user("hello")]) == ""
