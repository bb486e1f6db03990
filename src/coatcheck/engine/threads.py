"""Threads that the interpreter does not wait for when it exits.

The interpreter waits for a ``ThreadPoolExecutor``: one call that never returns would keep the process from exiting.
Here such a call ends with the process, and nothing is lost: the save was never acknowledged, and a save is whole or not
done at all. Computations, and writes to a disk of this machine, should be finished: code that runs them here waits for
them with ``wait_until_idle``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeAlias, TypeVar
from weakref import finalize

__all__ = ("UnawaitedThreads",)

Result = TypeVar("Result")

Task: TypeAlias = tuple["Future[Any]", Callable[[], object]]


@dataclass(slots=True)
class _Shared:
    """What the threads refer to. It excludes the pool itself, so that an unused pool can be collected."""

    tasks: SimpleQueue[Task | None] = field(default_factory=SimpleQueue)
    changed: threading.Condition = field(default_factory=lambda: threading.Condition(threading.Lock()))
    """Guards ``unfinished``, and notifies when it reaches zero."""
    unfinished: int = 0
    """Tasks that wait or run. ``ThreadPoolExecutor`` counts idle threads instead, even one that is idle only for a
    moment; the next task may then wait behind a call that hangs, although another thread could start."""


class UnawaitedThreads:
    """At most ``most`` threads, each started when all others are busy; they end when nothing refers to the pool."""

    def __init__(self, most: int, *, name: str) -> None:
        self._most = most
        self._name = name
        self._started = 0
        self._shared = _Shared()
        finalize(self, self._shared.tasks.put, None).atexit = False

    def submit(self, work: Callable[..., Result], *arguments: object) -> Future[Result]:
        """Run ``work`` on one of the threads.

        Raises:
            RuntimeError: there is no thread, and none could be started; ``work`` will not run.

        """
        future: Future[Result] = Future()
        with self._shared.changed:
            if self._started < min(self._most, self._shared.unfinished + 1):
                self._start_one_more()
            self._shared.unfinished += 1
            self._shared.tasks.put((future, partial(work, *arguments)))
        return future

    @property
    def waiting(self) -> int:
        """Tasks that no thread has taken yet; another thread may change this at any moment."""
        return self._shared.tasks.qsize()

    def wait_until_idle(self, seconds: float | None = None) -> None:
        """Wait at most ``seconds`` until no task waits or runs."""
        if self._shared.unfinished:
            with self._shared.changed:
                self._shared.changed.wait_for(lambda: not self._shared.unfinished, seconds)

    def _start_one_more(self) -> None:
        name = f"{self._name}_{self._started}"
        try:
            threading.Thread(target=_serve, args=(self._shared,), name=name, daemon=True).start()
        except RuntimeError:
            if not self._started:
                raise
            return  # the threads that run will take the task
        self._started += 1


def _serve(shared: _Shared) -> None:
    """Run tasks until told to end."""
    while True:
        task = shared.tasks.get()
        if task is None:
            shared.tasks.put(None)  # for the next thread
            return
        _do(*task, shared)
        del task


def _do(future: Future[Any], work: Callable[[], object], shared: _Shared) -> None:
    answer: Callable[[], None] | None = None
    if future.set_running_or_notify_cancel():
        try:
            answer = partial(future.set_result, work())
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for the answer
            answer = partial(future.set_exception, error)
    with shared.changed:  # before the answer is set: whoever waited for it finds this thread free
        shared.unfinished -= 1
        if not shared.unfinished:
            shared.changed.notify_all()
    if answer is not None:
        answer()
    del future, work, answer  # an error refers to this frame, which would keep them alive
