"""Puts a proxy in front of each server that the tests of the ``mcp`` package call, in their process or over HTTP.

This is a pytest plugin next to ``in_every_agent``, which has the options. It is separate because it needs the extra
``mcp``. It never offloads, because a tool whose results may be offloaded is listed without the schema of its output.
"""

from __future__ import annotations

import socket
import sys
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.lowlevel
import anyio.to_thread
import uvicorn
from mcp.client import client as of_client
from mcp.client._memory import InMemoryTransport
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.memory import create_client_server_memory_streams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from coatcheck import InMemoryStorage, Never
from coatcheck_mcp import Proxy, Upstream, url_upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    import pytest

__all__ = ()


@asynccontextmanager
async def through_proxy(upstream: Upstream) -> AsyncIterator[Any]:
    """Yield a client's streams to a proxy in front of ``upstream``."""
    configure = partial(Proxy, upstream, InMemoryStorage(), scope="test", offer_tool="when needed")
    # These tests let nothing block the loop, but a proxy reads the version of its package.
    proxy = await anyio.to_thread.run_sync(partial(configure, policy_of=lambda _: Never()))
    async with (
        proxy.running(),
        create_client_server_memory_streams() as (streams, streams_of_proxy),
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(proxy.serve_streams, *streams_of_proxy)
        try:
            yield streams
        finally:
            await streams[1].aclose()
            await streams_of_proxy[1].aclose()


@asynccontextmanager
async def over_http(app: Any) -> AsyncIterator[str]:  # noqa: ANN401 - of Starlette
    """Serve an application on a port; yield its address."""
    listener = await anyio.to_thread.run_sync(partial(socket.create_server, ("127.0.0.1", 0)))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(server._serve, [listener]))  # not serve, which installs signal handlers
        while not server.started:
            await anyio.lowlevel.checkpoint()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
        finally:
            server.should_exit = server.force_exit = True


@asynccontextmanager
async def connect_over_http(
    server: Any,  # noqa: ANN401 - the mcp package's
    *,
    spec_version: str,
    stateless_http: bool = False,
    **options: Any,  # noqa: ANN401 - of Client
) -> AsyncIterator[of_client.Client]:
    """Connect to a server over HTTP through a proxy. A drop-in replacement for the suite's own ``Connect``."""
    unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(stateless_http=stateless_http, transport_security=unguarded)
    mode = spec_version if spec_version in MODERN_PROTOCOL_VERSIONS else "legacy"
    async with (
        over_http(app) as url,
        of_client.Client(through_proxy(url_upstream(url)), mode=mode, **options) as client,
    ):
        yield client


def put_into_process(note: Callable[[], None], *, ours: bool) -> None:
    """Put a proxy between each ``Client`` and its server in the same process."""
    make = of_client._connect_inproc

    def make_with_proxy(server: Any) -> Any:  # noqa: ANN401 - the mcp package's
        async def connect(stack: Any, mode: Any, raise_exceptions: bool) -> Any:  # noqa: ANN401 - the mcp package's
            await anyio.to_thread.run_sync(note)
            if not ours:
                return await make(server)(stack, mode, raise_exceptions)
            reach = partial(InMemoryTransport, server, raise_exceptions=raise_exceptions)
            streams = await stack.enter_async_context(through_proxy(Upstream(name="server", connect=reach)))
            return JSONRPCDispatcher(*streams)

        return connect

    of_client._connect_inproc = make_with_proxy


def pytest_configure(config: pytest.Config) -> None:
    """Put the proxies in place before a test is imported."""
    used = config.getoption("--outcomes").with_suffix(".used")
    put_into_process(used.touch, ours=config.getoption("--in-every-agent") == "coatcheck")


def pytest_collection_modifyitems(config: pytest.Config) -> None:
    """Replace the suite's connections over HTTP, which are in its conftest, by ones through proxies."""
    suite = sys.modules.get("tests.interaction.conftest")  # None if only other tests run
    if suite is not None and config.getoption("--in-every-agent") == "coatcheck":
        suite._FACTORIES["streamable-http"] = connect_over_http
        suite._FACTORIES["streamable-http-stateless"] = partial(connect_over_http, stateless_http=True)
