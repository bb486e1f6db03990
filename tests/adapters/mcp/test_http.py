"""The proxy on a port of this machine, and a server behind a URL: who gets in, and that nothing hangs."""

# ruff: noqa: ANN401 - what the protocol and the library pass is of any type

from __future__ import annotations

import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
import uvicorn
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from coatcheck import RETRIEVAL_TOOL, InMemoryStorage
from coatcheck_mcp import Proxy, offloaded_references, url_upstream
from coatcheck_mcp.serving import http_app
from tests.adapters.mcp.servers import Everything, client_of
from tests.adapters.mcp.test_relays import WILLING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TOKEN = "the-token"  # noqa: S105 - a test's


@asynccontextmanager
async def serving(app: Any, listener: socket.socket) -> AsyncIterator[None]:
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    with listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server._serve, [listener])
            while not server.started:
                await anyio.lowlevel.checkpoint()
            yield
            server.should_exit = True


@pytest.fixture
def listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


@asynccontextmanager
async def front_of(server: Everything, listener: socket.socket) -> AsyncIterator[str]:
    port = listener.getsockname()[1]
    proxy = Proxy(server.upstream(), InMemoryStorage())
    async with proxy.running(), serving(http_app(proxy, port=port, token=TOKEN), listener):
        yield f"http://127.0.0.1:{port}/mcp"


@asynccontextmanager
async def client_at(url: str, mode: str = "legacy", **options: Any) -> AsyncIterator[Any]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, **options) as client:
            yield client


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_with_the_token_is_served(listener: socket.socket, mode: str) -> None:
    async with front_of(Everything(), listener) as url, client_at(url, mode) as client:
        (reference,) = offloaded_references(await client.call_tool("log"))
        back = await client.call_tool(RETRIEVAL_TOOL, {"reference": reference})
        assert "line 0 of a log" in back.content[0].text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer another"}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}, 421),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}, 403),
    ],
    ids=["no token", "another token", "another host", "a page's origin"],
)
async def test_nobody_else_gets_in(listener: socket.socket, headers: dict[str, str], status: int) -> None:
    accepts = {"Accept": "application/json, text/event-stream"}
    async with front_of(Everything(), listener) as url, httpx2.AsyncClient() as http:
        answer = await http.post(
            url, headers={**accepts, **headers}, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}
        )
    assert answer.status_code == status


@pytest.mark.parametrize(("name", "words"), [("sample", "a-model"), ("elicit", "who?"), ("roots", "file:///home/x")])
async def test_a_server_asks_a_client_on_a_port_as_on_stdio(listener: socket.socket, name: str, words: str) -> None:
    async with front_of(Everything(), listener) as url, client_at(url, **WILLING) as client:
        with anyio.fail_after(30):
            assert words in (await client.call_tool(name)).content[0].text


async def test_progress_and_logs_arrive_on_the_stream_of_the_call(listener: socket.socket) -> None:
    seen: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async def on_log(params: Any) -> None:
        seen.append(params.data)

    async with front_of(Everything(), listener) as url, client_at(url, logging_callback=on_log) as client:
        await client.call_tool("progress", progress_callback=on_progress)
        await client.call_tool("say")
    assert seen == [(1.0, 2.0, "half"), {"deep": [1]}]


async def test_two_clients_have_a_session_each_which_ends_with_theirs(listener: socket.socket) -> None:
    server = Everything()
    async with front_of(server, listener) as url, client_at(url) as one, client_at(url) as two:
        for client in (one, two, one):
            await client.call_tool("small")
    first, second, third = server.sessions
    assert first is third
    assert first is not second


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_server_behind_a_url_gets_the_headers(listener: socket.socket, mode: str) -> None:
    server, seen = Everything(), []
    app = server.server.streamable_http_app()

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            seen.append(dict(scope["headers"]).get(b"x-key"))
        await app(scope, receive, send)

    url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    async with serving(noting, listener), client_of(url_upstream(url, headers={"X-Key": "k"}), mode=mode) as client:
        assert (await client.call_tool("small")).content[0].text == "few"
        (reference,) = offloaded_references(await client.call_tool("endless"))
        assert (await client.call_tool(RETRIEVAL_TOOL, {"reference": reference})).content
    assert set(seen) == {b"k"}


async def test_a_url_where_nobody_answers_is_named_in_the_error() -> None:
    with socket.socket() as deaf:  # has a port, and listens to nobody
        deaf.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}/mcp"
        with pytest.RaisesGroup(pytest.RaisesExc(MCPError, match="could not start"), flatten_subgroups=True):
            async with client_of(url_upstream(url)):
                pass
