"""Deleting many entries at once, where the storage can: how many calls it takes, what is left, and what is spared."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import Listed, Offloader, StorageError
from coatcheck.core.references import Key
from coatcheck.engine import cleanup
from coatcheck.engine.execution import StorageAccess, run
from tests.core.storages import DictStorage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

OLD = 1_000.0
DAY = 86_400.0


class ManyStorage(DictStorage):
    """Lists, deletes, and deletes many at once. Records each call."""

    def __init__(self, leaves: Callable[[Sequence[str]], Any] = lambda _: []) -> None:
        super().__init__()
        self.leaves = leaves
        self.calls: list[tuple[str, int]] = []
        self.times: dict[str, float] = {}
        self.after_call: Callable[[], object] = lambda: None

    def entries(self, prefix: str) -> Iterable[Listed]:
        self.calls.append(("entries", len(prefix)))
        listed = [
            Listed(key=key, size=1, modified=self.times.get(key, OLD)) for key in self.kept if key.startswith(prefix)
        ]
        self.after_call()
        return listed

    def delete(self, key: str) -> None:
        self.calls.append(("delete", 1))
        self.kept.pop(key, None)

    def delete_many(self, keys: Sequence[str]) -> Collection[str]:
        self.calls.append(("delete_many", len(keys)))
        left = self.leaves(keys)
        for key in keys:
            if left is None or key not in left:
                self.kept.pop(key, None)
        self.after_call()
        return left  # type: ignore[no-any-return]

    def count(self, method: str) -> int:
        return sum(1 for called, _ in self.calls if called == method)


class AsyncManyStorage(ManyStorage):
    """The same, with ``delete_many`` as a coroutine."""

    async def delete_many(self, keys: Sequence[str]) -> Collection[str]:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().delete_many(keys)


class RefusesOne(ManyStorage):
    """Deletes no entry whose key is in ``refused``."""

    def __init__(self) -> None:
        super().__init__(lambda keys: [key for key in keys if key in self.refused])
        self.refused: set[str] = set()

    def delete(self, key: str) -> None:
        if key in self.refused:
            message = "access denied"
            raise PermissionError(13, message)
        super().delete(key)


def keys_of(scope: str, count: int) -> list[str]:
    return [str(Key.of(scope, f"{number:064x}"[::-1])) for number in range(count)]


def fill(storage: DictStorage, keys: Iterable[str]) -> None:
    for key in keys:
        storage.save(key, b"x", content_type="text/plain", metadata={})


def swept(storage: DictStorage) -> int:
    limits = cleanup.SweepLimits(max_age_seconds=DAY, max_bytes=None, max_scope_bytes=None)
    return run(cleanup.sweep(StorageAccess(storage), limits, now=time.time()))


# A scope.


@pytest.mark.parametrize("kind", [ManyStorage, AsyncManyStorage])
def test_a_scope_is_deleted_in_as_few_calls_as_its_size_allows(kind: type[ManyStorage]) -> None:
    storage = kind()
    fill(storage, [*keys_of("mine", 2_500), *keys_of("yours", 1)])

    assert Offloader(storage).delete_scope("mine") == 2_500

    assert [size for called, size in storage.calls if called == "delete_many"] == [cleanup.TOGETHER] * 10
    assert storage.count("delete") == 0
    assert list(storage.kept) == keys_of("yours", 1)


async def test_the_async_method_makes_the_same_calls() -> None:
    storage = AsyncManyStorage()
    fill(storage, keys_of("mine", 600))

    assert await Offloader(storage).adelete_scope("mine") == 600

    assert storage.count("delete_many") == 3
    assert not storage.kept


def test_a_single_entry_is_deleted_with_delete() -> None:
    storage = ManyStorage()
    fill(storage, keys_of("mine", 1))

    assert Offloader(storage).delete_scope("mine") == 1

    assert (storage.count("delete"), storage.count("delete_many")) == (1, 0)


@pytest.mark.parametrize("left", [3, 300])
def test_entries_that_delete_many_leaves_are_deleted_one_by_one(left: int) -> None:
    storage = ManyStorage(lambda keys: keys[-left:])
    fill(storage, keys_of("mine", 300))

    assert Offloader(storage).delete_scope("mine") == 300

    assert not storage.kept
    assert storage.count("delete") == min(left, 250) + min(left, 50)


def test_an_undeletable_entry_raises_the_error_of_delete_and_the_rest_of_its_batch_is_gone() -> None:
    storage = RefusesOne()
    fill(storage, keys_of("mine", 200))
    storage.refused = set(keys_of("mine", 200)[:1])

    with pytest.raises(StorageError, match=r"deleting \(RefusesOne\) failed: PermissionError"):
        Offloader(storage).delete_scope("mine")

    assert set(storage.kept) == storage.refused


def test_a_server_that_fails_is_not_asked_to_delete_the_rest() -> None:
    storage = RefusesOne()
    fill(storage, keys_of("mine", 2_000))
    storage.refused = set(storage.kept)

    with pytest.raises(StorageError):
        Offloader(storage).delete_scope("mine")

    assert storage.count("delete_many") == 1


def test_an_error_from_delete_many_becomes_a_storage_error() -> None:
    def fail(keys: Sequence[str]) -> None:
        raise ConnectionResetError(keys)

    storage = ManyStorage(fail)
    fill(storage, keys_of("mine", 2))

    with pytest.raises(StorageError, match=r"^deleting \(ManyStorage\) failed: ConnectionResetError$"):
        Offloader(storage).delete_scope("mine")


@pytest.mark.parametrize("answer", [None, "all", b"keys", 3])
def test_an_answer_that_is_not_a_collection_of_keys_is_refused(answer: Any) -> None:  # noqa: ANN401 - what no storage may return
    class Answering(ManyStorage):
        def delete_many(self, _: Sequence[str]) -> Any:  # noqa: ANN401 - as above
            return answer

    storage = Answering()
    fill(storage, keys_of("mine", 2))

    with pytest.raises(StorageError, match=r"^Answering.delete_many must return the keys that it left, such as \[\], "):
        Offloader(storage).delete_scope("mine")


# A sweep.


def test_a_sweep_checks_and_deletes_the_entries_of_a_scope_together() -> None:
    storage = ManyStorage()
    fill(storage, [*keys_of("a", 2_500), *keys_of("b", 20), *keys_of("c", 1)])

    assert swept(storage) == 2_521

    assert not storage.kept
    assert storage.count("entries") == 1 + 3 + 1 + 1  # everything, then once per 1,000 entries of a scope
    assert storage.count("delete_many") == 10 + 1
    assert storage.count("delete") == 1


def test_a_sweep_spares_entries_used_since_it_listed_everything() -> None:
    storage = ManyStorage()
    keys = keys_of("mine", 30)
    index = f"{keys[0]}-lines"
    fill(storage, [*keys, index])
    saved_again = [keys[0], keys[7]]
    storage.after_call = lambda: storage.times.update(dict.fromkeys(saved_again, time.time()))

    assert swept(storage) == 28

    assert set(storage.kept) == {*saved_again, index}, "an index stays with its content"


def test_an_entry_that_delete_many_leaves_is_checked_again_before_it_is_deleted_alone() -> None:
    used, unused, *others = keys_of("mine", 30)

    def leave(_: Sequence[str]) -> Collection[str]:
        storage.times[used] = time.time()
        return {used, unused}

    storage = ManyStorage(leave)
    fill(storage, [used, unused, *others])

    assert swept(storage) == 29
    assert [*storage.kept] == [used]
    assert storage.count("delete") == 1


def test_a_sweep_counts_only_entries_it_found_again() -> None:
    storage = ManyStorage()
    keys = keys_of("mine", 30)
    fill(storage, keys)
    storage.after_call = lambda: storage.kept.pop(keys[3], None)

    assert swept(storage) == 29


def test_a_sweep_raises_the_error_of_delete() -> None:
    storage = RefusesOne()
    fill(storage, keys_of("mine", 30))
    storage.refused = set(keys_of("mine", 30)[:1])

    with pytest.raises(StorageError, match=r"deleting \(RefusesOne\) failed: PermissionError"):
        swept(storage)

    assert set(storage.kept) == storage.refused
