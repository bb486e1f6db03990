"""Who reads whose content: threads, arguments, the ambient scope; a reference from another scope is unknown."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

import coatcheck
from coatcheck import scopes
from coatcheck_langchain import OffloadMiddleware
from tests.adapters.langchain.samples import LONG, OPENING, make_offloader, text_of
from tests.adapters.langgraph.agents import agent_of, answers, call, question, read, reference_in, say, thread

if TYPE_CHECKING:
    from langchain_core.messages import ToolMessage

    from coatcheck import Offloader

RUNS = pytest.mark.parametrize("mode", ["sync", "async"])


@tool
def search(query: str) -> str:
    """Search for rows."""
    return LONG


async def run(agent: Any, mode: str, config: Any = None, **kwargs: Any) -> list[ToolMessage]:
    given = question()
    result = agent.invoke(given, config, **kwargs) if mode == "sync" else await agent.ainvoke(given, config, **kwargs)
    return answers(result["messages"])


def asking_and_reading(offloader: Offloader, **arguments: Any) -> tuple[Any, Any]:
    middleware = OffloadMiddleware(offloader, **arguments)
    return agent_of([search], call(("search", {"query": "q"})), read(line_range="7"), say(), middleware=[middleware])


@RUNS
async def test_the_thread_is_the_scope(mode: str) -> None:
    offloader = make_offloader()
    agent, _ = asking_and_reading(offloader)

    placeholder, answer = await run(agent, mode, thread("a"))

    assert "row 7: the quick" in text_of(answer)
    assert offloader.load(reference_in([placeholder]), scope="a").text == LONG
    assert offloader.delete_scope("a") >= 1


@RUNS
async def test_a_thread_of_several_parts_is_a_scope_of_several_parts(mode: str) -> None:
    offloader = make_offloader()
    agent, _ = asking_and_reading(offloader)

    _, answer = await run(agent, mode, {"configurable": {"thread_id": ("tenant-7", "thread-3")}})

    assert "row 7: the quick" in text_of(answer)
    assert offloader.delete_scopes(under=("tenant-7",)) == 1


@RUNS
@pytest.mark.parametrize("given", [7, UUID(int=5), ("tenant-7", 3), ("tenant-7", ""), ("part",) * 9])
async def test_a_thread_id_that_is_not_a_valid_scope_is_taken_as_text(mode: str, given: Any) -> None:
    offloader = make_offloader()
    agent, _ = asking_and_reading(offloader)

    await run(agent, mode, {"configurable": {"thread_id": given}})

    assert offloader.delete_scope(str(given)) >= 1


@RUNS
async def test_without_a_thread_the_default_scope_applies(mode: str) -> None:
    offloader = make_offloader()
    agent, _ = asking_and_reading(offloader)

    _, answer = await run(agent, mode)

    assert "row 7: the quick" in text_of(answer)
    assert offloader.delete_scope("default") >= 1


@RUNS
async def test_another_threads_reference_is_answered_as_an_unknown_one(mode: str) -> None:
    offloader = make_offloader()
    first, _ = agent_of([search], call(("search", {"query": "q"})), say(), middleware=[OffloadMiddleware(offloader)])
    reference = reference_in(await run(first, mode, thread("a")))

    texts = []
    for asked in (reference, reference[:-21] + "0" * 16 + "-0000"):
        turn = call(("retrieve_offloaded_content", {"reference": asked}))
        second, _ = agent_of([search], turn, say(), middleware=[OffloadMiddleware(offloader)])
        (answer,) = await run(second, mode, thread("b"))
        assert answer.status == "error"
        texts.append(text_of(answer).replace(asked, "R"))

    assert texts[0] == texts[1]
    assert "not found" in texts[0]


@RUNS
async def test_a_model_cannot_choose_its_scope(mode: str) -> None:
    offloader = make_offloader()
    reference = str(offloader.offload([coatcheck.TextBlock(LONG)], tool_name="search", scope="a").references[0])
    args = {"reference": reference, "scope": "a", "identity": "a", "config": thread("a"), "runtime": thread("a")}
    agent, _ = agent_of(
        [search], call(("retrieve_offloaded_content", args)), say(), middleware=[OffloadMiddleware(offloader)]
    )

    (answer,) = await run(agent, mode, thread("b"))

    assert answer.status == "error"
    assert "quick brown fox" not in text_of(answer)


@RUNS
async def test_the_argument_takes_precedence_over_the_thread(mode: str) -> None:
    offloader = make_offloader()
    agent, _ = asking_and_reading(offloader, scope="tenant-7")

    _, answer = await run(agent, mode, thread("a"))

    assert "row 7: the quick" in text_of(answer)
    assert offloader.delete_scope("tenant-7") >= 1


@dataclass
class Context:
    tenant: str


@RUNS
async def test_a_scope_callable_gets_the_runtime_for_results_and_for_reading(mode: str) -> None:
    offloader = make_offloader()
    middleware = OffloadMiddleware(offloader, scope=lambda runtime: runtime.context.tenant)
    turns = (call(("search", {"query": "q"})), read(line_range="7"), say())
    agent, _ = agent_of([search], *turns, middleware=[middleware], context_schema=Context)

    placeholder, own = await run(agent, mode, thread("a"), context=Context("tenant-7"))
    turn = call(("retrieve_offloaded_content", {"reference": reference_in([placeholder])}))
    agent, _ = agent_of([search], turn, say(), middleware=[middleware], context_schema=Context)
    (other,) = await run(agent, mode, thread("a"), context=Context("tenant-8"))

    assert "row 7: the quick" in text_of(own)
    assert other.status == "error"
    assert offloader.delete_scope("tenant-7") >= 1


@RUNS
async def test_a_scope_callable_that_returns_none_leaves_the_scope_to_the_thread(mode: str) -> None:
    offloader = make_offloader()
    agent, _ = asking_and_reading(offloader, scope=lambda runtime: None)

    _, answer = await run(agent, mode, thread("a"))

    assert "row 7: the quick" in text_of(answer)
    assert offloader.delete_scope("a") >= 1


@RUNS
async def test_the_ambient_scope_takes_precedence_over_the_thread(mode: str) -> None:
    offloader = make_offloader()
    agent, _ = asking_and_reading(offloader)

    with coatcheck.scope("tenant-7"):
        _, answer = await run(agent, mode, thread("a"))

    assert "row 7: the quick" in text_of(answer)
    assert offloader.delete_scope("tenant-7") >= 1


@RUNS
async def test_the_argument_takes_precedence_over_the_ambient_scope_when_reading_too(mode: str) -> None:
    offloader = make_offloader()
    agent, _ = asking_and_reading(offloader, scope="tenant-7")

    with coatcheck.scope("another"):
        _, answer = await run(agent, mode, thread("a"))

    assert "row 7: the quick" in text_of(answer)
    assert offloader.delete_scope("tenant-7") >= 1


@RUNS
async def test_a_required_scope_that_is_missing_leaves_the_raw_result(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent, _ = agent_of(
        [search], call(("search", {"query": "q"})), say(), middleware=[OffloadMiddleware(require_scope=True)]
    )

    (message,) = await run(agent, mode)

    assert text_of(message) == LONG
    assert "require_scope" in caplog.text


@RUNS
async def test_a_required_scope_is_met_by_the_thread(mode: str) -> None:
    agent, _ = asking_and_reading(make_offloader(require_scope=True))

    placeholder, answer = await run(agent, mode, thread("a"))

    assert text_of(placeholder).startswith(OPENING)
    assert "row 7: the quick" in text_of(answer)


@RUNS
async def test_one_agent_for_many_threads_keeps_them_apart(mode: str) -> None:
    offloader = make_offloader()
    references = []
    for name in ("a", "b"):
        agent, _ = agent_of(
            [search],
            call(("search", {"query": "q"})),
            say(),
            middleware=[OffloadMiddleware(offloader)],
            checkpointer=InMemorySaver(),
        )
        references.append(reference_in(await run(agent, mode, thread(name))))

    assert references[0] != references[1]
    with pytest.raises(coatcheck.ReferenceNotFound):
        offloader.load(references[0], scope="b")


@RUNS
async def test_a_run_without_a_scope_logs_a_warning_and_a_thread_logs_none(
    mode: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scopes, "_unwarned", [True])

    await run(asking_and_reading(make_offloader())[0], mode, thread("a"))
    quiet = list(caplog.messages)
    for _ in range(2):
        await run(asking_and_reading(make_offloader())[0], mode)

    assert quiet == []
    assert [message.count("thread_id") for message in caplog.messages] == [1]
