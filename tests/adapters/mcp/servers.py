"""An MCP server with one of everything, and clients of the proxy in front of it, all in this process."""

# ruff: noqa: ANN401 - what the protocol and the library pass is of any type

from __future__ import annotations

import base64
import json
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client._memory import InMemoryTransport  # Client itself uses it for a server in this process
from mcp.server import Server
from mcp.server.caching import CACHEABLE_METHODS, CacheHint
from mcp.server.runner import serve_loop
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared._context_streams import create_context_streams
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter

from coatcheck import InMemoryStorage
from coatcheck_mcp import Proxy, Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from mcp.server import ServerRequestContext

LOG = "".join(f"line {number} of a log\n" for number in range(4_000))
ROWS = {"rows": [{"id": number, "name": f"row {number}"} for number in range(3_000)]}
OTHER = {"facts": [{"id": number, "fact": f"fact {number}"} for number in range(3_000)]}
PIXELS = bytes(range(256)) * 40
HELLO = {"clientInfo": {"name": "test", "version": "1"}, "capabilities": {}, "protocolVersion": "2025-11-25"}
SCHEMA = {"type": "object", "properties": {}}
LINK = {"type": "resource_link", "uri": "file:///tmp/x.txt", "name": "x"}


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def image(pixels: bytes) -> dict[str, Any]:
    return {"type": "image", "mimeType": "image/png", "data": base64.b64encode(pixels).decode()}


RESULTS: dict[str, dict[str, Any]] = {
    "small": {"content": [{**text("few"), "annotations": {"priority": 0.5}}, LINK], "_meta": {"a/b": 1}},
    "small_rows": {"content": [text('{"a": 1}')], "structuredContent": {"a": 1}},
    "log": {"content": [text(LOG), LINK], "_meta": {"a/b": 1}},
    "rows": {"content": [text(json.dumps(ROWS))], "structuredContent": ROWS},
    "both": {"content": [text(LOG)], "structuredContent": OTHER},
    "summary": {"content": [text("3,000 rows")], "structuredContent": ROWS},
    "error": {"content": [text(LOG)], "isError": True},
    "endless": {"content": [text(LOG * 40)], "isError": True},
    "embedded": {"content": [{"type": "resource", "resource": {"uri": "file:///a.log", "text": LOG}}]},
    "blob": {
        "content": [
            {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": base64.b64encode(PIXELS).decode()}},
            text(LOG),
        ]
    },
    "image": {"content": [image(PIXELS)]},
    "image_twice": {"content": [image(PIXELS)], "structuredContent": {"content": [image(PIXELS)]}},
    "large_image_twice": {"content": [image(PIXELS * 20)], "structuredContent": {"content": [image(PIXELS * 20)]}},
    "exempt": {"content": [text(json.dumps(ROWS))], "structuredContent": ROWS},
    "declared": {"content": [text(LOG)]},
}

TOOLS = [
    types.Tool(
        name=name,
        input_schema=SCHEMA,
        output_schema={"type": "object"} if "structuredContent" in result else None,
        _meta={"anthropic/maxResultSizeChars": 400_000} if name == "declared" else None,
    )
    for name, result in RESULTS.items()
]


class Everything:
    """A server with one of everything. It records what its clients tell it."""

    def __init__(self, *, more_tools: tuple[str, ...] = ()) -> None:
        self.tools = [*TOOLS, *(types.Tool(name=name, input_schema=SCHEMA) for name in more_tools)]
        self.calls: list[tuple[str, Any]] = []
        self.meta: list[Any] = []
        self.clients: list[Any] = []
        self.level = ""
        self.subscribed: list[str] = []
        self.roots_changed = 0
        self.cancelled = 0
        self.sessions: list[Any] = []
        self.bus = InMemorySubscriptionBus()
        hints: dict[Any, CacheHint] = dict.fromkeys(CACHEABLE_METHODS, CacheHint())
        self.server: Server[Any] = Server("everything", version="7", instructions="Be kind.", cache_hints=hints)
        for method, params, handler in (
            ("tools/list", types.PaginatedRequestParams, self._list),
            ("tools/call", types.CallToolRequestParams, self._call),
            ("resources/list", types.PaginatedRequestParams, self._resources),
            ("resources/templates/list", types.PaginatedRequestParams, self._templates),
            ("resources/read", types.ReadResourceRequestParams, self._read),
            ("resources/subscribe", types.SubscribeRequestParams, self._subscribe),
            ("prompts/list", types.PaginatedRequestParams, self._prompts),
            ("prompts/get", types.GetPromptRequestParams, self._prompt),
            ("completion/complete", types.CompleteRequestParams, self._complete),
            ("logging/setLevel", types.SetLevelRequestParams, self._set_level),
        ):
            self.server.add_request_handler(method, params, _complete(handler))
        self.server.add_request_handler(
            "subscriptions/listen", types.SubscriptionsListenRequestParams, ListenHandler(self.bus)
        )
        self.server.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._roots_changed
        )

    def upstream(self) -> Upstream:
        return Upstream(name="test-server", connect=lambda: InMemoryTransport(self.server))

    async def _list(self, ctx: Any, params: types.PaginatedRequestParams) -> types.ListToolsResult:
        half = len(self.tools) // 2
        if params.cursor:
            return types.ListToolsResult(tools=self.tools[half:])
        return types.ListToolsResult(tools=self.tools[:half], next_cursor="2")

    async def _call(self, ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams) -> Any:
        self.calls.append((params.name, params.arguments))
        self.meta.append(params.meta)
        self.clients.append(ctx.session.client_params)
        self.sessions.append(ctx.session._connection)
        ask = getattr(self, f"_do_{params.name}", None)
        if ask is not None:
            return {"content": [text(str(await ask(ctx, params.arguments or {})))]}
        return RESULTS.get(params.name) or {"content": [text(f"called {params.name}")]}

    async def _do_progress(self, ctx: ServerRequestContext[Any, Any], _: Any) -> str:
        await ctx.session.report_progress(1, 2, "half")
        return "done"

    async def _do_say(self, ctx: ServerRequestContext[Any, Any], _: Any) -> str:
        said = types.LoggingMessageNotificationParams(level="warning", data={"deep": [1]}, logger="a.logger")
        await ctx.session.send_notification(types.LoggingMessageNotification(params=said), ctx.request_id)
        return "logged"

    async def _do_sample(self, ctx: ServerRequestContext[Any, Any], _: Any) -> Any:
        params = types.CreateMessageRequestParams(messages=[], max_tokens=5, system_prompt="be brief")
        related = ServerMessageMetadata(related_request_id=ctx.request_id)
        found = await ctx.session.send_request(
            types.CreateMessageRequest(params=params), types.CreateMessageResult, metadata=related
        )
        return found.model_dump_json(by_alias=True, exclude_none=True)

    async def _do_elicit(self, ctx: ServerRequestContext[Any, Any], _: Any) -> Any:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        return (await ctx.session.elicit_form("who?", schema, ctx.request_id)).model_dump_json(exclude_none=True)

    async def _do_roots(self, ctx: ServerRequestContext[Any, Any], _: Any) -> Any:
        found = await ctx.session.send_request(types.ListRootsRequest(), types.ListRootsResult)
        return [str(root.uri) for root in found.roots]

    async def _do_refuse(self, ctx: ServerRequestContext[Any, Any], arguments: Any) -> None:
        raise MCPError(code=-32_000, message="no", data=arguments["data"])

    async def _do_wait(self, ctx: ServerRequestContext[Any, Any], _: Any) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            self.cancelled += 1

    async def _do_change(self, ctx: ServerRequestContext[Any, Any], _: Any) -> str:
        self.tools.append(types.Tool(name="new", input_schema=SCHEMA))
        await self.bus.publish(ToolsListChanged())
        await ctx.session.send_tool_list_changed()
        await ctx.session.send_prompt_list_changed()
        await ctx.session.send_resource_list_changed()
        await ctx.session.send_resource_updated("file:///a")
        return "changed"

    async def _resources(self, ctx: Any, params: Any) -> Any:
        return {"resources": [{"uri": "file:///a", "name": "a", "size": 3, "annotations": {"priority": 1.0}}]}

    async def _templates(self, ctx: Any, params: Any) -> Any:
        return {"resourceTemplates": [{"uriTemplate": "file:///{x}", "name": "t"}]}

    async def _read(self, ctx: Any, params: types.ReadResourceRequestParams) -> Any:
        return {"contents": [{"uri": str(params.uri), "text": LOG, "mimeType": "text/x-log"}]}

    async def _subscribe(self, ctx: Any, params: types.SubscribeRequestParams) -> Any:
        self.subscribed.append(str(params.uri))
        return {}

    async def _prompts(self, ctx: Any, params: Any) -> Any:
        return {"prompts": [{"name": "p", "arguments": [{"name": "x", "required": True}]}]}

    async def _prompt(self, ctx: Any, params: types.GetPromptRequestParams) -> Any:
        return {"messages": [{"role": "user", "content": text(f"hello {params.arguments}")}]}

    async def _complete(self, ctx: Any, params: types.CompleteRequestParams) -> Any:
        return {"completion": {"values": [f"{params.argument.value}!"], "total": 1, "hasMore": False}}

    async def _set_level(self, ctx: Any, params: types.SetLevelRequestParams) -> Any:
        self.level = params.level
        return {}

    async def _roots_changed(self, ctx: Any, params: Any) -> None:
        self.roots_changed += 1


def _complete(handler: Any) -> Any:
    async def handle(ctx: Any, params: Any) -> Any:
        result = await handler(ctx, params)
        is_modern = isinstance(result, dict) and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        return {"resultType": "complete", **result} if is_modern else result

    return handle


@asynccontextmanager
async def client_of(
    upstream: Upstream | Everything | Mapping[str, Upstream],
    *,
    proxy: Proxy | None = None,
    mode: str = "legacy",
    **options: Any,
) -> AsyncIterator[Any]:
    """Connect a client through a proxy. ``options`` are those of ``Proxy`` and of ``Client``."""
    of_proxy = {name: options.pop(name) for name in ("policies", "scope", "max_result_tokens") if name in options}
    target = upstream.upstream() if isinstance(upstream, Everything) else upstream
    made = proxy or Proxy(target, InMemoryStorage(), **of_proxy)
    async with made.running() as front, Client(InMemoryTransport(front), mode=mode, **options) as client:
        yield client


def waiting(server: Everything, start: anyio.Event) -> Upstream:
    """Return an upstream that starts once ``start`` is set."""

    @asynccontextmanager
    async def connect() -> AsyncIterator[Any]:
        await start.wait()
        async with server.upstream().connect() as streams:
            yield streams

    return Upstream(name="slow", connect=connect)


class FailsToStart:
    """A server that fails to start. Each start first waits for its event in ``starts``."""

    def __init__(self, error: Exception) -> None:
        self.starts: list[anyio.Event] = []
        self._error = error

    def upstream(self, name: str) -> Upstream:
        return Upstream(name=name, connect=self._connect)

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[Any]:
        self.starts.append(anyio.Event())
        await self.starts[-1].wait()
        raise self._error
        yield


class Limited:
    """Stands in for anyio in a module. Its time limits end on an event instead of after a time."""

    def __init__(self, move_on_after: Callable[[float], Any]) -> None:
        self.move_on_after = move_on_after

    def __getattr__(self, name: str) -> Any:
        return getattr(anyio, name)


async def wire(client: Client, method: str, params: dict[str, Any] | None = None) -> Any:
    """Send a request, and return its result before the library's models drop any field."""
    request = types.Request[dict[str, Any], str](method=method, params=params or {})
    return await client.session.send_request(request, TypeAdapter(dict[str, Any]))


IMAGE = types.ImageContent(data="aGk=", mime_type="image/png")


async def sample(_: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    assert params.system_prompt == "be brief"
    return types.CreateMessageResult(role="assistant", content=IMAGE, model="a-model", stop_reason="endTurn")


async def elicit(_: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": params.message})


async def roots(_: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root.model_validate({"uri": "file:///home/x"})])


WILLING: dict[str, Any] = {
    "sampling_callback": sample,
    "elicitation_callback": elicit,
    "list_roots_callback": roots,
}


def speaking(server: Everything, only: str | None, *, ends: list[Any] | None = None) -> Upstream:
    """Return an upstream that speaks only the era whose first request is ``only``, or both if it is None.

    ``ends`` collects a function for each connection that ends it.
    """

    @asynccontextmanager
    async def connect() -> AsyncIterator[Any]:
        async with create_client_server_memory_streams() as (client, streams), anyio.create_task_group() as tasks:
            if ends is not None:
                ends.append(streams[1].aclose)
            if only == "initialize":
                tasks.start_soon(partial(serve_loop, server.server, *streams, lifespan_state={}))
            else:
                writes, reads = create_context_streams[Any](1)
                tasks.start_soon(_refuse_handshake, streams, writes)
                tasks.start_soon(server.server.run, reads, streams[1], server.server.create_initialization_options())
            yield client
            tasks.cancel_scope.cancel()

    return Upstream(name="test-server", connect=connect) if only else server.upstream()


async def _refuse_handshake(streams: Any, inner: Any) -> None:
    """Pass on what the client sends, but refuse ``initialize``."""
    async with inner:
        async for item in streams[0]:
            message = item.message
            if getattr(message, "method", "") != "initialize":
                await inner.send(item)
                continue
            # Many servers refuse with this code; it must not be taken for a lost connection.
            error = types.ErrorData(code=-32_000, message="bad request")
            await streams[1].send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=message.id, error=error)))
