"""The agent that engines for durable execution run, in processes of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent, Tool
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from coatcheck import FileStorage
from coatcheck_pydantic_ai import ToolOffloader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def durable_agent(folder: Path, url: str, *, tools: list[Callable[..., Any]], engine: Any) -> Agent[None, str]:  # noqa: ANN401 - a capability of the engine's own type
    """Return an agent with these tools, recorded by the engine, and with its artifacts in ``folder``."""
    return Agent(
        OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=url, api_key="none")),
        name="durable",
        tools=[Tool(tool) for tool in tools],
        capabilities=[ToolOffloader(FileStorage(folder / "artifacts")), engine],
    )
