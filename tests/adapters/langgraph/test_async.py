"""Async runs under blockbuster, which fails any call that would block the event loop."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from blockbuster import BlockBuster
from langchain_core.tools import tool

from coatcheck import FileStorage, Offloader
from coatcheck_langchain import OffloadMiddleware, offload_tool, offload_tool_calls, offload_tool_node, retrieval_tool
from tests.adapters.langchain.samples import BIG_MEDIUM, LONG, OPENING, text_of
from tests.adapters.langgraph.agents import agent_of, answers, call, graph_of, question, read, say, tool_node

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@tool
async def search(name: str) -> str:
    """Search for rows."""
    return name + LONG * 10


@tool
async def picture(name: str) -> Any:
    """Give a picture."""
    return [{"type": "text", "text": LONG}, {"type": "image", "base64": BIG_MEDIUM, "mime_type": "image/png"}]


@tool
async def table(name: str) -> Any:
    """Give a table."""
    return {"rows": [{"id": number, "name": name} for number in range(5_000)]}


@pytest.fixture
def blockbuster() -> Iterator[BlockBuster]:
    """Fail every blocking call that our code or the core's makes on the event loop."""
    guard = BlockBuster(scanned_modules=["coatcheck", "coatcheck_langchain"])
    guard.activate()
    yield guard
    guard.deactivate()


def middleware(offloader: Offloader, *turns: Any) -> Any:
    middleware = OffloadMiddleware(offloader, native_media=True)
    return agent_of([search, picture, table], *turns, middleware=[middleware])[0]


def calls(offloader: Offloader, *turns: Any) -> Any:
    tools = [search, picture, table, retrieval_tool(offloader, native_media=True)]
    return graph_of(tool_node(tools, **offload_tool_calls(offloader)), *turns)[0]


def node(offloader: Offloader, *turns: Any) -> Any:
    tools = [search, picture, table, retrieval_tool(offloader, native_media=True)]
    return graph_of(offload_tool_node(tool_node(tools), offloader), *turns)[0]


def single(offloader: Offloader, *turns: Any) -> Any:
    tools = [offload_tool(each, offloader) for each in (search, picture, table)]
    return graph_of(tool_node([*tools, retrieval_tool(offloader)]), *turns)[0]


TURN = call(*((name, {"name": f"{name} {number}"}) for number in range(4) for name in ("search", "picture", "table")))


@pytest.mark.parametrize("way", [middleware, calls, node, single])
async def test_no_async_path_blocks_the_loop(way: Any, tmp_path: Path, blockbuster: BlockBuster) -> None:
    turns = (TURN, say()) if way is single else (TURN, read(pattern="row 1999:"), read(), say())

    result = await way(Offloader(FileStorage(tmp_path)), *turns).ainvoke(question())

    messages = answers(result["messages"])
    assert all(text_of(message).startswith(OPENING) for message in messages[:12])
    assert all(message.status == "success" for message in messages)


async def test_many_agents_at_once_share_one_middleware(tmp_path: Path, blockbuster: BlockBuster) -> None:
    shared = OffloadMiddleware(FileStorage(tmp_path))
    agents = [agent_of([search], call(("search", {"name": f"{n}"})), say(), middleware=[shared])[0] for n in range(16)]

    results = await asyncio.gather(*(agent.ainvoke(question()) for agent in agents))

    assert all(text_of(answers(result["messages"])[0]).startswith(OPENING) for result in results)
    assert shared.offloader.stats().offloaded == 16


def test_a_middleware_outlives_an_event_loop(tmp_path: Path) -> None:
    shared = OffloadMiddleware(FileStorage(tmp_path))

    for number in range(2):
        agent, _ = agent_of([search], call(("search", {"name": f"{number}"})), say(), middleware=[shared])
        result = asyncio.run(agent.ainvoke(question()))
        assert text_of(answers(result["messages"])[0]).startswith(OPENING)
