"""``create_deep_agent`` with sub-agents: whose results we offload, and who reads whose references."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.tools import tool

from coatcheck import InMemoryStorage, Offloader
from coatcheck_langchain import OffloadMiddleware, offloaded_references
from tests.adapters.langchain.samples import LONG, OPENING, text_of
from tests.adapters.langgraph.agents import ScriptedModel, answers, call, model_of, question, read, say, thread

if TYPE_CHECKING:
    from langchain_core.messages import ToolMessage

deepagents = pytest.importorskip("deepagents", reason="needs Python 3.11")

RUNS = pytest.mark.parametrize("mode", ["sync", "async"])
MIDDLING = "\n".join(LONG.splitlines()[:500])
"""Above our threshold, below that of deepagents."""

FILE_TOOLS = ["ls", "read_file", "glob", "grep", "write_file", "edit_file", "delete"]
HELPER = {"name": "helper", "description": "Helps.", "system_prompt": "Help."}


@tool
def large() -> str:
    """Give a large result."""
    return LONG


@tool
def middling() -> str:
    """Give a middling result."""
    return MIDDLING


def ours(offloader: Offloader) -> OffloadMiddleware:
    return OffloadMiddleware(offloader, exempt=FILE_TOOLS)


def ask(name: str) -> Any:
    return call(("task", {"description": "do it", "subagent_type": name}), prefix="task")


async def seen_by_the_helper(
    called: str, mode: str, *, subagents: list[dict[str, Any]], name: str = "helper"
) -> ToolMessage:
    """Let the main agent delegate a task; return the result of the sub-agent's own call, as its model sees it."""
    helper = model_of(call((called, {})), say("helped"))
    main = model_of(ask(name), say())
    chosen = [{**one, "model": helper} for one in subagents]
    agent = deepagents.create_deep_agent(
        model=main, tools=[large, middling], middleware=[ours(Offloader(InMemoryStorage()))], subagents=chosen
    )
    await (agent.ainvoke(question(), thread("t")) if mode == "async" else in_sync(agent))
    return answers(helper.seen[1])[-1]


async def in_sync(agent: Any) -> None:
    agent.invoke(question(), thread("t"))


@RUNS
async def test_a_sub_agent_without_the_middleware_is_left_to_deepagents(mode: str) -> None:
    stays = await seen_by_the_helper("middling", mode, subagents=[HELPER])
    evicted = await seen_by_the_helper("large", mode, subagents=[HELPER])

    assert text_of(stays) == MIDDLING
    assert not offloaded_references(evicted)
    assert "/large_tool_results/" in text_of(evicted)


@RUNS
@pytest.mark.parametrize("called", ["middling", "large"])
@pytest.mark.parametrize("name", ["helper", "general-purpose"])
async def test_a_sub_agent_with_the_middleware_offloads_like_the_main_agent(mode: str, called: str, name: str) -> None:
    given = {**HELPER, "name": name, "middleware": [ours(Offloader(InMemoryStorage()))]}

    left = await seen_by_the_helper(called, mode, subagents=[given], name=name)

    assert text_of(left).startswith(OPENING)
    assert len(offloaded_references(left)) == 1


@RUNS
async def test_the_answer_of_a_sub_agent_is_offloaded_in_the_main_agent(mode: str) -> None:
    helper = {**HELPER, "model": model_of(say(LONG))}
    main = model_of(ask("helper"), read(pattern="row 1000:"), say())
    agent = deepagents.create_deep_agent(
        model=main, tools=[large], middleware=[ours(Offloader(InMemoryStorage()))], subagents=[helper]
    )

    await (agent.ainvoke(question(), thread("t")) if mode == "async" else in_sync(agent))

    answer, back = answers(main.seen[2])
    assert text_of(answer).startswith(OPENING)
    assert "row 1000: the quick" in text_of(back)


@RUNS
async def test_with_one_offloader_main_agent_and_sub_agent_read_each_others_references(mode: str) -> None:
    offloader = Offloader(InMemoryStorage())
    shown: list[str] = []

    def hand_over(messages: list[Any]) -> Any:
        shown.extend(offloaded_references(answers(messages)[0]))
        task = {"description": f"read {shown[0]}", "subagent_type": "helper"}
        return call(("task", task), prefix="task")

    def read_given(_: list[Any]) -> Any:
        return call(("retrieve_offloaded_content", {"reference": shown[0], "pattern": "row 1500:"}), prefix="read")

    def read_back(_: list[Any]) -> Any:
        (own,) = offloaded_references(answers(helper.seen[2])[-1])
        return call(("retrieve_offloaded_content", {"reference": own, "pattern": "row 400:"}), prefix="back")

    helper = model_of(read_given, call(("middling", {})), say("helped"))
    main: ScriptedModel = model_of(call(("large", {})), hand_over, read_back, say())
    agent = deepagents.create_deep_agent(
        model=main,
        tools=[large, middling],
        middleware=[ours(offloader)],
        subagents=[{**HELPER, "model": helper, "middleware": [ours(offloader)]}],
    )

    await (agent.ainvoke(question(), thread("t")) if mode == "async" else in_sync(agent))

    assert "row 1500: the quick" in text_of(answers(helper.seen[1])[-1])
    assert "row 400: the quick" in text_of(answers(main.seen[3])[-1])
