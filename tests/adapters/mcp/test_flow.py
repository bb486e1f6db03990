"""Messages to a side that does not read wait at the sender, and do not pile up in the proxy."""

# ruff: noqa: ANN401 - what the protocol and the library pass is of any type

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from mcp import MCPError
from mcp.shared.message import SessionMessage

from coatcheck import InMemoryStorage
from coatcheck_mcp import Proxy, Upstream
from coatcheck_mcp import link as link_module
from coatcheck_mcp import proxy as proxy_module
from coatcheck_mcp.client import MAX_EARLY, MAX_EARLY_BYTES, Client, Identified
from coatcheck_mcp.link import MAX_UNREAD
from coatcheck_mcp.questions import MAX_ASKED
from tests.adapters.mcp.servers import HELLO, Everything, client_of, wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FLOOD = 600
"""Messages. Far more than may wait."""

SLACK = 20
"""Messages that may be under way between two streams, and tasks that have just begun."""


def request(number: int, method: str, params: Any = None) -> SessionMessage:
    return SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params=params))


def note(method: str, params: Any = None) -> SessionMessage:
    return SessionMessage(types.JSONRPCNotification(jsonrpc="2.0", method=method, params=params))


class Pipes:
    """A client that reads only when the test says so."""

    def __init__(self) -> None:
        self.to_proxy, self.reads = anyio.create_memory_object_stream[Any](0)
        self.writes, self.from_proxy = anyio.create_memory_object_stream[Any](0)

    @asynccontextmanager
    async def served_by(self, proxy: Proxy, capabilities: Any = None) -> AsyncIterator[None]:
        async with proxy.running(), anyio.create_task_group() as tasks, self.to_proxy, self.from_proxy:
            tasks.start_soon(proxy.serve_streams, self.reads, self.writes)
            await self.to_proxy.send(request(0, "initialize", {**HELLO, "capabilities": capabilities or {}}))
            await self.from_proxy.receive()
            await self.to_proxy.send(note("notifications/initialized"))
            yield
            tasks.cancel_scope.cancel()


class Talking:
    """A server that, once called, sends ``FLOOD`` messages, and counts how many were taken."""

    def __init__(self, method: str, params: Any) -> None:
        self.method, self.params = method, params
        self.said = 0

    def upstream(self) -> Upstream:
        return Upstream(name="talking", connect=self._connect)

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Any]:
        to_client, reads = anyio.create_memory_object_stream[Any](0)
        writes, from_client = anyio.create_memory_object_stream[Any](0)
        async with anyio.create_task_group() as tasks, to_client, reads, writes, from_client:
            tasks.start_soon(self._serve, from_client, to_client)
            yield reads, writes
            tasks.cancel_scope.cancel()

    async def _serve(self, reads: Any, writes: Any) -> None:
        offered = {"capabilities": {"tools": {}, "logging": {}}, "serverInfo": {"name": "talking", "version": "1"}}
        answers: dict[str, dict[str, Any]] = {
            "initialize": {"protocolVersion": "2025-11-25", **offered},
            "tools/list": {"tools": [{"name": "talk", "inputSchema": {"type": "object"}}]},
        }
        async for item in reads:
            message = item.message
            if not isinstance(message, types.JSONRPCRequest):
                continue
            if message.method == "tools/call":
                for number in range(FLOOD):
                    await writes.send(self._message(number, (message.params or {}).get("_meta") or {}))
                    self.said += 1
            result = answers.get(message.method, {"content": []})
            await writes.send(SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=message.id, result=result)))

    def _message(self, number: int, meta: Any) -> SessionMessage:
        if not self.method.startswith("notifications/"):
            return request(number, self.method)
        token = {"progressToken": meta.get("progressToken")}
        return note(self.method, {**self.params, **(token if "progressToken" in self.params else {})})


NOTES = [
    ("notifications/message", {"level": "info", "data": "x"}),
    ("notifications/progress", {"progressToken": 0, "progress": 1}),
    ("notifications/resources/updated", {"uri": "file:///a"}),
    ("notifications/tools/list_changed", {}),
]


@pytest.mark.parametrize("capabilities", [{}, {"roots": {}}], ids=["that cannot answer", "that does not answer"])
async def test_a_server_that_asks_without_reading_the_answers_has_to_wait(capabilities: Any) -> None:
    server, client = Talking("roots/list", {}), Pipes()
    async with client.served_by(Proxy(server.upstream(), InMemoryStorage()), capabilities):
        await client.to_proxy.send(request(1, "tools/call", {"name": "talk", "arguments": {}}))
        await anyio.wait_all_tasks_blocked()
        assert 0 < server.said <= MAX_UNREAD + (MAX_ASKED if capabilities else 0) + SLACK


@pytest.mark.parametrize(("method", "params"), NOTES, ids=[method for method, _ in NOTES])
async def test_a_server_that_talks_has_to_wait_for_a_client_that_does_not_read(method: str, params: Any) -> None:
    server, client = Talking(method, dict(params)), Pipes()
    call = {"name": "talk", "arguments": {}, "_meta": {"progressToken": 7}}
    async with client.served_by(Proxy(server.upstream(), InMemoryStorage())):
        await client.to_proxy.send(request(1, "tools/call", call))
        await anyio.wait_all_tasks_blocked()
        assert 0 < server.said <= MAX_UNREAD + SLACK
        with anyio.fail_after(60):
            while not isinstance((await client.from_proxy.receive()).message, types.JSONRPCResponse):
                pass  # once it reads, everything arrives
    assert server.said == FLOOD


async def test_a_client_that_does_not_read_its_answers_is_not_read_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy_module, "MAX_UNREAD", 100)
    client, sent = Pipes(), 0

    async def ask() -> None:
        nonlocal sent
        for number in range(1, FLOOD):
            await client.to_proxy.send(request(number, "ping"))
            sent += 1

    async with client.served_by(Proxy(Everything().upstream(), InMemoryStorage())):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await anyio.wait_all_tasks_blocked()
            waiting = sent
            with anyio.fail_after(60):
                answers = [(await client.from_proxy.receive()).message.id for _ in range(1, FLOOD)]
        assert sorted(answers) == list(range(1, FLOOD))
    assert waiting < 100 + 5 * SLACK


async def test_requests_beyond_the_limit_in_flight_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "MAX_IN_FLIGHT", 3)
    server = Everything()
    async with client_of(server) as client, anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(client.call_tool, "wait")
        while len(server.calls) < 3:
            await anyio.lowlevel.checkpoint()
        with pytest.raises(MCPError, match="3 requests wait for the MCP server everything"):
            await wire(client, "tools/call", {"name": "small"})
        tasks.cancel_scope.cancel()


class Front:
    """A session that records the notifications that it gets."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    async def send_notification(self, message: Any) -> None:
        self.told.append(message)


@pytest.mark.parametrize(("size", "kept"), [(1, MAX_EARLY), (MAX_EARLY_BYTES // 4, 3)])
async def test_messages_to_a_client_that_is_not_ready_are_kept_up_to_a_limit(size: int, kept: int) -> None:
    who = Identified(key="", info=None, capabilities={}, modern=False, version="2025-11-25")
    client, front = Client(who), Front()
    said = types.LoggingMessageNotificationParams(level="info", data="x" * size)
    for _ in range(10 * MAX_EARLY):
        await client.tell(types.LoggingMessageNotification(params=said))
    await client.get_ready(front)  # type: ignore[arg-type]
    assert len(front.told) == kept
