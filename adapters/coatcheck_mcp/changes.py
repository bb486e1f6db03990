"""What a modern server says about changes: on streams, which the client must open, and which end at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import anyio
from mcp import MCPError
from mcp.client.subscriptions import ServerEvent, Subscription, SubscriptionLost, listen
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
    event_matches,
    event_to_notification,
)
from mcp_types import INTERNAL_ERROR

from coatcheck_mcp.http_transport import pause_after

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp import ClientSession
    from mcp_types import SubscriptionFilter

__all__ = ("Changes",)

STEADY_SECONDS = 60.0
"""A stream that lasted as long is opened again soon, also if nothing changed."""

OPEN_SECONDS = 10.0
"""How long a stream stays while the next one is being opened. A server may serve only one at a time."""

_MAX_UNTOLD = 1_000
"""Changes that the client has not read yet. With more, the stream ends, and is opened again after a pause."""

_LISTS = (ToolsListChanged(), PromptsListChanged(), ResourcesListChanged())

Tell: TypeAlias = "Callable[[object], Awaitable[None]]"


class Changes:
    """Listens to all lists of one server, and to the resources that its client subscribed to."""

    def __init__(self, tell: Tell) -> None:
        """Take what passes a notification on."""
        self._tell = tell
        self._uris: set[str] = set()
        self._subscribed = anyio.Event()
        """Set once the stream that is open is not about the right resources."""

        self._unheard: int | None = None
        """How often in a row a stream did not open, or soon ended without a change; None: none ever opened."""

        self._missed = False
        """Whether a stream has ended since the client was last told of what it may have missed."""

    def subscribe(self, uris: Collection[str]) -> None:
        """Listen to changes of these resources too."""
        if not self._uris.issuperset(uris):
            self._uris |= set(uris)
            self._subscribed.set()

    def unsubscribe(self, uri: str) -> None:
        """Listen no more to changes of this resource."""
        if uri in self._uris:
            self._uris.discard(uri)
            self._subscribed.set()

    async def listen(self, session: ClientSession) -> None:
        """Pass on what changes, until cancelled."""
        into, changes = anyio.create_memory_object_stream[ServerEvent](_MAX_UNTOLD)
        async with into, changes, anyio.create_task_group() as tasks:
            tasks.start_soon(self._pass_on, changes)
            before = anyio.CancelScope()
            while True:
                self._subscribed, opened, scope = anyio.Event(), anyio.Event(), anyio.CancelScope()
                tasks.start_soon(self._follow, session, into, opened, scope)
                with anyio.move_on_after(OPEN_SECONDS) as waiting:
                    await opened.wait()
                self._missed |= waiting.cancelled_caught
                before.cancel()  # not sooner, or what changes meanwhile would be lost
                before = scope
                await self._subscribed.wait()

    async def _pass_on(self, changes: MemoryObjectReceiveStream[ServerEvent]) -> None:
        # In a task of its own: who reads a stream is cancelled once another is open, and must lose nothing.
        async for change in changes:
            await self._tell(event_to_notification(change, {}))

    async def _follow(
        self,
        session: ClientSession,
        into: MemoryObjectSendStream[ServerEvent],
        opened: anyio.Event,
        scope: anyio.CancelScope,
    ) -> None:
        """Read one stream after another: servers end them, and connections are cut.

        Args:
            session: with the server.
            into: where changes go.
            opened: is set once the first stream is open, or could not be opened.
            scope: ends it.

        """
        with scope:
            while True:
                start = anyio.current_time()
                try:
                    async with listen(
                        session,
                        tools_list_changed=True,
                        prompts_list_changed=True,
                        resources_list_changed=True,
                        resource_subscriptions=sorted(self._uris),
                    ) as events:
                        opened.set()
                        await self._read(events, into)
                except (MCPError, SubscriptionLost, anyio.WouldBlock) as error:
                    opened.set()
                    is_for_now = isinstance(error, MCPError) and error.code == INTERNAL_ERROR
                    if self._unheard is None and not is_for_now:
                        return  # a server need not serve it
                is_steady = anyio.current_time() - start >= STEADY_SECONDS
                self._unheard, self._missed = 1 if is_steady else (self._unheard or 0) + 1, True
                await anyio.sleep(pause_after(self._unheard))

    async def _read(self, events: Subscription, into: MemoryObjectSendStream[ServerEvent]) -> None:
        """Pass on what comes on a stream, after what changed between two streams, and so is on neither.

        Raises:
            anyio.WouldBlock: the client is told nothing more, because it does not read.
            SubscriptionLost: the stream was cut.

        """
        self._unheard = self._unheard or 0
        for change in _all_of(events.honored) if self._missed else ():
            await into.send(change)  # there may be more of them than can wait
        self._missed = False
        async for event in events:
            self._unheard = 0
            into.send_nowait(event)


def _all_of(honored: SubscriptionFilter) -> list[ServerEvent]:
    """Return all changes that a stream may be about, as far as they are known by name."""
    uris = frozenset(honored.resource_subscriptions or ())
    changes: list[ServerEvent] = [*_LISTS, *(ResourceUpdated(uri=uri) for uri in sorted(uris))]
    return [one for one in changes if event_matches(honored, uris, one)]
