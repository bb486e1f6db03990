"""The contract, through LangChain: what reaches the model over the wire, for the three ways to build an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from coatcheck.testing import SCENARIOS, AdapterContract
from tests.contract.definition import MOST_TOKENS, tokens_on_the_wire
from tests.contract.inexpressible import LANGCHAIN, LANGCHAIN_BY_CALL
from tests.contract.langgraph_harness import (
    CreateAgentHarness,
    LangChainHarness,
    ToolNodeHarness,
    WrappedNodeHarness,
)
from tests.contract.telemetry import HOST, parents
from tests.core.telemetry import Telemetry

if TYPE_CHECKING:
    from pathlib import Path

    from coatcheck.testing import Scenario
    from coatcheck.testing.server import ScriptedServer

STREAMED = [scenario for scenario in SCENARIOS if scenario.name in {"parallel calls", "read by pattern"}]


class TestCreateAgent(AdapterContract):
    lacks = LANGCHAIN_BY_CALL

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> CreateAgentHarness:
        return CreateAgentHarness(server)


class TestToolNode(AdapterContract):
    lacks = LANGCHAIN_BY_CALL
    deliveries = ("sync, files", "async, memory")

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> ToolNodeHarness:
        return ToolNodeHarness(server)


class TestWrappedNode(AdapterContract):
    lacks = LANGCHAIN
    deliveries = ("sync, memory", "async, files")

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> WrappedNodeHarness:
        return WrappedNodeHarness(server)


@pytest.mark.parametrize("delivery", ["sync, memory", "async, memory"])
@pytest.mark.parametrize("scenario", STREAMED, ids=lambda scenario: scenario.name)
def test_a_streaming_client_gets_the_same(
    server: ScriptedServer, scenario: Scenario, delivery: str, tmp_path: Path
) -> None:
    harness = CreateAgentHarness(server, streaming=True)

    AdapterContract().test_scenario(harness, scenario=scenario, delivery=delivery, tmp_path=tmp_path)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("kind", [CreateAgentHarness, ToolNodeHarness, WrappedNodeHarness])
async def test_our_spans_are_children_of_the_hosts(
    server: ScriptedServer, kind: type[LangChainHarness], mode: str
) -> None:
    assert await parents(kind(server), Telemetry(), mode=mode) == {
        "offload search": HOST,
        "retrieve offloaded content": HOST,
    }


@pytest.mark.parametrize("kind", [CreateAgentHarness, ToolNodeHarness, WrappedNodeHarness])
def test_the_definition_of_the_tool_costs_at_most_150_tokens(kind: type[LangChainHarness]) -> None:
    assert tokens_on_the_wire(kind) <= MOST_TOKENS
