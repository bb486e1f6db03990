"""How to measure seconds, memory and the turns of an event loop. Nothing here knows what is measured.

Memory is the kernel's high-water mark of this process's resident memory, reset before each measurement. It is exact,
whereas sampling would miss short peaks. Linux only.
"""

from __future__ import annotations

import asyncio
import ctypes
import mmap
import os
import statistics
import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

__all__ = ("Loop", "Memory", "Spread", "seconds", "touch_memory", "watched_loop", "watched_memory")

TICK_SECONDS = 0.001

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_CLEAR_PEAK = "5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The results of many runs: the median and the middle half, so that one slow run decides nothing."""

    median: float
    low: float
    high: float
    runs: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of one value or more."""
        low, median, high = (
            statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
        )
        return cls(median=median, low=low, high=high, runs=len(values))


def seconds(call: Callable[[], object]) -> float:
    """Return the seconds that one call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


@dataclass(slots=True)
class Memory:
    """Memory of a watched block. Filled when the block ends."""

    peak_bytes: int = 0
    """The most memory in use, beyond what was in use at the start."""


def touch_memory(most: int) -> None:
    """Write once to ``most`` bytes of free memory: a virtual machine may get a page only at its first write."""
    page = os.sysconf("SC_PAGE_SIZE")
    free = os.sysconf("SC_AVPHYS_PAGES") * page
    with mmap.mmap(-1, min(most, free // 2) // page * page) as memory:
        for start in range(0, len(memory), page):
            memory[start] = 1


@contextmanager
def watched_memory() -> Iterator[Memory]:
    """Watch this process's peak memory. Free allocator memory is released first, because it would hide a peak.

    Raises:
        OSError: this is not Linux, or the kernel does not allow the mark to be reset.

    """
    memory = Memory()
    ctypes.CDLL(None).malloc_trim(0)
    _CLEAR.write_text(_CLEAR_PEAK, encoding="ascii")
    before = _kilobytes("VmRSS")
    try:
        yield memory
    finally:
        memory.peak_bytes = max(0, _kilobytes("VmHWM") - before) * 1_024


def _kilobytes(field: str) -> int:
    status = _STATUS.read_text(encoding="ascii", errors="replace")
    return int(status.partition(f"{field}:")[2].split(None, 1)[0])


@dataclass(slots=True)
class Loop:
    """Seconds by which an event loop was late for a turn. Filled when the watched block ends."""

    longest: float = 0.0
    percentile_99: float = 0.0
    turns: int = 0


@asynccontextmanager
async def watched_loop() -> AsyncIterator[Loop]:
    """Ask the running event loop for a turn each millisecond, and record how late each comes."""
    loop = Loop()
    late: list[float] = []

    stopped = asyncio.Event()

    async def tick() -> None:
        while not stopped.is_set():
            due = time.perf_counter() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            late.append(time.perf_counter() - due)

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    try:
        yield loop
    finally:
        stopped.set()  # one more turn, so that the last wait counts
        await ticking
        loop.turns = len(late)
        loop.longest = max(late)
        loop.percentile_99 = statistics.quantiles([0.0, *late], n=100, method="inclusive")[-1]
