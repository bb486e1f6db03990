"""Start a session once for all who wait for it: if the start fails, they all get the same error."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import anyio
from mcp import MCPError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ("Starting",)


class _Session(Protocol):
    @property
    def closed(self) -> bool: ...


SessionT = TypeVar("SessionT", bound=_Session)


@dataclass(eq=False)  # no slots: those of Python 3.10 lose the defaults of fields that are not arguments
class Starting(Generic[SessionT]):
    """The latest session, which is started again once it has ended."""

    link: SessionT | None = field(default=None, init=False)
    """The latest session; it may still be starting, or have failed."""

    _lock: anyio.Lock = field(default_factory=anyio.Lock, init=False)
    _failure: MCPError | None = field(default=None, init=False)
    """Why the latest try to connect failed. Requests that waited for it get the same error."""

    @property
    def is_connected(self) -> bool:
        """Whether there is a session, as far as is known, and none is starting."""
        return self.link is not None and not self.link.closed and not self._lock.locked()

    async def connected(self, connect: Callable[[], Awaitable[SessionT]]) -> SessionT:
        """Return the session; connect if there is none, or if it was lost.

        Args:
            connect: starts a session. It sets ``link`` before the session is up, so that the session can be closed
                while it starts.

        Raises:
            MCPError: the server did not start, for this request or for the one that it waited for.

        """
        waits = self._lock.locked()
        async with self._lock:
            if self._failure is not None and waits:  # else each of them would wait as long again
                raise self._failure
            if self.link is None or self.link.closed:
                self._failure = None
                try:
                    self.link = await connect()
                except MCPError as error:
                    self._failure = error
                    raise
            return self.link
