"""Who asked for a result: what code asked for stays whole, and the model's own calls are offloaded as usual.

The providers' real clients make the messages from the answers of a server on loopback, because each client keeps the
mark of a caller in a place of its own.
"""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from coatcheck import InMemoryStorage
from coatcheck_langchain import (
    OffloadMiddleware,
    offload_tool,
    offload_tool_calls,
    offload_tool_node,
    offloaded_references,
    retrieval_tool,
)
from tests.adapters.langchain.samples import LONG, OPENING, make_offloader, text_of
from tests.adapters.langgraph.agents import agent_of, answers, call, question, say, thread, tool_node
from tests.serving import CLIENT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.language_models import BaseChatModel
    from pytest_httpserver import HTTPServer
    from werkzeug import Request

RUNS = pytest.mark.parametrize("mode", ["sync", "async"])
HUGE = LONG * 4
"""Above ``max_inline_tokens``."""


@tool
def search(query: str) -> str:
    """Search for rows."""
    return HUGE


def from_anthropic(caller: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return two answers from Anthropic: a call, made by code in its container if ``caller`` says so, and then text."""
    made = {} if caller is None else {"caller": caller}
    message = {"type": "message", "role": "assistant", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}
    asked = {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"query": "q"}, **made}
    return [
        {**message, "id": "msg_1", "stop_reason": "tool_use", "stop_sequence": None, "content": [asked]},
        {
            **message,
            "id": "msg_2",
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "content": [{"type": "text", "text": "done"}],
        },
    ]


def from_openai(caller: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the same two answers from OpenAI."""
    made = {} if caller is None else {"caller": caller}
    response = {
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "m",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
    }
    asked = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "search", "status": "completed"}
    text = {"type": "output_text", "text": "done", "annotations": []}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}
    return [
        {**response, "id": "resp_1", "output": [{**asked, "arguments": '{"query": "q"}', **made}]},
        {**response, "id": "resp_2", "output": [said]},
    ]


def anthropic(url: str, *, version: str | None) -> BaseChatModel:
    made: Any = ChatAnthropic  # the types of its arguments are pydantic's
    model: BaseChatModel = made(
        model="m", base_url=url, api_key="k", max_retries=0, timeout=CLIENT_SECONDS, output_version=version
    )
    return model


def openai(url: str, *, version: str | None) -> BaseChatModel:
    made: Any = ChatOpenAI  # the types of its arguments are pydantic's
    model: BaseChatModel = made(
        model="m",
        base_url=url,
        api_key="k",
        max_retries=0,
        timeout=CLIENT_SECONDS,
        use_responses_api=True,
        output_version=version,
    )
    return model


PROVIDERS = {
    "anthropic": (anthropic, "/v1/messages", from_anthropic),
    "openai": (openai, "/responses", from_openai),
}


async def sent_after_the_call(
    provider: str, caller: dict[str, Any] | None, *, mode: str, server: HTTPServer, version: str | None = None
) -> str:
    """Run an agent with a provider's real client; return its second request, which holds the result."""
    model, path, answered = PROVIDERS[provider]
    requests: list[str] = []
    script = answered(caller)

    def answer(request: Request) -> Any:
        from werkzeug import Response  # noqa: PLC0415 - the server brings it

        requests.append(request.get_data(as_text=True))
        return Response(json.dumps(script[len(requests) - 1]), content_type="application/json")

    server.expect_request(path).respond_with_handler(answer)
    agent: Any = create_agent(
        model(server.url_for("").rstrip("/"), version=version), [search], middleware=[OffloadMiddleware()]
    )
    await agent.ainvoke(question()) if mode == "async" else agent.invoke(question())
    return requests[1]


@RUNS
@pytest.mark.parametrize(
    ("provider", "caller"),
    [
        ("anthropic", {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}),
        ("anthropic", {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}),
        ("openai", {"type": "program", "caller_id": "prog_1"}),
    ],
    ids=["anthropic", "anthropic, another version", "openai"],
)
async def test_a_result_that_code_asked_for_stays_whole_above_every_limit(
    provider: str, caller: dict[str, Any], mode: str, httpserver: HTTPServer
) -> None:
    sent = await sent_after_the_call(provider, caller, mode=mode, server=httpserver)

    assert json.dumps(HUGE, ensure_ascii=False)[1:-1] in sent


@RUNS
@pytest.mark.parametrize(
    ("provider", "caller"),
    [("anthropic", None), ("anthropic", {"type": "direct"}), ("openai", None), ("openai", {"type": "direct"})],
    ids=str,
)
async def test_a_result_that_the_model_itself_asked_for_is_offloaded(
    provider: str, caller: dict[str, Any] | None, mode: str, httpserver: HTTPServer
) -> None:
    sent = await sent_after_the_call(provider, caller, mode=mode, server=httpserver)

    assert OPENING in sent
    assert len(sent) < 20_000


async def test_a_result_that_code_asked_for_stays_with_standard_content_blocks(httpserver: HTTPServer) -> None:
    caller = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}

    sent = await sent_after_the_call("anthropic", caller, mode="sync", server=httpserver, version="v1")

    assert OPENING not in sent


def by_code(*, of: int) -> AIMessage:
    """Return a turn with two calls of one tool. Code made the call number ``of``."""
    made = {"caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}}
    blocks: list[Any] = [
        {"type": "tool_use", "id": f"call-{place}", "name": "search", "input": {}, **(made if place == of else {})}
        for place in (1, 2)
    ]
    return AIMessage(blocks, tool_calls=call(("search", {"query": "a"}), ("search", {"query": "b"})).tool_calls)


def around_node(tools: list[BaseTool]) -> Any:
    offloader = make_offloader()
    return offload_tool_node(tool_node([*tools, retrieval_tool(offloader)]), offloader)


def inside_node(tools: list[BaseTool]) -> Any:
    offloader = make_offloader()
    return tool_node([*tools, retrieval_tool(offloader)], **offload_tool_calls(offloader))


@pytest.mark.parametrize("way", [around_node, inside_node])
@pytest.mark.parametrize("place", [1, 2])
def test_of_two_calls_in_a_step_only_the_result_that_code_asked_for_stays(way: Callable[..., Any], place: int) -> None:
    graph = StateGraph(MessagesState).add_node("tools", way([search])).add_edge(START, "tools").compile()

    messages = answers(graph.invoke({"messages": [by_code(of=place)]})["messages"])

    stayed = {message.tool_call_id for message in messages if message.content == HUGE}
    assert stayed == {f"call-{place}"}
    assert len(messages) == 2


@RUNS
async def test_a_later_call_of_the_model_is_not_taken_for_one_by_code(mode: str) -> None:
    agent, _ = agent_of([search], by_code(of=1), call(("search", {"query": "c"}), prefix="later"), say())

    result = await agent.ainvoke(question()) if mode == "async" else agent.invoke(question())

    assert [bool(offloaded_references(message)) for message in answers(result["messages"])] == [False, True, True]


@pytest.mark.parametrize(
    ("allowed", "stays"),
    [
        (["programmatic"], True),
        (["code_execution_20250825"], True),
        (["direct", "programmatic"], False),
        (["direct"], False),
        ([], False),
        ("programmatic", False),
        (None, False),
    ],
    ids=str,
)
def test_a_tool_that_only_code_may_call_keeps_its_results(allowed: Any, stays: bool) -> None:
    marked = search.model_copy(update={"extras": {"allowed_callers": allowed}})
    agent, _ = agent_of([marked], call(("search", {"query": "q"})), say())

    (message,) = answers(agent.invoke(question())["messages"])
    wrapped = offload_tool(marked, InMemoryStorage()).invoke({"query": "q"})

    assert (message.content == HUGE) is stays
    assert (wrapped == HUGE) is stays


# Results that a tool or a host asks to keep.


def answering(text: str) -> BaseTool:
    """Return a tool that marks its own result to be kept if it is told to."""

    @tool
    def fetch(keep: bool, size: int) -> Any:
        """Fetch rows."""
        kwargs = {"coatcheck": "keep"} if keep else {}
        return ToolMessage(text * size, tool_call_id="call-1", name="fetch", additional_kwargs=kwargs)

    return fetch


@RUNS
@pytest.mark.parametrize("keep", [True, False])
async def test_a_tool_keeps_the_result_of_one_call_by_a_mark_in_its_message(mode: str, keep: bool) -> None:
    agent, _ = agent_of([answering(LONG)], call(("fetch", {"keep": keep, "size": 1})), say())

    result = await agent.ainvoke(question()) if mode == "async" else agent.invoke(question())

    (message,) = answers(result["messages"])
    assert (message.content == LONG) is keep


def test_a_result_that_a_tool_keeps_is_offloaded_above_max_inline_tokens() -> None:
    agent, _ = agent_of([answering(LONG)], call(("fetch", {"keep": True, "size": 4})), say())

    (message,) = answers(agent.invoke(question())["messages"])

    assert offloaded_references(message)
    assert text_of(message).startswith(OPENING)


@pytest.mark.parametrize("mark", [{}, {"references": ["fetch-0123456789abcdef-0123"]}], ids=["empty", "full"])
@pytest.mark.parametrize("size", [1, 4])
def test_a_message_with_our_mark_stays_only_up_to_max_inline_tokens(mark: dict[str, Any], size: int) -> None:
    @tool
    def fetch() -> Any:
        """Add to the answer of a sub-agent, which was offloaded."""
        return ToolMessage(LONG * size, tool_call_id="call-1", name="fetch", additional_kwargs={"coatcheck": mark})

    agent, _ = agent_of([fetch], call(("fetch", {})), say())

    (message,) = answers(agent.invoke(question())["messages"])

    assert (message.content == LONG) is (size == 1)
    assert text_of(message).startswith(OPENING) is (size == 4)


@RUNS
async def test_a_run_keeps_its_results_by_its_metadata_and_the_next_run_does_not(mode: str) -> None:
    @tool
    def fetch() -> str:
        """Fetch rows."""
        return LONG

    agent, _ = agent_of(
        [fetch], call(("fetch", {})), say(), call(("fetch", {}), prefix="next"), say(), checkpointer=InMemorySaver()
    )

    for config in ({**thread("t"), "metadata": {"coatcheck": "keep"}}, thread("t")):
        result = await agent.ainvoke(question(), config) if mode == "async" else agent.invoke(question(), config)

    assert [message.content == LONG for message in answers(result["messages"])] == [True, False]
