"""Servers and proxies on ports of this machine for the duration of a block, and their clients."""

# ruff: noqa: ANN401 - applications are of any type

from __future__ import annotations

import os
import socket
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from coatcheck import InMemoryStorage
from coatcheck_mcp import Proxy
from coatcheck_mcp.serving import http_app
from tests.adapters.mcp.processes import PATIENCE

if TYPE_CHECKING:
    import subprocess
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from tests.adapters.mcp.servers import Everything

TOKEN = "the-token"  # noqa: S105 - a test's


@asynccontextmanager
async def serving(app: Any, listener: socket.socket) -> AsyncIterator[uvicorn.Server]:
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1, timeout_keep_alive=60)
    server = uvicorn.Server(config)
    with listener:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server._serve, [listener])
            while not server.started:
                await anyio.lowlevel.checkpoint()
            yield server
            server.should_exit = True


def any_port() -> socket.socket:
    """Return a listener on a free port."""
    return socket.create_server(("127.0.0.1", 0))


def url_of(listener: socket.socket) -> str:
    """Return the URL of the MCP server behind a listener."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"


@asynccontextmanager
async def at_url(app: Any) -> AsyncIterator[str]:
    """Serve an application on a port of its own, and yield the URL of its MCP server."""
    listener = any_port()
    async with serving(app, listener):
        yield url_of(listener)


@asynccontextmanager
async def front_of(server: Everything) -> AsyncIterator[str]:
    """Serve a proxy of a server on a port of its own, and yield its URL."""
    listener, proxy = any_port(), Proxy(server.upstream(), InMemoryStorage())
    app = http_app(proxy, port=listener.getsockname()[1], token=TOKEN)
    async with proxy.running(), serving(app, listener):
        yield url_of(listener)


@asynccontextmanager
async def client_at(url: str, mode: str = "legacy", **options: Any) -> AsyncIterator[Any]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=mode, **options) as client:
            yield client


def opens_stream(scope: Any) -> bool:
    """Return whether a request opens a stream of changes."""
    return (b"mcp-method", b"subscriptions/listen") in scope.get("headers", ())


def cutting(app: Any, ends: Callable[[], Awaitable[bool]]) -> Any:
    """Return a server that cuts a stream of changes after its acknowledgement whenever ``ends`` returns True."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        async with anyio.create_task_group() as tasks:

            async def sending(message: Any) -> None:
                await send(message)
                if opens_stream(scope) and message.get("body") and await ends():
                    tasks.cancel_scope.cancel()

            await app(scope, receive, sending)

    return serve


@contextmanager
def reserved_port() -> Iterator[int]:
    """Yield a port that a server may listen on. Programs that ask for any free port do not get it.

    Linux lets sockets share an address as long as only one of them listens.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


def wait_until_listening(process: subprocess.Popen[Any], port: int) -> None:
    while process.poll() is None:
        with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), PATIENCE):
            return
        os.sched_yield()
    pytest.fail("the proxy ended")
