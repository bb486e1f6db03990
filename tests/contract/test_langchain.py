"""The contract, through LangChain: what reaches the model over the wire, for the three ways to build an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from coatcheck.testing import AdapterContract
from tests.contract.inexpressible import LANGCHAIN
from tests.contract.langchain_harness import CreateAgentHarness, ToolNodeHarness, WrappedNodeHarness

if TYPE_CHECKING:
    from tests.contract.server import ScriptedServer


class TestCreateAgent(AdapterContract):
    cannot = LANGCHAIN

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> CreateAgentHarness:
        return CreateAgentHarness(server)


class TestToolNode(AdapterContract):
    cannot = LANGCHAIN
    deliveries = ("sync, files", "async, memory")

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> ToolNodeHarness:
        return ToolNodeHarness(server)


class TestWrappedNode(AdapterContract):
    cannot = LANGCHAIN
    deliveries = ("sync, memory", "async, files")

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> WrappedNodeHarness:
        return WrappedNodeHarness(server)
