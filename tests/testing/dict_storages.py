"""The smallest correct storages: dicts, sync and async, with no capability and with all that they can have.

Most broken storages derive from ``CapableStorage``, so that each has only one defect.
"""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from coatcheck import Listed, Page, StorageError, Stored

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    Name: TypeAlias = Callable[[], tuple[str, Mapping[str, str]]]

__all__ = ("AsyncCapableStorage", "AsyncDictStorage", "CapableStorage", "DictStorage")


class DictStorage:
    """Two methods make a storage."""

    def __init__(self) -> None:
        self.held: dict[str, Stored] = {}
        self.lock = threading.Lock()

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        entry = Stored(content=bytes(content), content_type=content_type, metadata=dict(metadata), size=len(content))
        with self.lock:
            existing = self.held.get(key, entry)
            if existing.metadata["sha256"] != metadata["sha256"]:
                message = f"other content has the key {key!r}"
                raise StorageError(message)
            self.held[key] = entry

    def load(self, key: str) -> Stored | None:
        return self.held.get(key)


class AsyncDictStorage:
    """An async dict."""

    def __init__(self) -> None:
        self.inner: DictStorage = DictStorage()

    async def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        await asyncio.sleep(0)
        self.inner.save(key, content, content_type=content_type, metadata=metadata)

    async def load(self, key: str) -> Stored | None:
        await asyncio.sleep(0)
        return self.inner.load(key)


class CapableStorage(DictStorage):
    """A dict that also reads ranges, deletes, lists, pages and sweeps."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1_000.0
        self.times: dict[str, float] = {}

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        super().save(key, content, content_type=content_type, metadata=metadata)
        self.times[key] = self.now

    def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        found = self.load(key)
        return found if found is None else replace(found, content=found.content[start : start + length])

    def delete(self, key: str) -> None:
        self.held.pop(key, None)

    def delete_many(self, keys: Sequence[str]) -> Collection[str]:
        *most, last = keys
        for key in most:
            self.held.pop(key, None)
        return {last}  # like a backend that fails for one of them

    def entries(self, prefix: str) -> Iterable[Listed]:
        return [
            Listed(key=key, size=entry.size, modified=self.times[key], metadata=entry.metadata)
            for key, entry in self.held.items()
            if key.startswith(prefix)
        ]

    def page(self, prefix: str, *, limit: int, after: str | None = None) -> Page:
        ordered = sorted(self.entries(prefix), key=lambda listed: (-listed.modified, listed.key))
        first = next((at for at, listed in enumerate(ordered, 1) if listed.key == after), 0)
        page = tuple(ordered[first : first + limit])
        return Page(entries=page, after=page[-1].key if len(ordered) > first + limit else None)

    def sweep(self, keys: Iterable[str], *, before: float) -> int:
        with self.lock:
            unused = [key for key in keys if key in self.held and self.times[key] < before]
            for key in unused:
                del self.held[key]
        return len(unused)


class AsyncCapableStorage(AsyncDictStorage):
    """An async dict that also lists and deletes."""

    def __init__(self) -> None:
        super().__init__()
        self.inner: CapableStorage = CapableStorage()

    async def delete(self, key: str) -> None:
        await asyncio.sleep(0)
        self.inner.delete(key)

    async def entries(self, prefix: str) -> Iterable[Listed]:
        await asyncio.sleep(0)
        return self.inner.entries(prefix)
