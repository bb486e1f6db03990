"""Where work runs: on which threads, under which time limits, and in a forked child."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import inspect
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import (
    ByteCounter,
    FileStorage,
    InMemoryStorage,
    InvalidRequest,
    Kept,
    Offloaded,
    Offloader,
    TextBlock,
)
from coatcheck.core.references import content_digest
from coatcheck.core.settings import NETWORK_THREADS
from coatcheck.engine import contents, execution, loops
from coatcheck.engine.loops import BackgroundLoop
from tests.core.storages import AsyncDictStorage, DictStorage, Shelves

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping

    from coatcheck import Outcome, Stored, ToolResult

COUNTER = ByteCounter()
BIG = TextBlock("".join(f"row {number}\n" for number in range(5_000)))
LARGE = TextBlock("words of a large result\n" * 100_000)
"""More than 2 MB, so that it is hashed on another thread."""

REPOSITORY = Path(__file__).parents[2]

PATIENCE = 60
"""Seconds until a test that would wait forever fails. Nothing waits that long if the code is right."""


class SilentAsyncStorage(AsyncDictStorage):
    """Never answers."""

    async def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        await asyncio.Event().wait()


class SilentStorage(DictStorage):
    """Blocks until the test ends."""

    def __init__(self, released: threading.Event) -> None:
        super().__init__()
        self._released = released

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        self._released.wait(PATIENCE)


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Return an event that is set at the end of the test, to release every thread that waits for it."""
    event = threading.Event()
    yield event
    event.set()


def _offloader(storage: Any, **knobs: Any) -> Offloader:  # noqa: ANN401 - whatever a test tries
    return Offloader(storage, **{"token_counter": COUNTER, **knobs})


async def _in_patience(offloader: Offloader, block: TextBlock = BIG, *, times: int = 1) -> list[Outcome]:
    calls = [offloader.aoffload([block], tool_name=f"tool_{number}") for number in range(times)]
    return await asyncio.wait_for(asyncio.gather(*calls), PATIENCE)


# Time.


@pytest.mark.parametrize("is_async", [True, False], ids=["async storage", "network storage"])
async def test_a_storage_that_never_answers_fails_at_the_time_limit(
    is_async: bool, released: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "TIME_LIMIT_SECONDS", 0.01)
    [outcome] = await _in_patience(_offloader(SilentAsyncStorage() if is_async else SilentStorage(released)))

    assert isinstance(outcome, Kept)
    assert outcome.reason == "storage failed"


def test_the_time_limit_holds_in_the_sync_driver_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loops, "TIME_LIMIT_SECONDS", 0.01)
    outcomes: list[Outcome] = []
    offloader = _offloader(SilentAsyncStorage())
    calling = threading.Thread(target=lambda: outcomes.append(offloader.offload([BIG], tool_name="t")), daemon=True)
    calling.start()
    calling.join(PATIENCE)

    assert [outcome.blocks for outcome in outcomes] == [(BIG,)]
    assert "no answer in time" in caplog.text


async def test_a_hanging_storage_takes_no_thread_from_another(released: threading.Event) -> None:
    hanging = asyncio.ensure_future(_in_patience(_offloader(SilentStorage(released)), times=2 * NETWORK_THREADS))
    healthy = await _in_patience(_offloader(DictStorage()))
    still_hanging = not hanging.done()
    released.set()

    assert [type(outcome) for outcome in healthy] == [Offloaded]
    assert still_hanging
    assert len(await hanging) == 2 * NETWORK_THREADS


async def test_threads_end_with_the_offloader_they_work_for() -> None:
    def ours() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name.startswith("coatcheck-network")}

    before = ours()
    offloader = _offloader(DictStorage())
    await _in_patience(offloader, times=4)
    made = ours() - before
    del offloader
    gc.collect()
    for thread in made:
        await asyncio.to_thread(thread.join, PATIENCE)

    assert made
    assert not any(thread.is_alive() for thread in made)


# Threads.


class _RefusingExecutor(ThreadPoolExecutor):
    def submit(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401
        pytest.fail("asyncio's own pool was used")


@pytest.mark.no_cover
@pytest.mark.parametrize("storage", [InMemoryStorage, DictStorage, AsyncDictStorage])
async def test_the_hosts_own_thread_pool_is_not_used(storage: type) -> None:
    asyncio.get_running_loop().set_default_executor(_RefusingExecutor())
    offloader = _offloader(storage(), policies={"*": lambda _: True})
    [outcome] = await _in_patience(offloader, LARGE)

    assert isinstance(outcome, Offloaded)
    assert (await offloader.aretrieve(str(outcome.references[0]), pattern="large")).matches == 10_000


async def test_policies_that_call_an_offloader_themselves_do_not_wait_for_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loops, "TIME_LIMIT_SECONDS", PATIENCE / 4)  # stops a policy that waits for another one
    times = NETWORK_THREADS
    together = threading.Barrier(times)

    def asking(_: ToolResult) -> bool:
        together.wait(PATIENCE)  # until every policy runs
        return isinstance(asyncio.run(inner.aoffload([BIG], tool_name="t", policy=lambda _: True)), Offloaded)

    inner = _offloader(DictStorage())
    outer = _offloader(DictStorage(), policies={"*": asking})
    outcomes = await _in_patience(outer, TextBlock("short, but wanted elsewhere"), times=times)

    assert all(isinstance(outcome, Offloaded) for outcome in outcomes)


async def test_at_most_two_threads_compete_with_the_loop(
    released: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "_executors", execution._Executors())
    before = set(threading.enumerate())  # includes threads of other tests that may be about to end
    entered = threading.Semaphore(0)

    class Waiting(ByteCounter):
        def exceeds(self, text: str, limit: int) -> bool:
            entered.release()
            released.wait(PATIENCE)
            return super().exceeds(text, limit)

    running = asyncio.ensure_future(_in_patience(_offloader(InMemoryStorage(), token_counter=Waiting()), times=8))
    await asyncio.to_thread(lambda: [entered.acquire(timeout=PATIENCE) for _ in range(2)])
    now = set(threading.enumerate()) - before
    ours = [thread.name for thread in now if thread.name.startswith("coatcheck-local")]
    released.set()

    assert len(await running) == 8
    assert len(ours) == 2


async def test_large_content_is_hashed_on_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: dict[int, str] = {}

    def noting(content_type: str, data: bytes) -> str:
        hashed[len(data)] = threading.current_thread().name.partition("_")[0]
        return content_digest(content_type, data)

    monkeypatch.setattr(contents, "content_digest", noting)
    offloader = _offloader(InMemoryStorage())
    outcomes = [*await _in_patience(offloader, LARGE), *await _in_patience(offloader)]

    assert all(isinstance(outcome, Offloaded) for outcome in outcomes)
    assert hashed[len(LARGE.text)] == "coatcheck-hash"
    assert hashed[len(BIG.text)] == "coatcheck-local"


EVERY_STORAGE = pytest.mark.parametrize(
    "make", [FileStorage, lambda _: DictStorage(), lambda _: Shelves()], ids=["file", "dict", "named"]
)


@EVERY_STORAGE
def test_a_counter_that_raises_in_a_preview_prevents_neither_the_save_nor_the_placeholder(
    make: Callable[[Path], object], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Tired(ByteCounter):
        tired = True

        def count(self, text: str) -> int:
            if self.tired and text.startswith("[lines alike"):
                self.tired = False
                raise MemoryError
            return super().count(text)

    offloader = _offloader(make(tmp_path), token_counter=Tired(), max_inline_tokens=20_000)

    outcome = offloader.offload([LARGE], tool_name="t")

    assert isinstance(outcome, Offloaded)
    assert offloader.load(str(outcome.references[0])).data == LARGE.text.encode()
    assert offloader.stats().failed == offloader.stats().truncated == 0
    assert [record.message.partition("\n")[0] for record in caplog.records] == [
        "preview_repeats failed on a result of 't', which is shown more simply: MemoryError"
    ]


@EVERY_STORAGE
def test_a_large_result_is_previewed_while_it_is_hashed(
    make: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    previewed = threading.Event()

    class Noting(ByteCounter):
        def count(self, text: str) -> int:
            if text.startswith("[lines alike"):
                previewed.set()
            return super().count(text)

    def waiting(content_type: str, data: bytes) -> str:
        assert previewed.wait(PATIENCE), "the preview waits for the digest"
        return content_digest(content_type, data)

    monkeypatch.setattr(contents, "content_digest", waiting)
    outcome = _offloader(make(tmp_path), token_counter=Noting()).offload([LARGE], tool_name="t")

    assert isinstance(outcome, Offloaded)


def test_a_large_result_is_stored_when_the_system_has_no_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        msg = "can't start new thread"
        raise RuntimeError(msg)

    storage = DictStorage()
    monkeypatch.setattr(threading.Thread, "start", refuse)
    outcome = _offloader(storage).offload([LARGE], tool_name="t")

    assert isinstance(outcome, Offloaded)
    assert LARGE.text.encode() in [entry.content for entry in storage.kept.values()]


def test_a_loop_other_than_asyncios_gets_an_error_that_says_what_to_use_instead() -> None:
    storage = DictStorage()
    call = Offloader(storage).aoffload([BIG], tool_name="fetch", scope="a")

    with pytest.raises(InvalidRequest, match="need a running asyncio event loop"):
        call.send(None)  # starts the coroutine, as any event loop does

    assert not storage.kept


def test_two_results_are_prepared_at_once() -> None:
    together = threading.Barrier(2)
    cutting = threading.local()

    class Meeting(ByteCounter):
        def head(self, text: str, limit: int) -> str:
            if not hasattr(cutting, "met"):  # the first cut on each thread, for its preview
                cutting.met = together.wait(PATIENCE)
            return super().head(text, limit)

    offloader = _offloader(InMemoryStorage(), token_counter=Meeting())
    with ThreadPoolExecutor(2) as threads:
        outcomes = threads.map(lambda name: offloader.offload([BIG], tool_name=name), ("one", "other"))
        assert all(isinstance(outcome, Offloaded) for outcome in outcomes)


def _run(script: str) -> subprocess.CompletedProcess[str]:
    # The tests may run from a wheel, so the script must find whatever this process imports.
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *filter(None, sys.path)])}
    command = [sys.executable, "-W", "ignore", "-c", dedent(script)]  # Python warns about a fork while threads run
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=2 * PATIENCE)


def test_a_finalizer_can_offload_while_the_interpreter_shuts_down() -> None:
    done = _run(
        """
        from coatcheck import ByteCounter, Offloader, TextBlock

        class Last:
            def __del__(self) -> None:
                print(type(offloader.offload([TextBlock("x" * 90_000)], tool_name="t", scope="s")).__name__)

        offloader = Offloader(token_counter=ByteCounter())
        offloader.offload([TextBlock("y" * 90_000)], tool_name="t", scope="s")
        last = Last()
        """
    )

    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "Offloaded", "")


@pytest.mark.parametrize("what", ["storage", "policy"])
def test_the_process_ends_even_if_a_call_never_returns(what: str) -> None:
    done = _run(
        f"""
        import asyncio, threading
        from coatcheck import ByteCounter, InMemoryStorage, Offloader, TextBlock
        from coatcheck.engine import loops
        from tests.core.storages import DictStorage

        class Hanging(DictStorage):
            def save(self, *_: object, **__: object) -> None:
                threading.Event().wait()

        loops.TIME_LIMIT_SECONDS = loops.CLEAN_UP_SECONDS = 0.01
        hangs = dict(policies={{"*": lambda _: threading.Event().wait()}}) if {what!r} == "policy" else {{}}
        storage = InMemoryStorage() if {what!r} == "policy" else Hanging()  # which has no time limit
        offloader = Offloader(storage, token_counter=ByteCounter(), **hangs)
        outcome = asyncio.run(offloader.aoffload([TextBlock("x" * 20_000)], tool_name="t"))
        print(type(outcome).__name__)
        """
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ("Kept" if what == "storage" else "Offloaded")


def test_an_acknowledged_save_is_kept_even_if_the_process_ends_amid_other_saves(tmp_path: Path) -> None:
    done = _run(
        f"""
        import asyncio
        from coatcheck import ByteCounter, FileStorage, Offloader, TextBlock

        files = FileStorage({str(tmp_path)!r})

        class Remote:  # shows no files, so it is called on threads for networks
            save, load = files.save, files.load

        async def work() -> None:
            texts = [str(number) * 200_000 for number in range(10, 74)]
            running = [offloader.aoffload([TextBlock(text)], tool_name="t") for text in texts]
            for number, coming in enumerate(asyncio.as_completed(running)):
                print((await coming).references[0], flush=True)
                if number == 10:
                    return

        offloader = Offloader(Remote(), token_counter=ByteCounter())
        asyncio.run(work())
        """
    )

    references = done.stdout.split()
    storage = FileStorage(tmp_path)
    whole = {str(number) * 200_000 for number in range(10, 74)}
    assert len(references) == 11, done.stderr
    assert {_offloader(storage).load(reference).text for reference in references} <= whole
    stored = [storage.load(listed.key) for listed in storage.entries("")]
    assert all(entry is None or entry.content.decode() in whole for entry in stored)


def test_a_large_result_is_offloaded_even_while_the_interpreter_shuts_down() -> None:
    done = _run(
        """
        import atexit
        from coatcheck import ByteCounter, Offloader, TextBlock

        def last() -> None:
            outcome = Offloader(token_counter=ByteCounter()).offload([TextBlock("x" * 2_000_000)], tool_name="t")
            print(type(outcome).__name__)

        atexit.register(last)
        """
    )

    assert done.stdout.strip() == "Offloaded", done.stderr


# Forks.


FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")


@FORKS
@pytest.mark.parametrize("shell", ["sync", "async"])
def test_a_forked_child_offloads_without_the_threads_of_its_parent(shell: str) -> None:
    done = _run(
        f"""
        import asyncio, os, signal
        from coatcheck import ByteCounter, FileStorage, InMemoryStorage, Offloader, TextBlock
        from tests.core.storages import AsyncDictStorage, DictStorage

        def work() -> None:
            for storage in (InMemoryStorage(), DictStorage(), AsyncDictStorage()):  # local, network and async
                offloader = Offloader(storage, token_counter=ByteCounter())
                for size in (20_000, 2_000_000):  # the second is hashed on another thread
                    blocks = [TextBlock("x" * size)]
                    if {shell!r} == "sync":
                        outcome = offloader.offload(blocks, tool_name="t")
                    else:
                        outcome = asyncio.run(offloader.aoffload(blocks, tool_name="t"))
                    assert outcome.references, outcome

        work()
        child = os.fork()
        if not child:
            signal.alarm({PATIENCE})  # ends a child that waits forever
            work()
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )

    assert done.stdout.strip() == "0", done.stderr


@FORKS
@pytest.mark.parametrize("held", ["the vocabulary is loaded", "results are counted"])
def test_a_forked_child_does_not_wait_for_a_lock_that_a_thread_of_its_parent_held(held: str) -> None:
    done = _run(
        f"""
        import os, signal, threading
        import tiktoken
        from coatcheck import Offloader, TextBlock
        from coatcheck.core import forks, vocabulary

        forks.LOADING_SECONDS = 0.01  # a fork waits for what is loaded, but this never is
        offloader = Offloader()
        ranks = vocabulary._bundled_ranks
        holding = threading.Event()

        def wait() -> None:
            holding.set()
            threading.Event().wait()

        def count() -> None:
            with offloader._recorder._lock.held:
                wait()

        def load() -> None:
            vocabulary._bundled_ranks = wait
            vocabulary.load_vocabulary("o200k_base")

        threading.Thread(target=load if {held!r} == "the vocabulary is loaded" else count, daemon=True).start()
        assert holding.wait({PATIENCE})
        vocabulary._bundled_ranks = ranks
        child = os.fork()
        if not child:
            signal.alarm({PATIENCE})  # ends a child that waits forever
            outcome = offloader.offload([TextBlock("some words " * 20_000)], tool_name="t")
            os._exit(0 if outcome.references and offloader.stats().offloaded == 1 else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )

    assert done.stdout.strip() == "0", done.stderr


# Misbehaving backends.


class CancelledStorage(AsyncDictStorage):
    """Raises ``CancelledError``, like a client whose own task was cancelled."""

    async def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        raise asyncio.CancelledError


class StoppingStorage(DictStorage):
    """Raises ``StopIteration``, which a future cannot hold."""

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        raise StopIteration


class StubbornStorage(AsyncDictStorage):
    """Resists cancellation until ``released`` is set."""

    def __init__(self, released: threading.Event) -> None:
        super().__init__()
        self._released = released

    async def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        while not self._released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)


class BlockingStorage(AsyncDictStorage):
    """Blocks the loop that it runs on."""

    def __init__(self, released: threading.Event) -> None:
        super().__init__()
        self._released = released

    async def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        self._released.wait(PATIENCE)


class CancelledSyncStorage(DictStorage):
    """Raises ``CancelledError``, like a sync wrapper around an async client whose task was cancelled."""

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        raise asyncio.CancelledError


class CancelledLocalStorage(CancelledSyncStorage):
    """The same, but called on the threads for local work."""

    is_local = True


class DelegatingStorage:
    """A local storage whose plain methods return the awaitables of an async storage."""

    is_local = True

    def __init__(self) -> None:
        self.inner = AsyncDictStorage()

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> Awaitable[None]:
        return self.inner.save(key, content, content_type=content_type, metadata=metadata)

    def load(self, key: str) -> Awaitable[Stored | None]:
        return self.inner.load(key)


async def test_an_awaitable_from_a_plain_method_of_a_local_storage_is_awaited() -> None:
    offloader = _offloader(DelegatingStorage())
    [outcome] = await _in_patience(offloader)

    assert isinstance(outcome, Offloaded)
    assert (await offloader.aload(outcome.references[0])).text == BIG.text


class Promise:
    """Awaitable, but no coroutine."""

    def __init__(self, work: Awaitable[None]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, None, None]:
        return self._work.__await__()


def test_a_sync_call_waits_for_an_awaitable_that_is_no_coroutine_and_logs_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class PromisingStorage(DelegatingStorage):
        def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> Awaitable[None]:
            return Promise(super().save(key, content, content_type=content_type, metadata=metadata))

    offloader = _offloader(PromisingStorage())
    outcome = offloader.offload([BIG], tool_name="t")

    assert isinstance(outcome, Offloaded)
    assert offloader.load(outcome.references[0]).text == BIG.text  # what ended before this has been logged, too
    assert not caplog.records


@pytest.mark.parametrize(
    "storage",
    [CancelledStorage(), CancelledSyncStorage(), CancelledLocalStorage(), StoppingStorage()],
    ids=["cancelled", "cancelled, sync", "cancelled, local", "StopIteration"],
)
async def test_an_exception_that_a_future_cannot_hold_is_a_storage_failure_too(storage: Any) -> None:  # noqa: ANN401
    offloader = _offloader(storage)
    [outcome] = await _in_patience(offloader)

    assert [outcome, offloader.offload([BIG], tool_name="t")] == [Kept(blocks=(BIG,), reason="storage failed")] * 2


async def test_a_call_that_resists_cancellation_is_left_alone(
    released: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "TIME_LIMIT_SECONDS", 0.01)
    monkeypatch.setattr(loops, "CLEAN_UP_SECONDS", 0.01)
    [outcome] = await _in_patience(_offloader(StubbornStorage(released)))
    was_left = not released.is_set()
    released.set()

    assert was_left
    assert isinstance(outcome, Kept)


def test_a_keyboard_interrupt_in_a_storage_ends_the_agent() -> None:
    class Interrupted(DictStorage):
        def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _offloader(Interrupted()).offload([BIG], tool_name="t")


async def test_a_call_abandoned_by_its_loop_ends_without_an_error(released: threading.Event) -> None:
    call = _offloader(SilentStorage(released)).aoffload([BIG], tool_name="t")
    contextvars.copy_context().run(call.send, None)

    call.close()  # in another context, as the interpreter closes the task of a stopped loop


async def test_cancelling_an_agent_cancels_the_call_it_waits_for() -> None:
    ended = asyncio.Event()
    begun = asyncio.Event()

    class Waiting(AsyncDictStorage):
        async def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

    agent = asyncio.ensure_future(_offloader(Waiting()).aoffload([BIG], tool_name="t"))
    await asyncio.wait_for(begun.wait(), PATIENCE)
    agent.cancel()
    with pytest.raises(asyncio.CancelledError):
        await agent

    assert ended.is_set()


async def test_an_answer_that_came_while_the_host_blocked_its_loop_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "TIME_LIMIT_SECONDS", 0.02)
    monkeypatch.setattr(loops, "LAST_LOOK_SECONDS", PATIENCE)

    class Answering(AsyncDictStorage):
        async def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
            asyncio.get_running_loop().call_soon(time.sleep, 2 * loops.TIME_LIMIT_SECONDS)
            for _ in range(3):
                await asyncio.sleep(0.001)
            await super().save(key, content, content_type=content_type, metadata=metadata)

    assert isinstance(await _offloader(Answering()).aoffload([BIG], tool_name="t"), Offloaded)


def test_a_storage_that_blocks_its_loop_times_out_and_the_next_call_gets_a_new_loop(
    released: threading.Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(loops, "TIME_LIMIT_SECONDS", 0.01)
    monkeypatch.setattr(loops, "CLEAN_UP_SECONDS", 0.01)
    background, threads = BackgroundLoop(), set(threading.enumerate())
    monkeypatch.setattr(execution, "_background_loop", background)
    monkeypatch.setattr(loops, "time", SimpleNamespace(monotonic=lambda: 0.0))  # lets even a late call begin
    background._running()
    [abandoned] = set(threading.enumerate()) - threads
    blocked = _offloader(BlockingStorage(released)).offload([BIG], tool_name="t")
    monkeypatch.setattr(loops, "TIME_LIMIT_SECONDS", PATIENCE)
    healthy = _offloader(AsyncDictStorage()).offload([BIG], tool_name="t")
    was_blocked = not released.is_set()
    released.set()
    abandoned.join(PATIENCE)
    gc.collect()

    assert was_blocked
    assert isinstance(blocked, Kept)
    assert isinstance(healthy, Offloaded)
    assert [record.message for record in caplog.records if record.name == "asyncio"] == []


def test_a_late_call_to_an_abandoned_loop_leaves_the_new_one_alone() -> None:
    background = BackgroundLoop()
    abandoned = background._running()
    background._leave(abandoned)
    current = background._running()
    background._leave(abandoned)

    assert background._running() is current
    background._leave(current)


def test_a_call_that_has_not_started_when_its_loop_is_abandoned_is_closed(
    released: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "TIME_LIMIT_SECONDS", 0.01)
    monkeypatch.setattr(loops, "CLEAN_UP_SECONDS", 0.01)
    background, threads = BackgroundLoop(), set(threading.enumerate())
    blocked, begun = threading.Event(), threading.Event()

    def block() -> None:
        blocked.set()
        released.wait(PATIENCE)

    async def work() -> None:
        begun.set()

    background._running().call_soon_threadsafe(block)
    [abandoned] = set(threading.enumerate()) - threads
    assert blocked.wait(PATIENCE)
    call = work()
    with pytest.raises(FutureTimeoutError):
        background.result_of(call)
    released.set()
    abandoned.join(PATIENCE)

    assert inspect.getcoroutinestate(call) == inspect.CORO_CLOSED
    assert not begun.is_set()


def test_a_loop_whose_thread_could_not_start_is_created_again(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, refused = BackgroundLoop(), asyncio.sleep(0, "refused")
    with monkeypatch.context() as full:

        def refuse(_: threading.Thread) -> None:
            msg = "can't start new thread"
            raise RuntimeError(msg)

        full.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start"):
            loop.result_of(refused)

    assert inspect.getcoroutinestate(refused) == inspect.CORO_CLOSED
    assert loop.result_of(asyncio.sleep(0, "answer")) == "answer"
