"""``offer_tool="when needed"`` in real agents: the model gets the retrieval tool with the first offloaded result."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    SummarizationMiddleware,
)
from langchain_core.messages import RemoveMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES

from coatcheck import RETRIEVAL_TOOL, FileStorage, InMemoryStorage, InvalidRequest, Offloader
from coatcheck.adapting import OFFERED
from coatcheck_langchain import OffloadMiddleware, offload_tool, retrieval_tool
from tests.adapters.langchain.samples import LONG, SHORT, text_of
from tests.adapters.langgraph.agents import (
    ScriptedModel,
    agent_of,
    answers,
    call,
    model_of,
    question,
    read,
    reference_in,
    run,
    say,
    thread,
)

if TYPE_CHECKING:
    from pathlib import Path


RUNS = pytest.mark.parametrize("mode", ["sync", "async"])
MARKER = "row 1500: the quick brown fox"
"""In the middle of the result, so in no preview."""

SMALL, AGAIN = (call(("tiny", {}), prefix=prefix) for prefix in ("small", "again"))
LARGE = call(("search", {}), prefix="large")


@tool
def search() -> str:
    """Search for rows."""
    return LONG


@tool
def tiny() -> str:
    """Give a few words."""
    return SHORT


def late(storage: Any = None, **options: Any) -> OffloadMiddleware:
    return OffloadMiddleware(storage, offer_tool="when needed", **options)


def late_agent(*script: Any, middleware: Any = None, **more: Any) -> tuple[Any, ScriptedModel]:
    return agent_of([search, tiny], *script, middleware=[late()] if middleware is None else middleware, **more)


def offers(model: ScriptedModel) -> list[bool]:
    """Return, for each call of the model, whether it was offered the retrieval tool. Check that the rest always was."""
    assert all({"search", "tiny"} <= {*names} for names in model.offered)
    return [RETRIEVAL_TOOL in names for names in model.offered]


@RUNS
async def test_the_tool_is_offered_in_the_first_call_after_the_first_offload(mode: str) -> None:
    agent, model = late_agent(SMALL, LARGE, read(pattern="row 1500:"), AGAIN, say())

    messages = await run(agent, mode)

    assert offers(model) == [False, False, True, True, True]
    assert MARKER in text_of(answers(messages)[2])


@RUNS
async def test_by_default_the_tool_is_always_offered_and_no_state_is_kept(mode: str) -> None:
    agent, model = late_agent(SMALL, LARGE, say(), middleware=[OffloadMiddleware()], checkpointer=InMemorySaver())

    await run(agent, mode, config=thread("a"))

    assert offers(model) == [True, True, True]
    assert OFFERED not in agent.get_state(thread("a")).values
    assert OffloadMiddleware.wrap_model_call is AgentMiddleware.wrap_model_call, "a span in each trace for nothing"


def test_without_an_offload_the_tool_is_never_offered() -> None:
    agent, model = late_agent(SMALL, AGAIN, say())

    agent.invoke(question())

    assert offers(model) == [False, False, False]


@pytest.mark.parametrize("is_emptied", [False, True], ids=["whole", "emptied"])
def test_a_resumed_thread_is_offered_the_tool_at_once(is_emptied: bool, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "checkpoints", check_same_thread=False)) as connection:
        first, _ = late_agent(
            LARGE, say(), middleware=[late(FileStorage(tmp_path))], checkpointer=SqliteSaver(connection)
        )
        reference = reference_in(first.invoke(question(), thread("a"))["messages"])
        if is_emptied:
            first.update_state(thread("a"), {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]})

        reads = call((RETRIEVAL_TOOL, {"reference": reference, "pattern": "row 1500:"}), prefix="read")
        script = (reads, say())
        second, model = late_agent(
            *script, middleware=[late(FileStorage(tmp_path))], checkpointer=SqliteSaver(connection)
        )
        messages = second.invoke(question(), thread("a"))["messages"]

    assert offers(model) == [True, True]
    assert [text_of(message) for message in answers(model.seen[0])] == ([] if is_emptied else [text_of(messages[2])])
    assert MARKER in text_of(answers(messages)[-1])


def test_another_thread_of_the_same_agent_is_not_offered_the_tool() -> None:
    agent, model = late_agent(LARGE, say(), say(), checkpointer=InMemorySaver())

    agent.invoke(question(), thread("a"))
    agent.invoke(question(), thread("b"))

    assert offers(model) == [False, True, False]


@RUNS
async def test_the_tool_is_still_offered_when_a_summary_replaces_the_placeholder(mode: str) -> None:
    summary = SummarizationMiddleware(model_of(say("It went well.")), trigger=("messages", 7), keep=("messages", 1))
    agent, model = late_agent(LARGE, SMALL, AGAIN, say(), middleware=[late(), summary])

    await run(agent, mode)

    assert offers(model) == [False, True, True, True]
    assert not [message for message in answers(model.seen[-1]) if message.name == "search"], "the summary did nothing"


def test_the_tool_is_offered_even_if_the_placeholder_is_dropped_from_the_same_request() -> None:
    class Dropping(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(messages=request.messages[:1]))

    agent, model = late_agent(LARGE, say(), middleware=[Dropping(), late()])

    agent.invoke(question())

    assert len(model.seen[-1]) == 1
    assert offers(model) == [False, True]


def test_the_tool_is_offered_for_placeholders_of_another_agent() -> None:
    first, _ = late_agent(LARGE, say())
    messages = first.invoke(question())["messages"]
    second, model = late_agent(say())

    second.invoke({"messages": [*messages, *question()["messages"]]})

    assert offers(model) == [True]


def test_an_offload_by_a_wrapped_tool_counts_although_its_message_has_no_mark() -> None:
    offloader = Offloader(InMemoryStorage())
    agent, model = agent_of([offload_tool(search, offloader), tiny], LARGE, say(), middleware=[late(offloader)])

    (placeholder, *_) = answers(agent.invoke(question())["messages"])

    assert not placeholder.additional_kwargs
    assert offers(model) == [False, True]


def test_a_retrieval_tool_among_the_agents_own_tools_is_hidden_as_well() -> None:
    offloader = Offloader(InMemoryStorage())
    tools = [search, tiny, retrieval_tool(offloader), retrieval_tool(InMemoryStorage(), name="read_others")]
    middleware = late(offloader, include_retrieval_tool=False)
    agent, model = agent_of(tools, LARGE, say(), middleware=[middleware])

    agent.invoke(question())

    assert offers(model) == [False, True]
    assert "read_others" in model.offered[0], "it reads what another offloader stored"


def test_two_middlewares_may_set_the_flag_in_one_step() -> None:
    offloader = Offloader(InMemoryStorage())
    both = [late(offloader), late(offloader, name="second", include_retrieval_tool=False)]
    agent, model = late_agent(LARGE, read(pattern="row 1500:"), say(), middleware=both)

    messages = agent.invoke(question())["messages"]

    assert offers(model) == [False, True, True]
    assert MARKER in text_of(answers(messages)[-1])


def test_a_model_that_calls_the_hidden_tool_gets_an_answer() -> None:
    offloader = Offloader(InMemoryStorage())
    first, _ = late_agent(LARGE, say(), middleware=[late(offloader, scope="s")])
    reference = reference_in(first.invoke(question())["messages"])
    reads = call((RETRIEVAL_TOOL, {"reference": reference, "pattern": "row 1500:"}))
    second, model = late_agent(reads, say(), middleware=[late(offloader, scope="s")])

    messages = second.invoke(question())["messages"]

    assert not offers(model)[0]
    assert MARKER in text_of(answers(messages)[0])


def test_the_users_own_middleware_keeps_its_name_and_its_state() -> None:
    class Counting(AgentState[Any]):
        counted: int

    class Mine(OffloadMiddleware):
        state_schema = Counting

        def after_model(self, state: Any, runtime: Any) -> dict[str, Any]:
            return {"counted": state.get("counted", 0) + 1}

    mine = Mine(offer_tool="when needed")
    agent, model = late_agent(LARGE, say(), middleware=[mine])

    result = agent.invoke(question())

    assert isinstance(mine, Mine)
    assert mine.name == "Mine"
    assert result["counted"] == 2
    assert offers(model) == [False, True]


@pytest.mark.parametrize("hook", ["wrap_model_call", "awrap_model_call"])
def test_a_middleware_with_its_own_hook_around_the_model_is_refused(hook: str) -> None:
    mine: Any = type("Mine", (OffloadMiddleware,), {hook: lambda self, request, handler: handler(request)})

    with pytest.raises(InvalidRequest, match="which Mine has too: move them to a separate middleware"):
        mine(offer_tool="when needed")
    mine()


def test_the_flag_is_neither_input_nor_output() -> None:
    agent, model = late_agent(SMALL, LARGE, say(), checkpointer=InMemorySaver())

    result = agent.invoke({**question(), OFFERED: True}, thread("a"))

    assert offers(model) == [False, False, True]
    assert OFFERED not in result
    assert agent.get_state(thread("a")).values[OFFERED] is True


def test_a_message_that_cannot_be_read_never_ends_the_agent(caplog: pytest.LogCaptureFixture) -> None:
    class Unreadable:
        @property
        def additional_kwargs(self) -> Any:
            raise RuntimeError

    class Adding(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(messages=[*request.messages, Unreadable()]))

    class Removing(AgentMiddleware[Any, Any, Any]):
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            return handler(request.override(messages=request.messages[:-1]))

    agent, model = late_agent(say(), middleware=[Adding(), late(), Removing()])

    agent.invoke(question())

    assert offers(model) == [True]
    assert "so the retrieval tool is offered" in caplog.text


@pytest.mark.parametrize("wrong", ["when_needed", "never", None, True, ["always"]])
def test_a_wrong_value_is_refused_with_both_valid_ones(wrong: Any) -> None:
    with pytest.raises(InvalidRequest, match="offer_tool must be 'always' or 'when needed', not"):
        OffloadMiddleware(offer_tool=wrong)
