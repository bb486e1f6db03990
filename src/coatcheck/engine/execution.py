"""Effects from end to end: what they are, how a storage's methods become effects, and the two drivers that run them.

The engine is written once, as generators that yield ``Effect``s: calls to a storage or to a user's policy. ``run``
makes those calls on its caller's thread. ``arun`` keeps the event loop free: the generator and local storages run on
threads of our own, two for short work and two for long; a network storage runs on its offloader's ``network_threads``;
async calls are awaited on the caller's loop. If no thread can be started, the work runs on the caller's, as with
``run``. No asyncio object outlives a call, because frameworks create a new loop for each run. A policy is the host's
code and may call us in turn, so it gets a thread of its own: in a pool, policies could occupy all the threads that they
wait for.

asyncio is imported where it is used, which keeps our import cheap: a program with an event loop has loaded it already.
"""

from __future__ import annotations

import atexit
import contextvars
import inspect
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, NoReturn, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary

from coatcheck.core.errors import CoatcheckError, InvalidRequest, StorageError, describe_error, is_of_the_system
from coatcheck.core.forks import in_forked_child
from coatcheck.core.settings import NETWORK_THREADS, QUEUE_SECONDS
from coatcheck.engine import loops
from coatcheck.engine.failures import log_failure, logger
from coatcheck.engine.loops import BackendCancelled, BackgroundLoop, in_time, is_loop_running
from coatcheck.engine.threads import UnawaitedThreads

if TYPE_CHECKING:
    from coatcheck.storage.protocol import DescribesErrors, LocalPath, NamesReferences, Storage

__all__ = (
    "PAUSE",
    "PIECE_BYTES",
    "SHORT_BYTES",
    "Effect",
    "Effects",
    "StorageAccess",
    "answer_of",
    "arun",
    "on_thread",
    "queued_milliseconds",
    "run",
)

Result = TypeVar("Result")

LOCAL_THREADS = 2
"""Threads for short work, and as many again for long. Measured: 64 offloads of 1 MB at once stall the loop for 5 ms
with two threads, but for 248 ms with asyncio's own pool, since every further thread competes with the loop for the
interpreter's lock. So all offloaders of a process share these threads. There is no time limit here: a folder on a
network disk that does not answer holds up all their async calls."""

SHORT_BYTES = 131_072
"""A result of up to this many bytes is short work: a few milliseconds, whatever it holds. Short work has threads of its
own, so that it never waits for the preview of a large result, which runs without a pause."""

PIECE_BYTES = 1_048_576
"""How much long work does between two pauses: about 2 ms of encoding, scanning or counting."""

GIVE_WAY_SECONDS = 0.02
"""How long one pause of long work waits for short work to end: several times what 20 KB take. Each time that another
thread gives up the interpreter's lock, a computing thread takes it for 5 ms; a short offload gives it up about twenty
times. The wait is bounded, so that no stream of short work can stop long work: 100 MB take at most 4 s more."""

_METHODS = {
    "save": ("Storage", "saving"),
    "save_named": ("NamesReferences", "saving"),
    "load": ("Storage", "loading"),
    "load_range": ("ReadsRanges", "loading a part"),
    "delete": ("Deletes", "deleting"),
    "delete_many": ("DeletesMany", "deleting"),
    "entries": ("Lists", "listing"),
    "page": ("ListsPages", "listing"),
    "sweep": ("Sweeps", "sweeping"),
}
"""For each method of a storage: its capability, and the word for what it does in an error message."""


IN_VAIN_SECONDS = 5.0
"""A call that took longer than this to fail must have waited for an answer, or tried several times."""

PAUSE_SECONDS = 60.0
"""How long a storage that does not answer is left alone. Even an agent that only saves then waits for just a third of
its time: 30 s of each 90."""

_MANY_BYTES = 10_000_000
"""Content of this size needs 3 Mbit/s to be sent within the time limit. Larger content, or content of unknown size, may
time out on a storage that does answer, so its failure proves nothing."""

_LONGEST_WORDS = 1_000
"""Characters of a storage's description of an error that a message repeats."""


class NoThreadFree(Exception):
    """A call ran out of time while it waited in a queue. The message says what to do."""


class CallQueue:
    """Where calls to a storage that is neither local nor async wait for a thread."""

    def __init__(self, threads: int, *, seconds: float) -> None:
        self.threads = threads
        self.seconds = seconds
        self.moved: float = 0.0
        """When a thread last took a call, in seconds of ``time.monotonic``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """A call that the engine wants made, sync or async. The driver sends back its answer or its error."""

    call: Callable[[], object]
    """Makes the call. May return an awaitable."""

    local: bool
    """Whether the call stays on this machine and is quick: then it runs on the engine's own thread."""

    is_async: bool
    """Whether ``call`` is a coroutine function: then it starts on the caller's event loop."""

    what: str
    """What the call does, for error messages."""

    failure: type[CoatcheckError] = StorageError
    """The class that a foreign error is turned into."""

    describe: Callable[[Exception], str] = describe_error
    """Returns what the message says about a foreign error."""

    queue: CallQueue | None = None
    """Where the call waits for a thread. None if ``call`` may itself use an offloader: then it does not wait, but gets
    a thread of its own."""


PAUSE: Final = None
"""Yielded between two pieces of long work: others may have the thread. Work that began as short continues as long."""

Effects: TypeAlias = Generator[Effect | None, object, Result]
"""An operation of the engine, or a part of one. It yields calls; for each, it is sent the answer, or the
``CoatcheckError`` that the call ended with. It returns a ``Result``."""


class StorageAccess:
    """Turns the methods that a storage has into effects, sync or async."""

    def __init__(
        self, storage: object, *, network_threads: int = NETWORK_THREADS, queue_seconds: float = QUEUE_SECONDS
    ) -> None:
        """Take any object with the two methods of ``Storage`` or of ``NamesReferences``.

        Raises:
            InvalidRequest: a method is missing, or does not accept the arguments it is called with.

        """
        is_storage = _has(storage, "save", "load")
        if isinstance(storage, type) or not (is_storage or _has(storage, "save_named", "load")):
            msg = (
                "storage must have the methods save and load, as FileStorage('./artifacts') and InMemoryStorage()"
                f" have, not {storage!r}"
            )
            raise InvalidRequest(msg)
        self.storage: Storage | NamesReferences = cast("Storage | NamesReferences", storage)
        self.takes_file_name: bool = self._says("takes_file_name")
        if is_storage:
            _require_call(storage, "save", "", b"", content_type="", metadata={})
        else:
            named = {"file_name": None} if self.takes_file_name else {}
            _require_call(storage, "save_named", "", b"", content_type="", **named)
        _require_call(storage, "load", "")
        self.names_references: bool = not is_storage
        self.reads_ranges: bool = _has(storage, "load_range")
        self.deletes_many: bool = _has(storage, "delete_many")
        self.sweeps: bool = _has(storage, "sweep")
        self.lists_pages: bool = _has(storage, "page")
        self.lists: bool = is_storage and (self.lists_pages or _has(storage, "entries"))
        self.evicts: bool = self._says("evicts")
        self._is_local = self._says("is_local", default=_has(storage, "local_path"))
        self._queue = CallQueue(network_threads, seconds=queue_seconds)
        self._answered = self._next_try = 0.0
        """When the storage last answered, and when it is next asked if it does not answer; in seconds of
        ``time.monotonic``."""

    def attempt(
        self, method: str, /, *arguments: object, anyway: Callable[[], bool] | None = None, **named: object
    ) -> Effects[object]:
        """Make a call that an agent waits for, and return the answer, or the error that the call ended with.

        A call that hangs takes its whole time limit, and an agent makes many. So after one has failed late, and no
        other was answered meanwhile, calls fail at once for a while, unless ``anyway`` says that this one must be made.
        Then one call tries again. A lock could stay locked after a fork, so there is none: at worst, two calls try at
        once.

        Raises:
            InvalidRequest: the storage lacks the capability.

        """
        call = self.call(method, *arguments, **named)
        if call.local:  # what it waits for is the lock of one scope, which says nothing about the others
            return (yield call)
        began, next_try = time.monotonic(), self._next_try  # read once: another thread may set it
        if began < next_try and not (anyway is not None and anyway()):
            left = f"the next try is in {next_try - began:.0f} s"
            return StorageError(f"{call.what} failed: not tried, because the storage did not answer; {left}")
        if 0 < next_try <= began:
            self._next_try = began + PAUSE_SECONDS  # meanwhile the others do not wait
        answer = yield call
        ended = time.monotonic()
        size = sum(len(argument) for argument in arguments if isinstance(argument, bytes))
        may_be_large = size > _MANY_BYTES or (method == "load" and self.reads_ranges)
        if not isinstance(answer, CoatcheckError) or ended - began < IN_VAIN_SECONDS:
            self._answered, self._next_try = ended, 0.0
        elif self._answered <= began and not may_be_large:
            self._next_try = ended + PAUSE_SECONDS
        return answer

    def call(self, method: str, /, *arguments: object, **named: object) -> Effect:
        """Return the effect that calls a storage method; ``coatcheck.storage.protocol`` documents the methods.

        Raises:
            InvalidRequest: the storage lacks the capability.

        """
        kind = type(self.storage).__name__
        capability, doing = _METHODS[method]
        try:
            call = getattr(self.storage, method, None)
        except Exception as error:  # noqa: BLE001 - a proxy object may connect, and fail, only now
            call = partial(_raise, error)
        if call is None:
            msg = f"{kind} cannot do this: it lacks coatcheck.{capability}"
            raise InvalidRequest(msg)
        sizes = "".join(f" {len(argument):,} bytes" for argument in arguments if isinstance(argument, bytes))
        return Effect(
            call=partial(call, *arguments, **named),
            local=self._is_local,
            is_async=inspect.iscoroutinefunction(call),
            what=f"{doing}{sizes} ({kind})",
            describe=self._describe,
            queue=self._queue,
        )

    def path_of(self, key: str, *, content_type: str) -> str | None:
        """Return the path of an entry's file, if the storage keeps files."""
        if not _has(self.storage, "local_path"):
            return None
        try:
            return os.fsdecode(cast("LocalPath", self.storage).local_path(key, content_type=content_type))
        except Exception as error:  # noqa: BLE001 - the content is saved, and can be read without its path
            log_failure(logger, "a content is stored, and its path cannot be named", error=error)
            return None

    def _describe(self, error: Exception) -> str:
        """Return what a message says about an error of the backend: the storage's own description, if it has one."""
        with suppress(Exception):  # it may lack the method, or fail at this too
            said = cast("DescribesErrors", self.storage).describe_error(error)
            if isinstance(said, str):
                return " ".join(said[:_LONGEST_WORDS].split())
        return describe_error(error)

    def _says(self, what: str, *, default: bool = False) -> bool:
        """Return a boolean attribute of the storage, or the default: a mock's attributes are not booleans."""
        said = getattr(self.storage, what, None)
        return said if isinstance(said, bool) else default


def _raise(error: Exception, *_: object, **__: object) -> NoReturn:
    raise error


def _has(storage: object, *methods: str) -> bool:
    """Return whether a storage has these methods, even delegated ones: ``isinstance`` misses those from 3.12 on."""
    return all(callable(getattr(storage, method, None)) for method in methods)


def _require_call(storage: object, method: str, *arguments: object, **named: object) -> None:
    """Check that a method accepts these arguments, if its signature can be read.

    Raises:
        InvalidRequest: it does not.

    """
    function = getattr(storage, method)
    if hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
        return  # a decorator may add arguments that the caller does not pass
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments, **named)
    except TypeError as error:
        protocol = "NamesReferences" if method == "save_named" else "Storage"
        name = f"{type(storage).__name__}.{method}"
        msg = f"{name} must take the arguments of coatcheck.{protocol}.{method}: {error}"
        raise InvalidRequest(msg) from None


@dataclass(frozen=True, slots=True)
class _Done(Generic[Result]):
    value: Result


def run(operation: Effects[Result]) -> Result:
    """Run an operation on this thread; only async calls run elsewhere, on ``_background_loop``.

    If an event loop runs on this thread, the answer to an async call is ``InvalidRequest``: the caller must use the
    async method.
    """
    answer: object = None
    try:
        while True:
            effect = operation.send(answer)
            answer = None if effect is None else answer_of(effect, effect.call)
            if effect is not None and inspect.isawaitable(answer):
                answer = _wait_for(effect, answer)
    except StopIteration as stop:
        return cast("Result", stop.value)


async def arun(operation: Effects[Result], *, short: bool = False) -> Result:
    """Run an operation off the event loop, and its async calls on it. ``short`` work never waits for long work."""
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
        with suppress(ValueError):  # another context, as when the interpreter closes a coroutine of a stopped loop
            _queued.reset(queued)


def queued_milliseconds() -> float:
    """Return how long the calls of the current operation have waited for a network thread so far."""
    queued = _queued.get()
    return 0.0 if queued is None else queued.seconds * 1e3


async def on_thread(work: Callable[[], Result]) -> Result:
    """Await long ``work`` on a thread, or run it here if no thread can be started.

    Raises:
        RuntimeError: ``work`` raised ``StopIteration``, which no coroutine can raise.

    """

    def work_of_a_coroutine() -> Result:
        try:
            return work()
        except StopIteration as stop:  # an asyncio future rejects it, and the caller would wait forever
            msg = "work on a thread raised StopIteration"
            raise RuntimeError(msg) from stop

    return await _on(_executors.long, work_of_a_coroutine)


async def _on(threads: UnawaitedThreads, work: Callable[[], Result]) -> Result:
    """Await ``work`` on one of ``threads``, in the caller's context, or run it here if no thread can be started.

    Raises:
        InvalidRequest: the caller's event loop is not asyncio's.

    """
    import asyncio  # noqa: PLC0415 - see the module docstring

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        msg = "async methods need a running asyncio event loop: elsewhere, call the sync methods on a thread"
        raise InvalidRequest(msg, for_host=True) from None
    try:
        running = threads.submit(contextvars.copy_context().run, work)
    except RuntimeError:  # the system has no thread left, or the interpreter shuts down
        return work()
    return await asyncio.wrap_future(running, loop=loop)


class _Queued:
    """How long the calls of one operation have waited for a thread."""

    seconds = 0.0


_queued: contextvars.ContextVar[_Queued | None] = contextvars.ContextVar("coatcheck_queued", default=None)


class _Turn:
    """One call that waits in a queue until a thread makes it."""

    def __init__(self, queue: CallQueue, call: Callable[[], object]) -> None:
        self._queue, self._call = queue, call
        self._entered = time.monotonic()
        self._taken: float | None = None

    def take(self) -> object:
        """Make the call."""
        self._taken = self._queue.moved = time.monotonic()
        return self._call()

    def deadline(self) -> float:
        """Return the current deadline of this call."""
        limit = loops.TIME_LIMIT_SECONDS
        if self._taken is not None:
            return self._taken + limit
        # Give up early if the queue is stuck, but not if it is only long.
        return min(self._entered + self._queue.seconds, max(self._entered, self._queue.moved) + limit)

    def end(self, error: BaseException | None) -> None:
        """Record how long the call waited.

        Raises:
            NoThreadFree: the call got no thread before it was given up with ``error``.

        """
        queued = _queued.get()
        if queued is not None:
            queued.seconds += (self._taken or time.monotonic()) - self._entered
        if error is not None and self._taken is None:
            msg = (
                f"no thread was free for it in time: all {self._queue.threads} threads were busy with this storage;"
                " raise network_threads or queue_seconds, or find out why it is slow"
            )
            raise NoThreadFree(msg) from error


async def _off_loop(effect: Effect) -> object:
    """Make a call that may take long; return what it returns, or the error it raises."""
    import asyncio  # noqa: PLC0415 - see the module docstring

    call = partial(answer_of, effect, effect.call)  # catches StopIteration, which no future accepts
    if effect.queue is None:
        return await in_time(_on(UnawaitedThreads(1, name="coatcheck-policy"), call))
    turn, error = _Turn(effect.queue, call), None
    try:
        return await in_time(_on(_executors.network(effect.queue), turn.take), deadline=turn.deadline)
    except asyncio.TimeoutError as late:
        error = late
        raise
    finally:
        turn.end(error)


def _advance(operation: Effects[Result], answer: object, threads: UnawaitedThreads) -> Effect | _Done[Result] | None:
    """Run the engine until it ends, needs a call made or awaited elsewhere, or gives up its thread at a pause.

    ``threads`` is the pool that this thread belongs to.
    """
    try:
        while True:
            effect = operation.send(answer)
            if effect is None:
                if _ends_turn(threads):
                    return None
                answer = None
            elif effect.is_async or not effect.local:
                return effect
            else:
                answer = answer_of(effect, effect.call)
                if inspect.isawaitable(answer):
                    return replace(effect, call=partial(_returned, answer), is_async=True)
    except StopIteration as stop:
        return _Done(cast("Result", stop.value))


def _returned(answer: object) -> object:
    return answer


def _ends_turn(threads: UnawaitedThreads) -> bool:
    """Return whether work gives up its thread at a pause; long operations take turns, one piece each."""
    if threads is _executors.short:
        return True
    _executors.short.wait_until_idle(GIVE_WAY_SECONDS)
    return threads.waiting > 0


def answer_of(effect: Effect, call: Callable[[], object]) -> object:
    """Return what ``call`` returns, or the error that it raises, as a ``CoatcheckError``."""
    try:
        return call()
    except CoatcheckError as error:
        return error
    except Exception as error:  # noqa: BLE001 - backends raise what they like
        return _failure_of(effect, error)
    except BaseException as error:
        if not _is_of_asyncio(error, "CancelledError"):
            raise
        cancelled = BackendCancelled()  # a sync client that awaits an async one was cancelled, not the agent's task
        cancelled.__cause__ = error
        return _failure_of(effect, cancelled)


def _failure_of(effect: Effect, error: Exception) -> CoatcheckError:
    """Turn a backend's own error into the engine's, with the original as its ``__cause__``."""
    is_late = isinstance(error, FutureTimeoutError) or _is_of_asyncio(error, "TimeoutError")
    if isinstance(error, NoThreadFree):
        reason = str(error)
    elif is_late and not is_of_the_system(error):
        reason = "no answer in time"  # our own limit; an error of the system says more, such as "folder stays locked"
    else:
        reason = effect.describe(error)
    failure = effect.failure(f"{effect.what} failed: {reason}")
    failure.__cause__ = error
    return failure


def _is_of_asyncio(error: BaseException, name: str) -> bool:
    """Return whether this is the asyncio error ``name``. Imports nothing: it may be impossible to open a file."""
    kind = getattr(sys.modules.get("asyncio.exceptions"), name, None)
    return kind is not None and isinstance(error, kind)


def _wait_for(effect: Effect, awaitable: Awaitable[object]) -> object:
    """Return the answer to an async call in the sync driver, which runs it on a loop of our own."""
    if is_loop_running():
        if inspect.iscoroutine(awaitable):
            awaitable.close()
        msg = f"{effect.what} is async and this thread runs an event loop: use the async method (aoffload, ...)"
        return InvalidRequest(msg, for_host=True)
    return answer_of(effect, lambda: _background_loop.result_of(awaitable))


async def _aperform(effect: Effect) -> object:
    try:
        answer = effect.call() if effect.is_async else await _off_loop(effect)
        return await in_time(answer) if inspect.isawaitable(answer) else answer
    except CoatcheckError as error:
        return error
    except Exception as error:  # noqa: BLE001 - backends raise what they like
        return _failure_of(effect, error)


class _Executors:
    """The thread pools. They are created again after a fork, since a child has no threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Weak: threads end with the offloader that they work for.
        self._network: WeakKeyDictionary[CallQueue, UnawaitedThreads] = WeakKeyDictionary()
        # Created here, since a pool starts no thread before its first task.
        self.short = UnawaitedThreads(LOCAL_THREADS, name="coatcheck-local")
        self.long = UnawaitedThreads(LOCAL_THREADS, name="coatcheck-long")

    def network(self, queue: CallQueue) -> UnawaitedThreads:
        with self._lock:
            if queue not in self._network:
                self._network[queue] = UnawaitedThreads(queue.threads, name="coatcheck-network")
            return self._network[queue]


_executors = _Executors()
_background_loop = BackgroundLoop()


def _start_afresh() -> None:
    global _executors, _background_loop  # noqa: PLW0603 - a forked child must not wait for its parent's threads
    _executors = _Executors()
    _background_loop = BackgroundLoop()


in_forked_child(_start_afresh)


@atexit.register
def _finish() -> None:
    """Finish local work when the interpreter exits. Nothing waits for calls to network storages, which may hang."""
    for threads in (_executors.short, _executors.long):
        threads.wait_until_idle()
