"""64 offloads of 1 MB to S3 at once, beside bare boto3 puts of the same bytes, in one run on one machine.

    python benchmarks/s3.py            7 runs of each, in turn
    python benchmarks/s3.py --quick    3
    python benchmarks/s3.py --check    exit with 1 where a limit is exceeded

The server is a real one (SeaweedFS) behind a proxy that adds 50 ms to each request, both in processes of their own. The
puts run on a thread pool as wide as the one that coatcheck uses. Run it in a checkout.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from botocore.config import Config

from coatcheck import Offloaded, Offloader, S3Storage, TextBlock, TiktokenCounter
from coatcheck.execution import NETWORK_THREADS
from tests.storage.faulty_proxy import running_proxy_process
from tests.storage.seaweed import BUCKET, running_server, session

LIMIT_MULTIPLE = 1.3
LIMIT_STALL_SECONDS = 0.05
LATENCY_SECONDS = 0.05
OFFLOADS = 64
SIZE = 1_000_000


def texts(run: str) -> list[str]:
    """Return 64 log texts of 1 MB, no two alike and none like those of another run."""
    line = "2026-03-01 12:00:00 INFO worker-7 served request {} of {} in 31 ms\n"
    found = []
    for number in range(OFFLOADS):
        lines = [line.format(f"{number}-{count}", run) for count in range(SIZE // len(line) + 1)]
        found.append("".join(lines)[:SIZE])
    return found


def put_seconds(endpoint: str, run: str) -> float:
    """Return the seconds that bare puts take."""
    config = Config(max_pool_connections=NETWORK_THREADS)
    client = session().client("s3", endpoint_url=endpoint, config=config)
    client.head_bucket(Bucket=BUCKET)  # as much of a connection as the offloads start with
    bodies = [text.encode() for text in texts(run)]

    def put(number: int) -> None:
        client.put_object(Bucket=BUCKET, Key=f"{run}/{number}", Body=bodies[number], ContentType="text/plain")

    started = time.perf_counter()
    with ThreadPoolExecutor(NETWORK_THREADS) as threads:
        list(threads.map(put, range(OFFLOADS)))
    return time.perf_counter() - started


def offload_seconds(endpoint: str, run: str) -> tuple[float, float]:
    """Return the seconds that the offloads take, and the longest time that the event loop did nothing meanwhile."""
    storage = S3Storage(BUCKET, run, boto_session=session(), endpoint_url=endpoint)
    storage.load(f"{'0' * 16}/{'0' * 16}")
    offloader = Offloader(storage)
    blocks = [TextBlock(text) for text in texts(run)]

    async def measure() -> tuple[float, float]:
        watching = asyncio.create_task(longest_stall())
        await asyncio.sleep(0)
        started = time.perf_counter()
        outcomes = await asyncio.gather(*(offloader.aoffload([block], tool_name="read_log") for block in blocks))
        seconds = time.perf_counter() - started
        assert all(isinstance(outcome, Offloaded) for outcome in outcomes)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        return seconds, max(stalls)

    stalls = [0.0]

    async def longest_stall() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            stalls.append(time.perf_counter() - before - 0.001)

    return asyncio.run(measure())


def main() -> int:
    """Measure and print; with ``--check``, return 1 if a limit is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a limit is exceeded")
    arguments = parser.parse_args()
    TiktokenCounter().warm_up()

    puts: list[float] = []
    offloads: list[float] = []
    stalls: list[float] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        running_server(Path(folder)) as server,
        running_proxy_process(server.endpoint, latency_seconds=LATENCY_SECONDS) as endpoint,
    ):
        put_seconds(endpoint, "warm-up")
        for run in range(3 if arguments.quick else 7):
            puts.append(put_seconds(endpoint, f"put-{run}"))
            seconds, stall = offload_seconds(endpoint, f"offload-{run}")
            offloads.append(seconds)
            stalls.append(stall)

    multiple = statistics.median(offloads) / statistics.median(puts)
    print(f"64 bare puts of 1 MB      {statistics.median(puts):6.2f} s   ({min(puts):.2f} to {max(puts):.2f})")
    print(
        f"64 offloads of 1 MB       {statistics.median(offloads):6.2f} s   ({min(offloads):.2f} to {max(offloads):.2f})"
        f"   {multiple:.2f} times; limit {LIMIT_MULTIPLE}"
    )
    print(
        f"longest stall of the loop {1e3 * statistics.median(stalls):6.1f} ms  (at most {1e3 * max(stalls):.1f});"
        f" limit {1e3 * LIMIT_STALL_SECONDS:.0f}"
    )
    return int(arguments.check and (multiple > LIMIT_MULTIPLE or max(stalls) > LIMIT_STALL_SECONDS))


if __name__ == "__main__":
    sys.exit(main())
