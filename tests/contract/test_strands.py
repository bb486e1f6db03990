"""The contract, through Strands Agents: what reaches the model over the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import strands.telemetry.tracer
from opentelemetry import trace

from coatcheck.testing import AdapterContract
from tests.contract.definition import MOST_TOKENS, tokens_on_the_wire
from tests.contract.inexpressible import STRANDS
from tests.contract.strands_harness import StrandsHarness
from tests.contract.telemetry import parents
from tests.core.telemetry import Telemetry

if TYPE_CHECKING:
    from coatcheck.testing.server import ScriptedServer


class TestAgent(AdapterContract):
    lacks = STRANDS

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> StrandsHarness:
        return StrandsHarness(server)


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_our_spans_are_children_of_those_that_strands_makes(
    server: ScriptedServer, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    telemetry = Telemetry()
    # Strands asks once in a process for the global provider, which can be set once in a process.
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: telemetry.tracer_provider)
    monkeypatch.setattr(strands.telemetry.tracer, "_tracer_instance", None)

    found = await parents(StrandsHarness(server), telemetry, mode=mode)

    assert found["retrieve offloaded content"] == "execute_tool retrieve_offloaded_content"
    # 1.54 calls its hooks before it ends the span of the tool, 1.62 after that.
    assert found["offload search"] in {"execute_tool search", "execute_event_loop_cycle"}
    assert len(found) == 2


def test_the_definition_of_the_tool_costs_at_most_150_tokens() -> None:
    assert tokens_on_the_wire(StrandsHarness) <= MOST_TOKENS
