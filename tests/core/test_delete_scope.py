"""Deleting a scope: it is listed again until only newer entries are found, and leftovers are reported."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from coatcheck import Always, Listed, Offloader, StorageError, TextBlock
from tests.core.storages import DictStorage

if TYPE_CHECKING:
    from collections.abc import Iterable


class PagedStorage(DictStorage):
    """Lists at most ``most`` entries at a time, like a backend that misses the rest."""

    def __init__(self, *, most: int) -> None:
        super().__init__()
        self.most = most
        self.listings = 0
        self.modified = 0.0

    def entries(self, prefix: str) -> Iterable[Listed]:
        self.listings += 1
        keys = [key for key in self.kept if key.startswith(prefix)]
        return [Listed(key=key, size=1, modified=self.modified) for key in keys[: self.most]]

    def delete(self, key: str) -> None:
        self.kept.pop(key, None)


class SavingStorage(PagedStorage):
    """Saves a new entry during each listing, as when the conversation goes on."""

    def entries(self, prefix: str) -> Iterable[Listed]:
        listed = list(super().entries(prefix))
        key = f"{prefix}{self.listings:016x}"
        self.save(key, b"new", content_type="text/plain", metadata={})
        return [*listed, Listed(key=key, size=3, modified=time.time() + 60)]


class WholeSecondsStorage(SavingStorage):
    """The same with whole-second times, as S3 has them: new entries carry the second in which the deletion began."""

    def __init__(self, *, most: int) -> None:
        super().__init__(most=most)
        self.began: float | None = None

    def entries(self, prefix: str) -> Iterable[Listed]:
        self.began = self.began or float(math.floor(time.time()))
        *listed, new = super().entries(prefix)
        return [*listed, replace(new, modified=self.began)]


class KeepingStorage(PagedStorage):
    """Deletes nothing, without raising an error."""

    def delete(self, key: str) -> None:
        pass


def filled(storage: PagedStorage, *, results: int) -> Offloader:
    offloader = Offloader(storage, policies={"*": Always()})
    for number in range(results):
        offloader.offload([TextBlock(f"result {number}\n")], tool_name="t", scope="mine")
    offloader.offload([TextBlock("of another scope\n")], tool_name="t", scope="yours")
    return offloader


async def test_entries_that_one_listing_misses_are_found_by_the_next() -> None:
    storage = PagedStorage(most=30)
    offloader = filled(storage, results=100)

    assert await offloader.adelete_scope("mine") == 100
    assert len(storage.kept) == 1, "another scope's entry stays"
    assert storage.listings == 5

    assert offloader.delete_scope("mine") == 0
    assert storage.listings == 6, "where nothing is, one look is enough"


def test_entries_deleted_in_the_last_pass_are_not_a_failure() -> None:
    assert filled(PagedStorage(most=20), results=100).delete_scope("mine") == 100


def test_the_number_of_entries_left_after_five_passes_is_reported() -> None:
    storage = PagedStorage(most=20)
    offloader = filled(storage, results=113)

    with pytest.raises(StorageError, match="may still be readable: 13, after 5 passes"):
        offloader.delete_scope("mine")

    assert offloader.delete_scope("mine") == 13


def test_a_storage_that_deletes_nothing_is_reported() -> None:
    with pytest.raises(StorageError, match="may still be readable: 7, after 5 passes"):
        filled(KeepingStorage(most=100), results=7).delete_scope("mine")


def test_saves_during_a_deletion_do_not_prolong_it() -> None:
    storage = SavingStorage(most=100)

    assert filled(storage, results=7).delete_scope("mine") == 7 + storage.listings
    assert storage.listings == 2


def test_a_storage_with_times_in_whole_seconds_may_save_during_the_deletion() -> None:
    storage = WholeSecondsStorage(most=100)

    assert filled(storage, results=7).delete_scope("mine") >= 7
