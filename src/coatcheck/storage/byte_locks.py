"""``flock`` for Windows: it locks the byte at the current position of an open file, which need not exist."""

from __future__ import annotations

import errno
from importlib import import_module
from typing import Any

__all__ = ("LOCK_EX", "LOCK_NB", "LOCK_UN", "flock")

LOCK_EX, LOCK_NB, LOCK_UN = 2, 4, 8

_IS_LOCKED = frozenset({errno.EACCES, 0})  # 0 is what Wine says


def flock(descriptor: int, operation: int) -> None:
    """Lock the byte without waiting, or unlock it.

    Raises:
        BlockingIOError: somebody else has locked it.
        OSError: locks are not supported here.

    """
    msvcrt: Any = import_module("msvcrt")  # only on Windows
    try:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK if operation == LOCK_UN else msvcrt.LK_NBLCK, 1)
    except OSError as error:
        if error.errno not in _IS_LOCKED:
            raise
        raise BlockingIOError(errno.EAGAIN, error.strerror) from error
