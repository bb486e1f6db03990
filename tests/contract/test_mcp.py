"""The contract through the MCP proxy and the FastMCP middleware: what reaches a client's model."""

from __future__ import annotations

import pytest

from tests.contract.deliveries import ASYNC_ON_FILES
from tests.contract.golden import Contract
from tests.contract.inexpressible import MCP, MCP_MIDDLEWARE
from tests.contract.mcp_harness import McpHarness, MiddlewareHarness


class TestProxy(Contract):
    lacks = MCP
    deliveries = ASYNC_ON_FILES

    @pytest.fixture
    def harness(self) -> McpHarness:
        return McpHarness()


class TestMiddleware(Contract):
    lacks = MCP_MIDDLEWARE
    deliveries = ASYNC_ON_FILES

    @pytest.fixture
    def harness(self) -> MiddlewareHarness:
        return MiddlewareHarness()
