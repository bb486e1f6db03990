"""Event loops: how a call is awaited within the time limit, and our own loop for async storages in the sync driver.

asyncio is imported where it is used, which keeps our import cheap: a program with an event loop has loaded it already.
"""

from __future__ import annotations

import inspect
import threading
import time
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, Any, TypeVar

from coatcheck.core.forks import loading

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable

__all__ = ("BackendCancelled", "BackgroundLoop", "in_time", "is_loop_running")

Result = TypeVar("Result")

TIME_LIMIT_SECONDS = 30.0
"""How long one call of the host's code, or of a storage that is async or not local, may take from when a thread takes
it. After that it counts as failed. Also how long a queue may go without a thread taking any call before its callers
give up. The sync driver can give up only async calls: all else runs on the caller's own thread, and must limit itself.
"""

CLEAN_UP_SECONDS = 1.0
"""How long a call that was given up may take to end. After that it is left alone; it ends with the process at the
latest."""


LAST_LOOK_SECONDS = 0.1
"""Extra time for a call that seems late. If the host blocked its loop meanwhile, the answer may be there already, and
the loop has not seen it yet."""


class BackendCancelled(Exception):
    """A backend ended as if cancelled. Raised in place of ``CancelledError``, which would cancel the agent."""


async def in_time(awaitable: Awaitable[Result], *, deadline: Callable[[], float] | None = None) -> Result:
    """Await a backend up to the time limit, or up to a ``deadline`` of the monotonic clock, which may move.

    ``asyncio.wait_for`` will not do: it waits forever for a task that catches its cancellation, and a backend cancelled
    by its own client would look like a cancelled agent.

    Raises:
        BackendCancelled: the backend was cancelled, and not by us.
        TimeoutError: time is up; the class is asyncio's.

    """
    import asyncio  # noqa: PLC0415 - see the module docstring

    task = asyncio.ensure_future(awaitable)
    limit = time.monotonic() + TIME_LIMIT_SECONDS
    try:
        while not task.done() and (left := (deadline() if deadline else limit) - time.monotonic()) > 0:
            await asyncio.wait({task}, timeout=left)
        if not task.done():
            await asyncio.wait({task}, timeout=LAST_LOOK_SECONDS)
        is_late = not task.done()
    finally:
        if not task.done():
            task.cancel()
            task.add_done_callback(_forget)
            await asyncio.wait({task}, timeout=CLEAN_UP_SECONDS)
    if is_late:
        raise asyncio.TimeoutError
    if task.cancelled():
        raise BackendCancelled
    return task.result()


def _forget(task: asyncio.Future[Any]) -> None:
    """Retrieve the error of a call that was given up, so that asyncio does not log it as never retrieved."""
    if not task.cancelled():
        task.exception()


def _close_unbegun(awaitable: Awaitable[Any]) -> None:
    """Close a coroutine that no loop ever started, so that Python does not warn that nobody awaited it."""
    if inspect.iscoroutine(awaitable) and inspect.getcoroutinestate(awaitable) == inspect.CORO_CREATED:
        awaitable.close()


def is_loop_running() -> bool:
    """Return whether an event loop runs on this thread."""
    with loading:
        import asyncio  # noqa: PLC0415 - see the module docstring

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class BackgroundLoop:
    """One event loop on a daemon thread, for async storages called from the sync driver."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def result_of(self, awaitable: Awaitable[Result]) -> Result:
        """Run ``awaitable`` to its end, within the time limit.

        A storage that blocks the loop keeps it from checking the time. That loop is then abandoned, and the next call,
        to any storage, gets a new one.
        """
        with loading:
            import asyncio  # noqa: PLC0415 - see the module docstring

        try:
            loop = self._running()
        except BaseException:  # no thread left, or no file for the loop
            _close_unbegun(awaitable)
            raise
        future = asyncio.run_coroutine_threadsafe(in_time(awaitable), loop)
        future.add_done_callback(lambda _: _close_unbegun(awaitable))
        try:
            return future.result(TIME_LIMIT_SECONDS + 2 * CLEAN_UP_SECONDS)
        except FutureTimeoutError:
            if not future.done():
                self._leave(loop)
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        with loading:
            import asyncio  # noqa: PLC0415 - see the module docstring

        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                try:
                    threading.Thread(target=_serve, args=(loop,), name="coatcheck-loop", daemon=True).start()
                except RuntimeError:  # no thread left: nothing would ever run the loop
                    loop.close()
                    raise
                self._loop = loop
            return self._loop

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            if self._loop is loop:
                self._loop = None
                loop.call_soon_threadsafe(loop.stop)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    with loading:
        import asyncio  # noqa: PLC0415 - see the module docstring

    try:
        loop.run_forever()
        if unfinished := asyncio.all_tasks(loop):  # else asyncio would log each as destroyed while pending
            for task in unfinished:
                task.cancel()
            loop.run_until_complete(asyncio.wait(unfinished, timeout=2 * CLEAN_UP_SECONDS))
    finally:
        loop.close()
