"""What LangChain's own middleware for a full context window does to our placeholders."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

import pytest
from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware, SummarizationMiddleware
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from coatcheck import InMemoryStorage, InvalidRequest, keep_references
from coatcheck_langchain import ClearToolUsesEdit as OurClearToolUsesEdit
from coatcheck_langchain import OffloadMiddleware, offload_tool, offloaded_references
from tests.adapters.langgraph.agents import (
    ScriptedModel,
    agent_of,
    answers,
    call,
    model_of,
    question,
    read,
    reference_in,
    say,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.messages import AnyMessage, BaseMessage

LINES = "".join(f"line {number} of 5000: the quick brown fox\n" for number in range(5_000))


def search(query: str) -> str:
    """Search."""
    return LINES + query


CALL = call(("search", {"query": "q"}))


def seen_with(edit: ClearToolUsesEdit) -> tuple[list[BaseMessage], list[BaseMessage]]:
    """Return what the model saw after a search, and what the conversation holds."""
    agent, model = agent_of(
        [search], CALL, say(), middleware=[OffloadMiddleware(), ContextEditingMiddleware(edits=[edit])]
    )
    messages = agent.invoke(question())["messages"]
    return model.seen[-1], messages


def test_clearing_tool_uses_hides_the_reference_from_the_model_and_leaves_it_in_the_conversation() -> None:
    seen, held = seen_with(ClearToolUsesEdit(trigger=1, keep=0))

    assert answers(seen)[0].content == "[cleared]"
    assert reference_in(held) in answers(held)[0].text
    assert offloaded_references(answers(seen)[0]) == offloaded_references(answers(held)[0]), "a host still knows it"


def test_an_excluded_tool_keeps_its_placeholder() -> None:
    seen, held = seen_with(ClearToolUsesEdit(trigger=1, keep=0, exclude_tools=("search",)))

    assert answers(seen)[0].content == answers(held)[0].content
    assert reference_in(seen) in answers(seen)[0].text


def test_our_edit_clears_as_langchains_does_and_keeps_the_reference() -> None:
    seen, held = seen_with(OurClearToolUsesEdit(trigger=1, keep=0, placeholder="[gone]"))

    assert answers(seen)[0].text.startswith("[gone]\n")
    assert reference_in(held) in answers(seen)[0].text
    assert len(answers(seen)[0].text) < 200
    assert answers(seen)[0].response_metadata["context_editing"]["cleared"]


def test_langchain_alone_clears_a_result_that_has_no_reference() -> None:
    def look() -> str:
        """Look."""
        return "small"

    edits = [OurClearToolUsesEdit(trigger=1, keep=0)]
    middleware = [OffloadMiddleware(), ContextEditingMiddleware(edits=edits)]
    agent, model = agent_of([look], call(("look", {})), say(), middleware=middleware)

    agent.invoke(question())

    assert answers(model.seen[-1])[0].content == "[cleared]"


def test_keep_references_names_what_our_edit_cleared_without_the_middleware() -> None:
    alone = offload_tool(tool(search), InMemoryStorage())
    edits = ContextEditingMiddleware(edits=[OurClearToolUsesEdit(trigger=1, keep=0)])
    agent, model = agent_of([alone], CALL, say(), middleware=[edits])

    held = agent.invoke(question())["messages"]

    assert answers(model.seen[-1])[0].additional_kwargs == {}
    assert answers(model.seen[-1])[0].text.startswith("[cleared]\n")
    assert keep_references(model.seen[-1]) == keep_references(held) != ""


def test_a_model_reads_back_a_result_that_our_edit_cleared() -> None:
    middleware = [
        OffloadMiddleware(),
        ContextEditingMiddleware(edits=[OurClearToolUsesEdit(trigger=1, keep=0, exclude_tools=("read",))]),
    ]

    def by_what_is_left(messages: list[BaseMessage]) -> AIMessage:
        found = re.search(r"search-[0-9a-f]{16}-[0-9a-f]{4}", answers(messages)[0].text)
        assert found is not None
        return call(("retrieve_offloaded_content", {"reference": found[0], "pattern": "line 2500 "}), prefix="read")

    agent, _ = agent_of([search], CALL, by_what_is_left, say(), middleware=middleware)

    assert "line 2500 of 5000" in answers(agent.invoke(question())["messages"])[-1].text


def summarized(summary: Callable[[list[BaseMessage]], AIMessage]) -> tuple[list[BaseMessage], ScriptedModel, str]:
    """Ask twice, with the first question summarised; return the conversation, the summarizer and the reference."""
    summarizer = model_of(summary)
    offloading = OffloadMiddleware()
    agent, _ = agent_of([search], CALL, say(), middleware=[offloading])
    first = agent.invoke(question())["messages"]
    again, _ = agent_of(
        [search],
        read_what_the_summary_names,
        say(),
        middleware=[
            offloading,
            SummarizationMiddleware(summarizer, trigger=("messages", len(first) + 1), keep=("messages", 1)),
        ],
    )
    messages = again.invoke({"messages": [*first, HumanMessage("and then?")]})["messages"]
    return messages, summarizer, reference_in(first)


def read_what_the_summary_names(messages: list[BaseMessage]) -> AIMessage:
    """Read back by a reference that the summary names, as a model would; if it names none, say so."""
    found = re.search(r"search-[0-9a-f]{16}-[0-9a-f]{4}", messages[0].text)
    if found is None:
        return say("nothing to read")
    return call(("retrieve_offloaded_content", {"reference": found[0], "pattern": "line 2500 "}), prefix="read")


def test_a_summary_is_written_from_the_whole_notice_and_keeps_the_reference_if_it_repeats_it() -> None:
    messages, summarizer, reference = summarized(lambda asked: say(re.findall(r"search-\S+", asked[0].text)[0]))

    assert reference in summarizer.seen[0][0].text
    assert [each.type for each in messages] == ["human", "human", "ai", "tool", "ai"], "what came before is gone"
    assert "line 2500 of 5000" in answers(messages)[0].text


def test_a_summary_that_does_not_repeat_the_reference_loses_it() -> None:
    messages, _, reference = summarized(lambda _: say("The user searched."))

    assert reference not in "".join(message.text for message in messages)
    assert not answers(messages)


@pytest.mark.skipif(
    "summarizer" not in inspect.signature(SummarizationMiddleware).parameters, reason="newer than the oldest LangChain"
)
def test_a_summarizer_that_adds_the_line_of_keep_references_loses_no_reference() -> None:
    def summarize(messages: list[AnyMessage]) -> str:
        return f"The user searched. {keep_references(messages)}"

    offloading = OffloadMiddleware()
    agent, _ = agent_of([search], CALL, say(), middleware=[offloading])
    first = agent.invoke(question())["messages"]
    summing = SummarizationMiddleware(
        model_of(), summarizer=summarize, trigger=("messages", len(first) + 1), keep=("messages", 1)
    )
    again, _ = agent_of([search], read_what_the_summary_names, say(), middleware=[offloading, summing])
    messages = again.invoke({"messages": [*first, HumanMessage("and then?")]})["messages"]

    assert "line 2500 of 5000" in answers(messages)[0].text
    assert keep_references(messages) == keep_references(first), "the next summary keeps it as well"


def test_a_message_that_a_summary_keeps_whole_keeps_its_reference() -> None:
    summarizer = model_of(say("The user said hello."))
    middleware = [
        OffloadMiddleware(),
        SummarizationMiddleware(summarizer, trigger=("messages", 3), keep=("messages", 1)),
    ]
    agent, _ = agent_of([search], CALL, read(pattern="line 2500 "), say(), middleware=middleware)

    messages = agent.invoke(question())["messages"]

    assert summarizer.seen, "there was nothing to summarise"
    assert "line 2500 of 5000" in answers(messages)[-1].text


def test_one_message_instead_of_several_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"^messages must be a list of messages, not HumanMessage"):
        keep_references(HumanMessage("read search-0123456789abcdef-0123"))
