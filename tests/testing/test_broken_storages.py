"""The storage contract fails every broken storage in the test about its defect, and names the defect."""

from __future__ import annotations

import pytest

from coatcheck import FileStorage, Storage
from coatcheck.testing import (
    DeletesContract,
    DeletesManyContract,
    ListsContract,
    ListsPagesContract,
    LocalPathContract,
    ReadsRangesContract,
    StorageContract,
    SweepsContract,
)
from tests.testing.broken_storages import BROKEN
from tests.testing.dict_storages import CapableStorage
from tests.testing.running import contract_tests, failures


class Suite(
    StorageContract,
    ReadsRangesContract,
    DeletesContract,
    DeletesManyContract,
    ListsContract,
    ListsPagesContract,
    SweepsContract,
):
    """The contracts of a dict. The tests run them themselves, so the class is not named like a test."""

    def make_older(self, storage: Storage, key: str) -> bool:
        if isinstance(storage, CapableStorage):
            storage.now += 1
        return True


class LocalSuite(Suite, LocalPathContract):
    """The contracts of a storage that keeps files."""


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_defect_is_found_and_named(broken: type) -> None:
    name, words = BROKEN[broken]

    said = failures(LocalSuite if issubclass(broken, FileStorage) else Suite, name, broken)

    assert said, f"{name} passes although the storage {broken.__doc__}"
    assert any(words in message for message in said), said


@pytest.mark.parametrize("name", contract_tests(Suite))
def test_the_base_of_the_broken_storages_is_correct(name: str) -> None:
    assert failures(Suite, name, CapableStorage) == []


def test_every_test_of_the_contract_is_used() -> None:
    assert len(contract_tests(Suite)) >= 25
