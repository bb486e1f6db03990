"""One wrapped tool: nothing about it changes but its oversized results. Needs langchain-core alone."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import asyncio
import dataclasses
import functools
import threading
from typing import TYPE_CHECKING, Annotated, Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import (
    BaseTool,
    InjectedToolArg,
    InjectedToolCallId,
    StructuredTool,
    Tool,
    ToolException,
    tool,
)
from langchain_core.utils.function_calling import convert_to_openai_tool

import coatcheck
from coatcheck import InMemoryStorage, InvalidRequest, Offloader, ToolResult
from coatcheck_langchain import offload_tool, offloaded_references, retrieval_tool
from tests.adapters.langchain.samples import LONG, OPENING, PNG_TEXT, SHORT, make_offloader, text_of, tool_call

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@tool
def search(query: str, limit: int = 10) -> str:
    """Search for rows."""
    return LONG if query else SHORT


@tool
async def search_async(query: str) -> str:
    """Search for rows."""
    await asyncio.sleep(0)
    return LONG


def run(wrapped: BaseTool, config: RunnableConfig | None = None, **args: Any) -> ToolMessage:
    message = wrapped.invoke(tool_call(wrapped.name, args), config)
    assert isinstance(message, ToolMessage)
    return message


def reference_in(text: str) -> str:
    return text.partition("[Stored references:]\n  ")[2].partition(" ")[0]


def test_a_large_result_is_offloaded_and_can_be_read_back() -> None:
    offloader = make_offloader()

    message = run(offload_tool(search, offloader), query="q")

    text = text_of(message)
    assert text.startswith(OPENING)
    assert offloader.load(reference_in(text)).text == LONG


async def test_a_large_result_is_offloaded_async() -> None:
    wrapped = offload_tool(search_async, make_offloader())

    message = await wrapped.ainvoke(tool_call("search_async", {"query": "q"}))

    assert text_of(message).startswith(OPENING)


async def test_a_tool_with_only_a_sync_function_runs_async_on_a_thread() -> None:
    threads: list[str] = []

    @tool
    def where(query: str) -> str:
        """Say where this runs."""
        threads.append(threading.current_thread().name)
        return LONG

    message = await offload_tool(where, make_offloader()).ainvoke(tool_call("where", {"query": "q"}))

    assert text_of(message).startswith(OPENING)
    assert threads != [threading.current_thread().name]


def test_a_small_result_is_the_very_same_object() -> None:
    small = " ".join(str(number) for number in range(9))

    @tool
    def give() -> str:
        """Give a small text."""
        return small

    assert offload_tool(give, make_offloader()).invoke({}) is small


def test_the_users_own_tool_is_untouched() -> None:
    func = search.func  # type: ignore[attr-defined]
    before = search.model_dump()

    offload_tool(search, make_offloader())

    assert search.func is func  # type: ignore[attr-defined]
    assert search.model_dump() == before
    assert search.invoke({"query": "q"}) == LONG


def test_everything_about_the_tool_is_kept() -> None:
    def handled(error: ToolException) -> str:
        return f"handled: {error}"

    original = StructuredTool.from_function(
        search.func,  # type: ignore[attr-defined]
        name="finder",
        description="Find.",
        tags=["a"],
        metadata={"b": 1},
        handle_tool_error=handled,
        response_format="content",
    )

    wrapped = offload_tool(original, make_offloader())

    assert wrapped.model_dump(exclude={"func"}) == original.model_dump(exclude={"func"})
    assert type(wrapped) is type(original)
    assert convert_to_openai_tool(wrapped) == convert_to_openai_tool(original)
    assert wrapped.args_schema is original.args_schema


def test_the_artifact_passes_through() -> None:
    artifact = {"rows": object()}

    @tool(response_format="content_and_artifact")
    def fetch() -> tuple[str, Any]:
        """Fetch rows."""
        return LONG, artifact

    message = run(offload_tool(fetch, make_offloader()))

    assert text_of(message).startswith(OPENING)
    assert message.artifact is artifact


async def test_the_artifact_passes_through_async() -> None:
    artifact = {"rows": object()}

    @tool(response_format="content_and_artifact")
    async def fetch() -> tuple[Any, Any]:
        """Fetch rows."""
        return [{"type": "text", "text": LONG}], artifact

    message = await offload_tool(fetch, make_offloader()).ainvoke(tool_call("fetch"))

    assert text_of(message).startswith(OPENING)
    assert message.artifact is artifact


def test_a_result_that_is_not_a_pair_is_left_to_langchain_to_refuse() -> None:
    @tool(response_format="content_and_artifact")
    def wrong() -> Any:
        """Give something other than a pair."""
        return LONG

    with pytest.raises(ValueError, match="two-tuple"):
        run(offload_tool(wrong, make_offloader()))


class Custom:
    def __str__(self) -> str:
        return "custom " * 9_000


VALUES: dict[str, Any] = {
    "text": LONG,
    "mapping": {"rows": [{"id": number, "name": "Ada é"} for number in range(2_000)]},
    "list": list(range(20_000)),
    "bytes": b"\x89PNG" * 20_000,
    "object": Custom(),
    "blocks": [{"type": "text", "text": LONG}],
    "block of an unknown type": [{"type": "audio", "base64": "A" * 60_000, "mime_type": "audio/wav"}],
    "set": {"a" * 40_000, "b" * 40_000},
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
def test_what_is_stored_is_what_would_have_entered_the_conversation(value: Any) -> None:
    @tool
    def give() -> Any:
        """Give it."""
        return value

    offloader = make_offloader()
    plain = text_of(run(give))

    text = text_of(run(offload_tool(give, offloader)))

    assert text.startswith(OPENING)
    assert offloader.load(reference_in(text)).text == plain


@pytest.mark.parametrize(
    "value", [None, {}, [], {"a": 1}, 7, b"x", "", [{"type": "text", "text": "x"}], ("a", "b"), Custom], ids=repr
)
def test_a_small_value_of_any_type_is_returned_as_it_is(value: Any) -> None:
    @tool
    def give() -> Any:
        """Give it."""
        return value

    assert offload_tool(give, make_offloader()).invoke({}) is value


def test_inline_media_are_offloaded_and_others_stay() -> None:
    url = {"type": "image", "url": "https://example.com/a.png"}

    @tool
    def picture() -> list[dict[str, Any]]:
        """Give pictures."""
        return [{"type": "image", "base64": PNG_TEXT, "mime_type": "image/png"}, url]

    message = run(offload_tool(picture, make_offloader(policies={"picture": coatcheck.Always()})))

    assert PNG_TEXT not in str(message.content)
    assert message.content[-1] == url


def test_a_message_that_the_function_returns_is_copied_not_changed() -> None:
    own = ToolMessage(LONG, tool_call_id="call-1", name="give", artifact={"a": 1})
    before = own.model_copy(deep=True)

    @tool
    def give() -> ToolMessage:
        """Give a message."""
        return own

    message = run(offload_tool(give, make_offloader()))

    assert own == before
    assert text_of(message).startswith(OPENING)
    assert message.artifact == own.artifact
    assert offloaded_references(message)


async def test_messages_in_a_list_are_rewritten_and_keep_their_places() -> None:
    @tool
    async def give() -> Any:
        """Give messages."""
        return [ToolMessage(SHORT, tool_call_id="call-0"), ToolMessage(LONG, tool_call_id="call-1", name="give")]

    wrapped: Any = offload_tool(give, make_offloader())
    first, second = await wrapped.coroutine()  # LangChain itself takes such lists from 1.4 on

    assert first.content == SHORT
    assert text_of(second).startswith(OPENING)


class Recorder(BaseCallbackHandler):
    def __init__(self) -> None:
        self.ended: list[Any] = []

    def on_tool_end(self, output: Any, **kwargs: Any) -> None:
        self.ended.append(output)


def test_callbacks_and_tracers_never_get_the_raw_result() -> None:
    recorder = Recorder()

    run(offload_tool(search, make_offloader()), {"callbacks": [recorder]}, query="q")

    (output,) = recorder.ended
    assert text_of(output).startswith(OPENING)


def test_exceptions_propagate() -> None:
    error = KeyError("their own")

    @tool
    def fail() -> str:
        """Fail."""
        raise error

    with pytest.raises(KeyError) as raised:
        run(offload_tool(fail, make_offloader()))

    assert raised.value is error


def test_errors_that_the_tool_handles_stay() -> None:
    @tool
    def fail() -> str:
        """Fail."""
        raise ToolException(LONG)

    handling = fail.model_copy(update={"handle_tool_error": True})
    message = run(offload_tool(handling, make_offloader()))

    assert message.status == "error"
    assert message.content == LONG


def test_a_final_answer_is_never_offloaded() -> None:
    @tool(return_direct=True)
    def final() -> str:
        """Answer the user."""
        return LONG

    assert offload_tool(final, make_offloader()) is final


def test_results_of_a_marked_tool_stay_up_to_the_hard_limit() -> None:
    marked = search.model_copy(update={"metadata": {"coatcheck": "keep"}})

    assert run(offload_tool(marked, make_offloader()), query="q").content == LONG
    cut = run(offload_tool(marked, make_offloader(max_result_tokens=600, max_inline_tokens=2_500)), query="q")
    assert text_of(cut).startswith(OPENING)


def test_the_retrieval_tool_is_returned_as_it_is() -> None:
    retrieval = retrieval_tool(make_offloader())

    assert offload_tool(retrieval, make_offloader()) is retrieval


def test_a_placeholder_that_comes_back_is_not_offloaded_again() -> None:
    offloader = make_offloader()
    placeholder = text_of(run(offload_tool(search, offloader), query="q"))

    @tool
    def repeat() -> str:
        """Repeat."""
        return placeholder

    strict = offload_tool(repeat, offloader)
    assert strict.invoke({}) is placeholder
    assert offload_tool(strict, offloader).invoke({}) is placeholder


def test_wrapping_twice_offloads_once() -> None:
    offloader = make_offloader()

    run(offload_tool(offload_tool(search, offloader), offloader), query="q")

    assert offloader.stats().offloaded == 1


class Own(BaseTool):
    name: str = "own"
    description: str = "A tool of its own class."

    def _run(self, query: str) -> str:
        return LONG


class Overriding(StructuredTool):
    def _run(self, *args: Any, **kwargs: Any) -> Any:
        return LONG


@pytest.mark.parametrize(
    "thing",
    [
        Own(),
        Overriding.from_function(lambda query: query, name="o", description="d"),
        lambda query: query,
        "search",
        None,
    ],
    ids=["BaseTool", "overriding _run", "function", "text", "None"],
)
def test_anything_else_is_refused_with_advice(thing: Any) -> None:
    with pytest.raises(InvalidRequest, match="offload_tool_node or OffloadMiddleware"):
        offload_tool(thing, make_offloader())


@pytest.mark.filterwarnings("ignore:This API is in beta")
def test_a_runnable_made_into_a_tool_is_accepted() -> None:
    look: RunnableLambda[Any, str] = RunnableLambda(lambda given: LONG)
    made = look.as_tool(name="made", description="d", arg_types={"query": str})

    assert text_of(run(offload_tool(made, make_offloader()), query="q")).startswith(OPENING)


def test_a_tool_with_a_single_str_argument_is_accepted() -> None:
    single = Tool(name="single", description="d", func=lambda query: LONG)

    wrapped = offload_tool(single, make_offloader())

    assert type(wrapped) is Tool
    assert wrapped.invoke("q").startswith(OPENING)


def test_a_partial_is_accepted_and_keeps_its_injected_arguments() -> None:
    def fetch(prefix: str, query: str, config: RunnableConfig) -> str:
        """Fetch."""
        return prefix + str(config["configurable"]["thread_id"]) + LONG

    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    made = StructuredTool(name="fetch", description="d", args_schema=schema, func=functools.partial(fetch, "p"))
    offloader = make_offloader()

    text = text_of(run(offload_tool(made, offloader), {"configurable": {"thread_id": "t"}}, query="q"))

    assert offloader.load(reference_in(text), scope="t").text == "pt" + LONG


def test_injected_arguments_are_injected_and_hidden() -> None:
    seen: list[object] = []

    @tool
    def fetch(
        query: str,
        config: RunnableConfig,
        call_id: Annotated[str, InjectedToolCallId],
        hidden: Annotated[str, InjectedToolArg] = "none",
    ) -> str:
        """Fetch."""
        seen.extend([config["configurable"]["thread_id"], call_id, hidden])
        return LONG

    asked: list[ToolResult] = []
    offloader = make_offloader(policies={"fetch": lambda result: asked.append(result) or None})  # type: ignore[func-returns-value]
    wrapped = offload_tool(fetch, offloader)

    run(wrapped, {"configurable": {"thread_id": "t"}}, query="q")

    assert seen == ["t", "call-1", "none"]
    assert convert_to_openai_tool(wrapped)["function"]["parameters"]["properties"].keys() == {"query"}
    assert [(result.tool_name, result.tool_args["query"]) for result in asked] == [("fetch", "q")]
    assert asked[0].tool_args.keys().isdisjoint({"config", "hidden"})


@pytest.mark.parametrize(
    ("arguments", "scope"),
    [
        ({"scope": "tenant-7"}, "tenant-7"),
        ({"scope": lambda config: config["configurable"]["tenant"]}, "tenant-7"),
        ({}, "thread-a"),
    ],
    ids=["text", "callable", "none"],
)
def test_the_scope_is_the_argument_or_else_the_thread(arguments: Mapping[str, Any], scope: str) -> None:
    offloader = make_offloader()
    config: RunnableConfig = {"configurable": {"thread_id": "thread-a", "tenant": "tenant-7"}}

    text = text_of(run(offload_tool(search, offloader, **arguments), config, query="q"))

    assert offloader.load(reference_in(text), scope=scope).text == LONG


async def test_the_thread_is_the_scope_async() -> None:
    offloader = make_offloader()
    config: RunnableConfig = {"configurable": {"thread_id": "thread-a"}}

    message = await offload_tool(search_async, offloader).ainvoke(tool_call("search_async", {"query": "q"}), config)

    assert offloader.load(reference_in(text_of(message)), scope="thread-a").text == LONG


async def test_a_coroutine_that_takes_the_configuration_itself_still_gets_it() -> None:
    seen: list[str] = []

    @tool
    async def fetch(query: str, settings: RunnableConfig) -> str:
        """Fetch."""
        seen.append(settings["configurable"]["thread_id"])
        return LONG

    offloader = make_offloader()
    config: RunnableConfig = {"configurable": {"thread_id": "thread-a"}}
    wrapped = offload_tool(fetch, offloader)

    message = await wrapped.ainvoke(tool_call("fetch", {"query": "q"}), config)

    assert seen == ["thread-a"]
    assert offloader.load(reference_in(text_of(message)), scope="thread-a").text == LONG
    assert convert_to_openai_tool(wrapped)["function"]["parameters"]["properties"].keys() == {"query"}


async def test_a_model_cannot_send_a_configuration() -> None:
    async def fetch(query: str) -> str:
        return LONG

    schema = {"type": "object", "properties": {"query": {"type": "string"}}}
    made = StructuredTool(name="fetch", description="d", args_schema=schema, coroutine=fetch)
    offloader = make_offloader()
    forged = {"query": "q", "coatcheck_config": {"configurable": {"thread_id": "thread-b"}}}
    config: RunnableConfig = {"configurable": {"thread_id": "thread-a"}}

    message = await offload_tool(made, offloader).ainvoke(tool_call("fetch", forged), config)

    assert offloader.load(reference_in(text_of(message)), scope="thread-a").text == LONG


def test_a_failing_rewrite_leaves_the_raw_result(caplog: pytest.LogCaptureFixture) -> None:
    def broken(config: object) -> str:
        raise LookupError

    message = run(offload_tool(search, make_offloader(), scope=broken), query="q")

    assert message.content == LONG
    assert "could not offload" in caplog.text


async def test_a_failing_rewrite_leaves_the_raw_result_async(caplog: pytest.LogCaptureFixture) -> None:
    wrapped = offload_tool(search_async, make_offloader(require_scope=True))

    message = await wrapped.ainvoke(tool_call("search_async", {"query": "q"}))

    assert message.content == LONG
    assert "could not offload" in caplog.text


class Unprintable:
    def __str__(self) -> str:
        msg = "unprintable"
        raise RuntimeError(msg)


def test_a_value_that_cannot_be_printed_is_left_to_langchain_to_refuse() -> None:
    @tool
    def give() -> Any:
        """Give it."""
        return Unprintable()

    assert isinstance(offload_tool(give, make_offloader()).invoke({}), Unprintable)


def test_without_a_retrieval_tool_the_notice_names_none() -> None:
    text = text_of(run(offload_tool(search, make_offloader(), retrieval_tool=None), query="q"))

    assert coatcheck.RETRIEVAL_TOOL not in text
    assert "available tools" in text


def test_a_storage_with_knobs_is_as_good_as_an_offloader() -> None:
    storage = InMemoryStorage()

    text = text_of(run(offload_tool(search, storage, max_result_tokens=5_000, preview_tokens=50), query="q"))

    assert Offloader(storage).load(reference_in(text)).text == LONG
    assert len(text) < 1_500


@pytest.mark.parametrize(
    "make",
    [
        lambda: offload_tool(search, make_offloader(), max_result_tokens=5_000),
        lambda: offload_tool(search, InMemoryStorage(), max_result_tokens=0),
        lambda: offload_tool(search, InMemoryStorage(), max_step_tokens=5_000),
        lambda: offload_tool(search, make_offloader(), scope=""),
        lambda: offload_tool(search, make_offloader(), retrieval_tool="search"),
        lambda: offload_tool(search, make_offloader(), keep_artifact="false"),  # type: ignore[arg-type]
        lambda: retrieval_tool(make_offloader(), native_media="false"),  # type: ignore[arg-type]
    ],
    ids=[
        "offloader and knobs",
        "bad knob",
        "budget for a step",
        "empty scope",
        "named like the retrieval tool",
        "artifact by a word",
        "media by a word",
    ],
)
def test_wrong_arguments_are_refused_at_once(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidRequest):
        make()


def test_a_human_message_is_not_taken_for_a_result() -> None:
    @tool
    def give() -> Any:
        """Give something that holds messages."""
        return {"messages": [HumanMessage(SHORT)]}

    value = offload_tool(give, make_offloader()).invoke({})

    assert value == {"messages": [HumanMessage(SHORT)]}


@dataclasses.dataclass
class Record:
    update: str


def test_a_dataclass_is_not_taken_for_a_command() -> None:
    record = Record("x")

    @tool
    def give() -> Any:
        """Give a record."""
        return record

    assert offload_tool(give, make_offloader()).invoke({}) is record
