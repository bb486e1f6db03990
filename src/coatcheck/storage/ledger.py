"""How many bytes a folder holds, counted in a small file under a lock, so that no save has to list the folder.

The count is never too low for long. A save counts before it names its files, and a removal counts after it has removed
them, so a process killed in between leaves a count that is too high. ``bounds`` then looks through the folder earlier
than it must, and writes the correct count.

The record has a checksum. If it is wrong, as after a power cut, the record counts as missing.
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
"""Bytes. One call writes them into one page, so a process can be killed before or after the write, not within it."""

_PWRITE: Callable[[int, bytes, int], int] | None = getattr(os, "pwrite", None)  # not on Windows


ANY_TIME = -math.inf, math.inf
"""The last look may have been at any time."""


class Count(NamedTuple):
    """What a ledger holds."""

    size: int = 0
    """Bytes in the folder."""

    added: int = 0
    """Bytes ever added, regardless of removals: what is added during a look may be missing from its result."""

    looked: float = -math.inf
    """When somebody last looked through the folder, in seconds since the epoch."""


def add(
    folder: Folder, name: str, size: int, *, most: float = math.inf, looked: tuple[float, float] = ANY_TIME
) -> bool:
    """Add ``size`` bytes to the count, or subtract them if it is negative; return whether that was done.

    It is not done if there is no count, if the last look through the folder was not within ``looked``, or if a positive
    ``size`` would raise the count above ``most`` bytes.
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
    """Replace the count with ``to(count)``, taking a missing or damaged one as empty; return the new count."""
    with folder.locked_file(name, make=True) as descriptor:
        assert descriptor is not None  # noqa: S101 - for type checkers: ``make`` creates the file
        count = to(_read(descriptor) or Count())
        os.ftruncate(descriptor, _LENGTH)  # something else may have been there
        _write(descriptor, count)
        return count


def _read(descriptor: int) -> Count | None:
    """Return the count in a newly opened file; None if it is missing or damaged."""
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
