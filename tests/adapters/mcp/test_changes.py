"""A client is told of the changes that a modern server announces while its stream is being opened or reopened."""

# ruff: noqa: ANN401 - what the protocol and the library pass is of any type

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from mcp import MCPError
from mcp.server.subscriptions import ListenHandler, PromptsListChanged, ResourceUpdated, ToolsListChanged

from coatcheck_mcp import url_upstream
from tests.adapters.mcp.ports import at_url, cutting, opens_stream
from tests.adapters.mcp.servers import Everything, client_of, speaking

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

URI, OTHER = "file:///a", "file:///b"


@asynccontextmanager
async def client_over_http(app: Any) -> AsyncIterator[Any]:
    """Yield a modern client of a proxy in front of a server at a URL."""
    async with at_url(app) as url, client_of(url_upstream(url), mode="auto") as client:
        yield client


async def test_a_resource_is_reported_as_changed_after_the_stream_was_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coatcheck_mcp.http_transport._LONGEST_PAUSE", 0.0)
    monkeypatch.setattr("coatcheck_mcp.changes._MAX_UNTOLD", 1)  # fewer than may have changed
    server, heard, cuts = Everything(), set[Any](), list[bool]()

    async def ends() -> bool:
        if subscribed.is_set():
            cuts.append(True)
        return len(cuts) < 3

    subscribed = anyio.Event()
    with anyio.fail_after(60):
        async with (
            client_over_http(cutting(server.server.streamable_http_app(), ends)) as client,
            client.listen(tools_list_changed=True, resource_subscriptions=[URI]) as events,
        ):
            subscribed.set()
            while len(heard) < 2:
                heard.add(await anext(aiter(events)))
    assert heard == {ToolsListChanged(), ResourceUpdated(uri=URI)}


async def test_subscriptions_work_at_a_server_that_serves_one_stream_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coatcheck_mcp.changes.OPEN_SECONDS", 0.1)
    server, free = Everything(), anyio.Semaphore(1)
    app = server.server.streamable_http_app()

    async def one_at_a_time(scope: Any, receive: Any, send: Any) -> None:
        async with free if opens_stream(scope) else nullcontext():
            await app(scope, receive, send)

    with anyio.fail_after(60):
        async with (
            client_over_http(one_at_a_time) as client,
            client.listen(resource_subscriptions=[URI]) as first,
            client.listen(resource_subscriptions=[OTHER]) as second,
        ):
            for uri, events in ((URI, first), (OTHER, second)):
                await _update(server, client, uri=uri, events=events)


async def _update(server: Everything, client: Any, *, uri: str, events: Any) -> None:
    """Publish changes until the client is told of one: nothing says when the proxy has opened its stream."""

    async def publish() -> None:
        while True:
            await server.bus.publish(ResourceUpdated(uri=uri))
            await client.list_prompts()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(publish)
        assert await anext(aiter(events)) == ResourceUpdated(uri=uri)
        tasks.cancel_scope.cancel()


async def test_a_change_while_a_stream_for_more_resources_is_opened_is_reported_once() -> None:
    server, holds, asked, goes_on = Everything(), False, anyio.Event(), anyio.Event()
    app = server.server.streamable_http_app()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        if holds and opens_stream(scope):
            asked.set()
            await goes_on.wait()
        await app(scope, receive, send)

    with anyio.fail_after(60):
        async with (
            client_over_http(slow) as client,
            client.listen(tools_list_changed=True, prompts_list_changed=True) as lists,
            client.listen(resource_subscriptions=[URI]) as first,
        ):
            await _update(server, client, uri=URI, events=first)
            holds = True

            async def more() -> None:
                async with client.listen(resource_subscriptions=[OTHER]) as second:
                    await _update(server, client, uri=OTHER, events=second)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(more)
                await asked.wait()
                await server.bus.publish(ToolsListChanged())
                assert await anext(aiter(lists)) == ToolsListChanged()
                goes_on.set()
            await server.bus.publish(PromptsListChanged())
            assert await anext(aiter(lists)) == PromptsListChanged()


async def test_a_change_right_after_a_subscription_is_reported() -> None:
    server = Everything()
    app = server.server.streamable_http_app()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        if opens_stream(scope):
            for _turn in range(500):
                await anyio.lowlevel.checkpoint()
        await app(scope, receive, send)

    with anyio.fail_after(60):
        async with (
            client_over_http(slow) as client,
            client.listen(resource_subscriptions=[URI]) as events,
        ):
            await server.bus.publish(ResourceUpdated(uri=URI))
            assert await anext(aiter(events)) == ResourceUpdated(uri=URI)


class Choosy(Everything):
    """A server that refuses streams about some resources."""

    def __init__(self, code: int = types.INVALID_PARAMS) -> None:
        super().__init__()
        self.refused, self._code = {OTHER}, code
        self.asked: list[Any] = []
        self.streams = ListenHandler(self.bus)
        self.server.add_request_handler(
            "subscriptions/listen", types.SubscriptionsListenRequestParams, self._serve_stream
        )

    async def _serve_stream(self, ctx: Any, params: types.SubscriptionsListenRequestParams) -> Any:
        self.asked.append(params.notifications.resource_subscriptions)
        found = self.refused.intersection(params.notifications.resource_subscriptions or ())
        if found:
            raise MCPError(code=self._code, message=f"there is no {found.pop()}")
        return await self.streams(ctx, params)


@pytest.mark.parametrize("code", [types.INVALID_PARAMS, types.INTERNAL_ERROR])
async def test_a_refused_resource_is_an_error_for_its_client_and_ends_no_other_subscription(code: int) -> None:
    server = Choosy(code)
    with anyio.fail_after(60):
        async with (
            client_of(server, mode="auto") as client,
            client.listen(tools_list_changed=True, resource_subscriptions=[URI]) as events,
        ):
            with pytest.raises(MCPError, match=f"^there is no {OTHER}$"):
                async with client.listen(resource_subscriptions=[OTHER]):
                    pass
            for change in (ToolsListChanged(), ResourceUpdated(uri=URI)):
                await server.bus.publish(change)
                assert await anext(aiter(events)) == change


async def test_a_resource_that_is_refused_later_is_logged_once_and_ends_no_other_subscription(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("coatcheck_mcp.http_transport._LONGEST_PAUSE", 0.0)
    server, heard = Choosy(), set[Any]()
    server.refused.clear()
    with anyio.fail_after(60):
        async with (
            client_of(server, mode="auto") as client,
            client.listen(tools_list_changed=True, resource_subscriptions=[URI, OTHER]) as events,
        ):
            server.refused.add(OTHER)
            server.streams.close()
            while ResourceUpdated(uri=URI) not in heard:
                heard.add(await anext(aiter(events)))
            while OTHER not in caplog.text:
                await client.list_prompts()
            for change in (ToolsListChanged(), ResourceUpdated(uri=URI)):
                await server.bus.publish(change)
                while await anext(aiter(events)) != change:
                    pass
    assert ResourceUpdated(uri=OTHER) not in heard
    (said,) = [record.getMessage() for record in caplog.records if "will not be reported" in record.getMessage()]
    assert said == f"changes of the resource {OTHER} will not be reported: there is no {OTHER}"


async def test_list_changes_are_reported_even_after_the_only_resource_was_refused(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("coatcheck_mcp.http_transport._LONGEST_PAUSE", 0.0)
    server = Choosy()
    server.refused.clear()

    async def publish(client: Any) -> None:
        while True:
            await server.bus.publish(ToolsListChanged())
            await client.list_prompts()

    with anyio.fail_after(60):
        async with (
            client_of(server, mode="auto") as client,
            client.listen(tools_list_changed=True, resource_subscriptions=[OTHER]) as events,
            anyio.create_task_group() as tasks,
        ):
            server.refused.add(OTHER)
            server.streams.close()
            while OTHER not in caplog.text:
                await client.list_prompts()
            tasks.start_soon(publish, client)
            assert await anext(aiter(events)) == ToolsListChanged()
            tasks.cancel_scope.cancel()


async def test_the_only_stream_that_a_server_allows_covers_the_resource() -> None:
    server = Everything()
    server.server.add_request_handler(
        "subscriptions/listen",
        types.SubscriptionsListenRequestParams,
        ListenHandler(server.bus, max_subscriptions=1),
    )
    with anyio.fail_after(60):
        async with client_of(server, mode="auto") as client, client.listen(resource_subscriptions=[URI]) as events:
            await server.bus.publish(ResourceUpdated(uri=URI))
            assert await anext(aiter(events)) == ResourceUpdated(uri=URI)


async def test_a_refusal_too_late_for_its_client_is_logged_and_ends_no_other_subscription(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server, goes_on, heard = Choosy(), anyio.Event(), list[Any]()
    serve = server._serve_stream

    async def late(ctx: Any, params: types.SubscriptionsListenRequestParams) -> Any:
        if OTHER in (params.notifications.resource_subscriptions or ()):
            await goes_on.wait()
        return await serve(ctx, params)

    server.server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, late)
    with anyio.fail_after(60):
        async with (
            client_of(server, mode="auto") as client,
            client.listen(tools_list_changed=True, resource_subscriptions=[URI]) as events,
        ):
            monkeypatch.setattr("coatcheck_mcp.changes.OPEN_SECONDS", 0.0)
            async with client.listen(resource_subscriptions=[OTHER]):
                goes_on.set()
                while OTHER not in caplog.text or server.asked[-1] != [URI]:
                    await client.list_prompts()
                while ToolsListChanged() not in heard:  # changes that may have been missed are reported
                    heard.append(await anext(aiter(events)))
                await server.bus.publish(ResourceUpdated(uri=URI))
                while heard[-1] != ResourceUpdated(uri=URI):
                    heard.append(await anext(aiter(events)))


async def test_an_accepted_subscription_is_ended_even_if_another_to_its_resource_was_refused() -> None:
    server, outcomes, goes_on = Choosy(), list[str](), anyio.Event()
    serve = server._serve_stream

    async def refuse_once(ctx: Any, params: types.SubscriptionsListenRequestParams) -> Any:
        try:
            return await serve(ctx, params)
        except MCPError:
            server.refused.clear()
            raise

    async def listen(client: Any) -> None:
        try:
            async with client.listen(resource_subscriptions=[OTHER]):
                outcomes.append("accepted")
                await goes_on.wait()
        except MCPError:
            outcomes.append("refused")

    server.server.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, refuse_once)
    with anyio.fail_after(60):
        async with client_of(server, mode="auto") as client:
            async with anyio.create_task_group() as tasks:
                for _ in range(2):
                    tasks.start_soon(listen, client)
                while len(outcomes) < 2:
                    await client.list_prompts()
                goes_on.set()
            while server.asked[-1]:
                await client.list_prompts()
    assert outcomes == ["refused", "accepted"]


async def test_the_proxy_unsubscribes_from_a_resource_that_no_client_stream_covers_any_more() -> None:
    server = Choosy()
    server.refused.clear()
    with anyio.fail_after(60):
        async with (
            client_of(server, mode="auto") as client,
            client.listen(resource_subscriptions=[URI]) as events,
        ):
            async with client.listen(resource_subscriptions=[URI, OTHER]):
                assert server.asked[-1] == [URI, OTHER]
            while server.asked[-1] != [URI]:
                await client.list_prompts()
            await server.bus.publish(ResourceUpdated(uri=URI))
            assert await anext(aiter(events)) == ResourceUpdated(uri=URI)


@pytest.mark.parametrize("names", [(), ("a", "b")])
async def test_the_proxy_also_unsubscribes_at_a_server_with_a_handshake(names: tuple[str, ...]) -> None:
    server, given_up = Everything(), list[str]()

    async def unsubscribe(_: Any, params: types.UnsubscribeRequestParams) -> Any:
        given_up.append(params.uri)
        return {}

    server.server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)
    upstream = speaking(server, "initialize")
    with anyio.fail_after(60):
        async with client_of(dict.fromkeys(names, upstream) or upstream, mode="auto") as client:
            async with client.listen(resource_subscriptions=[URI]):
                async with client.listen(resource_subscriptions=[URI, OTHER]):
                    pass
                while not given_up:
                    await client.list_prompts()
            while len(given_up) < 2:
                await client.list_prompts()
    assert given_up == [OTHER, URI]


async def test_if_a_server_with_a_handshake_refuses_one_resource_the_proxy_unsubscribes_from_the_rest() -> None:
    server, given_up = Everything(), list[str]()

    async def subscribe(_: Any, params: types.SubscribeRequestParams) -> Any:
        if params.uri == OTHER:
            raise MCPError(code=types.INVALID_PARAMS, message="not here")
        return {}

    async def unsubscribe(_: Any, params: types.UnsubscribeRequestParams) -> Any:
        given_up.append(params.uri)
        return {}

    server.server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
    server.server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)
    with anyio.fail_after(60):
        async with client_of(speaking(server, "initialize"), mode="auto") as client:
            with pytest.raises(MCPError, match="not here"):
                async with client.listen(resource_subscriptions=[URI, OTHER]):
                    pass
            while not given_up:
                await client.list_prompts()
    assert given_up == [URI]


@pytest.mark.parametrize("first_question", ["initialize", "server/discover"])
async def test_the_proxy_listens_again_to_a_restarted_server(first_question: str) -> None:
    server, ends, is_modern = Everything(), list[Any](), first_question != "initialize"
    with anyio.fail_after(60):
        async with (
            client_of(speaking(server, first_question, ends=ends), mode="auto") as client,
            client.listen(resource_subscriptions=[URI]) as events,
        ):
            await ends[0]()
            while len(ends) < 2:
                with suppress(MCPError):
                    await client.list_prompts()
            assert await anext(aiter(events)) == ResourceUpdated(uri=URI)  # for changes while nobody listened
            if is_modern:
                await server.bus.publish(ResourceUpdated(uri=URI))
                assert await anext(aiter(events)) == ResourceUpdated(uri=URI)
    assert server.subscribed == ([] if is_modern else [URI, URI])
