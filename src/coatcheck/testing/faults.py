"""A storage that fails on purpose, for scenarios about failing storages. Only the faults of ``scenario.Fault``."""

from __future__ import annotations

import errno
import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coatcheck.storage.protocol import MaybeAwaitable, Storage, Stored
    from coatcheck.testing.scenario import Fault

__all__ = ("FaultyStorage",)


class FaultyStorage:
    """Passes every call on to another storage, but for those that it fails at. Has no capabilities."""

    def __init__(self, storage: Storage, fault: Fault) -> None:
        self._storage = storage
        self._fault = fault
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
