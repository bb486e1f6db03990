"""What every contract checks about a suite: its own tests, its fixtures, and the capabilities of the storage."""

from __future__ import annotations

import runpy
import sys
from typing import TYPE_CHECKING, Any

import pytest

import coatcheck.testing
from coatcheck import InMemoryStorage
from coatcheck.testing import AdapterContract, LocalPathContract, ReadsRangesContract, StorageContract
from coatcheck.testing.samples import MALFORMED_KEYS, id_of_key
from coatcheck.testing.suite import require_same, wait_for
from tests.testing.dict_storages import DictStorage

if TYPE_CHECKING:
    from coatcheck import Storage

STRICT = pytest.mark.xfail(reason="the backend has no empty values", strict=True)


class Whole(StorageContract):
    def test_something_of_its_own(self) -> None:
        """More tests are welcome."""


class Overridden(StorageContract):
    def test_keeps_empty_content(self, storage: Storage) -> None:
        """Promise nothing."""


class Removed(StorageContract):
    test_keeps_empty_content = None  # type: ignore[assignment]


class Excused(StorageContract):
    @STRICT
    def test_keeps_empty_content(self, storage: Storage) -> None:
        super().test_keeps_empty_content(storage)


class ExcusedWithoutReason(StorageContract):
    @pytest.mark.xfail(strict=True)
    def test_keeps_empty_content(self, storage: Storage) -> None:
        super().test_keeps_empty_content(storage)


class ExcusedLoosely(StorageContract):
    @pytest.mark.xfail(reason="sometimes", strict=False)
    def test_keeps_empty_content(self, storage: Storage) -> None:
        super().test_keeps_empty_content(storage)


class Skipped(StorageContract):
    @pytest.mark.skip(reason="later")
    def test_keeps_empty_content(self, storage: Storage) -> None:
        super().test_keeps_empty_content(storage)


class HollowAdapter(AdapterContract):
    def test_scenario(self, *_: object, **__: object) -> None:
        """Promise nothing."""


class BelowHollow(Overridden):
    """The override is in an intermediate class."""


@pytest.mark.parametrize("suite", [Whole, Excused, StorageContract, AdapterContract])
def test_a_suite_that_keeps_the_contract_passes_the_guard(suite: type[StorageContract]) -> None:
    suite().test_no_test_of_the_contract_was_changed()


@pytest.mark.parametrize(
    "suite", [Overridden, Removed, ExcusedWithoutReason, ExcusedLoosely, Skipped, HollowAdapter, BelowHollow]
)
def test_a_suite_that_hollows_out_the_contract_is_reported(suite: type[StorageContract]) -> None:
    with pytest.raises(AssertionError, match="overridden or removed") as raised:
        suite().test_no_test_of_the_contract_was_changed()
    assert "test_keeps_empty_content" in str(raised.value) or "test_scenario" in str(raised.value)


@pytest.mark.parametrize(("suite", "fixture"), [(StorageContract, "storage"), (AdapterContract, "harness")])
def test_a_forgotten_fixture_says_what_to_write(suite: type, fixture: str) -> None:
    make: Any = vars(suite)[fixture]
    plain = getattr(make, "__wrapped__", None) or make.__pytest_wrapped__.obj
    with pytest.raises(NotImplementedError, match=rf"@pytest.fixture\n +def {fixture}\(self\)"):
        plain(suite())


def test_a_capability_without_its_contract_is_reported() -> None:
    with pytest.raises(
        AssertionError, match=r"has \['Deletes', 'Lists', 'ListsPages', 'ReadsRanges', 'Sweeps'\], the suite tests \[\]"
    ):
        Whole().test_tests_every_capability_that_the_storage_has(InMemoryStorage())


def test_a_contract_without_its_capability_is_reported() -> None:
    class Ranged(StorageContract, ReadsRangesContract):
        pass

    with pytest.raises(AssertionError, match=r"has \[\], the suite tests \['ReadsRanges'\]"):
        Ranged().test_tests_every_capability_that_the_storage_has(DictStorage())


@pytest.mark.parametrize("thing", [InMemoryStorage, object()])
def test_an_object_that_is_not_a_storage_is_reported(thing: object) -> None:
    with pytest.raises(AssertionError, match=r"lacks save or load|not an instance"):
        Whole().test_has_the_methods_of_a_storage(thing)  # type: ignore[arg-type]


def test_without_pytest_the_testing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pytest", None)

    with pytest.raises(ImportError, match="pip install pytest"):
        runpy.run_path(coatcheck.testing.__file__)


def test_wait_for_returns_values_and_awaits_awaitables() -> None:
    async def later() -> int:
        return 2

    assert wait_for(1) == 1
    assert wait_for(later()) == 2


@pytest.mark.parametrize(
    ("found", "expected", "message"),
    [
        (b"ab", b"abc", "2 bytes instead of 3, first difference at byte 2"),
        (b"abX", b"abc", "3 bytes instead of 3, first difference at byte 2"),
        (b"x" * 1_000_000 + b"y", b"x" * 1_000_001, "first difference at byte 1,000,000"),
        (None, b"", "a value of type NoneType instead of 0 bytes"),  # SQLite's substr returns None for an empty blob
        ("x" * 1_000_000, b"x" * 1_000_000, "a value of type str instead of 1,000,000 bytes"),
    ],
)
def test_a_difference_is_described_in_one_line(found: Any, expected: bytes, message: str) -> None:  # noqa: ANN401
    with pytest.raises(AssertionError, match=message) as raised:
        require_same(found, expected, "what")
    assert len(str(raised.value)) < 300


def test_the_ids_of_keys_are_short_and_distinct() -> None:
    ids = {id_of_key(key) for key in MALFORMED_KEYS}

    assert len(ids) == len(MALFORMED_KEYS)
    assert max(map(len, ids)) < 100


@pytest.mark.parametrize("contract", [StorageContract, LocalPathContract])
def test_the_contracts_show_keys_by_their_ids(contract: type) -> None:
    marks = [mark for test in vars(contract).values() for mark in getattr(test, "pytestmark", [])]

    assert {mark.kwargs.get("ids") for mark in marks if mark.args[1] is MALFORMED_KEYS} == {id_of_key}
