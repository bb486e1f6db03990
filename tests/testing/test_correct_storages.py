"""The smallest correct storages pass the contract, sync and async: it demands no more than it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from coatcheck.testing import (
    DeletesContract,
    DeletesManyContract,
    ListsContract,
    ListsPagesContract,
    ReadsRangesContract,
    StorageContract,
    SweepsContract,
)
from tests.testing.dict_storages import AsyncCapableStorage, AsyncDictStorage, CapableStorage, DictStorage

if TYPE_CHECKING:
    from coatcheck import Storage


class TestDictStorage(StorageContract):
    @pytest.fixture
    def storage(self) -> DictStorage:
        return DictStorage()


class TestAsyncDictStorage(StorageContract):
    @pytest.fixture
    def storage(self) -> AsyncDictStorage:
        return AsyncDictStorage()


class TestAsyncCapableStorage(StorageContract, DeletesContract, ListsContract):
    @pytest.fixture
    def storage(self) -> AsyncCapableStorage:
        return AsyncCapableStorage()


class TestCapableStorage(
    StorageContract,
    ReadsRangesContract,
    DeletesContract,
    DeletesManyContract,
    ListsContract,
    ListsPagesContract,
    SweepsContract,
):
    @pytest.fixture
    def storage(self) -> CapableStorage:
        return CapableStorage()

    def make_older(self, storage: Storage, key: str) -> bool:
        assert isinstance(storage, CapableStorage)
        storage.now += 1
        return True
