"""The end of a server on stdio: its process's, whoever else holds its output, and that of what it has started.

The mcp package takes a server for alive while its output is open, so also while only a child of it holds that. But a
process that ended well before anything was said has only launched the server, which is that child: then its output
counts. If it ended at about that time, the server is asked: an answer is the child's.
"""

from __future__ import annotations

import sys
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse
from pydantic import ValidationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from anyio.streams.memory import MemoryObjectSendStream
    from mcp.client._transport import TransportStreams  # the type of what clients yield
    from mcp.shared._stream_protocols import ReadStream, WriteStream

__all__ = ("until_exit",)

SILENT_SECONDS = 1.0
"""How long no message must have come since the process ended; what was left in the pipe has come by then."""

_BEFORE_SECONDS = 0.1
"""How long nothing must have been said since the process ended for it to be a launcher. One that has answered and ended
at once may be seen to have ended before its answer is read, so a sooner first message leaves that in doubt."""

_AROUND_SECONDS = 2 * SILENT_SECONDS
"""How long after the first message the end of a launcher may be seen: that is looked for between messages."""

_LAST_SECONDS = 10.0
"""How long its output is waited for in all, if what it has started goes on with messages there, or may be the server
but does not answer."""

_QUESTION = JSONRPCRequest(jsonrpc="2.0", id="coatcheck-launched", method="ping")
"""Whatever answers it is a server, though it knows no such request."""

_KILL_SECONDS = 2.0
"""How long what a server has started may take to end itself; as long as the mcp package gives the server."""


@asynccontextmanager
async def until_exit(client: AbstractAsyncContextManager[TransportStreams]) -> AsyncIterator[TransportStreams]:
    """Connect a client of the mcp package's for stdio; nothing more comes once the process has ended and all is read.

    At the end, whatever is left of the server's process group is killed, where there are groups.
    """
    process = None
    try:
        async with client as (reads, writes):
            process = _process_of(client)
            into, passed = anyio.create_memory_object_stream[Any](0)
            async with passed, anyio.create_task_group() as tasks:
                tasks.start_soon(_pass_on, reads, into, process, writes)
                yield passed, writes
                tasks.cancel_scope.cancel()
    finally:
        if process is not None and sys.platform != "win32":
            with anyio.CancelScope(shield=True):
                await terminate_posix_process_tree(process, _KILL_SECONDS)


def _process_of(client: object) -> Any:  # noqa: ANN401 - the mcp package's own type of each system
    """Return the process that a connected client of the mcp package's has started; None if it cannot be found.

    The mcp package shows it nowhere: it is a variable of the generator. None leaves all as the mcp package does it.
    """
    frame = getattr(getattr(client, "gen", None), "ag_frame", None)
    return None if frame is None else frame.f_locals.get("process")


async def _pass_on(
    reads: ReadStream[Any],
    into: MemoryObjectSendStream[Any],
    process: Any,  # noqa: ANN401 - as above
    writes: WriteStream[SessionMessage],
) -> None:
    life = _Life(process)
    async with into, anyio.create_task_group() as tasks:
        while not life.is_over:
            item, start = None, anyio.current_time()
            with anyio.move_on_after(life.patience):
                try:
                    item = await reads.receive()
                except anyio.EndOfStream:
                    break
            if life.asks_after(item, took=anyio.current_time() - start):
                tasks.start_soon(_ask, writes)
            if item is not None and not _is_answer(item):
                try:
                    await into.send(item)
                except anyio.BrokenResourceError:  # nobody reads any more
                    break
        tasks.cancel_scope.cancel()


async def _ask(writes: WriteStream[SessionMessage]) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # then nobody is there
        await writes.send(SessionMessage(_QUESTION))


def _is_answer(item: object) -> bool:
    if isinstance(item, ValidationError):  # an answer that is not of the protocol is one all the same
        return str(_QUESTION.id) in str(item.errors(include_url=False)[0]["input"])
    message = item.message if isinstance(item, SessionMessage) else None
    return isinstance(message, JSONRPCResponse | JSONRPCError) and message.id == _QUESTION.id


class _Life:
    """What is known of a process: whether it is the server, or has launched it, and whether its output has ended."""

    def __init__(self, process: Any) -> None:  # noqa: ANN401 - as above
        self._process = process
        self._is_launcher = self._is_in_doubt = self._was_asked = False
        self._silent = self._waited = 0.0  # since the process has ended
        self._spoke: float | None = None
        self._ended: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to come."""
        return self._waited >= _LAST_SECONDS or (self._silent >= SILENT_SECONDS and not self._is_in_doubt)

    @property
    def patience(self) -> float:
        """How long to wait for the next message."""
        left = _LAST_SECONDS - self._waited if self._is_in_doubt else SILENT_SECONDS - self._silent
        is_settled = self._spoke is not None and (self._was_asked or not self._is_in_doubt)
        return left if is_settled else min(left, _BEFORE_SECONDS)

    def asks_after(self, item: object, *, took: float) -> bool:
        """Take note of what came, None if nothing did, after so many seconds; return whether to ask for a server."""
        now, is_message = anyio.current_time(), isinstance(item, SessionMessage)
        if self._ended is not None and not self._is_launcher:
            self._silent = 0.0 if is_message else self._silent + took
            self._waited += took
        asks = self._is_in_doubt and self._settle(item, now)
        if is_message and self._spoke is None:
            self._spoke = now
        code = self._process and self._process.returncode
        if self._ended is None and code is not None:
            self._ended = now
            self._is_in_doubt = code == 0 and (self._spoke is None or now - self._spoke <= _AROUND_SECONDS)
        return asks

    def _settle(self, item: object, now: float) -> bool:
        """Tell a launcher, if that can be told by now; return whether to ask for that."""
        if _is_answer(item):
            self._is_launcher = True
        elif isinstance(item, SessionMessage):
            is_late = self._ended is not None and self._spoke is not None and now - self._ended >= _BEFORE_SECONDS
            self._is_launcher = is_late
        elif item is None and self._spoke is None:
            self._is_launcher = True
        if self._is_launcher:  # its own end is no longer that of the output
            self._is_in_doubt, self._silent, self._waited = False, 0.0, 0.0
        asks = item is None and self._is_in_doubt and not self._was_asked
        self._was_asked |= asks
        return asks
