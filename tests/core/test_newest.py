"""The contents of a scope in pages, newest first, with the tools they came from, whatever the storage can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given

from coatcheck import Always, FileStorage, InMemoryStorage, InvalidRequest, Listed, Offloader, StorageError, TextBlock
from coatcheck.core.blocks import to_valid_unicode
from coatcheck.engine.contents import tool_name_in
from coatcheck.engine.entries import newest
from coatcheck.engine.execution import StorageAccess, run
from tests.core.storages import DictStorage
from tests.core.strategies import texts

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from coatcheck import Page

LARGE = "a line of a large result\n" * 60_000
"""Large enough to get a line index."""


class ListingStorage(DictStorage):
    """Lists everything in the order of the saves, like a user's storage without pages."""

    def entries(self, prefix: str) -> Iterable[Listed]:
        return [
            Listed(key=key, size=entry.size, modified=float(at), metadata=entry.metadata)
            for at, (key, entry) in enumerate(self.kept.items())
            if key.startswith(prefix)
        ]


def page_of(storage: object, *, limit: int = 10, after: str | None = None) -> Page:
    return run(newest(StorageAccess(storage), "s", limit=limit, after=after))


def names_of(page: Page) -> list[str | None]:
    return [None if entry.metadata is None else tool_name_in(entry.metadata) for entry in page.entries]


def fill(storage: Any) -> None:  # noqa: ANN401 - any storage
    offloader = Offloader(storage, policies={"*": Always()})
    for name in ("first", "second", "third"):
        offloader.offload([TextBlock(f"{name}\n")], tool_name=name, scope="s")
    offloader.offload([TextBlock("other\n")], tool_name="other", scope="t")


def test_pages_go_from_the_newest_to_the_oldest() -> None:
    times = iter(range(100))
    for storage in (InMemoryStorage(clock=lambda: float(next(times))), ListingStorage()):
        fill(storage)

        first = page_of(storage, limit=2)
        second = page_of(storage, limit=2, after=first.after)

        assert names_of(first) == ["third", "second"]
        assert names_of(second) == ["first"]
        assert second.after is None


def test_a_folder_reads_descriptions_for_a_page_only(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path)
    fill(storage)

    assert sorted(map(str, names_of(page_of(storage)))) == ["first", "second", "third"]
    assert all(entry.metadata is None for entry in storage.entries(""))


def test_a_damaged_description_hides_no_entry(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path)
    fill(storage)
    for described in tmp_path.rglob("*.entry.json"):
        described.write_bytes(b"damaged")

    assert names_of(page_of(storage)) == [None, None, None]


def test_a_line_index_is_not_listed_as_content() -> None:
    storage = InMemoryStorage()
    Offloader(storage).offload([TextBlock(LARGE)], tool_name="log", scope="s")

    assert len(storage.entries("")) == 2
    assert names_of(page_of(storage)) == ["log"]


def test_an_entry_deleted_between_two_pages_hides_no_other_entry() -> None:
    storage = InMemoryStorage(clock=iter(map(float, range(100))).__next__)
    fill(storage)

    first = page_of(storage, limit=1)
    storage.delete(first.entries[0].key)

    assert names_of(page_of(storage, limit=1, after=first.after)) == ["second"]


@given(name=texts(pieces=12))
def test_the_name_of_a_tool_is_kept_as_short_ascii(name: str) -> None:
    storage = DictStorage()
    Offloader(storage, policies={"*": Always()}).offload([TextBlock("content\n")], tool_name=name, scope="s")
    (entry,) = storage.kept.values()

    assert all(value.isascii() and value.isprintable() and len(value) <= 768 for value in entry.metadata.values())
    assert (tool_name_in(entry.metadata) or "") == to_valid_unicode(name[:64])


@pytest.mark.parametrize("metadata", [{}, {"tool": 7}])
def test_an_entry_need_not_name_its_tool(metadata: dict[str, Any]) -> None:
    assert tool_name_in(metadata) is None


def test_a_storage_that_cannot_list_or_returns_no_page_is_named_in_the_error() -> None:
    class Wrong(ListingStorage):
        def page(self, prefix: str, *, limit: int, after: str | None = None) -> list[Listed]:
            return []

    with pytest.raises(InvalidRequest, match=r"it lacks coatcheck\.Lists"):
        page_of(DictStorage())
    with pytest.raises(StorageError, match=r"Wrong\.page must return a coatcheck\.Page, not list; fix the storage"):
        page_of(Wrong())
