"""One contract for each capability that a storage may have. Inherit those that yours has, next to ``StorageContract``.

The engine uses every capability that a storage has, so ``StorageContract`` fails if its contract is not inherited.
"""

# ruff: noqa: S101 - assert is how pytest asks

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import pytest

from coatcheck.core.blocks import TextBlock
from coatcheck.core.errors import CoatcheckError, ReferenceExpired, ReferenceNotFound, StorageError
from coatcheck.core.policy import Always
from coatcheck.core.references import Key, resolve_reference, scope_part
from coatcheck.offloader import Offloader
from coatcheck.storage.protocol import (
    Deletes,
    DeletesMany,
    Lists,
    ListsPages,
    LocalPath,
    ReadsRanges,
    Storage,
    Stored,
    Sweeps,
)
from coatcheck.testing.samples import EVERY_BYTE, MALFORMED_KEYS, Entry, id_of_key, make_entry, noise
from coatcheck.testing.storage import THREADS, check_holds, save
from coatcheck.testing.suite import Contract, require_same, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from coatcheck.core.blocks import Outcome
    from coatcheck.storage.protocol import Listed, Page

__all__ = (
    "DeletesContract",
    "DeletesManyContract",
    "ListsContract",
    "ListsPagesContract",
    "LocalPathContract",
    "ReadsRangesContract",
    "SweepsContract",
)


MAX_SECONDS = 1e11
"""Seconds since 1970: the year 5138. As milliseconds it would be 1973, so a larger time is not in seconds."""

MAX_PAGES = 20
"""More pages than five entries can need, even with an empty page for each."""


class RangedStorage(Storage, ReadsRanges, Protocol):
    """A storage that reads ranges."""


class DeletingStorage(Storage, Deletes, Protocol):
    """A storage that deletes."""


class ManyDeletingStorage(Storage, Deletes, DeletesMany, Protocol):
    """A storage that deletes many entries at once."""


class ListingStorage(Storage, Lists, Protocol):
    """A storage that lists."""


class PagingStorage(Storage, ListsPages, Protocol):
    """A storage that lists pages."""


class SweepingStorage(Storage, Sweeps, Lists, Protocol):
    """A storage that sweeps."""


class LocalStorage(Storage, LocalPath, Protocol):
    """A storage that keeps files."""


class ReadsRangesContract(Contract):
    """What ``load_range`` promises: exactly the bytes asked for, and all that is known of the whole entry."""

    capability: ClassVar[type] = ReadsRanges

    @pytest.mark.parametrize(
        ("start", "length"),
        [(0, 1), (0, 1_000), (999, 1), (400, 200), (1, 998), (500, 500)],
    )
    def test_a_range_is_those_bytes(self, storage: RangedStorage, *, start: int, length: int) -> None:
        """A range inside the content returns exactly those bytes.

        If this fails, check for an end that is inclusive, as in an HTTP ``Range`` header, or for a missing byte.
        """
        check_range(storage, make_entry(noise(1_000)), start=start, length=length)

    @pytest.mark.parametrize(("start", "length"), [(990, 100), (1_000, 1), (1_000, 0), (5_000, 10), (0, 1_000_000)])
    def test_a_range_beyond_the_end_gives_less(self, storage: RangedStorage, *, start: int, length: int) -> None:
        """A range beyond the content returns fewer bytes or none; it does not raise.

        If this fails, check how the backend answers a range that it cannot satisfy (HTTP 416).
        """
        check_range(storage, make_entry(noise(1_000)), start=start, length=length)

    @pytest.mark.parametrize("start", [0, 500])
    def test_length_zero_asks_for_what_is_known(self, storage: RangedStorage, start: int) -> None:
        """``length=0`` returns the type, metadata and size of the whole entry, and no bytes.

        If this fails, check that 0 is not taken for "no limit", and that ``size`` is that of the whole entry.
        """
        check_range(storage, make_entry(noise(1_000), lines="1"), start=start, length=0)

    def test_ranges_together_are_the_whole(self, storage: RangedStorage) -> None:
        """Consecutive ranges add up to the content, with nothing lost or repeated between them.

        If this fails, check both ends of a range: the first byte is at ``start``, the last before ``start + length``.
        """
        entry = make_entry(EVERY_BYTE * 40, content_type="application/octet-stream")
        save(storage, entry)
        step = 977
        parts = [part(storage, entry, start=start, length=step).content for start in range(0, len(entry.content), step)]
        require_same(b"".join(parts), entry.content, "the ranges together are not the whole")

    def test_a_range_of_empty_content(self, storage: RangedStorage) -> None:
        """Empty content is an entry: its range is empty, not None.

        If this fails, check for a truthiness test on the bytes where a test for None is meant.
        """
        check_range(storage, make_entry(b""), start=0, length=10)

    def test_a_range_of_an_unknown_key_is_none(self, storage: RangedStorage) -> None:
        """A key that was never saved does not raise here either.

        If this fails, check that the backend's "not found" becomes None, as in ``load``.
        """
        assert wait_for(storage.load_range(make_entry(b"never saved").key, start=0, length=0)) is None


class DeletesContract(Contract):
    """What ``delete`` promises: that entry is gone, and no other."""

    capability: ClassVar[type] = Deletes

    def test_what_was_deleted_is_gone(self, storage: DeletingStorage) -> None:
        """After ``delete``, ``load`` returns None.

        If this fails, check that ``delete`` waits for the backend, and that no cache answers.
        """
        entry = make_entry(b"to be deleted")
        save(storage, entry)
        check_holds(storage, entry, "before it is deleted")  # this also puts it into any cache there is
        wait_for(storage.delete(entry.key))
        assert wait_for(storage.load(entry.key)) is None, "the entry is still there after delete"

    def test_deleting_twice_is_no_error(self, storage: DeletingStorage) -> None:
        """Deleting an entry that is gone, or never existed, succeeds: two sweeps may overlap.

        If this fails, check that the backend's "not found" is swallowed.
        """
        entry = make_entry(b"to be deleted twice")
        save(storage, entry)
        for _ in range(2):
            wait_for(storage.delete(entry.key))
        wait_for(storage.delete(make_entry(b"never saved").key))

    def test_deleting_leaves_the_others(self, storage: DeletingStorage) -> None:
        """Deleting one entry keeps the others of its scope, those of other scopes, and its own line index.

        If this fails, check for a prefix or wildcard match where the whole key is meant.
        """
        deleted = make_entry(b"deleted")
        others = [make_entry(b"neighbour"), make_entry(b"deleted", scope="elsewhere"), _index_of(deleted)]
        for entry in (deleted, *others):
            save(storage, entry)
        wait_for(storage.delete(deleted.key))
        for entry in others:
            check_holds(storage, entry, "after another entry was deleted")

    def test_what_was_deleted_can_be_saved_again(self, storage: DeletingStorage) -> None:
        """The same call after a deletion offloads again, under the same key.

        If this fails, check for tombstones of deleted keys that outlive the entry.
        """
        entry = make_entry(b"deleted, then saved again")
        save(storage, entry)
        wait_for(storage.delete(entry.key))
        save(storage, entry)
        check_holds(storage, entry, "after it was deleted and saved again")

    def test_what_was_deleted_has_expired_and_what_never_was_is_unknown(self, storage: DeletingStorage) -> None:
        """With nothing kept of it, a new offloader still tells a deleted entry from one that never existed.

        If this fails, check that ``load`` and ``load_range`` return None for a deleted entry, and raise nothing.
        """
        outcome = Offloader(storage, policies={"*": Always()}).offload(
            [TextBlock("content that will be gone")], tool_name="contract", scope="mine"
        )
        reference = outcome.references[0].id
        wait_for(storage.delete(str(resolve_reference(reference, "mine"))))
        restarted = Offloader(storage)
        for ask in (restarted.load, restarted.retrieve):
            assert _miss(ask, reference, "mine") is ReferenceExpired, "what was deleted has not expired"
            assert _miss(ask, reference, "yours") is ReferenceNotFound, "another scope's reference is not unknown"
            assert _miss(ask, f"{reference[:-4]}0000", "mine") is ReferenceNotFound, (
                "a made-up reference is not unknown"
            )


class DeletesManyContract(Contract):
    """What ``delete_many`` promises: the named entries are gone, except those that it returns, and no others are."""

    capability: ClassVar[type] = DeletesMany

    def test_what_is_not_returned_is_gone(self, storage: ManyDeletingStorage) -> None:
        """After ``delete_many``, ``load`` returns None for each key that it did not return; at least one entry is gone.

        If this fails, check that the backend's whole response is read: a request may fail for single keys. If every
        entry is left, the server that you test with may not support such requests.
        """
        entries = [make_entry(b"one"), make_entry(b"two"), make_entry(b"one", scope="elsewhere")]
        for entry in entries:
            save(storage, entry)
            check_holds(storage, entry, "before it is deleted")  # this also puts it into any cache there is
        left = _delete_many(storage, [entry.key for entry in entries])
        assert len(left) < len(entries), "delete_many left every entry"
        for entry in entries:
            found = wait_for(storage.load(entry.key))
            assert found is None or entry.key in left, "an entry is still there, and delete_many did not return its key"

    def test_a_thousand_keys_at_once_most_of_them_of_nothing(self, storage: ManyDeletingStorage) -> None:
        """The engine passes up to 1,000 keys, and removing a missing entry is no error.

        If this fails, check for the backend's limit per request, and that its "not found" is swallowed.
        """
        entries = [make_entry(f"content {number}".encode()) for number in range(1_000)]
        for entry in (entries[0], entries[-1]):
            save(storage, entry)
        for _ in range(2):
            left = _delete_many(storage, [entry.key for entry in entries])
            assert len(left) < len(entries), "delete_many left every entry"
            for entry in (entries[0], entries[-1]):
                found = wait_for(storage.load(entry.key))
                assert found is None or entry.key in left, "an entry is still there after delete_many"

    def test_deleting_many_leaves_the_others(self, storage: ManyDeletingStorage) -> None:
        """Entries that are not named stay: others of the scope, those of other scopes, and line indexes.

        If this fails, check for a prefix or wildcard match where whole keys are meant.
        """
        deleted = [make_entry(b"one"), make_entry(b"two")]
        others = [make_entry(b"neighbour"), make_entry(b"one", scope="elsewhere"), _index_of(deleted[0])]
        for entry in (*deleted, *others):
            save(storage, entry)
        _delete_many(storage, [entry.key for entry in deleted])
        for entry in others:
            check_holds(storage, entry, "after others were deleted")


def _delete_many(storage: ManyDeletingStorage, keys: list[str]) -> Collection[str]:
    left = wait_for(storage.delete_many(keys))
    assert isinstance(left, Collection), f"delete_many must return the keys that it left, such as [], not {left!r}"
    assert not isinstance(left, str), f"delete_many must return the keys that it left, such as [], not {left!r}"
    assert set(left) <= set(keys), f"delete_many returned keys that it was not given: {sorted(set(left) - set(keys))}"
    return left


class ListsContract(Contract):
    """What ``entries`` promises: every entry under a prefix, with its size and the time of its last save."""

    capability: ClassVar[type] = Lists
    listed_entries: ClassVar[int] = 1_100
    """How many entries are listed at once: more than the 1,000 that S3 and Google Cloud Storage return.

    Set it above your backend's page size, such as Azure's 5,000.
    """

    def make_older(self, storage: Any, key: str) -> bool:  # noqa: ANN401 - an override names the storage's own class
        """Make what is stored look older than what is saved next, and return True. Override it if you can.

        Advance the clock that you gave your storage, or set the entry's time back. The contract never sleeps, so
        without an override it cannot prove that saving refreshes the time.
        """
        del storage, key
        return False

    def test_lists_what_was_saved(self, storage: ListingStorage) -> None:
        """Every entry, line indexes included, is listed under its own key with its size in bytes and metadata or None.

        If this fails, check that keys are returned whole, that those with ``-lines`` are listed like others, and that
        the size counts bytes and not characters.
        """
        saved = [make_entry(b"one"), make_entry(EVERY_BYTE), make_entry(b"", scope="elsewhere")]
        for entry in (*saved, _index_of(saved[0])):
            save(storage, entry)
        found = listing(storage, "")
        for entry in (*saved, _index_of(saved[0])):
            assert entry.key in found, "an entry is missing from the listing"
            listed = found[entry.key]
            assert listed.size == len(entry.content), "the size in the listing is wrong"
            assert listed.metadata is None or dict(listed.metadata) == entry.metadata, "the metadata is wrong"

    def test_lists_only_what_has_the_prefix(self, storage: ListingStorage) -> None:
        """A prefix names a scope: other scopes' entries are not listed; otherwise ``delete_scope`` would delete them.

        If this fails, check that the prefix is used, and that it is matched at the start of the key only.
        """
        mine = [make_entry(b"one", scope="mine"), make_entry(b"two", scope="mine")]
        yours = make_entry(b"one", scope="yours")
        for entry in (*mine, yours):
            save(storage, entry)
        scope = Key.parse(mine[0].key).scope
        wanted = {entry.key for entry in mine}
        assert set(listing(storage, f"{scope}/")) == wanted, "the listing does not keep to the prefix"
        assert set(listing(storage, mine[0].key)) == {mine[0].key}, (
            "the listing does not keep to a prefix within a scope"
        )
        assert listing(storage, "0" * 16 + "/") == {}, "the listing of an unknown scope is not empty"

    def test_lists_what_is_below_the_first_parts_of_a_scope(self, storage: ListingStorage) -> None:
        """A prefix may also be the first digits of scopes: ``delete_scopes`` deletes all below the parts of a tuple.

        If this fails, check that a prefix without a slash matches the beginning of scopes, not only whole ones.
        """
        above = ("tenant-7",)
        below = [make_entry(b"one", scope=scope) for scope in (above, (*above, "a"), (*above, "b"), (*above, "a", "c"))]
        others = [make_entry(b"one", scope=scope) for scope in ("tenant-7", ("tenant-70",), ("tenant", "7"), ("a",))]
        for entry in (*below, *others):
            save(storage, entry)
        assert set(listing(storage, scope_part(above))) == {entry.key for entry in below}, (
            "the listing below the first part of a tuple is wrong"
        )
        assert set(listing(storage, f"{scope_part(above)}/")) == {below[0].key}, (
            "the listing of a tuple scope holds more or less than that scope"
        )
        if isinstance(storage, Deletes):
            assert Offloader(storage).delete_scopes(under=above) == len(below), "delete_scopes counted wrong"
            for entry in below:
                assert wait_for(storage.load(entry.key)) is None, "an entry is still there after delete_scopes"
        for entry in others:
            check_holds(storage, entry, "after other scopes were deleted")

    def test_saving_again_refreshes_the_time(self, storage: ListingStorage) -> None:
        """The time is that of the last save: ``sweep`` spares what a conversation has just stored again.

        If this fails, check that saving an existing entry sets its time, and that time is in seconds since the epoch.
        With a time that is always ahead, or in milliseconds, nothing would ever be old enough for a sweep.
        """
        entry = make_entry(b"saved twice")
        save(storage, entry)
        aged = self.make_older(storage, entry.key)
        before, still = (listing(storage, entry.key)[entry.key].modified for _ in range(2))
        save(storage, entry)
        after = listing(storage, entry.key)[entry.key].modified
        assert math.isfinite(before), "the time of an entry is not a number of seconds"
        assert before < MAX_SECONDS, "the time of an entry is not in seconds since 1970"
        assert still == before, "the time of an entry is not that of its last save: it changes without one"
        assert after > before if aged else after >= before, "a second save did not refresh the entry's time"

    @pytest.mark.parametrize("is_async", [False, True], ids=["threads", "asyncio"])
    def test_a_burst_is_listed_whole_and_goes_with_its_scope(self, storage: ListingStorage, *, is_async: bool) -> None:
        """Each of many results saved at once is listed, and none can be read after ``delete_scope``.

        If this fails, check how the listing pages: if it pages by offset, entries saved at the same moment may change
        places from one page to the next, and one of them is on neither.
        """
        burst = _Burst(storage, is_async=is_async)
        references = burst.save()
        listed = listing(storage, f"{scope_part(_Burst.scope)}/")
        missed = [each for each in references if str(resolve_reference(each, _Burst.scope)) not in listed]
        assert not missed, f"{len(missed)} of {len(references)} entries that were saved at once are not listed"
        if isinstance(storage, Deletes):
            burst.delete()
            readable = burst.readable(references)
            assert not readable, f"{len(readable)} of {len(references)} results are readable after delete_scope"

    def test_lists_more_than_its_backend_answers_at_once(self, storage: ListingStorage) -> None:
        """A listing goes on after the backend's first page: an entry missing from it is never deleted.

        If this fails, check that ``entries`` asks for the next page until there is none.
        """
        entries = [make_entry(f"{number}".encode(), scope="many") for number in range(self.listed_entries)]
        with ThreadPoolExecutor(THREADS) as threads:
            list(threads.map(partial(save, storage), entries))
        missed = {entry.key for entry in entries} - set(listing(storage, f"{scope_part('many')}/"))
        assert not missed, f"{len(missed)} of {len(entries)} entries are not listed"

    def test_lists_nothing_that_was_refused(self, storage: ListingStorage) -> None:
        """A save that raised added nothing to the listing, and no second entry next to the first.

        If this fails, check that the refusal comes before the first write.
        """
        entry = make_entry(b"original")
        save(storage, entry)
        with pytest.raises(StorageError):
            save(storage, Entry(entry.key, b"tampered", "image/png", {"sha256": "2" * 64}))
        found = wait_for(storage.entries(entry.key))
        assert [listed.size for listed in found] == [len(entry.content)], "a refused save left something behind"


class _Burst:
    """Many results of one scope at once, sync from threads or async from one loop."""

    scope = "burst"
    results = 150
    """More than one page of the listings that lose entries, few enough for every test run."""

    def __init__(self, storage: Storage, *, is_async: bool) -> None:
        self.offloader = Offloader(storage, policies={"*": Always()})
        self.is_async = is_async

    def save(self) -> list[str]:
        blocks = [[TextBlock(f"result {number} of a burst\n")] for number in range(self.results)]
        if self.is_async:
            outcomes = asyncio.run(self._save(blocks))
        else:
            save = partial(self.offloader.offload, tool_name="contract", scope=self.scope)
            with ThreadPoolExecutor(THREADS) as threads:
                outcomes = list(threads.map(save, blocks))
        assert all(outcome.references for outcome in outcomes), f"not every result was offloaded: {outcomes}"
        return [outcome.references[0].id for outcome in outcomes]

    async def _save(self, blocks: list[list[TextBlock]]) -> list[Outcome]:
        save = partial(self.offloader.aoffload, tool_name="contract", scope=self.scope)
        return await asyncio.gather(*map(save, blocks))

    def delete(self) -> None:
        delete = self.offloader.adelete_scope if self.is_async else self.offloader.delete_scope
        wait_for(delete(self.scope))

    def readable(self, references: list[str]) -> list[str]:
        return [each for each in references if _miss(self.offloader.load, each, self.scope) is not ReferenceExpired]


class ListsPagesContract(Contract):
    """What ``page`` promises: the newest entries first, and every entry on exactly one page."""

    capability: ClassVar[type] = ListsPages

    def make_older(self, storage: Any, key: str) -> bool:  # noqa: ANN401 - an override names the storage's own class
        """Override as for ``ListsContract``."""
        del storage, key
        return False

    @pytest.mark.parametrize("limit", [1, 2, 3, 5, 100])
    def test_all_pages_together_are_the_listing(self, storage: PagingStorage, limit: int) -> None:
        """Every entry under the prefix is on exactly one page, and no page has more than were asked for.

        If this fails, check where the next page begins: after the last entry of the previous one.
        """
        saved = [make_entry(f"content {number}".encode(), scope="mine") for number in range(5)]
        for entry in (*saved, make_entry(b"other", scope="yours"), make_entry(b"other", scope=("mine", "below"))):
            save(storage, entry)
        pages = list(_pages(storage, f"{Key.parse(saved[0].key).scope}/", limit=limit))
        assert all(len(page.entries) <= limit for page in pages), "a page has more entries than were asked for"
        listed = [entry.key for page in pages for entry in page.entries]
        assert sorted(listed) == sorted(entry.key for entry in saved), "the pages together are not the listing"
        sizes = {entry.key: entry.size for page in pages for entry in page.entries}
        assert sizes == {entry.key: len(entry.content) for entry in saved}, "the size in the listing is wrong"

    def test_the_newest_come_first(self, storage: PagingStorage) -> None:
        """The entry saved last is on the first page.

        If this fails, check that entries are sorted by time, the latest first, before the page is cut.
        """
        older, newer = make_entry(b"older"), make_entry(b"newer")
        save(storage, older)
        aged = self.make_older(storage, older.key)
        save(storage, newer)
        page = wait_for(storage.page(f"{Key.parse(newer.key).scope}/", limit=2))
        times = [entry.modified for entry in page.entries]
        assert times == sorted(times, reverse=True), "the entries of a page are not in order"
        if aged:
            assert [entry.key for entry in page.entries] == [newer.key, older.key], "the newest entry is not the first"

    def test_metadata_are_those_that_were_saved(self, storage: PagingStorage) -> None:
        """An entry of a page has the metadata that was saved with it, or None if the listing does not know it.

        If this fails, check that the metadata belongs to this entry, and is returned unchanged.
        """
        entry = make_entry(b"content", tool="search%20orders")
        save(storage, entry)
        (listed,) = wait_for(storage.page(entry.key, limit=1)).entries
        assert listed.metadata is None or dict(listed.metadata) == entry.metadata, "the metadata is wrong"

    def test_nothing_is_an_empty_page(self, storage: PagingStorage) -> None:
        """A scope without entries gives one empty page, and no error.

        If this fails, check for code that assumes a first entry.
        """
        page = wait_for(storage.page("0" * 16 + "/", limit=10))
        assert page.entries == (), "the page of an unknown scope is not empty"
        assert page.after is None, "an empty listing has a further page"


def _pages(storage: PagingStorage, prefix: str, *, limit: int) -> Iterator[Page]:
    after: str | None = None
    for _ in range(MAX_PAGES):
        page = wait_for(storage.page(prefix, limit=limit, after=after))
        yield page
        after = page.after
        if after is None:
            return
    pytest.fail("the pages have no end", pytrace=False)


class SweepsContract(Contract):
    """What ``sweep`` promises: it removes the named entries, except those used since."""

    capability: ClassVar[type] = Sweeps

    def test_sweeps_what_is_older_and_nothing_else(self, storage: SweepingStorage) -> None:
        """Named entries last used before the limit are deleted, and their number is returned.

        If this fails, check that other entries stay, however old, and that only deleted ones are counted.
        """
        named, other = make_entry(b"named"), make_entry(b"not named")
        for entry in (named, other):
            save(storage, entry)
        later = listing(storage, named.key)[named.key].modified + 1
        never_saved = make_entry(b"never saved")
        assert wait_for(storage.sweep([named.key, never_saved.key], before=later)) == 1, "the count is wrong"
        assert wait_for(storage.load(named.key)) is None, "the entry is still there after the sweep"
        check_holds(storage, other, "after a sweep that did not name it")
        assert wait_for(storage.sweep([named.key], before=later)) == 0, "what was gone already was counted"

    def test_spares_what_was_used_since(self, storage: SweepingStorage) -> None:
        """A conversation may store the content again between listing and sweeping, and must not lose it.

        If this fails, check that the time is compared in the same step that removes the entry, not before.
        """
        entry = make_entry(b"used again")
        save(storage, entry)
        limit = listing(storage, entry.key)[entry.key].modified
        assert wait_for(storage.sweep([entry.key], before=limit)) == 0, "the count is wrong"
        check_holds(storage, entry, "after a sweep of what was older")


class LocalPathContract(Contract):
    """What ``local_path`` promises: the raw content, in a file on this machine, for agents that have a shell."""

    capability: ClassVar[type] = LocalPath

    @pytest.mark.parametrize("content_type", ["text/plain", "application/json", "image/png", "x/unheard-of"])
    def test_the_file_holds_the_raw_content(self, storage: LocalStorage, content_type: str) -> None:
        """The file at the path is the content, byte for byte: no header, no compression, no encoding.

        If this fails, check that ``local_path`` and ``save`` agree on the name for every content type.
        """
        entry = make_entry(EVERY_BYTE, content_type=content_type)
        save(storage, entry)
        path = storage.local_path(entry.key, content_type=content_type)
        assert path.is_absolute(), "the path is relative: it would change with the current folder"
        require_same(path.read_bytes(), entry.content, "the file is not the raw content")

    def test_each_entry_has_a_file_of_its_own(self, storage: LocalStorage) -> None:
        """Two entries never share a file.

        If this fails, check that the file name depends on the whole key, including the scope.
        """
        entries = [make_entry(b"one"), make_entry(b"two"), make_entry(b"one", scope="elsewhere")]
        paths = {storage.local_path(entry.key, content_type=entry.content_type) for entry in entries}
        assert len(paths) == len(entries), "two entries share a file"

    @pytest.mark.parametrize("key", MALFORMED_KEYS, ids=id_of_key)
    def test_a_malformed_key_names_no_file_outside(self, storage: LocalStorage, key: str) -> None:
        """No key names a file outside the storage's own folder.

        If this fails, check keys against the form that the engine makes, before they become a path.
        """
        one, other = make_entry(b"x"), make_entry(b"x", scope="elsewhere")
        paths = [storage.local_path(entry.key, content_type="text/plain") for entry in (one, other)]
        inside = os.path.commonpath(paths)
        try:
            named = os.path.normpath(storage.local_path(key, content_type="text/plain"))
        except (StorageError, ValueError):
            return
        assert os.path.commonpath([inside, named]) == inside, f"the key {key!r} names a file outside {inside}"


def _index_of(entry: Entry) -> Entry:
    """Return the line index of an entry, as the engine would save it."""
    return Entry(str(Key.parse(entry.key).line_index), b"index", "application/json", {"sha256": "1" * 64})


def _miss(ask: Callable[..., object], reference: str, scope: str) -> type[Exception] | None:
    """Return the class of the error that a read raises, or None."""
    try:
        ask(reference, scope=scope)
    except CoatcheckError as error:
        return type(error)
    return None


def part(storage: RangedStorage, entry: Entry, *, start: int, length: int) -> Stored:
    """Load a part of an entry that must be there, sync or async."""
    found = wait_for(storage.load_range(entry.key, start=start, length=length))
    assert found is not None, f"load_range(start={start}, length={length}) returned None for an entry that is there"
    return found


def check_range(storage: RangedStorage, entry: Entry, *, start: int, length: int) -> None:
    """Save an entry, and check one range of it."""
    save(storage, entry)
    found = part(storage, entry, start=start, length=length)
    require_same(
        found.content, entry.content[start : start + length], f"the range from {start}, {length} bytes, is wrong"
    )
    assert found.size == len(entry.content), "size must be that of the whole entry, even for a range"
    assert found.whole in {None, entry.content}, "whole must be all the bytes, or None"
    assert found.content_type == entry.content_type, "a range forgot the content type"
    assert dict(found.metadata) == entry.metadata, "a range forgot the metadata"


def listing(storage: ListingStorage, prefix: str) -> dict[str, Listed]:
    """List entries by key, sync or async."""
    return {found.key: found for found in wait_for(storage.entries(prefix))}
