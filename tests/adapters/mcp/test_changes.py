"""Changes that a modern server announces while the stream for them is opened again: the client hears of them."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.subscriptions import ResourceUpdated, ToolsListChanged

from coatcheck_mcp import url_upstream
from tests.adapters.mcp.servers import Everything, client_of
from tests.adapters.mcp.test_http import cutting, serving

if TYPE_CHECKING:
    import pytest

URI = "file:///a"


async def test_a_resource_may_have_changed_while_the_stream_was_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coatcheck_mcp.http_transport._LONGEST_PAUSE", 0.0)
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
