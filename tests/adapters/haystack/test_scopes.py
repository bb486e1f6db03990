"""Where the scope comes from: argument, ambient scope, the run's ``hook_context``, default; and sub-agents."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from haystack.tools import AgentTool

import coatcheck
from coatcheck import InMemoryStorage, Offloader, ReferenceNotFound, scopes
from coatcheck_haystack import (
    SCOPE_CONTEXT_KEY,
    AlwaysOffload,
    NeverOffload,
    RetrievalTool,
    ToolResultOffloadHook,
    offloaded_references,
)
from tests.adapters.haystack.agents import (
    LONG,
    OPENING,
    agent_of,
    call,
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
    from haystack.dataclasses import ChatMessage

    from coatcheck import Scope

RUNS = pytest.mark.parametrize("mode", ["sync", "async"])
SEARCH = tool("search", LONG)


async def found_in(hook: ToolResultOffloadHook, scope: Scope, mode: str, **kwargs: Any) -> bool:
    """Run an agent that offloads and reads back; return whether the content went into ``scope``."""
    agent, _ = agent_of([SEARCH], call(("search", {})), read(pattern="row 7:"), say(), hook=hook)
    messages = tool_messages((await run(agent, mode, **kwargs))["messages"])
    assert "row 7:" in text_of(messages[1].tool_call_result)  # type: ignore[arg-type]
    try:
        hook.offloader.load(offloaded_references(messages[0])[0], scope=scope)
    except ReferenceNotFound:
        return False
    return True


@RUNS
async def test_the_argument_takes_precedence_over_all_else(mode: str) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage(), scope="argument")

    with coatcheck.scope("ambient"):
        assert await found_in(hook, "argument", mode, hook_context={SCOPE_CONTEXT_KEY: "context"})


@RUNS
async def test_a_scope_callable_gets_the_state(mode: str) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage(), scope=lambda state: state.data["hook_context"]["user"].upper())

    assert await found_in(hook, "ADA", mode, hook_context={"user": "ada"})


@RUNS
async def test_a_scope_callable_that_returns_none_leaves_the_scope_to_the_next_source(mode: str) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage(), scope=lambda _: None)

    assert await found_in(hook, "context", mode, hook_context={SCOPE_CONTEXT_KEY: "context"})


@RUNS
async def test_the_ambient_scope_takes_precedence_over_the_runs_context(mode: str) -> None:
    with coatcheck.scope("ambient"):
        assert await found_in(
            ToolResultOffloadHook(InMemoryStorage()), "ambient", mode, hook_context={SCOPE_CONTEXT_KEY: "context"}
        )


@RUNS
@pytest.mark.parametrize(("context", "scope"), [({SCOPE_CONTEXT_KEY: "context"}, "context"), (None, "default")])
async def test_without_argument_and_ambient_scope_the_scope_is_the_runs_context_or_else_the_default(
    mode: str, context: dict[str, Any] | None, scope: str
) -> None:
    assert await found_in(ToolResultOffloadHook(InMemoryStorage()), scope, mode, hook_context=context)


@RUNS
@pytest.mark.parametrize("parts", [("tenant-7", "thread-3"), ["tenant-7", "thread-3"]])
async def test_the_runs_context_may_give_the_parts_as_a_tuple_or_a_list(mode: str, parts: Any) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage())

    assert await found_in(hook, ("tenant-7", "thread-3"), mode, hook_context={SCOPE_CONTEXT_KEY: parts})
    assert hook.offloader.delete_scopes(under=("tenant-7",)) == 1


@RUNS
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "scope must be a str of 1 to 4,096 characters or a tuple of 1 to 8 of them, not ''"),
        (7, "scope must be a str of 1 to 4,096 characters or a tuple of 1 to 8 of them, not 7"),
        (["tenant-7", 3], "each part of scope must be a str of 1 to 4,096 characters, not 3"),
    ],
)
async def test_an_invalid_scope_is_refused_in_the_runs_context_too(
    mode: str, given: Any, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage())
    agent, _ = agent_of([SEARCH], call(("search", {})), say(), hook=hook)

    (result,) = results((await run(agent, mode, hook_context={SCOPE_CONTEXT_KEY: given}))["messages"])

    assert result.result == LONG
    assert words in caplog.text


@RUNS
async def test_a_required_scope_stores_nothing_in_the_default_one(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage(), require_scope=True)
    agent, _ = agent_of([SEARCH], call(("search", {})), say(), call(("search", {})), say(), hook=hook)

    without = results((await run(agent, mode))["messages"])[0]
    assert without.result == LONG
    assert "no scope: require_scope=True" in caplog.text

    given = results((await run(agent, mode, hook_context={SCOPE_CONTEXT_KEY: "a"}))["messages"])[0]
    assert text_of(given).startswith(OPENING)


@RUNS
async def test_a_failing_scope_callable_leaves_the_result(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    hook = ToolResultOffloadHook(InMemoryStorage(), scope=lambda state: state.data["no such key"])
    agent, _ = agent_of([SEARCH], call(("search", {})), say("done"), hook=hook)

    answer = await run(agent, mode)

    assert results(answer["messages"])[0].result == LONG
    assert answer["last_message"].text == "done"
    assert "KeyError" in caplog.text


async def test_concurrent_runs_keep_to_their_own_scopes_and_stores() -> None:
    hook = ToolResultOffloadHook(InMemoryStorage())
    stores = [InMemoryStorage() for _ in range(8)]

    async def one(number: int, store: InMemoryStorage) -> str:
        agent, _ = agent_of([SEARCH], call(("search", {})), read(pattern="row 7:"), say(), hook=hook)
        context = {SCOPE_CONTEXT_KEY: f"user-{number}", "tool_result_store": store}
        messages = tool_messages((await run(agent, "async", hook_context=context))["messages"])
        assert "row 7:" in text_of(messages[1].tool_call_result)  # type: ignore[arg-type]
        return offloaded_references(messages[0])[0]

    references = await asyncio.gather(*(one(number, store) for number, store in enumerate(stores)))

    assert len(set(references)) == 8
    for number, (reference, store) in enumerate(zip(references, stores, strict=True)):
        assert Offloader(store).load(reference, scope=f"user-{number}").text == LONG
        with pytest.raises(ReferenceNotFound):
            Offloader(store).load(reference, scope=f"user-{number + 1}")


@RUNS
async def test_a_run_may_bring_a_ready_offloader(mode: str) -> None:
    own = Offloader(InMemoryStorage(), max_result_tokens=40_000)
    hook = ToolResultOffloadHook(Offloader(InMemoryStorage()))
    agent, _ = agent_of([SEARCH], call(("search", {})), say(), hook=hook)

    messages = (await run(agent, mode, hook_context={"tool_result_store": own}))["messages"]

    assert results(messages)[0].result == LONG


@RUNS
async def test_a_store_of_the_run_next_to_a_ready_offloader_is_refused_and_the_result_stays(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    agent, _ = agent_of([SEARCH], call(("search", {})), say(), hook=ToolResultOffloadHook(Offloader()))

    messages = (await run(agent, mode, hook_context={"tool_result_store": InMemoryStorage()}))["messages"]

    assert results(messages)[0].result == LONG
    assert "put an Offloader into hook_context['tool_result_store']" in caplog.text


@RUNS
@pytest.mark.parametrize("store", [None, "./results"])
async def test_a_run_with_an_invalid_store_stores_nothing_in_the_store_of_the_hook(
    mode: str, store: object, caplog: pytest.LogCaptureFixture
) -> None:
    shared = InMemoryStorage()
    agent, _ = agent_of([SEARCH], call(("search", {})), say(), hook=ToolResultOffloadHook(shared))

    messages = (await run(agent, mode, hook_context={"tool_result_store": store}))["messages"]

    assert results(messages)[0].result == LONG
    assert f"read(reference), as FileSystemToolResultStore('./tool_results') has, not {store!r}" in caplog.text
    assert list(shared.entries("")) == []


# Sub-agents. Haystack gives them an empty ``hook_context``.


@RUNS
@pytest.mark.parametrize("way", ["ambient", "argument", "context"])
async def test_a_sub_agents_scope_comes_from_every_source_but_the_parents_context(mode: str, way: str) -> None:
    storage = InMemoryStorage()
    scope = "mine" if way == "argument" else None
    inner_hook = ToolResultOffloadHook(storage, scope=scope)
    inner, _ = agent_of([SEARCH], call(("search", {})), _quoting, hook=inner_hook, reads=False)
    outer_hook = ToolResultOffloadHook(storage, {"*": NeverOffload()}, scope=scope)
    helper = AgentTool(agent=inner, name="helper", description="Helps.")
    agent, _ = agent_of([helper], call(("helper", {"messages": _QUESTION})), _reading, say(), hook=outer_hook)

    if way == "ambient":
        with coatcheck.scope("mine"):
            answer = await run(agent, mode)
    else:
        answer = await run(agent, mode, hook_context={SCOPE_CONTEXT_KEY: "mine"})

    _, page = results(answer["messages"])
    assert ("row 7:" in text_of(page)) is (way != "context")
    assert ("call again" in text_of(page)) is (way == "context")


@RUNS
async def test_a_sub_agents_placeholder_is_not_offloaded_again(mode: str) -> None:
    storage = InMemoryStorage()
    inner, _ = agent_of([SEARCH], call(("search", {})), _quoting, hook=ToolResultOffloadHook(storage), reads=False)
    helper = AgentTool(agent=inner, name="helper", description="Helps.")
    outer_hook = ToolResultOffloadHook(storage, {"*": AlwaysOffload()})
    agent, _ = agent_of([helper], call(("helper", {"messages": _QUESTION})), say(), hook=outer_hook)

    (result,) = results((await run(agent, mode))["messages"])

    assert text_of(result).startswith(OPENING)
    assert "search-" in text_of(result)
    assert "helper-" not in text_of(result)


_QUESTION = [{"role": "user", "content": [{"text": "go"}]}]


def _quoting(messages: list[ChatMessage]) -> ChatMessage:
    """Answer with the tool's result itself, as a careless sub-agent would."""
    return say(text_of(results(messages)[-1]))


def _reading(messages: list[ChatMessage]) -> ChatMessage:
    """Read the reference that the sub-agent's answer quotes."""
    quoted = text_of(results(messages)[-1])
    reference = next(word for word in quoted.split() if word.startswith("search-"))
    return call((RetrievalTool(InMemoryStorage()).name, {"reference": reference, "pattern": "row 7:"}))


def test_the_runs_context_is_not_copied() -> None:
    class Uncopyable:
        def __deepcopy__(self, memo: object) -> Any:
            msg = "a client cannot be copied"
            raise TypeError(msg)

    state = state_of(LONG, hook_context={"client": Uncopyable(), SCOPE_CONTEXT_KEY: "a"})
    hook = ToolResultOffloadHook(InMemoryStorage())

    hook.run(state)

    (reference,) = offloaded_references(state.data["messages"][-1])
    assert "row 7:" in RetrievalTool(hook).invoke(state=state, reference=reference, pattern="row 7:")


@RUNS
async def test_a_run_without_a_scope_logs_one_warning_and_a_context_with_one_logs_none(
    mode: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(scopes, "_unwarned", [True])
    hook = ToolResultOffloadHook(InMemoryStorage())

    assert await found_in(hook, "a", mode, hook_context={SCOPE_CONTEXT_KEY: "a"})
    quiet = [message for message in caplog.messages if "no scope" in message]
    for _ in range(2):
        assert await found_in(hook, "default", mode)

    assert quiet == []
    assert sum("hook_context" in message for message in caplog.messages) == 1
