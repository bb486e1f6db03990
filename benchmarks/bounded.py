"""What limits cost a save: ``FileStorage`` with all three against one without, at few entries and at many.

    python -m benchmarks.bounded                 at 100,000 entries
    python -m benchmarks.bounded 10000 --check   exit with 1 if a goal is missed

All storages take turns, save by save, so that other load on the machine slows all of them alike. After that, a full
storage removes as much as it saves. The mean of its saves includes every scan of the folder.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from pathlib import Path
from statistics import fmean, median
from time import perf_counter

from coatcheck import FileStorage

__all__ = ("GOAL", "measure")

GOAL = 1.3
"""The longest that a save with limits may take, as a multiple of one without limits at the same number of entries, and
of one with limits at few entries."""

ENTRIES = 100_000
FEW = 100
SIZE = 1_024
ROUNDS = 1_000
SCOPES = 20


def save(storage: FileStorage, number: int) -> float:
    """Save the entry with this number, and return the seconds that it took."""
    content = b"%032d" % number * (SIZE // 32)
    digest = hashlib.sha256(content).hexdigest()
    key = f"{number % SCOPES:016x}/{digest[:16]}"
    started = perf_counter()
    storage.save(key, content, content_type="text/plain", metadata={"sha256": digest})
    return perf_counter() - started


def measure(root: Path, entries: int, *, few: int = FEW, rounds: int = ROUNDS) -> dict[str, float]:
    """Return the median seconds of a save by storage, and the mean of saves that make room."""
    storages = {
        f"{name}, {count:,} entries": (FileStorage(root / f"{name} {count}", **limits), count)
        for name, limits in (
            ("without limits", {}),
            ("with limits", {"max_age": 10**6, "max_bytes": (entries + rounds) * SIZE, "max_scope_bytes": 10**12}),
        )
        for count in (few, entries)
    }
    for storage, count in storages.values():
        for number in range(count):
            save(storage, number)
    seconds: dict[str, list[float]] = {name: [] for name in storages}
    for number in range(entries, entries + rounds):
        for name, (storage, _) in storages.items():
            seconds[name].append(save(storage, number))
    measured = {name: median(taken) for name, taken in seconds.items()}
    for count in (few, entries):
        full = FileStorage(
            root / f"with limits {entries}" if count == entries else root / "full", max_bytes=count * SIZE
        )
        for number in range(count, 2 * count):  # fill it to the limit, and then replace everything once
            save(full, number)
        taken = [save(full, number) for number in range(2 * count, 3 * count)]
        measured[f"full, {count:,} entries, mean"] = fmean(taken)
    return measured


def ratios(measured: dict[str, float], entries: int, *, few: int = FEW) -> dict[str, float]:
    """Return the ratios that are compared with the goal."""
    at_many = measured[f"with limits, {entries:,} entries"]
    return {
        f"limits at {entries:,} entries, to none": at_many / measured[f"without limits, {entries:,} entries"],
        f"{entries:,} entries to {few:,}, with limits": at_many / measured[f"with limits, {few:,} entries"],
    }


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bounded", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("entries", nargs="?", type=int, default=ENTRIES)
    parser.add_argument("--check", action="store_true", help="exit with 1 if a goal is missed")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = measure(Path(folder), given.entries)
    for name, seconds in measured.items():
        print(f"{name:<40} {seconds * 1e6:>8,.0f} µs")
    compared = ratios(measured, given.entries)
    for name, ratio in compared.items():
        print(f"{name:<40} {ratio:>8.2f} (goal {GOAL})")
    return int(given.check and max(compared.values()) > GOAL)


if __name__ == "__main__":
    sys.exit(main())
