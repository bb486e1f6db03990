"""What a storage declares about itself decides where its calls run, and whether entries are looked for again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from coatcheck import (
    Always,
    Block,
    FileStorage,
    InMemoryStorage,
    InvalidRequest,
    Kept,
    MediaBlock,
    Offloader,
    TextBlock,
)
from coatcheck.engine.execution import StorageAccess
from tests.core.storages import DictStorage, RangeStorage, Shelves

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class SmallStorage(DictStorage):
    """Keeps the last two entries, and declares it if ``evicts`` is set."""

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        super().save(key, content, content_type=content_type, metadata=metadata)
        while len(self.kept) > 2:
            del self.kept[next(iter(self.kept))]


class SmallRangeStorage(SmallStorage, RangeStorage):
    """The same, and reads parts of entries."""


@pytest.mark.parametrize("kind", [SmallStorage, SmallRangeStorage])
def test_a_storage_that_declares_eviction_loses_no_result_to_it(kind: type[SmallStorage]) -> None:
    blocks: list[Block] = [
        TextBlock("text\n" * 50),
        MediaBlock(b"1" * 100, "image/png"),
        MediaBlock(b"2" * 100, "image/png"),
    ]
    storage: Any = kind()
    offload = Offloader(storage, policies={"*": Always()}).offload

    assert not isinstance(offload(blocks, tool_name="t", scope="s"), Kept)
    storage.evicts = True
    assert isinstance(Offloader(storage, policies={"*": Always()}).offload(blocks, tool_name="t", scope="s"), Kept)


def test_what_a_storage_declares_about_itself_is_believed(tmp_path: Path) -> None:
    said: Any = DictStorage()
    said.is_local = True
    far: Any = FileStorage(tmp_path)
    far.is_local = False

    local = {
        storage: StorageAccess(storage).call("load", "key").local
        for storage in (DictStorage(), said, FileStorage(tmp_path), far, InMemoryStorage())
    }

    assert list(local.values()) == [False, True, True, False, True]


def test_a_storage_with_meaningless_attributes_gets_the_defaults() -> None:
    access = StorageAccess(Mock(spec_set=["save", "load", "evicts", "is_local"]))

    assert not access.evicts
    assert not access.call("load", "key").local


def test_a_storage_may_delegate_to_another(tmp_path: Path) -> None:
    class Passing:
        def __init__(self, inner: object) -> None:
            self._inner = inner

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

    own, passed = StorageAccess(FileStorage(tmp_path)), StorageAccess(Passing(FileStorage(tmp_path)))

    for what in ("names_references", "reads_ranges", "sweeps", "lists_pages", "lists", "evicts"):
        assert getattr(passed, what) == getattr(own, what)
    assert passed.call("load", "key").local  # because it has local paths


@pytest.mark.parametrize("takes", [True, False])
def test_only_a_storage_that_takes_file_names_gets_them(*, takes: bool) -> None:
    seen: list[dict[str, object]] = []

    class Filing(Shelves):
        takes_file_name = takes

        def save_named(self, name: str, content: bytes, *, content_type: str, **more: object) -> str:
            seen.append(more)
            return super().save_named(name, content, content_type=content_type)

    medium = MediaBlock(b"%PDF", "application/pdf", name="report.pdf")
    Offloader(Filing(), policies={"*": Always()}).offload([medium], tool_name="t", scope="s")

    assert seen == ([{"file_name": "report.pdf"}] if takes else [{}])


def test_a_storage_that_takes_file_names_must_accept_the_argument_and_may_require_it() -> None:
    class Requiring:
        takes_file_name = True
        load = Shelves.load

        def save_named(self, name: str, content: bytes, *, content_type: str, file_name: str | None) -> str:
            return f"{name}-{file_name}-{content_type}-{len(content)}"

    class Lacking(Shelves):
        takes_file_name = True

    assert StorageAccess(Requiring()).takes_file_name
    with pytest.raises(InvalidRequest, match=r"Lacking\.save_named must take .*'file_name'"):
        StorageAccess(Lacking())


def test_a_call_that_a_storage_cannot_serve_names_the_capability_it_lacks() -> None:
    access = StorageAccess(DictStorage())

    with pytest.raises(InvalidRequest, match=r"DictStorage cannot do this: it lacks coatcheck\.Lists"):
        access.call("entries", "")
    with pytest.raises(InvalidRequest, match=r"it lacks coatcheck\.NamesReferences"):
        access.call("save_named", "name", b"", content_type="text/plain")
