"""Checks what a storage contains, and deletes what the host wants gone, as generators of effects.

A storage with limits of its own makes room by itself. Apart from that, only this module deletes anything, and only when
the host asks: scopes that ended, or entries past a limit. Storages list and remove; this module decides which entries
go. Entries with keys that coatcheck does not make belong to somebody else: they are neither checked nor deleted.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from coatcheck.core.checks import is_number
from coatcheck.core.errors import CoatcheckError, CorruptContent, InvalidRequest, StorageError
from coatcheck.core.references import Key, begin_digest, is_storage_key, scope_part
from coatcheck.engine.contents import require_digest, require_stored
from coatcheck.engine.execution import answer_of
from coatcheck.storage.protocol import Listed, Page, Stored, newest_first

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

    from coatcheck.core.references import Scope
    from coatcheck.engine.execution import Effect, Effects, StorageAccess

__all__ = (
    "GRACE_SECONDS",
    "SweepLimits",
    "batches",
    "damage",
    "delete_all",
    "entries",
    "newest",
    "overdue",
    "remove_unused",
    "sweep",
)

Item = TypeVar("Item")

GRACE_SECONDS = 3_600.0
"""``sweep`` keeps what was saved within the last hour: a conversation may be about to use it."""

MAX_PASSES = 5
"""Passes of ``delete_all``. It usually takes two: one that deletes, and one that finds nothing left."""

TOGETHER = 250
"""Keys in one ``delete_many``. S3 takes 1,000, but counts each as one of the 3,500 writes a second that it allows below
a prefix, and a request that is slowed down is repeated whole: so Hadoop's S3A client went from 1,000 to 250
(HADOOP-16823). A server that takes its time for each key also answers in time."""

CHECKED_TOGETHER = 1_000
"""Entries of a scope that a sweep checks with one listing of the scope: as many as S3 lists in one answer. With more,
the gap between a check and the deletion would be longer."""

PART_BYTES = 8 << 20
"""Chunk size for checking an entry. It bounds memory, and is small enough for a network to deliver in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepLimits:
    """The limits of a sweep. None: no limit."""

    max_age_seconds: float | None
    """How long ago the entry may have been saved or refreshed."""

    max_bytes: float | None
    """How many bytes the whole storage may hold."""

    max_scope_bytes: float | None
    """How many bytes each scope may hold."""

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            InvalidRequest: there is no limit, or one is not a number of at least 0.

        """
        limits = {name: getattr(self, name) for name in self.__slots__}
        if set(limits.values()) == {None}:
            msg = f"sweep needs a limit, one or more of {', '.join(limits)}"
            raise InvalidRequest(msg)
        for name, limit in limits.items():
            if limit is not None and not (is_number(limit) and limit >= 0):
                msg = f"{name} must be a number of at least 0, not {limit!r}"
                raise InvalidRequest(msg)


# Looking.


def entries(storage: StorageAccess, prefix: str) -> Effects[list[Listed]]:
    """Return our entries under ``prefix``.

    Raises:
        InvalidRequest: the storage cannot list.
        StorageError: the storage failed, or listed something else.

    """
    listing = storage.call("entries", prefix)
    answer = yield from _answer(listing)
    listed = answer_of(listing, partial(list, cast("Iterable[Listed]", answer)))  # may ask the backend here
    if isinstance(listed, CoatcheckError):
        raise listed
    return _require_listed(storage, cast("list[Listed]", listed))


def _answer(call: Effect) -> Effects[object]:
    """Return what a call of the storage answers; raise the error that it ended with."""
    answer = yield call
    if isinstance(answer, CoatcheckError):
        raise answer
    return answer


def _wrong_answer(storage: StorageAccess, promise: str, found: str) -> StorageError:
    return StorageError(f"{type(storage.storage).__name__}{promise}, not {found}; fix the storage")


def _require_listed(storage: StorageAccess, listed: Iterable[Listed]) -> list[Listed]:
    """Return the listed entries that are ours.

    Raises:
        StorageError: the storage listed something other than entries.

    """
    ours = []
    for entry in listed:
        if not _is_well_formed(entry):
            promise = " must list coatcheck.Listed with key: str, size: int and modified: float"
            raise _wrong_answer(storage, promise, _described(entry))
        if is_storage_key(entry.key):
            ours.append(entry)
    return ours


_LATEST = 10**12
"""Seconds since the epoch: some 30,000 years, and small enough for any arithmetic."""


def _described(entry: object) -> str:
    """Return the types of what was listed, without its values: those may be content."""
    if not isinstance(entry, Listed):
        return type(entry).__name__
    return (
        f"Listed({', '.join(f'{field.name}: {type(getattr(entry, field.name)).__name__}' for field in fields(Listed))})"
    )


def _is_well_formed(entry: object) -> bool:
    return (
        isinstance(entry, Listed)
        and isinstance(entry.key, str)
        and isinstance(entry.size, int)
        and isinstance(entry.modified, int | float)
        and not (isinstance(entry.modified, int) and abs(entry.modified) > _LATEST)  # no float holds it
        and isinstance(entry.metadata, Mapping | None)
        and isinstance(entry.content_type, str | None)
    )


def newest(storage: StorageAccess, scope: Scope, *, limit: int, after: str | None) -> Effects[Page]:
    """Return at most ``limit`` contents of a scope, newest first as ``coatcheck.ListsPages`` says.

    ``after`` comes from the previous page. Line indexes count, so a page may have fewer contents without being the
    last. A storage that cannot list pages is listed whole for each one.

    Raises:
        InvalidRequest: the storage cannot list.
        StorageError: the storage failed, or answered with something else.

    """
    prefix = f"{scope_part(scope)}/"
    if not storage.lists_pages:
        page = newest_first((yield from entries(storage, prefix)), limit=limit, after=after)
    else:
        answer = yield from _answer(storage.call("page", prefix, limit=limit, after=after))
        if not (
            isinstance(answer, Page) and isinstance(answer.after, str | None) and isinstance(answer.entries, tuple)
        ):
            raise _wrong_answer(storage, ".page must return a coatcheck.Page", type(answer).__name__)
        page = answer
    contents = (
        entry
        for entry in _require_listed(storage, page.entries[:limit])
        if entry.key.startswith(prefix) and Key.parse(entry.key).is_content
    )
    return Page(entries=tuple(contents), after=page.after)


def damage(storage: StorageAccess, entry: Listed, *, keys: Container[str]) -> Effects[CoatcheckError | None]:
    """Read a listed entry to its end; return what is wrong with it, or None if it is intact.

    ``keys`` are the keys listed with it. The answer is also None for an entry that has been deleted since it was
    listed, and for one that the storage is still writing.
    """
    key = Key.parse(entry.key)
    try:
        if key.is_line_index and str(key.content) not in keys:
            yield from _require_content(storage, key)
        elif key.is_content or key.is_line_index:
            yield from _require_intact(storage, entry, key)
    except CoatcheckError as error:
        return error
    return None


def _require_intact(storage: StorageAccess, entry: Listed, key: Key) -> Effects[None]:
    read, digest = 0, None
    while True:
        whole = not storage.reads_ranges
        answer = yield (
            storage.call("load", entry.key)
            if whole
            else storage.call("load_range", entry.key, start=read, length=PART_BYTES)
        )
        if answer is None:
            yield from _require_gone(storage, entry.key)
            return
        answer = require_stored(answer)
        content = answer.content if answer.whole is None else answer.whole
        digest = digest or begin_digest(answer.content_type)
        digest.update(content)
        read += len(content)
        # Read up to the listed size, not the saved one: bytes appended to an entry are damage too.
        if not content or answer.whole is not None or whole or read >= entry.size:
            break
    require_digest(key, digest.hexdigest(), answer.metadata)


def _require_gone(storage: StorageAccess, key: str) -> Effects[None]:
    """Refuse an entry that did not load, unless it is no longer listed, or loads now."""
    listed = yield from entries(storage, key)
    if any(entry.key == key for entry in listed) and not isinstance((yield storage.call("load", key)), Stored):
        msg = f"only a part of the entry {key!r} is there: its content or its description"
        raise CorruptContent(msg)


def _require_content(storage: StorageAccess, key: Key) -> Effects[None]:
    """Refuse a line index whose content was not listed, unless that is no longer so."""
    content = str(key.content)
    listed = {entry.key for entry in (yield from entries(storage, content))}
    if str(key) in listed and content not in listed:
        msg = f"the line index of {content!r} is there, but the content is not: a sweep removes the index"
        raise CorruptContent(msg)


# Deleting.


def delete_all(storage: StorageAccess, prefix: str, *, now: float) -> Effects[int]:
    """Delete everything stored under ``prefix`` before ``now``; return the number of contents.

    One listing is no proof: a storage may miss entries while others change what it pages through. So this lists again
    until it finds nothing older than ``now``. What has been saved since may go or stay.

    Raises:
        InvalidRequest: the storage cannot list or delete.
        StorageError: the storage failed, or still lists older entries after the last pass.

    """
    deleted: set[str] = set()
    for _ in range(MAX_PASSES):
        listed = yield from entries(storage, prefix)
        yield from _delete(storage, [entry.key for entry in listed])
        deleted.update(entry.key for entry in listed if Key.parse(entry.key).is_content)
        if not _count_older(listed, now):
            return len(deleted)
    listed = yield from entries(storage, prefix)
    # Of a storage with times in whole seconds, what is saved later in the second of ``now`` seems to be older.
    left = _count_older([entry for entry in listed if entry.modified != math.floor(now)], now)
    if left:
        msg = (
            f"entries of this scope are left in {storage.storage!r}, and may still be readable: {left:,}, after"
            f" {MAX_PASSES} passes that deleted everything listed. Delete the scope again; if the number stays, fix"
            " the storage: it does not delete, or it lists entries that are gone"
        )
        raise StorageError(msg)
    return len(deleted)


def _count_older(listed: Sequence[Listed], now: float) -> int:
    return sum(1 for entry in listed if entry.modified < now)


def sweep(storage: StorageAccess, limits: SweepLimits, *, now: float) -> Effects[int]:
    """Delete what is past a limit and older than an hour, oldest first; return the number of entries."""
    listed = yield from entries(storage, "")
    return (yield from remove_unused(storage, overdue(listed, limits, now=now), now=now))


def overdue(listed: Sequence[Listed], limits: SweepLimits, *, now: float) -> list[Listed]:
    """Return what to delete, oldest first, until the rest is within the limits; never an entry of the last hour."""
    past: list[Listed] = []
    total = sum(entry.size for entry in listed)
    of_scope: Counter[str] = Counter()
    used: dict[str, float] = {}  # by content: its line index counts as just as old, since not every read uses the index
    parsed = [(entry, key.scope, str(key.content)) for entry in listed for key in [Key.parse(entry.key)]]
    for entry, scope, content in parsed:
        of_scope[scope] += entry.size
        used[content] = max(entry.modified, used.get(content, -math.inf))
    staying = {entry.key for entry in listed}
    for entry, scope, content in sorted(parsed, key=lambda one: (used[one[2]], one[0].key)):
        age = now - used[content]
        is_past = (
            _exceeds(age, limits.max_age_seconds)
            or _exceeds(total, limits.max_bytes)
            or _exceeds(of_scope[scope], limits.max_scope_bytes)
            or content not in staying  # a line index comes after its content, and goes with it
        )
        if age > GRACE_SECONDS and is_past:
            past.append(entry)
            staying.discard(entry.key)
            total -= entry.size
            of_scope[scope] -= entry.size
    return past


def remove_unused(storage: StorageAccess, past: Sequence[Listed], *, now: float) -> Effects[int]:
    """Delete the entries that nobody used in the hour before ``now``; return their number."""
    before = now - GRACE_SECONDS
    if storage.sweeps:
        answer = yield from _answer(storage.call("sweep", [entry.key for entry in past], before=before))
        if not isinstance(answer, int):
            promise = ".sweep must return the number of entries that it removed, an int"
            raise _wrong_answer(storage, promise, type(answer).__name__)
        return answer
    deleted = 0
    for batch in batches(storage, past):
        deleted += yield from _remove_checked(storage, batch, before=before)
    return deleted


def batches(storage: StorageAccess, past: Sequence[Listed]) -> Iterator[Sequence[Listed]]:
    """Yield the entries in the portions that ``remove_unused`` handles at once."""
    if storage.sweeps:
        yield past  # it looks through all of itself each time, so it is asked once
    elif not storage.deletes_many:
        yield from _portions(past, 1)
    else:
        of_scope: defaultdict[str, list[Listed]] = defaultdict(list)
        for entry in past:
            of_scope[Key.parse(entry.key).scope].append(entry)
        for found in of_scope.values():
            yield from _portions(found, CHECKED_TOGETHER)


def _remove_checked(storage: StorageAccess, batch: Sequence[Listed], *, before: float) -> Effects[int]:
    """Delete one entry, or several of one scope, if nobody used them since ``before``; return the number.

    An entry may still be used after this check, but the gap is a moment, not the length of the whole sweep.
    """
    key, *more = [Key.parse(entry.key) for entry in batch]
    found = yield from entries(storage, f"{key.scope}/" if more else str(key.content))
    used = {str(Key.parse(entry.key).content) for entry in found if entry.modified >= before}
    unused = {entry.key for entry in found if str(Key.parse(entry.key).content) not in used}
    going = [entry for entry in batch if entry.key in unused]
    if not more:
        yield from _delete(storage, [entry.key for entry in going])
        return len(going)
    deleted = 0
    for portion in _portions(going, TOGETHER):
        left = yield from _delete_together(storage, [entry.key for entry in portion])
        deleted += len(portion) - len(left)
        for entry in portion:
            if entry.key in left:  # by now the check is too old for it
                deleted += yield from _remove_checked(storage, [entry], before=before)
    return deleted


def _exceeds(value: float, limit: float | None) -> bool:
    return limit is not None and value > limit


def _delete(storage: StorageAccess, keys: Sequence[str]) -> Effects[None]:
    """Delete entries, together where the storage can.

    Raises:
        StorageError: the storage failed to delete one of them; it may still hold those after it.

    """
    for portion in _portions(keys, TOGETHER if storage.deletes_many else 1):
        for key in (yield from _delete_together(storage, portion)):
            yield from _answer(storage.call("delete", key))


def _delete_together(storage: StorageAccess, keys: Sequence[str]) -> Effects[Sequence[str]]:
    """Ask the storage to delete up to ``TOGETHER`` entries at once; return those that it left. One is always left.

    Raises:
        StorageError: the storage failed, or answered with something else.

    """
    if len(keys) <= 1:
        return keys
    answer = yield from _answer(storage.call("delete_many", keys))
    if isinstance(answer, str | bytes) or not isinstance(answer, Collection):
        promise = ".delete_many must return the keys that it left, such as []"
        raise _wrong_answer(storage, promise, type(answer).__name__)
    return [key for key in keys if key in answer]


def _portions(whole: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (whole[start : start + size] for start in range(0, len(whole), size))
