"""InMemoryStorage: the contract, its limits, and what it evicts first."""

from __future__ import annotations

import copy
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from coatcheck import (
    Block,
    ByteCounter,
    InMemoryStorage,
    InvalidRequest,
    Kept,
    MediaBlock,
    Offloader,
    ReferenceExpired,
    Storage,
    StorageError,
    TextBlock,
)
from coatcheck.testing import (
    DeletesContract,
    ListsContract,
    ListsPagesContract,
    ReadsRangesContract,
    StorageContract,
    SweepsContract,
)
from coatcheck.testing.samples import Entry, make_entry, noise
from coatcheck.testing.storage import check_holds, save


class TestInMemoryStorage(
    StorageContract, ReadsRangesContract, DeletesContract, ListsContract, ListsPagesContract, SweepsContract
):
    now = 1_000.0

    @pytest.fixture
    def storage(self) -> InMemoryStorage:
        return InMemoryStorage(clock=lambda: self.now)

    def make_older(self, storage: Storage, key: str) -> bool:
        self.now += 60
        return True


def entries(count: int, *, size: int = 100) -> list[Entry]:
    return [make_entry(noise(size, seed=number)) for number in range(count)]


def held(storage: InMemoryStorage) -> list[str]:
    return [listed.key for listed in storage.entries("")]


def test_the_least_recently_used_entry_is_evicted_first() -> None:
    storage = InMemoryStorage(max_entries=3)
    first, second, third, fourth = entries(4)
    for entry in (first, second, third):
        save(storage, entry)
    storage.load(first.key)

    save(storage, fourth)

    assert held(storage) == [third.key, first.key, fourth.key]


def test_reading_a_range_counts_as_use() -> None:
    storage = InMemoryStorage(max_entries=2)
    first, second, third = entries(3)
    for entry in (first, second):
        save(storage, entry)
    storage.load_range(first.key, start=0, length=0)

    save(storage, third)

    assert held(storage) == [first.key, third.key]


def test_a_line_index_is_not_evicted_before_its_content_even_if_only_that_is_read() -> None:
    storage = InMemoryStorage(max_entries=3, clock=iter(range(6)).__next__)
    first, second, third = entries(3)
    index = replace(first, key=f"{first.key}-lines")
    for entry in (first, index, second):
        save(storage, entry)
    storage.load(first.key)

    save(storage, third)

    assert {listed.key: listed.modified for listed in storage.entries("")} == {first.key: 3, index.key: 3, third.key: 4}


def test_saving_again_counts_as_use_and_adds_no_bytes() -> None:
    storage = InMemoryStorage(max_bytes=300)
    first, second, third, fourth = entries(4)
    for entry in (first, second, first, third, first):
        save(storage, entry)
    assert held(storage) == [second.key, third.key, first.key]

    save(storage, fourth)

    assert held(storage) == [third.key, first.key, fourth.key]


def test_listing_does_not_count_as_use() -> None:
    storage = InMemoryStorage(max_entries=2)
    first, second, third = entries(3)
    for entry in (first, second):
        save(storage, entry)
    storage.entries(first.key)

    save(storage, third)

    assert held(storage) == [second.key, third.key]


def test_stored_bytes_never_exceed_the_limit() -> None:
    storage = InMemoryStorage(max_bytes=1_000)
    for entry in entries(50):
        save(storage, entry)

    assert sum(listed.size for listed in storage.entries("")) == 1_000


def test_large_content_evicts_as_many_entries_as_it_needs() -> None:
    storage = InMemoryStorage(max_bytes=1_000)
    small, large = entries(10), make_entry(noise(950, seed=99))
    for entry in small:
        save(storage, entry)

    save(storage, large)

    assert held(storage) == [large.key]
    check_holds(storage, large, "although it is nearly as large as the storage")


def test_content_larger_than_the_storage_is_refused_and_evicts_nothing() -> None:
    storage = InMemoryStorage(max_bytes=150)
    small, large = make_entry(noise(100)), make_entry(noise(151))
    save(storage, small)

    with pytest.raises(StorageError, match="max_bytes=150"):
        save(storage, large)

    assert held(storage) == [small.key]


def test_content_as_large_as_the_storage_fits() -> None:
    storage = InMemoryStorage(max_bytes=150)
    save(storage, make_entry(noise(150)))

    assert len(held(storage)) == 1


def test_a_copy_of_the_storage_shares_its_limit() -> None:
    storage = InMemoryStorage(max_bytes=150)
    first, second = entries(2)

    for each, entry in ((copy.copy(storage), first), (storage, second)):
        save(each, entry)

    assert held(storage) == [second.key]


def test_deletion_frees_bytes() -> None:
    storage = InMemoryStorage(max_bytes=200)
    first, second, third = entries(3)
    for entry in (first, second):
        save(storage, entry)
    storage.delete(first.key)

    save(storage, third)

    assert held(storage) == [second.key, third.key]


def test_clear_removes_everything_and_frees_the_bytes() -> None:
    storage = InMemoryStorage(max_bytes=200)
    first, second, third = entries(3)
    for entry in (first, second):
        save(storage, entry)

    storage.clear()

    assert held(storage) == []
    assert storage.load(first.key) is None
    for entry in (second, third):
        save(storage, entry)
    assert len(held(storage)) == 2


def test_many_threads_never_exceed_its_limits_or_corrupt_its_count() -> None:
    storage = InMemoryStorage(max_bytes=1_000, max_entries=8)
    saved = entries(40)
    together = threading.Barrier(8)
    too_much: list[int] = []

    def work(number: int) -> None:
        together.wait()
        for step in range(300):
            entry = saved[(number * 7 + step) % len(saved)]
            save(storage, entry)
            found = storage.load(entry.key)
            assert found is None or found.content == entry.content  # None if others have evicted it meanwhile
            if step % 9 == 0:
                storage.delete(entry.key)
            if step % 50 == 0:
                storage.clear()
            too_much.extend(listed.size for listed in storage.entries("")[8:])

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))

    assert too_much == []
    assert storage._bytes == sum(listed.size for listed in storage.entries(""))


def test_evicted_content_has_expired() -> None:
    offloader = Offloader(InMemoryStorage(max_entries=1), token_counter=ByteCounter())
    first, second = (
        str(offloader.offload([TextBlock(letter * 20_000)], tool_name="t").references[0]) for letter in "ab"
    )

    assert offloader.load(second).text == "b" * 20_000
    with pytest.raises(ReferenceExpired):
        offloader.load(first)


@pytest.mark.parametrize(
    ("blocks", "storage"),
    [
        ([TextBlock("row\n" * 300_000)], InMemoryStorage(max_entries=1)),
        ([TextBlock("row\n" * 300_000)], InMemoryStorage(max_bytes=1_200_100)),
        ([TextBlock(f"{number} " + "word " * 400) for number in range(40)], InMemoryStorage(max_entries=1)),
        ([MediaBlock(bytes([number]), "image/png") for number in range(40)], InMemoryStorage(max_entries=40)),
    ],
    ids=["the line index, by count", "the line index, by bytes", "where items begin", "the list of references"],
)
def test_a_result_whose_own_entries_would_evict_it_is_not_offloaded(
    blocks: list[Block], storage: InMemoryStorage
) -> None:
    offloader = Offloader(storage, token_counter=ByteCounter(), max_inline_tokens=2_000_000)

    outcome = offloader.offload(blocks, tool_name="t")

    assert isinstance(outcome, Kept)
    assert outcome.reason == "storage failed"


def test_its_repr_shows_its_limits() -> None:
    assert repr(InMemoryStorage()) == "InMemoryStorage(max_bytes=256_000_000, max_entries=100_000)"


@pytest.mark.parametrize("name", ["max_bytes", "max_entries"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, "1", None])
def test_a_limit_is_a_whole_number_above_zero(name: str, value: object) -> None:
    with pytest.raises(InvalidRequest, match=f"{name} must be positive, a whole number above 0"):
        InMemoryStorage(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(("max_bytes", "max_entries"), [(100, 2), (200, 1)])
def test_content_that_is_saved_again_may_evict_its_line_index(max_bytes: int, max_entries: int) -> None:
    (entry,) = entries(1)
    storage = InMemoryStorage(max_bytes=max_bytes, max_entries=max_entries)
    for each in (entry, replace(entry, key=f"{entry.key}-lines"), entry):  # the index evicts its content
        save(storage, each)

    assert held(storage) == [entry.key]


def test_reading_refreshes_the_time() -> None:
    now = iter([1.0, 2.0, 3.0, 4.0])
    storage = InMemoryStorage(clock=lambda: next(now))
    first, second = entries(2)
    for entry in (first, second):
        save(storage, entry)
    storage.load_range(first.key, start=0, length=1)

    assert {listed.key: listed.modified for listed in storage.entries("")} == {first.key: 3.0, second.key: 2.0}


def test_a_sweep_frees_bytes_and_counts_a_repeated_key_once() -> None:
    storage = InMemoryStorage(max_bytes=200, clock=lambda: 5.0)
    first, second, third = entries(3)
    for entry in (first, second):
        save(storage, entry)

    assert storage.sweep([first.key, first.key], before=6.0) == 1

    save(storage, third)
    assert held(storage) == [second.key, third.key]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_forked_in_the_middle_of_a_save_works_on_a_copy() -> None:
    storage = InMemoryStorage(max_bytes=200)
    first, second, third = entries(3)
    for entry in (first, second):
        save(storage, entry)

    with storage._lock:  # as if another thread were in the middle of a save and had not counted yet
        storage._bytes += 1_000
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # ends a child that waits for a lock that nobody releases, so the test fails
            save(storage, third)
            os._exit(0 if held(storage) == [second.key, third.key] else 1)
        storage._bytes -= 1_000

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert held(storage) == [first.key, second.key]
