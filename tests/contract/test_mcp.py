"""The contract, through the MCP proxy: what reaches a client's model."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest

from coatcheck.testing import AdapterContract
from tests.contract.deliveries import ASYNC_ON_FILES
from tests.contract.inexpressible import MCP
from tests.contract.mcp_harness import McpHarness

if TYPE_CHECKING:
    from collections.abc import Mapping


class TestProxy(AdapterContract):
    lacks = MCP
    cannot: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("no identity", "no identity where a scope is required", "no list without an identity"),
        "the proxy always has a scope: that of its server and folder, if it is given none",
    )
    deliveries = ASYNC_ON_FILES

    @pytest.fixture
    def harness(self) -> McpHarness:
        return McpHarness()
