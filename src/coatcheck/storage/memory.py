"""A storage in this process's memory, for tests, short-lived agents and content that must not touch a disk."""

from __future__ import annotations

import threading
import time
import weakref
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING

from coatcheck.core.checks import require_positive
from coatcheck.core.errors import StorageError
from coatcheck.core.forks import in_forked_child
from coatcheck.core.references import INDEX_SUFFIX
from coatcheck.storage.protocol import Listed, Page, Stored, newest_first, refuse_other_content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ("InMemoryStorage",)


class InMemoryStorage:
    """Keeps at most ``max_bytes`` and ``max_entries`` in memory, and removes the least recently used entries first.

    Saving and loading both count as use. Safe for many threads; a forked child goes on with a copy. The content is gone
    when the process ends.
    """

    evicts = True
    is_local = True

    def __init__(
        self, *, max_bytes: int = 256_000_000, max_entries: int = 100_000, clock: Callable[[], float] = time.time
    ) -> None:
        """Set the limits.

        Args:
            max_bytes: the most content bytes to keep; a single content larger than this is refused.
            max_entries: the most entries to keep.
            clock: returns the time for each save and each read, in seconds since the epoch.

        Raises:
            InvalidRequest: a limit is not a whole number above 0.

        """
        self._max_bytes = require_positive("max_bytes", max_bytes)
        self._max_entries = require_positive("max_entries", max_entries)
        self._clock = clock
        # One lock for all access: the order of use, the byte count and the entries change together.
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, tuple[Stored, float]] = OrderedDict()
        self._bytes = 0
        _storages.add(self)

    def __copy__(self) -> InMemoryStorage:
        """Return the storage itself: a copy would share the entries, but count their bytes separately."""
        return self

    def __deepcopy__(self, memo: object) -> InMemoryStorage:
        """Return the storage itself: a copy would lack what is saved from now on, and a lock cannot be copied."""
        return self

    def __repr__(self) -> str:
        return f"InMemoryStorage(max_bytes={self._max_bytes:_}, max_entries={self._max_entries:_})"

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        """Save an entry, and remove the least recently used ones until the limits hold.

        Raises:
            StorageError: ``content`` alone is larger than ``max_bytes``, or another content has this key.

        """
        if len(content) > self._max_bytes:
            msg = f"content of {len(content):,} bytes is larger than InMemoryStorage(max_bytes={self._max_bytes:_})"
            raise StorageError(msg)
        entry = Stored(content=bytes(content), content_type=content_type, metadata=dict(metadata), size=len(content))
        with self._lock:
            existing = self._entries.get(key)
            if existing is not None:
                refuse_other_content(key, existing[0].metadata, metadata)
                self._bytes -= existing[0].size
            self._use(key, entry)
            self._entries.move_to_end(key)  # so that its own index makes room before it does
            self._bytes += entry.size
            while self._bytes > self._max_bytes or len(self._entries) > self._max_entries:
                _, (oldest, _) = self._entries.popitem(last=False)
                self._bytes -= oldest.size

    def load(self, key: str) -> Stored | None:
        """Return the entry, or None."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            self._use(key, found[0])
            return found[0]

    def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        """Return the entry with at most ``length`` bytes from ``start``, or None."""
        entry = self.load(key)
        return None if entry is None else replace(entry, content=entry.content[start : start + length])

    def delete(self, key: str) -> None:
        """Remove the entry, if it exists."""
        with self._lock:
            self._remove(key)

    def entries(self, prefix: str) -> list[Listed]:
        """Return the entries whose key starts with ``prefix``, least recently used first."""
        with self._lock:
            return [
                Listed(
                    key=key,
                    size=entry.size,
                    modified=modified,
                    metadata=entry.metadata,
                    content_type=entry.content_type,
                )
                for key, (entry, modified) in self._entries.items()
                if key.startswith(prefix)
            ]

    def page(self, prefix: str, *, limit: int, after: str | None = None) -> Page:
        """Return a page of the entries whose key starts with ``prefix``, newest first.

        Raises:
            InvalidRequest: ``after`` did not come from a page.

        """
        return newest_first(self.entries(prefix), limit=limit, after=after)

    def sweep(self, keys: Iterable[str], *, before: float) -> int:
        """Remove those of ``keys`` that were last used before ``before``; see ``coatcheck.Sweeps``."""
        with self._lock:
            unused = [key for key in dict.fromkeys(keys) if key in self._entries and self._entries[key][1] < before]
            for key in unused:
                self._remove(key)
        return len(unused)

    def clear(self) -> None:
        """Remove everything."""
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    def _renew(self) -> None:
        """Repair what a fork interrupted: another thread may have held the lock in the middle of a count."""
        self._lock = threading.Lock()
        self._bytes = sum(entry.size for entry, _ in self._entries.values())

    def _use(self, key: str, entry: Stored) -> None:
        """Move an entry to the end, and its line index after it: not every read of a content reads the index."""
        now, index = self._clock(), f"{key}{INDEX_SUFFIX}"
        self._entries[key] = (entry, now)
        self._entries.move_to_end(key)
        if index in self._entries:
            self._entries[index] = (self._entries[index][0], now)
            self._entries.move_to_end(index)

    def _remove(self, key: str) -> None:
        removed = self._entries.pop(key, None)
        if removed is not None:
            self._bytes -= removed[0].size


_storages: weakref.WeakSet[InMemoryStorage] = weakref.WeakSet()


def _renew_all() -> None:
    for storage in _storages:
        storage._renew()  # noqa: SLF001 - this module's own


in_forked_child(_renew_all)
