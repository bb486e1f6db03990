"""Agents of other frameworks as clients of the proxy, each a process in an environment without coatcheck.

An agent gets the URL of a scripted model, and the command or URL of a server. It knows nothing about the proxy.
"""

# ruff: noqa: ANN401 - answers are any JSON

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn
from anyio.abc import UNIXSocketStream
from mcp.server.stdio import stdio_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from anyio.abc import SocketStream
    from mcp.server import Server
    from starlette.applications import Starlette

__all__ = ("ENVIRONMENTS", "TOKEN", "ForeignAgent", "Job", "serving_on_a_port", "serving_on_pipes")

FOLDER = Path(__file__).parent

ENVIRONMENTS = Path(os.environ.get("COATCHECK_MCP_CLIENTS", ""))
"""Where the nox session installed the frameworks, each in its own environment."""

TOKEN = "the-token"  # noqa: S105 - a test's

Job = dict[str, Any]
"""What an agent is asked to do. ``model`` is the URL of the scripted model. ``server`` is ``{"command": [...]}`` or
``{"url": ..., "headers": ...}``. ``kept`` lists tool names. ``cancelled`` maps a tool's name to what the host says in
its place, and ``final`` to the ``text`` and ``model`` of the answer that the tool gives to the user. ``is_async``."""


class ForeignAgent:
    """A process that runs one conversation after another."""

    def __init__(self, framework: str) -> None:
        """Start the framework's agent from ``agents``, in the environment named after the framework."""
        command: list[str | Path] = [ENVIRONMENTS / framework / "bin/python", FOLDER / "agents/serve.py", framework]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, job: Job) -> Any:
        """Run a job, and return the answer to the user if a tool gave one.

        Raises:
            RuntimeError: the agent failed.

        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        nothing: Job = {"is_async": True, "kept": [], "cancelled": {}, "final": {}}
        self._process.stdin.write(json.dumps({**nothing, **job}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "the process ended"}')
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["answer"]

    def end(self) -> None:
        """Close stdin, and wait for the process to end."""
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()


@asynccontextmanager
async def serving_on_pipes(front: Server[Any]) -> AsyncIterator[Mapping[str, Any]]:
    """Serve clients that start a command. This process answers, over the pipes that they made for that command."""

    async def serve(stream: SocketStream) -> None:
        assert isinstance(stream, UNIXSocketStream)
        async with stream:
            _, (reads, writes) = await stream.receive_fds(1, 2)
            with open(reads, encoding="utf-8") as stdin, open(writes, "w", encoding="utf-8") as stdout:  # noqa: ASYNC230, PTH123 - file descriptors
                async with stdio_server(anyio.wrap_file(stdin), anyio.wrap_file(stdout)) as streams:
                    await front.run(streams[0], streams[1], front.create_initialization_options())

    with TemporaryDirectory() as folder:
        path = f"{folder}/socket"
        async with await anyio.create_unix_listener(path) as listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, serve)
            yield {"command": [sys.executable, "-S", str(FOLDER / "pipes.py"), path]}
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def serving_on_a_port(app_on: Callable[[int], Starlette]) -> AsyncIterator[Mapping[str, Any]]:
    """Serve HTTP clients on a free port, with the application that ``app_on`` returns for it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = uvicorn.Server(uvicorn.Config(app_on(port), log_level="error", timeout_graceful_shutdown=1))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server._serve, [listener])
            while not server.started:
                await anyio.lowlevel.checkpoint()
            yield {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"Authorization": f"Bearer {TOKEN}"}}
            server.should_exit = True
