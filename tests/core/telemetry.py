"""OpenTelemetry's SDK with exporters in memory, and a run that causes every kind of event.

Only collecting and running belong here; the tests check the outcome.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from coatcheck import (
    InMemoryStorage,
    Offloaded,
    Offloader,
    OpenTelemetry,
    Outcome,
    ReferenceExpired,
    ReferenceNotFound,
    StorageError,
    TextBlock,
    ToolResult,
)
from tests.core.storages import FailingStorage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opentelemetry.sdk.metrics.export import Metric, ScopeMetrics

    from coatcheck.engine.events import Listener

WORDS = "the secret word"
BIG = TextBlock("".join(f"{WORDS} {number}\n" for number in range(3_000)))
SMALL = TextBlock("42")
WHOSE = "tenant-of-nobody-else"


class Telemetry:
    """The SDK, and our listener on it."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracer_provider = TracerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self.tracer_provider.get_tracer("host")
        self.listener = OpenTelemetry(
            tracer_provider=self.tracer_provider, meter_provider=MeterProvider([self._reader])
        )

    @property
    def all_spans(self) -> tuple[ReadableSpan, ...]:
        """Every span, including those of other instrumentation, in the order they ended."""
        return self._exporter.get_finished_spans()

    @property
    def spans(self) -> list[ReadableSpan]:
        """Our own spans."""
        return [span for span in self.all_spans if (scope := span.instrumentation_scope) and scope.name == "coatcheck"]

    def parent_of(self, span: ReadableSpan) -> ReadableSpan | None:
        """Return the parent of a span."""
        found = [each for each in self.all_spans if span.parent and each.context.span_id == span.parent.span_id]
        return found[0] if found else None

    @property
    def metrics(self) -> dict[str, Metric]:
        """All metrics by name."""
        return {metric.name: metric for each in self._scope_metrics for metric in each.metrics}

    @property
    def versions(self) -> set[str | None]:
        """The versions of the instrumentation that made our spans and all metrics."""
        scopes = [*(span.instrumentation_scope for span in self.spans), *(each.scope for each in self._scope_metrics)]
        return {scope.version if scope else None for scope in scopes}

    @property
    def _scope_metrics(self) -> Sequence[ScopeMetrics]:
        data = self._reader.get_metrics_data()
        assert data is not None
        [resource] = data.resource_metrics
        return resource.scope_metrics

    def total(self, name: str, **attributes: str) -> float:
        """Return the sum of a counter over all points with these attributes. Write dots in their names as ``__``."""
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}
        points = [point for point in self.metrics[name].data.data_points if isinstance(point, NumberDataPoint)]
        return sum(point.value for point in points if wanted.items() <= dict(point.attributes or {}).items())


def run_through_everything(*listeners: Listener) -> list[Offloader]:
    """Cause every kind of event, and return the offloaders that were used.

    3 results are offloaded, 2 kept and 1 truncated. 1 read is answered, 1 misses, 1 finds its reference expired and 1
    fails. A policy and a save fail too. The save waits for a thread, if only for a moment.
    """
    storage = InMemoryStorage()
    offloader = Offloader(storage, policies={"odd": _refuse}, on_event=listeners)
    reference = _reference(offloader.offload([BIG], tool_name="search", scope=WHOSE))
    offloader.offload([BIG], tool_name="odd", scope=WHOSE)
    offloader.offload([SMALL], tool_name="search", scope=WHOSE)
    offloader.offload([SMALL], tool_name="search", scope=WHOSE)
    offloader.retrieve(f"{WORDS}: {reference}", scope=WHOSE, pattern="word 7")
    with pytest.raises(ReferenceNotFound):
        offloader.retrieve(WORDS, scope=WHOSE)
    storage.clear()
    with pytest.raises(ReferenceExpired):
        offloader.retrieve(reference, scope=WHOSE)
    full = Offloader(FailingStorage(after=0), max_inline_tokens=3_000, on_event=listeners)
    asyncio.run(full.aoffload([BIG], tool_name="fetch", scope=WHOSE))
    unreadable = FailingStorage()
    broken = Offloader(unreadable, on_event=listeners)
    reference = _reference(broken.offload([BIG], tool_name="fetch", scope=WHOSE))
    unreadable.loads = True
    with pytest.raises(StorageError):
        broken.retrieve(reference, scope=WHOSE)
    return [offloader, full, broken]


def _refuse(result: ToolResult) -> bool:
    raise KeyError(str(result.blocks))


def _reference(outcome: Outcome) -> str:
    assert isinstance(outcome, Offloaded)
    return outcome.references[0].id
