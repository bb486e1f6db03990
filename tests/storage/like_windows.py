"""Files and locks as on Windows, for tests that run on Linux: an open file is neither replaced nor removed."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from coatcheck.storage import byte_locks, folder

if TYPE_CHECKING:
    import pytest

_ACCESS_DENIED, _SHARING_VIOLATION = 5, 32
_OPEN_FILES = Path("/proc/self/fd")
_FLOCK = struct.Struct("hhqqi4x")
_HERE = 1
"""``SEEK_CUR``: Windows locks from the current position of the descriptor."""


def behave_like_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take folder descriptors and ``fcntl`` away, and add the locks of ``msvcrt`` and the refusals of Windows."""
    monkeypatch.setattr(folder, "_IN_OPEN_FOLDERS", False)
    monkeypatch.setattr(folder, "_ON_WINDOWS", True)
    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=_locking, LK_NBLCK=2, LK_UNLCK=0))
    monkeypatch.setattr(folder, "fcntl", byte_locks)
    replace, unlink = os.replace, os.unlink

    def replace_closed(old: str, new: str, **descriptors: None) -> None:
        _refuse_open(new, _ACCESS_DENIED)
        replace(old, new, **descriptors)

    def unlink_closed(path: str, *, dir_fd: None = None) -> None:
        _refuse_open(path, _SHARING_VIOLATION)
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "replace", replace_closed)
    monkeypatch.setattr(os, "unlink", unlink_closed)


def _refuse_open(path: str, reason: int) -> None:
    for descriptor in _OPEN_FILES.iterdir():
        try:
            is_open = descriptor.readlink() == Path(path)
        except FileNotFoundError:  # another thread has closed it
            continue
        if is_open:
            error: Any = PermissionError(errno.EACCES, "open elsewhere", path)
            error.winerror = reason
            raise error


def _locking(descriptor: int, mode: int, length: int) -> None:
    """Lock or unlock bytes for an open file, as Windows does. Plain Linux locks belong to the whole process."""
    kind = fcntl.F_WRLCK if mode else fcntl.F_UNLCK
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(kind, _HERE, 0, length, 0))
    except BlockingIOError as error:
        raise PermissionError(errno.EACCES, "locking violation") from error
