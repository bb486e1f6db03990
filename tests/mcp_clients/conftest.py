"""Session fixtures: the scripted model, and one process for each framework."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING

import pytest

from coatcheck.testing import ScriptedServer
from tests.mcp_clients.foreign import ForeignAgent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(scope="session")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer().serving() as serving:
        yield serving


@pytest.fixture(scope="session")
def agents() -> Iterator[Callable[[str], ForeignAgent]]:
    """Yield a function that returns a framework's agent, and starts it on first use."""
    with ExitStack() as running:

        @cache
        def agent_of(framework: str) -> ForeignAgent:
            agent = ForeignAgent(framework)
            running.callback(agent.end)
            return agent

        yield agent_of
