"""Clean-up: what is deleted, and when, as generators of effects.

Nothing is ever deleted but here, and only when the host asks: a scope that ended, or what is past a limit. Storages say
what there is and remove it; which entries those are is decided here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coatcheck.core.errors import CoatcheckError, InvalidRequest, StorageError
from coatcheck.core.references import scope_tag
from coatcheck.engine.inventory import content_key, entries

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from coatcheck.engine.access import StorageAccess
    from coatcheck.engine.execution import Effects
    from coatcheck.storage.protocol import Listed

__all__ = ("SweepLimits", "delete_scope", "overdue", "remove_unused", "sweep")

GRACE_SECONDS = 3_600.0
"""``sweep`` leaves alone what was saved within the last hour: a conversation may be about to use it."""

MOST_PASSES = 5
"""Of ``delete_scope`` over a scope. Usual are two: one that deletes, and one that finds nothing left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepLimits:
    """What may stay; None is no limit."""

    max_age_seconds: float | None
    """Since the entry was last saved or refreshed."""

    max_bytes: float | None
    """In the whole storage."""

    max_scope_bytes: float | None
    """In each scope."""

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            InvalidRequest: there is none, or one is no number of at least 0.

        """
        limits = {name: getattr(self, name) for name in self.__slots__}
        if set(limits.values()) == {None}:
            msg = f"sweep needs a limit, one or more of {', '.join(limits)}"
            raise InvalidRequest(msg)
        for name, limit in limits.items():
            if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float) or limit < 0):
                msg = f"{name} must be a number of at least 0, not {limit!r}"
                raise InvalidRequest(msg)


def delete_scope(storage: StorageAccess, scope: str, *, now: float) -> Effects[int]:
    """Delete everything stored in ``scope`` until ``now``; return how many entries that were.

    One listing is no proof: a storage may miss entries while others change what it pages through. So the scope is
    listed again until nothing older than ``now`` is found. What was saved since may go or stay.

    Raises:
        InvalidRequest: the storage cannot list or delete.
        StorageError: the storage failed, or still lists older entries after the last pass.

    """
    prefix = f"{scope_tag(scope)}/"
    deleted: set[str] = set()
    for _ in range(MOST_PASSES):
        listed = yield from entries(storage, prefix)
        yield from _delete(storage, listed)
        deleted.update(entry.key for entry in listed)
        if not _older(listed, now):
            return len(deleted)
    left = _older((yield from entries(storage, prefix)), now)
    if left:
        msg = (
            f"entries of this scope are left in {storage.storage!r}, and may still be readable: {left:,}, after"
            f" {MOST_PASSES} passes that deleted all that was listed. Delete the scope again; if the number stays, the"
            " storage must be mended: it does not delete, or lists what is gone"
        )
        raise StorageError(msg)
    return len(deleted)


def _older(listed: Sequence[Listed], now: float) -> int:
    return sum(1 for entry in listed if entry.modified < now)


def sweep(storage: StorageAccess, limits: SweepLimits, *, now: float) -> Effects[int]:
    """Delete what is past a limit and older than an hour, the oldest first; return how many entries that were."""
    past = yield from overdue(storage, limits, now=now)
    return (yield from remove_unused(storage, past, now=now))


def overdue(storage: StorageAccess, limits: SweepLimits, *, now: float) -> Effects[list[Listed]]:
    """Return what is past a limit and older than an hour, the oldest first."""
    listed = yield from entries(storage, "")
    return list(_past(listed, limits, now=now))


def remove_unused(storage: StorageAccess, past: Sequence[Listed], *, now: float) -> Effects[int]:
    """Delete those of the entries that nobody has used since an hour before ``now``; return how many those were."""
    before = now - GRACE_SECONDS
    if storage.sweeps:
        answer = yield storage.sweep([entry.key for entry in past], before=before)
        if isinstance(answer, CoatcheckError):
            raise answer
        if not isinstance(answer, int):
            msg = (
                f"{type(storage.storage).__name__}.sweep answered with {type(answer).__name__}, where the number of the"
                " entries that it removed was due, an int: whoever wrote the storage must return it"
            )
            raise StorageError(msg)
        return answer
    deleted = 0
    for entry in past:
        # Looking right before leaves a gap, but one of a moment instead of one as long as the whole sweep.
        listed_now = yield from entries(storage, entry.key)
        unused = [found for found in listed_now if found.key == entry.key and found.modified < before]
        deleted += yield from _delete(storage, unused)
    return deleted


def _past(listed: Sequence[Listed], limits: SweepLimits, *, now: float) -> Iterator[Listed]:
    """Yield the entries to delete, so that what stays keeps the limits as far as the last hour allows."""
    total = sum(entry.size for entry in listed)
    of_scope: Counter[str] = Counter()
    for entry in listed:
        of_scope[_scope_of(entry)] += entry.size
    staying = {entry.key for entry in listed}
    for entry in sorted(listed, key=lambda entry: entry.modified):
        age = now - entry.modified
        is_past = (
            _exceeds(age, limits.max_age_seconds)
            or _exceeds(total, limits.max_bytes)
            or _exceeds(of_scope[_scope_of(entry)], limits.max_scope_bytes)
            or content_key(entry.key) not in staying  # a line index is younger than its content, and goes with it
        )
        if age > GRACE_SECONDS and is_past:
            yield entry
            staying.discard(entry.key)
            total -= entry.size
            of_scope[_scope_of(entry)] -= entry.size


def _exceeds(value: float, limit: float | None) -> bool:
    return limit is not None and value > limit


def _scope_of(entry: Listed) -> str:
    return entry.key.partition("/")[0]


def _delete(storage: StorageAccess, doomed: Sequence[Listed]) -> Effects[int]:
    for entry in doomed:
        answer = yield storage.delete(entry.key)
        if isinstance(answer, CoatcheckError):
            raise answer
    return len(doomed)
