"""Where work runs: the sync and the async driver of the one engine, and the threads that they use.

The engine is written once, as generators that yield ``Effect``s: calls to a storage or to a user's policy. ``run``
makes those calls on its caller's thread. ``arun`` keeps the event loop free: the generator and local storages run on
threads of our own, two for short work and two for long, each network storage on sixteen, and what is ``async`` is
awaited on the caller's loop. If there is no thread, the work runs on the caller's, as ``run`` does it. No
asyncio object outlives a call, because frameworks make a new loop for each run. A policy, which is the host's code and
may call us in turn, gets a thread of its own: in a pool, such policies could take all threads that they wait for.

asyncio is imported where it is used: no module takes longer to load, and who runs a loop has it already.
"""

from __future__ import annotations

import atexit
import contextvars
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary

from coatcheck.core.errors import CoatcheckError, InvalidRequest, StorageError, describe_error
from coatcheck.core.forks import in_forked_child, loading
from coatcheck.engine.threads import UnawaitedThreads

if TYPE_CHECKING:
    import asyncio

__all__ = (
    "PAUSE",
    "PIECE_BYTES",
    "CallQueue",
    "Effect",
    "Effects",
    "arun",
    "queued_milliseconds",
    "run",
)

Result = TypeVar("Result")

LOCAL_THREADS = 2
"""For short work, and as many for long. Measured: 64 offloads of 1 MB at once stall the loop for 5 ms with two threads,
for 248 ms with asyncio's own pool, since every further thread competes with the loop for the interpreter's lock. So all
offloaders of a process share them, and a folder on a network disk that does not answer holds up all their async calls:
there is no time limit here."""

SHORT_BYTES = 131_072
"""A result of up to so many bytes is short work: some milliseconds, whatever it holds. Short work has threads of its
own, so that it never waits for a preview of a large result, which is one piece."""

PIECE_BYTES = 1_048_576
"""Of long work between two pauses: some 2 ms of encoding, scanning or counting."""

GIVE_WAY_SECONDS = 0.02
"""How long one pause of long work waits for short work to end: several times what 20 KB take. A thread that computes
takes the interpreter's lock from others for 5 ms each time that they give it up, and a short offload gives it up some
twenty times. Bounded, so that no stream of short work can stop long work: 100 MB take at most 4 s more."""

TIME_LIMIT_SECONDS = 30.0
"""How long one call to a storage that is async or not local may take before it counts as failed, from when a thread
takes it; and how long a queue may go without any call being taken before its callers give up. In the sync driver only
what is async can be given up: a sync storage has the caller's own thread, and must limit itself."""

CLEAN_UP_SECONDS = 1.0
"""How long a call that was given up may take to end. After that it is left alone, and ends with the process at the
latest."""


class BackendCancelled(Exception):
    """A backend ended as if it had been cancelled. Not ``CancelledError``: that would cancel the agent."""


class NoThreadFree(Exception):
    """A call waited in its queue until its time was over. The text says what may be done."""


class CallQueue:
    """Where calls to one storage wait for a thread, if it is neither local nor async."""

    def __init__(self, threads: int, *, seconds: float) -> None:
        self.threads = threads
        self.seconds = seconds
        self.moved = 0.0
        """When a thread last took a call, in seconds of ``time.monotonic``."""


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

    queue: CallQueue | None = None
    """Where it waits for a thread; None where ``call`` may use an offloader itself: then it has no queue, and gets a
    thread of its own."""


PAUSE: Final = None
"""Yielded between two pieces of long work: others may have the thread. Work that began as short goes on as long."""

Effects: TypeAlias = Generator[Effect | None, object, Result]
"""An operation of the engine, or a part of one: it yields calls, and is sent what each returned, or the
``CoatcheckError`` that it ended with. It returns a ``Result``."""


@dataclass(frozen=True, slots=True)
class _Done(Generic[Result]):
    value: Result


def run(operation: Effects[Result]) -> Result:
    """Run an operation on this thread, and make every call on it.

    If an event loop runs on this thread, an async call is answered with ``InvalidRequest``: the caller must use the
    async method.
    """
    try:
        effect = next(operation)
        while True:
            answer = None if effect is None else _answer_of(effect, effect.call)
            if effect is not None and inspect.isawaitable(answer):
                answer = _wait_for(effect, answer)
            effect = operation.send(answer)
    except StopIteration as stop:
        return cast("Result", stop.value)


async def arun(operation: Effects[Result], *, short: bool = False) -> Result:
    """Run an operation off the event loop, and its async calls on the loop. ``short`` work does not wait for long."""
    queued = _queued.set(_Queued())
    threads = _executors.short if short else _executors.long
    try:
        reached = await _on(threads, partial(_advance, operation, None, threads))
        while not isinstance(reached, _Done):
            if reached is None:
                threads, answer = _executors.long, None
            else:
                answer = await _aperform(reached)
            reached = await _on(threads, partial(_advance, operation, answer, threads))
        return reached.value
    finally:
        _queued.reset(queued)


def queued_milliseconds() -> float:
    """Return how long the calls of the current operation have waited for a network thread so far."""
    queued = _queued.get()
    return 0.0 if queued is None else queued.seconds * 1e3


async def _on(threads: UnawaitedThreads, work: Callable[[], Result]) -> Result:
    """Await ``work``, run on one of ``threads`` in the caller's context; run it here if there is no thread."""
    import asyncio  # noqa: PLC0415 - see the head

    try:
        running = threads.submit(contextvars.copy_context().run, work)
    except RuntimeError:  # the system has no thread left, or the interpreter shuts down
        return work()
    return await asyncio.wrap_future(running)


class _Queued:
    """How long the calls of one operation have waited for a thread."""

    seconds = 0.0


_queued: contextvars.ContextVar[_Queued | None] = contextvars.ContextVar("coatcheck_queued", default=None)


class _Turn:
    """One call that waits in a queue, and is then made."""

    def __init__(self, queue: CallQueue, call: Callable[[], object]) -> None:
        self._queue, self._call = queue, call
        self._entered = time.monotonic()
        self._taken: float | None = None

    def take(self) -> object:
        """Make the call."""
        self._taken = self._queue.moved = time.monotonic()
        return self._call()

    def deadline(self) -> float:
        """Return when it is given up, as things are now."""
        if self._taken is not None:
            return self._taken + TIME_LIMIT_SECONDS
        # Give up if the queue is stuck, not if it is only long.
        return min(self._entered + self._queue.seconds, max(self._entered, self._queue.moved) + TIME_LIMIT_SECONDS)

    def end(self, error: BaseException | None) -> None:
        """Note how long it waited.

        Raises:
            NoThreadFree: the call waited until it was given up with ``error``.

        """
        queued = _queued.get()
        if queued is not None:
            queued.seconds += (self._taken or time.monotonic()) - self._entered
        if error is not None and self._taken is None:
            msg = (
                f"no thread was free for it in time: all {self._queue.threads} threads were busy with this storage;"
                " raise network_threads or queue_seconds, or see why it is slow"
            )
            raise NoThreadFree(msg) from error


async def _off_loop(effect: Effect) -> object:
    """Make a call that may take long; return what it returns, or the error it raises."""
    import asyncio  # noqa: PLC0415 - see the head

    call = partial(_answer_of, effect, effect.call)  # a StopIteration cannot be raised into a future
    if effect.queue is None:
        return await _in_time(_on(UnawaitedThreads(1, name="coatcheck-policy"), call))
    turn, error = _Turn(effect.queue, call), None
    try:
        return await _in_time(_on(_executors.network(effect.queue), turn.take), deadline=turn.deadline)
    except asyncio.TimeoutError as late:
        error = late
        raise
    finally:
        turn.end(error)


def _advance(operation: Effects[Result], answer: object, threads: UnawaitedThreads) -> Effect | _Done[Result] | None:
    """Run the engine up to its end, its next call that must not run on this thread, or a pause that ends its turn.

    ``threads`` is the pool that this thread belongs to.
    """
    try:
        effect = operation.send(answer)
        while effect is None or (effect.local and not effect.is_async):
            if effect is None and _ends_turn(threads):
                return None
            effect = operation.send(None if effect is None else _answer_of(effect, effect.call))
    except StopIteration as stop:
        return _Done(cast("Result", stop.value))
    return effect


def _ends_turn(threads: UnawaitedThreads) -> bool:
    """Return whether work that pauses gives its thread to others; they come in turns, each for one piece."""
    if threads is _executors.short:
        return True
    _executors.short.wait_until_idle(GIVE_WAY_SECONDS)
    return threads.waiting > 0


def _answer_of(effect: Effect, call: Callable[[], object]) -> object:
    """Return what ``call`` returns, or the error that it raises, as one of ours."""
    try:
        return call()
    except CoatcheckError as error:
        return error
    except Exception as error:  # noqa: BLE001 - backends raise what they like
        return _failure_of(effect, error)


def _failure_of(effect: Effect, error: Exception) -> CoatcheckError:
    """Return the error that the engine gets for a backend's own, which becomes its ``__cause__``."""
    with loading:
        import asyncio  # noqa: PLC0415 - see the head

    if isinstance(error, NoThreadFree):
        reason = str(error)
    elif isinstance(error, asyncio.TimeoutError | FutureTimeoutError):
        reason = "no answer in time"
    else:
        reason = describe_error(error)
    failure = effect.failure(f"{effect.what} failed: {reason}")
    failure.__cause__ = error
    return failure


def _wait_for(effect: Effect, awaitable: Awaitable[object]) -> object:
    """Return the answer of an async call in the sync driver, where it runs on a loop of our own."""
    if _loop_is_running():
        if inspect.iscoroutine(awaitable):
            awaitable.close()
        msg = f"{effect.what} is async and this thread runs an event loop: use the async method (aoffload, ...)"
        return InvalidRequest(msg)
    return _answer_of(effect, lambda: _background_loop.result_of(awaitable))


async def _aperform(effect: Effect) -> object:
    try:
        answer = effect.call() if effect.is_async else await _off_loop(effect)
        return await _in_time(answer) if inspect.isawaitable(answer) else answer
    except CoatcheckError as error:
        return error
    except Exception as error:  # noqa: BLE001 - backends raise what they like
        return _failure_of(effect, error)


async def _in_time(awaitable: Awaitable[Result], *, deadline: Callable[[], float] | None = None) -> Result:
    """Await a backend up to the time limit, or up to a ``deadline`` of the monotonic clock, which may move.

    Not ``asyncio.wait_for``: it waits without end for a task that catches its cancellation, and a backend that was
    cancelled by its own client would look as if the agent had been.

    Raises:
        BackendCancelled: the backend was cancelled, and not by us.
        TimeoutError: the one of ``asyncio``; the time is over.

    """
    import asyncio  # noqa: PLC0415 - see the head

    task = asyncio.ensure_future(awaitable)
    limit = time.monotonic() + TIME_LIMIT_SECONDS
    try:
        while not task.done() and (left := (deadline() if deadline else limit) - time.monotonic()) > 0:
            await asyncio.wait({task}, timeout=left)
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
    """Consume the error of a call that was given up, so that asyncio does not log it as never retrieved."""
    if not task.cancelled():
        task.exception()


def _loop_is_running() -> bool:
    with loading:
        import asyncio  # noqa: PLC0415 - see the head

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class _Executors:
    """The thread pools, made again after a fork, since a child has no threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Weak: threads end with the offloader that they work for.
        self._network: WeakKeyDictionary[CallQueue, UnawaitedThreads] = WeakKeyDictionary()
        # Made here, since a pool starts no thread before its first work.
        self.short = UnawaitedThreads(LOCAL_THREADS, name="coatcheck-local")
        self.long = UnawaitedThreads(LOCAL_THREADS, name="coatcheck-long")

    def network(self, queue: CallQueue) -> UnawaitedThreads:
        with self._lock:
            if queue not in self._network:
                self._network[queue] = UnawaitedThreads(queue.threads, name="coatcheck-network")
            return self._network[queue]


class _BackgroundLoop:
    """One event loop on a daemon thread, for async storages called from the sync driver."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def result_of(self, awaitable: Awaitable[Result]) -> Result:
        """Run ``awaitable`` to its end, at most the time limit.

        A storage that blocks the loop instead of awaiting keeps it from looking at the time. Then that loop is
        abandoned, and the next call, of any storage, gets a new one.
        """
        with loading:
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
        with loading:
            import asyncio  # noqa: PLC0415 - see the head

        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                try:
                    threading.Thread(target=_serve, args=(loop,), name="coatcheck-loop", daemon=True).start()
                except RuntimeError:  # no more threads: nothing would ever run what is sent to the loop
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


@atexit.register
def _finish() -> None:
    """Finish local work when the interpreter ends. Nothing waits for calls to network storages, which may hang."""
    for threads in (_executors.short, _executors.long):
        threads.wait_until_idle()
