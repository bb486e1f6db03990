"""Limit how many requests to URLs run at once: each holds a connection, and so one of this process's files."""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakValueDictionary

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


@dataclass(eq=False)  # without slots, so that there can be weak references
class _Turns:
    calls: _Turn
    """Those for tool calls."""

    others: _Turn
    """Those for everything else."""


_turns: RunVar[tuple[_Turns, WeakValueDictionary[object, _Turns]]] = RunVar("coatcheck_mcp_turns")
"""The turns that the requests to all servers share, and those of each server, which all its sessions share. Only the
requests that run or wait keep those of a server: without any, all its turns are free, and new ones do as well."""


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
        turns = _new_turns(2), WeakValueDictionary()
        _turns.set(turns)
    shared, of_servers = turns
    own = of_servers.get(server)
    if own is None:
        own = of_servers[server] = _new_turns(_SHARE)
    is_call = method == "tools/call"
    async with own.calls if is_call else own.others, shared.calls if is_call else shared.others:
        yield


def _new_turns(share: int) -> _Turns:
    files = _files()
    if files is None:
        return _Turns(nullcontext(), nullcontext())
    at_once = files // share
    others = max(at_once // _SHARE, 1)
    return _Turns(anyio.Semaphore(max(at_once - others, 1)), anyio.Semaphore(others))


def _files() -> int | None:
    """Return how many files this process may have open; None if there is no limit."""
    if sys.platform == "win32":  # connections are not files there
        return None
    import resource  # noqa: PLC0415 - not on Windows

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if files == resource.RLIM_INFINITY else files
