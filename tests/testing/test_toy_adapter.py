"""A correct adapter, of a framework that fits on a page, passes the contract: so it asks for no more."""

from __future__ import annotations

import pytest

from coatcheck.testing import AdapterContract
from tests.testing.toy_framework import ToyHarness


class TestToyAdapter(AdapterContract):
    @pytest.fixture
    def harness(self) -> ToyHarness:
        return ToyHarness()
