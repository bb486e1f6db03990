"""What OpenTelemetry gets from a run: metrics that agree with ``Stats``, and spans as children of the caller's."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import TYPE_CHECKING

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics.export import HistogramDataPoint

import coatcheck
from coatcheck import Event, FileStorage, InMemoryStorage, Offloaded, Offloader, OpenTelemetry, ToolResult
from tests.core.storages import AsyncDictStorage, DictStorage
from tests.core.telemetry import BIG, Telemetry, run_through_everything

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from coatcheck import Storage


PATIENCE = 60
"""Seconds until a test that would wait forever fails."""


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


# Metrics.


def test_the_metrics_agree_with_the_stats(telemetry: Telemetry) -> None:
    stats = [offloader.stats() for offloader in run_through_everything(telemetry.listener)]

    def summed(name: str) -> int:
        return sum(getattr(each, name) for each in stats)

    assert telemetry.total("coatcheck.results") == summed("results") == 6
    assert telemetry.total("coatcheck.results", coatcheck__outcome="offloaded") == summed("offloaded") == 3
    assert telemetry.total("coatcheck.results", coatcheck__outcome="truncated") == summed("truncated") == 1
    assert telemetry.total("coatcheck.stored.size") == summed("bytes_stored") == 3 * len(BIG.text)
    assert telemetry.total("coatcheck.token.savings") == summed("tokens_saved") > 10_000
    assert telemetry.total("coatcheck.retrievals", coatcheck__outcome="retrieved") == summed("retrieved") == 1
    assert telemetry.total("coatcheck.retrievals", coatcheck__outcome="missed") == summed("missed") == 1
    assert telemetry.total("coatcheck.retrievals", coatcheck__outcome="expired") == summed("expired") == 1
    assert telemetry.total("coatcheck.failures") == summed("failed") == 3


def test_spans_and_metrics_name_the_version_that_made_them(telemetry: Telemetry) -> None:
    run_through_everything(telemetry.listener)

    assert telemetry.spans
    assert telemetry.metrics
    assert telemetry.versions == {coatcheck.__version__}


def test_results_are_told_apart_by_tool_outcome_and_reason(telemetry: Telemetry) -> None:
    run_through_everything(telemetry.listener)

    points = [dict(point.attributes or {}) for point in telemetry.metrics["coatcheck.results"].data.data_points]
    assert len(points) == 5
    kept = {"coatcheck.outcome": "kept", "coatcheck.reason": "within the threshold", "gen_ai.tool.name": "search"}
    assert kept in points
    assert {"coatcheck.outcome": "truncated", "gen_ai.tool.name": "fetch"} in points
    assert telemetry.total("coatcheck.failures", error__type="KeyError", gen_ai__tool__name="odd") == 1
    assert telemetry.total("coatcheck.failures", error__type="OSError") == 2


def test_every_result_and_every_read_is_timed_once_in_seconds(telemetry: Telemetry) -> None:
    began = time.perf_counter()
    run_through_everything(telemetry.listener)
    took = time.perf_counter() - began

    points = telemetry.metrics["coatcheck.operation.duration"].data.data_points
    timed = {point.attributes["coatcheck.outcome"]: point for point in points if isinstance(point, HistogramDataPoint)}  # type: ignore[index]
    counts = {outcome: point.count for outcome, point in timed.items()}
    assert counts == {"offloaded": 3, "kept": 2, "truncated": 1, "retrieved": 1, "missed": 1, "expired": 1, "failed": 1}
    assert 0 < sum(point.sum for point in timed.values()) <= took
    assert all(0.001 in point.explicit_bounds for point in timed.values())


async def test_the_time_spent_in_the_queue_of_the_storage_is_reported_and_measured(telemetry: Telemetry) -> None:
    released, taken = threading.Event(), threading.Event()

    class Slow(DictStorage):
        def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
            taken.set()
            released.wait(PATIENCE)
            super().save(key, content, content_type=content_type, metadata=metadata)

    events: list[Event] = []
    offloader = Offloader(Slow(), network_threads=1, on_event=(telemetry.listener, events.append))
    running = [asyncio.ensure_future(offloader.aoffload([BIG], tool_name=name)) for name in ("first", "second")]
    await asyncio.to_thread(taken.wait, PATIENCE)
    released.set()
    await asyncio.gather(*running)
    offloader.offload([BIG], tool_name="sync")

    queued = {event.tool_name: event.queued_milliseconds for event in events}
    assert max(queued["first"], queued["second"]) > min(queued["first"], queued["second"]) > 0
    assert queued["sync"] == 0
    assert all(event.queued_milliseconds <= event.milliseconds for event in events)
    [point] = telemetry.metrics["coatcheck.queue.duration"].data.data_points
    assert isinstance(point, HistogramDataPoint)
    assert dict(point.attributes or {}) == {"coatcheck.outcome": "offloaded"}
    assert point.count == 2
    assert point.sum == pytest.approx(sum(queued.values()) / 1e3)


# Spans.


def test_every_event_except_a_kept_result_is_a_span(telemetry: Telemetry) -> None:
    events: list[Event] = []
    run_through_everything(telemetry.listener, events.append)

    told = [event for event in events if event.kind != "kept"]
    assert len(told) == 10
    for span, event in zip(telemetry.spans, told, strict=True):
        assert span.name == (f"offload {event.tool_name}" if event.tool_name else "retrieve offloaded content")
        assert dict(span.attributes or {}) == event.attributes
        assert span.kind is trace.SpanKind.INTERNAL
        assert span.start_time is not None
        assert span.end_time is not None
        assert (span.end_time - span.start_time) / 1e6 == pytest.approx(event.milliseconds, abs=0.001)
        assert time.time_ns() - 60e9 < span.end_time <= time.time_ns()
        assert span.status.is_ok is (event.kind not in {"failed", "truncated"})


STORAGES: dict[str, Callable[[Path], Storage]] = {
    "memory": lambda _: InMemoryStorage(),
    "files": FileStorage,
    "async": lambda _: AsyncDictStorage(),
}


@pytest.mark.parametrize("storage", STORAGES)
async def test_sync_and_async_spans_are_children_of_the_callers_span(
    storage: str, tmp_path: Path, telemetry: Telemetry
) -> None:
    offloader = Offloader(STORAGES[storage](tmp_path), on_event=telemetry.listener)
    parents: list[trace.Span] = []
    with telemetry.tracer.start_as_current_span("first") as span:
        outcome = await offloader.aoffload([BIG], tool_name="search")
        parents.append(span)
    assert isinstance(outcome, Offloaded)
    with telemetry.tracer.start_as_current_span("second") as span:
        await offloader.aretrieve(outcome.references[0], offset=0)
        parents.append(span)
    with telemetry.tracer.start_as_current_span("third") as span:
        await offloader.aoffload_step([ToolResult(blocks=(BIG,), tool_name="search")])
        parents.append(span)
    if storage != "async":
        with telemetry.tracer.start_as_current_span("fourth") as span:
            offloader.offload([BIG], tool_name="search")
            parents.append(span)

    seen = [child.parent.span_id if child.parent else None for child in telemetry.spans]
    assert seen == [parent.get_span_context().span_id for parent in parents]
    assert {child.context.trace_id for child in telemetry.spans} == {
        each.get_span_context().trace_id for each in parents
    }


# The ``otel`` extra.


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)

    with pytest.raises(ImportError, match=r"checkout\[otel\]"):
        OpenTelemetry()


def test_without_an_sdk_nothing_happens_and_nothing_fails() -> None:
    offloader = Offloader(on_event=OpenTelemetry())

    assert isinstance(offloader.offload([BIG], tool_name="t"), Offloaded)
    assert offloader.stats().failed == 0
