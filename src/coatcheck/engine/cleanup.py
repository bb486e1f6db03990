"""Deletes what the host wants gone, as generators of effects.

A storage with limits of its own makes room by itself. Apart from that, only this module deletes anything, and only when
the host asks: scopes that ended, or entries past a limit. Storages list and remove; this module decides which of the
entries that ``entries`` lists are deleted.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from coatcheck.core.checks import is_number
from coatcheck.core.errors import InvalidRequest, StorageError
from coatcheck.core.references import Key
from coatcheck.engine.entries import ask, entries, wrong_answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coatcheck.engine.execution import Effects, StorageAccess
    from coatcheck.storage.protocol import Listed

__all__ = ("GRACE_SECONDS", "SweepLimits", "batches", "delete_all", "overdue", "remove_unused", "sweep")

Item = TypeVar("Item")

GRACE_SECONDS = 3_600.0
"""Seconds. ``sweep`` keeps what was saved within the last hour: a conversation may be about to use it."""

MAX_PASSES = 5
"""Passes of ``delete_all``, at most. It usually needs two: one that deletes, and one that finds nothing left."""

TOGETHER = 250
"""Keys in one ``delete_many``. S3 takes 1,000, but counts each as one of the 3,500 writes per second that it allows
under a prefix, and a throttled request is repeated whole; so Hadoop's S3A client went from 1,000 to 250 (HADOOP-16823).
A server that is slow with each key also answers in time."""

CHECKED_TOGETHER = 1_000
"""Entries of a scope that a sweep checks with one listing: as many as S3 lists in one answer. With more, the gap
between a check and the deletion would be longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepLimits:
    """The limits of a sweep. None: no limit."""

    max_age_seconds: float | None
    """Seconds since an entry was last saved or refreshed."""

    max_bytes: float | None
    """Bytes that the whole storage may hold."""

    max_scope_bytes: float | None
    """Bytes that each scope may hold."""

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            InvalidRequest: there is no limit, or one is not a number of at least 0.

        """
        limits = {name: getattr(self, name) for name in self.__slots__}
        if all(limit is None for limit in limits.values()):
            msg = f"sweep needs a limit, one or more of {', '.join(limits)}"
            raise InvalidRequest(msg)
        for name, limit in limits.items():
            if limit is not None and not (is_number(limit) and limit >= 0):
                msg = f"{name} must be a number of at least 0, not {limit!r}"
                raise InvalidRequest(msg)


def delete_all(storage: StorageAccess, prefix: str, *, now: float) -> Effects[int]:
    """Delete everything stored under ``prefix`` before ``now``; return the number of contents.

    One listing proves nothing: a storage may miss entries if others write or delete while it pages through them. So
    this lists again until it finds nothing older than ``now``. Entries saved since may or may not be deleted.

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
    # If a storage has times in whole seconds, an entry saved after ``now`` but in the same second seems to be older.
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
    """Return what to delete, oldest first, so that the rest is within the limits; never an entry of the last hour."""
    past: list[Listed] = []
    total = sum(entry.size for entry in listed)
    of_scope: Counter[str] = Counter()
    used: dict[str, float] = {}  # by content: its line index gets the same age, since not every read uses the index
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
            or content not in staying  # a line index comes after its content, and is deleted with it
        )
        if age > GRACE_SECONDS and is_past:
            past.append(entry)
            staying.discard(entry.key)
            total -= entry.size
            of_scope[scope] -= entry.size
    return past


def remove_unused(storage: StorageAccess, past: Sequence[Listed], *, now: float) -> Effects[int]:
    """Delete those of ``past`` that nobody used in the hour before ``now``; return their number."""
    before = now - GRACE_SECONDS
    if storage.sweeps:
        answer = yield from ask(storage.call("sweep", [entry.key for entry in past], before=before))
        if not isinstance(answer, int):
            promise = ".sweep must return the number of entries that it removed, an int"
            raise wrong_answer(storage, promise, type(answer).__name__)
        return answer
    deleted = 0
    for batch in batches(storage, past):
        deleted += yield from _remove_checked(storage, batch, before=before)
    return deleted


def batches(storage: StorageAccess, past: Sequence[Listed]) -> Iterator[Sequence[Listed]]:
    """Yield the entries in the batches that ``remove_unused`` handles at once."""
    if storage.sweeps:
        yield past  # it goes through all its entries each time, so it is asked once
    elif not storage.deletes_many:
        yield from _portions(past, 1)
    else:
        of_scope: defaultdict[str, list[Listed]] = defaultdict(list)
        for entry in past:
            of_scope[Key.parse(entry.key).scope].append(entry)
        for found in of_scope.values():
            yield from _portions(found, CHECKED_TOGETHER)


def _remove_checked(storage: StorageAccess, batch: Sequence[Listed], *, before: float) -> Effects[int]:
    """Delete those entries of one scope, or the single entry, that nobody used since ``before``; return the number.

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
            if entry.key in left:  # by now its check is too old
                deleted += yield from _remove_checked(storage, [entry], before=before)
    return deleted


def _exceeds(value: float, limit: float | None) -> bool:
    return limit is not None and value > limit


def _delete(storage: StorageAccess, keys: Sequence[str]) -> Effects[None]:
    """Delete entries, many in one call if the storage can.

    Raises:
        StorageError: the storage failed to delete one of them; it may still hold those after it.

    """
    for portion in _portions(keys, TOGETHER if storage.deletes_many else 1):
        for key in (yield from _delete_together(storage, portion)):
            yield from ask(storage.call("delete", key))


def _delete_together(storage: StorageAccess, keys: Sequence[str]) -> Effects[Sequence[str]]:
    """Ask the storage to delete up to ``TOGETHER`` entries at once; return those left. A single key is not tried.

    Raises:
        StorageError: the storage failed, or answered with something else.

    """
    if len(keys) <= 1:
        return keys
    answer = yield from ask(storage.call("delete_many", keys))
    if isinstance(answer, str | bytes) or not isinstance(answer, Collection):
        promise = ".delete_many must return the keys that it left, such as []"
        raise wrong_answer(storage, promise, type(answer).__name__)
    return [key for key in keys if key in answer]


def _portions(whole: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    return (whole[start : start + size] for start in range(0, len(whole), size))
