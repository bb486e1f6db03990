"""Which agent last used which entry, and in which of its cycles.

Only recording and looking up uses belong here; ``eviction`` decides what to delete. If no agent is known to be using
the storage, only the host's own content is recorded: for the agent that last called its model, or the first that does.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING
from weakref import ReferenceType, ref

from coatcheck.adapting import ForkSafeLock, remember_latest
from coatcheck_strands.compat.by_agent import ByAgent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from strands import Agent

__all__ = ("FOLDER", "INDEX", "Cycles", "used_by")

FOLDER = "0" * 16
"""In keys of content that the host stored itself, this replaces the scope. A core key is 16 hex digits, twice."""

INDEX = "-lines"
"""Suffix of the key of an entry's line index, which is saved and deleted with the entry."""

MAX_UNOWNED = 100_000
"""Keys that are recorded while no agent is known, the latest: as many as ``InMemoryStorage`` keeps."""

_user: ContextVar[Agent | None] = ContextVar("coatcheck_strands_user", default=None)


@contextmanager
def used_by(agent: Agent | None) -> Iterator[None]:
    """Record every entry that is saved or loaded inside the block as used by ``agent``."""
    token = _user.set(agent)
    try:
        yield
    finally:
        _user.reset(token)


class Cycles:
    """The last cycle in which each agent used each key. Thread-safe."""

    def __init__(self, limit: int | None) -> None:
        """Set after how many cycles an unused entry is deleted; None means never, so that no use is recorded."""
        self.limit: int | None = limit
        self.owner: str = secrets.token_hex(8)
        self._last: ByAgent[dict[str, int]] = ByAgent()
        self._latest: ReferenceType[Agent] | None = None
        self._unowned: OrderedDict[str, None] = OrderedDict()
        self._lock = ForkSafeLock()

    def note(self, key: str) -> None:
        """Record that a key is used now."""
        if self.limit is None:
            return
        agent = _user.get()
        with self._lock.held:
            if agent is None and key.startswith(FOLDER):
                agent = None if self._latest is None else self._latest()
                if agent is None:
                    remember_latest(self._unowned, key, value=None, most=MAX_UNOWNED)
            if agent is not None:
                self._of(agent)[key.removesuffix(INDEX)] = agent.event_loop_metrics.cycle_count

    def begin(self, agent: Agent) -> None:
        """Record that ``agent`` begins a cycle. What the host stored before any agent began counts from cycle 0."""
        with self._lock.held:
            self._latest = ref(agent)
            if self._unowned:
                self._of(agent).update(dict.fromkeys(self._unowned, 0))
                self._unowned.clear()

    def stale(self, agent: Agent) -> list[str]:
        """Return the keys that ``agent`` last used more than ``limit`` cycles ago."""
        if self.limit is None:
            return []
        oldest = agent.event_loop_metrics.cycle_count - self.limit
        with self._lock.held:
            return [key for key, cycle in self._of(agent).items() if cycle < oldest]

    def forget(self, agent: Agent, key: str) -> None:
        """Drop a key of ``agent``."""
        with self._lock.held:
            self._of(agent).pop(key, None)

    def is_used_by_another(self, agent: Agent, key: str) -> bool:
        """Return whether another agent uses a key."""
        with self._lock.held:
            return any(key in used for used in self._last.others(agent))

    def _of(self, agent: Agent) -> dict[str, int]:
        found = self._last.get(agent)
        return self._last.set(agent, {}) if found is None else found
