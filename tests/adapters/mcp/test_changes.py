"""Changes that a modern server announces while the stream for them is opened again: the client hears of them."""

# ruff: noqa: ANN401 - what the protocol and the library pass is of any type

from __future__ import annotations

import socket
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.subscriptions import PromptsListChanged, ResourceUpdated, ToolsListChanged

from coatcheck_mcp import url_upstream
from tests.adapters.mcp.servers import Everything, client_of
from tests.adapters.mcp.test_http import cutting, serving

if TYPE_CHECKING:
    import pytest

URI = "file:///a"


async def test_a_resource_may_have_changed_while_the_stream_was_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coatcheck_mcp.http_transport._LONGEST_PAUSE", 0.0)
    monkeypatch.setattr("coatcheck_mcp.changes._MAX_UNTOLD", 1)  # less than what may have changed
    server, heard, cuts = Everything(), set[Any](), list[bool]()

    async def ends() -> bool:
        if subscribed.is_set():
            cuts.append(True)
        return len(cuts) < 3

    subscribed = anyio.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    with anyio.fail_after(60):
        async with (
            serving(cutting(server.server.streamable_http_app(), ends), listener),
            client_of(url_upstream(url), mode="auto") as client,
            client.listen(tools_list_changed=True, resource_subscriptions=[URI]) as events,
        ):
            subscribed.set()
            while len(heard) < 2:
                heard.add(await anext(aiter(events)))
    assert heard == {ToolsListChanged(), ResourceUpdated(uri=URI)}


async def test_a_server_may_serve_one_stream_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coatcheck_mcp.changes.OPEN_SECONDS", 0.1)
    server, free = Everything(), anyio.Semaphore(1)
    app = server.server.streamable_http_app()

    async def one_at_a_time(scope: Any, receive: Any, send: Any) -> None:
        is_stream = (b"mcp-method", b"subscriptions/listen") in scope.get("headers", ())
        async with free if is_stream else nullcontext():
            await app(scope, receive, send)

    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    with anyio.fail_after(60):
        async with (
            serving(one_at_a_time, listener),
            client_of(url_upstream(url), mode="auto") as client,
            client.listen(resource_subscriptions=[URI]) as first,
            client.listen(resource_subscriptions=["file:///b"]) as second,
        ):
            for uri, events in ((URI, first), ("file:///b", second)):
                await _update(server, client, uri=uri, events=events)


async def _update(server: Everything, client: Any, *, uri: str, events: Any) -> None:
    """Let a resource change until the client hears of it: the proxy opens its stream when it likes."""

    async def publish() -> None:
        while True:
            await server.bus.publish(ResourceUpdated(uri=uri))
            await client.list_prompts()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish)
        assert await anext(aiter(events)) == ResourceUpdated(uri=uri)
        tasks.cancel_scope.cancel()


async def test_what_changes_while_a_stream_about_more_resources_is_opened_is_told_once() -> None:
    server, holds, asked, goes_on = Everything(), False, anyio.Event(), anyio.Event()
    app = server.server.streamable_http_app()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        if holds and (b"mcp-method", b"subscriptions/listen") in scope.get("headers", ()):
            asked.set()
            await goes_on.wait()
        await app(scope, receive, send)

    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    with anyio.fail_after(60):
        async with (
            serving(slow, listener),
            client_of(url_upstream(url), mode="auto") as client,
            client.listen(tools_list_changed=True, prompts_list_changed=True) as lists,
            client.listen(resource_subscriptions=[URI]) as first,
        ):
            await _update(server, client, uri=URI, events=first)
            holds = True
            async with client.listen(resource_subscriptions=["file:///b"]) as second:
                await asked.wait()
                await server.bus.publish(ToolsListChanged())
                assert await anext(aiter(lists)) == ToolsListChanged()
                goes_on.set()
                await _update(server, client, uri="file:///b", events=second)
                await server.bus.publish(PromptsListChanged())
                assert await anext(aiter(lists)) == PromptsListChanged()
