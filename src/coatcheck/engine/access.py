"""How the engine reaches a storage: every call is an ``Effect``, and every capability is asked for here."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING

from coatcheck.core.errors import InvalidRequest
from coatcheck.core.settings import NETWORK_THREADS, QUEUE_SECONDS
from coatcheck.engine.execution import Effect, Line
from coatcheck.storage.protocol import (
    Deletes,
    Lists,
    ListsPages,
    LocalPath,
    NamesReferences,
    ReadsRanges,
    Storage,
    Sweeps,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("StorageAccess",)


class StorageAccess:
    """Turns the methods of a storage into effects, whichever of them it has and whether they are async or not."""

    def __init__(
        self, storage: object, *, network_threads: int = NETWORK_THREADS, queue_seconds: float = QUEUE_SECONDS
    ) -> None:
        """Take any object with the two methods of ``Storage`` or of ``NamesReferences``.

        Raises:
            InvalidRequest: it does not have both.

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
        self.lists_pages = isinstance(storage, ListsPages)
        self.lists = self.lists_pages or isinstance(storage, Lists)
        self.evicts = self._says("evicts")
        self._is_local = self._says("is_local", default=isinstance(storage, LocalPath))
        self._takes_file_name = self._says("takes_file_name")
        self._line = Line(network_threads, seconds=queue_seconds)

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> Effect:
        """Save an entry. Answers with None."""
        doing = f"saving {len(content):,} bytes"
        return self._effect(Storage, "save", doing, key, content, content_type=content_type, metadata=metadata)

    def save_named(self, name: str, content: bytes, *, content_type: str, file_name: str | None) -> Effect:
        """Save an entry under a reference that the storage chooses. Answers with that reference."""
        doing = f"saving {len(content):,} bytes"
        file = {"file_name": file_name} if self._takes_file_name else {}
        return self._effect(NamesReferences, "save_named", doing, name, content, content_type=content_type, **file)

    def load(self, key: str) -> Effect:
        """Load a whole entry. Answers with ``Stored`` or None."""
        return self._effect(NamesReferences if self.names_references else Storage, "load", "loading", key)

    def load_range(self, key: str, *, start: int, length: int) -> Effect:
        """Load a part of an entry. Answers with ``Stored`` or None."""
        return self._effect(ReadsRanges, "load_range", "loading a part", key, start=start, length=length)

    def delete(self, key: str) -> Effect:
        """Remove an entry. Answers with None."""
        return self._effect(Deletes, "delete", "deleting", key)

    def entries(self, prefix: str) -> Effect:
        """List entries. Answers with an iterable of ``Listed``."""
        return self._effect(Lists, "entries", "listing", prefix)

    def page(self, prefix: str, *, limit: int, after: str | None) -> Effect:
        """List a few entries, newest first. Answers with a ``Page``."""
        return self._effect(ListsPages, "page", "listing", prefix, limit=limit, after=after)

    def sweep(self, keys: list[str], *, before: float) -> Effect:
        """Remove each entry, atomically, unless it was used after ``before``. Answers with how many it removed."""
        return self._effect(Sweeps, "sweep", "sweeping", keys, before=before)

    def path_of(self, key: str, *, content_type: str) -> str | None:
        """Return the file that holds an entry, if the storage keeps files."""
        if not isinstance(self.storage, LocalPath):
            return None
        return str(self.storage.local_path(key, content_type=content_type))

    def _effect(self, capability: type, method: str, doing: str, /, *arguments: object, **named: object) -> Effect:
        """Return the call of one method of a capability.

        The methods above keep the types of its arguments for those who call them; this one cannot.

        Raises:
            InvalidRequest: the storage lacks the capability.

        """
        kind = type(self.storage).__name__
        if not isinstance(self.storage, capability):
            msg = f"{kind} cannot do this: it lacks coatcheck.{capability.__name__}"
            raise InvalidRequest(msg)
        call = getattr(self.storage, method)
        return Effect(
            call=partial(call, *arguments, **named),
            local=self._is_local,
            is_async=inspect.iscoroutinefunction(call),
            what=f"{doing} ({kind})",
            line=self._line,
        )

    def _says(self, what: str, *, default: bool = False) -> bool:
        """Return what a storage says of itself in an attribute. Most say nothing, and a mock says everything."""
        said = getattr(self.storage, what, None)
        return said if isinstance(said, bool) else default
