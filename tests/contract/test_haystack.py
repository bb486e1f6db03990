"""The contract, through Haystack: what reaches the model over the wire from an ``Agent`` with the hook."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from coatcheck.testing import AdapterContract
from tests.contract.haystack_harness import HaystackHarness
from tests.contract.inexpressible import HAYSTACK

if TYPE_CHECKING:
    from tests.contract.server import ScriptedServer


class TestAgent(AdapterContract):
    cannot = HAYSTACK

    @pytest.fixture
    def harness(self, server: ScriptedServer) -> HaystackHarness:
        return HaystackHarness(server)
