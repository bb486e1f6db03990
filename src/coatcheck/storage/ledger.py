"""How many bytes a folder holds, counted in a small file under a lock, so that no save has to list the folder.

The count never falls short for long. A save counts before it gives its files their names, and a removal counts after
it has removed them, so a process that is killed in between leaves a count that is too high. ``bounds`` then looks
through the folder earlier than it must, and writes the right count.

The record has a checksum. A record whose checksum is wrong, as after a power cut, is no count at all.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from coatcheck.storage.folder import Folder

__all__ = ("ANY_TIME", "Count", "add", "change")

_RECORD = struct.Struct("<qqd")
_CHECKSUM = struct.Struct("<I")
_LENGTH = _RECORD.size + _CHECKSUM.size
"""Bytes, which one call writes into one page: a kill comes before or after, never within."""

_PWRITE: Callable[[int, bytes, int], int] | None = getattr(os, "pwrite", None)  # not on Windows


ANY_TIME = -math.inf, math.inf
"""The last look may have been at any time."""


class Count(NamedTuple):
    """What a ledger says."""

    size: int = 0
    """Bytes in the folder."""

    added: int = 0
    """Bytes that were ever added, whatever was removed since: what a look through the folder may have missed."""

    looked: float = -math.inf
    """When somebody last looked through the folder, in seconds since the epoch."""


def add(
    folder: Folder, name: str, size: int, *, most: float = math.inf, looked: tuple[float, float] = ANY_TIME
) -> bool:
    """Count ``size`` bytes more, or fewer if it is negative; return whether that was done.

    It is not done if there is no count, if the last look through the folder was not within ``looked``, or if a positive
    ``size`` would make it more than ``most`` bytes.
    """
    with folder.locked_file(name) as descriptor:
        count = None if descriptor is None else _read(descriptor)
        if descriptor is None or count is None or not looked[0] <= count.looked <= looked[1]:
            return False
        if size > 0 and count.size + size > most:
            return False
        _write(descriptor, Count(max(0, count.size + size), count.added + max(0, size), count.looked))
        return True


def change(folder: Folder, name: str, to: Callable[[Count], Count]) -> Count:
    """Replace the count, from an empty one where there is none or a damaged one; return the new one."""
    with folder.locked_file(name, make=True) as descriptor:
        assert descriptor is not None  # noqa: S101 - for type checkers: ``make`` makes it
        count = to(_read(descriptor) or Count())
        os.ftruncate(descriptor, _LENGTH)  # something else may have been there
        _write(descriptor, count)
        return count


def _read(descriptor: int) -> Count | None:
    """Return what a newly opened file says."""
    raw = os.read(descriptor, _LENGTH + 1)
    if len(raw) != _LENGTH or _CHECKSUM.pack(zlib.crc32(raw[: _RECORD.size])) != raw[_RECORD.size :]:
        return None
    size, added, looked = _RECORD.unpack_from(raw)
    return Count(size, added, looked)


def _write(descriptor: int, count: Count) -> None:
    record = _RECORD.pack(*count)
    record += _CHECKSUM.pack(zlib.crc32(record))
    if _PWRITE is None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, record)
    else:
        _PWRITE(descriptor, record, 0)
