"""Which offloader serves which agent: a ready one, or one around the given storage or the agent's own.

Only finding it and recognizing the kinds of storages belong here. A storage that can be bound to a sandbox is bound to
each agent's own.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from coatcheck import InvalidRequest, NamesReferences, Offloader, StrandsOffloaderStorageBridge
from coatcheck import Storage as CoreStorage
from coatcheck.adapting import ForkSafeLock
from coatcheck_strands.compat.by_agent import ByAgent
from coatcheck_strands.compat.cycles import Cycles
from coatcheck_strands.compat.eviction import EvictingBridge, EvictsFrom, evict
from coatcheck_strands.compat.memory import InMemoryStorage
from coatcheck_strands.compat.storing import StoresAndRetrieves
from coatcheck_strands.options import check_cycles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strands import Agent

    from coatcheck_strands.compat.storing import KnownScopes

__all__ = ("Offloaders",)

_NAMESPACE = "offloader/"
"""The same namespace as Strands' own offloader. It separates our entries in a storage shared with sessions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The offloader that serves one agent, and what belongs to it."""

    offloader: Offloader
    """Saves and reads."""

    old: Offloader | None = None
    """Reads other content in the same place: what the host or Strands' own offloader stored, by the reference they got,
    and what was saved before the host's class had its own ``store``."""

    known_scopes: KnownScopes | None = None
    """Is told under which scopes something was saved."""

    storage: EvictsFrom | None = None
    """Deletes entries that were not used for too many cycles. If None, nothing is ever deleted."""

    async def evict(self, agent: Agent) -> None:
        """Delete entries that were not used for too long."""
        if self.storage is not None:
            await evict(self.storage, agent=agent)


class Offloaders:
    """Finds the offloader for an agent, and makes it the first time. Thread-safe."""

    def __init__(self, storage: object, *, options: Mapping[str, Any], evict_after_cycles: int | None) -> None:
        """Take a ready offloader, a storage of any kind, or None for the agent's own.

        Raises:
            InvalidRequest: ``storage`` is none of these, or ``evict_after_cycles`` is neither an int above 0 nor None.

        """
        self._storage = storage
        self._options = options
        self._cycles = Cycles(check_cycles("evict_after_cycles", evict_after_cycles))
        self._by_agent: ByAgent[Served] = ByAgent()
        self._lock = ForkSafeLock()
        self._shared = self._serving(InMemoryStorage() if storage is None else storage)

    def __deepcopy__(self, memo: object) -> Offloaders:
        """Return the same object, so that copies of an agent find what was stored for it."""
        return self

    def of(self, agent: Agent | None) -> Served:
        """Return what serves ``agent``. None stands for callers without their own storage."""
        if agent is None:
            return self._shared
        found = self._by_agent.get(agent)
        if found is None:
            made = self._made(agent)  # without the lock: it calls the host's storage, which may come back here
            with self._lock.held:
                found = self._by_agent.get(agent) or self._by_agent.set(agent, made)
        return found

    def _made(self, agent: Agent) -> Served:
        storage: Any = agent.storage if self._storage is None else self._storage
        if storage is None:
            return self._shared
        bound = _bound(storage, agent) if hasattr(storage, "for_sandbox") else storage
        return self._shared if bound is self._storage else self._serving(bound)

    def _serving(self, storage: Any) -> Served:  # noqa: ANN401 - known by its methods
        if isinstance(storage, Offloader):
            return Served(offloader=storage)
        if isinstance(storage, type):  # a class has the methods too, but every call would fail
            msg = f"storage must be an object, not the class {storage.__name__}: pass {storage.__name__}(...)"
            raise InvalidRequest(msg)
        if isinstance(storage, StoresAndRetrieves):
            served = self._serving_ours(storage)
            if isinstance(storage, InMemoryStorage):
                served = replace(served, storage=storage)
            return served
        # Checked before coatcheck's methods, which mean something else in a class written for Strands.
        if hasattr(storage, "store") and hasattr(storage, "retrieve"):
            return Served(offloader=self._naming(storage))
        if isinstance(storage, CoreStorage | NamesReferences):
            return Served(offloader=Offloader(storage, **self._options))
        if hasattr(storage, "write") and hasattr(storage, "read"):
            prefix = "" if getattr(storage, "_namespaced", None) else _NAMESPACE
            bridge = EvictingBridge(storage, prefix=prefix, cycles=self._cycles)
            return Served(offloader=Offloader(bridge, **self._options), storage=bridge)
        msg = (
            "storage must be an Offloader, a storage of coatcheck (save, load), of strands.storage (write, read, list,"
            f" delete) or of Strands' own offloader (store, retrieve), not {storage!r}"
        )
        raise InvalidRequest(msg)

    def _serving_ours(self, storage: StoresAndRetrieves) -> Served:
        """Return what serves a storage of this package: by the core's keys, unless the storage overrides ``store``."""
        keyed = Offloader(cast("CoreStorage", storage), **self._options)
        if storage.is_overridden():
            return Served(offloader=self._naming(storage), old=keyed, known_scopes=storage.known_scopes)
        # Not its ``retrieve``, which without a scope finds what was saved under any scope.
        named = self._naming(SimpleNamespace(store=storage.store, retrieve=storage.retrieve_named))
        return Served(offloader=keyed, old=named, known_scopes=storage.known_scopes)

    def _naming(self, storage: Any) -> Offloader:  # noqa: ANN401 - known by its methods
        return Offloader(StrandsOffloaderStorageBridge(storage), **self._options)


def _bound(storage: Any, agent: Agent) -> object:  # noqa: ANN401 - known by its methods
    """Return the storage for the agent's sandbox, with the methods that a subclass overrides.

    ``LocalFileStorage.for_sandbox`` returns a plain ``LocalFileStorage``, even for agents without a sandbox. A
    subclass's overrides, such as encryption, would be lost silently.
    """
    bound = storage.for_sandbox(agent.sandbox)
    is_cut_down = type(bound) is not type(storage) and isinstance(storage, type(bound))
    if not is_cut_down or type(storage).for_sandbox is not type(bound).for_sandbox:
        return bound
    whole = copy.copy(storage)  # with whatever the subclass keeps, such as a key
    vars(whole).update(vars(bound))
    return whole
