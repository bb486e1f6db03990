"""What telemetry costs where it matters most: on a 1 KB result that stays, the most common and fastest case.

    python -m benchmarks.telemetry

Measured without a listener; with a listener that does nothing; with ``OpenTelemetry`` and no SDK; and with the SDK,
collecting metrics. Sync and async, because on an event loop, listeners are called on another thread. Prints medians
with the spread of the middle half.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from benchmarks.corpus import SMALL
from benchmarks.measuring import Spread
from coatcheck import Kept, Offloader, OpenTelemetry, TextBlock

if TYPE_CHECKING:
    from coatcheck.engine.events import Listener

CONTENT = (TextBlock(SMALL),)
ROUNDS = 31
CALLS = 500

LISTENERS: dict[str, list[Listener]] = {
    "silent": [],
    "a listener that does nothing": [lambda _: None],
    "OpenTelemetry without an SDK": [OpenTelemetry()],
    "OpenTelemetry with the SDK": [OpenTelemetry(meter_provider=MeterProvider([InMemoryMetricReader()]))],
}


def sync_round(offloader: Offloader) -> float:
    """Return the seconds of one ``offload``."""
    started = time.perf_counter()
    for _ in range(CALLS):
        offloader.offload(CONTENT, tool_name="search", scope="s")
    return (time.perf_counter() - started) / CALLS


async def async_round(offloader: Offloader) -> float:
    """Return the seconds of one ``aoffload``, with calls one after another."""
    started = time.perf_counter()
    for _ in range(CALLS):
        await offloader.aoffload(CONTENT, tool_name="search", scope="s")
    return (time.perf_counter() - started) / CALLS


def main() -> None:
    """Measure all in turn, so that the machine is equally busy for each, and print a table."""
    offloaders = {name: Offloader(on_event=listeners) for name, listeners in LISTENERS.items()}
    for offloader in offloaders.values():
        assert isinstance(offloader.offload(CONTENT, tool_name="search"), Kept)
    seconds: dict[tuple[str, str], list[float]] = {}
    for _ in range(ROUNDS):
        for name, offloader in offloaders.items():
            seconds.setdefault((name, "sync"), []).append(sync_round(offloader))
            seconds.setdefault((name, "async"), []).append(asyncio.run(async_round(offloader)))
    for (name, mode), values in seconds.items():
        spread = Spread.of(values)
        low, middle, high = (1e6 * value for value in (spread.low, spread.median, spread.high))
        print(f"{name:<30} {mode:<6} {middle:7.1f} us   ({low:.1f} to {high:.1f})")


if __name__ == "__main__":
    main()
