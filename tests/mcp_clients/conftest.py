"""Fixtures: the scripted model and a process for each framework, which last as long as the tests run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from coatcheck.testing import ScriptedServer
from tests.mcp_clients.foreign import ForeignAgent

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer().serving() as serving:
        yield serving


@pytest.fixture(scope="session")
def langchain() -> Iterator[ForeignAgent]:
    yield from running("langchain")


@pytest.fixture(scope="session")
def strands() -> Iterator[ForeignAgent]:
    yield from running("strands")


@pytest.fixture(scope="session")
def openai() -> Iterator[ForeignAgent]:
    yield from running("openai")


@pytest.fixture(scope="session")
def pydantic() -> Iterator[ForeignAgent]:
    yield from running("pydantic")


def running(framework: str) -> Iterator[ForeignAgent]:
    agent = ForeignAgent(framework)
    yield agent
    agent.end()
