"""The contract, through Strands Agents: what reaches the model over the wire."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from coatcheck.testing import AdapterContract
from tests.contract.inexpressible import STRANDS
from tests.contract.strands_harness import StrandsHarness

if TYPE_CHECKING:
    from tests.contract.server import ScriptedServer


class TestAgent(AdapterContract):
    cannot = STRANDS

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> StrandsHarness:
        return StrandsHarness(server)
