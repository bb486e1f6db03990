"""Who reads whose content: users, sessions, agents as tools; a reference from another scope is unknown."""

# ruff: noqa: ANN401 - what ADK passes is of any type

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from google.genai.types import Content, FunctionResponse, Part

import coatcheck
from coatcheck import RETRIEVAL_TOOL, keep_references
from coatcheck.testing.scripting import shown_references
from coatcheck_adk import OffloadPlugin, hook
from tests.adapters.google_adk.agents import CONVERSATION, SESSION, USER, Returning, returning, run
from tests.adapters.scripts import BIG, MIDDLE, call, reading

if TYPE_CHECKING:
    from tests.contract.gemini import GeminiServer

WANTED: dict[str, Any] = {"pattern": "line 1,000 "}
OTHER = returning("", "other")
NOBODY = {"user": "debug_user_id", "session": "debug_session_id"}


async def stored_and_read(
    server: GeminiServer, plugin: OffloadPlugin, *, then: dict[str, Any], **more: Any
) -> tuple[str, str]:
    """Return the reference that one run stored, and what a second run with other options reads with it."""
    first = await run(server, plugin, [returning(BIG)], call(), **more)
    reference = shown_references(first.shown[-1][0])[0]
    second = await run(server, plugin, [OTHER], [(RETRIEVAL_TOOL, {"reference": reference, **WANTED})], **then)
    return reference, second.shown[-1][0]


async def test_the_app_the_user_and_the_session_are_the_scope(server: GeminiServer) -> None:
    plugin = OffloadPlugin()

    reference, found = await stored_and_read(server, plugin, then={})

    assert MIDDLE in found
    assert plugin.offloader.load(reference, scope=CONVERSATION).text == BIG


async def test_a_background_task_of_a_tool_stores_in_the_session_of_its_own_run(server: GeminiServer) -> None:
    plugin, ended, workers = OffloadPlugin(), asyncio.Event(), []

    async def work() -> None:
        await ended.wait()
        await run(server, plugin, [returning(BIG)], call(), session="later")

    class Starting(Returning):
        async def run_async(self, **_: Any) -> str:
            workers.append(asyncio.create_task(work()))
            return "started"

    await run(server, plugin, [Starting("")], call())
    ended.set()
    await asyncio.gather(*workers)

    assert not (await plugin.offloader.alist(scope=CONVERSATION)).contents
    assert (await plugin.offloader.alist(scope=(*CONVERSATION[:2], "later"))).contents


async def test_runs_that_each_begin_in_a_tool_of_the_one_before_keep_only_that_one(server: GeminiServer) -> None:
    plugin, runs, kept = OffloadPlugin(), list[asyncio.Task[Any]](), list[Any]()
    begun = [asyncio.Event() for _ in range(8)]

    class Starting(Returning):
        async def run_async(self, **_: Any) -> str:
            begun[len(kept)].set()
            kept.append(hook._running.get())
            if len(kept) < len(begun):
                following = begun[len(kept)]
                runs.append(asyncio.create_task(run(server, plugin, [Starting("")], call())))
                await following.wait()  # its call begins before this one has ended
            return "started"

    await run(server, plugin, [Starting("")], call())
    while runs:
        await runs.pop()

    around, within = 0, kept[-1].within
    while within is not None:
        around, within = around + 1, within.within
    assert around < 4


async def test_keep_references_finds_the_references_in_a_session(server: GeminiServer) -> None:
    script = await run(server, OffloadPlugin(), [returning(BIG)], call())
    placeholder = script.shown[-1][0]
    response = FunctionResponse(name="fetch", response={"result": placeholder})

    line = keep_references([Content(parts=[Part(text="Look:"), Part(function_response=response)])])

    assert shown_references(placeholder)[0] in line


@pytest.mark.parametrize("then", [{"session": "session-2"}, {"user": "bob"}, {"app": "other"}], ids=repr)
async def test_another_session_user_or_app_reads_nothing(server: GeminiServer, then: dict[str, Any]) -> None:
    _, found = await stored_and_read(server, OffloadPlugin(), then=then)

    assert found.startswith("reference not found")


async def test_a_session_with_the_same_name_lists_nothing_of_another_user(server: GeminiServer) -> None:
    plugin = OffloadPlugin()
    await run(server, plugin, [returning(BIG)], call(), user="ada")

    script = await run(server, plugin, [OTHER], [(RETRIEVAL_TOOL, {"reference": "*"})], user="bob")

    assert "Nothing is stored" in script.shown[-1][0]


async def test_a_scope_callable_gets_the_context_of_the_tool(server: GeminiServer) -> None:
    plugin = OffloadPlugin(scope=lambda context: (context.session.app_name, context.session.user_id))

    reference, found = await stored_and_read(server, plugin, then={"session": "session-2"})

    assert MIDDLE in found
    assert plugin.offloader.load(reference, scope=CONVERSATION[:2]).text == BIG


async def test_the_ambient_scope_takes_precedence_over_the_session(server: GeminiServer) -> None:
    plugin = OffloadPlugin()

    with coatcheck.scope("tenant-7"):
        script = await run(server, plugin, [returning(BIG)], call(), reading(**WANTED))

    assert MIDDLE in script.shown[-1][1]
    assert plugin.offloader.load(shown_references(script.shown[-1][0])[0], scope="tenant-7").text == BIG


async def test_the_session_that_all_debug_runs_share_is_not_used_as_a_scope(server: GeminiServer) -> None:
    plugin = OffloadPlugin()

    reference, found = await stored_and_read(server, plugin, then=NOBODY, **NOBODY)

    assert MIDDLE in found
    assert plugin.offloader.load(reference, scope="default").text == BIG


async def test_a_user_without_a_name_stores_in_the_default_scope(server: GeminiServer) -> None:
    plugin = OffloadPlugin()

    reference, found = await stored_and_read(server, plugin, then={"user": ""}, user="")

    assert MIDDLE in found
    assert plugin.offloader.load(reference, scope="default").text == BIG


async def test_successive_runs_in_one_task_have_their_own_scopes(server: GeminiServer) -> None:
    plugin = OffloadPlugin()

    first = await run(server, plugin, [returning(BIG)], call(), session="session-1")
    second = await run(server, plugin, [returning(BIG)], call(), session="session-2")

    for number, script in enumerate((first, second), 1):
        (reference,) = shown_references(script.shown[-1][0])
        assert plugin.offloader.load(reference, scope=("app", USER, f"session-{number}")).text == BIG


async def test_a_failing_scope_callable_reads_nothing_and_the_agent_goes_on(server: GeminiServer) -> None:
    plugin = OffloadPlugin(scope=lambda context: context.session.state["tenant"])
    read = [(RETRIEVAL_TOOL, {"reference": "fetch-0123456789abcdef-0123"})]

    script = await run(server, plugin, [returning(BIG)], call(), read, session=SESSION)

    assert script.shown[-1][0] == BIG
    assert "internal error" in script.shown[-1][1]
