"""How the proxy and its sessions start and end: on systems without signals, with strict servers, and in the log."""

# ruff: noqa: ANN401 - what the protocol and the library pass is of any type

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import uvicorn
from mcp import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from coatcheck import InMemoryStorage
from coatcheck_mcp import Proxy, Upstream, command_upstream
from coatcheck_mcp import proxy as proxy_module
from coatcheck_mcp import stdio as stdio_module
from coatcheck_mcp.client import Client, Identified
from coatcheck_mcp.link import Link
from coatcheck_mcp.serving import serve_http, serve_stdio
from tests.adapters.mcp.processes import PATIENCE, TINY, wait_until_gone
from tests.adapters.mcp.servers import HELLO, Everything

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

LOGGING = """
import logging
from mcp.client import session, stdio
from mcp.server import runner
from coatcheck.cli.background_log import log_in_background

log_in_background()
for module, words in (
    (stdio, "Failed to parse a %s"), (runner, "handler for %r raised"), (session, "Failed to validate %s")
):
    try:
        raise KeyError("why")
    except KeyError:
        module.logger.exception(words, "line")
logging.shutdown()
"""
UNPRINTABLE = """
import logging
from coatcheck.cli.background_log import log_in_background

class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError

log_in_background()
logger = logging.getLogger("mcp.client.stdio")
logger.error("nothing was raised", exc_info=True)
logger.error("one of two: %s %s", "one")
try:
    raise Unprintable
except Unprintable:
    logger.exception("too few: %s %s", "one")
    logger.exception("ended")
logging.shutdown()
"""
NOTE = SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/message"))
OLD = "2024-11-05"
NO_VERSION = "Unsupported protocol version"
STRICT = f"""
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    answer = {{"error": {{"code": -32601, "message": "no such method"}}}}
    if message.get("method") == "initialize":
        version = message["params"]["protocolVersion"]
        answer = {{"error": {{"code": -32602, "message": "{NO_VERSION}"}}}}
        if version in sys.argv[1:]:
            info = {{"name": "strict", "version": "1"}}
            answer = {{"result": {{"protocolVersion": version, "capabilities": {{}}, "serverInfo": info}}}}
    if "id" in message:
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], **answer}}), flush=True)
"""


def link_with(upstream: Upstream) -> Link:
    who = Identified(key="", info=None, capabilities={}, modern=False, version=OLD)
    return Link(upstream, Client(who))


def strict(*versions: str) -> Link:
    return link_with(command_upstream([sys.executable, "-c", STRICT, *versions]))


class TestWithoutSignals:
    """The event loops of Windows cannot handle signals."""

    @pytest.fixture(autouse=True)
    def _deaf(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: Any) -> None:
            raise NotImplementedError

        monkeypatch.setattr(asyncio.SelectorEventLoop, "add_signal_handler", refuse)

    async def test_stdio_is_served(self, monkeypatch: pytest.MonkeyPatch) -> None:
        served: list[Proxy] = []

        async def serve(proxy: Proxy) -> None:
            served.append(proxy)

        monkeypatch.setattr(Proxy, "serve_stdio", serve)
        proxy = Proxy(Everything().upstream(), InMemoryStorage())
        await serve_stdio(proxy)
        assert served == [proxy]

    async def test_a_port_is_served_with_uvicorns_own_signal_handlers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert await server_of(monkeypatch) is uvicorn.Server


async def test_if_the_loop_handles_signals_uvicorn_handles_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await server_of(monkeypatch) is not uvicorn.Server


async def server_of(monkeypatch: pytest.MonkeyPatch) -> type[uvicorn.Server]:
    """Return the class of the server that serves the port. It ends at once."""
    served: list[type[uvicorn.Server]] = []

    async def serve(server: uvicorn.Server, _: Any) -> None:
        served.append(type(server))

    monkeypatch.setattr(uvicorn.Server, "serve", serve)
    with socket.create_server(("127.0.0.1", 0)) as listener, anyio.fail_after(PATIENCE):
        proxy = Proxy(Everything().upstream(), InMemoryStorage())
        await serve_http(proxy, listener=listener, token="t")  # noqa: S106 - a test's
    (found,) = served
    return found


@pytest.mark.parametrize("further", [0, 1, 2, 3])
async def test_a_client_that_leaves_during_a_start_is_noticed_despite_its_queued_messages(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, further: int
) -> None:
    monkeypatch.setattr(proxy_module, "LEFT_SECONDS", 0.1)
    os.mkfifo(tmp_path / "pid")  # a read blocks until it is written
    never_up = command_upstream([*TINY, "--never-up"], env={"PID_FILE": str(tmp_path / "pid")}, start_seconds=PATIENCE)
    to_proxy, reads = anyio.create_memory_object_stream[Any](0)
    writes, answers = anyio.create_memory_object_stream[Any](10)
    proxy = Proxy(never_up, InMemoryStorage())
    hello = JSONRPCRequest(jsonrpc="2.0", id=1, method="initialize", params=HELLO)
    with anyio.fail_after(60), answers:
        async with proxy.running(), anyio.create_task_group() as tasks:
            tasks.start_soon(proxy.serve_streams, reads, writes)
            async with to_proxy:
                await to_proxy.send(SessionMessage(hello))
                server = int(await anyio.to_thread.run_sync((tmp_path / "pid").read_text))
                for _ in range(further):
                    await to_proxy.send(NOTE)
    wait_until_gone(server)


async def test_an_error_that_comes_with_a_broken_pipe_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(error: Exception) -> None:
        raise error

    async def serve(*_: Any) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail, BrokenPipeError())
            tasks.start_soon(fail, ValueError("a bug"))

    @asynccontextmanager
    async def no_pipes() -> AsyncIterator[Any]:  # leaves the pipes of the test process alone
        yield None, None

    proxy = Proxy(Everything().upstream(), InMemoryStorage())
    monkeypatch.setattr(proxy, "serve_streams", serve)
    monkeypatch.setattr(proxy_module, "stdio_server", no_pipes)
    with pytest.RaisesGroup(BrokenPipeError, pytest.RaisesExc(ValueError, match="a bug"), flatten_subgroups=True):
        await proxy.serve_stdio()


class TestVersions:
    async def test_a_server_that_refuses_an_old_version_is_asked_for_the_latest(self) -> None:
        link = strict(LATEST_HANDSHAKE_VERSION)
        async with anyio.create_task_group() as tasks:
            await tasks.start(link.run)
            assert link.session.protocol_version == LATEST_HANDSHAKE_VERSION
            link.close()

    async def test_the_error_quotes_a_server_that_refuses_every_version(self) -> None:
        with pytest.RaisesGroup(
            pytest.RaisesExc(MCPError, match=f"could not start the MCP server .*: {NO_VERSION}$"),
            flatten_subgroups=True,
        ):
            async with anyio.create_task_group() as tasks:
                await tasks.start(strict().run)


class TestWordsOfAnEnd:
    async def end(self, *, closed: bool) -> None:
        """End a session with an error that has no message, either by itself or after we closed it."""
        breaks = anyio.Event()

        @asynccontextmanager
        async def connect() -> AsyncIterator[Any]:
            async def fail() -> None:
                await breaks.wait()
                raise anyio.BrokenResourceError

            async with Everything().upstream().connect() as streams, anyio.create_task_group() as tasks:
                tasks.start_soon(fail)
                try:
                    yield streams
                finally:
                    breaks.set()

        link = link_with(Upstream(name="brittle", connect=connect))
        async with anyio.create_task_group() as tasks:
            await tasks.start(link.run)
            if closed:
                link.close()
            else:
                breaks.set()

    async def test_an_error_without_a_message_is_logged_by_its_type(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING, logger="coatcheck_mcp"):
            await self.end(closed=False)
        assert "the session with everything ended: BrokenResourceError" in caplog.text

    async def test_an_error_after_we_closed_the_session_is_not_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING, logger="coatcheck_mcp"):
            await self.end(closed=True)
        assert "ended" not in caplog.text


def test_a_log_record_of_the_library_keeps_its_error_without_a_traceback() -> None:
    said = subprocess.run([sys.executable, "-c", LOGGING], capture_output=True, check=True, timeout=PATIENCE).stderr
    assert said.decode().splitlines() == [
        "coatcheck: Failed to parse a line",
        "coatcheck: handler for 'line' raised: KeyError: 'why'",
        "coatcheck: Failed to validate line: KeyError: 'why'",
    ]


def test_a_log_record_of_the_library_that_cannot_be_printed_raises_nothing() -> None:
    said = subprocess.run([sys.executable, "-c", UNPRINTABLE], capture_output=True, check=True, timeout=PATIENCE).stderr
    lines = said.decode().splitlines()
    assert lines[:4] == [
        "coatcheck: nothing was raised",
        "coatcheck: mcp.client.stdio logged something that cannot be printed",
        "coatcheck: mcp.client.stdio logged something that cannot be printed",
        "coatcheck: ended",
    ]
    assert "Unprintable" in lines[-1]


class Ended:
    """A process that has ended. ``looked`` is set once its return code has been read more than ten times."""

    def __init__(self, code: int) -> None:
        self._code, self._looks, self.looked = code, 0, anyio.Event()

    @property
    def returncode(self) -> int:
        self._looks += 1
        if self._looks > 10:
            self.looked.set()
        return self._code


class TestOutputOfAProcessThatHasEnded:
    @pytest.fixture(autouse=True)
    def _impatient(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(stdio_module, "SILENT_SECONDS", 0.02)
        monkeypatch.setattr(stdio_module, "_LAST_SECONDS", 0.1)

    async def test_it_ends_with_a_server_that_ends_right_after_its_first_answer(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for limit in ("SILENT_SECONDS", "_BEFORE_SECONDS"):
            monkeypatch.setattr(stdio_module, limit, PATIENCE)  # a late answer would be a launcher's
        to_proxy, reads = anyio.create_memory_object_stream[Any](1)
        into, passed = anyio.create_memory_object_stream[Any](1)
        with anyio.fail_after(60):
            async with to_proxy, reads, passed, anyio.create_task_group() as tasks:
                await to_proxy.send(NOTE)
                tasks.start_soon(stdio_module._pass_on, reads, into, Ended(0))
                assert [item async for item in passed] == [NOTE]

    async def test_a_message_long_after_the_end_shows_that_the_process_was_a_launcher(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(stdio_module, "_LAST_SECONDS", PATIENCE)
        monkeypatch.setattr(stdio_module, "_BEFORE_SECONDS", math.inf)
        process, (to_proxy, reads) = Ended(0), anyio.create_memory_object_stream[Any](1)
        into, passed = anyio.create_memory_object_stream[Any](1)
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks, to_proxy, reads, passed:
                await to_proxy.send(NOTE)
                tasks.start_soon(stdio_module._pass_on, reads, into, process)
                assert await passed.receive() is NOTE
                monkeypatch.setattr(stdio_module, "_BEFORE_SECONDS", 0.0)
                await to_proxy.send(NOTE)
                assert await passed.receive() is NOTE
                await process.looked.wait()  # far longer than an ended server's output may be silent
                await to_proxy.send(NOTE)
                assert await passed.receive() is NOTE
                tasks.cancel_scope.cancel()

    async def test_after_a_launcher_ends_it_is_read_however_long_the_server_is_silent(self) -> None:
        process, (to_proxy, reads) = Ended(0), anyio.create_memory_object_stream[Any](1)
        into, passed = anyio.create_memory_object_stream[Any](1)
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks, to_proxy, reads, passed:
                tasks.start_soon(stdio_module._pass_on, reads, into, process)
                await process.looked.wait()
                await to_proxy.send(NOTE)
                assert await passed.receive() is NOTE
                process.looked = anyio.Event()
                await process.looked.wait()
                await to_proxy.send(NOTE)
                assert await passed.receive() is NOTE
                tasks.cancel_scope.cancel()

    @pytest.mark.parametrize("said", ["no message", "messages"])
    async def test_after_a_process_fails_it_ends_whatever_a_child_writes(self, said: str) -> None:
        to_proxy, reads = anyio.create_memory_object_stream[Any](0)
        into, passed = anyio.create_memory_object_stream[Any](0)
        item = NOTE if said == "messages" else ValueError("a line of a log")

        async def talk() -> None:
            with suppress(anyio.BrokenResourceError):
                while True:
                    await to_proxy.send(item)

        with anyio.fail_after(PATIENCE):
            async with to_proxy, reads, passed, anyio.create_task_group() as tasks:
                tasks.start_soon(talk)
                tasks.start_soon(stdio_module._pass_on, reads, into, Ended(3))
                async for found in passed:
                    assert found is item
                tasks.cancel_scope.cancel()
