"""Strategies: which one governs a tool, what custom ones are passed, and how ours work in Haystack's own hook."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import haystack.hooks.tool_result_offloading as upstream
import pytest
from haystack.dataclasses import TextContent

from coatcheck import InMemoryStorage, InvalidRequest
from coatcheck_haystack import (
    AlwaysOffload,
    FileSystemToolResultStore,
    NeverOffload,
    OffloadOverTokens,
    OffloadPolicy,
    ToolResultOffloadHook,
)
from tests.adapters.haystack.agents import IMAGE, LONG, OPENING, PDF, SHORT, last, state_of, text_of

if TYPE_CHECKING:
    from pathlib import Path

    from haystack.components.agents.state import State


class AfterTheFirstStep(OffloadPolicy):
    """A policy as users write them: no constructor, and no serialization of its own."""

    asked: list[tuple[str, str]]

    def __init__(self) -> None:
        self.asked = []

    def should_offload(self, tool_name: str, result: str, state: State) -> bool:
        self.asked.append((tool_name, result))
        return bool(state.data["step_count"] > 0)


class Bare:
    """A policy that subclasses nothing, and answers with something that is merely truthy."""

    def should_offload(self, tool_name: str, result: str, state: State) -> Any:
        return len(result)


class Raising(OffloadPolicy):
    def should_offload(self, tool_name: str, result: str, state: State) -> bool:
        raise LookupError(tool_name)


async def offloads(strategies: Any, *contents: Any, mode: str = "sync", **data: Any) -> bool:
    state = state_of(*contents, **data)
    hook = ToolResultOffloadHook(InMemoryStorage(), strategies)
    await hook.run_async(state) if mode == "async" else hook.run(state)
    return text_of(last(state)).startswith(OPENING)


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_a_custom_policy_sees_the_state_and_the_text(mode: str) -> None:
    policy = AfterTheFirstStep()

    assert not await offloads({"search": policy}, LONG, mode=mode, step_count=0)
    assert await offloads({"search": policy}, SHORT, mode=mode, step_count=1)
    assert policy.asked == [("search", LONG), ("search", SHORT)]


async def test_a_custom_policy_sees_base64_as_haystacks_own_hook_shows_it() -> None:
    policy = AfterTheFirstStep()

    await offloads({"*": policy}, [TextContent("caption"), IMAGE, PDF])

    assert policy.asked == [("search", "caption" + IMAGE.base64_image + PDF.base64_data)]


async def test_any_object_with_the_method_is_a_policy() -> None:
    assert await offloads({"*": Bare()}, SHORT)


async def test_a_policy_that_raises_leaves_the_decision_to_the_default_threshold() -> None:
    assert await offloads({"*": Raising()}, LONG)
    assert not await offloads({"*": Raising()}, SHORT)


async def test_over_tokens_counts_what_media_cost_and_not_their_base64() -> None:
    assert not await offloads({"*": OffloadOverTokens(1_700)}, [IMAGE])
    assert await offloads({"*": OffloadOverTokens(100)}, [IMAGE])
    assert await offloads({"*": upstream.OffloadOverChars(1_700)}, [IMAGE])


async def test_a_result_of_exactly_the_threshold_stays() -> None:
    text = "a b c d e f"  # six tokens

    assert not await offloads({"*": OffloadOverTokens(6)}, text)
    assert await offloads({"*": OffloadOverTokens(5)}, text)


def test_tokens_are_counted_in_haystacks_own_hook_too(tmp_path: Path) -> None:
    small, large = state_of(SHORT), state_of(LONG)
    hook = upstream.ToolResultOffloadHook(FileSystemToolResultStore(tmp_path), {"*": OffloadOverTokens(100)})

    hook.run(small)
    hook.run(large)

    assert last(small).result == SHORT
    assert text_of(last(large)).startswith("Tool result offloaded to ")


async def test_the_override_of_a_policy_subclass_decides() -> None:
    class Refusing(OffloadOverTokens):
        def should_offload(self, tool_name: str, result: str, state: State) -> bool:
            return False

    class Eager(upstream.NeverOffload):
        def should_offload(self, tool_name: str, result: str, state: State) -> bool:
            return True

    assert not await offloads({"*": Refusing(10)}, LONG)
    assert await offloads({"*": Eager()}, SHORT)


def test_a_threshold_is_checked() -> None:
    with pytest.raises(InvalidRequest, match="above 0"):
        OffloadOverTokens(0)


@pytest.mark.parametrize(
    ("strategies", "leaves"),
    [
        ({"search": AlwaysOffload(), ("search", "x"): NeverOffload(), "*": NeverOffload()}, True),
        ({("x", "search"): AlwaysOffload(), "*": NeverOffload()}, True),
        ({"*": AlwaysOffload(), ("x", "search"): NeverOffload()}, False),
        ({"*": AlwaysOffload()}, True),
        ({"other": AlwaysOffload()}, False),
        ({}, False),
    ],
    ids=["name", "tuple", "tuple before wildcard", "wildcard", "no match", "nothing"],
)
async def test_the_most_specific_strategy_governs(strategies: Any, leaves: bool) -> None:
    assert await offloads(strategies, LONG) is leaves
