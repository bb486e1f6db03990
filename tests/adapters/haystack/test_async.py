"""Async runs under blockbuster, which fails any call that would block the event loop."""

from __future__ import annotations

import asyncio
import base64
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import BlockBuster
from haystack.dataclasses import ChatMessage, ImageContent, TextContent
from haystack.tools.tool import Tool

from coatcheck import FileStorage, Offloader
from coatcheck_haystack import (
    AlwaysOffload,
    FileSystemToolResultStore,
    OffloadPolicy,
    RetrievalTool,
    ToolResultOffloadHook,
    hook,
)
from coatcheck_haystack.convert import blocks_of
from tests.adapters.haystack.agents import (
    LONG,
    NO_ARGUMENTS,
    OPENING,
    agent_of,
    call,
    read,
    results,
    run,
    say,
    state_of,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from haystack.components.agents.state import State

    from coatcheck import Block

BIG_MEDIUM = base64.b64encode(bytes(range(256)) * 8_000).decode()


class Sleeping(OffloadPolicy):
    """A policy that stands for a slow service. Its sleep takes no time, but blockbuster catches it."""

    def should_offload(self, tool_name: str, result: str, state: State) -> bool:
        time.sleep(0)
        return True


async def give_rows() -> str:
    return LONG * 10


async def give_picture() -> list[Any]:
    return [TextContent(LONG), ImageContent(BIG_MEDIUM, mime_type="image/png", validation=False)]


SEARCH = Tool("search", "Searches.", NO_ARGUMENTS, async_function=give_rows)
PICTURE = Tool("picture", "Shows.", NO_ARGUMENTS, async_function=give_picture, outputs_to_string={"raw_result": True})
TURN = call(("search", {}), ("picture", {}), ("search", {}))


@pytest.fixture
def blockbuster() -> Iterator[BlockBuster]:
    """Fail every blocking call that our code or the core's makes on the event loop."""
    guard = BlockBuster(scanned_modules=["coatcheck", "coatcheck_haystack", "tests.adapters.haystack"])
    guard.activate()
    yield guard
    guard.deactivate()


HOOKS: dict[str, Callable[[Path], ToolResultOffloadHook]] = {
    "files": lambda root: ToolResultOffloadHook(FileStorage(root)),
    "ready offloader": lambda root: ToolResultOffloadHook(Offloader(FileStorage(root))),
    "store": lambda root: ToolResultOffloadHook(FileSystemToolResultStore(root), {"*": AlwaysOffload()}),
    "slow policy": lambda root: ToolResultOffloadHook(FileSystemToolResultStore(root), {"*": Sleeping()}),
}


@pytest.mark.parametrize("name", HOOKS)
async def test_no_async_path_blocks_the_loop(name: str, tmp_path: Path, blockbuster: BlockBuster) -> None:
    hook = HOOKS[name](tmp_path)
    reader = RetrievalTool(hook, native_media=True)
    agent, _ = agent_of(
        [SEARCH, PICTURE, reader], TURN, read(pattern="row 1999:"), read(), say("done"), hook=hook, reads=False
    )

    answer = await run(agent, "async")

    found = results(answer["messages"])
    assert all(text_of(result).startswith(OPENING) for result in found[:3])
    assert "row 1999:" in text_of(found[3])
    assert not any(result.error for result in found)


@pytest.mark.parametrize("name", HOOKS)
async def test_blockbuster_catches_what_would_block(
    name: str, tmp_path: Path, blockbuster: BlockBuster, caplog: pytest.LogCaptureFixture
) -> None:
    HOOKS[name](tmp_path).run(state_of(LONG))

    assert "BlockingError" in caplog.text


async def test_media_are_decoded_off_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[int] = []

    def noting(content: object) -> tuple[Block, ...]:
        threads.append(threading.get_ident())
        return blocks_of(content)

    monkeypatch.setattr(hook, "blocks_of", noting)
    await ToolResultOffloadHook(FileStorage(tmp_path)).run_async(state_of(await give_picture()))

    assert len(threads) == 1
    assert threads != [threading.get_ident()]


async def test_many_agents_at_once_share_one_hook(tmp_path: Path, blockbuster: BlockBuster) -> None:
    hook = ToolResultOffloadHook(FileStorage(tmp_path))
    agents = [agent_of([SEARCH], call(("search", {})), say(), hook=hook)[0] for _ in range(16)]

    answers = await asyncio.gather(*(run(agent, "async") for agent in agents))

    assert all(text_of(results(answer["messages"])[0]).startswith(OPENING) for answer in answers)
    assert hook.offloader.stats().offloaded == 16


def test_a_hook_outlives_an_event_loop(tmp_path: Path) -> None:
    hook = ToolResultOffloadHook(FileStorage(tmp_path))
    agent, _ = agent_of([SEARCH], *(call(("search", {})), read(pattern="row 7:"), say()) * 3, hook=hook)

    for _ in range(3):
        found = results(asyncio.run(agent.run_async(messages=[ChatMessage.from_user("x")]))["messages"])
        assert text_of(found[0]).startswith(OPENING)
        assert "row 7:" in text_of(found[1])
