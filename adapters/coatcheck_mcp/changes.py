"""Changes that a modern server reports, on a stream that the client must open and that can end at any time."""

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
"""A stream that lasted this long is reopened soon, even if it reported nothing."""

OPEN_SECONDS = 10.0
"""How long a stream is kept while the next one opens. Then it is closed: a server may serve only one at a time."""

_MAX_UNTOLD = 1_000
"""The most changes that wait for the client to read them. One more ends the stream, which reopens after a pause."""

_LISTS = (ToolsListChanged(), PromptsListChanged(), ResourcesListChanged())

_FOR_NOW = frozenset({CONNECTION_CLOSED, INTERNAL_ERROR})
"""Codes of errors that may be temporary. Any other error is a refusal."""

Tell: TypeAlias = "Callable[[object], Awaitable[None]]"


@dataclass(eq=False)
class _Stream:
    """One stream: it reports changes of all lists and of some resources."""

    uris: frozenset[str] = frozenset()
    """The resources whose changes it reports."""

    new: frozenset[str] = frozenset()
    """The resources that the previous stream does not report."""

    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    """Cancelled to end the stream."""

    wanted: anyio.Event = field(default_factory=anyio.Event)
    """Set once the stream is needed."""

    tried: anyio.Event = field(default_factory=anyio.Event)
    """Set once the stream has opened or failed, or has taken ``OPEN_SECONDS``. Then nobody waits for it any longer."""

    previous: _Stream | None = None
    """The stream that this one replaces; None once this one has opened."""

    has_opened: bool = False
    refused: MCPError | None = None
    """The server's error, if it refused the ``new`` resources."""


class Changes:
    """Listens for changes to all lists of one server, and to the resources that its client subscribed to."""

    def __init__(self, tell: Tell, wanted: set[str]) -> None:
        """Prepare to listen.

        Args:
            tell: passes a notification to the client.
            wanted: the resources that the client subscribed to. Those in it now are from an earlier session. A resource
                that the server refuses later is removed from it.

        """
        self._tell = tell
        self._wanted, self._from_before = wanted, frozenset(wanted)
        self._uris: set[str] = set()
        """The resources that the next stream will report."""

        self._subscribing = anyio.Lock()
        self._latest = self._next = _Stream()
        self._unheard: int | None = None
        """How many streams in a row failed to open, or soon ended without a change; None until one has opened or
        failed with a temporary error."""

        self._missed = bool(wanted)
        """Whether changes may have gone unreported, because a stream ended."""

    async def subscribe(self, uris: Collection[str]) -> None:
        """Listen to these resources too. Return once the stream is open, or after ``OPEN_SECONDS``.

        Raises:
            MCPError: the server refuses them. All others are still listened to.

        """
        async with self._subscribing:  # one at a time: a refusal then belongs to this call
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
        """Stop listening to these resources."""
        if not self._uris.isdisjoint(uris):
            self._uris.difference_update(uris)
            self._next.wanted.set()

    async def listen(self, session: ClientSession) -> None:
        """Pass changes on until cancelled."""
        into, changes = anyio.create_memory_object_stream[ServerEvent](_MAX_UNTOLD)
        async with into, changes, anyio.create_task_group() as tasks:
            tasks.start_soon(self._pass_on, changes)
            tasks.start_soon(self._subscribe_again, self._from_before)
            previous = _Stream()
            while True:
                stream = self._latest = self._next
                self._next, stream.uris, stream.previous = _Stream(), frozenset(self._uris), previous
                tasks.start_soon(self._follow, session, into, stream, tasks)
                with anyio.move_on_after(OPEN_SECONDS) as waiting:
                    await stream.tried.wait()
                self._missed |= waiting.cancelled_caught
                stream.tried.set()
                if stream.refused is None:
                    previous.scope.cancel()  # not sooner: changes in between would be lost
                    previous = stream
                elif previous.scope.cancel_called or previous.uris != self._uris:
                    self._next.wanted.set()
                await self._next.wanted.wait()

    def close(self) -> None:
        """Release everybody who waits for a stream."""
        self._latest.tried.set()
        self._next.tried.set()

    async def _pass_on(self, changes: MemoryObjectReceiveStream[ServerEvent]) -> None:
        # In its own task: the task that reads a stream is cancelled when the next one opens, and no change may be lost.
        async for change in changes:
            await self._tell(event_to_notification(change, {}))

    async def _follow(
        self, session: ClientSession, into: MemoryObjectSendStream[ServerEvent], stream: _Stream, tasks: TaskGroup
    ) -> None:
        """Read a stream, and reopen it whenever it ends: servers end streams, and connections break."""
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
                        stream.has_opened, stream.previous = True, None
                        stream.tried.set()
                        await self._read(events, into)
                except (MCPError, SubscriptionLost, anyio.WouldBlock) as error:
                    if not self._settle(stream, error, tasks):
                        return
                is_steady = anyio.current_time() - start >= STEADY_SECONDS
                self._unheard, self._missed = 1 if is_steady else (self._unheard or 0) + 1, True
                await anyio.sleep(pause_after(self._unheard))

    def _settle(self, stream: _Stream, error: Exception, tasks: TaskGroup) -> bool:
        """Handle a stream that failed; return whether to try it again."""
        if isinstance(error, MCPError) and stream.new and not stream.has_opened:
            return self._settle_new(stream, error)
        stream.tried.set()
        if not isinstance(error, MCPError) or error.code in _FOR_NOW:
            return True
        if stream.uris:  # nobody knows which of them the server refuses
            self._uris -= stream.uris
            self._next.wanted.set()
            tasks.start_soon(self._subscribe_again, stream.uris)
            return False
        return self._unheard is not None  # a server that refuses the first need not have streams at all

    def _settle_new(self, stream: _Stream, error: MCPError) -> bool:
        """Handle a stream that did not open with its new resources; return whether to try it again."""
        previous = stream.previous
        if error.code in _FOR_NOW and previous is not None and not previous.scope.cancel_called:
            previous.scope.cancel()  # the server may allow no more streams
            self._missed = True
            return True
        self._uris -= stream.new
        stream.refused = error
        if stream.tried.is_set():  # nobody waits for the refusal any longer
            self._remove(stream.new, error)
            self._next.wanted.set()
        stream.tried.set()
        return False

    def _remove(self, uris: Collection[str], refused: MCPError) -> None:
        self._wanted.difference_update(uris)
        for uri in sorted(uris):
            logger.warning("changes of the resource %s will not be reported: %s", uri, refused)

    async def _subscribe_again(self, uris: Collection[str]) -> None:
        """Listen again to resources for which nobody waits: to all at once or, if refused, one by one."""
        wanted = sorted(self._wanted.intersection(uris))
        try:
            await self.subscribe(wanted)
        except MCPError as refused:
            if len(wanted) > 1:
                for uri in wanted:
                    await self._subscribe_again([uri])
            else:
                self._remove(wanted, refused)
            return
        for uri in wanted:
            await self._tell(event_to_notification(ResourceUpdated(uri=uri), {}))

    async def _read(self, events: Subscription, into: MemoryObjectSendStream[ServerEvent]) -> None:
        """Report everything that may have changed since the last stream ended, then pass on what this one reports.

        Raises:
            anyio.WouldBlock: the client does not read what it is told.
            SubscriptionLost: the stream was cut.

        """
        self._unheard = self._unheard or 0
        for change in _all_of(events.honored) if self._missed else ():
            await into.send(change)  # waits, because there may be more than ``_MAX_UNTOLD``
        self._missed = False
        async for event in events:
            self._unheard = 0
            into.send_nowait(event)


def _all_of(honored: SubscriptionFilter) -> list[ServerEvent]:
    """Return every change that a stream with this filter can report."""
    uris = frozenset(honored.resource_subscriptions or ())
    changes: list[ServerEvent] = [*_LISTS, *(ResourceUpdated(uri=uri) for uri in sorted(uris))]
    return [one for one in changes if event_matches(honored, uris, one)]
