"""Sweeping: which entries are past a limit, which are spared, and entries saved again while a sweep runs."""

from __future__ import annotations

import time
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import ByteCounter, InMemoryStorage, InvalidRequest, Listed, Offloader, TextBlock
from coatcheck.core.references import Key, scope_part
from coatcheck.engine import cleanup
from coatcheck.engine.cleanup import SweepLimits
from coatcheck.engine.execution import StorageAccess, run
from tests.core.storages import DictStorage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def _offloader(storage: Any = None) -> Offloader:  # noqa: ANN401 - whatever a test tries
    return Offloader(storage, token_counter=ByteCounter())


def _aged(*ages: float) -> tuple[Offloader, InMemoryStorage]:
    times = iter([time.time() - age for age in ages])
    storage = InMemoryStorage(clock=lambda: next(times))
    offloader = _offloader(storage)
    for number in range(len(ages)):
        offloader.offload([TextBlock(f"{number}" + "x" * 20_000)], tool_name="t")
    return offloader, storage


async def test_a_sweep_by_age_spares_younger_entries() -> None:
    offloader, storage = _aged(90_000, 50_000, 10)

    assert offloader.sweep(max_age_seconds=86_400) == 1
    assert await offloader.asweep(max_age_seconds=40_000) == 1
    assert len(storage.entries("")) == 1


def test_a_sweep_by_size_removes_the_oldest_first_and_spares_the_last_hour() -> None:
    offloader, storage = _aged(90_000, 50_000, 10, 5)

    assert offloader.sweep(max_bytes=65_000) == 1
    assert offloader.sweep(max_bytes=1) == 1
    assert len(storage.entries("")) == 2


def test_an_entry_saved_within_the_hour_is_not_reported_as_overdue() -> None:
    _, storage = _aged(90_000, 10)
    listed = storage.entries("")
    limits = SweepLimits(max_age_seconds=None, max_bytes=1, max_scope_bytes=None)

    assert [entry.modified for entry in cleanup.overdue(listed, limits, now=time.time())] == [
        min(entry.modified for entry in listed)
    ]


def test_a_sweep_by_scope_size_leaves_smaller_scopes_alone() -> None:
    ages = iter([90_000, 80_000, 70_000, 60_000])
    storage = InMemoryStorage(clock=lambda: time.time() - next(ages))
    offloader = _offloader(storage)
    for number, scope in enumerate(["small", "large", "large", "large"]):
        offloader.offload([TextBlock(f"{number}" + "x" * 20_000)], tool_name="t", scope=scope)
    before = {listed.key for listed in storage.entries("")}

    assert offloader.sweep(max_scope_bytes=45_000) == 1

    (gone,) = before - {listed.key for listed in storage.entries("")}
    assert gone.startswith(f"{scope_part('large')}/")


class _Aged(DictStorage):
    """Lists the given keys, with their sizes and their ages in seconds, until they are deleted."""

    def __init__(self, listed: dict[str, tuple[int, float]]) -> None:
        super().__init__()
        now = time.time()
        self.listed = {key: Listed(key=key, size=size, modified=now - age) for key, (size, age) in listed.items()}

    def entries(self, prefix: str) -> list[Listed]:
        return [listed for key, listed in self.listed.items() if key.startswith(prefix)]

    def delete(self, key: str) -> None:
        del self.listed[key]


OLDER, YOUNGER = (str(Key.of("scope", digit * 64)) for digit in "01")


def test_a_line_index_is_swept_with_its_content_even_if_there_is_room_for_it() -> None:
    storage = _Aged(
        {
            f"{OLDER}-lines": (10, 90_000),
            OLDER: (1_000, 90_001),
            f"{YOUNGER}-lines": (10, 80_000),
            YOUNGER: (1_000, 80_001),
        }
    )

    assert _offloader(storage).sweep(max_bytes=1_500) == 2

    assert set(storage.listed) == {f"{YOUNGER}-lines", YOUNGER}


def test_a_line_index_whose_content_was_lost_is_swept_after_an_hour() -> None:
    storage = _Aged({f"{OLDER}-lines": (10, 90_000), f"{YOUNGER}-lines": (10, 60)})

    assert _offloader(storage).sweep(max_bytes=10**9) == 1

    assert set(storage.listed) == {f"{YOUNGER}-lines"}


def test_a_line_index_is_as_young_as_its_content_because_reads_may_skip_it() -> None:
    storage = _Aged({OLDER: (1_000, 10), f"{OLDER}-lines": (10, 90_000)})

    limits = SweepLimits(max_age_seconds=50_000, max_bytes=None, max_scope_bytes=None)

    assert cleanup.overdue(storage.entries(""), limits, now=time.time()) == []


def test_a_line_index_stays_if_its_content_was_used_since_the_sweep_listed_it() -> None:
    storage = _Aged({OLDER: (1_000, 90_000), f"{OLDER}-lines": (10, 90_000)})
    past = list(storage.entries(""))
    storage.listed[OLDER] = Listed(key=OLDER, size=1_000, modified=time.time())

    removing = cleanup.remove_unused(StorageAccess(storage), past, now=time.time())

    assert run(removing) == 0


class _SavedAgainMeanwhile(DictStorage):
    """Lists and deletes, but does not sweep. Everything is saved again between one listing and the next."""

    def __init__(self) -> None:
        super().__init__()
        self.modified = time.time() - 90_000

    def entries(self, prefix: str) -> list[Listed]:
        listed = [Listed(key=key, size=1, modified=self.modified) for key in self.kept if key.startswith(prefix)]
        self.modified = time.time()
        return listed

    def delete(self, key: str) -> None:
        del self.kept[key]


def test_a_sweep_spares_entries_saved_again_while_it_ran() -> None:
    storage = _SavedAgainMeanwhile()
    offloader = _offloader(storage)
    offloader.offload([TextBlock("x" * 20_000)], tool_name="t")

    assert offloader.sweep(max_age_seconds=3_600) == 0
    assert len(storage.kept) == 1


class _OldEntries(_SavedAgainMeanwhile):
    """The same, but nothing is saved again."""

    def entries(self, prefix: str) -> list[Listed]:
        listed = super().entries(prefix)
        self.modified = 1_000.0
        return [Listed(key=found.key, size=1, modified=1_000.0) for found in listed]


def test_a_storage_that_only_lists_and_deletes_is_swept_too() -> None:
    storage = _OldEntries()
    offloader = _offloader(storage)
    for text in ("x", "y"):
        offloader.offload([TextBlock(text * 20_000)], tool_name="t")

    assert offloader.sweep(max_age_seconds=3_600) == 2
    assert not storage.kept


class _Many(DictStorage):
    """Lists many old entries one by one, and holds none of them."""

    size = 10_000

    def entries(self, prefix: str) -> Iterator[Listed]:
        for number in range(self.size):
            key = f"{scope_part(str(number // 10))}/{number:016x}"
            if key.startswith(prefix):
                yield Listed(key=key, size=10_000, modified=1_000.0)

    def sweep(self, keys: Sequence[str], *, before: float) -> int:
        return len(keys) if before > 1_000.0 else 0


def test_a_sweep_holds_less_than_a_kilobyte_for_each_entry() -> None:
    offloader = _offloader(_Many())
    tracemalloc.start()
    try:
        assert offloader.sweep(max_age_seconds=3_600) == _Many.size
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 1_000 * _Many.size


def test_a_sweep_without_a_limit_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="max_age_seconds"):
        _offloader().sweep()


@pytest.mark.parametrize(
    "limits",
    [
        {"max_age_seconds": -1},
        {"max_age_seconds": float("nan")},
        {"max_bytes": "1 GB"},
        {"max_age_seconds": True},
        {"max_scope_bytes": -1},
    ],
)
def test_a_wrong_limit_of_a_sweep_is_refused_by_name(limits: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match=next(iter(limits))):
        _offloader().sweep(**limits)
