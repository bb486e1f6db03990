"""Who waits for whom: calls queued for one storage, short and long work, and what runs when no thread is left."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import (
    ByteCounter,
    FileStorage,
    InMemoryStorage,
    Kept,
    Offloaded,
    Offloader,
    TextBlock,
    ToolResult,
)
from coatcheck.core.policy import Always
from coatcheck.core.reading import index
from coatcheck.engine import execution, loops
from coatcheck.engine.events import About
from coatcheck.engine.execution import PAUSE, PIECE_BYTES, SHORT_BYTES
from coatcheck.engine.request import OffloadRequest
from coatcheck.engine.threads import UnawaitedThreads
from tests.core.storages import AsyncDictStorage, DictStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from coatcheck import Outcome
    from coatcheck.engine.execution import Effects

SMALL = TextBlock("row of a small result\n" * 1_000)
BIG = TextBlock("".join(f"row {number}\n" for number in range(16_500)))
assert len(SMALL.text) < SHORT_BYTES < len(BIG.text)

REPOSITORY = Path(__file__).parents[2]

PATIENCE = 60
"""Seconds until a test that would wait forever fails. Nothing waits that long if the code is right."""


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Return an event that is set at the end of the test, to release every thread that waits for it."""
    event = threading.Event()
    yield event
    event.set()


def _offloader(storage: Any, **knobs: Any) -> Offloader:  # noqa: ANN401 - whatever a test tries
    return Offloader(storage, **{"token_counter": ByteCounter(), **knobs})


def _together(offloader: Offloader, times: int) -> list[asyncio.Task[Outcome]]:
    calls = [offloader.aoffload([BIG], tool_name=f"tool_{number}") for number in range(times)]
    return [asyncio.ensure_future(call) for call in calls]


# The queue of a storage.


class CountingStorage(DictStorage):
    """Calls ``saving`` with the number of saves in progress, then saves."""

    def __init__(self, saving: Callable[[int], object]) -> None:
        super().__init__()
        self._saving = saving
        self._lock = threading.Lock()
        self.at_once = self.saves = 0

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        with self._lock:
            self.at_once += 1
            self.saves += 1
        self._saving(self.at_once)
        super().save(key, content, content_type=content_type, metadata=metadata)
        with self._lock:
            self.at_once -= 1


async def test_nothing_is_lost_in_a_moving_queue_however_long_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    now, looked, own_thread = [0.0], threading.Event(), threading.get_ident()
    before_is_over = threading.Semaphore(1)

    def monotonic() -> float:
        if threading.get_ident() == own_thread:
            looked.set()
        return now[0]

    def slow(_: int) -> None:
        assert before_is_over.acquire(timeout=PATIENCE)  # not before the loop knows of the last save
        now[0] += 0.02
        looked.clear()
        assert looked.wait(PATIENCE)  # not before the waiting calls have looked at the clock

    for module in (execution, loops):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=monotonic))
    monkeypatch.setattr(loops, "TIME_LIMIT_SECONDS", 0.03)
    storage = CountingStorage(slow)
    calls = _together(_offloader(storage, network_threads=1), 8)
    for call in calls:
        call.add_done_callback(lambda _: before_is_over.release())
    outcomes = await asyncio.wait_for(asyncio.gather(*calls), PATIENCE)

    assert [type(outcome) for outcome in outcomes] == [Offloaded] * 8
    assert now[0] == pytest.approx(8 * 0.02)


async def test_a_call_that_hangs_ends_at_the_time_limit_even_while_others_are_answered(
    released: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "TIME_LIMIT_SECONDS", 0.2)
    taken = threading.Event()

    def hang_once(_: int) -> None:
        if not taken.is_set():
            taken.set()
            released.wait(PATIENCE)

    offloader = _offloader(CountingStorage(hang_once), network_threads=2)
    [hanging] = _together(offloader, 1)
    await asyncio.to_thread(taken.wait, PATIENCE)
    given_up = time.monotonic() + 5
    while not hanging.done() and time.monotonic() < given_up:
        await offloader.aoffload([BIG], tool_name="other")

    assert hanging.done()
    assert isinstance(hanging.result(), Kept)


@pytest.mark.parametrize("limit", ["of waiting", "of a line in which nobody moves"])
async def test_a_call_that_waits_too_long_is_abandoned_and_never_made(
    limit: str, released: threading.Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    taken, began = threading.Event(), time.monotonic()

    def hang(_: int) -> None:
        taken.set()
        released.wait(PATIENCE)

    # The clock stands still until the first call has its thread, however long that takes.
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() if taken.is_set() else began)
    for module in (execution, loops):
        monkeypatch.setattr(module, "time", clock)
    storage = CountingStorage(hang)
    queue_seconds = 0.01 if limit == "of waiting" else PATIENCE
    offloader = _offloader(storage, network_threads=1, queue_seconds=queue_seconds)
    [first] = _together(offloader, 1)
    assert await asyncio.to_thread(taken.wait, PATIENCE)
    # The other limit is longer than the test waits.
    monkeypatch.setattr(loops, "TIME_LIMIT_SECONDS", 2 * PATIENCE if limit == "of waiting" else 0.01)
    second = await asyncio.wait_for(offloader.aoffload([BIG], tool_name="second"), PATIENCE)
    released.set()
    await asyncio.wait_for(first, PATIENCE)
    await asyncio.to_thread(execution._executors.network(offloader._storage._queue).wait_until_idle, PATIENCE)

    assert second == Kept(blocks=(BIG,), reason="storage failed")
    assert "all 1 threads were busy with this storage; raise network_threads or queue_seconds" in caplog.text
    assert storage.saves == 1


@pytest.mark.parametrize("threads", [1, 5, 20])
async def test_as_many_calls_run_at_once_as_network_threads_allows(threads: int) -> None:
    most, together = [0], threading.Barrier(threads)

    def meet(at_once: int) -> None:
        most[0] = max(most[0], at_once)
        together.wait(PATIENCE)

    offloader = _offloader(CountingStorage(meet), network_threads=threads)
    outcomes = await asyncio.wait_for(asyncio.gather(*_together(offloader, 2 * threads)), PATIENCE)

    assert {type(outcome) for outcome in outcomes} == {Offloaded}
    assert most == [threads]


# Short and long work.


@pytest.mark.parametrize("storage", ["memory", "file"])
async def test_two_slow_previews_do_not_hold_up_a_small_result(
    storage: str, released: threading.Event, tmp_path: Path
) -> None:
    shown = threading.Semaphore(0)

    class Slow(ByteCounter):
        def head(self, text: str, limit: int) -> str:
            shown.release()
            released.wait(PATIENCE)
            return super().head(text, limit)

    chosen = InMemoryStorage() if storage == "memory" else FileStorage(tmp_path)
    slow = _together(_offloader(chosen, token_counter=Slow()), 2)
    await asyncio.to_thread(lambda: [shown.acquire(timeout=PATIENCE) for _ in slow])
    small = await asyncio.wait_for(_offloader(chosen).aoffload([SMALL], tool_name="other", policy=Always()), PATIENCE)
    are_waiting = not released.is_set() and not any(task.done() for task in slow)
    released.set()

    assert isinstance(small, Offloaded)
    assert are_waiting
    assert [type(outcome) for outcome in await asyncio.gather(*slow)] == [Offloaded] * 2


def _pauses(operation: Effects[Any]) -> int:
    """Run an operation of the engine on this thread, and return how often it paused."""
    pauses, answer = 0, None
    try:
        while True:
            effect = operation.send(answer)
            pauses += effect is PAUSE
            answer = None if effect is None else effect.call()
    except StopIteration:
        return pauses


@pytest.mark.parametrize("character", ["a", "ä", "字"])
def test_the_engine_pauses_after_each_megabyte(character: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "COPIED_AT_ONCE", PIECE_BYTES)
    offloader = _offloader(InMemoryStorage())
    text = "".join(f"{character} row {number}\n" for number in range(500_000))
    megabytes = len(text) // PIECE_BYTES
    result = ToolResult(blocks=(TextBlock(text),), tool_name="t")
    about = About(scope="s", tool_name="t", references=())
    request = OffloadRequest(result=result, scope="s", about=about, policy=Always(), retrieval_tool=None)
    pauses = _pauses(offloader._engine.offload(request))
    [reference] = offloader.offload([TextBlock(text)], tool_name="t", scope="s").references
    arguments: dict[str, Any] = {"native_media": False, "retrieval_tool": "read"}
    searching = _pauses(offloader._engine.retrieve(str(reference), "s", pattern="no such row", **arguments))
    reading = _pauses(offloader._engine.retrieve(str(reference), "s", line_range="7-9", **arguments))

    assert megabytes > 4
    assert pauses >= 2 * megabytes - 1  # to encode, and to find the lines
    assert searching > megabytes // 2  # it asks for two megabytes at a time
    assert reading == 0


@pytest.mark.parametrize("selector", ["pattern", "query"])
def test_a_search_pauses_before_content_of_any_size(selector: str) -> None:
    """A slow pattern takes long on a small content, too, and short work must not wait for it."""
    offloader = _offloader(InMemoryStorage(), policies={"*": Always()})
    [reference] = offloader.offload([TextBlock('{"id": 7}')], tool_name="t", scope="s").references
    arguments: dict[str, Any] = {"native_media": False, "retrieval_tool": "read", selector: "id"}

    assert _pauses(offloader._engine.retrieve(str(reference), "s", **arguments)) == 1


async def test_paused_long_work_makes_way_for_waiting_long_work(monkeypatch: pytest.MonkeyPatch) -> None:
    executors = execution._Executors()
    executors.long = UnawaitedThreads(1, name="only-one")
    monkeypatch.setattr(execution, "_executors", executors)
    both, done = threading.Event(), list[str]()

    def work(name: str) -> Effects[str]:
        for _ in range(3):
            assert both.wait(PATIENCE)
            done.append(name)
            yield PAUSE
        return name

    running = [asyncio.ensure_future(execution.arun(work(name))) for name in ("a", "b")]
    await asyncio.sleep(0)  # both have begun: one has the thread, the other waits for it
    both.set()

    assert await asyncio.wait_for(asyncio.gather(*running), PATIENCE) == ["a", "b"]
    assert done[:2] == ["a", "b"]
    assert sorted(done) == ["a"] * 3 + ["b"] * 3


async def test_work_that_began_as_short_continues_as_long() -> None:
    threads = list[str]()

    def work() -> Effects[None]:
        for _ in range(3):
            threads.append(threading.current_thread().name.partition("_")[0])
            yield PAUSE

    await asyncio.wait_for(execution.arun(work(), short=True), PATIENCE)

    assert threads == ["coatcheck-local", "coatcheck-long", "coatcheck-long"]


def test_paused_long_work_lets_short_work_end_first(monkeypatch: pytest.MonkeyPatch, released: threading.Event) -> None:
    executors = execution._Executors()
    monkeypatch.setattr(execution, "_executors", executors)
    monkeypatch.setattr(execution, "GIVE_WAY_SECONDS", PATIENCE)
    ended = list[str]()

    def short() -> None:
        released.wait(PATIENCE)
        ended.append("short")

    running = executors.short.submit(short)
    pausing = threading.Thread(target=lambda: ended.append(f"long {execution._ends_turn(executors.long)}"), daemon=True)
    pausing.start()
    released.set()
    pausing.join(PATIENCE)

    assert ended == ["short", "long False"]
    running.result(PATIENCE)  # the future has its result only after the work has ended
    monkeypatch.setattr(execution, "GIVE_WAY_SECONDS", 0.0)
    hanging = threading.Event()
    executors.short.submit(hanging.wait, PATIENCE)
    assert execution._ends_turn(executors.long) is False  # it does not wait forever
    hanging.set()


# No thread.


@pytest.mark.parametrize("storage", [InMemoryStorage, DictStorage, AsyncDictStorage])
async def test_without_free_threads_async_methods_work_like_sync_ones(
    storage: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        msg = "can't start new thread"
        raise RuntimeError(msg)

    monkeypatch.setattr(execution, "_executors", execution._Executors())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    offloader = _offloader(storage(), policies={"asked": lambda _: True})
    for tool_name in ("t", "asked"):
        for block in (SMALL, BIG, TextBlock(BIG.text * 12)):
            outcome = await asyncio.wait_for(offloader.aoffload([block], tool_name=tool_name), PATIENCE)
            assert isinstance(outcome, Offloaded)
            reference = outcome.references[0]
            assert (await offloader.aload(reference)).text == block.text
            assert (await offloader.aretrieve(reference, pattern="small|row 777$")).matches
    assert await offloader.aexpand("nothing") == "nothing"


async def test_a_storage_that_fails_when_no_thread_is_left_keeps_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        msg = "can't start new thread"
        raise RuntimeError(msg)

    def fail(_: int) -> None:
        raise StopIteration

    monkeypatch.setattr(execution, "_executors", execution._Executors())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    outcome = await asyncio.wait_for(_offloader(CountingStorage(fail)).aoffload([BIG], tool_name="t"), PATIENCE)

    assert outcome == Kept(blocks=(BIG,), reason="storage failed")


def _run(script: str) -> str:
    # The tests may run from a wheel, so the script must find whatever this process imports.
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *filter(None, sys.path)])}
    command = [sys.executable, "-c", dedent(script)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=3 * PATIENCE)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


AT_THE_END = """
    import asyncio, atexit, sys, threading
    from coatcheck import ByteCounter, FileStorage, InMemoryStorage, Offloader, TextBlock
    from tests.core.storages import AsyncDictStorage, DictStorage

    def work() -> None:
        threading.main_thread().join()
        for storage in (InMemoryStorage(), DictStorage(), AsyncDictStorage()):
            offloader = Offloader(storage, token_counter=ByteCounter(), policies={"asked": lambda _: True})
            for tool_name in ("t", "asked"):
                for size in (20_000, 2_000_000):
                    outcome = asyncio.run(offloader.aoffload([TextBlock("x" * size)], tool_name=tool_name, scope="s"))
                    print(type(outcome).__name__)
"""


def test_a_thread_that_outlives_the_main_thread_can_offload() -> None:
    said = _run(f"{AT_THE_END}\n    threading.Thread(target=work).start()")

    assert said.split() == ["Offloaded"] * 12


def test_async_methods_work_while_the_interpreter_shuts_down() -> None:
    said = _run(AT_THE_END.replace("threading.main_thread().join()", "pass") + "\n    atexit.register(work)")

    assert said.split() == ["Offloaded"] * 12


def test_local_work_is_finished_even_if_nobody_awaits_it() -> None:
    said = _run(
        """
        import asyncio, atexit, threading
        from coatcheck import ByteCounter, Offloader, TextBlock

        begun, leaving = threading.Event(), threading.Event()

        def listener(_: object) -> None:
            begun.set()
            leaving.wait(60)
            print("".join(str(number % 10) for number in range(100_000)))

        async def leave() -> None:
            offloader = Offloader(token_counter=ByteCounter(), on_event=listener)
            task = asyncio.ensure_future(offloader.aoffload([TextBlock("x" * 20_000)], tool_name="t", scope="s"))
            await asyncio.to_thread(begun.wait, 20)
            task.cancel()

        atexit.register(leaving.set)
        asyncio.run(leave())
        """
    )

    assert len(said) == 100_001
