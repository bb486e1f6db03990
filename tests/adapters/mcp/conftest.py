"""Fixtures: time limits that no test reaches unless it sets one itself, and proxies as processes.

A machine that stalls for seconds is not a failure. The processes end with their test.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.adapters.mcp.processes import PATIENCE, TINY, Process

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

LIMITS = (
    "changes.OPEN_SECONDS",
    "http_transport._TAKEN_SECONDS",
    "link.FORGOTTEN_SECONDS",
    "link.TOOLS_SECONDS",
    "link.UNREAD_SECONDS",
    "proxy.DISCOVER_SECONDS",
    "proxy.LEAVE_SECONDS",
    "proxy.LISTING_SECONDS",
    "proxy.TELL_SECONDS",
    "questions.READY_SECONDS",
    "questions.ROOTS_SECONDS",
    "several.LIST_SECONDS",
    "several.WAIT_SECONDS",
)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let proxies, servers and clients in this process wait for each other, however slow the machine is."""
    for limit in LIMITS:
        monkeypatch.setattr(f"coatcheck_mcp.{limit}", PATIENCE)
    monkeypatch.setattr("mcp.client.session.DISCOVER_TIMEOUT_SECONDS", PATIENCE)


@pytest.fixture
def cancellations_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the library more than its five seconds to send the cancellation of a request: it tries only once."""
    monkeypatch.setattr("mcp.shared.jsonrpc_dispatcher._ABANDON_WRITE_TIMEOUT", PATIENCE)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Yield a function that starts a proxy as a process, by default in front of the tiny server."""
    with ExitStack() as stack:

        def make(*command: str, options: Sequence[str] = (), **env: str) -> Process:
            return stack.enter_context(Process(tmp_path, *(command or TINY), options=options, env=env))

        yield make
