"""The client of the proxy: what it says about itself, and how notifications reach it.

It outlives the sessions with the server: a server that ended and was started again finds the same client.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import event_from_wire
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS

from coatcheck_mcp.hook import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from mcp.server import ServerRequestContext
    from mcp.server.connection import Connection
    from mcp.server.session import ServerSession

__all__ = (
    "ANY_CAPABILITIES",
    "LIST_CHANGES",
    "Client",
    "Context",
    "Identified",
    "connection_of",
    "identify",
    "passed_on",
)

Context: TypeAlias = "ServerRequestContext[Any, Any]"
"""A client's request, as the mcp package passes it to a handler."""

Notification: TypeAlias = "types.Notification[Any, Any]"

LIST_CHANGES: Mapping[str, Callable[[], Notification]] = {
    "tools": types.ToolListChangedNotification,
    "prompts": types.PromptListChangedNotification,
    "resources": types.ResourceListChangedNotification,
}
"""The notification that announces a changed list, by the capability of the list."""

ANY_CAPABILITIES: Mapping[str, Any] = {"completions": {}, "prompts": {}, "resources": {}, "tools": {}}
"""What a client is told while the server is not up yet. The client's requests then wait for the server's answers."""

MAX_EARLY, MAX_EARLY_BYTES = 100, 2**20
"""The most notifications of a server, and bytes of them, that are kept until its client is ready. The protocol allows
hardly any. The rest is dropped: the client has no lists yet, so it misses no change to one."""


_TASKS = "io.modelcontextprotocol/tasks"
"""The name of the tasks extension in the modern protocol."""


def passed_on(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Return capabilities without those whose messages the proxy does not forward.

    These are tasks, which have their own requests, and everything experimental. No version of the protocol has messages
    for experimental capabilities, and a peer that is told of one would send such messages, or wait for them.
    """
    kept = {name: value for name, value in capabilities.items() if name not in {"tasks", "experimental"}}
    extensions = kept.get("extensions")
    if isinstance(extensions, Mapping) and _TASKS in extensions:
        kept["extensions"] = {name: value for name, value in extensions.items() if name != _TASKS}
    return kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Identified:
    """Who sent a request."""

    key: Hashable
    """The same for all requests of one client: its connection, or what a client without one says about itself."""

    info: Mapping[str, Any] | None
    capabilities: Mapping[str, Any]

    modern: bool
    """Whether it speaks the protocol version without a handshake, 2026-07-28."""

    version: str
    """The version of the protocol to ask for in a handshake with a server on its behalf."""


def identify(ctx: Context) -> Identified:
    """Return who sent a request."""
    params = ctx.params or {}
    if ctx.method == "initialize":  # the session does not have its parameters yet
        info, capabilities = params.get("clientInfo"), params.get("capabilities") or {}
        asked = params.get("protocolVersion")
        version = asked if asked in HANDSHAKE_PROTOCOL_VERSIONS else LATEST_HANDSHAKE_VERSION  # as mcp answers
        return Identified(key=connection_of(ctx), info=info, capabilities=capabilities, modern=False, version=version)
    said, offered = ctx.session.client_params, ctx.session.client_capabilities
    info, capabilities = (
        None if model is None else model.model_dump(mode="json", by_alias=True, exclude_none=True)
        for model in (said and said.client_info, offered)
    )
    key: Hashable = connection_of(ctx)
    version, modern = ctx.protocol_version, ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    if modern:
        # On stdio, there is one client. Over HTTP, clients that say the same count as one: nothing tells them apart.
        key = "" if ctx.request is None else json.dumps([info, capabilities], sort_keys=True)
        version = LATEST_HANDSHAKE_VERSION
    return Identified(key=key, info=info, capabilities=capabilities or {}, modern=modern, version=version)


def connection_of(ctx: Context) -> Connection:
    """Return the client's connection. ``mcp`` does not expose it; FastMCP reads the same private attribute."""
    return ctx.session._connection  # noqa: SLF001 - see above


class Client:
    """One client, for as long as it is connected."""

    def __init__(self, who: Identified) -> None:
        """Take what a client said about itself."""
        self.info: Mapping[str, Any] | None = who.info
        self.modern: bool = who.modern
        self.version: str = who.version
        self.capabilities: dict[str, Any] = passed_on(who.capabilities)
        self.front: ServerSession | None = None
        """The latest session with it. Over HTTP, each request of a modern client has a session of its own."""

        self.ready: anyio.Event = anyio.Event()
        """Set once its handshake is over: from then on it may get notifications and requests."""

        self.log_level: str | None = None
        """The log level that it set for the whole session, if any. Servers that start later are told."""

        self.subscribed: dict[str | None, set[str]] = {}
        """The resources that it subscribed to, by the ``label`` of their server's ``Link``."""

        self.listened: Counter[str] = Counter()
        """How many of its streams are about each resource. A handshake client has none."""

        self._early: list[Notification] = []
        self._early_bytes = 0
        self._bus = InMemorySubscriptionBus()
        self.serve_events: ListenHandler = ListenHandler(self._bus)
        """Serves ``subscriptions/listen`` of modern clients."""

    async def get_ready(self, front: ServerSession) -> None:
        """Note that the client's handshake is over, and send it the notifications that came before."""
        self.front = front
        self.ready.set()
        early, self._early = self._early, []
        for message in early:
            await front.send_notification(message)  # type: ignore[arg-type]

    async def tell(self, message: Notification) -> None:
        """Send the client a notification that belongs to no request, on the stream that it opened or in its session."""
        data = message.model_dump(mode="json", by_alias=True, exclude_none=True)
        event = event_from_wire(data["method"], data.get("params"))
        if event is not None:
            await self._bus.publish(event)
        if self.modern:
            return
        if not self.ready.is_set():
            self._keep(message, len(json.dumps(data)))
        elif self.front is not None:
            await self.front.send_notification(message)  # type: ignore[arg-type]

    def _keep(self, message: Notification, size: int) -> None:
        self._early_bytes += size
        if len(self._early) < MAX_EARLY and self._early_bytes <= MAX_EARLY_BYTES:
            self._early.append(message)
        else:
            logger.debug("dropped a notification of %d bytes: the client is not ready yet", size)
