"""What ``import coatcheck_strands`` loads and offers, and what it says when something is not installed."""

from __future__ import annotations

from tests.adapters.front_doors import FrontDoor


class TestStrands(FrontDoor):
    package = "coatcheck_strands"
    framework = "strands"
    extra = "strands"
