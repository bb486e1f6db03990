"""What a modern server says about changes: on streams, which the client must open, and which end at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import anyio
from mcp import MCPError
from mcp.client.subscriptions import SubscriptionLost, listen
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

    from mcp import ClientSession
    from mcp.shared.subscriptions import ServerEvent
    from mcp_types import SubscriptionFilter

__all__ = ("Changes",)

STEADY_SECONDS = 60.0
"""A stream that lasted as long is opened again soon, also if nothing changed."""

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
        self._uris |= set(uris)
        self._subscribed.set()

    def unsubscribe(self, uri: str) -> None:
        """Listen no more to changes of this resource."""
        self._uris.discard(uri)
        self._subscribed.set()

    async def listen(self, session: ClientSession) -> None:
        """Pass on what changes, until cancelled."""
        while True:
            self._subscribed = anyio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._follow, session)
                await self._subscribed.wait()
                tasks.cancel_scope.cancel()

    async def _follow(self, session: ClientSession) -> None:
        """Read one stream after another: servers end them, and connections are cut."""
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
                    # What changed between two streams is on neither.
                    missed = _all_of(events.honored) if self._missed else []
                    self._unheard, self._missed = self._unheard or 0, False
                    for change in missed:
                        await self._tell(event_to_notification(change, {}))
                    async for event in events:
                        self._unheard = 0
                        await self._tell(event_to_notification(event, {}))
            except (MCPError, SubscriptionLost) as error:
                is_for_now = isinstance(error, MCPError) and error.code == INTERNAL_ERROR
                if self._unheard is None and not is_for_now:
                    return  # a server need not serve it
            is_steady = anyio.current_time() - start >= STEADY_SECONDS
            self._unheard, self._missed = 1 if is_steady else (self._unheard or 0) + 1, True
            await anyio.sleep(pause_after(self._unheard))


def _all_of(honored: SubscriptionFilter) -> list[ServerEvent]:
    """Return all changes that a stream may be about, as far as they are known by name."""
    uris = frozenset(honored.resource_subscriptions or ())
    changes: list[ServerEvent] = [*_LISTS, *(ResourceUpdated(uri=uri) for uri in sorted(uris))]
    return [one for one in changes if event_matches(honored, uris, one)]
