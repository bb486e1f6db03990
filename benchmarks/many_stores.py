"""Whether a store costs more the more is stored: the first ones and the 100,000th, in one run on one machine.

    python benchmarks/many_stores.py            100,000 stores of 1 KB in one scope
    python benchmarks/many_stores.py --quick    10,000
    python benchmarks/many_stores.py --check    exit with 1 where the limit is exceeded

A folder that holds that many and one that holds 100 are stored into in turn, so that what else the machine does meets
both alike. Figures are medians with the spread of the middle half.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from coatcheck import FileStorage
from coatcheck.testing.samples import make_entry, noise
from coatcheck.testing.storage import save

LIMIT_MULTIPLE = 1.2
FEW = 100
SAMPLES = 2_000
SIZE = 1_000


def fill(storage: FileStorage, count: int) -> None:
    """Store so many entries."""
    for number in range(count):
        save(storage, make_entry(noise(SIZE, seed=number)))


def store_seconds(storage: FileStorage, number: int) -> float:
    """Return the seconds that one more store takes."""
    entry = make_entry(noise(SIZE, seed=number))
    started = time.perf_counter()
    save(storage, entry)
    return time.perf_counter() - started


def shown(seconds: list[float]) -> str:
    """Return the median in microseconds and the bounds of the middle half."""
    low, middle, high = (1e6 * value for value in statistics.quantiles(seconds, n=4))
    return f"{middle:7.1f} us   ({low:.1f} to {high:.1f})"


def main() -> int:
    """Measure and print; with ``--check``, return 1 if the limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10,000 stores")
    parser.add_argument("--check", action="store_true", help="exit with 1 where the limit is exceeded")
    arguments = parser.parse_args()
    many = 10_000 if arguments.quick else 100_000

    with tempfile.TemporaryDirectory() as folder:
        full, fresh = FileStorage(Path(folder, "full")), FileStorage(Path(folder, "fresh"))
        fill(full, many - SAMPLES)
        late: list[float] = []
        early: list[float] = []
        for sample in range(SAMPLES):
            if sample % FEW == 0:  # a new folder with 100 entries, so that it stays one of few
                fresh = FileStorage(Path(folder, f"fresh {sample}"))
                fill(fresh, FEW)
            late.append(store_seconds(full, many - SAMPLES + sample))
            early.append(store_seconds(fresh, FEW + sample))
        stored = len(full.entries(""))
        assert stored == many, f"{stored:,} instead of {many:,}"

    multiple = statistics.median(late) / statistics.median(early)
    print(f"store 1 KB, about the {FEW}th     {shown(early)}")
    print(f"store 1 KB, about the {many:,}th {shown(late)}   {multiple:.2f} times; limit {LIMIT_MULTIPLE}")
    return int(multiple > LIMIT_MULTIPLE and arguments.check)


if __name__ == "__main__":
    sys.exit(main())
