"""Storages with one realistic defect each, and what the contract must say about it.

To add one, add a class with its defect as the docstring, and its line in ``BROKEN``.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coatcheck import FileStorage, Listed, Page, Stored
from coatcheck.testing.storage import LONGEST_HOLD_UP_SECONDS
from tests.testing.dict_storages import CapableStorage

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


__all__ = ("BROKEN",)


class LosesTheLastByte(CapableStorage):
    """Cuts the end off."""

    def load(self, key: str) -> Stored | None:
        found = super().load(key)
        return found if found is None else replace(found, content=found.content[:-1])


class TranslatesLineEnds(CapableStorage):
    """Writes in text mode, as on Windows."""

    def load(self, key: str) -> Stored | None:
        found = super().load(key)
        return found if found is None else replace(found, content=found.content.replace(b"\r\n", b"\n"))


class StopsAtNul(CapableStorage):
    """Passes content through a C string, which ends at a NUL."""

    def load(self, key: str) -> Stored | None:
        found = super().load(key)
        return found if found is None else replace(found, content=found.content.partition(b"\0")[0])


class TakesEmptyForMissing(CapableStorage):
    """Tests whether the content is empty instead of whether the entry exists."""

    def load(self, key: str) -> Stored | None:
        found = super().load(key)
        return found if found and found.content else None


class HasALimit(CapableStorage):
    """Silently cuts off what its backend does not accept."""

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        super().save(key, content[:1_000_000], content_type=content_type, metadata=metadata)


class ForgetsTheType(CapableStorage):
    """Guesses the type instead of keeping it."""

    def load(self, key: str) -> Stored | None:
        found = super().load(key)
        return found if found is None else replace(found, content_type="text/plain")


class DropsMetadata(CapableStorage):
    """Keeps only the digest."""

    def load(self, key: str) -> Stored | None:
        found = super().load(key)
        return found if found is None else replace(found, metadata={"sha256": found.metadata["sha256"]})


class RaisesOnAnUnknownKey(CapableStorage):
    """Lets the backend's own "not found" error through."""

    def load(self, key: str) -> Stored | None:
        return self.held[key]


class RefusesASecondSave(CapableStorage):
    """Creates exclusively, and treats "exists" as a failure."""

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        if key in self.held:
            raise FileExistsError(key)
        super().save(key, content, content_type=content_type, metadata=metadata)


class Appends(CapableStorage):
    """Opens for appending."""

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        before = self.held.pop(key, None)
        content = content if before is None else before.content + content
        super().save(key, content, content_type=content_type, metadata=metadata)


class AcceptsOtherContent(CapableStorage):
    """Lets the last save win."""

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        self.held.pop(key, None)
        super().save(key, content, content_type=content_type, metadata=metadata)


class ComparesSizesOnly(CapableStorage):
    """Treats content of another size as a new version of the entry."""

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        if key in self.held and self.held[key].size != len(content):
            del self.held[key]
        super().save(key, content, content_type=content_type, metadata=metadata)


class IgnoresTheScope(CapableStorage):
    """Uses only the part of a key after the slash."""

    def load(self, key: str) -> Stored | None:
        digest = key.partition("/")[2]
        return next((found for held, found in self.held.items() if held.partition("/")[2] == digest), None)


class CutsTheScope(CapableStorage):
    """Keeps only the first 32 digits of a scope, like a column of that length."""

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        super().save(_cut(key), content, content_type=content_type, metadata=metadata)

    def load(self, key: str) -> Stored | None:
        return super().load(_cut(key))


def _cut(key: str) -> str:
    scope, slash, digest = key.partition("/")
    return scope[:32] + slash + digest


class KeepsAnAlias(CapableStorage):
    """Keeps the caller's own object."""

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        super().save(key, content, content_type=content_type, metadata=metadata)
        self.held[key] = Stored(content=content, content_type=content_type, metadata=metadata, size=len(content))


class SharesItsState(CapableStorage):
    """Passes an entry from one method to another through an attribute."""

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        self.current = content
        time.sleep(0.002)  # long enough for another thread to interfere
        super().save(key, self.current, content_type=content_type, metadata=metadata)


class NormalizesKeys(CapableStorage):
    """Normalises keys as if they were paths."""

    def load(self, key: str) -> Stored | None:
        found = super().load(key)
        return next(iter(self.held.values()), None) if found is None and ".." in key else found


class KeepsALoop(CapableStorage):
    """Is async, and is bound to the event loop that first used it."""

    def __init__(self) -> None:
        super().__init__()
        self.loop: Any = None

    async def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:  # type: ignore[override]
        self.loop = self.loop or asyncio.get_running_loop()
        if self.loop is not asyncio.get_running_loop():
            message = "bound to a different event loop"
            raise RuntimeError(message)
        super().save(key, content, content_type=content_type, metadata=metadata)


class RemembersMisses(CapableStorage):
    """Caches all answers of its backend, even misses."""

    def __init__(self) -> None:
        super().__init__()
        self.cache: dict[str, Stored | None] = {}

    def load(self, key: str) -> Stored | None:
        if key not in self.cache:
            self.cache[key] = super().load(key)
        return self.cache[key]


class ReturnsStaleContent(CapableStorage):
    """Caches what it has loaded, and keeps that after a deletion."""

    def __init__(self) -> None:
        super().__init__()
        self.cache: dict[str, Stored] = {}

    def load(self, key: str) -> Stored | None:
        found = self.cache.get(key) or super().load(key)
        if found is not None:
            self.cache[key] = found
        return found


class BlocksTheLoop(CapableStorage):
    """Is async, but blocks while it waits for its backend."""

    async def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:  # type: ignore[override]
        time.sleep(LONGEST_HOLD_UP_SECONDS * 1.2)  # noqa: ASYNC251 - the defect
        super().save(key, content, content_type=content_type, metadata=metadata)


class IsOffByOne(CapableStorage):
    """Treats the end of a range as inclusive, as HTTP does."""

    def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        return super().load_range(key, start=start, length=length + 1)


class TakesZeroForNoLimit(CapableStorage):
    """Reads everything when asked for nothing."""

    def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        return super().load_range(key, start=start, length=length or 1_000_000)


class SaysTheSizeOfThePart(CapableStorage):
    """Forgets how large the whole is."""

    def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        found = super().load_range(key, start=start, length=length)
        return found if found is None else replace(found, size=len(found.content))


class TakesAPartForTheWhole(CapableStorage):
    """Returns the part as the whole."""

    def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        found = super().load_range(key, start=start, length=length)
        return found if found is None else replace(found, whole=found.content)


class RaisesBeyondTheEnd(CapableStorage):
    """Lets the backend's "range not satisfiable" error through."""

    def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        found = super().load_range(key, start=start, length=length)
        if found is not None and start >= found.size > 0:
            message = "416"
            raise ValueError(message)
        return found


class DeletesNothing(CapableStorage):
    """Says that it deleted the entry, and keeps it."""

    def delete(self, key: str) -> None:
        pass


class LosesDeletes(CapableStorage):
    """Takes every fiftieth entry off its list without deleting it, like a queue that overflows."""

    def __init__(self) -> None:
        super().__init__()
        self.deletes = 0
        self.unlisted: set[str] = set()

    def delete_many(self, keys: Sequence[str]) -> Collection[str]:
        return keys

    def delete(self, key: str) -> None:
        self.deletes += 1
        if self.deletes % 50:
            super().delete(key)
        else:
            self.unlisted.add(key)

    def entries(self, prefix: str) -> Iterable[Listed]:
        return [listed for listed in super().entries(prefix) if listed.key not in self.unlisted]


class DeletesAllButOne(CapableStorage):
    """Ignores the backend's errors for single keys."""

    def delete_many(self, keys: Sequence[str]) -> Collection[str]:
        super().delete_many(keys)
        return []


class ForgetsToSayWhatIsLeft(CapableStorage):
    """Does not return the keys that were not deleted."""

    def delete_many(self, keys: Sequence[str]) -> Collection[str]:
        super().delete_many(keys)
        return None  # type: ignore[return-value]


class NamesObjects(CapableStorage):
    """Returns the backend's own names instead of keys."""

    def delete_many(self, keys: Sequence[str]) -> Collection[str]:
        return [f"v1/{key}" for key in super().delete_many(keys)]


class DeletesManyThatAreThere(CapableStorage):
    """Lets the backend's own "not found" error through."""

    def delete_many(self, keys: Sequence[str]) -> Collection[str]:
        for key in keys:
            del self.held[key]
        return []


class DeletesManyByPrefix(CapableStorage):
    """Deletes every entry whose key begins with one of the given ones."""

    def delete_many(self, keys: Sequence[str]) -> Collection[str]:
        self.held = {held: found for held, found in self.held.items() if not held.startswith(tuple(keys))}
        return []


class DeletesByPrefix(CapableStorage):
    """Deletes every entry whose key begins with the given one."""

    def delete(self, key: str) -> None:
        self.held = {held: found for held, found in self.held.items() if not held.startswith(key)}


class RaisesOnASecondDelete(CapableStorage):
    """Lets the backend's own "not found" error through."""

    def delete(self, key: str) -> None:
        del self.held[key]


class MarksWhatIsGone(CapableStorage):
    """Keeps a mark for each deleted entry, and raises when such an entry is read."""

    def __init__(self) -> None:
        super().__init__()
        self.gone: set[str] = set()

    def delete(self, key: str) -> None:
        super().delete(key)
        self.gone.add(key)

    def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        if key in self.gone:
            message = "410"
            raise ValueError(message)
        return super().load_range(key, start=start, length=length)


class ListsEverything(CapableStorage):
    """Ignores the prefix."""

    def entries(self, prefix: str) -> Iterable[Listed]:
        return super().entries("")


class ListsOnePage(CapableStorage):
    """Lists only the first page that the backend returns."""

    def entries(self, prefix: str) -> Iterable[Listed]:
        return list(super().entries(prefix))[:1_000]


class HidesIndexes(CapableStorage):
    """Lists only contents, and no line indexes."""

    def entries(self, prefix: str) -> Iterable[Listed]:
        return [listed for listed in super().entries(prefix) if not listed.key.endswith("-lines")]


class CountsCharacters(CapableStorage):
    """Reports sizes in characters instead of bytes."""

    def entries(self, prefix: str) -> Iterable[Listed]:
        return [
            replace(each, size=len(self.held[each.key].content.decode(errors="ignore")))
            for each in super().entries(prefix)
        ]


class ListsOthersMetadata(CapableStorage):
    """Returns the backend's own listing data as an entry's metadata."""

    def entries(self, prefix: str) -> Iterable[Listed]:
        return [replace(each, metadata={"etag": "1"}) for each in super().entries(prefix)]


class CountsMilliseconds(CapableStorage):
    """Reports times in milliseconds, as JavaScript does."""

    def entries(self, prefix: str) -> Iterable[Listed]:
        return [replace(each, modified=(1.7e9 + each.modified) * 1_000) for each in super().entries(prefix)]


class TellsTheTime(CapableStorage):
    """Reports the time of the listing as the time of each entry."""

    def entries(self, prefix: str) -> Iterable[Listed]:
        self.now += 1
        return [replace(each, modified=self.now) for each in super().entries(prefix)]


class ListsWholeScopes(CapableStorage):
    """Looks a scope up by its whole name."""

    def entries(self, prefix: str) -> Iterable[Listed]:
        scope, slash, _ = prefix.partition("/")
        listed = super().entries(prefix)
        return listed if slash or not scope else [each for each in listed if each.key.startswith(f"{scope}/")]


class PagesOldestFirst(CapableStorage):
    """Puts the oldest entries of a page first."""

    def page(self, prefix: str, *, limit: int, after: str | None = None) -> Page:
        found = super().page(prefix, limit=limit, after=after)
        return replace(found, entries=found.entries[::-1])


class RepeatsAnEntry(CapableStorage):
    """Begins each page with the last entry of the previous page."""

    def page(self, prefix: str, *, limit: int, after: str | None = None) -> Page:
        ordered = sorted(self.entries(prefix), key=lambda listed: (-listed.modified, listed.key))
        first = next((at for at, listed in enumerate(ordered) if listed.key == after), 0)
        page = tuple(ordered[first : first + limit])
        return Page(entries=page, after=page[-1].key if len(ordered) > first + limit else None)


class PagesOthersMetadata(CapableStorage):
    """Returns the backend's own listing data as an entry's metadata."""

    def page(self, prefix: str, *, limit: int, after: str | None = None) -> Page:
        found = super().page(prefix, limit=limit, after=after)
        return replace(found, entries=tuple(replace(each, metadata={"etag": "1"}) for each in found.entries))


class PagesForever(CapableStorage):
    """Announces a further page even after an empty one."""

    def page(self, prefix: str, *, limit: int, after: str | None = None) -> Page:
        return replace(super().page(prefix, limit=limit, after=after), after=after or "more")


class LosesBetweenPages(CapableStorage):
    """Pages by offset through entries that share a time, so that their order changes from page to page."""

    def entries(self, prefix: str) -> Iterable[Listed]:
        found = list(super().entries(prefix))
        pages: list[Listed] = []
        for offset in range(0, len(found), 20):
            random.Random(offset).shuffle(found)  # noqa: S311 - no secret
            pages += found[offset : offset + 20]
        return {listed.key: listed for listed in pages}.values()


class ForgetsToRefresh(CapableStorage):
    """Keeps the time of the first save."""

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        before = self.times.get(key)
        super().save(key, content, content_type=content_type, metadata=metadata)
        self.times[key] = self.times[key] if before is None else before


class SweepsByTheListing(CapableStorage):
    """Assumes that an entry that was listed as old is still old when it is removed."""

    def sweep(self, keys: Iterable[str], *, before: float) -> int:
        return super().sweep(keys, before=float("inf"))


class SweepsEverythingOld(CapableStorage):
    """Removes everything old, whether it was named or not."""

    def sweep(self, keys: Iterable[str], *, before: float) -> int:
        return super().sweep(list(self.held), before=before)


class CountsWhatItWasTold(CapableStorage):
    """Returns the number of given keys instead of removed ones."""

    def sweep(self, keys: Iterable[str], *, before: float) -> int:
        super().sweep(keys, before=before)
        return len(list(keys))


class FollowsKeys(FileStorage):
    """Uses the key as a path without checking it."""

    def __init__(self) -> None:
        super().__init__("/nowhere")

    def local_path(self, key: str, *, content_type: str) -> Path:
        return Path("/nowhere/v1", key.replace("\0", "0"))


BROKEN: dict[type, tuple[str, str]] = {
    LosesTheLastByte: ("test_loads_the_bytes_that_were_saved", "the content is not what was saved"),
    TranslatesLineEnds: ("test_loads_the_bytes_that_were_saved", "the content is not what was saved"),
    StopsAtNul: ("test_keeps_every_byte", "the content is not what was saved"),
    TakesEmptyForMissing: ("test_keeps_empty_content", "the entry is not there"),
    HasALimit: ("test_keeps_large_content", "1,000,000 bytes instead of 5,000,000"),
    ForgetsTheType: ("test_keeps_the_content_type", "the content type was not kept"),
    DropsMetadata: ("test_keeps_the_metadata", "the metadata was not kept"),
    RaisesOnAnUnknownKey: ("test_an_unknown_key_gives_none", "instead of returning None"),
    RefusesASecondSave: ("test_saving_again_changes_nothing", "not idempotent"),
    Appends: ("test_saving_again_changes_nothing", "the content is not what was saved, after a second save"),
    AcceptsOtherContent: ("test_refuses_other_content_under_the_same_key", "accepted silently"),
    ComparesSizesOnly: ("test_refuses_other_content_under_the_same_key", "accepted silently"),
    IgnoresTheScope: ("test_keeps_scopes_apart", "another scope"),
    KeepsAnAlias: ("test_keeps_nothing_that_the_caller_can_change", "a mutable alias is kept"),
    SharesItsState: ("test_many_threads_at_once", "while other threads save and load"),
    NormalizesKeys: ("test_a_malformed_key_does_no_harm", "reads something that it never saved"),
    KeepsALoop: ("test_saving_again_changes_nothing", "different event loop"),
    RemembersMisses: ("test_a_miss_is_not_remembered", "the entry is not there"),
    ReturnsStaleContent: ("test_what_was_deleted_is_gone", "still there after delete"),
    BlocksTheLoop: ("test_the_event_loop_stays_free", "the event loop was held up"),
    IsOffByOne: ("test_a_range_is_those_bytes", "is wrong: 2 bytes instead of 1"),
    TakesZeroForNoLimit: ("test_length_zero_asks_for_what_is_known", "is wrong: 1,000 bytes instead of 0"),
    SaysTheSizeOfThePart: ("test_a_range_is_those_bytes", "size must be that of the whole entry"),
    TakesAPartForTheWhole: ("test_a_range_is_those_bytes", "whole must be all the bytes, or None"),
    RaisesBeyondTheEnd: ("test_a_range_beyond_the_end_gives_less", "416"),
    DeletesNothing: ("test_what_was_deleted_is_gone", "still there after delete"),
    DeletesByPrefix: ("test_deleting_leaves_the_others", "the entry is not there"),
    DeletesAllButOne: ("test_what_is_not_returned_is_gone", "delete_many did not return its key"),
    ForgetsToSayWhatIsLeft: ("test_what_is_not_returned_is_gone", "must return the keys that it left"),
    NamesObjects: ("test_what_is_not_returned_is_gone", "returned keys that it was not given"),
    DeletesManyThatAreThere: ("test_a_thousand_keys_at_once_most_of_them_of_nothing", "KeyError"),
    DeletesManyByPrefix: ("test_deleting_many_leaves_the_others", "the entry is not there"),
    RaisesOnASecondDelete: ("test_deleting_twice_is_no_error", "KeyError"),
    MarksWhatIsGone: ("test_what_was_deleted_has_expired_and_what_never_was_is_unknown", "has not expired"),
    ListsEverything: ("test_lists_only_what_has_the_prefix", "does not keep to the prefix"),
    HidesIndexes: ("test_lists_what_was_saved", "missing from the listing"),
    ListsOnePage: ("test_lists_more_than_its_backend_answers_at_once", "100 of 1100 entries are not listed"),
    CountsCharacters: ("test_lists_what_was_saved", "the size in the listing is wrong"),
    ListsOthersMetadata: ("test_lists_what_was_saved", "the metadata is wrong"),
    CountsMilliseconds: ("test_saving_again_refreshes_the_time", "not in seconds since 1970"),
    TellsTheTime: ("test_saving_again_refreshes_the_time", "changes without one"),
    ListsWholeScopes: ("test_lists_what_is_below_the_first_parts_of_a_scope", "below the first part of a tuple"),
    CutsTheScope: ("test_keeps_the_scopes_of_tuples_apart", "of another scope"),
    PagesOldestFirst: ("test_the_newest_come_first", "not in order"),
    RepeatsAnEntry: ("test_all_pages_together_are_the_listing", ""),
    PagesOthersMetadata: ("test_metadata_are_those_that_were_saved", "the metadata is wrong"),
    PagesForever: ("test_nothing_is_an_empty_page", "an empty listing has a further page"),
    LosesBetweenPages: (
        "test_a_burst_is_listed_whole_and_goes_with_its_scope",
        "of 150 entries that were saved at once are not listed",
    ),
    LosesDeletes: (
        "test_a_burst_is_listed_whole_and_goes_with_its_scope",
        "results are readable after delete_scope",
    ),
    ForgetsToRefresh: ("test_saving_again_refreshes_the_time", "did not refresh"),
    SweepsByTheListing: ("test_spares_what_was_used_since", "the count is wrong"),
    SweepsEverythingOld: ("test_sweeps_what_is_older_and_nothing_else", "the count is wrong"),
    CountsWhatItWasTold: ("test_sweeps_what_is_older_and_nothing_else", "the count is wrong"),
    FollowsKeys: ("test_a_malformed_key_names_no_file_outside", "names a file outside"),
}
"""For each defect: the test of the contract that must fail, and words in its message that name the defect."""
