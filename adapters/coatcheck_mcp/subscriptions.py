"""A client's subscriptions to resources of one server: by request, or on a stream if the server is modern."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
from mcp import MCPError
from mcp_types import ResourceUpdatedNotification, ResourceUpdatedNotificationParams

from coatcheck_mcp.changes import Changes
from coatcheck_mcp.hook import logger

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from coatcheck_mcp.changes import Tell
    from coatcheck_mcp.link import Link
    from coatcheck_mcp.session import Session

__all__ = ("Subscriptions",)


class Subscriptions:
    """Subscribes to resources of one server, and subscribes again in a new session."""

    def __init__(self, link: Link, wanted: set[str], *, listened: Mapping[str, int], tell: Tell) -> None:
        """Prepare to subscribe.

        Args:
            link: the session with the server, which may have ended at any time.
            wanted: the resources that the client subscribed to. The set outlives the link; it is kept up to date here.
            listened: how many streams of the client are about each resource.
            tell: passes a notification to the client.

        """
        self._link = link
        self._wanted = wanted
        self._listened = listened
        self._tell = tell
        self._requesting = anyio.Lock()
        """Held while requests are sent, because they might otherwise arrive in another order."""

        self._changes = Changes(tell, wanted)

    async def hold(self, session: Session) -> None:
        """Subscribe again to what the client wanted before this session, and listen until cancelled."""
        if session.is_modern:
            await self._changes.listen(session)
        else:
            async with anyio.create_task_group() as tasks:
                for uri in self._wanted:
                    tasks.start_soon(self._request_again, uri)

    def close(self) -> None:
        """Release everybody who waits for the server."""
        self._changes.close()

    async def subscribe(self, uris: Collection[str]) -> None:
        """Ask the server to report changes of these resources.

        Raises:
            MCPError: the server refuses one of them, or has ended.

        """
        new = set(uris) - self._wanted
        self._wanted |= new
        try:
            if self._link.session.is_modern:
                await self._changes.subscribe(uris)
                self._wanted |= set(uris)  # another client request for the same ones may have failed meanwhile
                return
            async with self._requesting:
                for uri in uris:
                    await self._link.request("resources/subscribe", {"uri": uri})
                    new.discard(uri)  # stays subscribed, even if the server refuses the next one
                    self._wanted.add(uri)
        except MCPError:
            self._wanted -= new
            raise

    async def unsubscribe(self, uris: Collection[str]) -> None:
        """Ask the server to stop reporting changes of these resources, except those that a client's stream is about."""
        gone = self._wanted.intersection(uris).difference(self._listened)
        self._wanted -= gone
        with suppress(MCPError):  # a server that has ended reports nothing
            if self._link.session.is_modern:
                self._changes.unsubscribe(gone)
                return
            async with self._requesting:
                for uri in gone - self._wanted:
                    await self._link.request("resources/unsubscribe", {"uri": uri})

    async def _request_again(self, uri: str) -> None:
        try:
            await self._link.request("resources/subscribe", {"uri": uri})
        except MCPError as refused:
            if not self._link.closed:  # else the next link subscribes to it
                self._wanted.discard(uri)
                logger.warning("changes of the resource %s will not be reported: %s", uri, refused)
            return
        # The resource may have changed between the two sessions.
        await self._tell(ResourceUpdatedNotification(params=ResourceUpdatedNotificationParams(uri=uri)))
