"""End the session with a server on stdio once its process has ended, even if others hold its output. End its children.

The mcp package takes a server for alive while its output is open, even if only a child process holds it. But a process
that exits with code 0 well before the first message has only launched the server, and that child is the server: then
its output counts.
"""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from anyio.streams.memory import MemoryObjectSendStream
    from mcp.client._transport import TransportStreams  # the type of what clients yield
    from mcp.shared._stream_protocols import ReadStream

__all__ = ("pass_on", "until_exit")

SILENT_SECONDS = 1.0
"""The session ends after this much silence once the process has ended. By then, what was left in the pipe is read."""

_BEFORE_SECONDS = 0.1
"""How long before the first message the process must have ended to count as a launcher. A server that answers and ends
at once is seen to end before its answer is read. So if the first message comes sooner, the next one decides."""

_LAST_SECONDS = 10.0
"""How long the output is read at most after the process has ended, if what it has started keeps sending messages."""

_KILL_SECONDS = 2.0
"""How long what a server has started may take to end itself. The mcp package gives the server as long."""

_groups: set[int] = set()
"""The process groups of all running servers that this process has started, on systems that have groups."""


def pass_on(number: int) -> None:
    """Send a signal to all servers and to what they have started."""
    for group in _groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


@asynccontextmanager
async def until_exit(client: AbstractAsyncContextManager[TransportStreams]) -> AsyncIterator[TransportStreams]:
    """Connect a stdio client of the mcp package; its stream ends once the process has ended and all has been read.

    At the end, whatever is left of the server's process group is killed, on systems that have groups.
    """
    process = None
    try:
        async with client as (reads, writes):
            process = _process_of(client)
            if process is not None and sys.platform != "win32":
                _groups.add(process.pid)
            into, passed = anyio.create_memory_object_stream[Any](0)
            async with passed, anyio.create_task_group() as tasks:
                tasks.start_soon(_pass_on, reads, into, process)
                yield passed, writes
                tasks.cancel_scope.cancel()
    finally:
        if process is not None and sys.platform != "win32":
            with anyio.CancelScope(shield=True):
                await terminate_posix_process_tree(process, _KILL_SECONDS)
            _groups.discard(process.pid)


def _process_of(client: object) -> Any:  # noqa: ANN401 - the mcp package's own type of each system
    """Return the process that a connected client of the mcp package has started; None if it cannot be found.

    The mcp package does not expose it: it is a local variable of the generator. With None, all works as in the mcp
    package.
    """
    frame = getattr(getattr(client, "gen", None), "ag_frame", None)
    return None if frame is None else frame.f_locals.get("process")


async def _pass_on(reads: ReadStream[Any], into: MemoryObjectSendStream[Any], process: Any) -> None:  # noqa: ANN401 - as above
    is_up = is_launcher = is_in_doubt = False
    silent = waited = 0.0  # seconds since the process has ended
    ended = None
    async with into:
        while (silent < SILENT_SECONDS or is_in_doubt) and waited < _LAST_SECONDS:
            code, item, start = process and process.returncode, None, anyio.current_time()
            ended = start if ended is None and code is not None else ended
            left = _LAST_SECONDS - waited if is_in_doubt else SILENT_SECONDS - silent
            with anyio.move_on_after(left if is_up else min(left, _BEFORE_SECONDS)):
                try:
                    item = await reads.receive()
                except anyio.EndOfStream:
                    return
            if not is_up or (is_in_doubt and isinstance(item, SessionMessage)):
                is_late = ended is not None and anyio.current_time() - ended >= _BEFORE_SECONDS
                is_launcher = code == 0 and (is_late or not isinstance(item, SessionMessage))
                is_in_doubt = code == 0 and not is_launcher  # a later message is certainly not the process's own
            if code is not None and not is_launcher:
                took = anyio.current_time() - start
                silent, waited = silent + took, waited + took
            if isinstance(item, SessionMessage):
                is_up, silent = True, 0.0
            if item is not None:
                try:
                    await into.send(item)
                except anyio.BrokenResourceError:  # nobody reads any more
                    return
