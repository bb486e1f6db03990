"""Several instances of the middleware in one agent, and tools whose names collide."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tools import tool

import coatcheck
from coatcheck_langchain import OffloadMiddleware, offloaded_references
from tests.adapters.langchain.samples import LONG, OPENING, make_offloader, text_of
from tests.adapters.langgraph.agents import agent_of, answers, call, question, read, say

RUNS = pytest.mark.parametrize("mode", ["sync", "async"])


@tool
def search(query: str) -> str:
    """Search for rows."""
    return LONG


async def run(agent: Any, mode: str) -> list[Any]:
    result = agent.invoke(question()) if mode == "sync" else await agent.ainvoke(question())
    messages: list[Any] = result["messages"]
    return messages


def test_the_name_is_that_of_the_class_unless_another_is_given() -> None:
    assert OffloadMiddleware().name == "OffloadMiddleware"
    assert OffloadMiddleware(name="second").name == "second"


def test_langchain_refuses_two_middlewares_with_one_name() -> None:
    with pytest.raises(AssertionError, match="duplicate middleware"):
        agent_of([search], say(), middleware=[OffloadMiddleware(), OffloadMiddleware()])


@RUNS
async def test_two_middlewares_with_one_offloader_offload_once_and_name_the_tool(mode: str) -> None:
    offloader = make_offloader(policies={"*": coatcheck.Always()})
    outer = OffloadMiddleware(offloader)
    inner = OffloadMiddleware(offloader, name="inner", include_retrieval_tool=False)
    agent, model = agent_of(
        [search], call(("search", {"query": "q"})), read(line_range="5"), say(), middleware=[outer, inner]
    )

    placeholder, answer = answers(await run(agent, mode))

    assert offloader.stats().offloaded == 1
    assert "retrieve_offloaded_content(reference" in text_of(placeholder)
    assert "row 5: the quick" in text_of(answer)
    assert model.tools.count("retrieve_offloaded_content") == 1


@RUNS
async def test_without_the_tool_placeholders_do_not_name_it(mode: str) -> None:
    middleware = OffloadMiddleware(include_retrieval_tool=False)
    agent, model = agent_of([search], call(("search", {"query": "q"})), say(), middleware=[middleware])

    (placeholder,) = answers(await run(agent, mode))

    assert middleware.tools == []
    assert model.tools == ["search"]
    assert "retrieve_offloaded_content" not in text_of(placeholder)
    assert "available tools" in text_of(placeholder)


@RUNS
async def test_a_users_tool_with_the_retrieval_tools_name_logs_a_warning_and_is_not_exempt(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    @tool
    def retrieve_offloaded_content(reference: str) -> str:
        """Read something of the user's own."""
        return LONG

    turns = (call(("search", {"query": "q"})), call(("retrieve_offloaded_content", {"reference": "x"})), say())
    agent, _ = agent_of([search, retrieve_offloaded_content], *turns)

    messages = answers(await run(agent, mode))

    assert all(text_of(message).startswith(OPENING) for message in messages)
    assert "retrieve_offloaded_content(reference" not in text_of(messages[0])
    warnings = [record for record in caplog.records if "is taken by another tool" in record.getMessage()]
    assert len(warnings) == 1


@RUNS
async def test_the_retrieval_tool_of_another_instance_is_not_taken_for_its_own(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = OffloadMiddleware(make_offloader(), name="first", exempt=["search"])
    second = OffloadMiddleware(make_offloader(), name="second")
    agent, _ = agent_of([search], call(("search", {"query": "q"})), say(), middleware=[second, first])

    (message,) = answers(await run(agent, mode))

    assert offloaded_references(message)
    assert "retrieve_offloaded_content(reference" not in text_of(message)
    assert "share one Offloader" in caplog.text
