"""What a modern server says about changes: on streams, which the client must open, and which end at any time."""

from __future__ import annotations

from dataclasses import dataclass, field
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
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR

from coatcheck_mcp.hook import logger
from coatcheck_mcp.http_transport import pause_after

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from anyio.abc import TaskGroup
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

_FOR_NOW = frozenset({CONNECTION_CLOSED, INTERNAL_ERROR})
"""Errors that another try may not meet. With any other one, the server refuses what it was asked."""

Tell: TypeAlias = "Callable[[object], Awaitable[None]]"


@dataclass(eq=False)
class _Stream:
    """A stream about all lists and some resources, from when it is wanted."""

    uris: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()
    """Those that the one before is not about."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """Ends it."""

    wanted: anyio.Event = field(default_factory=anyio.Event)
    tried: anyio.Event = field(default_factory=anyio.Event)
    """Set once it is open, or did not open, or took too long for anybody to wait."""

    before: _Stream | None = None
    """The one that it replaces."""

    is_open: bool = False
    """Whether it is, or was once."""

    refused: MCPError | None = None
    """What the server said, if it does not serve what is new."""


class Changes:
    """Listens to all lists of one server, and to the resources that its client subscribed to."""

    def __init__(self, tell: Tell, wanted: set[str]) -> None:
        """Be ready to listen.

        Args:
            tell: passes a notification on.
            wanted: the resources that the client wants to hear of. Those that the server refuses later leave it. What
                it holds already is from a session before this one.

        """
        self._tell = tell
        self._wanted, self._kept = wanted, frozenset(wanted)
        self._uris: set[str] = set()
        self._subscribing = anyio.Lock()
        self._latest = self._next = _Stream()
        self._unheard: int | None = None
        """How often in a row a stream did not open, or soon ended without a change; None: none ever opened."""

        self._missed = bool(wanted)
        """Whether a stream has ended since the client was last told of what it may have missed."""

    async def subscribe(self, uris: Collection[str]) -> None:
        """Listen to changes of these resources too; return once that has begun, or was tried for ``OPEN_SECONDS``.

        Raises:
            MCPError: the server does not serve them. What else was listened to still is.

        """
        async with self._subscribing:  # one at a time, so that what is refused is what was asked here
            await self._latest.tried.wait()
            new, stream = frozenset(uris) - self._uris, self._next
            if not new:
                return
            self._uris |= new
            stream.new |= new
            stream.wanted.set()
            await stream.tried.wait()
        if stream.refused is not None:
            raise stream.refused

    def unsubscribe(self, uris: Collection[str]) -> None:
        """Listen no more to changes of these resources."""
        if not self._uris.isdisjoint(uris):
            self._uris.difference_update(uris)
            self._next.wanted.set()

    async def listen(self, session: ClientSession) -> None:
        """Pass on what changes, until cancelled."""
        into, changes = anyio.create_memory_object_stream[ServerEvent](_MAX_UNTOLD)
        async with into, changes, anyio.create_task_group() as tasks:
            tasks.start_soon(self._pass_on, changes)
            tasks.start_soon(self._subscribe_again, self._kept)
            before = _Stream()
            while True:
                stream = self._latest = self._next
                self._next, stream.uris, stream.before = _Stream(), frozenset(self._uris), before
                tasks.start_soon(self._follow, session, into, stream, tasks)
                with anyio.move_on_after(OPEN_SECONDS) as waiting:
                    await stream.tried.wait()
                self._missed |= waiting.cancelled_caught
                stream.tried.set()
                if stream.refused is None:
                    before.scope.cancel()  # not sooner, or what changes meanwhile would be lost
                    before = stream
                elif before.scope.cancel_called or before.uris != self._uris:
                    self._next.wanted.set()
                await self._next.wanted.wait()

    def close(self) -> None:
        """Let nobody wait for a stream any more."""
        self._latest.tried.set()
        self._next.tried.set()

    async def _pass_on(self, changes: MemoryObjectReceiveStream[ServerEvent]) -> None:
        # In a task of its own: who reads a stream is cancelled once another is open, and must lose nothing.
        async for change in changes:
            await self._tell(event_to_notification(change, {}))

    async def _follow(
        self, session: ClientSession, into: MemoryObjectSendStream[ServerEvent], stream: _Stream, tasks: TaskGroup
    ) -> None:
        """Read one stream after another about the same: servers end them, and connections are cut."""
        with stream.scope:
            while True:
                start = anyio.current_time()
                try:
                    async with listen(
                        session,
                        tools_list_changed=True,
                        prompts_list_changed=True,
                        resources_list_changed=True,
                        resource_subscriptions=sorted(stream.uris),
                    ) as events:
                        stream.is_open, stream.before = True, None
                        stream.tried.set()
                        await self._read(events, into)
                except (MCPError, SubscriptionLost, anyio.WouldBlock) as error:
                    if self._is_over(stream, error, tasks):
                        return
                is_steady = anyio.current_time() - start >= STEADY_SECONDS
                self._unheard, self._missed = 1 if is_steady else (self._unheard or 0) + 1, True
                await anyio.sleep(pause_after(self._unheard))

    def _is_over(self, stream: _Stream, error: Exception, tasks: TaskGroup) -> bool:
        """Return whether a stream that failed is not to be tried again."""
        if isinstance(error, MCPError) and stream.new and not stream.is_open:
            return self._is_refused(stream, error)
        stream.tried.set()
        if not isinstance(error, MCPError) or error.code in _FOR_NOW:
            return False
        if stream.uris:  # nobody knows which of them the server refuses
            self._uris -= stream.uris
            self._next.wanted.set()
            tasks.start_soon(self._subscribe_again, stream.uris)
            return True
        return self._unheard is None  # a server need not serve it

    def _is_refused(self, stream: _Stream, error: MCPError) -> bool:
        """Return whether a server does not serve what is new on a stream, or may do at another try."""
        before = stream.before
        if error.code in _FOR_NOW and before is not None and not before.scope.cancel_called:
            before.scope.cancel()  # there may be as many streams as the server allows
            self._missed = True
            return False
        self._uris -= stream.new
        stream.refused = error
        if stream.tried.is_set():  # nobody waits any more to be told
            self._leave(stream.new, error)
            self._next.wanted.set()
        stream.tried.set()
        return True

    def _leave(self, uris: Collection[str], refused: MCPError) -> None:
        self._wanted.difference_update(uris)
        for uri in sorted(uris):
            logger.warning("changes of the resource %s will not be heard of: %s", uri, refused)

    async def _subscribe_again(self, uris: Collection[str]) -> None:
        """Listen again to resources for which nobody waits: to all at once or, if that is refused, to each."""
        wanted = sorted(self._wanted.intersection(uris))
        try:
            await self.subscribe(wanted)
        except MCPError as refused:
            if len(wanted) > 1:
                for uri in wanted:
                    await self._subscribe_again([uri])
            else:
                self._leave(wanted, refused)
            return
        for uri in wanted:
            await self._tell(event_to_notification(ResourceUpdated(uri=uri), {}))

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
