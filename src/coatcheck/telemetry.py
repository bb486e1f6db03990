"""Turn events into OpenTelemetry: metrics of what was offloaded and read back, and a span for every event but ``kept``.

Only the conversion of events belongs here; ``events`` defines the names of the attributes. Names for generative AI
follow OpenTelemetry's semantic conventions 1.41.1, the last release before these moved to a repository of their own.
The one name used here, ``gen_ai.tool.name``, is the same there.
"""

from __future__ import annotations

import time
from importlib.metadata import version
from typing import TYPE_CHECKING

from coatcheck.core.errors import install_command
from coatcheck.core.forks import loading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from coatcheck.engine.events import Attribute, Event

__all__ = ("OpenTelemetry",)

BOUNDARIES = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0)
"""Seconds, from what a result that stays takes up to a storage's time limit. OpenTelemetry's own boundaries start with
0 and 5."""


class OpenTelemetry:
    """A listener for ``on_event``: ``Offloader(storage, on_event=OpenTelemetry())``. One may serve many offloaders.

    A span's parent is the span that is current where the call was made, sync or async: a framework's own, or yours.
    Spans are not ``execute_tool`` spans and set no ``gen_ai.operation.name``: the framework makes those, and a second
    one would count each tool call twice. Metrics carry neither scopes nor references, so the number of tools bounds the
    number of time series.
    """

    def __init__(
        self, *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
    ) -> None:
        """Create the instruments.

        Args:
            tracer_provider: where spans go; None means the global one.
            meter_provider: the same for metrics.

        Raises:
            ImportError: opentelemetry-api is not installed.

        """
        try:
            with loading:
                from opentelemetry import metrics, trace  # noqa: PLC0415 - only those who use it pay for it
        except ImportError as error:
            msg = f"OpenTelemetry needs opentelemetry-api. Install it with: {install_command('coatcheck[otel]')}"
            raise ImportError(msg) from error
        self._failed = trace.Status(trace.StatusCode.ERROR)
        ours = version("coatcheck")
        self._tracer = trace.get_tracer("coatcheck", ours, tracer_provider=tracer_provider)
        meter = metrics.get_meter("coatcheck", ours, meter_provider=meter_provider)
        self._results = meter.create_counter("coatcheck.results", "{result}", "Tool results seen.")
        self._stored = meter.create_counter("coatcheck.stored.size", "By", "Bytes of the results that were offloaded.")
        self._savings = meter.create_counter(
            "coatcheck.token.savings", "{token}", "Estimated tokens kept out of conversations."
        )
        self._retrievals = meter.create_counter("coatcheck.retrievals", "{retrieval}", "Reads of stored results.")
        self._failures = meter.create_counter(
            "coatcheck.failures",
            "{failure}",
            "Times that a storage, policy, callback or adapter failed, or a scope was missing; the agent went on.",
        )
        self._duration = meter.create_histogram(
            "coatcheck.operation.duration",
            "s",
            "Time from call to answer, of deciding about a result or of reading one.",
            explicit_bucket_boundaries_advisory=BOUNDARIES,
        )
        self._queued = meter.create_histogram(
            "coatcheck.queue.duration",
            "s",
            "Time that calls to the storage waited for a thread, where an operation needed one.",
            explicit_bucket_boundaries_advisory=(*BOUNDARIES, 100.0, 300.0),
        )

    def __call__(self, event: Event) -> None:
        """Count an event, and make a span for it unless the result stays."""
        attributes = event.attributes
        self._count(event, attributes)
        if event.kind == "kept":
            return
        end = time.time_ns()
        span = self._tracer.start_span(
            "retrieve offloaded content" if event.tool_name is None else f"offload {event.tool_name}".rstrip(),
            attributes=attributes,
            start_time=end - round(event.milliseconds * 1e6),
        )
        if event.error_type:
            span.set_status(self._failed)
        span.end(end)

    def _count(self, event: Event, attributes: Mapping[str, Attribute]) -> None:
        is_result = event.tool_name is not None
        if event.kind == "failed":
            self._failures.add(1, _only(attributes, "error.type", "gen_ai.tool.name"))
            if is_result:
                return  # the outcome of the result is an event of its own
        outcomes = self._results if is_result else self._retrievals
        outcomes.add(1, _only(attributes, "coatcheck.outcome", "coatcheck.reason", "gen_ai.tool.name"))
        self._duration.record(event.milliseconds / 1e3, _only(attributes, "coatcheck.outcome"))
        if event.queued_milliseconds:
            self._queued.record(event.queued_milliseconds / 1e3, _only(attributes, "coatcheck.outcome"))
        if event.kind == "offloaded":
            tool = _only(attributes, "gen_ai.tool.name")
            self._stored.add(event.size or 0, tool)
            self._savings.add(event.tokens_saved, tool)


def _only(attributes: Mapping[str, Attribute], *names: str) -> dict[str, Attribute]:
    return {name: attributes[name] for name in names if name in attributes}
