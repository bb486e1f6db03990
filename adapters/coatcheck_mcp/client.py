"""The client of the proxy: what it says about itself, and how it is told something.

It outlives the sessions with the server: a server that ended and was started again finds the same client.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import event_from_wire

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from mcp.server.session import ServerSession

__all__ = ("LIST_CHANGES", "Client", "Identified")

Notification: TypeAlias = "types.Notification[Any, Any]"

LIST_CHANGES: Mapping[str, Callable[[], Notification]] = {
    "tools": types.ToolListChangedNotification,
    "prompts": types.PromptListChangedNotification,
    "resources": types.ResourceListChangedNotification,
}
"""What a client is told when a list is another one, by the capability of the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identified:
    """Who sent a request."""

    key: Hashable
    """The same for all requests of one client: its connection, or what a client without one says about itself."""

    info: Mapping[str, Any] | None
    capabilities: Mapping[str, Any]

    modern: bool
    """Whether it speaks the protocol without a handshake, 2026-07-28."""


class Client:
    """One client, for as long as it is connected."""

    def __init__(self, who: Identified) -> None:
        """Take what a client said about itself."""
        self.info = who.info
        self.modern = who.modern
        # Tasks are requests of their own, which the proxy does not forward.
        self.capabilities = {name: value for name, value in who.capabilities.items() if name != "tasks"}
        self.front: ServerSession | None = None
        """The latest session with it. Over HTTP, a modern client has another one with each request."""

        self.ready = anyio.Event()
        """Set once its handshake is over: from then on it may be told and asked something."""

        self.log_level: str | None = None
        """What it wants to hear, if it has said that once for all; a server that starts later is told."""

        self._early: list[Notification] = []
        self._bus = InMemorySubscriptionBus()
        self.serve_events = ListenHandler(self._bus)
        """Serves ``subscriptions/listen`` of modern clients."""

    async def get_ready(self, front: ServerSession) -> None:
        """Take the client's word that its handshake is over, and tell it what came before."""
        self.front = front
        self.ready.set()
        early, self._early = self._early, []
        for message in early:
            await front.send_notification(message)  # type: ignore[arg-type]

    async def tell(self, message: Notification) -> None:
        """Tell the client something that belongs to no request: on the stream that it opened, or in its session."""
        data = message.model_dump(mode="json", by_alias=True, exclude_none=True)
        event = event_from_wire(data["method"], data.get("params"))
        if event is not None:
            await self._bus.publish(event)
        if self.modern:
            return
        if not self.ready.is_set():
            self._early.append(message)
        elif self.front is not None:
            await self.front.send_notification(message)  # type: ignore[arg-type]
