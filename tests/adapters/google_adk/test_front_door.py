"""What ``import coatcheck_adk`` loads and exports, and the error when something is not installed."""

from __future__ import annotations

from tests.adapters.front_doors import FrontDoor


class TestAdk(FrontDoor):
    package = "coatcheck_adk"
    framework = "google.adk"
    extra = "google-adk"
