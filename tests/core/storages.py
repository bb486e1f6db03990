"""Small storages that the core tests share: a dict, an async one, one that fails, one that names its references."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from coatcheck import Stored

if TYPE_CHECKING:
    from collections.abc import Mapping


class DictStorage:
    """The smallest possible storage: two methods, no capabilities."""

    def __init__(self) -> None:
        self.kept: dict[str, Stored] = {}
        self.bytes_loaded = 0

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        self.kept[key] = Stored(content=content, content_type=content_type, metadata=dict(metadata), size=len(content))

    def load(self, key: str) -> Stored | None:
        found = self.kept.get(key)
        self.bytes_loaded += found.size if found is not None else 0
        return found


class RangeStorage(DictStorage):
    """A dict that reads parts of entries, and counts the bytes it returned."""

    def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        found = self.kept.get(key)
        if found is None:
            return None
        part = found.content[start : start + length]
        self.bytes_loaded += len(part)
        return Stored(content=part, content_type=found.content_type, metadata=found.metadata, size=found.size)


class AsyncDictStorage:
    """The same with coroutines, as for storages whose client is async."""

    def __init__(self) -> None:
        self.inner = RangeStorage()

    async def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        self.inner.save(key, content, content_type=content_type, metadata=metadata)

    async def load(self, key: str) -> Stored | None:
        return self.inner.load(key)

    async def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        return self.inner.load_range(key, start=start, length=length)


class FailingStorage(DictStorage):
    """Saves ``after`` entries, then has a full disk. Loads fail if ``loads`` is true."""

    def __init__(self, *, after: int = 1_000_000, loads: bool = False) -> None:
        super().__init__()
        self.after = after
        self.loads = loads
        self.failures = 0

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        if len(self.kept) >= self.after:
            self.failures += 1
            raise OSError(errno.ENOSPC, "No space left on device", "/a/secret/path")
        super().save(key, content, content_type=content_type, metadata=metadata)

    def load(self, key: str) -> Stored | None:
        if self.loads:
            self.failures += 1
            raise OSError(errno.EIO, "Input/output error", "/a/secret/path")
        return super().load(key)


class Shelves:
    """A storage that puts its own prefix and suffix around the name it is asked to use."""

    def __init__(self, shape: str = "shelf://7/{}.bin") -> None:
        self.shape = shape
        self.kept: dict[str, Stored] = {}
        self.names: list[str] = []

    def save_named(self, name: str, content: bytes, *, content_type: str) -> str:
        self.names.append(name)
        reference = self.shape.format(name)
        self.kept[reference] = Stored(content=content, content_type=content_type, metadata={}, size=len(content))
        return reference

    def load(self, key: str) -> Stored | None:
        return self.kept.get(key)
