"""Puts a proxy in front of each server that the tests of the ``mcp`` package call in their own process.

A pytest plugin, next to ``in_every_agent``, which has the options. It is apart because it needs the extra ``mcp``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from mcp.client import client as of_client
from mcp.client._memory import InMemoryTransport
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.memory import create_client_server_memory_streams

from coatcheck import InMemoryStorage, Never
from coatcheck_mcp import Proxy, Upstream

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

__all__ = ()


def put_between(note: Callable[[], None], *, ours: bool) -> None:
    """Put a proxy between each ``Client`` and its server in the same process.

    Its tools never leave, because tools whose results may leave are listed without the schema of their output.
    """
    make = of_client._connect_inproc

    def make_with_proxy(server: Any) -> Any:  # noqa: ANN401 - the mcp package's
        async def connect(stack: Any, mode: Any, raise_exceptions: bool) -> Any:  # noqa: ANN401 - the mcp package's
            await anyio.to_thread.run_sync(note)  # these tests let nothing block the loop
            if not ours:
                return await make(server)(stack, mode, raise_exceptions)
            upstream = Upstream(
                name="server", connect=lambda: InMemoryTransport(server, raise_exceptions=raise_exceptions)
            )
            configure = partial(Proxy, upstream, InMemoryStorage(), scope="test", offer_tool="when needed")
            proxy = await anyio.to_thread.run_sync(partial(configure, policy_of=lambda _: Never()))
            await stack.enter_async_context(proxy.running())
            streams, streams_of_proxy = await stack.enter_async_context(create_client_server_memory_streams())
            tasks = await stack.enter_async_context(anyio.create_task_group())
            tasks.start_soon(proxy.serve_streams, *streams_of_proxy)
            for end in (streams_of_proxy[1], streams[1]):
                stack.push_async_callback(end.aclose)
            return JSONRPCDispatcher(*streams)

        return connect

    of_client._connect_inproc = make_with_proxy


def pytest_configure(config: pytest.Config) -> None:
    """Put the proxies in place before a test is imported."""
    used = config.getoption("--outcomes").with_suffix(".used")
    put_between(used.touch, ours=config.getoption("--in-every-agent") == "coatcheck")
