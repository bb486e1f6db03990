"""How many requests to a server at a URL run at once: each holds a connection, and so one of this process's files."""

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
"""One server gets one part in so many of the files, so that one that hangs leaves the others theirs. Of that, all but
calls get one part in so many: calls may take long, and wait for lists that say more about them."""

_Turn: TypeAlias = "anyio.Semaphore | nullcontext[None]"

_turns: RunVar[dict[object, tuple[_Turn, _Turn]]] = RunVar("coatcheck_mcp_turns")
"""What calls of tools hold, and what all else does, for each server: of all its sessions together. Under None, what the
requests to all servers hold."""


@asynccontextmanager
async def turn(server: object, method: str) -> AsyncIterator[None]:
    """Hold what a request to a server holds until it is answered.

    Args:
        server: is the same in all sessions with it.
        method: of the request. A ``ping`` waits for nothing: it is there to see whether anybody answers.

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
    """Return how many files this process may have open; None: any number."""
    if sys.platform == "win32":  # where connections are no files
        return None
    import resource  # noqa: PLC0415 - not on Windows

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if files == resource.RLIM_INFINITY else files
