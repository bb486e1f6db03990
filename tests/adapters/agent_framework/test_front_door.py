"""What ``import coatcheck_agent_framework`` loads and exports, and the error when something is not installed."""

from __future__ import annotations

from tests.adapters.front_doors import FrontDoor


class TestAgentFramework(FrontDoor):
    package = "coatcheck_agent_framework"
    framework = "agent_framework"
    extra = "agent-framework"
