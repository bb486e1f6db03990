"""What the processes of `test_file_processes.py` and of `tests/faults` run: writers that say what they have saved.

A program of its own.
"""

from __future__ import annotations

import sys

from coatcheck import FileStorage
from coatcheck.testing.samples import Entry, make_entry, noise
from coatcheck.testing.storage import check_holds, save

SCOPES = 3


def entry_of(number: int, *, size: int) -> Entry:
    """Return the entry with this number, the same in every process."""
    return make_entry(noise(size, seed=number), scope=f"scope {number % SCOPES}")


def write_for_ever(root: str, *, size: int, fsync: bool) -> None:
    """Save one entry after the other, and say so after each."""
    storage = FileStorage(root, fsync=fsync)
    number = 0
    while True:
        save(storage, entry_of(number, size=size))
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
        number += 1


def write_and_read(root: str, count: int) -> int:
    """Save the same entries as every other process does, reading each; return how many."""
    storage = FileStorage(root)
    for number in range(count):
        entry = entry_of(number, size=1_000 + number)
        save(storage, entry)
        check_holds(storage, entry, "while another process writes the same")
    return count


if __name__ == "__main__":
    write_for_ever(sys.argv[1], size=int(sys.argv[2]), fsync="fsync" in sys.argv[3:])
