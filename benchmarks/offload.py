"""What offloading costs, next to the least that any such system must do, in one run on one machine.

    python benchmarks/offload.py            the figures of the documentation
    python benchmarks/offload.py --quick    fewer repetitions
    python benchmarks/offload.py --check    exit with 1 where a limit is exceeded

Pass-through: a 1 KB result that stays. Offload: 10 MB of text into ``FileStorage``, as a multiple of encoding the same
text to UTF-8 and writing it to a file of the same folder. Figures are medians with the spread of the middle half.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from coatcheck import FileStorage, Kept, Offloaded, Offloader, TextBlock, TiktokenCounter

if TYPE_CHECKING:
    from collections.abc import Callable

PASS_THROUGH_LIMIT_MICROSECONDS = 8.0
OFFLOAD_LIMIT_MULTIPLE = 2.5
MEGABYTE = 1_000_000


def log_text(size: int) -> str:
    """Return ``size`` characters of log lines, no two alike."""
    lines = []
    length = number = 0
    while length < size:
        number += 1
        moment = f"2026-03-{number % 28 + 1:02} 12:{number % 60:02}:{number * 7 % 60:02}"
        line = f"{moment} INFO worker-{number % 16} served request {number} in {number * 31 % 997} ms\n"
        lines.append(line)
        length += len(line)
    return "".join(lines)[:size]


def chinese_text(size: int) -> str:
    """Return Chinese text of ``size`` UTF-8 bytes, numbered so that it does not repeat."""
    sentence = "工具返回的结果太大了,放不进对话里;所以把它存起来,只留下预览和一个引用。"
    pieces = []
    length = number = 0
    while length < size:
        number += 1
        piece = f"{number}{sentence}\n"
        pieces.append(piece)
        length += len(piece.encode())
    return "".join(pieces)


def spread(seconds: list[float]) -> tuple[float, float, float]:
    """Return the median and the bounds of the middle half."""
    low, middle, high = statistics.quantiles(seconds, n=4)
    return middle, low, high


def timed(call: Callable[[], object]) -> float:
    """Return the seconds that one call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def pass_through(runs: int) -> list[float]:
    """Return the seconds of one ``offload`` of a 1 KB result that stays, for each run of 1,000."""
    offloader = Offloader()
    content = (TextBlock(log_text(1_024)),)
    assert isinstance(offloader.offload(content, tool_name="search", scope="s"), Kept)

    def thousand() -> None:
        for _ in range(1_000):
            offloader.offload(content, tool_name="search", scope="s")

    return [timed(thousand) / 1_000 for _ in range(runs)]


def offload(text: str, runs: int) -> tuple[list[float], list[float]]:
    """Return the seconds of offloading ``text`` and of encoding and writing it, run by run in turn."""
    TiktokenCounter().warm_up()
    ours: list[float] = []
    least: list[float] = []
    for run in range(runs):
        numbered = f"{run} {text}"
        with tempfile.TemporaryDirectory() as folder:  # gone at once, so that no run waits for another's dirty pages
            jobs = [
                (ours, partial(_offloaded, Offloader(FileStorage(folder)), (TextBlock(numbered),))),
                (least, partial(_encode_and_write, numbered, Path(folder, "least.txt"))),
            ]
            for seconds, job in jobs if run % 2 else reversed(jobs):
                seconds.append(timed(job))
    return ours, least


def _offloaded(offloader: Offloader, content: tuple[TextBlock, ...]) -> None:
    assert isinstance(offloader.offload(content, tool_name="search", scope="s"), Offloaded)


def _encode_and_write(text: str, path: Path) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        view = memoryview(text.encode("utf-8"))
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)


def main() -> int:
    """Measure and print a table; with ``--check``, return 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a limit is exceeded")
    arguments = parser.parse_args()
    runs = 7 if arguments.quick else 31
    broken = False

    middle, low, high = (1e6 * value for value in spread(pass_through(runs)))
    broken |= middle > PASS_THROUGH_LIMIT_MICROSECONDS
    limit = f"limit {PASS_THROUGH_LIMIT_MICROSECONDS:.0f}"
    print(f"pass a 1 KB result           {middle:6.2f} us   ({low:.2f} to {high:.2f}; {limit})")

    for name, text in (("log text", log_text(10 * MEGABYTE)), ("Chinese text", chinese_text(10 * MEGABYTE))):
        ours, least = offload(text, runs)
        multiple = statistics.median(ours) / statistics.median(least)
        broken |= multiple > OFFLOAD_LIMIT_MULTIPLE
        middle, low, high = (1e3 * value for value in spread(ours))
        compared = f"{multiple:.2f} times encode and write ({1e3 * statistics.median(least):.1f} ms"
        print(
            f"offload 10 MB of {name:<12} {middle:5.1f} ms   ({low:.1f} to {high:.1f})   {compared};"
            f" limit {OFFLOAD_LIMIT_MULTIPLE})"
        )
    return int(broken and arguments.check)


if __name__ == "__main__":
    sys.exit(main())
