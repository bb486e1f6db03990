"""A storage that does not answer is tried once a minute. Every other call fails at once instead of waiting too."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import ByteCounter, Kept, Listed, Offloaded, Offloader, StorageError, TextBlock, ToolResult, Truncated
from coatcheck.engine import execution, loops
from coatcheck.engine.execution import _MANY_BYTES, IN_VAIN_SECONDS, PAUSE_SECONDS
from coatcheck.storage.protocol import newest_first
from tests.core.storages import AsyncDictStorage, DictStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from coatcheck import Outcome, Page, Stored

BIG = "".join(f"row {number}\n" for number in range(2_000))
LIMIT = loops.TIME_LIMIT_SECONDS
PATIENCE = 60
"""Seconds until a test that would wait forever fails. Nothing waits that long if the code is right."""


class Clock:
    """A clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


class HangingStorage(DictStorage):
    """Takes ``seconds`` for each call, then answers, or fails if it is down."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.seconds = LIMIT
        self.is_down = True
        self.calls = 0
        self.meanwhile: list[Callable[[], object]] = []
        """Functions to call while somebody waits for the storage, one per call."""

    def _call(self) -> None:
        self.calls += 1
        for happens in [self.meanwhile.pop()] if self.meanwhile else []:
            happens()
        self._clock.now += self.seconds
        if self.is_down:
            raise ConnectionError

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        self._call()
        super().save(key, content, content_type=content_type, metadata=metadata)

    def load(self, key: str) -> Stored | None:
        self._call()
        return super().load(key)

    def entries(self, prefix: str) -> list[Listed]:
        self._call()
        return []

    def delete(self, key: str) -> None:
        raise NotImplementedError


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (execution, loops):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


@pytest.fixture
def storage(clock: Clock) -> HangingStorage:
    return HangingStorage(clock)


def _offloader(storage: Any, **knobs: Any) -> Offloader:  # noqa: ANN401 - whatever a test tries
    return Offloader(storage, token_counter=ByteCounter(), **knobs)


def _offload(offloader: Offloader, number: int = 0) -> Outcome:
    return offloader.offload([TextBlock(f"{number}\n{BIG}")], tool_name="t", scope="s")


async def _aoffload(offloader: Offloader, number: int) -> Outcome:
    return await offloader.aoffload([TextBlock(f"{number}\n{BIG}")], tool_name="t", scope="s")


def _asleep(storage: HangingStorage) -> Offloader:
    """Return an offloader that has learnt, from one call, that the storage does not answer."""
    offloader = _offloader(storage)
    assert isinstance(_offload(offloader), Kept)
    assert storage.calls == 1
    return offloader


def test_fifty_results_wait_only_once_for_a_silent_storage(storage: HangingStorage, clock: Clock) -> None:
    offloader, began = _offloader(storage), clock.now
    outcomes = [_offload(offloader, number) for number in range(50)]

    assert {outcome.reason for outcome in outcomes if isinstance(outcome, Kept)} == {"storage failed"}
    assert [outcome.blocks for outcome in outcomes] == [(TextBlock(f"{number}\n{BIG}"),) for number in range(50)]
    assert (storage.calls, clock.now - began) == (1, LIMIT)
    assert offloader.stats().failed == 50


async def test_fifty_async_results_wait_only_once_for_a_silent_storage(storage: HangingStorage, clock: Clock) -> None:
    offloader, began = _offloader(storage), clock.now
    for number in range(50):
        assert isinstance(await _aoffload(offloader, number), Kept)

    assert (storage.calls, clock.now - began) == (1, LIMIT)


def test_a_step_of_parallel_calls_waits_only_once_for_a_silent_storage(storage: HangingStorage) -> None:
    results = [ToolResult(blocks=(TextBlock(f"{number}\n{BIG}"),), tool_name="t") for number in range(10)]
    outcomes = _offloader(storage).offload_step(results)

    assert [type(outcome) for outcome in outcomes] == [Kept] * 10
    assert storage.calls == 1


@pytest.mark.parametrize("is_async", [True, False], ids=["async storage", "network storage"])
async def test_a_call_abandoned_at_the_time_limit_counts_as_unanswered(
    is_async: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    released, calls = threading.Event(), []

    class Silent(DictStorage):
        def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
            calls.append(key)
            released.wait(PATIENCE)

    class AsyncSilent(AsyncDictStorage):
        async def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
            calls.append(key)
            await asyncio.Event().wait()

    monkeypatch.setattr(loops, "TIME_LIMIT_SECONDS", 0.01)
    monkeypatch.setattr(execution, "IN_VAIN_SECONDS", 0.001)
    offloader = _offloader(AsyncSilent() if is_async else Silent())
    for number in range(5):
        assert isinstance(await asyncio.wait_for(_aoffload(offloader, number), PATIENCE), Kept)
    released.set()

    assert len(calls) <= 1  # none if the machine is so busy that no thread took it in time


def test_reads_do_not_wait_either_and_say_why(storage: HangingStorage) -> None:
    storage.is_down = False
    offloader = _offloader(storage)
    outcome = _offload(offloader)
    assert isinstance(outcome, Offloaded)
    storage.is_down = True
    with pytest.raises(StorageError, match="ConnectionError"):
        offloader.load(outcome.references[0], scope="s")
    calls = storage.calls

    with pytest.raises(StorageError, match="not tried, because the storage did not answer; the next try is in 60 s"):
        offloader.load(outcome.references[0], scope="s")
    with pytest.raises(StorageError, match="not tried"):
        offloader.retrieve(outcome.references[0], scope="s")
    assert storage.calls == calls


def test_a_storage_on_this_machine_is_always_asked(clock: Clock) -> None:
    class Folder(HangingStorage):
        is_local = True

    storage = Folder(clock)
    offloader = _offloader(storage)
    for number in range(3):
        assert isinstance(_offload(offloader, number), Kept)

    assert storage.calls == 3


def test_the_log_says_of_each_result_that_it_was_not_tried(
    storage: HangingStorage, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    offloader = _asleep(storage)
    clock.now += 20
    _offload(offloader)

    _, last = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert last == (
        "failed to offload: saving 16,892 bytes (HangingStorage) failed: not tried, because the storage did not answer;"
        " the next try is in 40 s"
    )


def test_a_result_that_cannot_stay_whole_is_tried_every_time(storage: HangingStorage) -> None:
    offloader = _offloader(storage, max_inline_tokens=5_000)
    assert isinstance(_offload(offloader), Kept)
    long = [TextBlock(BIG * 2)]

    assert isinstance(offloader.offload(long, tool_name="t", scope="s"), Truncated)
    assert isinstance(_offload(offloader), Kept)
    assert storage.calls == 2
    storage.is_down = False
    assert isinstance(offloader.offload(long, tool_name="t", scope="s"), Offloaded)
    assert isinstance(_offload(offloader), Offloaded)


def test_after_a_minute_one_call_tries_and_the_others_go_on_without_waiting(
    storage: HangingStorage, clock: Clock
) -> None:
    offloader = _asleep(storage)
    others: list[Outcome] = []
    clock.now += PAUSE_SECONDS
    storage.meanwhile = [lambda: others.extend(_offload(offloader, number) for number in range(1, 4))]
    _offload(offloader)

    assert [type(outcome) for outcome in others] == [Kept] * 3
    assert storage.calls == 2


def test_if_the_try_fails_too_there_is_another_pause(storage: HangingStorage, clock: Clock) -> None:
    offloader = _asleep(storage)
    clock.now += PAUSE_SECONDS
    for number in range(10):
        _offload(offloader, number)

    assert storage.calls == 2


def test_once_a_try_is_answered_everything_is_stored_again(storage: HangingStorage, clock: Clock) -> None:
    offloader = _asleep(storage)
    storage.is_down = False
    assert isinstance(_offload(offloader), Kept)
    clock.now += PAUSE_SECONDS

    assert [type(_offload(offloader, number)) for number in range(3)] == [Offloaded] * 3


async def test_a_cancelled_try_leaves_the_next_try_to_another_call(clock: Clock) -> None:
    class Waiting(AsyncDictStorage):
        begun = asyncio.Event()

        async def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
            if not self.begun.is_set():
                self.begun.set()
                await asyncio.Event().wait()
            await super().save(key, content, content_type=content_type, metadata=metadata)

    storage = Waiting()
    offloader = _offloader(storage)
    offloader._storage._next_try = clock.now + PAUSE_SECONDS
    clock.now += PAUSE_SECONDS
    trying = asyncio.ensure_future(_aoffload(offloader, 0))
    await asyncio.wait_for(storage.begun.wait(), PATIENCE)
    trying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trying

    assert isinstance(await _aoffload(offloader, 1), Kept)
    clock.now += PAUSE_SECONDS
    assert isinstance(await _aoffload(offloader, 2), Offloaded)


def test_a_storage_that_fails_at_once_is_tried_every_time(storage: HangingStorage) -> None:
    storage.seconds = IN_VAIN_SECONDS / 2
    offloader = _offloader(storage)
    for number in range(5):
        _offload(offloader, number)

    assert storage.calls == 5


def test_a_storage_that_answers_other_calls_is_tried_again_after_an_unanswered_one(storage: HangingStorage) -> None:
    offloader = _offloader(storage)

    def answer_another() -> None:
        storage.is_down = False
        assert isinstance(_offload(offloader, 1), Offloaded)
        storage.is_down = True

    storage.meanwhile = [answer_another]
    assert isinstance(_offload(offloader), Kept)
    storage.is_down = False

    assert isinstance(_offload(offloader, 2), Offloaded)


def test_large_content_that_takes_too_long_says_nothing_about_the_storage(storage: HangingStorage) -> None:
    offloader = _offloader(storage)
    offloader.offload([TextBlock("x" * (_MANY_BYTES + 1))], tool_name="t", scope="s")
    storage.is_down = False

    assert isinstance(_offload(offloader), Offloaded)


def test_large_content_that_is_tried_during_a_pause_does_not_extend_it(storage: HangingStorage, clock: Clock) -> None:
    offloader = _asleep(storage)
    clock.now += PAUSE_SECONDS - LIMIT
    large = offloader.offload([TextBlock("x" * (_MANY_BYTES + 1))], tool_name="t", scope="s")
    assert (type(large), storage.calls) == (Truncated, 2)
    storage.is_down = False

    assert isinstance(_offload(offloader), Offloaded)


def test_a_whole_load_says_nothing_about_a_storage_that_agents_read_in_parts(clock: Clock) -> None:
    class Ranging(HangingStorage):
        def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
            return self.load(key)

    storage = Ranging(clock)
    offloader = _offloader(storage)
    storage.is_down = False
    outcome = _offload(offloader)
    assert isinstance(outcome, Offloaded)
    storage.is_down = True
    with pytest.raises(StorageError, match="ConnectionError"):
        offloader.load(outcome.references[0], scope="s")
    storage.is_down = False

    assert isinstance(_offload(offloader, 1), Offloaded)


def test_listing_a_page_does_not_wait_either(clock: Clock) -> None:
    class Paging(HangingStorage):
        def page(self, prefix: str, *, limit: int, after: str | None = None) -> Page:
            self._call()
            return newest_first(super().entries(prefix), limit=limit, after=after)

    storage = Paging(clock)
    offloader = _asleep(storage)

    with pytest.raises(StorageError, match="not tried"):
        offloader.list(scope="s")
    assert storage.calls == 1


def test_deletions_by_the_host_are_tried_and_say_nothing_about_the_storage(storage: HangingStorage) -> None:
    offloader = _asleep(storage)
    storage.is_down, storage.seconds = False, IN_VAIN_SECONDS
    assert offloader.delete_scope("s") == 0
    assert isinstance(_offload(offloader), Kept)

    other = _offloader(storage)
    storage.is_down = True
    with pytest.raises(StorageError, match="ConnectionError"):
        other.delete_scope("s")
    storage.is_down = False
    assert isinstance(_offload(other), Offloaded)
