"""What breaks offloading hooks in Haystack: missing ids, other orders, dropped tools, nested agents, other hooks."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest
from haystack.components.agents.state import State
from haystack.dataclasses import ChatMessage, ImageContent, TextContent
from haystack.tools.tool import Tool

from coatcheck import FileStorage, InMemoryStorage, Offloader
from coatcheck_haystack import (
    AlwaysOffload,
    FileSystemToolResultStore,
    NeverOffload,
    OffloadPolicy,
    RetrievalTool,
    ToolResultOffloadHook,
    offloaded_references,
)
from tests.adapters.haystack.agents import (
    IMAGE,
    LONG,
    NO_ARGUMENTS,
    OPENING,
    SHORT,
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


def texts_in(folder: Path) -> list[str]:
    """Return the content of every text file below a folder."""
    return sorted(path.read_text(encoding="utf-8") for path in folder.rglob("*.txt"))


# The state.


@RUNS
async def test_nothing_in_the_state_is_deep_copied(mode: str) -> None:
    class Uncopyable:
        def __deepcopy__(self, memo: object) -> Any:
            msg = "a lock cannot be copied"
            raise TypeError(msg)

    state = state_of(LONG, hook_context={"lock": Uncopyable()}, tools=[SEARCH])
    hook = ToolResultOffloadHook(InMemoryStorage())

    await hook.run_async(state) if mode == "async" else hook.run(state)

    assert text_of(last(state)).startswith(OPENING)


@RUNS
async def test_a_state_without_the_usual_keys_is_enough(mode: str) -> None:
    state = State(schema={"messages": {"type": list[ChatMessage]}})
    state.set("messages", state_of(LONG).data["messages"])
    hook = ToolResultOffloadHook(InMemoryStorage())

    await hook.run_async(state) if mode == "async" else hook.run(state)

    assert text_of(last(state)).startswith(OPENING)
    assert "retrieve_offloaded_content" not in text_of(last(state))


# Order and ids.


@RUNS
async def test_errors_of_unknown_tools_come_first_and_each_result_keeps_its_place(mode: str) -> None:
    agent, _ = agent_of(
        [SEARCH, tool("tiny", SHORT)],
        call(("search", {}), ("unknown", {}), ("tiny", {})),
        say(),
        hook=ToolResultOffloadHook(InMemoryStorage()),
    )

    found = results((await run(agent, mode))["messages"])

    shown = {result.origin.tool_name: text_of(result) for result in found}
    assert [result.origin.tool_name for result in found] == ["unknown", "search", "tiny"]
    assert "not found" in shown["unknown"]
    assert shown["search"].startswith(OPENING)
    assert shown["tiny"] == SHORT


@RUNS
async def test_results_of_calls_without_ids_are_offloaded_and_read_back(mode: str) -> None:
    agent, _ = agent_of(
        [SEARCH, tool("other", LONG + "other")],
        call(("search", {}), ("other", {}), prefix=None),
        read(pattern="row 7:"),
        say(),
        hook=ToolResultOffloadHook(InMemoryStorage()),
    )

    messages = tool_messages((await run(agent, mode))["messages"])

    references = [reference for message in messages for reference in offloaded_references(message)]
    assert len(set(references)) == 2
    assert "row 7:" in text_of(messages[2].tool_call_result)  # type: ignore[arg-type]


@RUNS
async def test_a_repeated_call_id_overwrites_nothing(mode: str, tmp_path: Path) -> None:
    hook = ToolResultOffloadHook(FileSystemToolResultStore(tmp_path), {"*": AlwaysOffload()})
    contents = [LONG, LONG + "1", LONG + "2"]

    for content in contents:  # in each run step_count starts from 0
        agent, _ = agent_of([tool("search", content)], call(("search", {}), prefix="same"), say(), hook=hook)
        await run(agent, mode)

    assert texts_in(tmp_path) == sorted(contents)


# One run after another.


@RUNS
async def test_references_in_old_messages_can_still_be_read_in_the_next_run(mode: str, tmp_path: Path) -> None:
    first, _ = agent_of([SEARCH], call(("search", {})), say(), hook=ToolResultOffloadHook(FileStorage(tmp_path)))
    messages = (await run(first, mode))["messages"]
    kept = [ChatMessage.from_dict(message.to_dict()) for message in messages]  # as a host would store them

    again = ToolResultOffloadHook(FileStorage(tmp_path))
    second, _ = agent_of([SEARCH], read(pattern="row 7:"), call(("search", {}), prefix="again"), say(), hook=again)
    answer = (await run(second, mode, [*kept, ChatMessage.from_user("go on")]))["messages"]

    old, page, new = tool_messages(answer)
    assert (old.to_dict(), old.meta) == (tool_messages(messages)[0].to_dict(), tool_messages(messages)[0].meta)
    assert "row 7:" in text_of(page.tool_call_result)  # type: ignore[arg-type]
    assert offloaded_references(new) == offloaded_references(old)


@RUNS
async def test_a_repeated_run_shows_the_same_placeholder(mode: str, tmp_path: Path) -> None:
    hook = ToolResultOffloadHook(FileStorage(tmp_path))
    shown = set()
    for _ in range(2):
        agent, _ = agent_of([SEARCH], call(("search", {})), say(), hook=hook)
        shown.add(text_of(results((await run(agent, mode))["messages"])[0]))

    assert len(shown) == 1
    assert texts_in(tmp_path) == [LONG]


@RUNS
async def test_warming_up_again_changes_nothing(mode: str) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage())
    agent, _ = agent_of([SEARCH], call(("search", {})), read(pattern="row 7:"), say(), hook=hook)
    agent.warm_up()
    agent.warm_up()

    found = results((await run(agent, mode))["messages"])

    assert text_of(found[0]).startswith(OPENING)
    assert "row 7:" in text_of(found[1])


# Tools.


@RUNS
async def test_without_the_retrieval_tool_no_tool_is_named(mode: str) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage())
    agent, model = agent_of([SEARCH], call(("search", {})), say(), call(("search", {})), say(), hook=hook)

    dropped = results((await run(agent, mode, tools=[SEARCH]))["messages"])[0]
    kept = results((await run(agent, mode))["messages"])[0]

    assert model.tools == ["search", "retrieve_offloaded_content"]
    assert "retrieve_offloaded_content" not in text_of(dropped)
    assert "available tools" in text_of(dropped)
    assert "retrieve_offloaded_content(reference, " in text_of(kept)


@RUNS
async def test_an_agent_that_cannot_read_back_logs_one_warning_after_its_first_offload(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage())
    calls = (call(("hello", {})), call(("search", {}), prefix="b"), call(("search", {}), prefix="c"))
    agent, _ = agent_of([tool("hello", "short"), SEARCH], *calls, say(), hook=hook, reads=False)

    await run(agent, mode)

    [warning] = [record.message for record in caplog.records if record.name == "coatcheck_haystack"]
    assert warning.startswith("A tool result was offloaded, and the agent has no tool to read it back with.")


@RUNS
async def test_a_users_tool_of_the_same_name_logs_one_warning(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    users = tool("retrieve_offloaded_content", LONG)
    hook = ToolResultOffloadHook(InMemoryStorage())
    agent, _ = agent_of(
        [SEARCH, users],
        call(("search", {}), ("retrieve_offloaded_content", {})),
        call(("search", {}), prefix="again"),
        say(),
        hook=hook,
        reads=False,
    )

    found = results((await run(agent, mode))["messages"])

    assert all(text_of(result).startswith(OPENING) for result in found)
    assert not any("retrieve_offloaded_content(reference" in text_of(result) for result in found)
    assert [record.message for record in caplog.records if "is taken by another tool" in record.message] != []
    assert sum("is taken by another tool" in record.message for record in caplog.records) == 1


def test_two_tools_of_one_name_are_refused_by_haystack_itself() -> None:
    hook = ToolResultOffloadHook(InMemoryStorage())

    agent, _ = agent_of([tool("retrieve_offloaded_content", SHORT)], say(), hook=hook)

    with pytest.raises(ValueError, match="Duplicate tool names"):
        agent.run(messages=[])


@RUNS
async def test_objects_that_a_tool_caches_are_never_changed(mode: str) -> None:
    cached = [TextContent(LONG), IMAGE]
    before = [(type(part), vars(part).copy()) for part in cached]
    hook = ToolResultOffloadHook(InMemoryStorage())
    agent, _ = agent_of([tool("scan", cached, raw=True)], call(("scan", {})), say(), hook=hook)

    (result,) = results((await run(agent, mode))["messages"])

    assert text_of(result).startswith(OPENING)
    assert [(type(part), vars(part)) for part in cached] == before


@RUNS
async def test_media_are_not_validated_again(mode: str) -> None:
    odd = ImageContent(IMAGE.base64_image, mime_type="image/x-unheard-of", validation=False)
    state = state_of([odd])
    hook = ToolResultOffloadHook(InMemoryStorage(), {"*": AlwaysOffload()})

    await hook.run_async(state) if mode == "async" else hook.run(state)
    (reference,) = offloaded_references(state.data["messages"][-1])
    (back,) = RetrievalTool(hook, native_media=True).invoke(state=state, reference=reference)

    assert (back.mime_type, back.base64_image) == ("image/x-unheard-of", IMAGE.base64_image)


# Final answers.


@RUNS
async def test_a_final_answer_stays_and_the_other_results_of_its_step_are_offloaded(mode: str) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage(), {"*": AlwaysOffload()})
    agent, _ = agent_of(
        [SEARCH, tool("answer", LONG)],
        call(("search", {}), ("answer", {})),
        hook=hook,
        exit_conditions=["text", "answer"],
    )

    answer = await run(agent, mode)

    assert answer["last_message"].tool_call_result.result == LONG
    assert text_of(results(answer["messages"])[0]).startswith(OPENING)


@RUNS
async def test_a_tool_named_text_is_not_an_exit_condition_by_default(mode: str) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage(), {"*": AlwaysOffload()})
    agent, _ = agent_of([tool("text", LONG)], call(("text", {})), say(), hook=hook)

    (result,) = results((await run(agent, mode))["messages"])

    assert text_of(result).startswith(OPENING)


@RUNS
async def test_the_exit_conditions_are_those_of_the_innermost_agent(mode: str) -> None:
    inner_hook = ToolResultOffloadHook(InMemoryStorage(), {"*": AlwaysOffload()})
    inner, inner_model = agent_of([SEARCH], call(("search", {})), say(), hook=inner_hook)

    async def ask() -> str:
        return str((await inner.run_async(messages=[ChatMessage.from_user("x")]))["last_message"].text)

    def ask_here() -> str:
        return str(inner.run(messages=[ChatMessage.from_user("x")])["last_message"].text)

    helper = Tool("search_too", "Asks.", NO_ARGUMENTS, function=ask_here, async_function=ask)
    agent, _ = agent_of([helper], call(("search_too", {})), say(), hooks=[], exit_conditions=["text", "search"])

    await run(agent, mode)

    assert text_of(results(inner_model.seen[1])[0]).startswith(OPENING)


async def test_a_hook_that_a_sync_hook_calls_in_an_async_run_cannot_see_final_answers() -> None:
    class Around:
        def __init__(self, hook: ToolResultOffloadHook) -> None:
            self.hook = hook

        def run(self, state: State) -> None:
            self.hook.run(state)

    class AroundAsync(Around):
        async def run_async(self, state: State) -> None:
            await self.hook.run_async(state)

    always, named = {"*": AlwaysOffload()}, {"search": NeverOffload(), "*": AlwaysOffload()}
    for kind, strategies, stays in ((Around, always, False), (Around, named, True), (AroundAsync, always, True)):
        hook = kind(ToolResultOffloadHook(InMemoryStorage(), strategies))
        agent, _ = agent_of([SEARCH], call(("search", {})), hooks=[hook], exit_conditions=["search"])

        answer = await run(agent, "async")

        assert (answer["last_message"].tool_call_result.result == LONG) is stays


# Other hooks, and errors that are not ours.


class Interrupt(BaseException):
    """What a framework raises to stop a run."""


@RUNS
async def test_control_flow_exceptions_propagate(mode: str) -> None:
    class Stopping(OffloadPolicy):
        def should_offload(self, tool_name: str, result: str, state: State) -> bool:
            raise Interrupt

    agent, _ = agent_of(
        [SEARCH], call(("search", {})), say(), hook=ToolResultOffloadHook(InMemoryStorage(), {"*": Stopping()})
    )

    with pytest.raises(Interrupt):
        await run(agent, mode)


@RUNS
async def test_an_error_of_a_tool_is_raised_if_the_agent_raises_errors(mode: str) -> None:
    agent, _ = agent_of(
        [tool("bad", ValueError("broken"))],
        call(("bad", {})),
        say(),
        hook=ToolResultOffloadHook(InMemoryStorage()),
        raise_on_tool_invocation_failure=True,
    )

    with pytest.raises(Exception, match="broken"):
        await run(agent, mode)


@RUNS
async def test_the_next_hook_runs_and_sees_the_placeholder(mode: str) -> None:
    seen: list[str] = []

    class Listening:
        def run(self, state: State) -> None:
            seen.append(text_of(last(state)))

    hook = ToolResultOffloadHook(InMemoryStorage())
    agent, _ = agent_of([SEARCH], call(("search", {})), say(), hooks=[hook, Listening()])

    await run(agent, mode)

    assert [text.startswith(OPENING) for text in seen] == [True]


@RUNS
async def test_two_of_our_hooks_offload_a_result_once(mode: str) -> None:
    first, second = (ToolResultOffloadHook(InMemoryStorage(), {"*": AlwaysOffload()}) for _ in range(2))
    agent, _ = agent_of([SEARCH], call(("search", {})), say(), hooks=[first, second])

    await run(agent, mode)

    assert (first.offloader.stats().offloaded, second.offloader.stats().offloaded) == (1, 0)


@RUNS
async def test_outputs_to_state_keep_the_whole_result(mode: str) -> None:
    def give() -> dict[str, str]:
        return {"rows": LONG}

    keeping = Tool("search", "Searches.", NO_ARGUMENTS, function=give, outputs_to_state={"rows": {"source": "rows"}})
    hook = ToolResultOffloadHook(InMemoryStorage())
    agent, _ = agent_of([keeping], call(("search", {})), say(), hook=hook, state_schema={"rows": {"type": str}})

    answer = await run(agent, mode)

    assert answer["rows"] == LONG
    assert text_of(results(answer["messages"])[0]).startswith(OPENING)


def test_a_failing_write_back_leaves_the_raw_result(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    state = state_of(LONG)

    def refuse(*_: Any, **__: Any) -> None:
        msg = "read only"
        raise ValueError(msg)

    monkeypatch.setattr(State, "set", refuse)
    with caplog.at_level(logging.WARNING):
        ToolResultOffloadHook(InMemoryStorage()).run(state)

    assert last(state).result == LONG
    assert "it is kept" in caplog.text


def test_one_hook_serves_many_threads(tmp_path: Path) -> None:
    hook = ToolResultOffloadHook(FileStorage(tmp_path))
    found: dict[int, str] = {}

    def one(number: int) -> None:
        agent, _ = agent_of([tool("search", f"{number}\n{LONG}")], call(("search", {})), say(), hook=hook)
        messages = agent.run(messages=[ChatMessage.from_user("x")])["messages"]
        found[number] = offloaded_references(tool_messages(messages)[0])[0]

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    loaded = {number: Offloader(FileStorage(tmp_path)).load(reference).text for number, reference in found.items()}
    assert loaded == {number: f"{number}\n{LONG}" for number in range(8)}
