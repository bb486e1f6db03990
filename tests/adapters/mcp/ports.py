"""Applications on ports of this machine, for as long as a block runs."""

# ruff: noqa: ANN401 - applications are of any type

from __future__ import annotations

import socket
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


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
    """Return a listener on a port that nobody else has."""
    return socket.create_server(("127.0.0.1", 0))


def url_of(listener: socket.socket) -> str:
    """Return the address of the MCP server behind a listener."""
    return f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"


@asynccontextmanager
async def at_url(app: Any) -> AsyncIterator[str]:
    """Serve an application on a port of its own, and yield the address of its MCP server."""
    listener = any_port()
    async with serving(app, listener):
        yield url_of(listener)
