"""Which agent last used which entry, in which of its cycles; and what leaves when that is too long ago.

Only cycles belong here. Where a storage is used on behalf of nobody, nothing is noted and nothing evicted. An entry
that several agents use leaves when the last of them has let it go; one that another plugin or process has saved too
never does, since keys name the content and nobody knows who else still shows it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import secrets
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from coatcheck import Deletes, Storage, StrandsStorageBridge

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

    from strands import Agent


__all__ = ("Cycles", "EvictingBridge", "EvictsFrom", "evict", "used_by")

logger = logging.getLogger("coatcheck_strands")

LIMIT_SECONDS = 30.0
"""How long letting go of one entry may take; the core's limit for one call to a storage."""

Result = TypeVar("Result")

_OWNER = "owner"
"""In the metadata of an entry: the one plugin that saved it. Without it, in memory, all plugins share ``Cycles``."""

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
        self.owner = secrets.token_hex(8)
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

    def described(self, metadata: Mapping[str, str], existing: Mapping[str, str] | None) -> Mapping[str, str]:
        """Return the metadata with the one plugin that saved the entry, or with nobody once there are two."""
        is_own = existing is None or existing.get(_OWNER) == self.cycles.owner
        return {**metadata, _OWNER: self.cycles.owner if is_own else ""}

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> Any:  # noqa: ANN401
        """Save an entry, and note it."""
        self.cycles.note(key)
        return super().save(key, content, content_type=content_type, metadata=metadata)

    def load(self, key: str) -> Any:  # noqa: ANN401
        """Load an entry, and note it."""
        self.cycles.note(key)
        return super().load(key)


class EvictsFrom(Storage, Deletes, Protocol):
    """A storage from which entries can leave."""


async def evict(storage: EvictsFrom, cycles: Cycles, *, agent: Agent, limit: int) -> None:
    """Delete what ``agent`` has not used for more than ``limit`` cycles, and nobody else uses.

    What cannot be deleted, or not in 30 seconds, is logged and forgotten: it stays.
    """
    for key in cycles.stale(agent, limit):
        try:
            if not cycles.is_used_beside(agent, key):
                await asyncio.wait_for(_let_go(storage, cycles, agent, key=key), LIMIT_SECONDS)
        except Exception:  # one that fails must not keep the others
            logger.warning("coatcheck could not evict %s, which stays", key, exc_info=True)
        cycles.forget(agent, key)


async def _let_go(storage: EvictsFrom, cycles: Cycles, agent: Agent, *, key: str) -> None:
    entry = await _off_loop(partial(storage.load, key))
    if entry is None or entry.metadata.get(_OWNER, cycles.owner) != cycles.owner:
        return
    for name in (key, f"{key}{_INDEX}"):
        await _off_loop(partial(storage.delete, name))
    if cycles.is_used_beside(agent, key):  # another agent saved it while it was being deleted
        again = partial(storage.save, key, entry.content, content_type=entry.content_type, metadata=entry.metadata)
        await _off_loop(again)


async def _off_loop(call: Callable[[], Awaitable[Result] | Result]) -> Result:
    answer = await asyncio.to_thread(call)
    return await answer if inspect.isawaitable(answer) else answer
