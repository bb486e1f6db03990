"""What ``import coatcheck_strands`` loads and exports, and the error when something is not installed."""

from __future__ import annotations

from tests.adapters.front_doors import FrontDoor


class TestStrands(FrontDoor):
    package = "coatcheck_strands"
    framework = "strands"
    extra = "strands"
