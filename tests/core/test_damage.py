"""Checking a storage: what is intact, damaged, unreadable, or deleted in the meantime."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import CorruptContent, InMemoryStorage, InvalidRequest, Listed, StorageError, Stored
from coatcheck.engine import entries as entries_module
from coatcheck.engine.entries import damage, entries
from coatcheck.engine.execution import Effect, StorageAccess, run
from coatcheck.testing.samples import make_entry
from tests.core.storages import AsyncDictStorage, DictStorage, RangeStorage

if TYPE_CHECKING:
    from coatcheck import CoatcheckError
    from coatcheck.testing.samples import Entry

CONTENT = bytes(range(250)) * 8
"""Exactly two parts long."""


@pytest.fixture(params=[DictStorage, RangeStorage])
def storage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> DictStorage:
    """Return a storage that is read whole, or one that is read in parts of 1,000 bytes."""
    monkeypatch.setattr(entries_module, "PART_BYTES", 1_000)
    made: DictStorage = request.param()
    return made


def save(storage: Any, entry: Entry) -> Listed:  # noqa: ANN401 - sync, async, whole or in parts
    (storage.inner if isinstance(storage, AsyncDictStorage) else storage).save(
        entry.key, entry.content, content_type=entry.content_type, metadata=entry.metadata
    )
    return Listed(key=entry.key, size=len(entry.content), modified=0)


def damage_of(storage: object, listed: Listed) -> CoatcheckError | None:
    """Check a listed entry. If it is a line index, its content was listed too."""
    return run(damage(StorageAccess(storage), listed, keys={listed.key, listed.key.removesuffix("-lines")}))


@pytest.mark.parametrize("size", [0, 1, 999, 1_000, 1_001, 2_000])
def test_saved_content_of_every_size_is_intact(size: int, storage: DictStorage) -> None:
    listed = save(storage, make_entry(CONTENT[:size]))

    assert damage_of(storage, listed) is None
    assert storage.bytes_loaded == size


@pytest.mark.parametrize(
    "changed",
    [
        b"",
        CONTENT[:-1],
        CONTENT + b"!" * 960,
        CONTENT[:1_999] + b"!" + CONTENT[2_000:],
        CONTENT[:500],
        b"!" + CONTENT[1:],
    ],
    ids=["emptied", "shortened", "lengthened", "changed", "cut", "begins otherwise"],
)
def test_every_change_of_the_bytes_is_found(changed: bytes, storage: DictStorage) -> None:
    entry = make_entry(CONTENT)
    listed = save(storage, entry)
    # As in a folder: the metadata still has the old size, the listing has the new one.
    storage.kept[entry.key] = replace(storage.kept[entry.key], content=changed)

    found = damage_of(storage, replace(listed, size=len(changed)))

    assert isinstance(found, CorruptContent)
    assert entry.key in str(found)


def test_another_type_or_digest_is_found(storage: DictStorage) -> None:
    entry = make_entry(CONTENT)
    listed = save(storage, entry)
    kept = storage.kept[entry.key]

    storage.kept[entry.key] = replace(kept, content_type="image/png")
    assert isinstance(damage_of(storage, listed), CorruptContent)
    storage.kept[entry.key] = replace(kept, metadata={**kept.metadata, "sha256": "0" * 64})
    assert isinstance(damage_of(storage, listed), CorruptContent)


def test_content_saved_under_another_key_is_found(storage: DictStorage) -> None:
    listed = save(storage, replace(make_entry(CONTENT), key=make_entry(b"other").key))

    assert isinstance(damage_of(storage, listed), CorruptContent)


def test_a_line_index_is_checked_by_its_own_digest(storage: DictStorage) -> None:
    index = make_entry(b"index")
    listed = save(storage, replace(index, key=f"{make_entry(b'content').key}-lines"))

    assert damage_of(storage, listed) is None
    storage.kept[listed.key] = replace(storage.kept[listed.key], content=b"indxe")
    assert isinstance(damage_of(storage, listed), CorruptContent)


def test_content_that_is_still_being_written_is_not_damaged(storage: DictStorage) -> None:
    listed = save(storage, replace(make_entry(CONTENT), key=f"{make_entry(b'other').key}-unfinished"))

    assert damage_of(storage, listed) is None


def test_an_async_storage_is_checked_too() -> None:
    storage = AsyncDictStorage()
    listed = save(storage, make_entry(CONTENT))

    assert damage_of(storage, listed) is None


class _Listing(DictStorage):
    """Lists what it was told to, or fails."""

    def __init__(self, *listed: Listed, fails: bool = False) -> None:
        super().__init__()
        self.listed = listed
        self.fails = fails

    def entries(self, prefix: str) -> list[Listed]:
        if self.fails:
            raise OSError
        return [entry for entry in self.listed if entry.key.startswith(prefix)]

    def load(self, key: str) -> Stored | None:
        if self.fails and key in self.kept:
            raise OSError
        return super().load(key)


def test_an_entry_deleted_since_it_was_listed_is_not_damage() -> None:
    index = Listed(key=f"{make_entry(CONTENT).key}-lines", size=1, modified=0)

    assert damage_of(_Listing(index), Listed(key=make_entry(CONTENT).key, size=1, modified=0)) is None


def test_an_entry_that_is_listed_but_cannot_be_loaded_is_damage() -> None:
    listed = Listed(key=make_entry(CONTENT).key, size=1, modified=0)

    assert isinstance(damage_of(_Listing(listed), listed), CorruptContent)


def test_an_entry_saved_while_it_is_checked_is_intact() -> None:
    entry = make_entry(CONTENT)
    storage = _Listing(Listed(key=entry.key, size=1, modified=0))
    looking = damage(StorageAccess(storage), storage.listed[0], keys={entry.key})

    def answer_of(effect: Effect | None) -> object:
        assert effect is not None
        return effect.call()

    listing = looking.send(answer_of(next(looking)))  # the entry is not there yet
    save(storage, entry)

    with pytest.raises(StopIteration) as ended:
        looking.send(answer_of(looking.send(answer_of(listing))))

    assert ended.value.value is None


def test_a_line_index_without_its_content_is_found() -> None:
    content = make_entry(CONTENT).key
    storage = _Listing(Listed(key=f"{content}-lines", size=1, modified=0))

    found = run(damage(StorageAccess(storage), storage.listed[0], keys={f"{content}-lines"}))

    assert isinstance(found, CorruptContent)
    assert f"{content!r} is there, but the content is not" in str(found)


@pytest.mark.parametrize("there", [("", "-lines"), ()], ids=["its content was saved", "both were deleted"])
def test_an_index_is_not_damage_if_its_content_was_saved_or_both_were_deleted_meanwhile(there: tuple[str, ...]) -> None:
    content = make_entry(CONTENT).key
    storage = _Listing(*(Listed(key=content + suffix, size=1, modified=0) for suffix in there))
    listed = Listed(key=f"{content}-lines", size=1, modified=0)

    assert run(damage(StorageAccess(storage), listed, keys={listed.key})) is None


def test_a_listing_failure_while_checking_an_index_is_reported_and_not_raised() -> None:
    listed = Listed(key=f"{make_entry(CONTENT).key}-lines", size=1, modified=0)

    assert isinstance(run(damage(StorageAccess(_Listing(fails=True)), listed, keys={listed.key})), StorageError)


def test_a_storage_failure_on_one_entry_is_reported_and_not_raised() -> None:
    storage = _Listing(fails=True)
    listed = save(storage, make_entry(CONTENT))

    for each in (listed, Listed(key=make_entry(b"gone").key, size=1, modified=0)):
        found = damage_of(storage, each)
        assert isinstance(found, StorageError)
        assert not isinstance(found, CorruptContent)


def test_entries_lists_only_keys_with_the_prefix() -> None:
    storage = InMemoryStorage()
    mine, yours = make_entry(CONTENT, scope="mine"), make_entry(CONTENT, scope="yours")
    for entry in (mine, yours):
        storage.save(entry.key, entry.content, content_type=entry.content_type, metadata=entry.metadata)

    assert [found.key for found in run(entries(StorageAccess(storage), mine.key))] == [mine.key]
    assert len(run(entries(StorageAccess(storage), ""))) == 2


def test_a_storage_that_cannot_list_or_fails_to_is_reported() -> None:
    with pytest.raises(InvalidRequest, match=r"lacks coatcheck\.Lists"):
        run(entries(StorageAccess(DictStorage()), ""))
    with pytest.raises(StorageError, match="listing"):
        run(entries(StorageAccess(_Listing(fails=True)), ""))
