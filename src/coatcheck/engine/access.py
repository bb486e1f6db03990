"""How the engine reaches a storage: every call as an ``Effect``, and every capability asked for in one place."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING

from coatcheck.core.errors import InvalidRequest
from coatcheck.core.settings import NETWORK_THREADS, QUEUE_SECONDS
from coatcheck.engine.execution import Effect, Line
from coatcheck.storage.haystack_bridge import ToolResultStoreBridge
from coatcheck.storage.memory import InMemoryStorage
from coatcheck.storage.protocol import (
    Deletes,
    Lists,
    LocalPath,
    NamesReferences,
    ReadsRanges,
    Storage,
    Sweeps,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ("StorageAccess",)


class StorageAccess:
    """Turns the methods of a storage into effects, whichever of them it has and whether they are async or not."""

    def __init__(
        self, storage: object, *, network_threads: int = NETWORK_THREADS, queue_seconds: float = QUEUE_SECONDS
    ) -> None:
        """Take any object with the two methods of ``Storage`` or of ``NamesReferences``.

        Raises:
            InvalidRequest: it has not both.

        """
        if isinstance(storage, type) or not isinstance(storage, Storage | NamesReferences):
            msg = (
                "storage must have the methods save and load, as FileStorage('./artifacts') and InMemoryStorage()"
                f" have, not {storage!r}"
            )
            raise InvalidRequest(msg)
        self.storage: Storage | NamesReferences = storage
        self.names_references = not isinstance(storage, Storage)
        self.reads_ranges = isinstance(storage, ReadsRanges)
        self.sweeps = isinstance(storage, Sweeps)
        self.evicts = isinstance(storage, InMemoryStorage)
        self._line = Line(network_threads, seconds=queue_seconds)
        self._local = isinstance(storage, LocalPath | InMemoryStorage)

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> Effect:
        """Save an entry. Answers with None."""
        if not isinstance(self.storage, Storage):
            raise self._lacks(Storage)
        call = partial(self.storage.save, key, content, content_type=content_type, metadata=metadata)
        return self._effect(self.storage.save, call, f"saving {len(content):,} bytes")

    def save_named(self, name: str, content: bytes, *, content_type: str, file_name: str | None) -> Effect:
        """Save an entry whose reference the storage chooses, and which a tool may have named. Answers with it."""
        if not isinstance(self.storage, NamesReferences):
            raise self._lacks(NamesReferences)
        method = self.storage.save_named
        call = partial(method, name, content, content_type=content_type)
        if isinstance(self.storage, ToolResultStoreBridge):  # no other keeps its content's type in nothing but a name
            call = partial(call, file_name=file_name)
        return self._effect(method, call, f"saving {len(content):,} bytes")

    def load(self, key: str) -> Effect:
        """Load a whole entry. Answers with ``Stored`` or None."""
        return self._effect(self.storage.load, partial(self.storage.load, key), "loading")

    def load_range(self, key: str, *, start: int, length: int) -> Effect:
        """Load a part of an entry. Answers with ``Stored`` or None."""
        if not isinstance(self.storage, ReadsRanges):
            raise self._lacks(ReadsRanges)
        method = self.storage.load_range
        return self._effect(method, partial(method, key, start=start, length=length), "loading a part")

    def delete(self, key: str) -> Effect:
        """Remove an entry. Answers with None."""
        if not isinstance(self.storage, Deletes):
            raise self._lacks(Deletes)
        return self._effect(self.storage.delete, partial(self.storage.delete, key), "deleting")

    def entries(self, prefix: str) -> Effect:
        """List entries. Answers with an iterable of ``Listed``."""
        if not isinstance(self.storage, Lists):
            raise self._lacks(Lists)
        return self._effect(self.storage.entries, partial(self.storage.entries, prefix), "listing")

    def sweep(self, keys: list[str], *, before: float) -> Effect:
        """Remove entries that were not used since, in one step each. Answers with how many."""
        if not isinstance(self.storage, Sweeps):
            raise self._lacks(Sweeps)
        return self._effect(self.storage.sweep, partial(self.storage.sweep, keys, before=before), "sweeping")

    def path_of(self, key: str, *, content_type: str) -> str | None:
        """Return the file that holds an entry, if the storage keeps files."""
        if not isinstance(self.storage, LocalPath):
            return None
        return str(self.storage.local_path(key, content_type=content_type))

    def _effect(self, method: Callable[..., object], call: Callable[[], object], what: str) -> Effect:
        is_async = inspect.iscoroutinefunction(method)
        what = f"{what} ({type(self.storage).__name__})"
        return Effect(call=call, local=self._local, is_async=is_async, what=what, line=self._line)

    def _lacks(self, capability: type) -> InvalidRequest:
        return InvalidRequest(f"{type(self.storage).__name__} cannot do this: it lacks coatcheck.{capability.__name__}")
