"""How long the event loop waits for its turn with many results at once, and when something holds the interpreter.

    python -m benchmarks.stall

Prints the numbers of "What holds the event loop" in docs/thresholds.md. Each is the longest wait of a loop that asks
for a turn each millisecond, in wall-clock time: the median of all rounds, with the spread of the middle half.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from benchmarks.measuring import Spread, watched_loop
from coatcheck import Always, FileStorage, Offloaded, Offloader, TextBlock, TiktokenCounter

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

RESULTS = 32
RESULT_BYTES = 1_000_000
PARSED_BYTES = 8_000_000
"""``max_query_bytes``, the most JSON that is parsed at once."""

ROUNDS = 7

LINE = "12:00:00 INFO a line of a log, as long as they are, number {number:>9} of round {start:>6}\n"
RECORD = (
    '{{"id": {number:>7}, "customer": "Ada", "total": {number:>7}.25, "status": "paid", "items": [{{"sku": "a7"}}]}},'
)


async def longest_wait(work: Awaitable[object]) -> float:
    """Return the longest time, in seconds, that the loop went without a turn while ``work`` ran."""
    async with watched_loop() as loop:
        await work
    return loop.longest


def filled(template: str, size: int, *, start: int = 0) -> str:
    """Return as many numbered copies of ``template`` as fit into ``size`` characters."""
    length = len(template.format(number=size, start=start))
    return "".join(template.format(number=number, start=start) for number in range(size // length))


async def many_results(folder: str, start: int, *, size: int = RESULT_BYTES) -> float:
    """Return the longest wait while ``RESULTS`` results are offloaded at once."""
    offloader = Offloader(FileStorage(folder))
    texts = [TextBlock(filled(LINE, size, start=start * RESULTS + number)) for number in range(RESULTS)]
    calls = [offloader.aoffload([text], tool_name="read_log", policy=Always()) for text in texts]

    async def together() -> None:
        assert all(isinstance(outcome, Offloaded) for outcome in await asyncio.gather(*calls))

    return await longest_wait(together())


def parsed(text: str) -> Callable[[str, int], Coroutine[object, object, float]]:
    """Return a function that measures the longest wait while a query parses ``text``."""

    async def one(folder: str, _start: int) -> float:
        offloader = Offloader(FileStorage(folder))
        outcome = await offloader.aoffload([TextBlock(text)], tool_name="query", policy=Always())
        assert isinstance(outcome, Offloaded)
        return await longest_wait(offloader.aretrieve(outcome.references[0], query="[0]"))

    return one


def records(size: int) -> str:
    """Return a list of records as JSON."""
    return f"[{filled(RECORD, size - 1).removesuffix(',')}]"


def empty_lists(size: int) -> str:
    """Return a list of empty lists, the most expensive JSON there is."""
    return f"[{','.join(['[]'] * (size // 3 - 1))}]"


async def first_use() -> float:
    """Return the longest wait while the first tokens of this process are counted."""
    return await longest_wait(Offloader().aoffload([TextBlock(filled(LINE, 20_000))], tool_name="read_log"))


def in_new_process() -> float:
    """Return the result of ``first_use`` in a new process."""
    asked = "import asyncio; from benchmarks.stall import first_use; print(asyncio.run(first_use()))"
    done = subprocess.run([sys.executable, "-c", asked], check=True, capture_output=True)  # noqa: S603 - our own code
    return float(done.stdout)


def main() -> None:
    """Measure all, and print a table."""
    TiktokenCounter().warm_up()
    works = {
        f"{RESULTS} results of 1 MB at once": many_results,
        "a query on 8 MB of records": parsed(records(PARSED_BYTES)),
        "a query on 8 MB of empty lists": parsed(empty_lists(PARSED_BYTES)),
    }
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for start in range(ROUNDS):
            for name, work in works.items():
                seconds.setdefault(name, []).append(asyncio.run(work(folder, start)))
            seconds.setdefault("the first tokens that a process counts", []).append(in_new_process())
    for name, values in seconds.items():
        spread = Spread.of(values)
        low, middle, high = (1e3 * value for value in (spread.low, spread.median, spread.high))
        print(f"{name:<40} {middle:7.0f} ms   ({low:.0f} to {high:.0f}, longest {1e3 * max(values):.0f})")


if __name__ == "__main__":
    main()
