"""A correct adapter, of a framework that fits on a page, passes the contract: so it asks for no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest

from coatcheck.testing import AdapterContract
from tests.testing.toy_framework import ToyHarness

if TYPE_CHECKING:
    from collections.abc import Mapping


class TestToyAdapter(AdapterContract):
    cannot: ClassVar[Mapping[str, str]] = {
        "parallel calls over the step budget": "the toy hands its results to the core one by one"
    }

    @pytest.fixture
    def harness(self) -> ToyHarness:
        return ToyHarness()
