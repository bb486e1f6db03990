"""What a folder of entries may hold, and how it makes room: the least recently saved or read entries go first.

A save calls ``count_in``, which reads and writes two small files. Only if they say that there is no room, or that
nobody has looked for an hour, does ``make_room`` look through the folder. It removes a tenth more than it must, so that
looks are rare: with 100,000 entries, one save in 10,000 pays for one. If no storage on a folder has limits, the folder
has no count.

A save counts and names its files in one go, under the lock of its scope, and a look goes through a scope under the same
lock. So a look sees what was counted before it. What is counted while it runs is added to what it found. It may have
seen some of that already, so the count may be too high, but never too low.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from coatcheck.core.checks import is_number, require_positive
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.references import DIGEST_LENGTH, is_scope_part
from coatcheck.storage.entry_files import is_stem, remove_leftovers, stem_of, times, try_to_remove
from coatcheck.storage.folder import open_folder
from coatcheck.storage.ledger import ANY_TIME, add, change

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from coatcheck.storage.folder import Folder

__all__ = ("MAX_LOOKS", "TOTAL", "Bounds", "count_in", "count_out", "make_room", "recount")

MAX_LOOKS = 5
"""Looks for room by one save, at most. It looks again only if others used the room that it had made."""

LOOK_SECONDS = 3_600.0
"""Age of the last look, at most. A look removes what is too old and what killed writers left, and fixes the count."""

_SKEW_SECONDS = 60.0
"""How far the clocks of two processes may differ before one ignores the other's look."""

_SLACK = 0.1
"""The share of a limit that is freed when the limit is reached."""

TOTAL = "total.ledger"
_OF_SCOPE = "{}.ledger"
"""Both files are next to the folders of the scopes, so that an empty folder can be removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a storage may hold; None means no limit."""

    max_age: float | timedelta | None = None
    """Time since an entry was last saved or read; in seconds, or as a ``timedelta``."""

    max_bytes: int | None = None
    """Bytes that the whole storage may hold."""

    max_scope_bytes: int | None = None
    """Bytes that each scope may hold."""

    is_set: bool = field(init=False)
    """Whether there is any limit."""

    largest: float = field(init=False)
    """Bytes of the largest entry that can be kept."""

    def __post_init__(self) -> None:
        """Check the limits.

        Raises:
            InvalidRequest: a limit is not a number above 0.

        """
        for name in ("max_bytes", "max_scope_bytes"):
            if getattr(self, name) is not None:
                require_positive(name, getattr(self, name))
        age = self.max_age
        if age is not None and not ((is_number(age) or isinstance(age, timedelta)) and 0 < self.age_seconds < math.inf):
            msg = f"max_age must be a number of seconds above 0, a timedelta, or None for no limit, not {age!r}"
            raise InvalidRequest(msg)
        is_set = not (self.max_age is None and self.max_bytes is None and self.max_scope_bytes is None)
        object.__setattr__(self, "is_set", is_set)
        object.__setattr__(self, "largest", min(_limit(self.max_bytes), _limit(self.max_scope_bytes)))

    @property
    def age_seconds(self) -> float:
        """``max_age`` in seconds; infinite if there is none."""
        if self.max_age is None:
            return math.inf
        return self.max_age.total_seconds() if isinstance(self.max_age, timedelta) else float(self.max_age)

    def last_look(self, now: float) -> tuple[float, float]:
        """Return the earliest and the latest time that the last look may have.

        A look in the future comes from a clock that ran ahead. If it counted, nobody would look until then.
        """
        if not self.is_set:
            return ANY_TIME
        return now - min(LOOK_SECONDS, self.age_seconds / 10), now + _SKEW_SECONDS


def count_in(folder: Folder, size: int, bounds: Bounds, *, now: float) -> bool:
    """Count ``size`` more bytes in the locked folder of a scope; return whether there is room for them.

    A storage without limits updates the count too, if there is one: another storage on this folder may have limits.
    """
    looked, most, of_scope = bounds.last_look(now), _limit(bounds.max_bytes), _limit(bounds.max_scope_bytes)
    total, scope = f"../{TOTAL}", f"../{_OF_SCOPE.format(folder.path.name)}"
    if not add(folder, total, size, most=most, looked=looked):
        return not bounds.is_set
    has_ledger = bounds.max_scope_bytes is not None
    if add(folder, scope, size, most=of_scope, looked=looked if has_ledger else ANY_TIME) or not has_ledger:
        return True
    add(folder, total, -size)
    return False


def count_out(folder: Folder, size: int) -> None:
    """Count ``size`` fewer bytes in the locked folder of a scope."""
    if size and add(folder, f"../{TOTAL}", -size):
        add(folder, f"../{_OF_SCOPE.format(folder.path.name)}", -size)


def make_room(
    root: Path, version: str, scope: str, *, size: int, bounds: Bounds, now: float, spared: Collection[str]
) -> None:
    """Remove what is too old, and then the entries unused for longest, until ``size`` more bytes fit into ``scope``.

    ``spared`` are this save's own temporary files. They look like leftovers if our clock is ahead.
    """
    with open_folder(root, version) as versioned, versioned.locked():  # one process looks, the others wait for it
        if bounds.max_scope_bytes is not None:
            of_scope = _OF_SCOPE.format(scope)
            _Look(versioned, bounds, now, spared, ledger=of_scope, only=scope).run(size, bounds.max_scope_bytes)
        _Look(versioned, bounds, now, spared, ledger=TOTAL).run(size, _limit(bounds.max_bytes))


def recount(root: Path, version: str, *, now: float) -> None:
    """Correct the count of a folder that has one, and delete those of its scopes: the next save counts them anew."""
    with suppress(FileNotFoundError), open_folder(root, version) as versioned, versioned.locked():
        if versioned.status(TOTAL) is None:
            return
        for name in [found.name for found in versioned.scan() if found.name.endswith(_OF_SCOPE.format(""))]:
            if name != TOTAL:
                versioned.remove(name)
        change(versioned, TOTAL, lambda count: count._replace(looked=-math.inf))
        _Look(versioned, Bounds(), now, ledger=TOTAL).run(0, math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """A content and its line index, which are removed together."""

    scope: str
    files: Sequence[tuple[str, str]]
    """For each of them, the stem of its file names, and the name of the file that holds the bytes."""

    size: int
    used: float


@dataclass(frozen=True, slots=True)
class _Look:
    """A look through all scopes, or through one, by the process that holds the lock of ``versioned``."""

    versioned: Folder
    bounds: Bounds
    now: float
    spared: Collection[str] = ()
    ledger: str = field(kw_only=True)
    only: str | None = field(kw_only=True, default=None)

    def run(self, size: int, most: float) -> None:
        """Make room for ``size`` bytes below ``most``, unless another process just did; correct the count."""
        before = change(self.versioned, self.ledger, lambda count: count)  # creates it, so that others count in it too
        since, until = self.bounds.last_look(self.now)
        is_due = before.looked == -math.inf or not since <= before.looked <= until
        if not is_due and before.size + size <= most:
            return
        families = sorted(self._families(is_due=is_due), key=lambda family: family.used)
        total = sum(family.size for family in families)
        goal = most if total + size <= most else max(0.0, min(most * (1 - _SLACK), most - size))
        total -= self._remove_oldest(families, total, goal=goal)
        change(
            self.versioned,
            self.ledger,
            lambda count: count._replace(size=total + count.added - before.added, looked=self.now),
        )

    def _families(self, *, is_due: bool) -> Iterator[_Family]:
        """Yield what is stored; an hourly look also removes what killed writers left, and empty folders."""
        names = [found.name for found in self.versioned.scan()] if self.only is None else [self.only]
        long_ago = self.now - LOOK_SECONDS
        for name in filter(is_scope_part, names):
            with suppress(FileNotFoundError, NotADirectoryError), self._scope(name) as folder:
                if is_due:
                    remove_leftovers(folder, before=long_ago, spared=self.spared)
                with folder.locked():
                    families = list(_families_in(folder))
                if is_due and not families and folder.modified < long_ago:
                    self.versioned.remove_folder(name)  # stays if it is not empty
                    self.versioned.remove(_OF_SCOPE.format(name))
                yield from families

    def _remove_oldest(self, families: Sequence[_Family], total: int, *, goal: float) -> int:
        """Remove what is too old, then the oldest until ``goal`` is reached; return how many bytes that freed."""
        expired, freed, first = self.now - self.bounds.age_seconds, 0, 0
        while True:
            last, left = first, total - freed
            while last < len(families) and (families[last].used < expired or left > goal):
                left -= families[last].size
                last += 1
            if last == first:
                return freed
            freed += self._remove(families[first:last])
            first = last

    def _remove(self, families: Iterable[_Family]) -> int:
        """Remove those that nobody has used since the look saw them; return how many bytes that freed."""
        of_scope: dict[str, list[_Family]] = {}
        for family in families:
            of_scope.setdefault(family.scope, []).append(family)
        freed = 0
        for scope, found in of_scope.items():
            with suppress(FileNotFoundError), self._scope(scope) as folder:
                with folder.locked():
                    removed = sum(_remove_unused(folder, family) for family in found)
                # The look writes its own ledger at the end.
                add(self.versioned, TOTAL if self.only else _OF_SCOPE.format(scope), -removed)
                freed += removed
        return freed

    def _scope(self, name: str) -> AbstractContextManager[Folder]:
        return open_folder(self.versioned.path.parent, self.versioned.path.name, name)


def _families_in(folder: Folder) -> Iterator[_Family]:
    """Yield what is in the locked folder of a scope, except for files that are not ours."""
    contents: dict[str, list[tuple[str, str, os.stat_result]]] = {}
    for found in folder.scan():
        stem = stem_of(found.name)
        if stem is not None and is_stem(folder, stem) and found.is_file(follow_symlinks=False):
            with suppress(FileNotFoundError):
                contents.setdefault(stem[:DIGEST_LENGTH], []).append(
                    (stem, found.name, found.stat(follow_symlinks=False))
                )
    for files in contents.values():
        yield _Family(
            scope=folder.path.name,
            files=[(stem, name) for stem, name, _ in files],
            size=sum(status.st_size for _, _, status in files),
            used=max(status.st_mtime for _, _, status in files),
        )


def _remove_unused(folder: Folder, family: _Family) -> int:
    """Remove a family from a locked folder, unless it was used meanwhile; return how many bytes that freed."""
    if max(times(folder, [name for _, name in family.files]), default=0.0) > family.used:
        return 0
    for stem, name in sorted(family.files, reverse=True):  # the index first: reading without it only takes longer
        if try_to_remove(folder, stem, [name]) is None:
            return 0  # the index may be gone, so the count may be too high; the next look corrects it
    return family.size


def _limit(limit: int | None) -> float:
    return math.inf if limit is None else limit
