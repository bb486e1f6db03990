"""One client's session with the server behind the proxy: requests go up, everything that the server starts goes down.

Requests are forwarded as they are, on the sessions of the ``mcp`` package. FastMCP's own proxy was rejected for this:
it rebuilds lists from its own components, and the client's answers as its own. So sampling arrives as text only,
completion and list changes do not arrive at all, the server is told of capabilities that the client lacks, and clients
share one session.
"""

from __future__ import annotations

from contextlib import nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.connection import allowed_log_levels
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from coatcheck_mcp.client import passed_on
from coatcheck_mcp.faults import LOST_SESSION, NO_SESSION, in_our_words, innermost, is_end, said_by
from coatcheck_mcp.flow import CountedWrites, Gate, PacedReads
from coatcheck_mcp.hook import logger
from coatcheck_mcp.questions import Questions
from coatcheck_mcp.session import Session
from coatcheck_mcp.subscriptions import Subscriptions
from coatcheck_mcp.turns import turn

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from anyio.abc import TaskStatus
    from mcp.server.session import ServerSession
    from mcp.shared._stream_protocols import ReadStream, WriteStream  # the types of what transports yield

    from coatcheck_mcp.client import Client, Context
    from coatcheck_mcp.transports import Upstream

__all__ = ("Link", "SessionForgotten")

_MAX_PAGES = 1_000
"""The most pages of a list. A server whose list never ends must not hang a call."""

TOOLS_SECONDS = 10.0
"""How long a call waits for the list of tools, which it can do without."""

MAX_UNREAD = 64
"""Messages of a server that its client has not read yet. At this many, the server is not read either, and must wait."""

UNREAD_SECONDS = 5.0
"""How long a log message waits for a client over HTTP that shares its session with others, before it is dropped."""

FORGOTTEN_SECONDS = 5.0
"""How long to wait, after the server has said that it no longer knows the session, until it refuses the other requests
in flight too, so that they can be sent again."""

MAX_IN_FLIGHT = 10_000
"""The most unanswered requests of one client to one server. Each takes some kilobytes."""

_LONGEST_FAULT = 300
"""Characters. An error quotes at most this much of an answer's fault: the server's field names may be long."""

_OF_CONNECTION = frozenset(
    {types.PROTOCOL_VERSION_META_KEY, types.CLIENT_INFO_META_KEY, types.CLIENT_CAPABILITIES_META_KEY}
)
"""What a modern client says with each request about its connection with us. Upstream, the session sends its own."""

_ANY: TypeAdapter[Any] = TypeAdapter(dict[str, Any])


_Request = types.Request[dict[str, Any], str]
"""Any request, with its parameters as they came."""


class SessionForgotten(MCPError):
    """The server refused a request unseen, because it no longer knows the session: the request can be sent again."""


class Link:
    """A session with the server on behalf of one client."""

    def __init__(self, upstream: Upstream, client: Client, *, label: str | None = None) -> None:
        """Prepare to connect.

        Args:
            upstream: the server behind the proxy.
            client: whom the session is for.
            label: the server's name in errors; None: the name that it gives itself.

        """
        self._upstream = upstream
        self._client = client
        self._label = label
        self._name = label or upstream.name
        self._session: Session | None = None
        self.was_up: bool = False
        """Whether the server has been up."""

        self._connecting = anyio.CancelScope()
        self._closing = anyio.Event()
        """Set once we close the connection, or the server has closed it: nothing more may be sent."""

        self._is_ours = False
        """Whether we ended the connection, and not the server."""

        self._ended = anyio.Event()
        self._is_forgotten = False
        """Whether the server said that it no longer knows the session."""

        self._in_flight: dict[object, Context] = {}
        self._idle = anyio.Event()
        """Set once nothing is in flight in a session that the server no longer knows."""

        self._tools: dict[str, Mapping[str, Any]] | None = None
        self._listing = anyio.Lock(fast_acquire=True)
        """Taken without a pause if it is free. Otherwise, a call that is cancelled at once never reaches the server."""
        wanted = client.subscribed.setdefault(label, set())
        self._subscriptions = Subscriptions(self, wanted, listened=client.listened, tell=self._relay)
        self._questions = Questions(client, latest=self._latest, notify=self.notify)
        self._unread = Gate(MAX_UNREAD)
        self._streams: tuple[PacedReads, CountedWrites] | None = None
        self.resource_changes: int = 0
        """How many times the server said that its list of resources changed."""

    # The connection.

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Hold the connection open until ``close``, and tell ``task_status`` once it is up.

        Raises:
            MCPError: the server did not start, or gave no answer that can be understood.

        """
        failure: Exception | None = None
        try:
            with self._connecting:
                async with (
                    self._upstream.connect() as (reads, writes),
                    self._session_on(reads, writes) as session,
                ):
                    # Caught inside, because a task group wraps exceptions that pass through it.
                    try:
                        await self._connect(session)
                        task_status.started()
                        await self._hold(session)
                    except Exception as error:  # noqa: BLE001 - told to the client below
                        failure = error
                    finally:
                        self._closing.set()  # before the waiting requests learn of it
        except Exception as error:  # noqa: BLE001 - as above
            failure = failure or error
        finally:
            self._closing.set()
            self._subscriptions.close()
            self._ended.set()
        if not self.was_up:
            refused = _start_failure(self._name, failure, self._upstream.start_seconds)
            if failure is not None:
                logger.warning("%s", refused)
            raise refused
        if self._is_ours:
            return  # streams that we closed make whoever still uses them fail
        if failure is not None:
            logger.warning("coatcheck mcp: the session with %s ended: %s", self._name, said_by(innermost(failure)))
        else:
            logger.warning("the MCP server %s has ended; the next request starts it again", self._name)

    async def _connect(self, session: Session) -> None:
        with anyio.fail_after(self._upstream.start_seconds):
            await session.negotiate(is_gone=self._is_gone)
            self._session = session
            if self._label is None and session.server_info:
                self._name = session.server_info.name
            await self._repeat_log_level()
        self.was_up = True

    def close(self) -> None:
        """End the connection, even if it is not up yet; ``run`` returns once the process is gone."""
        self._is_ours |= not self.closed
        self._closing.set()
        if not self.was_up:
            self._connecting.cancel()

    async def aclose(self) -> None:
        """End the connection, and wait until the process is gone, which takes eight seconds at most."""
        self.close()
        await self._ended.wait()

    @property
    def closed(self) -> bool:
        """Whether the connection has ended, or is about to. The server may have ended it."""
        return self._closing.is_set()

    def _is_gone(self) -> bool:
        """Whether the server no longer hears us, or we no longer hear it."""
        return self.closed or any(stream.ended for stream in self._streams or ())

    def _end(self, *, unsent: bool) -> MCPError:
        """Return the error for a request that gets no answer; ``unsent``: the server has not taken it."""
        if self._is_forgotten:
            why = "no longer knows this session, so its requests have ended; the next one starts a new session"
        else:
            why = "has ended, and what it kept in memory is gone; the next request starts it again"
        error = SessionForgotten if self._is_forgotten and unsent else MCPError
        return error(code=types.INTERNAL_ERROR, message=f"the MCP server {self._name} {why}")

    @property
    def session(self) -> Session:
        """The session with the server.

        Raises:
            MCPError: it has ended.

        """
        if self._session is None or self.closed:
            raise self._end(unsent=True)
        return self._session

    @property
    def server_name(self) -> str:
        """The ``label``; else the name that the server gives itself; else the upstream's name."""
        return self._name

    def describe(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to ``initialize`` or ``server/discover``: the server's, except for the protocol version."""
        capabilities = {"tools": {}, **self.capabilities()}
        described = {**answer, "capabilities": capabilities, "instructions": self.instructions}
        info = self.session.server_info
        if info is not None:
            said = info.model_dump(mode="json", by_alias=True, exclude_none=True)
            if self._client.modern:
                described["_meta"] = {**(answer.get("_meta") or {}), types.SERVER_INFO_META_KEY: said}
            else:
                described["serverInfo"] = said
        return {name: value for name, value in described.items() if value is not None}

    def capabilities(self) -> dict[str, Any]:
        """Return the server's capabilities that the proxy can pass on."""
        offered = self.session.server_capabilities
        said = {} if offered is None else offered.model_dump(mode="json", by_alias=True, exclude_none=True)
        return passed_on(said)

    @property
    def instructions(self) -> str | None:
        """What the server tells the client's model about itself."""
        return self.session.instructions

    def suits(self, version: str) -> bool:
        """Return whether a client with this protocol version understands all that the server may say."""
        own = None if self._session is None else self._session.protocol_version
        within_one_era = (own in MODERN_PROTOCOL_VERSIONS) == (version in MODERN_PROTOCOL_VERSIONS)
        return own is not None and own <= version and within_one_era

    def _session_on(self, reads: ReadStream[Any], writes: WriteStream[Any]) -> Session:
        # ``on_end`` tells us that the server ended while nobody waited, without having to send a request first.
        self._streams = PacedReads(reads, self._unread, on_end=self._closing.set), CountedWrites(writes, self._unread)
        return Session(
            *self._streams,
            client=self._client,
            sampling_callback=self._questions.sampling,
            elicitation_callback=self._questions.elicitation,
            list_roots_callback=self._questions.roots,
            message_handler=self._hear,
        )

    async def _repeat_log_level(self) -> None:
        """Tell the client's log level to a server that starts late, or again."""
        if self._client.log_level is not None and not self.session.is_modern and self.has("logging"):
            with suppress(MCPError):
                await self.request("logging/setLevel", {"level": self._client.log_level})

    async def _hold(self, session: Session) -> None:
        """Keep the subscriptions of the client until the end."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._subscriptions.hold, session)
            await self._closing.wait()
            if self._is_forgotten and self._in_flight:
                with anyio.move_on_after(FORGOTTEN_SECONDS):
                    await self._idle.wait()
            tasks.cancel_scope.cancel()

    # From the client to the server.

    async def forward(self, ctx: Context, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request of the client to the server, and return its result as it came.

        Args:
            ctx: the request.
            params: the parameters to send in place of the client's.

        Raises:
            MCPError: the server's own error; or the server has ended, or answered what the protocol forbids.

        """
        if len(self._in_flight) >= MAX_IN_FLIGHT:
            msg = f"{MAX_IN_FLIGHT:,} requests wait for the MCP server {self._name}: wait until some are answered"
            raise MCPError(code=types.INTERNAL_ERROR, message=msg)
        self._client.front = ctx.session
        key = object()  # modern clients that share a link may use the same ids
        self._in_flight[key] = ctx
        try:
            local = await self._answer_across_eras(ctx)
            result = await self.request(ctx.method, params or ctx.params, ctx) if local is None else local
        finally:
            del self._in_flight[key]
            self._questions.left(ctx)
            if self._is_forgotten and not self._in_flight:
                self._idle.set()
        if not self._client.modern and result.get("resultType") == "input_required":
            msg = f"the MCP server {self._name} asks for input in a way that the client's version of MCP does not have"
            raise MCPError(code=types.INVALID_REQUEST, message=msg)
        return result

    async def request(
        self, method: str, params: Mapping[str, Any] | None, ctx: Context | None = None
    ) -> dict[str, Any]:
        """Send any request to the server; progress goes to the client's request ``ctx``."""
        meta = {
            name: value for name, value in ((params or {}).get("_meta") or {}).items() if name not in _OF_CONNECTION
        }
        if self.session.is_modern and self._client.log_level is not None:
            meta.setdefault(types.LOG_LEVEL_META_KEY, self._client.log_level)
        sent = {**(params or {}), "_meta": meta}
        wants_progress = meta.pop("progressToken", None) is not None
        on_progress = partial(self._report, ctx.session) if ctx is not None and wants_progress else None
        request = _Request(method=method, params=sent)
        try:
            # No turns while the session opens, because its time limit is running.
            takes_turns = self._upstream.takes_turns and self.was_up
            async with turn(self._upstream.connect, method) if takes_turns else nullcontext():
                result: dict[str, Any] = await self.session.send_request(request, _ANY, progress_callback=on_progress)
        except MCPError as error:
            if not is_end(error, is_gone=self._is_gone()):
                raise in_our_words(error) from None
            is_refused = error.message == NO_SESSION
            self._is_forgotten |= is_refused or error.message == LOST_SESSION
            self.close()
            raise self._end(unsent=is_refused) from None
        except ValidationError as error:
            faults = error.errors(include_url=False)
            if (whole := _with_content(faults)) is not None:
                return whole
            what = f"{'.'.join(map(str, faults[0]['loc']))}: {faults[0]['msg']}"[:_LONGEST_FAULT]  # a model reads it
            msg = f"the MCP server {self._name} answered {method} with something the protocol does not allow: {what}"
            raise MCPError(code=types.INTERNAL_ERROR, message=msg) from None
        return result

    async def notify(self, notification: types.ClientNotification) -> None:
        """Send a notification of the client to the server."""
        with suppress(MCPError):
            await self.session.send_notification(notification)

    async def subscribe(self, uris: Collection[str]) -> None:
        """Ask the server to report changes of these resources.

        Raises:
            MCPError: the server refuses.

        """
        await self._subscriptions.subscribe(uris)

    async def unsubscribe(self, uris: Collection[str]) -> None:
        """Ask the server to stop reporting changes of these resources, except those that a client's stream is about."""
        await self._subscriptions.unsubscribe(uris)

    async def tools(self, *, anew: bool = False) -> Mapping[str, Mapping[str, Any]]:
        """Return the server's tools by name. Ask for them once, and again after they changed or if ``anew``."""
        if self._tools is None or anew:
            listed = await self.list_all("tools/list", "tools") if self.has("tools") else []
            self._tools = {tool["name"]: tool for tool in listed}
        return self._tools

    async def list_all(self, method: str, key: str) -> list[Mapping[str, Any]]:
        """Return all pages of a list."""
        found: list[Mapping[str, Any]] = []
        cursors: list[str] = []
        while len(cursors) < _MAX_PAGES:
            page = await self.request(method, {"cursor": cursors[-1]} if cursors else {})
            cursor = page.get("nextCursor")
            if cursor in cursors:  # some servers end each list with "", and answer that with the first page again
                found += [item for item in page[key] if item not in found]
                break
            found += page[key]
            if cursor is None:
                return found
            cursors.append(cursor)
        logger.warning("%s of the MCP server %s does not end; the first %d are known", method, self._name, len(found))
        return found

    async def _known_tools(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the server's tools, or none if the list does not come in time: a call can do without it."""
        async with self._listing:  # so the server is asked once, and calls that wait for the list stay in order
            if self._tools is not None:
                return self._tools
            try:
                with anyio.fail_after(TOOLS_SECONDS):
                    return await self.tools()
            except (MCPError, TimeoutError) as error:
                if self.closed:
                    raise
                why = str(error) or f"it took more than {TOOLS_SECONDS:g} seconds"
                logger.warning("a call of the MCP server %s goes on without its list of tools: %s", self._name, why)
                self._tools = {}  # until the list changes, or the client asks for it
                return self._tools

    async def tool_meta(self, name: str) -> Mapping[str, Any]:
        """Return the ``_meta`` of a tool's definition."""
        return (await self._known_tools()).get(name, {}).get("_meta") or {}

    def full_name(self, shown: str) -> str:
        """Return the full name of a tool: the one that clients see, since there is only one server."""
        return shown

    async def taken_names(self) -> Collection[str]:
        """Return the names that the retrieval tool cannot have."""
        return await self._known_tools()

    async def all_names(self) -> Collection[str] | None:
        """Return the names of all tools; None while they are not known."""
        return await self.tools()

    async def list_tools(self, ctx: Context) -> dict[str, Any]:
        """Forward ``tools/list``, and remember the tools if all of them are on one page."""
        if not self.has("tools"):
            return {"tools": []}
        listed = await self.forward(ctx)
        if (ctx.params or {}).get("cursor") is None and listed.get("nextCursor") is None:
            self._tools = {tool["name"]: tool for tool in listed["tools"]}
        return listed

    def has(self, capability: str) -> bool:
        """Return whether the server has a capability, such as ``tools``."""
        offered = self.session.server_capabilities
        return offered is not None and getattr(offered, capability, None) is not None

    async def _answer_across_eras(self, ctx: Context) -> dict[str, Any] | None:
        """Answer a request that a handshake client may send but a modern server no longer knows; else return None."""
        if not self.session.is_modern:
            return None
        params = ctx.params or {}
        match ctx.method:
            case "ping" | "logging/setLevel":
                pass
            case "resources/subscribe":
                await self.subscribe([params["uri"]])
            case "resources/unsubscribe":
                await self.unsubscribe([params["uri"]])
            case _:
                return None
        return {}

    # From the server to the client.

    async def _report(self, front: ServerSession, *progress: Any) -> None:  # noqa: ANN401 - passed on
        with self._unread:
            await front.report_progress(*progress)

    async def _hear(self, message: object) -> None:
        """Pass on what came in the session, except on a stream of changes, which ``Changes`` passes on."""
        params = message.params if isinstance(message, types.Notification) else None
        if SUBSCRIPTION_ID_META_KEY not in (getattr(params, "meta", None) or {}):
            await self._relay(message)

    async def _relay(self, message: object) -> None:
        """Pass on a notification, on the stream of the running request or on the client's own stream."""
        with self._unread:
            await self._tell(message)

    async def _tell(self, message: object) -> None:
        if isinstance(message, types.ProgressNotification) or not isinstance(message, types.Notification):
            return  # progress has a callback of its own
        if isinstance(message, types.ToolListChangedNotification):
            self._tools = None
        if isinstance(message, types.ResourceListChangedNotification):
            self.resource_changes += 1
        latest = self._latest()
        if isinstance(message, types.LoggingMessageNotification) and latest is not None:
            # A modern client sets the log level with each request, for as long as the request runs.
            if message.params.level in allowed_log_levels(latest.protocol_version, latest.meta):
                with anyio.move_on_after(UNREAD_SECONDS if self._client.modern else None):
                    await latest.session.send_notification(message, latest.request_id)
            return
        await self._client.tell(message)

    def _latest(self) -> Context | None:
        """Return the client's latest request that still runs, which the server most likely speaks about."""
        return next(reversed(self._in_flight.values()), None)


def _with_content(faults: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return a result of a tool with empty content if only that is missing; None if anything else is wrong.

    The protocol requires content, but servers leave it out next to structured content, and clients that use MCP's own
    TypeScript package read such results.
    """
    match faults:
        case [{"type": "missing", "loc": ("content",), "input": dict() as result}]:
            return {**result, "content": []}
        case _:
            return None


def _start_failure(name: str, error: Exception | None, seconds: float) -> MCPError:
    cause = None if error is None else innermost(error)
    match cause:
        case None:
            why = "its connection was closed before it was up"
        case TimeoutError():
            why = f"it did not answer within {seconds:g} seconds; start_timeout in a coatcheck.toml gives it longer"
        case MCPError() if is_end(cause, is_gone=True):
            why = "it ended before it answered; what it said is on stderr"
        case _:
            why = said_by(cause)
    return MCPError(code=types.INTERNAL_ERROR, message=f"coatcheck could not start the MCP server {name}: {why}")
