"""Limit how many requests to URLs run at once: each holds a connection, and so one of this process's files."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

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

_Turns: TypeAlias = "tuple[_Turn, _Turn]"
"""The turns for tool calls, and those for everything else."""

_turns: RunVar[tuple[_Turns, WeakKeyDictionary[object, _Turns]]] = RunVar("coatcheck_mcp_turns")
"""The turns that the requests to all servers share, and those of each server, which all its sessions share."""


@asynccontextmanager
async def turn(server: object, method: str) -> AsyncIterator[None]:
    """Wait for a turn, and hold it until a request to a server is answered.

    Args:
        server: what is the same in all sessions with the server, such as the function that connects to it.
        method: the request's method. A ``ping`` does not wait: it only finds out whether anybody answers.

    """
    if method == "ping":
        yield
        return
    turns = _turns.get(None)
    if turns is None:
        turns = _new_turns(2), WeakKeyDictionary()
        _turns.set(turns)
    shared, own = turns
    if server not in own:
        own[server] = _new_turns(_SHARE)
    kind = 0 if method == "tools/call" else 1
    async with own[server][kind], shared[kind]:
        yield


def _new_turns(share: int) -> _Turns:
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
