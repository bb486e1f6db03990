"""The page on observability lists the telemetry that exists, and nothing else."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from opentelemetry.sdk.metrics.export import Sum
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes  # the attributes that may still change
from opentelemetry.semconv.attributes import error_attributes

from tests.core.telemetry import Telemetry, run_through_everything
from tests.docs.pages import blocks_of
from tests.meta.source_tree import ROOT

if TYPE_CHECKING:
    import pytest

PATH = ROOT / "docs/observability.md"
PAGE = PATH.read_text(encoding="utf-8")


def rows(heading: str) -> dict[str, list[str]]:
    """Return the rows of the table under a heading of the page, by their first cell."""
    section = re.split(r"^#+ ", PAGE.partition(f"# {heading}\n")[2], flags=re.MULTILINE)[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"]
    return {name.strip("`"): rest for name, *rest in cells[2:]}


def in_code(text: str) -> set[str]:
    return set(re.findall(r"`([^`]+)`", text))


def test_the_page_lists_the_metrics_and_their_attributes() -> None:
    telemetry = Telemetry()
    run_through_everything(telemetry.listener)
    page = rows("Metrics")

    for name, metric in telemetry.metrics.items():
        used = {key for point in metric.data.data_points for key in point.attributes or {}}
        kind, unit, attributes, description = page.pop(name)
        assert kind == ("counter" if isinstance(metric.data, Sum) else "histogram")
        assert unit == f"`{metric.unit}`"
        assert in_code(attributes) == used
        assert description == metric.description
    assert page == {}


def test_the_page_lists_the_attributes_of_spans_and_the_fields_of_log_records(caplog: pytest.LogCaptureFixture) -> None:
    telemetry = Telemetry()
    with caplog.at_level(logging.DEBUG, logger="coatcheck"):
        run_through_everything(telemetry.listener)
    on_spans = {name for span in telemetry.spans for name in span.attributes or {}}
    in_logs = {name for record in caplog.records for name in vars(record) if "." in name}
    page = rows("Attributes of spans, fields of log records")

    assert on_spans == {name for name, (on, *_) in page.items() if "spans" in on}
    assert in_logs == {name for name, (on, *_) in page.items() if "logs" in on}
    assert on_spans | in_logs == page.keys()


def test_names_that_are_not_ours_are_from_the_semantic_conventions() -> None:
    foreign = {name for name in rows("Attributes of spans, fields of log records") if not name.startswith("coatcheck.")}

    assert foreign == {gen_ai_attributes.GEN_AI_TOOL_NAME, error_attributes.ERROR_TYPE}


def test_the_page_names_the_logger_of_each_adapter() -> None:
    adapters = {path.name for path in (ROOT / "adapters").glob("coatcheck_*")}

    assert adapters == {name for name in in_code(PAGE.partition("# Logs\n")[2]) if name.startswith("coatcheck_")}


def test_the_console_example_prints_metrics() -> None:
    (code,) = (block.text for block in blocks_of(PATH) if "ConsoleMetricExporter" in block.text)

    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert '"name": "coatcheck.results"' in ran.stdout
    assert '"name": "coatcheck.token.savings"' in ran.stdout
    assert ran.stderr == ""
