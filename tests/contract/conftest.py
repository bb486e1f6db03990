"""Fixtures of the contract: one scripted server per process, and an environment that points nowhere else."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from coatcheck.testing.server import ScriptedServer

if TYPE_CHECKING:
    from collections.abc import Iterator

ELSEWHERE = ("PROXY", "ANTHROPIC", "AWS_", "GEMINI", "GOOGLE", "LANGSMITH", "LANGCHAIN", "OPENAI", "OTEL")
"""Parts of names of environment variables that would send requests, traces or keys elsewhere."""


@pytest.fixture(scope="session")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer().serving() as serving:
        yield serving


@pytest.fixture(autouse=True)
def loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if any(part in name.upper() for part in ELSEWHERE):
            monkeypatch.delenv(name)
