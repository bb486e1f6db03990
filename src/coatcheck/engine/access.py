"""How the engine reaches a storage: every call is an ``Effect``, and every capability is asked for here."""

from __future__ import annotations

import inspect
from functools import partial

from coatcheck.core.errors import InvalidRequest
from coatcheck.core.settings import NETWORK_THREADS, QUEUE_SECONDS
from coatcheck.engine.execution import CallQueue, Effect
from coatcheck.storage.protocol import (
    Lists,
    ListsPages,
    LocalPath,
    NamesReferences,
    ReadsRanges,
    Storage,
    Sweeps,
)

__all__ = ("StorageAccess",)

_METHODS = {
    "save": ("Storage", "saving"),
    "save_named": ("NamesReferences", "saving"),
    "load": ("Storage", "loading"),
    "load_range": ("ReadsRanges", "loading a part"),
    "delete": ("Deletes", "deleting"),
    "entries": ("Lists", "listing"),
    "page": ("ListsPages", "listing"),
    "sweep": ("Sweeps", "sweeping"),
}
"""The capability that each method of a storage belongs to, and what it is doing, for the message of an error."""


class StorageAccess:
    """Turns the methods of a storage into effects, whichever of them it has, sync or async."""

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
        self.lists = not self.names_references and isinstance(storage, Lists | ListsPages)
        self.evicts = self._says("evicts")
        self.takes_file_name = self._says("takes_file_name")
        self._is_local = self._says("is_local", default=isinstance(storage, LocalPath))
        self._queue = CallQueue(network_threads, seconds=queue_seconds)

    def call(self, method: str, /, *arguments: object, **named: object) -> Effect:
        """Return the call of a method of the storage; ``coatcheck.storage.protocol`` has their arguments and answers.

        Raises:
            InvalidRequest: the storage lacks the capability.

        """
        kind = type(self.storage).__name__
        capability, doing = _METHODS[method]
        call = getattr(self.storage, method, None)
        if call is None:
            msg = f"{kind} cannot do this: it lacks coatcheck.{capability}"
            raise InvalidRequest(msg)
        sizes = "".join(f" {len(argument):,} bytes" for argument in arguments if isinstance(argument, bytes))
        return Effect(
            call=partial(call, *arguments, **named),
            local=self._is_local,
            is_async=inspect.iscoroutinefunction(call),
            what=f"{doing}{sizes} ({kind})",
            queue=self._queue,
        )

    def path_of(self, key: str, *, content_type: str) -> str | None:
        """Return the file that holds an entry, if the storage keeps files."""
        if not isinstance(self.storage, LocalPath):
            return None
        return str(self.storage.local_path(key, content_type=content_type))

    def _says(self, what: str, *, default: bool = False) -> bool:
        """Return a boolean attribute of the storage, or the default. The attributes of a mock are not booleans."""
        said = getattr(self.storage, what, None)
        return said if isinstance(said, bool) else default
