"""Checks what docs/comparison.md says about Haystack's own hook, and that ours differs as it says.

Only the newest Haystack is compared. ``tests/adapters/haystack/test_deviations.py`` covers call ids and the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import haystack.hooks.tool_result_offloading as theirs
import pytest
from haystack.tools.tool import Tool

import coatcheck_haystack as ours
from tests.adapters.haystack.agents import LONG, agent_of, call, last, read, results, run, say, state_of, text_of, tool

if TYPE_CHECKING:
    from pathlib import Path

ALWAYS: dict[Any, Any] = {"*": theirs.AlwaysOffload()}


def test_theirs_measures_characters() -> None:
    classes = [value for value in vars(theirs).values() if isinstance(value, type)]
    policies = {policy for policy in classes if theirs.OffloadPolicy in policy.__mro__[1:]}

    assert policies == {theirs.AlwaysOffload, theirs.NeverOffload, theirs.OffloadOverChars}


def test_theirs_shows_the_first_200_characters(tmp_path: Path) -> None:
    state = state_of(LONG)

    theirs.ToolResultOffloadHook(theirs.FileSystemToolResultStore(tmp_path), ALWAYS).run(state)

    assert LONG[:200] in text_of(last(state))
    assert LONG[:220] not in text_of(last(state))


def test_theirs_comes_without_a_retrieval_tool() -> None:
    def tools(module: object) -> list[str]:
        names = [name for name in dir(module) if isinstance(getattr(module, name), type)]
        return [name for name in names if issubclass(getattr(module, name), Tool)]

    assert tools(theirs) == []
    assert tools(ours) == ["RetrievalTool"]


async def test_ours_can_read_the_end_of_one_long_line(tmp_path: Path) -> None:
    line = "x" * 300_000 + "the end"
    hook = ours.ToolResultOffloadHook(ours.FileSystemToolResultStore(tmp_path), ALWAYS)
    agent, _ = agent_of([tool("search", line)], call(("search", {})), read(offset=-20), say(), hook=hook)

    assert "the end" in text_of(results((await run(agent))["messages"])[-1])


@pytest.mark.parametrize(("lib", "leaves"), [(theirs, False), (ours, True)], ids=["theirs", "ours"])
def test_theirs_has_no_budget_for_a_step(lib: Any, *, leaves: bool, tmp_path: Path) -> None:  # noqa: ANN401
    result = LONG[:6_000]  # 1,500 tokens
    store = lib.FileSystemToolResultStore(tmp_path)
    rules: dict[Any, Any] = {"*": theirs.OffloadOverChars(10_000)}
    hook = (
        lib.ToolResultOffloadHook(store, rules)
        if lib is theirs
        else lib.ToolResultOffloadHook(store, max_step_tokens=2_000)
    )
    state = state_of(result, f"{result}.", f"{result}..")

    hook.run(state)

    assert any("tool_result_offloaded" in message.meta for message in state.data["messages"]) is leaves


@pytest.mark.parametrize(("lib", "kept"), [(theirs, LONG + "another"), (ours, LONG)], ids=["theirs", "ours"])
def test_theirs_keeps_one_content_per_call_id_and_lets_anyone_with_the_reference_read_it(
    lib: Any,  # noqa: ANN401
    kept: str,
    tmp_path: Path,
) -> None:
    store = lib.FileSystemToolResultStore(tmp_path)
    first, second = state_of(LONG), state_of(LONG + "another")
    for state in (first, second):
        lib.ToolResultOffloadHook(store, ALWAYS).run(state)

    (reference,) = first.data["messages"][-1].meta["tool_result_offloaded"]
    assert lib.FileSystemToolResultStore(tmp_path).read(reference) == kept
