"""Results that code asked for stay whole. Copies of a result in ``meta`` are taken out with it, and restored."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from haystack.dataclasses import ChatMessage, TextContent, ToolCall

from coatcheck import InMemoryStorage, Never, ReferenceNotFound
from coatcheck_haystack import (
    AlwaysOffload,
    FileSystemToolResultStore,
    ToolResultOffloadHook,
    arestore_meta,
    offloaded_references,
    restore_meta,
)
from tests.adapters.haystack.agents import LONG, OPENING, agent_of, call, results, run, say, state_of, text_of, tool

if TYPE_CHECKING:
    from pathlib import Path

    from haystack.components.agents.state import State

RUNS = pytest.mark.parametrize("mode", ["sync", "async"])
STRATEGIES = pytest.mark.parametrize("strategies", [None, {"*": AlwaysOffload()}], ids=["no strategies", "always"])
HUGE = LONG * 4
"""Above ``max_inline_tokens``."""


def with_extra(content: Any, *extras: dict[str, Any], meta: dict[str, Any] | None = None, **data: Any) -> State:
    """Return the state after a step with one call for each ``extra``."""
    state = state_of(*[content for _ in extras], **data)
    messages = state.data["messages"]
    for place, extra in enumerate(extras, len(messages) - len(extras)):
        origin = ToolCall("search", {}, id=f"call-{place}", extra=extra)
        messages[place] = ChatMessage.from_tool(content, origin=origin, meta=meta)
    return state


async def applied(hook: ToolResultOffloadHook, state: State, mode: str) -> list[bool]:
    """Return, for each result, whether it was offloaded."""
    await hook.run_async(state) if mode == "async" else hook.run(state)
    return [text_of(result).startswith(OPENING) for result in results(state.data["messages"])]


@RUNS
@STRATEGIES
async def test_a_result_that_code_asked_for_stays_whole_above_every_limit(strategies: Any, mode: str) -> None:
    by_code, by_model = {"caller": {"type": "code_execution_20250825"}}, {"caller": {"type": "direct"}}
    state = with_extra(HUGE, by_code, by_model, {"caller": {"type": "program"}}, {})
    hook = ToolResultOffloadHook(InMemoryStorage(), strategies, max_inline_tokens=50_000)

    assert await applied(hook, state, mode) == [False, True, False, True]


@RUNS
@STRATEGIES
async def test_a_mark_in_a_call_keeps_its_result(strategies: Any, mode: str) -> None:
    state = with_extra(LONG, {"coatcheck": "keep"}, {"coatcheck": "offload"})
    hook = ToolResultOffloadHook(InMemoryStorage(), strategies)

    assert await applied(hook, state, mode) == [False, True]


@RUNS
@STRATEGIES
async def test_a_mark_in_the_context_of_a_run_keeps_its_results(strategies: Any, mode: str) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage(), strategies)
    agent, _ = agent_of([tool("search", LONG)], call(("search", {})), say(), hook=hook)

    kept = await run(agent, mode, hook_context={"coatcheck": "keep"})
    agent, _ = agent_of([tool("search", LONG)], call(("search", {})), say(), hook=hook)
    left = await run(agent, mode)

    assert [text_of(result) == LONG for result in results(kept["messages"])] == [True]
    assert [text_of(result) == LONG for result in results(left["messages"])] == [False]


@RUNS
@STRATEGIES
async def test_a_kept_result_is_offloaded_above_max_inline_tokens(strategies: Any, mode: str) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage(), strategies, max_inline_tokens=50_000)

    assert await applied(hook, with_extra(HUGE, {"coatcheck": "keep"}), mode) == [True]


@RUNS
@pytest.mark.parametrize("content", [LONG, [TextContent(LONG)]], ids=["text", "list of one"])
async def test_a_copy_of_the_text_in_meta_is_taken_out_and_restored(mode: str, content: Any, tmp_path: Path) -> None:
    meta = {"raw": LONG, "trace": 7, "part": LONG[:500], "nested": {"raw": "x"}}
    state = with_extra(content, {}, meta=meta)
    hook = ToolResultOffloadHook(FileSystemToolResultStore(tmp_path), {"*": AlwaysOffload()}, scope="tenant-a")

    assert await applied(hook, state, mode) == [True]

    message = ChatMessage.from_dict(state.data["messages"][-1].to_dict())
    assert LONG not in str(message.to_dict())
    assert [message.meta[key] == meta[key] for key in meta] == [False, True, True, True]
    marks = {"tool_result_offloaded": list(offloaded_references(message))}
    assert restore_meta(message, hook.offloader, scope="tenant-a") == {**meta, **marks}
    assert await arestore_meta(message, hook.offloader, scope="tenant-a") == {**meta, **marks}
    with pytest.raises(ReferenceNotFound):
        restore_meta(message, hook.offloader, scope="tenant-b")


@RUNS
async def test_meta_stays_if_the_result_stays_or_the_host_wants_it(mode: str) -> None:
    kept = with_extra(LONG, {}, meta={"raw": LONG})
    left = with_extra(LONG, {}, meta={"raw": LONG})
    never = ToolResultOffloadHook(InMemoryStorage(), {"*": Never()})
    keeping = ToolResultOffloadHook(InMemoryStorage(), keep_meta=True)

    assert await applied(never, kept, mode) == [False]
    assert await applied(keeping, left, mode) == [True]

    for state in (kept, left):
        assert state.data["messages"][-1].meta["raw"] == LONG
    assert restore_meta(kept.data["messages"][-1], never.offloader) == {"raw": LONG}


def test_keep_meta_is_serialized(tmp_path: Path) -> None:
    hook = ToolResultOffloadHook(FileSystemToolResultStore(tmp_path), keep_meta=True)

    assert ToolResultOffloadHook.from_dict(hook.to_dict()).keep_meta is True
    assert "keep_meta" not in ToolResultOffloadHook(FileSystemToolResultStore(tmp_path)).to_dict()["init_parameters"]
