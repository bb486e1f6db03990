"""The proxy: an MCP server for clients, in front of any other MCP server.

It forwards everything, looks at the results of ``tools/call``, and adds one tool. This module decides which session
with the server belongs to which client. ``link`` handles what passes through a session, and ``several`` makes several
servers look like one.
"""

from __future__ import annotations

import json
from collections import Counter, OrderedDict
from collections.abc import Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, get_args

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server import Server as FrontServer
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.stdio import stdio_server
from mcp_types.methods import SPEC_CLIENT_METHODS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from coatcheck import RETRIEVAL_TOOL, InvalidRequest, StorageError
from coatcheck.adapting import (
    OfferTool,
    WarnOnce,
    check_flags,
    enter_scope,
    is_offered_late,
    make_offloader,
    remember_latest,
)
from coatcheck_mcp.client import ANY_CAPABILITIES, LIST_CHANGES, Client, connection_of, identify
from coatcheck_mcp.convert import Result, offloaded_references
from coatcheck_mcp.faults import leaves
from coatcheck_mcp.flow import CountedWrites, Gate, PacedReads
from coatcheck_mcp.hook import Call, is_too_large_beside, logger, may_leave, offload_result
from coatcheck_mcp.link import Link, SessionForgotten
from coatcheck_mcp.names import LONGEST_SERVER, find_clash
from coatcheck_mcp.retrieval import CLASH, answer_call, definition, free_name
from coatcheck_mcp.scope import folder_scope, working_folder
from coatcheck_mcp.several import Several
from coatcheck_mcp.starting import Starting
from coatcheck_mcp.transports import Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Hashable, Iterator

    from anyio.abc import TaskGroup
    from anyio.streams.memory import MemoryObjectSendStream
    from mcp.server.context import CallNext, HandlerResult
    from mcp.shared._stream_protocols import ReadStream, WriteStream  # the types of what transports yield
    from typing_extensions import Unpack

    from coatcheck import Offloader, OffloaderOptions, Policy, Scope
    from coatcheck.adapting import StorageOrOffloader
    from coatcheck_mcp.client import Context

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
"""Requests that are passed on as they are."""

_OF_TASKS = ("tasks/cancel", "tasks/get", "tasks/list", "tasks/result", "tasks/update")
"""Requests that are refused: a task's result would come later, and bypass every check."""

DISCOVER_SECONDS = 6.0
"""How long ``server/discover`` waits for the server. Clients wait ten seconds for the answer, and take silence for a
handshake server. A server may take longer to start, such as one that is downloaded first."""

TELL_SECONDS = 5.0
"""How long a result waits until all clients are told of the retrieval tool."""

LEAVE_SECONDS = 5.0
"""How long unsubscribing from a handshake server may take after a stream of changes has ended."""

LISTING_SECONDS = 5.0
"""How long the list of tools waits for the storage to say whether it holds anything."""

LEFT_SECONDS = 30.0
"""How long a server may go on starting for a client that has left: a script that pipes in ``initialize`` gets its
answer if the server is up by then. Once it is up, all other requests end at once."""

MAX_AHEAD = 64
"""The most messages of a client that are read before they are handled. If more are waiting, nobody notices that the
client left."""

MAX_UNREAD = 1_000
"""Answers that a client on pipes has not read yet. At this many, the client is not read either. Clients that write all
their requests before they read send fewer."""

_MAX_LINKS = 16
"""Idle sessions of modern clients over HTTP, which do not say when they leave. Beyond this many, the one that has been
idle for longest is closed."""

MAX_OFFERED = 100_000
"""The scopes that are remembered to have content, the latest ones. For any other, the storage is asked again, and its
next result that leaves tells the clients again."""

_answered: ContextVar[list[Result]] = ContextVar("coatcheck_mcp_answered")
"""What this request's handler returned, for the middleware around it."""


@dataclass(eq=False)
class _Seat(Starting[Link | Several]):
    """A client, and its session with what is behind the proxy."""

    client: Client
    requests: int = field(default=0, init=False)
    """How many of the client's requests have no answer yet."""


class Proxy:
    """An MCP server in front of another one. It passes everything on as it is, except tool results that leave.

    Each client gets a session of its own with the server; a server that is started as a command runs once for each.
    To a client, several servers look like one: their tools and prompts have the server's name before their own.
    """

    def __init__(
        self,
        upstream: Upstream | Mapping[str, Upstream],
        storage: StorageOrOffloader,
        *,
        scope: Scope | None = None,
        identity_of: Callable[[str], Scope | None] | None = None,
        policy_of: Callable[[str], Policy | None] | None = None,
        on_tools: Callable[[Collection[str]], None] | None = None,
        native_media: bool = True,
        offer_tool: OfferTool = "always",
        **options: Unpack[OffloaderOptions],
    ) -> None:
        """Configure; nothing is started.

        Args:
            upstream: the server behind the proxy: ``command_upstream`` or ``url_upstream``. Several servers are a
                mapping of their names; tools and prompts are then called ``NAME_TOOL`` everywhere.
            storage: where content goes: a storage, or a ready ``Offloader``.
            scope: who may read back. None: the ambient scope, else the identity.
            identity_of: returns the scope of a server's clients by the server's name. None: a digest of that name and
                the working directory, so that references survive restarts and projects do not mix.
            policy_of: returns the policy of a tool by its name. None, or where it returns None: the offloader's
                policies decide.
            on_tools: called once with the names of all tools, as ``policy_of`` gets them, when they are known.
            native_media: whether the retrieval tool returns images and files themselves instead of a description.
            offer_tool: when the retrieval tool is listed: ``"always"``, or ``"when needed"``, which means once the
                scope has content. Clients are told of the change. The tool answers calls in any case.
            **options: the options of ``Offloader``.

        Raises:
            InvalidRequest: an argument is wrong, or one server's name is a prefix of another's.
            TypeError: there is no such option.

        """
        no_steps = "a proxy sees one call at a time, so omit it"
        self.offloader: Offloader = make_offloader(storage, options, owner=Proxy, no_steps=no_steps)
        _check_upstreams(upstream)
        for name, given in {"identity_of": identity_of, "policy_of": policy_of, "on_tools": on_tools}.items():
            if given is not None and not callable(given):
                msg = f"{name} must be a callable or None, not {given!r}"
                raise InvalidRequest(msg)
        with enter_scope(scope):  # rejects anything but a scope
            pass
        self._upstream = upstream
        self._scope = scope
        self._identity_of = identity_of or partial(folder_scope, folder=working_folder())
        self._policy_of = policy_of or _no_policy
        self._on_tools = on_tools
        check_flags(native_media=native_media)
        self._native_media = native_media
        self._offers_late = is_offered_late(offer_tool)
        self._offered_to: OrderedDict[Scope | None, None] = OrderedDict()
        self._reads_back: tuple[str, Scope | None] | None = None
        """The retrieval tool's name, and the identity of those who call it; None until a server has been up."""

        self._warn = WarnOnce(logger)
        self._seats: dict[Hashable, _Seat] = {}
        self._tasks: TaskGroup | None = None
        self.front: FrontServer[Any] = self._build()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[FrontServer[Any]]:
        """Keep the sessions with the server while the block runs. At its end, close them and end the processes."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            try:
                yield self.front
            finally:
                for link in self._close():
                    link.close()

    async def aclose(self) -> None:
        """End all sessions with the server, and wait until its processes are gone. No new ones are started."""
        async with anyio.create_task_group() as tasks:
            for link in self._close():
                tasks.start_soon(link.aclose)

    def _close(self) -> list[Link | Several]:
        self._tasks = None
        return [seat.link for seat in self._seats.values() if seat.link is not None]

    async def serve_stdio(self) -> None:
        """Serve the one client on stdin and stdout until it leaves, even if it leaves answers unread."""
        try:
            async with self.running(), stdio_server() as streams:
                await self.serve_streams(*streams)
        except Exception as error:
            if not all(isinstance(each, BrokenPipeError) for each in leaves(error)):
                raise

    async def serve_streams(self, reads: ReadStream[Any], writes: WriteStream[Any]) -> None:
        """Serve one client on a pair of the mcp package's streams, inside ``running``.

        A client that does not read its answers is not read either, once too many of them wait.
        """
        unread = Gate(MAX_UNREAD)
        answers = CountedWrites(writes, unread)
        options = self.front.create_initialization_options()
        into, ahead = anyio.create_memory_object_stream[Any](MAX_AHEAD)
        async with ahead, anyio.create_task_group() as tasks:
            tasks.start_soon(_read_ahead, reads, into, tasks.cancel_scope)
            await self.front.run(PacedReads(ahead, unread, answers=answers), answers, options)
            tasks.cancel_scope.cancel()

    def _build(self) -> FrontServer[Any]:
        # A modern client is told how long it may keep a list. A handshake server does not say, so: not at all.
        hints = {method: CacheHint() for method in get_args(CacheableMethod)}
        front: FrontServer[Any] = FrontServer("coatcheck", version=version("coatcheck"), cache_hints=hints)
        for method in _FORWARDED:
            front.add_request_handler(method, types.RequestParams, _complete(self._forward))
        for method in _OF_TASKS:
            front.add_request_handler(method, types.RequestParams, _refuse_tasks)
        front.add_request_handler("tools/list", types.RequestParams, _complete(self._list_tools))
        front.add_request_handler("tools/call", types.CallToolRequestParams, _complete(self._call_tool))
        front.add_request_handler("subscriptions/listen", types.SubscriptionsListenRequestParams, self._listen)
        front.add_notification_handler("notifications/initialized", types.NotificationParams, self._initialized)
        front.add_notification_handler(
            "notifications/roots/list_changed", types.NotificationParams, self._roots_changed
        )
        front.middleware += [self._occupy, self._negotiate, self._answer_whole, _send_again, self._forward_extension]
        return front

    # Which session belongs to whom.

    def _seat(self, ctx: Context) -> _Seat:
        """Return the seat of a request's client; make one if there is none."""
        who = identify(ctx)
        seat = self._seats.pop(who.key, None)
        if seat is None:
            seat = _Seat(Client(who))
            if not who.modern:
                connection_of(ctx).exit_stack.callback(self._leave, who.key)
        if who.modern:
            self._drop_oldest()
        self._seats[who.key] = seat  # as the latest in the order
        return seat

    def _leave(self, key: Hashable) -> None:
        link = self._seats.pop(key).link
        if link is not None:
            link.close()

    @contextmanager
    def _occupied(self, ctx: Context) -> Iterator[_Seat]:
        """Keep the session of a request's client open during the block."""
        seat = self._seat(ctx)
        seat.requests += 1
        try:
            yield seat
        finally:
            seat.requests -= 1

    async def _occupy(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        if not identify(ctx).modern:  # the session ends with the connection
            return await call_next(ctx)
        with self._occupied(ctx):
            return await call_next(ctx)

    async def _link(self, ctx: Context) -> Link | Several:
        """Return the client's session with the server; connect if it has none, or has lost it.

        Raises:
            MCPError: the server did not start.

        """
        with self._occupied(ctx) as seat:
            return await seat.connected(partial(self._connect, seat))

    async def _connect(self, seat: _Seat) -> Link | Several:
        upstream, client = self._upstream, seat.client
        link = seat.link = Several(upstream, client) if isinstance(upstream, Mapping) else Link(upstream, client)
        await self._running_tasks.start(link.run)
        return link

    @property
    def _running_tasks(self) -> TaskGroup:
        if self._tasks is None:
            msg = "a Proxy serves clients only inside `async with proxy.running():`"
            raise RuntimeError(msg)
        return self._tasks

    def _drop_oldest(self) -> None:
        idle = [key for key, seat in self._seats.items() if seat.client.modern and not seat.requests]
        for key in idle[: max(0, len(idle) - _MAX_LINKS + 1)]:
            self._leave(key)

    # What the client asks.

    async def _negotiate(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer a client's first request as the server behind us does, on top of what ``mcp`` answers."""
        result = await call_next(ctx)
        if ctx.method not in {"initialize", "server/discover"} or not isinstance(result, dict):
            return result
        link = await self._link(ctx) if ctx.method == "initialize" else await self._link_in_time(ctx)
        described = link.describe(result) if link else {**result, "capabilities": ANY_CAPABILITIES}
        if self._offers_late:
            described["capabilities"] = {**described["capabilities"], "tools": {"listChanged": True}}
        return described

    async def _answer_whole(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer with the keys that the server sent, in its order.

        The mcp package rebuilds each answer from its own model: keys in another order, ``1`` as ``1.0``, unknown fields
        gone. That is needed only if the server speaks a later version than the client, or belongs to another era. It
        also writes into ``_meta`` that the answer is from us, although ``server/discover`` names the server.
        """
        found: list[Result] = []
        token = _answered.set(found)
        try:
            shaped = await call_next(ctx)
        finally:
            _answered.reset(token)
        seat = self._seats.get(identify(ctx).key) if found else None
        if seat is None or seat.link is None or not isinstance(shaped, dict):
            return shaped
        answer = found[0]
        if not seat.link.suits(ctx.protocol_version):
            answer = {"_meta": answer["_meta"]} if "_meta" in answer else {}
        return {**answer, **{name: value for name, value in shaped.items() if name not in answer and name != "_meta"}}

    async def _link_in_time(self, ctx: Context) -> Link | Several | None:
        """Return the client's session with the server; None if it is not up while the client waits for this answer.

        Also None if the server did not start: a client would take an error for the sign of a handshake server, and then
        learn only that this connection has no handshake. The next request is told why.
        """
        connected, found = anyio.Event(), list[Link | Several]()

        async def connect() -> None:
            with suppress(MCPError):
                found.append(await self._link(ctx))
            connected.set()

        self._running_tasks.start_soon(connect)  # in a task that goes on after the answer
        with anyio.move_on_after(DISCOVER_SECONDS):
            await connected.wait()
        return found[0] if found else None

    async def _initialized(self, ctx: Context, _: types.NotificationParams) -> None:
        await self._seat(ctx).client.get_ready(ctx.session)

    async def _roots_changed(self, ctx: Context, _: types.NotificationParams) -> None:
        await (await self._link(ctx)).notify(types.RootsListChangedNotification())

    async def _forward(self, ctx: Context, _: types.RequestParams | None) -> dict[str, Any]:
        if ctx.method == "logging/setLevel":
            self._seat(ctx).client.log_level = (ctx.params or {}).get("level")
        return await (await self._link(ctx)).forward(ctx)

    async def _forward_extension(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Forward a request that the protocol itself does not have: extensions have their own requests.

        Several servers do not get it: nobody knows which one it is for, and it may change something in each.
        """
        is_known = ctx.method in SPEC_CLIENT_METHODS or self.front.get_request_handler(ctx.method) is not None
        is_request = ctx.request_id is not None  # notifications come by here too
        is_forwarded = is_request and not is_known and not isinstance(self._upstream, Mapping)
        if not is_forwarded or not connection_of(ctx).initialize_accepted:
            return await call_next(ctx)
        return dict(await _complete(self._forward)(ctx, None))

    async def _listen(
        self, ctx: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        link, seat = await self._link(ctx), self._seat(ctx)
        client, uris = seat.client, params.notifications.resource_subscriptions or ()
        client.listened.update(uris)
        try:
            await link.subscribe(uris)
            return await client.serve_events(ctx, params)
        finally:
            client.listened -= Counter(uris)  # also drops those that nobody listens to
            with anyio.move_on_after(LEAVE_SECONDS, shield=True):  # it usually ends by cancellation
                await (seat.link or link).unsubscribe(uris)

    async def _list_tools(self, ctx: Context, _: types.RequestParams) -> dict[str, Any]:
        link = await self._link(ctx)
        listed = await link.list_tools(ctx)
        tools = [self._advertised(tool, link.full_name(tool["name"])) for tool in listed["tools"]]
        if (ctx.params or {}).get("cursor") is None and await self._is_offered(self._identity_of(link.server_name)):
            tools.append(definition(self._retrieval_name(await link.taken_names())))
        await self._tell_of_tools(link)
        return {**listed, "tools": tools}

    async def _tell_of_tools(self, link: Link | Several) -> None:
        names = await link.all_names() if self._on_tools else None
        if names is not None and self._on_tools is not None:
            tell, self._on_tools = self._on_tools, None
            tell(names)

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Result:
        known = self._reads_back
        if known and params.name == known[0] and not self._seat(ctx).is_connected:
            return await self._read_back(params, *known)  # which needs no server, and must not wait for one
        try:
            link = await self._link(ctx)
            retrieval_tool = self._retrieval_name(await link.taken_names())
        except MCPError:
            # Not sooner: until a server has been up, nobody knows whether it has a tool of that name too.
            known = known or (None if self._scope is None else (RETRIEVAL_TOOL, None))
            if known is None or params.name != known[0]:
                raise
            return await self._read_back(params, *known)
        identity = self._identity_of(link.server_name)
        self._reads_back = retrieval_tool, identity
        if params.name == retrieval_tool:
            return await self._read_back(params, retrieval_tool, identity)
        tool_meta = await link.tool_meta(params.name)
        tool_name = link.full_name(params.name)
        try:
            result = await link.forward(_without_task(ctx))
        except MCPError as refused:
            error = refused.error.model_dump(mode="json", exclude_none=True)
            if not is_too_large_beside(error, self.offloader):
                raise
            said = json.dumps(error, ensure_ascii=False)
            result = {"content": [{"type": "text", "text": said}], "isError": True}  # this can leave
        if "content" not in result and "structuredContent" not in result:
            return result  # it asks the client for input, and is not a result yet
        call = Call(
            tool_name=tool_name,
            arguments=params.arguments or {},
            meta=(ctx.params or {}).get("_meta") or {},
            tool_meta=tool_meta,
            capabilities=self._seat(ctx).client.capabilities,
            scope=self._scope,
            identity=identity,
            policy=self._policy_of(tool_name),
            retrieval_tool=retrieval_tool,
        )
        sent = await offload_result(result, call, self.offloader)
        if self._offers_late and identity not in self._offered_to and offloaded_references(sent):
            await self._offer(identity)
        return sent

    async def _read_back(self, params: types.CallToolRequestParams, name: str, identity: Scope | None) -> Result:
        return await answer_call(
            params.arguments,
            offloader=self.offloader,
            scope=self._scope,
            identity=identity,
            name=name,
            native_media=self._native_media,
        )

    # Whether the retrieval tool is in the list.

    async def _is_offered(self, identity: Scope | None) -> bool:
        """Return whether the tool is listed: always, or once there has been anything to read back."""
        if not self._offers_late or identity in self._offered_to:
            return True
        try:
            with anyio.fail_after(LISTING_SECONDS):
                listing = await self.offloader.alist(scope=self._scope, identity=identity)
        except TimeoutError:
            words = "the storage did not say within %g seconds what it holds, so the retrieval tool is always offered"
            self._warn(words, LISTING_SECONDS)
        except (InvalidRequest, StorageError) as error:
            self._warn("the storage cannot say what it holds (%s), so the retrieval tool is always offered", error)
        else:
            if not listing.contents:
                return False
        remember_latest(self._offered_to, identity, value=None, most=MAX_OFFERED)
        return True

    async def _offer(self, identity: Scope | None) -> None:
        """List the tool from now on, and tell all clients before the first result for which they need it."""
        remember_latest(self._offered_to, identity, value=None, most=MAX_OFFERED)
        # All at once: a client that no longer reads must not hold up the result of another one.
        with anyio.move_on_after(TELL_SECONDS):
            async with anyio.create_task_group() as tasks:
                for seat in list(self._seats.values()):
                    tasks.start_soon(seat.client.tell, LIST_CHANGES["tools"]())

    def _retrieval_name(self, tools: Collection[str]) -> str:
        name = free_name(tools)
        if name != RETRIEVAL_TOOL:
            self._warn(CLASH, RETRIEVAL_TOOL, name)
        return name

    def _advertised(self, tool: Mapping[str, Any], full_name: str) -> Mapping[str, Any]:
        leaves = may_leave(full_name, self.offloader, self._policy_of(full_name))
        return {key: value for key, value in tool.items() if key != "outputSchema" or not leaves}


async def _read_ahead(reads: ReadStream[Any], into: MemoryObjectSendStream[Any], serving: anyio.CancelScope) -> None:
    """Pass on what a client sends; ``LEFT_SECONDS`` after the client has left, stop serving it.

    While a server starts, nothing else would notice that the client left: the ``mcp`` package handles ``initialize``
    before it reads on.
    """
    async with into, reads:
        async for item in reads:
            await into.send(item)
    await anyio.sleep(LEFT_SECONDS)
    serving.cancel()


def _complete(handler: Callable[[Context, Any], Awaitable[Result]]) -> Callable[[Context, Any], Awaitable[Any]]:
    """Return a handler that marks its results as modern clients expect, if an older server left the mark out."""

    async def handle(ctx: Context, params: Any) -> Result:  # noqa: ANN401 - of each method
        result = await handler(ctx, params)
        _answered.get().append(result)
        return {"resultType": "complete", **result} if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else result

    return handle


async def _send_again(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Handle a request once more if the server refused it because it no longer knows the session.

    Only the last message that a handler sends may change anything, so nothing is done twice.
    """
    try:
        return await call_next(ctx)
    except SessionForgotten as refused:
        logger.warning("%s is sent again: %s", ctx.method, refused)
        return await call_next(ctx)


async def _refuse_tasks(_: Context, __: types.RequestParams) -> dict[str, Any]:
    msg = "coatcheck does not pass on tasks: their results would bypass it. Call the tool without a task"
    raise MCPError(code=types.METHOD_NOT_FOUND, message=msg)


def _without_task(ctx: Context) -> Context:
    """Return a call without its task: where tasks are not offered, the protocol answers it like any other call."""
    if "task" not in (ctx.params or {}):
        return ctx
    return replace(ctx, params={name: value for name, value in (ctx.params or {}).items() if name != "task"})


def _no_policy(_: str) -> None:
    """Leave a tool to the offloader's policies."""


def _check_upstreams(given: object) -> None:
    """Check what is behind a proxy.

    Raises:
        InvalidRequest: it is neither a server nor a mapping of names to servers, or a name is not allowed.

    """
    servers = given if isinstance(given, Mapping) else {"server": given}
    for name, server in servers.items():
        if not isinstance(server, Upstream):
            kind = type(server).__name__  # not its repr: settings and addresses may hold a secret
            msg = f"a Proxy needs a server, such as command_upstream(['uvx', 'my-server']), not a value of type {kind}"
            raise InvalidRequest(msg)
        if not isinstance(name, str) or not name:
            msg = f"the name of a server must be a non-empty str, not {name!r}"
            raise InvalidRequest(msg)
    if isinstance(given, Mapping):
        _check_names(given)


def _check_names(upstreams: Mapping[str, Upstream]) -> None:
    for name in upstreams:
        if len(name) > LONGEST_SERVER:
            msg = f"the name of a server must have at most {LONGEST_SERVER} characters, not {len(name)}: {name!r}"
            raise InvalidRequest(msg)
    clash = find_clash(upstreams)
    if clash or not upstreams:
        what = "must have at least one server" if clash is None else f"must not have both {clash[0]!r} and {clash[1]!r}"
        msg = f"the servers of a Proxy {what}: names of tools begin with the server's and an underscore"
        raise InvalidRequest(msg)
