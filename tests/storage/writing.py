"""The writers that `test_file_processes.py` and `tests/faults` run in processes: they report what they have saved.

This module is also a program of its own.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from coatcheck import FileStorage
from coatcheck.storage.folder import open_folder
from coatcheck.testing.samples import Entry, make_entry, noise
from coatcheck.testing.storage import check_holds, save

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

SCOPES = 3

LARGEST = 20_000
"""The most bytes of an entry that fills a storage with a limit."""


def entry_of(number: int, *, size: int) -> Entry:
    """Return the entry with this number. It is the same in every process."""
    return make_entry(noise(size, seed=number), scope=f"scope {number % SCOPES}")


def write_for_ever(
    root: str,
    acknowledge: Callable[[int], object],
    *,
    size: int,
    fsync: bool = False,
    max_bytes: int | None = None,
    first: int = 0,
) -> None:
    """Save one entry after another, and acknowledge each once it is saved."""
    storage = FileStorage(root, fsync=fsync, max_bytes=max_bytes)
    for number in itertools.count(first):
        save(storage, entry_of(number, size=size))
        acknowledge(number)


def write_into(root: str, pipe: Connection, *, size: int, fsync: bool) -> None:
    """Write for ever, and send the acknowledgements to a parent that reads from ``pipe``."""
    write_for_ever(root, pipe.send, size=size, fsync=fsync)


def say(number: int) -> None:
    """Acknowledge an entry with a line on standard output."""
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def write_and_read(root: str, count: int) -> int:
    """Save and read the same entries as every other process; return how many."""
    storage = FileStorage(root)
    for number in range(count):
        entry = entry_of(number, size=1_000 + number)
        save(storage, entry)
        check_holds(storage, entry, "while another process writes the same")
    return count


def write_within(root: str, limit: int, *, first: int, count: int) -> int:
    """Save entries into a storage with a limit, as other processes do; return the most bytes ever listed."""
    storage = FileStorage(root, max_bytes=limit)
    most = 0
    for number in range(first, first + count):
        save(storage, entry_of(number, size=LARGEST - number % 10))
        if number % 10 == 0:
            with open_folder(Path(root), "v1") as folder, folder.locked():  # no other process evicts meanwhile
                most = max(most, sum(listed.size for listed in storage.entries("")))
    return most


if __name__ == "__main__":
    _, folder, size, *limits = sys.argv
    max_bytes, first = map(int, limits or (0, 0))
    write_for_ever(folder, say, size=int(size), max_bytes=max_bytes or None, first=first)
