"""Back-pressure: what one side sends while the other does not read must not pile up in this process.

The mcp package starts a task for every message that arrives, and each task holds its message until it is written. So
while a client does not read, a talkative server could fill the memory. Here, reading waits until enough has been
written.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import anyio
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCResponse

from coatcheck_mcp.faults import messages_in, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp.shared._stream_protocols import ReadStream, WriteStream  # the types of what transports yield
    from typing_extensions import Self

__all__ = ("CountedWrites", "Gate", "PacedReads")


class Gate:
    """Counts the messages that wait to be written, each inside ``with gate:``. It is open while they are few."""

    def __init__(self, most: int) -> None:
        """Create a gate that is open while fewer than ``most`` messages wait."""
        self._most = most
        self._waiting = 0
        self._changed = anyio.Event()

    def __enter__(self) -> None:
        self._waiting += 1

    def __exit__(self, *_: object) -> None:
        self._waiting -= 1
        self._changed.set()

    async def passed(self) -> None:
        """Wait until the gate is open."""
        while self._waiting >= self._most:
            self._changed = anyio.Event()
            await self._changed.wait()


class _Closing:
    """A stream that closes the one below it at the end of ``async with``."""

    _stream: ReadStream[Any] | WriteStream[Any]

    ended = False
    """Whether the other side turned out to be gone."""

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class CountedWrites(_Closing):
    """A stream for writing. The gate counts the answers that wait there.

    Requests are not counted: a server that handles one at a time may be busy writing, so reading must go on.
    """

    def __init__(self, stream: WriteStream[Any], gate: Gate) -> None:
        self._stream: WriteStream[Any] = stream
        self._gate = gate

    async def send(self, item: Any) -> None:  # noqa: ANN401 - the mcp package's messages
        """Send a message."""
        is_answer = isinstance(item.message, JSONRPCResponse | JSONRPCError)
        with self._gate if is_answer else nullcontext():
            try:
                await self._stream.send(item)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                self.ended = True
                raise


class PacedReads(_Closing):
    """A stream for reading, which holds back the next message while the gate is shut."""

    def __init__(
        self,
        stream: ReadStream[Any],
        gate: Gate,
        *,
        answers: CountedWrites | None = None,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Read from a stream.

        Args:
            stream: where messages come from.
            gate: counts what waits.
            answers: where a client is told that its request cannot be read. None: the stream is a server's, so a line
                that cannot be read is an answer, and becomes an error for the caller that waits for it.
            on_end: called when nothing more will come, before the reader learns of it.

        """
        self._stream: ReadStream[Any] = stream
        self._gate, self._answers, self._on_end = gate, answers, on_end
        self._parts: Iterator[Any] = iter(())
        """The rest of the latest line that was not a message itself; each part is parsed when it is received."""

    @property
    def last_context(self) -> Any:  # noqa: ANN401 - the mcp package looks for it on some streams
        """The context of the last message's sender; None if the stream has none."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:  # noqa: ANN401 - the mcp package's messages
        """Return the next message."""
        await self._gate.passed()
        while (item := next(self._parts, None)) is None:  # a batch may be empty
            item = await self._next()
            if not isinstance(item, Exception):
                break
            self._parts = iter(messages_in(item))
        else:  # one of many, each far slower to parse than its size suggests: let other tasks run
            await anyio.lowlevel.checkpoint()
        if isinstance(item, Exception):
            return await self._answered(item)
        if isinstance(getattr(item, "message", None), JSONRPCNotification):
            # This lets the previous message's task begin, so that the gate counts it.
            await anyio.lowlevel.checkpoint()
        return item

    async def _next(self) -> Any:  # noqa: ANN401 - as above
        try:
            return await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            self.ended = True
            self._on_end()
            raise

    async def _answered(self, fault: Exception) -> Any:  # noqa: ANN401 - as above
        """Return an error in place of what cannot be read; the fault itself if nobody here waits for it."""
        refused = refuse(fault, asks=self._answers is not None)
        if refused is None or self._answers is None:
            return refused or fault
        await self._answers.send(refused)
        return fault

    def __aiter__(self) -> PacedReads:
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401 - as above
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None
