"""The contract, through Haystack: what reaches the model over the wire from an ``Agent`` with the hook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from haystack.tracing.tracer import tracer
from haystack_integrations.tracing.opentelemetry import OpenTelemetryTracer

from coatcheck.testing import AdapterContract
from tests.contract.definition import MOST_TOKENS, tokens_on_the_wire
from tests.contract.haystack_harness import HaystackHarness
from tests.contract.inexpressible import HAYSTACK
from tests.contract.telemetry import parents
from tests.core.telemetry import Telemetry

if TYPE_CHECKING:
    from coatcheck.testing.server import ScriptedServer


class TestAgent(AdapterContract):
    lacks = HAYSTACK

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> HaystackHarness:
        return HaystackHarness(server)


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_our_spans_are_children_of_those_that_haystack_makes(
    server: ScriptedServer, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    telemetry = Telemetry()
    monkeypatch.setattr(tracer, "actual_tracer", OpenTelemetryTracer(telemetry.tracer))

    assert await parents(HaystackHarness(server), telemetry, mode=mode) == {
        "offload search": "haystack.agent.hook",
        "retrieve offloaded content": "haystack.agent.step.tool",
    }


def test_the_definition_of_the_tool_costs_at_most_150_tokens() -> None:
    assert tokens_on_the_wire(HaystackHarness) <= MOST_TOKENS
