"""``ToolResultOffloadHook`` in real agents: what is offloaded, what stays, and what the model reads."""

from __future__ import annotations

import base64
import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, FileContent, ImageContent, TextContent, ToolCall

from coatcheck import (
    Always,
    Event,
    FileStorage,
    InMemoryStorage,
    InvalidRequest,
    Never,
    Offloader,
    OverTokens,
    TiktokenCounter,
)
from coatcheck_haystack import (
    AlwaysOffload,
    FileSystemToolResultStore,
    NeverOffload,
    OffloadOverTokens,
    RetrievalTool,
    ToolResultOffloadHook,
    offloaded_references,
)
from tests.adapters.haystack.agents import (
    IMAGE,
    LONG,
    OPENING,
    PDF,
    SHORT,
    Scripted,
    agent_of,
    call,
    last,
    read,
    results,
    run,
    say,
    state_of,
    text_of,
    tool,
    tool_messages,
)

if TYPE_CHECKING:
    from pathlib import Path

RUNS = pytest.mark.parametrize("mode", ["sync", "async"])
SEARCH = tool("search", LONG)
TINY = tool("tiny", SHORT)


@RUNS
async def test_an_agent_offloads_a_result_and_reads_it_back(mode: str, tmp_path: Path) -> None:
    hook = ToolResultOffloadHook(FileStorage(tmp_path))
    agent, model = agent_of(
        [SEARCH],
        call(("search", {})),
        read(pattern="row 1999:", context_lines=0),
        read(line_range={"start": 3, "end": 3}),
        say("found"),
        hook=hook,
    )

    answer = await run(agent, mode)

    placeholder, match, line = results(answer["messages"])
    assert text_of(placeholder).startswith(OPENING)
    assert TiktokenCounter().count(text_of(placeholder)) <= 2_500
    assert "row 1999: the quick" in text_of(match)
    assert "row 2: the quick" in text_of(line)
    assert answer["last_message"].text == "found"
    assert model.tools == ["search", "retrieve_offloaded_content"]
    assert all(LONG not in text_of(result) for seen in model.seen for result in results(seen))


@RUNS
async def test_references_in_the_meta_of_a_message_load_the_whole_result(mode: str) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage())
    agent, _ = agent_of([SEARCH], call(("search", {})), say(), hook=hook)

    (message,) = tool_messages((await run(agent, mode))["messages"])

    (reference,) = offloaded_references(message)
    assert message.meta["tool_result_offloaded"] == [reference]
    assert hook.offloader.load(reference).text == LONG
    assert offloaded_references(ChatMessage.from_user("x")) == ()


@pytest.mark.parametrize(
    "content",
    [
        [TextContent(f"row {number}") for number in range(20_000)],
        [ImageContent(base64.b64encode(b"%d" % number).decode(), mime_type="image/png") for number in range(300)],
    ],
    ids=["texts", "images"],
)
def test_the_mark_of_many_blocks_is_short(content: list[Any]) -> None:
    state = state_of(content)

    ToolResultOffloadHook(InMemoryStorage()).run(state)

    message = state.data["messages"][-1]
    (reference,) = offloaded_references(message)
    assert reference in text_of(last(state))
    assert len(json.dumps(message.meta)) < 2_000


@RUNS
async def test_everything_else_in_a_message_stays(mode: str) -> None:
    state = state_of(LONG)
    origin = ToolCall("search", {"number": 0}, id="call-0", extra={"signature": "s"})
    own = ChatMessage.from_tool(LONG, origin=origin, meta={"trace": 7})
    state.data["messages"][-1] = own
    before = list(state.data["messages"])
    hook = ToolResultOffloadHook(InMemoryStorage())

    await hook.run_async(state) if mode == "async" else hook.run(state)

    message = state.data["messages"][-1]
    assert message.tool_call_result.origin is origin
    assert message.meta == {"trace": 7, "tool_result_offloaded": list(offloaded_references(message))}
    assert [new is old for new, old in zip(state.data["messages"], before, strict=True)] == [True, True, False]
    assert (own.tool_call_result.result, own.meta) == (LONG, {"trace": 7})  # type: ignore[union-attr]


def test_nothing_is_written_back_if_nothing_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    state = state_of(SHORT, SHORT)
    before = state.data["messages"]
    monkeypatch.setattr(type(state), "set", lambda *_, **__: pytest.fail("written back"))

    ToolResultOffloadHook(InMemoryStorage(), {"*": OffloadOverTokens(500)}).run(state)
    ToolResultOffloadHook(InMemoryStorage()).run(state)

    assert state.data["messages"] is before


@RUNS
async def test_a_step_over_its_budget_offloads_the_largest_result_first(mode: str) -> None:
    sizes = {"first": 300, "second": 200, "third": 400}
    tools = [tool(name, "some words\n" * rows) for name, rows in sizes.items()]
    agent, _ = agent_of(
        tools,
        call(*((name, {}) for name in sizes)),
        say(),
        hook=ToolResultOffloadHook(InMemoryStorage(), max_step_tokens=2_500),
    )

    messages = tool_messages((await run(agent, mode))["messages"])

    assert [bool(offloaded_references(message)) for message in messages] == [False, False, True]


@RUNS
async def test_a_step_budget_counts_what_strategies_keep(mode: str) -> None:
    tools = [tool(name, "some words\n" * 600) for name in ("mine", "kept")]
    strategies = {"kept": NeverOffload(), "mine": OffloadOverTokens(5_000)}
    hook = ToolResultOffloadHook(InMemoryStorage(), strategies, max_step_tokens=2_000)
    agent, _ = agent_of(tools, call(("kept", {}), ("mine", {})), say(), hook=hook)

    messages = tool_messages((await run(agent, mode))["messages"])

    assert [bool(offloaded_references(message)) for message in messages] == [False, True]


@RUNS
async def test_media_become_placeholders_and_are_stored_decoded(mode: str) -> None:
    scan = tool("scan", [TextContent(LONG), IMAGE, PDF], raw=True)
    hook = ToolResultOffloadHook(InMemoryStorage())
    agent, _ = agent_of([scan], call(("scan", {})), say(), hook=hook)

    (message,) = tool_messages((await run(agent, mode))["messages"])

    text, image, file = map(hook.offloader.load, offloaded_references(message))
    shown = text_of(message.tool_call_result)  # type: ignore[arg-type]
    assert "[image: png, 2052 bytes | ref: " in shown
    assert "[document: pdf, report.pdf, 2000 bytes | ref: " in shown
    assert (text.text, image.content_type, file.content_type) == (LONG, "image/png", "application/pdf")
    assert file.data == b"%PDF" * 500


def test_media_that_cannot_be_decoded_stay_and_the_text_is_offloaded() -> None:
    broken = [
        ImageContent("no base64!", mime_type="image/png", validation=False),
        FileContent("=" * 2**20, mime_type="application/pdf", validation=False),
    ]
    state = state_of([*broken, TextContent(LONG)])

    ToolResultOffloadHook(InMemoryStorage()).run(state)

    content = last(state).result
    assert isinstance(content, list)
    assert [part for part in content if not isinstance(part, TextContent)] == broken
    assert any(part is broken[0] for part in content)
    assert OPENING in text_of(last(state))


@RUNS
async def test_errors_and_empty_results_stay(mode: str) -> None:
    tools = [tool("bad", ValueError(LONG)), tool("empty", ""), tool("nothing", [], raw=True)]
    hook = ToolResultOffloadHook(InMemoryStorage(), {"*": AlwaysOffload()})
    agent, _ = agent_of(tools, call(("bad", {}), ("empty", {}), ("nothing", {}), ("missing", {})), say(), hook=hook)

    messages = tool_messages((await run(agent, mode))["messages"])

    assert [len(offloaded_references(message)) for message in messages] == [0, 0, 0, 0]
    assert [result.error for result in results(messages)] == [True, True, False, False]
    assert LONG in text_of(results(messages)[1])


def test_errors_stay_with_a_ready_offloader_too() -> None:
    state = state_of(LONG)
    state.data["messages"][-1] = ChatMessage.from_tool(LONG, origin=last(state).origin, error=True)

    ToolResultOffloadHook(Offloader(policies={"*": Always()})).run(state)

    assert last(state).result == LONG


@RUNS
async def test_errors_are_offloaded_with_offload_errors(mode: str) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage(), {"*": AlwaysOffload()}, offload_errors=True)
    agent, _ = agent_of([tool("bad", ValueError(LONG))], call(("bad", {})), say(), hook=hook)

    (result,) = results((await run(agent, mode))["messages"])

    assert text_of(result).startswith(OPENING)
    assert result.error


@RUNS
async def test_a_ready_offloader_brings_its_own_policies(mode: str) -> None:
    offloader = Offloader(InMemoryStorage(), policies={"search": Never(), "tiny": Always()})
    agent, _ = agent_of(
        [SEARCH, TINY], call(("search", {}), ("tiny", {})), say(), hook=ToolResultOffloadHook(offloader)
    )

    search, tiny = results((await run(agent, mode))["messages"])

    assert search.result == LONG
    assert text_of(tiny).startswith(OPENING)


def test_strategies_take_precedence_over_the_policies_of_a_ready_offloader() -> None:
    state = state_of(LONG)

    ToolResultOffloadHook(Offloader(policies={"*": Always()}), {"other": AlwaysOffload()}).run(state)

    assert last(state).result == LONG


def test_the_cores_own_policies_serve_as_strategies() -> None:
    hook = ToolResultOffloadHook(InMemoryStorage(), {"search": OverTokens(10), "*": lambda _: True})
    searched, other = state_of(LONG), state_of(SHORT, name="other")

    hook.run(searched)
    hook.run(other)

    assert text_of(last(searched)).startswith(OPENING)
    assert text_of(last(other)).startswith(OPENING)


def test_events_report_kept_results_too() -> None:
    events: list[Event] = []
    hook = ToolResultOffloadHook(InMemoryStorage(), {"*": NeverOffload()}, on_event=events.append)

    hook.run(state_of(SHORT))

    assert [(event.kind, event.tool_name) for event in events] == [("kept", "search")]


@pytest.mark.parametrize(
    ("knobs", "limit"),
    [({"preview_chars": 40}, 10), ({"preview_tokens": 300}, 300), ({}, 50), ({"preview_chars": 0}, 0)],
)
def test_the_preview_keeps_to_its_limit(knobs: dict[str, Any], limit: int) -> None:
    state = state_of("word " * 20_000)

    ToolResultOffloadHook(InMemoryStorage(), {"*": AlwaysOffload()}, **knobs).run(state)

    preview = text_of(last(state)).partition("\n\n")[2]
    assert limit * 0.4 <= TiktokenCounter().count(preview) <= limit + 20


def test_a_preview_larger_than_the_default_threshold_is_possible() -> None:
    state = state_of(LONG)

    ToolResultOffloadHook(InMemoryStorage(), {"*": AlwaysOffload()}, preview_chars=20_000).run(state)

    assert 4_000 < TiktokenCounter().count(text_of(last(state))) < 5_500


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"store": object()}, "ToolResultStore"),
        ({"store": None}, "ToolResultStore"),
        ({"store": "./artifacts"}, r"A storage such as FileStorage\('./artifacts'\) also works"),
        ({"offload_strategies": [AlwaysOffload()]}, "offload_strategies must map"),
        ({"offload_strategies": {3: AlwaysOffload()}}, "a key of offload_strategies"),
        ({"offload_strategies": {("a", 3): AlwaysOffload()}}, "a key of offload_strategies"),
        (
            {"offload_strategies": {"github_*": AlwaysOffload()}},
            r"'\*' works only alone, for all other tools, not in 'github_",
        ),
        ({"offload_strategies": {("a", "*"): AlwaysOffload()}}, "name each tool"),
        ({"offload_strategies": {"*": AlwaysOffload}}, "the strategy of"),
        ({"offload_strategies": {"*": 4_000}}, "the strategy of"),
        ({"offload_strategies": {"*": AlwaysOffload()}, "policies": {"a": Never()}}, "set the same thing"),
        ({"preview_chars": 10, "preview_tokens": 10}, "set the same thing"),
        ({"preview_chars": -1}, "preview_chars must be"),
        ({"preview_chars": "200"}, "preview_chars must be"),
        ({"scope": ""}, "scope must be"),
        ({"scope": 7}, "scope must be"),
        ({"keep_meta": "false"}, "keep_meta must be True or False, not 'false'"),
        ({"max_result_tokens": 0}, "max_result_tokens"),
        ({"store": Offloader(), "max_result_tokens": 10}, "a ready Offloader has its own max_result_tokens"),
        ({"store": Offloader(), "preview_chars": 10}, "a ready Offloader has its own preview_tokens"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        ToolResultOffloadHook(**{"store": InMemoryStorage(), **arguments})


def test_an_unknown_knob_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="max_tokens"):
        ToolResultOffloadHook(InMemoryStorage(), max_tokens=10)  # type: ignore[call-arg]


def test_the_hook_runs_only_after_tools() -> None:
    hook = ToolResultOffloadHook(InMemoryStorage())

    assert hook.allowed_hook_points == ("after_tool",)
    with pytest.raises(ValueError, match="only supports: after_tool"):
        Agent(chat_generator=Scripted(say()), tools=[TINY], hooks={"before_llm": [hook]})


@RUNS
async def test_a_storage_that_fails_leaves_the_result_and_logs_a_warning(
    mode: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    hook = ToolResultOffloadHook(FileSystemToolResultStore(tmp_path / "file"), {"*": AlwaysOffload()})
    agent, _ = agent_of([SEARCH], call(("search", {})), say(), hook=hook)

    with caplog.at_level(logging.WARNING):
        (result,) = results((await run(agent, mode))["messages"])

    assert result.result == LONG
    assert "FileExistsError" in caplog.text or "NotADirectoryError" in caplog.text


@RUNS
async def test_a_hook_that_fails_leaves_the_result_and_the_run_goes_on(
    mode: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage())

    def broken(*_: object, **__: object) -> object:
        msg = "broken"
        raise RuntimeError(msg)

    monkeypatch.setattr(hook.offloader, "offload_step", broken)
    monkeypatch.setattr(hook.offloader, "aoffload_step", broken)
    agent, _ = agent_of([SEARCH], call(("search", {})), say("done"), hook=hook)

    answer = await run(agent, mode)

    assert results(answer["messages"])[0].result == LONG
    assert answer["last_message"].text == "done"
    assert "coatcheck could not offload a tool result" in caplog.text


def test_a_hook_may_be_shared_with_a_retrieval_tool_of_another_name() -> None:
    hook = ToolResultOffloadHook(InMemoryStorage())
    state = state_of(LONG, tools=[SEARCH, RetrievalTool(hook, name="read_back")])

    hook.run(state)

    assert "read_back(reference, " in text_of(last(state))


@pytest.mark.parametrize("name", ["store", "preview_chars", "preview_tokens"])
def test_the_arguments_of_a_hook_cannot_be_reassigned(name: str) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage())

    with pytest.raises(AttributeError):
        setattr(hook, name, None)
