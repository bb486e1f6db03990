"""Delete entries that no agent has used for too long.

An entry that several agents use is deleted once the last of them has stopped using it. An entry that another plugin or
process saved too is never deleted: keys are derived from the content, and nobody knows who else still refers to it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from coatcheck import Deletes, Storage, StrandsStorageBridge, log_failure
from coatcheck_strands.compat.cycles import INDEX, Cycles, used_by

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from strands import Agent


__all__ = ("EvictingBridge", "EvictsFrom", "evict")

logger: logging.Logger = logging.getLogger("coatcheck_strands")

LIMIT_SECONDS = 30.0
"""Longest time for deleting one entry. It is the core's limit for one call to a storage."""

Result = TypeVar("Result")

_OWNER = "owner"
"""Metadata key for the one plugin that saved the entry. In-memory entries lack it: plugins share ``Cycles``."""


class EvictingBridge(StrandsStorageBridge):
    """A bridge to a storage of ``strands.storage`` that records each use of an entry."""

    def __init__(self, storage: Any, *, prefix: str, cycles: Cycles) -> None:  # noqa: ANN401 - known by its methods
        super().__init__(storage, prefix=prefix)
        self.cycles = cycles

    def metadata_to_save(self, metadata: Mapping[str, str], existing: Mapping[str, str] | None) -> Mapping[str, str]:
        """Return the metadata, with the saving plugin as owner, or with no owner once a second one saved the entry."""
        is_own = existing is None or existing.get(_OWNER) == self.cycles.owner
        return {**metadata, _OWNER: self.cycles.owner if is_own else ""}

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> Any:  # noqa: ANN401
        """Save an entry, and record the use."""
        self.cycles.note(key)
        return super().save(key, content, content_type=content_type, metadata=metadata)

    def load(self, key: str) -> Any:  # noqa: ANN401
        """Load an entry, and record the use."""
        self.cycles.note(key)
        return super().load(key)


class EvictsFrom(Storage, Deletes, Protocol):
    """A storage that records each use of an entry in its ``cycles``, and can delete entries."""

    cycles: Cycles


async def evict(storage: EvictsFrom, *, agent: Agent) -> None:
    """Delete entries that ``agent`` has not used for too many cycles and that no other agent uses.

    If an entry cannot be deleted within 30 seconds, that is logged. The entry stays, and is no longer tracked.
    """
    cycles = storage.cycles
    cycles.begin(agent)
    for key in cycles.stale(agent):
        try:
            if not cycles.is_used_by_another(agent, key):
                with used_by(agent):  # so that loading the entry does not count as use by another agent
                    await asyncio.wait_for(_let_go(storage, agent, key=key), LIMIT_SECONDS)
        except Exception as error:  # noqa: BLE001 - one failure must not stop the others
            log_failure(logger, f"coatcheck failed to evict {key}, which stays", error=error)
        cycles.forget(agent, key)


async def _let_go(storage: EvictsFrom, agent: Agent, *, key: str) -> None:
    cycles = storage.cycles
    family = {name: await _off_loop(partial(storage.load, name)) for name in (key, f"{key}{INDEX}")}
    content = family[key]
    if content is None or content.metadata.get(_OWNER, cycles.owner) != cycles.owner:
        return
    for name in family:
        await _off_loop(partial(storage.delete, name))
    if cycles.is_used_by_another(agent, key):  # another agent saved them while they were being deleted
        for name, entry in family.items():
            if entry is not None:
                again = partial(storage.save, content_type=entry.content_type, metadata=entry.metadata)
                await _off_loop(partial(again, name, entry.content))


async def _off_loop(call: Callable[[], Awaitable[Result] | Result]) -> Result:
    answer = await asyncio.to_thread(call)
    return await answer if inspect.isawaitable(answer) else answer
