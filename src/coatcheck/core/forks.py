"""Fork safety: what a forked child must renew, such as locks, and what a fork waits for.

A fork copies all locks in their current state, but only the thread that forked. A lock held by another thread would
never be released in the child. This happens, because servers fork after loading their application. The child renews our
own locks. It cannot renew Python's import locks, one for each module that is being loaded, so a fork waits for
``loading``.
"""

from __future__ import annotations

# concurrent.futures.thread registers fork handlers for its lock on import, and tiktoken imports it. If that happened
# while a fork waits here, the parent would release that lock after the fork without having acquired it.
import concurrent.futures.thread  # noqa: F401
import os
import threading
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

__all__ = ("ForkSafeLock", "in_forked_child", "loading")

LOADING_SECONDS = 10.0
"""Seconds. The longest that a fork waits for other threads: many times as long as loading all our modules takes. Then
it goes ahead, and the child may hang where it needs the same module."""


def in_forked_child(renew: Callable[[], None]) -> None:
    """Register ``renew`` to run before anything else in every child that this process forks."""
    if hasattr(os, "register_at_fork"):  # there is no fork on Windows
        os.register_at_fork(after_in_child=renew)


class ForkSafeLock:
    """A lock that is replaced by a new one in a forked child: ``with lock.held:``.

    What it guards must be usable in a child at any moment, even if another thread was just changing it.
    """

    __slots__ = ("__weakref__", "held")

    def __init__(self) -> None:
        self.renew()
        _made.add(self)

    def __reduce__(self) -> tuple[type[ForkSafeLock], tuple[()]]:
        """Copy and unpickle as a new lock that nobody holds."""
        return ForkSafeLock, ()

    def renew(self) -> None:
        """Replace the lock: in a child, the thread that held it does not exist."""
        self.held: threading.Lock = threading.Lock()


_made: WeakSet[ForkSafeLock] = WeakSet()


class _Loading:
    """Guards each import that is made on first use: ``with loading: import tiktoken``.

    Any number of threads may load at once. Only a fork waits, until no other thread is loading. So a thread waits here
    no longer than for the module itself.
    """

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Forget the threads, which a child does not have."""
        self._threads: list[int] = []
        self._changed = threading.Condition()  # reentrant: a signal handler or a finalizer may load too

    def __enter__(self) -> None:
        with self._changed:
            self._threads.append(threading.get_ident())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._changed:
            self._threads.remove(threading.get_ident())
            self._changed.notify_all()

    def hold(self) -> None:
        """Wait until no other thread is loading, and let none begin."""
        self._changed.acquire()
        me = threading.get_ident()
        self._changed.wait_for(lambda: all(thread == me for thread in self._threads), LOADING_SECONDS)

    def let_go(self) -> None:
        """Let threads load again."""
        self._changed.release()


loading: _Loading = _Loading()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=loading.hold, after_in_parent=loading.let_go, after_in_child=loading.renew)


def _renew_all() -> None:
    for lock in _made:
        lock.renew()


in_forked_child(_renew_all)
