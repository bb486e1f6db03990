"""What the processes of `test_file_processes.py` and of `tests/faults` run: writers that say what they have saved.

A program of its own.
"""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING

from coatcheck import FileStorage
from coatcheck.testing.samples import Entry, make_entry, noise
from coatcheck.testing.storage import check_holds, save

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

SCOPES = 3


def entry_of(number: int, *, size: int) -> Entry:
    """Return the entry with this number, the same in every process."""
    return make_entry(noise(size, seed=number), scope=f"scope {number % SCOPES}")


def write_for_ever(root: str, acknowledge: Callable[[int], object], *, size: int, fsync: bool = False) -> None:
    """Save one entry after the other, and acknowledge each once it is saved."""
    storage = FileStorage(root, fsync=fsync)
    for number in itertools.count():
        save(storage, entry_of(number, size=size))
        acknowledge(number)


def write_into(root: str, pipe: Connection, *, size: int, fsync: bool) -> None:
    """Do that as a process that was started by another, which reads from ``pipe``."""
    write_for_ever(root, pipe.send, size=size, fsync=fsync)


def say(number: int) -> None:
    """Acknowledge by a line of its own."""
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def write_and_read(root: str, count: int) -> int:
    """Save the same entries as every other process does, reading each; return how many."""
    storage = FileStorage(root)
    for number in range(count):
        entry = entry_of(number, size=1_000 + number)
        save(storage, entry)
        check_holds(storage, entry, "while another process writes the same")
    return count


if __name__ == "__main__":
    write_for_ever(sys.argv[1], say, size=int(sys.argv[2]))
