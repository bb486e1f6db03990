"""``OffloadMiddleware`` in real agents: what is offloaded, what stays, and what the model reads."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents.middleware import AgentMiddleware, LLMToolSelectorMiddleware, wrap_tool_call
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import ToolException, tool

import coatcheck
from coatcheck import RETRIEVAL_TOOL, Event, InMemoryStorage, InvalidRequest, Offloader, TiktokenCounter, ToolResult
from coatcheck_langchain import OffloadMiddleware, offload_tool, offloaded_references
from tests.adapters.langchain.samples import (
    LONG,
    OPENING,
    PNG,
    PNG_TEXT,
    SHORT,
    SURROGATE,
    make_offloader,
    text_of,
)
from tests.adapters.langgraph.agents import (
    ScriptedModel,
    agent_of,
    answers,
    call,
    question,
    read,
    reference_in,
    run,
    say,
)

if TYPE_CHECKING:
    from collections.abc import Callable


@tool
def search(query: str) -> str:
    """Search for rows."""
    return LONG


@tool
def tiny(query: str) -> str:
    """Give a few words."""
    return SHORT


RUNS = pytest.mark.parametrize("mode", ["sync", "async"])

MIDDLE = "row 1000: the quick brown fox"
"""In the middle of the result, so in no preview."""


@RUNS
async def test_an_agent_offloads_a_result_and_reads_it_back(mode: str) -> None:
    agent, model = agent_of(
        [search],
        call(("search", {"query": "q"})),
        read(pattern="row 1999:", context_lines=0),
        read(line_range={"start": 3, "end": 3}),
        say("found"),
    )

    messages = await run(agent, mode)

    placeholder, match, line = answers(messages)
    assert text_of(placeholder).startswith(OPENING)
    assert "row 1999: the quick" in text_of(match)
    assert "row 3: the quick" in text_of(line)
    assert messages[-1].content == "found"
    assert model.tools == ["retrieve_offloaded_content", "search"]
    assert all(LONG not in text_of(message) for seen in model.seen for message in seen)


def test_middleware_after_ours_sees_whole_results_and_middleware_before_ours_sees_placeholders() -> None:
    seen: dict[str, str] = {}

    def noting(name: str) -> Any:
        @wrap_tool_call(name=name)
        def note(request: Any, handler: Any) -> Any:
            result = handler(request)
            seen[name] = text_of(result)
            return ToolMessage(f"{seen[name]}\n{name}", tool_call_id=result.tool_call_id)

        return note

    middleware = [noting("before"), OffloadMiddleware(), noting("after")]
    agent, _ = agent_of([search], call(("search", {"query": "q"})), say(), middleware=middleware)
    (shown,) = answers(agent.invoke(question())["messages"])

    assert seen["after"] == LONG
    assert seen["before"].startswith(OPENING)
    assert seen["before"].endswith("after")
    assert text_of(shown) == f"{seen['before']}\nbefore"


@pytest.mark.parametrize("offer_tool", ["always", "when needed"])
def test_a_tool_selector_can_be_told_to_keep_the_retrieval_tool(offer_tool: Any) -> None:
    class Selecting(ScriptedModel):
        def with_structured_output(self, *_: Any, **__: Any) -> Any:
            return RunnableLambda(lambda _: {"tools": ["tiny"]})

    selecting = Selecting(script=[], seen=[], tools=[], offered=[])
    selector = LLMToolSelectorMiddleware(model=selecting, max_tools=1, always_include=[RETRIEVAL_TOOL])
    agent, model = agent_of(
        [search, tiny],
        call(("search", {"query": "q"})),
        say(),
        middleware=[selector, OffloadMiddleware(offer_tool=offer_tool)],
    )
    agent.invoke(question())

    assert model.offered[-1] == ["tiny", RETRIEVAL_TOOL]


@RUNS
async def test_what_the_model_is_sent_fits_the_threshold(mode: str) -> None:
    agent, model = agent_of([search], call(("search", {"query": "q"})), say())

    await run(agent, mode)

    assert TiktokenCounter().count(text_of(model.seen[1][-1])) <= 2_500


@RUNS
async def test_a_small_result_is_the_very_same_object(mode: str) -> None:
    own = ToolMessage(SHORT, tool_call_id="call-1", name="give")

    @tool
    def give() -> Any:
        """Give a message."""
        return own

    agent, model = agent_of([give], call(("give", {})), say())

    await run(agent, mode)

    assert answers(model.seen[1])[0].content == SHORT
    assert own.additional_kwargs == {}


@RUNS
async def test_a_tools_own_message_is_never_changed(mode: str) -> None:
    own = ToolMessage(LONG, tool_call_id="call-1", name="give", artifact={"a": 1}, id="m-1")

    @tool
    def give() -> Any:
        """Give a message that is kept in a cache."""
        return own

    agent, _ = agent_of([give], call(("give", {})), say())

    (message,) = answers(await run(agent, mode))

    assert own.content == LONG
    assert own.additional_kwargs == {}
    assert text_of(message).startswith(OPENING)
    assert (message.id, message.artifact, message.name, message.tool_call_id) == ("m-1", {"a": 1}, "give", "call-1")


@RUNS
async def test_the_artifact_stays_and_the_content_is_offloaded(mode: str) -> None:
    @tool(response_format="content_and_artifact")
    def fetch() -> tuple[str, Any]:
        """Fetch rows."""
        return LONG, {"rows": [1, 2, 3]}

    agent, _ = agent_of([fetch], call(("fetch", {})), say())

    (message,) = answers(await run(agent, mode))

    assert text_of(message).startswith(OPENING)
    assert message.artifact == {"rows": [1, 2, 3]}


@RUNS
async def test_a_final_answer_is_never_offloaded(mode: str) -> None:
    @tool(return_direct=True)
    def final() -> str:
        """Answer the user."""
        return LONG * 3

    agent, model = agent_of([final], call(("final", {})), say())

    messages = await run(agent, mode)

    assert messages[-1].content == LONG * 3
    assert len(model.seen) == 1


@RUNS
async def test_results_of_a_marked_tool_stay_up_to_the_hard_limit(mode: str) -> None:
    marked = search.model_copy(update={"metadata": {"coatcheck": "keep"}})

    kept, _ = agent_of([marked], call(("search", {"query": "q"})), say())
    limited = OffloadMiddleware(max_inline_tokens=2_500)
    left, _ = agent_of([marked], call(("search", {"query": "q"})), say(), middleware=[limited])

    assert text_of(answers(await run(kept, mode))[0]) == LONG
    assert text_of(answers(await run(left, mode))[0]).startswith(OPENING)


@RUNS
async def test_results_of_exempt_tools_stay(mode: str) -> None:
    middleware = OffloadMiddleware(exempt=("search",), policies={"*": coatcheck.Always()})
    agent, _ = agent_of(
        [search, tiny], call(("search", {"query": "q"}), ("tiny", {"query": "q"})), say(), middleware=[middleware]
    )

    first, second = answers(await run(agent, mode))

    assert text_of(first) == LONG
    assert text_of(second).startswith(OPENING)


@RUNS
async def test_policies_see_the_call(mode: str) -> None:
    asked: list[ToolResult] = []

    async def policy(result: ToolResult) -> None:
        asked.append(result)

    def policy_here(result: ToolResult) -> None:
        asked.append(result)

    middleware = OffloadMiddleware(policies={"search": policy if mode == "async" else policy_here})
    agent, _ = agent_of([search], call(("search", {"query": "q"})), say(), middleware=[middleware])

    await run(agent, mode)

    assert [(result.tool_name, dict(result.tool_args), result.is_error) for result in asked] == [
        ("search", {"query": "q"}, False)
    ]


@RUNS
async def test_each_parallel_call_gets_its_own_reference(mode: str) -> None:
    @tool
    def table(name: str) -> str:
        """Give a table."""
        return f"{name}\n{LONG}"

    middleware = OffloadMiddleware()
    names = [f"table {number}" for number in range(12)]
    agent, _ = agent_of([table], call(*(("table", {"name": name}) for name in names)), say(), middleware=[middleware])

    messages = answers(await run(agent, mode))

    references = [offloaded_references(message)[0] for message in messages]
    assert [middleware.offloader.load(reference).text.partition("\n")[0] for reference in references] == names


@RUNS
async def test_two_calls_with_one_id_overwrite_nothing(mode: str) -> None:
    @tool
    def table(name: str) -> str:
        """Give a table."""
        return f"{name}\n{LONG}"

    middleware = OffloadMiddleware()
    agent, _ = agent_of(
        [table],
        call(("table", {"name": "first"})),
        call(("table", {"name": "second"})),
        say(),
        middleware=[middleware],
    )

    first, second = answers(await run(agent, mode))

    assert first.tool_call_id == second.tool_call_id
    assert middleware.offloader.load(offloaded_references(first)[0]).text.startswith("first")
    assert middleware.offloader.load(offloaded_references(second)[0]).text.startswith("second")


@RUNS
@pytest.mark.parametrize("call_id", ["../../x", "x" * 1_400, "", "None", SURROGATE])
async def test_hostile_ids_do_no_harm(mode: str, call_id: str, tmp_path: Any) -> None:
    offloader = Offloader(coatcheck.FileStorage(tmp_path / "inside"))
    turn = AIMessage("", tool_calls=[{"type": "tool_call", "name": "search", "args": {"query": "q"}, "id": call_id}])
    agent, _ = agent_of([search], turn, say(), middleware=[OffloadMiddleware(offloader)])

    (message,) = answers(await run(agent, mode))

    assert message.tool_call_id == call_id
    assert offloader.load(offloaded_references(message)[0]).text == LONG
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


@RUNS
@pytest.mark.parametrize("name", ["../../x", "x" * 1_400, "None", SURROGATE, "a\nb"])
async def test_hostile_tool_names_do_no_harm(mode: str, name: str, tmp_path: Any) -> None:
    offloader = Offloader(coatcheck.FileStorage(tmp_path / "inside"))
    hostile = search.model_copy(update={"name": name})
    agent, _ = agent_of([hostile], call((name, {"query": "q"})), say(), middleware=[OffloadMiddleware(offloader)])

    (message,) = answers(await run(agent, mode))

    text_of(message).encode("utf-8")
    assert offloader.load(offloaded_references(message)[0]).text == LONG
    assert [path.name for path in tmp_path.iterdir()] == ["inside"]


@RUNS
async def test_lone_surrogates_are_stored_and_never_reach_the_model(mode: str) -> None:
    content = "\n".join(f"{SURROGATE} row {number}" for number in range(9_000))

    @tool
    def broken() -> str:
        """Give half emojis."""
        return content

    middleware = OffloadMiddleware()
    agent, model = agent_of([broken], call(("broken", {})), read(pattern="row 8888"), say(), middleware=[middleware])

    messages = await run(agent, mode)

    for message in answers(model.seen[-1]):
        text_of(message).encode("utf-8")
    assert middleware.offloader.load(reference_in(messages)).text == content


@RUNS
async def test_media_are_offloaded_and_links_stay(mode: str) -> None:
    link = {"type": "image", "url": "https://example.com/a.png"}

    @tool
    def picture() -> list[dict[str, Any]]:
        """Give pictures."""
        return [{"type": "image", "base64": PNG_TEXT, "mime_type": "image/png"}, link, {"type": "text", "text": LONG}]

    middleware = OffloadMiddleware(native_media=True)
    agent, _ = agent_of([picture], call(("picture", {})), read(), say(), middleware=[middleware])

    placeholder, native = answers(await run(agent, mode))

    assert PNG_TEXT not in str(placeholder.content)
    assert link in placeholder.content
    assert native.content == [{"type": "image", "base64": PNG_TEXT, "mime_type": "image/png"}]
    assert middleware.offloader.load(offloaded_references(placeholder)[0]).data == PNG


@RUNS
async def test_a_list_that_langchain_turned_into_text_is_stored_as_that_text(mode: str) -> None:
    blocks = [{"type": "audio", "base64": "A" * 40_000, "mime_type": "audio/wav"}, {"type": "text", "text": "words"}]

    @tool
    def record() -> Any:
        """Give a recording."""
        return blocks

    middleware = OffloadMiddleware()
    agent, _ = agent_of([record], call(("record", {})), say(), middleware=[middleware])

    (message,) = answers(await run(agent, mode))

    stored = middleware.offloader.load(offloaded_references(message)[0])
    assert stored.content_type == "text/plain"
    assert stored.text.startswith('[{"type": "audio"')


@RUNS
async def test_errors_stay_below_the_hard_limit_unless_offload_errors_is_set(mode: str) -> None:
    @tool
    def fail() -> str:
        """Fail at length."""
        raise ToolException(LONG)

    fail.handle_tool_error = True
    turns = (call(("fail", {})), say())

    for knobs, leaves in (({}, False), ({"offload_errors": True}, True), ({"max_inline_tokens": 2_500}, True)):
        agent, _ = agent_of([fail], *turns, middleware=[OffloadMiddleware(**knobs)])
        (message,) = answers(await run(agent, mode))
        assert message.status == "error"
        assert text_of(message).startswith(OPENING) is leaves


@RUNS
async def test_an_unknown_tool_is_answered_by_langchain(mode: str) -> None:
    agent, _ = agent_of([search], call(("no_such_tool", {})), say())

    (message,) = answers(await run(agent, mode))

    assert message.status == "error"
    assert "not a valid tool" in text_of(message)


@RUNS
async def test_exceptions_from_a_tool_propagate(mode: str) -> None:
    error = KeyError("their own")

    @tool
    def fail() -> str:
        """Fail."""
        raise error

    agent, _ = agent_of([fail], call(("fail", {})), say())

    with pytest.raises(KeyError) as raised:
        await run(agent, mode)

    assert raised.value is error


@RUNS
async def test_a_failing_rewrite_leaves_the_raw_result(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    def broken(runtime: object) -> str:
        raise LookupError

    agent, _ = agent_of([search], call(("search", {"query": "q"})), say(), middleware=[OffloadMiddleware(scope=broken)])

    messages = await run(agent, mode)

    assert text_of(answers(messages)[0]) == LONG
    assert messages[-1].content == "done"
    assert "could not offload" in caplog.text


class Full:
    def save(self, key: str, content: bytes, *, content_type: str, metadata: object) -> None:
        msg = "no space left"
        raise OSError(28, msg)

    def load(self, key: str) -> None:
        return None


@RUNS
async def test_a_failing_storage_leaves_the_raw_result(mode: str) -> None:
    agent, _ = agent_of([search], call(("search", {"query": "q"})), say(), middleware=[OffloadMiddleware(Full())])

    assert text_of(answers(await run(agent, mode))[0]) == LONG


@RUNS
async def test_a_result_that_cannot_be_stored_and_is_too_large_is_cut_once(mode: str) -> None:
    inner, outer = (OffloadMiddleware(Full(), name=name, max_inline_tokens=2_500) for name in ("inner", "outer"))
    agent, _ = agent_of([search], call(("search", {"query": "q"})), say(), middleware=[outer, inner])

    (message,) = answers(await run(agent, mode))

    assert text_of(message).startswith("Tool result cut.")
    assert text_of(message).count("Tool result cut.") == 1
    assert offloaded_references(message) == ()


@RUNS
async def test_retrieval_answers_are_never_offloaded(mode: str) -> None:
    middleware = OffloadMiddleware(policies={"*": coatcheck.Always()})
    agent, _ = agent_of([search], call(("search", {"query": "q"})), read(), say(), middleware=[middleware])

    placeholder, answer = answers(await run(agent, mode))

    assert text_of(placeholder).startswith(OPENING)
    assert "row 1: the quick" in text_of(answer)
    assert not offloaded_references(answer)


@RUNS
async def test_a_placeholder_that_a_tool_returns_is_not_offloaded_again(mode: str) -> None:
    offloader = make_offloader()
    agent, _ = agent_of(
        [offload_tool(search, offloader)],
        call(("search", {"query": "q"})),
        say(),
        middleware=[OffloadMiddleware(offloader)],
    )

    await run(agent, mode)

    assert offloader.stats().offloaded == 1


@RUNS
async def test_a_retrieval_call_with_wrong_arguments_is_answered(mode: str) -> None:
    agent, _ = agent_of([search], call(("search", {"query": "q"})), read(line_range={"start": 9, "end": "x"}), say())

    messages = await run(agent, mode)

    assert answers(messages)[1].status == "error"
    assert "line_range.end" in text_of(answers(messages)[1])
    assert messages[-1].content == "done"


@RUNS
async def test_a_repeated_call_gives_the_same_bytes(mode: str) -> None:
    contents = []
    for _ in range(2):
        agent, _ = agent_of([search], call(("search", {"query": "q"})), say())
        contents.append(answers(await run(agent, mode))[0].content)

    assert contents[0] == contents[1]


@RUNS
async def test_events_name_the_tool(mode: str) -> None:
    events: list[Event] = []
    agent, _ = agent_of(
        [search], call(("search", {"query": "q"})), say(), middleware=[OffloadMiddleware(on_event=events.append)]
    )

    await run(agent, mode)

    assert [(event.kind, event.tool_name) for event in events] == [("offloaded", "search")]


@RUNS
async def test_streams_of_the_state_do_not_carry_the_result(mode: str) -> None:
    agent, _ = agent_of([search], call(("search", {"query": "q"})), say())
    modes = ["updates", "messages", "values", "tasks", "checkpoints", "debug"]

    if mode == "sync":
        chunks = list(agent.stream(question(), stream_mode=modes))
    else:
        chunks = [chunk async for chunk in agent.astream(question(), stream_mode=modes)]

    assert OPENING in repr(chunks)
    assert MIDDLE not in repr(chunks)


async def test_events_of_the_tool_carry_the_raw_result_before_the_middleware_sees_it() -> None:
    agent, model = agent_of([search], call(("search", {"query": "q"})), say())

    events = [event async for event in agent.astream_events(question(), version="v2")]

    (ended,) = [event for event in events if event["event"] == "on_tool_end"]
    assert MIDDLE in repr(ended["data"])
    assert OPENING in repr(model.seen)
    assert MIDDLE not in repr(model.seen)


def test_the_stream_of_tools_carries_the_raw_result() -> None:
    agent, model = agent_of([search], call(("search", {"query": "q"})), say())

    chunks = list(agent.stream(question(), stream_mode="tools"))

    if not chunks:
        pytest.skip("this LangGraph is too old for it")
    assert MIDDLE in repr(chunks)
    assert MIDDLE not in repr(model.seen)


def test_sync_and_async_wrappers_exist_so_that_neither_run_is_refused() -> None:
    for form in ("wrap_tool_call", "awrap_tool_call"):
        assert getattr(OffloadMiddleware, form) is not getattr(AgentMiddleware, form)


@pytest.mark.parametrize(
    "make",
    [
        lambda: OffloadMiddleware(make_offloader(), max_result_tokens=5_000),
        lambda: OffloadMiddleware(InMemoryStorage(), max_result_tokens=0),
        lambda: OffloadMiddleware(preview_tokens=2_500),
        lambda: OffloadMiddleware(scope=""),
        lambda: OffloadMiddleware(exempt="search"),
        lambda: OffloadMiddleware(name=""),
        lambda: OffloadMiddleware(scope=7),  # type: ignore[arg-type]
        lambda: OffloadMiddleware(max_step_tokens=5_000),
        lambda: OffloadMiddleware(include_retrieval_tool="false"),  # type: ignore[arg-type]
        lambda: OffloadMiddleware(native_media="false"),  # type: ignore[arg-type]
        lambda: OffloadMiddleware(keep_artifact="false"),  # type: ignore[arg-type]
    ],
    ids=[
        "offloader and knobs",
        "bad threshold",
        "bad preview",
        "empty scope",
        "one name for many",
        "empty name",
        "scope that is none",
        "budget for a step",
        "tool by a word",
        "media by a word",
        "artifact by a word",
    ],
)
def test_wrong_arguments_are_refused_at_once(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidRequest):
        make()


@pytest.mark.parametrize(
    ("name", "nearest"), [("exemptt", "exempt"), ("native_medai", "native_media"), ("scop", "scope")]
)
def test_a_misspelled_argument_is_refused_with_the_nearest_name(name: str, nearest: str) -> None:
    with pytest.raises(TypeError, match=rf"^OffloadMiddleware has no argument '{name}'\. Did you mean '{nearest}'"):
        OffloadMiddleware(**{name: 5})  # type: ignore[arg-type]
