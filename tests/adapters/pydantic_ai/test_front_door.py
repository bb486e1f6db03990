"""What ``import coatcheck_pydantic_ai`` loads and exports, and the error when something is not installed."""

from __future__ import annotations

from typing import ClassVar

from tests.adapters.front_doors import FRAMEWORKS, FrontDoor


class TestPydanticAI(FrontDoor):
    package = "coatcheck_pydantic_ai"
    framework = "pydantic_ai"
    extra = "pydantic-ai"
    unwanted: ClassVar = {*FRAMEWORKS, "fastmcp", "openai"}
