"""Storages and offloaders that fail on purpose, and a storage that records blocking calls. Only what scenarios need."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from typing import TYPE_CHECKING, NoReturn

from coatcheck.offloader import Offloader

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coatcheck.storage.protocol import MaybeAwaitable, Storage, Stored
    from coatcheck.testing.scenario import Fault

__all__ = ("BrokenOnPurpose", "FailingOffloader", "FailingReader", "FaultyStorage", "WatchedStorage")


class BrokenOnPurpose(Exception):
    """Raised by a failing offloader. No real offloader raises it, so no adapter can be prepared for it."""

    def __init__(self) -> None:
        super().__init__("BrokenOnPurpose")


def _fail(*_: object, **__: object) -> NoReturn:
    raise BrokenOnPurpose


async def _afail(*_: object, **__: object) -> NoReturn:
    raise BrokenOnPurpose


class FailingOffloader(Offloader):
    """Fails at every result that it is asked to offload. Its last resort works, and so does reading back."""

    offload = offload_step = _fail
    aoffload = aoffload_step = _afail


class FailingReader(Offloader):
    """Fails at every read-back."""

    retrieve, aretrieve = _fail, _afail


class WatchedStorage:
    """Forwards every call, and records those made on a thread that runs an event loop, because they block it."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.on_a_loop: list[str] = []

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> MaybeAwaitable[None]:
        """Save."""
        self._look("save")
        return self._storage.save(key, content, content_type=content_type, metadata=metadata)

    def load(self, key: str) -> MaybeAwaitable[Stored | None]:
        """Load."""
        self._look("load")
        return self._storage.load(key)

    def _look(self, called: str) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        self.on_a_loop.append(called)


class FaultyStorage:
    """Forwards every call to another storage, except those that it makes fail. Has no capabilities."""

    def __init__(self, storage: Storage, fault: Fault) -> None:
        self._storage = storage
        self._fault = "every save" if fault == "every offload and save" else fault
        self._saves = 0
        self._lock = threading.Lock()

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> MaybeAwaitable[None]:
        """Save, or fail as a full disk does."""
        with self._lock:
            self._saves += 1
            fails = self._fault == "every save" or (self._fault == "second save" and self._saves > 1)
        if fails:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return self._storage.save(key, content, content_type=content_type, metadata=metadata)

    def load(self, key: str) -> MaybeAwaitable[Stored | None]:
        """Load, or fail as a broken disk does."""
        if self._fault == "every load":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return self._storage.load(key)
