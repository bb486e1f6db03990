"""If rewriting a result fails, the hard limit still holds for each of its messages."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import tool
from langgraph.types import Command

from coatcheck import Offloader
from coatcheck_langchain import OffloadMiddleware, offload_tool, offload_tool_node, offloaded_references, retrieval_tool
from coatcheck_langchain import hook as module
from tests.adapters.failing import ERRORS, HUGE, LARGE, FailingOffloader, FullStorage, is_cut
from tests.adapters.langgraph.agents import agent_of, answers, call, read, say
from tests.adapters.odd import ENCODED, LIMIT, MAX_TOKENS, odd_forms

RUNS = pytest.mark.parametrize("mode", ["sync", "async"])


@tool
def search(kind: str) -> Any:
    """Search."""
    return {"large": LARGE, "huge": HUGE, "parts": [{"type": "text", "text": HUGE}, {"type": "image", "url": "u"}]}[
        kind
    ]


async def run(agent: Any, mode: str, config: Any = None) -> list[BaseMessage]:
    given = {"messages": [HumanMessage("go")]}
    result = agent.invoke(given, config) if mode == "sync" else await agent.ainvoke(given, config)
    messages: list[BaseMessage] = result["messages"]
    return messages


def text_of(message: BaseMessage) -> str:
    assert isinstance(message.content, str)
    return message.content


@RUNS
@ERRORS
async def test_a_result_above_the_hard_limit_is_stored_raw_and_can_be_read_back(
    mode: str, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    offloader = FailingOffloader(error)
    agent, _ = agent_of(
        [search],
        call(("search", {"kind": "huge"}), ("search", {"kind": "large"})),
        read(offset=-10),
        say(),
        middleware=[OffloadMiddleware(offloader, scope="mine")],
    )

    messages = await run(agent, mode)

    huge, large, answer = answers(messages)
    assert text_of(large) == LARGE
    assert len(text_of(huge)) < 6_000
    assert offloader.load(offloaded_references(huge)[0], scope="mine").text == HUGE
    assert "huge  END\n" in text_of(answer)
    assert messages[-1].content == "done"
    assert sum("could not offload" in record.message for record in caplog.records) == 2


@RUNS
@ERRORS
async def test_a_huge_result_that_cannot_be_stored_is_cut(mode: str, error: Exception) -> None:
    offloader = FailingOffloader(error, storage=FullStorage())
    agent, _ = agent_of(
        [search], call(("search", {"kind": "huge"})), say(), middleware=[OffloadMiddleware(offloader, scope="mine")]
    )

    messages = await run(agent, mode)

    assert is_cut(text_of(answers(messages)[0]))


@RUNS
async def test_blocks_that_are_not_text_stay(mode: str) -> None:
    offloader = FailingOffloader(RuntimeError())
    agent, _ = agent_of([search], call(("search", {"kind": "parts"})), say(), middleware=[OffloadMiddleware(offloader)])

    messages = await run(agent, mode)

    content = answers(messages)[0].content
    assert isinstance(content, list)
    assert content[1] == {"type": "image", "url": "u"}
    assert len(str(content[0])) < 6_000


@RUNS
async def test_a_failed_conversion_does_not_bypass_the_limit(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(content: object) -> object:
        raise MemoryError

    monkeypatch.setattr(module, "blocks_of", broken)
    agent, _ = agent_of(
        [search], call(("search", {"kind": "huge"})), say(), middleware=[OffloadMiddleware(max_inline_tokens=5_000)]
    )

    messages = await run(agent, mode)

    assert offloaded_references(answers(messages)[0])


@RUNS
async def test_nothing_is_stored_if_the_scope_cannot_be_found(mode: str) -> None:
    def broken(runtime: object) -> str:
        raise LookupError

    offloader = Offloader(max_inline_tokens=5_000)
    agent, _ = agent_of(
        [search], call(("search", {"kind": "huge"})), say(), middleware=[OffloadMiddleware(offloader, scope=broken)]
    )

    messages = await run(agent, mode)

    assert is_cut(text_of(answers(messages)[0]))
    assert offloader.stats().offloaded == 0


@RUNS
async def test_the_thread_is_the_scope(mode: str) -> None:
    offloader = FailingOffloader(RuntimeError())
    agent, _ = agent_of([search], call(("search", {"kind": "huge"})), say(), middleware=[OffloadMiddleware(offloader)])

    messages = await run(agent, mode, {"configurable": {"thread_id": "t-1"}})

    assert offloader.load(offloaded_references(answers(messages)[0])[0], scope="t-1").text == HUGE


@RUNS
async def test_a_final_answer_stays(mode: str) -> None:
    @tool(return_direct=True)
    def conclude() -> str:
        """Conclude."""
        return HUGE

    offloader = FailingOffloader(RuntimeError())
    agent, _ = agent_of([conclude], call(("conclude", {})), say(), middleware=[OffloadMiddleware(offloader)])

    messages = await run(agent, mode)

    assert text_of(answers(messages)[0]) == HUGE


@RUNS
async def test_only_the_huge_tool_messages_in_a_command_are_cut(mode: str) -> None:
    @tool
    def several() -> Command[Any]:
        """Give several."""
        messages = [
            HumanMessage(HUGE),
            ToolMessage(LARGE, tool_call_id="other"),
            ToolMessage(HUGE, tool_call_id="call-1"),
        ]
        return Command(update={"messages": messages})

    offloader = FailingOffloader(RuntimeError())
    agent, _ = agent_of([several], call(("several", {})), say(), middleware=[OffloadMiddleware(offloader)])

    messages = await run(agent, mode)

    assert HumanMessage(HUGE).content in [message.content for message in messages if isinstance(message, HumanMessage)]
    assert [len(text_of(message)) < 6_000 for message in answers(messages)] == [False, True]


async def test_wrapped_nodes_and_single_tools_keep_to_the_limit_too() -> None:
    offloader = FailingOffloader(MemoryError())
    result = [ToolMessage(LARGE, tool_call_id="1"), ToolMessage(HUGE, tool_call_id="2")]
    node = offload_tool_node(RunnableLambda(lambda _: result), offloader)
    asked = [AIMessage("", tool_calls=[{"name": "a", "args": {}, "id": "1"}, {"name": "b", "args": {}, "id": "2"}])]

    stepped = [node.invoke(asked), await node.ainvoke(asked)]
    single = offload_tool(search, offloader).invoke({"kind": "huge"})

    for messages in stepped:
        assert messages[0] is result[0]
        assert offloaded_references(messages[1])
    assert len(single) < 6_000
    reference = offloaded_references(stepped[0][1])[0]
    assert "\n END\n" in retrieval_tool(offloader).invoke({"reference": reference, "offset": -4})


@pytest.mark.parametrize(
    "shape",
    [
        {"type": "text", "text": "a"},
        {"type": "custom_tool_call_output", "output": "a"},
        {"type": "json", "json": {"a": 1}},
        {"type": "image", "base64": ENCODED, "mime_type": "image/png"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{ENCODED}"}},
        {"type": "document", "source": {"type": "base64", "data": ENCODED, "media_type": "text/plain"}},
        {"type": "input_audio", "input_audio": {"data": ENCODED, "format": "wav"}},
        {"type": "file", "file": {"file_data": f"data:text/plain;base64,{ENCODED}", "filename": "a"}},
    ],
    ids=repr,
)
def test_no_odd_part_raises_or_exceeds_the_limit(shape: object) -> None:
    # Fields next to the bytes of a medium are not measured.
    parts = [form for form in odd_forms(shape) if isinstance(form, dict) and ENCODED not in repr(form)]

    @tool
    def fetch(number: int) -> Any:
        """Fetch."""
        return ToolMessage([parts[number], {"type": "text", "text": "b"}], tool_call_id=f"call-{number + 1}")

    calls = [("fetch", {"number": number}) for number in range(len(parts))]
    middleware = OffloadMiddleware(Offloader(max_inline_tokens=MAX_TOKENS), scope="mine")
    agent, _ = agent_of([fetch], call(*calls), say(), middleware=[middleware])

    messages = answers(agent.invoke({"messages": [HumanMessage("go")]})["messages"])

    assert len(messages) == len(parts)
    assert max(len(json.dumps(message.content)) for message in messages) <= LIMIT
