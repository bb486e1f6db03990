"""Limit how many requests to URLs run at once: each holds a connection, and so one of this process's files."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, TypeAlias

import anyio
from anyio.lowlevel import RunVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ("turn",)

_SHARE = 4
"""One server gets one part in this many of the files, so that a server that hangs leaves the others their share. Of its
share, everything but tool calls gets one part in this many: calls may take long, and wait for lists that say more about
them."""

_Turn: TypeAlias = "anyio.Semaphore | nullcontext[None]"

_turns: RunVar[dict[object, tuple[_Turn, _Turn]]] = RunVar("coatcheck_mcp_turns")
"""The turns of each server, shared by all its sessions: those for tool calls, and those for everything else. Under
None: the turns that the requests to all servers share."""


@asynccontextmanager
async def turn(server: object, method: str) -> AsyncIterator[None]:
    """Wait for a turn, and hold it until a request to a server is answered.

    Args:
        server: what is the same in all sessions with the server.
        method: the request's method. A ``ping`` does not wait: it only finds out whether anybody answers.

    """
    if method == "ping":
        yield
        return
    turns = _turns.get(None)
    if turns is None:
        turns = {None: _new_turns(2)}
        _turns.set(turns)
    if server not in turns:
        turns[server] = _new_turns(_SHARE)
    kind = 0 if method == "tools/call" else 1
    async with turns[server][kind], turns[None][kind]:
        yield


def _new_turns(share: int) -> tuple[_Turn, _Turn]:
    files = _files()
    if files is None:
        return nullcontext(), nullcontext()
    at_once = files // share
    others = max(at_once // _SHARE, 1)
    return anyio.Semaphore(max(at_once - others, 1)), anyio.Semaphore(others)


def _files() -> int | None:
    """Return how many files this process may have open; None if there is no limit."""
    if sys.platform == "win32":  # connections are not files there
        return None
    import resource  # noqa: PLC0415 - not on Windows

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if files == resource.RLIM_INFINITY else files
