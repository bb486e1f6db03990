"""Uses the storage contract the way storage authors do. It never runs: mypy and pyright check it in strict mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from coatcheck.testing import DeletesContract, ListsContract, ListsPagesContract, StorageContract

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coatcheck import Listed, Stored
    from coatcheck.testing import Run


class ListingStorage:
    """A user's own storage, which inherits from nothing."""

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None: ...

    def load(self, key: str) -> Stored | None: ...

    def delete(self, key: str) -> None: ...

    def entries(self, prefix: str) -> Iterable[Listed]:
        raise NotImplementedError


class TestListingStorage(StorageContract, DeletesContract, ListsContract, ListsPagesContract):
    @pytest.fixture
    def storage(self) -> ListingStorage:
        return ListingStorage()

    def make_older(self, storage: ListingStorage, key: str) -> bool:
        storage.delete(key)
        return True


class Tool:
    """A tool of a user's framework."""


def watched(case: Run) -> Tool:
    return case.watch(Tool())


def shared(case: Run) -> ListingStorage:
    return case.share(ListingStorage)
