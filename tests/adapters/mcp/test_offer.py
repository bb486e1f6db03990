"""``offer_tool = "when needed"``: the retrieval tool is listed after the first offload, and clients are told."""

# ruff: noqa: ANN401 - what the protocol and the library pass is of any type

from __future__ import annotations

import sys
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from fastmcp import Client as FastClient
from fastmcp.client.messages import MessageHandler
from fastmcp.client.transports import StdioTransport
from mcp import Client, StdioServerParameters
from mcp.client._memory import InMemoryTransport
from mcp.client.stdio import stdio_client
from mcp.shared.message import SessionMessage

from coatcheck import RETRIEVAL_TOOL, InMemoryStorage, InvalidRequest
from coatcheck_mcp import Proxy, offloaded_references
from coatcheck_mcp import proxy as proxy_module
from tests.adapters.mcp.processes import TINY
from tests.adapters.mcp.servers import Everything, Limited, client_of, wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


def late(server: Everything, storage: Any = None, **options: Any) -> Proxy:
    return Proxy(server.upstream(), storage or InMemoryStorage(), offer_tool="when needed", **options)


async def is_listed(client: Any) -> bool:
    return RETRIEVAL_TOOL in {tool.name for tool in (await client.list_tools()).tools}


class Told:
    """Counts how often a client was told that its list of tools changed."""

    def __init__(self) -> None:
        self.times = 0

    async def __call__(self, message: Any) -> None:
        self.times += isinstance(message, types.ToolListChangedNotification)


async def test_it_is_listed_after_the_first_offload_and_the_client_is_told_once() -> None:
    told, server = Told(), Everything()
    server.tools = server.tools[:1]  # on one page
    async with client_of(server, proxy=late(server), message_handler=told) as client:
        assert client.server_capabilities.tools.list_changed
        await client.call_tool("small")
        assert not await is_listed(client)
        for name in ("log", "rows"):  # `call_tool` would ask for the list itself
            await wire(client, "tools/call", {"name": name})
        assert await is_listed(client)
    assert told.times == 1


async def test_it_answers_even_while_it_is_not_listed() -> None:
    storage, server = InMemoryStorage(), Everything()
    async with client_of(server, proxy=late(server, storage)) as client:
        answer = await client.call_tool(RETRIEVAL_TOOL, {"reference": "log-0000000000000000-0000"})
    assert answer.content[0].text.startswith("reference not found")


async def test_a_modern_client_is_told_on_the_stream_that_it_opened() -> None:
    server = Everything()
    async with client_of(server, proxy=late(server), mode="auto") as client:
        assert not await is_listed(client)
        async with client.listen(tools_list_changed=True) as events:
            await client.call_tool("log")
            with anyio.fail_after(60):
                assert type(await anext(aiter(events))).__name__ == "ToolsListChanged"
        assert await is_listed(client)


async def test_after_a_restart_it_is_listed_only_in_scopes_that_hold_something() -> None:
    storage, server = InMemoryStorage(), Everything()
    async with client_of(server, proxy=late(server, storage, scope="mine")) as client:
        assert offloaded_references(await client.call_tool("log"))
    for scope, listed in (("mine", True), ("other", False)):
        async with client_of(server, proxy=late(server, storage, scope=scope)) as client:
            assert await is_listed(client) is listed


async def test_all_clients_of_the_proxy_are_told() -> None:
    told, server = Told(), Everything()
    server.tools = server.tools[:1]
    proxy = late(server)
    async with (
        proxy.running() as front,
        Client(front, mode="legacy") as one,
        Client(front, mode="legacy", message_handler=told) as two,
    ):
        assert not await is_listed(two)
        await one.call_tool("log")
        await two.call_tool("small")
        assert await is_listed(two)
    assert told.times == 1


class Asked(InMemoryStorage):
    """Counts how often it is asked what it holds."""

    times = 0

    def entries(self, prefix: str) -> Any:
        self.times += 1
        return super().entries(prefix)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Return a storage that is asked about every scope but the two latest."""
    monkeypatch.setattr(proxy_module, "MAX_OFFERED", 2)
    return Asked()


@asynccontextmanager
async def serving(storage: Asked, users: list[str]) -> AsyncIterator[Client]:
    """Yield a client of a proxy that takes the last of ``users`` for its user at each request."""
    server = Everything()
    server.tools = server.tools[:1]
    async with client_of(server, proxy=late(server, storage, identity_of=lambda _: users[-1])) as client:
        yield client


async def offload_for(users: list[str], *others: str, client: Client) -> None:
    """Let each of the ``others`` become the user, and have a result offloaded."""
    for user in others:
        users.append(user)
        await wire(client, "tools/call", {"name": "log"})


async def test_only_the_latest_scopes_are_remembered_and_the_storage_is_asked_about_any_other(asked: Asked) -> None:
    users = ["ann"]
    async with serving(asked, users) as client:
        await offload_for(users, "ann", "ben", "cat", client=client)
        for user, times in (("ben", 0), ("cat", 0), ("ann", 1), ("dan", 2)):
            users.append(user)
            assert await is_listed(client) is (user != "dan")
            assert asked.times == times


async def test_a_scope_takes_one_place_among_the_remembered_ones_however_often_it_is_asked_about(asked: Asked) -> None:
    users = ["ann"]
    async with serving(asked, users) as client:
        await offload_for(users, "ann", "ben", client=client)
    async with serving(asked, users) as client:
        assert await is_listed(client)
        users.append("ann")
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(is_listed, client)
        before = asked.times
        users.append("ben")
        assert await is_listed(client)
        assert asked.times == before


async def test_it_is_always_listed_if_the_storage_cannot_say_what_it_holds(caplog: pytest.LogCaptureFixture) -> None:
    class Blind:
        """Only saves and loads."""

        def __init__(self) -> None:
            self._storage = InMemoryStorage()
            self.save, self.load = self._storage.save, self._storage.load

    server = Everything()
    async with client_of(server, proxy=late(server, Blind())) as client:
        assert await is_listed(client)
    assert "cannot say what it holds" in caplog.text


async def test_it_is_always_listed_if_the_storage_does_not_say_in_time_what_it_holds(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Hanging(InMemoryStorage):
        is_local = False  # so that the proxy asks it in a thread

        def entries(self, *_: Any) -> Any:
            goes_on.wait()
            return super().entries(*_)

    goes_on, server = threading.Event(), Everything()
    monkeypatch.setattr(proxy_module, "LISTING_SECONDS", 0.05)
    async with client_of(server, proxy=late(server, Hanging())) as client:
        try:
            with anyio.fail_after(60):
                assert await is_listed(client)
        finally:
            goes_on.set()
    assert "did not say within 0.05 seconds what it holds" in caplog.text


def test_an_unknown_value_of_offer_tool_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="offer_tool must be 'always' or 'when needed'"):
        Proxy(Everything().upstream(), InMemoryStorage(), offer_tool="later")  # type: ignore[arg-type]


class TestClientsOfThePage:
    """The clients in docs/mcp-settings.md, with the real command: they are told, list again, and call the tool."""

    @pytest.fixture
    def command(self, tmp_path: Path) -> list[str]:
        config = tmp_path / "coatcheck.toml"
        config.write_text('offer_tool = "when needed"\n', encoding="utf-8")
        storage = f"--storage={tmp_path / 'store'}"
        return [sys.executable, "-m", "coatcheck.cli", "mcp", f"--config={config}", storage, "--", *TINY]

    @pytest.mark.parametrize("mode", ["legacy", "auto"])
    async def test_the_reference_client_lists_the_tool_again_and_calls_it(self, command: list[str], mode: str) -> None:
        parameters = StdioServerParameters(command=command[0], args=command[1:])
        told = Told()
        async with Client(stdio_client(parameters), mode=mode, message_handler=told) as client:
            assert not await is_listed(client)
            (reference,) = offloaded_references(await client.call_tool("big"))
            assert await is_listed(client)
            back: Any = await client.call_tool(RETRIEVAL_TOOL, {"reference": reference})
            assert "line of a log" in back.content[0].text
        assert told.times == (mode == "legacy")

    @pytest.mark.parametrize("mode", ["legacy", "auto"])
    async def test_fastmcps_client_lists_the_tool_again_and_calls_it(self, command: list[str], mode: str) -> None:
        heard: list[object] = []

        class Handler(MessageHandler):
            async def on_tool_list_changed(self, message: Any) -> None:
                heard.append(message)

        transport = StdioTransport(command[0], command[1:])
        async with FastClient(transport, mode=mode, message_handler=Handler()) as client:
            assert RETRIEVAL_TOOL not in {tool.name for tool in await client.list_tools()}
            (reference,) = offloaded_references(await client.call_tool("big"))
            assert RETRIEVAL_TOOL in {tool.name for tool in await client.list_tools()}
            back = await client.call_tool(RETRIEVAL_TOOL, {"reference": reference})
            assert "line of a log" in back.content[0].text
        assert bool(heard) is (mode == "legacy")


@asynccontextmanager
async def deaf_client(front: Any) -> AsyncIterator[None]:
    """Connect a client that reads nothing after its handshake."""
    hello = types.InitializeRequestParams(
        protocol_version="2025-06-18",
        capabilities=types.ClientCapabilities(),
        client_info=types.Implementation(name="deaf", version="1"),
    ).model_dump(by_alias=True, exclude_none=True)
    to_proxy, from_client = anyio.create_memory_object_stream[Any](1)
    to_client, from_proxy = anyio.create_memory_object_stream[Any](0)
    async with anyio.create_task_group() as tasks, to_proxy, from_client, to_client, from_proxy:
        tasks.start_soon(front.run, from_client, to_client, front.create_initialization_options())
        await to_proxy.send(
            SessionMessage(types.JSONRPCRequest(jsonrpc="2.0", id=1, method="initialize", params=hello))
        )
        await from_proxy.receive()
        ready = types.JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
        await to_proxy.send(SessionMessage(ready))
        yield
        tasks.cancel_scope.cancel()


async def test_a_client_that_reads_nothing_holds_up_no_result_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy, told, limits = late(Everything()), Told(), list[anyio.CancelScope]()

    def limit(_: float) -> anyio.CancelScope:
        limits.append(anyio.CancelScope())
        return limits[-1]

    async def on_message(message: Any) -> None:
        await told(message)
        for each in limits:
            each.cancel()  # the time limit ends once the other client has been told

    monkeypatch.setattr(proxy_module, "anyio", Limited(limit))
    async with (
        proxy.running() as front,
        deaf_client(front),
        Client(InMemoryTransport(front), mode="legacy", message_handler=on_message) as client,
    ):
        with anyio.fail_after(60):
            assert offloaded_references(await client.call_tool("log"))
    assert told.times == 1
