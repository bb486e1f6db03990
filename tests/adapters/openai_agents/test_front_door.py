"""What ``import coatcheck_openai`` loads and exports, and the error when something is not installed."""

from __future__ import annotations

from tests.adapters.front_doors import FrontDoor


class TestOpenAIAgents(FrontDoor):
    package = "coatcheck_openai"
    framework = "agents"
    extra = "openai-agents"
