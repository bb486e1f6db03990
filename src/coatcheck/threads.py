"""Threads that the interpreter does not wait for when it ends.

``ThreadPoolExecutor`` is waited for: one call that never returns would keep the process for ever. Here such a call ends
with the process, and nothing is lost by that: what it was to save was never acknowledged, and saves are whole or not at
all. Only what may hang belongs here; what computes, or writes to a disk of this machine, is better brought to its end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias, TypeVar
from weakref import finalize

__all__ = ("UnawaitedThreads",)

Result = TypeVar("Result")

Task: TypeAlias = tuple["Future[Any]", Callable[[], object]]


class UnawaitedThreads(Executor):
    """At most ``most`` threads, each started when all others are busy; they end when nobody holds this any more."""

    def __init__(self, most: int, *, name: str) -> None:
        self._most = most
        self._name = name
        self._started = 0
        self._starting = threading.Lock()
        self._idle = threading.Semaphore(0)
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        finalize(self, self._tasks.put, None).atexit = False

    def submit(self, work: Callable[..., Result], /, *arguments: Any, **named: Any) -> Future[Result]:  # noqa: ANN401 - the base's
        """Run ``work`` on one of the threads.

        Raises:
            RuntimeError: the first thread could not be started.

        """
        future: Future[Result] = Future()
        self._tasks.put((future, lambda: work(*arguments, **named)))
        if not self._idle.acquire(blocking=False):
            self._start_one_more()
        return future

    def _start_one_more(self) -> None:
        with self._starting:
            if self._started == self._most:
                return
            threading.Thread(
                target=_serve, args=(self._tasks, self._idle), name=f"{self._name}_{self._started}", daemon=True
            ).start()
            self._started += 1


def _serve(tasks: SimpleQueue[Task | None], idle: threading.Semaphore) -> None:
    """Do what comes, until told to end; hold nothing meanwhile, so that whoever submits can be forgotten."""
    while True:
        try:
            task = tasks.get_nowait()
        except Empty:
            idle.release()
            task = tasks.get()
        if task is None:
            tasks.put(None)  # for the next thread
            return
        _do(*task)
        del task


def _do(future: Future[Any], work: Callable[[], object]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for the answer
        future.set_exception(error)
    else:
        future.set_result(result)
