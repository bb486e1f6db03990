"""Threads that nobody waits for at exit: how many there are, how they take work, and when they end."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import TYPE_CHECKING

import pytest

from coatcheck.engine.threads import UnawaitedThreads

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 60
"""Seconds until a test that would wait forever fails."""


def ours(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]


def test_no_more_threads_start_than_allowed_and_all_work_is_done() -> None:
    threads = UnawaitedThreads(3, name="at-most-three")
    released = threading.Event()
    running = [threads.submit(released.wait, PATIENCE) for _ in range(10)]
    at_work = len(ours("at-most-three"))
    released.set()

    assert [each.result(PATIENCE) for each in running] == [True] * 10
    assert at_work == 3


def test_a_free_thread_is_used_again() -> None:
    threads = UnawaitedThreads(16, name="used-again")
    for _ in range(500):
        threads.submit(int).result(PATIENCE)

    assert len(ours("used-again")) == 1


def test_no_work_waits_behind_calls_that_hang_while_another_thread_could_start() -> None:
    threads = UnawaitedThreads(8, name="hang")
    released = threading.Event()
    hanging = []
    for _ in range(7):
        hanging.append(threads.submit(released.wait, PATIENCE))
        assert threads.submit(int).result(PATIENCE) == 0
    released.set()

    assert [each.result(PATIENCE) for each in hanging] == [True] * 7


def test_an_error_keeps_no_reference_to_the_arguments_of_its_work() -> None:
    threads = UnawaitedThreads(1, name="holds-nothing")

    class Content:
        pass

    def fail(_: Content) -> None:
        message = "wrong"
        raise ValueError(message)

    content = Content()
    gone = weakref.ref(content)
    gc.disable()
    try:
        running = threads.submit(fail, content)
        with pytest.raises(ValueError, match="wrong") as raised:
            running.result(PATIENCE)
        del content, running, raised
        threads.submit(int).result(PATIENCE)  # the thread has finished its earlier work
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("error", [ValueError("wrong"), SystemExit(3)])
def test_an_error_goes_to_whoever_waits_and_ends_no_thread(error: BaseException) -> None:
    threads = UnawaitedThreads(1, name="fails")

    def fail() -> None:
        raise error

    assert threads.submit(fail).exception(PATIENCE) is error
    assert threads.submit(lambda: "answer").result(PATIENCE) == "answer"


def test_work_cancelled_before_it_begins_is_not_done() -> None:
    threads = UnawaitedThreads(1, name="given-up")
    released = threading.Event()
    done: list[str] = []
    running = threads.submit(released.wait, PATIENCE)
    waiting = threads.submit(done.append, "given up")

    assert waiting.cancel()
    released.set()
    assert running.result(PATIENCE)
    threads.submit(done.append, "the last").result(PATIENCE)
    assert done == ["the last"]


def test_threads_end_after_their_remaining_work_when_their_pool_is_gone() -> None:
    threads = UnawaitedThreads(2, name="forgotten")
    released = threading.Event()
    running = [threads.submit(released.wait, PATIENCE) for _ in range(4)]
    alive = ours("forgotten")
    del threads
    gc.collect()
    released.set()
    for thread in alive:
        thread.join(PATIENCE)

    assert [each.result(0) for each in running] == [True] * 4
    assert [thread.is_alive() for thread in alive] == [False, False]


def test_a_thread_that_could_not_start_is_started_for_the_next_work(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = UnawaitedThreads(1, name="not-started")
    start: Callable[[threading.Thread], None] = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        monkeypatch.setattr(threading.Thread, "start", start)
        message = "can't start new thread"
        raise RuntimeError(message)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    done: list[str] = []
    with pytest.raises(RuntimeError, match="can't start"):
        threads.submit(done.append, "refused")

    assert threads.submit(int).result(PATIENCE) == 0
    assert not done


def test_when_no_more_threads_can_start_running_ones_do_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = UnawaitedThreads(2, name="the-only-one")
    released = threading.Event()
    running = threads.submit(released.wait, PATIENCE)

    def refuse(_: threading.Thread) -> None:
        message = "can't start new thread"
        raise RuntimeError(message)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    waiting = threads.submit(int)
    released.set()

    assert running.result(PATIENCE)
    assert waiting.result(PATIENCE) == 0
