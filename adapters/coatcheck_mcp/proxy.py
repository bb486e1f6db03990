"""The proxy: an MCP server for clients, in front of any other MCP server.

It forwards everything, looks at the results of ``tools/call``, and adds one tool. Which session with the server belongs
to which client is decided here; what passes through one is in ``link``.
"""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import mcp_types as types
from mcp.server import Server as FrontServer
from mcp.server.caching import CACHEABLE_METHODS, CacheHint
from mcp.server.stdio import stdio_server
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from coatcheck.adapting import StorageOrOffloader, make_offloader
from coatcheck_mcp.hook import Call, may_leave, offload_result
from coatcheck_mcp.link import Link
from coatcheck_mcp.retrieval import answer_call, definition, free_name
from coatcheck_mcp.scope import folder_scope

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping

    from anyio.abc import TaskGroup
    from mcp.server import ServerRequestContext
    from mcp.server.connection import Connection
    from mcp.server.context import CallNext, HandlerResult
    from typing_extensions import Unpack

    from coatcheck import OffloaderOptions, Policy, Scope
    from coatcheck_mcp.convert import Result
    from coatcheck_mcp.transports import Upstream

__all__ = ("Proxy",)

_FORWARDED = (
    "ping",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/unsubscribe",
    "resources/subscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
)
"""Requests that pass as they are. Tasks do not: their results would come in later, past every check."""

_MOST_LINKS = 16
"""Sessions for modern clients over HTTP, who do not say when they leave; the one unused for longest is closed."""

Context: TypeAlias = "ServerRequestContext[Any, Any]"


class Proxy:
    """An MCP server in front of another one: what it forwards is the same, but for tool results that leave.

    Each client gets a session of its own with the server; a server that is started as a command runs once for each.
    """

    def __init__(
        self,
        upstream: Upstream,
        storage: StorageOrOffloader | None = None,
        *,
        scope: Scope | None = None,
        policy_of: Callable[[str], Policy | None] = lambda _: None,
        **options: Unpack[OffloaderOptions],
    ) -> None:
        """Configure; nothing is started.

        Args:
            upstream: the server behind the proxy: ``command_upstream`` or ``url_upstream``.
            storage: where content goes: a storage, or a ready ``Offloader``.
            scope: who may read back. None: one scope for the server's name and the working
                directory, so that references live across restarts and projects do not mix.
            policy_of: returns the policy of a tool by its name; None: the offloader's policies decide.
            **options: of ``Offloader``.

        Raises:
            InvalidRequest: an argument is wrong, or there is no storage.
            TypeError: there is no such option.

        """
        no_steps = "a proxy sees one call at a time, so leave it out"
        self.offloader = make_offloader(storage, options, owner="Proxy", no_steps=no_steps)
        self._upstream = upstream
        self._scope = scope
        self._policy_of = policy_of
        self._links: dict[Hashable, Link] = {}
        self._connecting: defaultdict[Hashable, anyio.Lock] = defaultdict(anyio.Lock)
        self._tasks: TaskGroup | None = None
        self.front = self._build()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FrontServer[Any]]:
        """Keep the sessions with the server while the block runs; at its end they are closed, and processes gone."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                yield self.front
            finally:
                self._tasks = None
                for link in self._links.values():
                    link.close()

    async def serve_stdio(self) -> None:
        """Serve the one client on stdin and stdout, until it leaves."""
        async with self.running() as front, stdio_server() as streams:
            await front.run(*streams, front.create_initialization_options())

    def _build(self) -> FrontServer[Any]:
        # A modern client is told for how long a list holds; a server of the handshake does not say, so it does not.
        hints = dict.fromkeys(CACHEABLE_METHODS, CacheHint())
        front: FrontServer[Any] = FrontServer("coatcheck", version=version("coatcheck"), cache_hints=hints)
        for method in _FORWARDED:
            front.add_request_handler(method, types.RequestParams, _complete(self._forward))
        front.add_request_handler("tools/list", types.RequestParams, _complete(self._list_tools))
        front.add_request_handler("tools/call", types.CallToolRequestParams, _complete(self._call_tool))
        front.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, self._listen)
        front.add_notification_handler("notifications/initialized", types.NotificationParams, self._initialized)
        front.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._roots_changed
        )
        front.middleware.append(self._negotiate)
        return front

    # Which session belongs to whom.

    async def _link(self, ctx: Context) -> Link:
        """Return the client's session with the server; connect if it has none, or has lost it.

        Raises:
            MCPError: the server did not start.

        """
        client = _client_of(ctx)
        async with self._connecting[client.key]:
            link = self._links.get(client.key)
            if link is None or link.closed:
                link = self._links[client.key] = await self._connect(ctx, client)
        return link

    async def _connect(self, ctx: Context, client: _Client) -> Link:
        link = Link(self._upstream, client_info=client.info, capabilities=client.capabilities, modern=client.modern)
        if self._tasks is None:
            msg = "a Proxy serves clients only inside `async with proxy.running():`"
            raise RuntimeError(msg)
        await self._tasks.start(link.run)
        connection = _connection_of(ctx)
        if client.modern:
            self._drop_oldest()
        else:
            connection.exit_stack.callback(link.close)
            if connection.initialized.is_set():  # the server was lost and is back
                await link.client_is_ready(ctx.session)
        return link

    def _drop_oldest(self) -> None:
        modern = [key for key in self._links if isinstance(key, str)]
        for key in modern[: len(modern) - _MOST_LINKS + 1]:
            self._links.pop(key).close()
            self._connecting.pop(key, None)

    # What the client asks.

    async def _negotiate(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer the first question of a client as the server behind us does, on top of what the library answers."""
        result = await call_next(ctx)
        if ctx.method not in {"initialize", "server/discover"} or not isinstance(result, dict):
            return result
        link = await self._link(ctx)
        return link.describe(result, modern=ctx.method == "server/discover")

    async def _initialized(self, ctx: Context, _: types.NotificationParams) -> None:
        await (await self._link(ctx)).client_is_ready(ctx.session)

    async def _roots_changed(self, ctx: Context, _: types.NotificationParams) -> None:
        await (await self._link(ctx)).notify(types.RootsListChangedNotification())

    async def _forward(self, ctx: Context, _: types.RequestParams) -> dict[str, Any]:
        return await (await self._link(ctx)).forward(ctx)

    async def _listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        link = await self._link(ctx)
        await link.subscribe(params.notifications.resource_subscriptions or ())
        return await link.serve_events(ctx, params)

    async def _list_tools(self, ctx: Context, _: types.RequestParams) -> dict[str, Any]:
        link = await self._link(ctx)
        listed = await link.forward(ctx) if link.has("tools") else {"tools": []}
        is_first = not (ctx.params or {}).get("cursor")
        if is_first and listed.get("nextCursor") is None:
            link.learn_tools({tool["name"]: tool for tool in listed["tools"]})
        tools = [self._advertised(tool) for tool in listed["tools"]]
        if is_first:
            tools.append(definition(free_name(await link.tools())))
        return {**listed, "tools": tools}

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Result:
        link = await self._link(ctx)
        tools = await link.tools()
        retrieval_tool, scope = free_name(tools), self._scope or folder_scope(link.server_name)
        if params.name == retrieval_tool:
            return await answer_call(params.arguments, offloader=self.offloader, scope=scope, name=retrieval_tool)
        result = await link.forward(ctx)
        if "content" not in result and "structuredContent" not in result:
            return result  # it asks the client for input, and is no result yet
        call = Call(
            tool_name=params.name,
            arguments=params.arguments or {},
            meta=(ctx.params or {}).get("_meta") or {},
            tool_meta=tools.get(params.name, {}).get("_meta") or {},
            scope=scope,
            policy=self._policy_of(params.name),
            retrieval_tool=retrieval_tool,
        )
        return await offload_result(result, call, self.offloader)

    def _advertised(self, tool: Mapping[str, Any]) -> Mapping[str, Any]:
        leaves = may_leave(tool["name"], self.offloader, self._policy_of(tool["name"]))
        return {key: value for key, value in tool.items() if key != "outputSchema" or not leaves}


def _complete(handler: Callable[[Context, Any], Awaitable[Result]]) -> Callable[[Context, Any], Awaitable[Any]]:
    """Return a handler that tells modern clients that a result is one, where a server of the handshake did not."""

    async def handle(ctx: Context, params: Any) -> Result:  # noqa: ANN401 - of each method
        result = await handler(ctx, params)
        return {"resultType": "complete", **result} if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else result

    return handle


@dataclass(frozen=True, slots=True, kw_only=True)
class _Client:
    """Who sent a request."""

    key: Hashable
    """The same for all requests of one client: its connection, or what a client without one says about itself."""

    info: Mapping[str, Any] | None
    capabilities: Mapping[str, Any]
    modern: bool


def _client_of(ctx: Context) -> _Client:
    params = ctx.params or {}
    if ctx.method == "initialize":  # not committed yet
        info, capabilities = params.get("clientInfo"), params.get("capabilities") or {}
        return _Client(key=_connection_of(ctx), info=info, capabilities=capabilities, modern=False)
    said, offered = ctx.session.client_params, ctx.session.client_capabilities
    info, capabilities = (
        None if model is None else model.model_dump(mode="json", by_alias=True, exclude_none=True)
        for model in (said and said.client_info, offered)
    )
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return _Client(key=_connection_of(ctx), info=info, capabilities=capabilities or {}, modern=False)
    # On stdio there is one client. Over HTTP, clients that say the same are one: nothing else tells them apart.
    key = "" if ctx.request is None else json.dumps([info, capabilities], sort_keys=True)
    return _Client(key=key, info=info, capabilities=capabilities or {}, modern=True)


def _connection_of(ctx: Context) -> Connection:
    """Return what lives as long as the client's connection. The library shows it nowhere; FastMCP reads it here too."""
    return ctx.session._connection  # noqa: SLF001 - see above
