"""A correct adapter for a framework that fits on a page passes the contract: the contract demands no more."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import pytest

from coatcheck.testing import AdapterContract
from coatcheck.testing.toy import ToyHarness

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coatcheck.testing import Capability


class TestToyAdapter(AdapterContract):
    lacks: ClassVar[Mapping[Capability, str]] = {"whole steps": "the toy hands its results to the core one by one"}

    @pytest.fixture
    def harness(self) -> ToyHarness:
        return ToyHarness()
