"""If rewriting a result fails, the hard limit still holds, and it holds whatever a strategy says."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import dataclasses
import sys
from typing import Any

import pytest
from haystack.dataclasses import FileContent, ImageContent, TextContent
from haystack.hooks.tool_result_offloading import NeverOffload, OffloadOverChars
from haystack.tools import tool

from coatcheck import InMemoryStorage, Never, Offloader, TextBlock
from coatcheck_haystack import ToolResultOffloadHook, offloaded_references
from coatcheck_haystack import hook as module
from tests.adapters.failing import CUT, ERRORS, HUGE, LARGE, FailingOffloader, FullStorage
from tests.adapters.haystack.agents import (
    IMAGE,
    LONG,
    agent_of,
    call,
    last,
    results,
    run,
    say,
    state_of,
    text_of,
    tool_messages,
)
from tests.adapters.odd import ENCODED, LIMIT, MAX_TOKENS, odd_forms

RUNS = pytest.mark.parametrize("mode", ["sync", "async"])
VERY_HUGE = LONG * 3
"""Above 50,000 tokens."""


async def after_tool(hook: ToolResultOffloadHook, state: Any, mode: str) -> Any:
    if mode == "sync":
        hook.run(state)
    else:
        await hook.run_async(state)
    return state


@RUNS
@ERRORS
async def test_a_result_above_the_hard_limit_is_stored_raw_and_the_rest_stays(
    mode: str, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    offloader = FailingOffloader(error)

    state = await after_tool(ToolResultOffloadHook(offloader, scope="mine"), state_of(HUGE, LARGE, HUGE), mode)

    first, second, third = tool_messages(state.data["messages"])
    assert results([second])[0].result == LARGE
    for message in (first, third):
        assert len(text_of(results([message])[0])) < 6_000
        assert offloader.load(offloaded_references(message)[0], scope="mine").text == HUGE
    assert sum("could not offload" in record.message for record in caplog.records) == 1


@RUNS
@ERRORS
async def test_a_huge_result_that_cannot_be_stored_is_cut(mode: str, error: Exception) -> None:
    offloader = FailingOffloader(error, storage=FullStorage())

    state = await after_tool(ToolResultOffloadHook(offloader), state_of(HUGE), mode)

    text = text_of(last(state))
    assert text.startswith(CUT)
    assert "BEGIN " in text
    assert text.endswith(" END")
    assert len(text) <= 20_000


@RUNS
async def test_media_stay_unless_one_alone_is_too_large(mode: str) -> None:
    large = ImageContent("q" * 30_000, mime_type="image/png", validation=False)
    hook = ToolResultOffloadHook(FailingOffloader(RuntimeError()))

    state = await after_tool(hook, state_of([TextContent(HUGE), IMAGE, large]), mode)

    content = last(state).result
    assert [type(part) for part in content] == [TextContent, ImageContent]
    assert content[1] is IMAGE
    assert "bytes is not shown]" in text_of(last(state))


@RUNS
async def test_a_failed_conversion_does_not_bypass_the_limit(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(content: object) -> object:
        raise MemoryError

    monkeypatch.setattr(module, "blocks_of", broken)

    state = await after_tool(ToolResultOffloadHook(Offloader(max_inline_tokens=5_000)), state_of(HUGE), mode)

    assert offloaded_references(tool_messages(state.data["messages"])[0])


@RUNS
@pytest.mark.parametrize("broken_part", ["scope", "store", "strategy"])
async def test_nothing_is_stored_if_the_store_the_scope_or_the_strategy_is_broken(mode: str, broken_part: str) -> None:
    def broken(*_: object) -> str:
        raise LookupError

    storage = InMemoryStorage()
    hooks = {
        "scope": lambda: ToolResultOffloadHook(storage, scope=broken, max_inline_tokens=5_000),
        "store": lambda: ToolResultOffloadHook(Offloader(storage, max_inline_tokens=5_000)),
        "strategy": lambda: ToolResultOffloadHook(
            storage, {"*": NeverOffload()}, scope=broken, max_inline_tokens=5_000
        ),
    }
    context = {"tool_result_store": object()} if broken_part == "store" else {}

    state = await after_tool(hooks[broken_part](), state_of(HUGE, hook_context=context), mode)

    assert text_of(last(state)).startswith(CUT)
    assert list(storage.entries("")) == []


class Declining:
    def should_offload(self, tool_name: str, result: str, state: object) -> bool:
        return False


@RUNS
async def test_a_final_answer_stays(mode: str) -> None:
    @tool
    def conclude() -> str:
        """Conclude."""
        return HUGE

    hook = ToolResultOffloadHook(FailingOffloader(RuntimeError()))
    agent, _ = agent_of([conclude], call(("conclude", {})), say(), hook=hook, exit_conditions=["conclude"])

    answer = await run(agent, mode)

    assert results(answer["messages"])[0].result == HUGE


@RUNS
@pytest.mark.parametrize(
    "strategies", [{}, {"*": NeverOffload()}, {"*": OffloadOverChars(sys.maxsize)}, {"*": Declining()}, {"*": Never()}]
)
async def test_a_result_above_50_000_tokens_is_offloaded_whatever_a_strategy_says(mode: str, strategies: Any) -> None:
    stays = await after_tool(ToolResultOffloadHook(InMemoryStorage(), strategies), state_of(LONG), mode)
    leaves = await after_tool(ToolResultOffloadHook(InMemoryStorage(), strategies), state_of(VERY_HUGE), mode)
    unlimited = ToolResultOffloadHook(InMemoryStorage(), strategies, max_inline_tokens=sys.maxsize)
    kept = await after_tool(unlimited, state_of(VERY_HUGE), mode)

    assert last(stays).result == LONG
    assert text_of(last(leaves)).startswith("Tool result offloaded.")
    assert last(kept).result == VERY_HUGE


@pytest.mark.parametrize("characters", [12_499, 12_500, 12_501])
def test_a_result_that_is_skipped_uncounted_cannot_exceed_50_000_tokens(characters: int) -> None:
    asked: list[int] = []
    hook = ToolResultOffloadHook(InMemoryStorage(), {})
    offload_step = hook.offloader.offload_step
    hook.offloader.offload_step = lambda *a, **k: asked.append(1) or offload_step(*a, **k)  # type: ignore[method-assign, func-returns-value]

    hook.run(state_of("👍" * characters))

    assert bool(asked) is (characters > 12_500)
    assert Offloader().offload([TextBlock("👍" * 12_500)], tool_name="t", policy=Never()).references == ()


def test_an_error_above_50_000_tokens_is_offloaded_too() -> None:
    state = state_of(VERY_HUGE)
    message = state.data["messages"][-1]
    object.__setattr__(message.tool_call_result, "error", True)

    ToolResultOffloadHook(InMemoryStorage(), {}).run(state)

    assert text_of(last(state)).startswith("Tool result offloaded.")


@pytest.mark.parametrize(
    "part",
    [
        TextContent("a"),
        ImageContent(ENCODED, mime_type="image/png", validation=False),
        FileContent(ENCODED, mime_type="text/plain", filename="a", validation=False),
    ],
    ids=lambda part: type(part).__name__,
)
def test_no_odd_part_raises_or_exceeds_the_limit(part: Any) -> None:
    hook = ToolResultOffloadHook(Offloader(max_inline_tokens=MAX_TOKENS), scope="mine")
    name = next(field.name for field in dataclasses.fields(part))
    parts = [dataclasses.replace(part) for _ in odd_forms("")]
    for one, value in zip(parts, odd_forms(""), strict=True):
        object.__setattr__(one, name, value)  # Haystack's own warns
    state = state_of(*([one, TextContent("b")] for one in parts))

    hook.run(state)

    shown = [result.result for result in results(state.data["messages"])]
    assert len(shown) == len(parts)
    texts = [result if isinstance(result, str) else [vars(one) for one in result] for result in shown]
    assert max(len(repr(text)) for text in texts) <= LIMIT
