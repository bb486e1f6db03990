"""Which agent last used which entry, in which of its cycles; and what leaves when that is too long ago.

Only cycles belong here. Where a storage is used on behalf of nobody, nothing is noted and nothing evicted. An entry
that several agents use leaves when the last of them has let it go.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from coatcheck import Deletes, StrandsStorageBridge

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from strands import Agent


__all__ = ("Cycles", "EvictingBridge", "evict", "used_by")

_INDEX = "-lines"
"""What the key of an entry's line index ends with; it comes and goes with the entry."""

_user: ContextVar[Agent | None] = ContextVar("coatcheck_strands_user", default=None)


@contextmanager
def used_by(agent: Agent | None) -> Iterator[None]:
    """Note every entry that is saved or loaded inside the block as used by ``agent``."""
    token = _user.set(agent)
    try:
        yield
    finally:
        _user.reset(token)


class Cycles:
    """The last cycle in which each agent used each key. Safe for many threads."""

    def __init__(self) -> None:
        self._last: WeakKeyDictionary[Agent, dict[str, int]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def note(self, key: str) -> None:
        """Note that a key is used now."""
        agent = _user.get()
        if agent is not None:
            with self._lock:
                self._last.setdefault(agent, {})[key.removesuffix(_INDEX)] = agent.event_loop_metrics.cycle_count

    def stale(self, agent: Agent, limit: int) -> list[str]:
        """Return the keys that ``agent`` last used more than ``limit`` cycles ago."""
        oldest = agent.event_loop_metrics.cycle_count - limit
        with self._lock:
            return [key for key, cycle in self._last.get(agent, {}).items() if cycle < oldest]

    def forget(self, agent: Agent, key: str) -> None:
        """Drop a key of ``agent``."""
        with self._lock:
            self._last.get(agent, {}).pop(key, None)

    def is_used_beside(self, agent: Agent, key: str) -> bool:
        """Return whether another agent uses a key too."""
        with self._lock:
            return any(key in used for other, used in self._last.items() if other is not agent)


class EvictingBridge(StrandsStorageBridge):
    """A unified storage whose entries are noted as they are used."""

    def __init__(self, storage: Any, *, prefix: str, cycles: Cycles) -> None:  # noqa: ANN401 - known by its methods
        super().__init__(storage, prefix=prefix)
        self.cycles = cycles

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> Any:  # noqa: ANN401
        """Save an entry, and note it."""
        self.cycles.note(key)
        return super().save(key, content, content_type=content_type, metadata=metadata)

    def load(self, key: str) -> Any:  # noqa: ANN401
        """Load an entry, and note it."""
        self.cycles.note(key)
        return super().load(key)


async def evict(storage: Deletes, cycles: Cycles, *, agent: Agent, limit: int) -> None:
    """Delete what ``agent`` has not used for more than ``limit`` cycles, and nobody else uses."""
    for key in cycles.stale(agent, limit):
        if not cycles.is_used_beside(agent, key):
            for name in (key, f"{key}{_INDEX}"):
                deleted = await asyncio.to_thread(storage.delete, name)
                if inspect.isawaitable(deleted):
                    await deleted
        cycles.forget(agent, key)
