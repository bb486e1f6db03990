"""Haystack's compactor offloads older results: next to our hook, no result is stored twice and no reference is lost."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import haystack.hooks.tool_result_offloading as upstream
import pytest
from haystack.components.agents import Agent

from coatcheck import FileStorage
from coatcheck_haystack import (
    AlwaysOffload,
    FileSystemToolResultStore,
    RetrievalTool,
    ToolResultOffloadHook,
    offloaded_references,
)
from tests.adapters.haystack.agents import LONG, Scripted, call, run, say, state_of, text_of, tool, tool_messages

if TYPE_CHECKING:
    from pathlib import Path

    from haystack.dataclasses import ChatMessage

compaction = pytest.importorskip("haystack.hooks.compaction", reason="newer than the oldest Haystack that we take")
if not hasattr(compaction, "ToolResultOffloadCompactor"):
    pytest.skip("newer than this Haystack", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore:.* is an experimental component")
RUNS = pytest.mark.parametrize("mode", ["sync", "async"])

MIDDLING = "".join(f"line {number} of a middling result\n" for number in range(150))
"""Below our threshold, above the compactor's."""

WINDOW = 2_000
"""Tokens. The context window of a model: so small that everything but the last step is compacted."""


class Watched(FileSystemToolResultStore):
    """Records all content that is written."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.written: list[str] = []

    def write(self, *, key: str, content: str | bytes) -> str:
        self.written.append(content if isinstance(content, str) else content.decode())
        return super().write(key=key, content=content)


def compactor_of(store: Any) -> Any:
    return compaction.CompactionHook(
        compactor=compaction.ToolResultOffloadCompactor(store), context_window=WINDOW, compact_at=0.5, compact_to=0.2
    )


def agent_with(store: Any, *script: Any, ours_first: bool) -> tuple[Agent, ToolResultOffloadHook, Scripted]:
    """Return an agent with our hook and the compactor, in either order."""
    hook, generator = ToolResultOffloadHook(store), Scripted(*script)
    both = [("after_tool", [hook]), ("before_llm", [compactor_of(store)])]
    agent = Agent(
        chat_generator=generator,
        tools=[tool("large", LONG), tool("middling", MIDDLING), RetrievalTool(hook)],
        hooks=dict(both if ours_first else reversed(both)),  # type: ignore[arg-type] # in this order
    )
    return agent, hook, generator


@RUNS
@pytest.mark.parametrize("ours_first", [True, False])
async def test_each_result_is_stored_once_and_read_back_by_its_reference(
    mode: str, ours_first: bool, tmp_path: Path
) -> None:
    def back(position: int) -> Any:
        """Return a turn that reads the result at this position, through whatever reference the model is shown."""

        def turn(messages: list[ChatMessage]) -> ChatMessage:
            (reference,) = offloaded_references(tool_messages(messages)[position])
            assert reference in text_of(tool_messages(messages)[position].tool_call_result)  # type: ignore[arg-type]
            return call(("retrieve_offloaded_content", {"reference": reference, "pattern": "149[: ]"}), prefix="read")

        return turn

    store = Watched(tmp_path)
    agent, _, model = agent_with(
        store,
        call(("large", {}), prefix="a"),
        call(("middling", {}), prefix="b"),
        call(("middling", {}), prefix="c"),
        back(0),
        back(1),
        say(),
        ours_first=ours_first,
    )

    messages = tool_messages((await run(agent, mode))["messages"])

    large, middling, *_ = messages
    assert offloaded_references(large)
    assert offloaded_references(middling)
    first, second = (text_of(seen[-1].tool_call_result) for seen in model.seen[-2:])  # type: ignore[arg-type]
    assert "row 149:" in first
    assert "line 149 of" in second
    assert store.written.count(LONG) == 1
    assert store.written.count(MIDDLING) <= 2  # it was called twice
    assert not any("Tool result offloaded" in text for text in store.written)


def marked_by(which: str, store: Any) -> list[ChatMessage]:
    """Return a conversation whose only result was offloaded by our hook or by the compactor."""
    state = state_of(LONG)
    if which == "ours":
        ToolResultOffloadHook(store, {"*": AlwaysOffload()}).run(state)
        return list(state.data["messages"])
    later = [*state.data["messages"], *state_of("few").data["messages"]]
    compacted = compaction.ToolResultOffloadCompactor(store).compact(later, 10, Characters())
    assert compacted is not None
    return list(compacted[: len(state.data["messages"])])


class Characters:
    """Counts one token for every four characters."""

    def count(self, messages: list[ChatMessage], **_: Any) -> int:
        return sum(len(str(message.to_dict())) for message in messages) // 4


@pytest.mark.parametrize("first", ["ours", "theirs"])
def test_the_hook_and_the_compactor_leave_each_others_results_alone(first: str, tmp_path: Path) -> None:
    store = Watched(tmp_path)
    before = marked_by(first, store)

    if first == "ours":
        later = [*before, *state_of("few").data["messages"]]
        after = compaction.ToolResultOffloadCompactor(store).compact(later, 10, Characters()) or before
    else:
        state = state_of()
        state.data["messages"] = list(before)
        ToolResultOffloadHook(store, {"*": AlwaysOffload()}).run(state)
        after = state.data["messages"]

    assert [message.to_dict() for message in after] == [message.to_dict() for message in before]
    assert store.written == [LONG]


@pytest.mark.parametrize("reader", ["the same store", "another store"])
def test_our_tool_reads_what_the_compactor_wrote_if_they_share_the_store(reader: str, tmp_path: Path) -> None:
    message = marked_by("theirs", upstream.FileSystemToolResultStore(tmp_path / "theirs"))[-1]
    (reference,) = offloaded_references(message)
    store = FileSystemToolResultStore(tmp_path / "theirs") if reader == "the same store" else FileStorage(tmp_path)

    read = RetrievalTool(ToolResultOffloadHook(store)).invoke(reference=reference, pattern="row 7:")

    assert ("row 7: the quick" in read) is (reader == "the same store")
