"""What a forked child must make anew, and locks that it finds open, whichever thread of its parent held them.

A fork copies locks as they are, but of the threads only the one that forked. A lock that another one held would stay
shut in the child for ever. Servers fork after their application is loaded, so this is no rare moment.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ("ForkSafeLock", "in_forked_child")


def in_forked_child(renew: Callable[[], None]) -> None:
    """Have ``renew`` called in every child that this process forks, before the child does anything else."""
    if hasattr(os, "register_at_fork"):  # there is no fork on Windows
        os.register_at_fork(after_in_child=renew)


class ForkSafeLock:
    """A lock for ``with``. What it guards must make sense to a child at every moment, as one thread alone left it."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self.open()
        _made.add(self)

    def open(self) -> None:
        """Forget who holds it: for a child in which that thread does not exist."""
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()


_made: WeakSet[ForkSafeLock] = WeakSet()


def _open_all() -> None:
    for lock in _made:
        lock.open()


in_forked_child(_open_all)
