"""Values kept for each agent while it lives. Agents are keyed by identity, because a subclass may define equality."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import ReferenceType, ref

if TYPE_CHECKING:
    from strands import Agent

__all__ = ("ByAgent",)

Kept = TypeVar("Kept")


class ByAgent(Generic[Kept]):
    """Values by agent. A value is dropped when its agent is garbage-collected."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[ReferenceType[Agent], Kept]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, agent: Agent) -> Kept | None:
        """Return the value kept for ``agent``, or None."""
        found = self._kept.get(id(agent))
        return found[1] if found is not None and found[0]() is agent else None

    def set(self, agent: Agent, kept: Kept) -> Kept:
        """Keep a value for ``agent``, and return it."""
        key = id(agent)
        self._kept[key] = ref(agent, lambda gone: self._forget(key, gone)), kept
        return kept

    def others(self, agent: Agent) -> list[Kept]:
        """Return the values kept for all other living agents."""
        return [kept for other, kept in list(self._kept.values()) if other() is not None and other() is not agent]

    def _forget(self, key: int, gone: ReferenceType[Agent]) -> None:
        # By now, another agent may have the same id.
        if key in self._kept and self._kept[key][0] is gone:
            del self._kept[key]
