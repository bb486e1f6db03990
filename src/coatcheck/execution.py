"""Where work runs: the two shells, sync and async, around one engine, and the threads behind them.

The engine is written once, as generators that yield ``Effect``s: calls to a storage or to a user's policy. ``run``
makes those calls where it stands. ``arun`` keeps the event loop free: the generator and local storages run on two
threads of our own, each network storage on sixteen, and what is ``async`` is awaited on the caller's loop. No asyncio
object outlives a call, because frameworks make a new loop for each run. A policy, which is the host's code and may call
us in turn, gets a thread of its own: in a pool, such policies could take all threads that they wait for.

asyncio is imported where it is used: no module takes longer to load, and who runs a loop has it already.
"""

from __future__ import annotations

import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary

from coatcheck.errors import CoatcheckError, InvalidRequest, StorageError
from coatcheck.forks import in_forked_child
from coatcheck.threads import UnawaitedThreads

if TYPE_CHECKING:
    import asyncio

__all__ = ("Effect", "Steps", "arun", "beside", "named", "off_loop", "run")

Result = TypeVar("Result")

LOCAL_THREADS = 2
"""Measured: 64 offloads of 1 MB at once stall the loop for 5 ms with two threads, for 248 ms with asyncio's own pool,
since every further thread competes with the loop for the interpreter's lock. So all offloaders of a process share them,
and a folder on a network disk that does not answer holds up all their async calls: there is no time limit here."""

NETWORK_THREADS = 16
"""For each offloader: one whose storage hangs takes no thread from another's. Threads that wait for a network hold no
lock; sixteen keep a storage busy without flooding it."""

TIME_LIMIT_SECONDS = 30.0
"""How long one call to a storage that is async or not local may take before it counts as failed. In the sync shell only
what is async can be given up: a sync storage has the caller's own thread, and must limit itself."""

CLEAN_UP_SECONDS = 1.0
"""How long a call that was given up may take to end. After that it is left alone, and ends with the process at the
latest."""


class BackendCancelled(Exception):
    """A backend ended as if it had been cancelled. Not ``CancelledError``: that would cancel the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A call that the engine wants made, sync or async. Its answer, or the error it ended with, goes back in."""

    call: Callable[[], object]
    """Makes the call. May return an awaitable."""

    local: bool
    """Whether it runs on this machine and is quick: then it runs on the thread that the engine is on."""

    is_async: bool
    """Whether ``call`` is a coroutine function: then it starts on the caller's event loop."""

    what: str
    """What is done, for the message of an error."""

    failure: type[CoatcheckError] = StorageError
    """What an error that is not one of ours becomes."""

    owner: object | None = None
    """Whose calls it waits behind where threads are few; None where ``call`` may use an offloader itself: then it waits
    in no line, and has a thread of its own."""


Steps: TypeAlias = Generator[Effect, object, Result]
"""A part of the engine. It receives what the call returned, or the ``CoatcheckError`` that it ended with."""


@dataclass(frozen=True, slots=True)
class _Done(Generic[Result]):
    value: Result


def run(steps: Steps[Result]) -> Result:
    """Run the engine here, making every call on this thread.

    A call that is async, on a thread with a running event loop, answers with ``InvalidRequest``: the async shell is the
    way then.
    """
    reached = _advance(steps, None)
    while isinstance(reached, Effect):
        reached = _advance(steps, _perform(reached))
    return reached.value


async def arun(steps: Steps[Result]) -> Result:
    """Run the engine off the event loop, making async calls on it."""
    reached = await off_loop(lambda: _advance(steps, None))
    while isinstance(reached, Effect):
        answer = await _aperform(reached)
        reached = await off_loop(lambda answer=answer: _advance(steps, answer))  # type: ignore[misc]
    return reached.value


async def off_loop(work: Callable[[], Result]) -> Result:
    """Run ``work`` on a thread of ours, in the caller's context, and await it."""
    return await _on(_executors.local, work)


async def _on(executor: Executor, work: Callable[[], Result]) -> Result:
    import asyncio  # noqa: PLC0415 - see the head

    context = contextvars.copy_context()
    return await asyncio.get_running_loop().run_in_executor(executor, lambda: context.run(work))


async def _off_loop(effect: Effect) -> object:
    """Make a call that may take long; return what it returns, or the error it raises."""
    call = partial(_guarded, effect, effect.call)  # a StopIteration cannot be raised into a future
    if effect.owner is not None:
        return await _on(_executors.network(effect.owner), call)
    return await _on(UnawaitedThreads(1, name="coatcheck-policy"), call)


def beside(work: Callable[[], Result]) -> Future[Result]:
    """Run ``work``, which must not need the interpreter's lock, on another core while this thread goes on.

    On a thread of its own, so as many as there are calls at once: the system starts a new one where a core is idle, but
    wakes that of a pool on the core where it ran before, which may be the one that is busy here.
    """
    try:
        return UnawaitedThreads(1, name="coatcheck-hash").submit(work)
    except RuntimeError:  # the interpreter shuts down and starts no more threads, or the system has none left
        done: Future[Result] = Future()
        done.set_result(work())
        return done


def _advance(steps: Steps[Result], answer: object) -> Effect | _Done[Result]:
    """Run the engine up to its end or its next call that must not run on this thread."""
    try:
        effect = steps.send(answer)
        while effect.local and not effect.is_async:
            effect = steps.send(_guarded(effect, effect.call))
    except StopIteration as stop:
        return _Done(cast("Result", stop.value))
    return effect


def _perform(effect: Effect) -> object:
    """Make a call from the sync shell; what is awaitable runs on a loop of our own."""
    answer = _guarded(effect, effect.call)
    if not inspect.isawaitable(answer):
        return answer
    if _loop_is_running():
        if inspect.iscoroutine(answer):
            answer.close()
        msg = f"{effect.what} is async and this thread runs an event loop: use the async method (aoffload, ...)"
        return InvalidRequest(msg)
    return _guarded(effect, lambda: _background_loop.result_of(answer))


async def _aperform(effect: Effect) -> object:
    try:
        answer = effect.call() if effect.is_async else await _in_time(_off_loop(effect))
        if inspect.isawaitable(answer):
            answer = await _in_time(answer)
    except CoatcheckError as error:
        return error
    except Exception as error:  # noqa: BLE001 - whatever a backend raises is its failure, not the agent's
        return _failure(effect, error)
    return answer


async def _in_time(awaitable: Awaitable[Result]) -> Result:
    """Await a backend, at most the time limit.

    Not ``asyncio.wait_for``: it waits for ever on what catches its cancellation, and a backend that was cancelled by
    its own client would look as if the agent had been.

    Raises:
        BackendCancelled: the backend was cancelled, and not by us.
        TimeoutError: the one of ``asyncio``; the time is over.

    """
    import asyncio  # noqa: PLC0415 - see the head

    task = asyncio.ensure_future(awaitable)
    try:
        done, _ = await asyncio.wait({task}, timeout=TIME_LIMIT_SECONDS)
    finally:
        if not task.done():
            task.cancel()
            task.add_done_callback(_forget)
            await asyncio.wait({task}, timeout=CLEAN_UP_SECONDS)
    if not done:
        raise asyncio.TimeoutError
    if task.cancelled():
        raise BackendCancelled
    return task.result()


def _forget(task: asyncio.Future[Any]) -> None:
    """Take the error of a call that was given up, so that nobody is told that nobody asked for it."""
    if not task.cancelled():
        task.exception()


def _guarded(effect: Effect, call: Callable[[], object]) -> object:
    """Return what ``call`` returns, or the error it raises: the one place where backends' errors become ours."""
    try:
        return call()
    except CoatcheckError as error:
        return error
    except Exception as error:  # noqa: BLE001 - see _aperform
        return _failure(effect, error)


def _failure(effect: Effect, error: Exception) -> CoatcheckError:
    import asyncio  # noqa: PLC0415 - see the head

    late = isinstance(error, asyncio.TimeoutError | FutureTimeoutError)
    failure = effect.failure(f"{effect.what} failed: {'no answer in time' if late else named(error)}")
    failure.__cause__ = error
    return failure


def named(error: Exception) -> str:
    """Name an error of somebody else's code. Only the system's own words are repeated: others may quote the content."""
    is_of_the_system = isinstance(error, OSError) and error.errno is not None
    return f"{type(error).__name__}: {error}" if is_of_the_system else type(error).__name__


def _loop_is_running() -> bool:
    import asyncio  # noqa: PLC0415 - see the head

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _Executors:
    """The thread pools, made again after a fork, which leaves a child without threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Weak: threads end with the offloader that they work for.
        self._network: WeakKeyDictionary[object, UnawaitedThreads] = WeakKeyDictionary()
        # Made here, since a pool starts no thread before its first work.
        self.local = ThreadPoolExecutor(LOCAL_THREADS, thread_name_prefix="coatcheck-local")

    def network(self, owner: object) -> UnawaitedThreads:
        with self._lock:
            if owner not in self._network:
                self._network[owner] = UnawaitedThreads(NETWORK_THREADS, name="coatcheck-network")
            return self._network[owner]


class _BackgroundLoop:
    """One event loop on a daemon thread, for async storages called from the sync shell."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def result_of(self, awaitable: Awaitable[Result]) -> Result:
        """Run ``awaitable`` to its end, at most the time limit.

        A storage that blocks the loop instead of awaiting keeps it from looking at the time. Its loop is left to it
        then, and the next call, of whichever storage, gets a new one.
        """
        import asyncio  # noqa: PLC0415 - see the head

        loop = self._running()
        future = asyncio.run_coroutine_threadsafe(_in_time(awaitable), loop)
        try:
            return future.result(TIME_LIMIT_SECONDS + 2 * CLEAN_UP_SECONDS)
        except FutureTimeoutError:
            if not future.done():
                self._leave(loop)
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        import asyncio  # noqa: PLC0415 - see the head

        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                try:
                    threading.Thread(target=_serve, args=(loop,), name="coatcheck-loop", daemon=True).start()
                except RuntimeError:  # no more threads: what nobody serves would be waited for in vain
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
    try:
        loop.run_forever()
    finally:
        loop.close()


_executors = _Executors()
_background_loop = _BackgroundLoop()


def _start_afresh() -> None:
    global _executors, _background_loop  # noqa: PLW0603 - a forked child must not wait for its parent's threads
    _executors = _Executors()
    _background_loop = _BackgroundLoop()


in_forked_child(_start_afresh)
