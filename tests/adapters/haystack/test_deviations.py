"""Where ours differs from Haystack's own hook, on purpose: every deviation, with the behaviour of both sides pinned."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import haystack.hooks.tool_result_offloading as upstream
import pytest
from haystack.dataclasses import ChatMessage, ToolCall

import coatcheck
import coatcheck_haystack
from coatcheck import ReferenceNotFound
from coatcheck_haystack import FileSystemToolResultStore, ToolResultOffloadHook
from tests.adapters.haystack.agents import (
    LONG,
    UPSTREAM_OUTLIVES_ITS_STORE,
    agent_of,
    call,
    last,
    run,
    say,
    state_of,
    text_of,
    tool,
)

if TYPE_CHECKING:
    from pathlib import Path

    from haystack.components.agents.state import State

ALWAYS: dict[Any, Any] = {"*": upstream.AlwaysOffload()}


def references(state: State) -> list[list[str]]:
    return [message.meta.get("tool_result_offloaded", []) for message in state.data["messages"][2:]]


def with_id(call_id: str | None, content: str) -> State:
    state = state_of(content)
    state.data["messages"][-1] = ChatMessage.from_tool(content, origin=ToolCall("search", {}, id=call_id))
    return state


def test_the_pointer_is_the_placeholder_that_all_frameworks_share(tmp_path: Path) -> None:
    theirs, ours = state_of(LONG), state_of(LONG)

    upstream.ToolResultOffloadHook(upstream.FileSystemToolResultStore(tmp_path), ALWAYS).run(theirs)
    ToolResultOffloadHook(FileSystemToolResultStore(tmp_path), ALWAYS).run(ours)

    assert text_of(last(theirs)).startswith(f"Tool result offloaded to text ({len(LONG)} characters) at '")
    assert text_of(last(ours)).startswith("Tool result offloaded. [Offloaded: 1 block, ~")
    assert f"[Stored references:]\n  {references(ours)[0][0]} (text/plain, {len(LONG):,} bytes)" in text_of(last(ours))


def test_keys_name_scope_and_content_instead_of_the_call(tmp_path: Path) -> None:
    theirs, ours = state_of(LONG), state_of(LONG)

    upstream.ToolResultOffloadHook(upstream.FileSystemToolResultStore(tmp_path / "theirs"), ALWAYS).run(theirs)
    ToolResultOffloadHook(FileSystemToolResultStore(tmp_path / "ours"), ALWAYS).run(ours)

    assert [path.name for path in (tmp_path / "theirs").iterdir()] == ["0_search_call-0.txt"]
    (name,) = [path.name for path in (tmp_path / "ours").iterdir()]
    assert "call-0" not in name
    assert name.startswith("search_")


def test_ours_takes_a_call_id_of_1400_characters(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    theirs, ours = with_id("i" * 1_400, LONG), with_id("i" * 1_400, LONG)

    with nullcontext() if UPSTREAM_OUTLIVES_ITS_STORE else pytest.raises(OSError, match="File name too long"):
        upstream.ToolResultOffloadHook(upstream.FileSystemToolResultStore(tmp_path), ALWAYS).run(theirs)
    assert last(theirs).result == LONG
    assert "File name too long" in caplog.text or not UPSTREAM_OUTLIVES_ITS_STORE

    ToolResultOffloadHook(FileSystemToolResultStore(tmp_path), ALWAYS).run(ours)
    assert FileSystemToolResultStore(tmp_path).read(references(ours)[0][0]) == LONG


@pytest.mark.parametrize(("lib", "kept"), [(upstream, 1), (coatcheck_haystack, 2)], ids=["upstream", "ours"])
@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_calls_without_ids_in_two_runs_do_not_overwrite_each_other(
    lib: Any, kept: int, mode: str, tmp_path: Path
) -> None:
    store = lib.FileSystemToolResultStore(tmp_path)
    hook = lib.ToolResultOffloadHook(store, ALWAYS)
    found: list[str] = []

    for content in (LONG, LONG + "another"):
        agent, _ = agent_of([tool("search", content)], call(("search", {}), prefix=None), say(), hook=hook)
        messages = (await run(agent, mode))["messages"]
        found += next(message.meta["tool_result_offloaded"] for message in messages if message.tool_call_result)

    assert len(set(found)) == kept
    assert store.read(found[0]) == (LONG if kept == 2 else LONG + "another")
    assert store.read(found[1]) == LONG + "another"


def test_one_store_may_serve_many_scopes_and_each_reads_its_own(tmp_path: Path) -> None:
    hook = ToolResultOffloadHook(FileSystemToolResultStore(tmp_path), ALWAYS)
    state = state_of(LONG)
    with coatcheck.scope("tenant-a"):
        hook.run(state)
    (reference,) = references(state)[0]

    assert hook.offloader.load(reference, scope="tenant-a").text == LONG
    with pytest.raises(ReferenceNotFound):
        hook.offloader.load(reference, scope="tenant-b")


@pytest.mark.parametrize(("lib", "aborts"), [(upstream, True), (coatcheck_haystack, False)], ids=["upstream", "ours"])
async def test_a_policy_that_raises_does_not_end_the_run(lib: Any, aborts: bool, tmp_path: Path) -> None:
    class Raising(lib.OffloadPolicy):  # type: ignore[misc]
        def should_offload(self, tool_name: str, result: str, state: State) -> bool:
            raise LookupError(tool_name)

    hook = lib.ToolResultOffloadHook(lib.FileSystemToolResultStore(tmp_path), {"*": Raising()})
    agent, _ = agent_of([tool("search", LONG)], call(("search", {})), say("done"), hook=hook)

    if aborts:
        with pytest.raises(LookupError):
            await run(agent)
    else:
        assert (await run(agent))["last_message"].text == "done"


@pytest.mark.parametrize(("lib", "leaves"), [(upstream, True), (coatcheck_haystack, False)], ids=["upstream", "ours"])
@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_a_final_answer_is_never_offloaded(lib: Any, leaves: bool, mode: str, tmp_path: Path) -> None:
    hook = lib.ToolResultOffloadHook(lib.FileSystemToolResultStore(tmp_path), ALWAYS)
    agent, _ = agent_of([tool("answer", LONG)], call(("answer", {})), hook=hook, exit_conditions=["answer"])

    answer = await run(agent, mode)

    assert answer["exit_reason"] == "answer"
    assert (answer["last_message"].tool_call_result.result != LONG) is leaves


@pytest.mark.filterwarnings("ignore:.* is an experimental component")
@pytest.mark.parametrize("name", ["ToolResultPruningCompactor", "ToolResultOffloadCompactor", "SlidingWindowCompactor"])
def test_compactors_of_tool_results_leave_our_placeholders_alone_and_others_do_not(name: str, tmp_path: Path) -> None:
    compaction = pytest.importorskip("haystack.hooks.compaction", reason="newer than the oldest Haystack that we take")
    if not hasattr(compaction, name):
        pytest.skip("newer than this Haystack")
    stores = {"ToolResultOffloadCompactor": (upstream.FileSystemToolResultStore(tmp_path / "theirs"),)}
    compactor = getattr(compaction, name)(*stores.get(name, ()))
    raw, ours = state_of(LONG), state_of(LONG)
    ToolResultOffloadHook(FileSystemToolResultStore(tmp_path / "ours")).run(ours)

    compacted = {
        which: compactor.compact([*state.data["messages"], *state_of("few").data["messages"]], 10, Characters())
        for which, state in (("raw", raw), ("ours", ours))
    }

    assert references(ours) != [[]]
    assert compacted["raw"] is not None
    assert (compacted["ours"] is None) is (name != "SlidingWindowCompactor")


class Characters:
    """Counts one token for every four characters."""

    def count(self, messages: list[ChatMessage], **_: Any) -> int:
        return sum(len(str(message.to_dict())) for message in messages) // 4
