"""What a storage lists, checked: its entries, a page of a scope's contents, and whether an entry is intact.

All of these are generators of effects. Entries whose keys are not coatcheck's belong to somebody else and are skipped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, cast

from coatcheck.core.errors import CoatcheckError, CorruptContent, StorageError
from coatcheck.core.references import Key, begin_digest, is_storage_key, scope_part
from coatcheck.engine.contents import require_digest, require_stored
from coatcheck.engine.execution import answer_of
from coatcheck.storage.protocol import Listed, Page, Stored, newest_first

if TYPE_CHECKING:
    from collections.abc import Container

    from coatcheck.core.references import Scope
    from coatcheck.engine.execution import Effect, Effects, StorageAccess

__all__ = ("ask", "damage", "entries", "newest", "wrong_answer")

PART_BYTES = 8 << 20
"""Bytes read at once to check an entry. This bounds memory, and a network delivers it within the time limit."""

_INDEXED_SECONDS = 60.0
"""Seconds. A content that is older and lacks its line index is not being saved: its index was lost, or its writer was
killed."""

_LATEST = 10**12
"""Seconds since the epoch: about 30,000 years, and small enough for any arithmetic."""


def entries(storage: StorageAccess, prefix: str) -> Effects[list[Listed]]:
    """Return coatcheck's entries under ``prefix``.

    Raises:
        InvalidRequest: the storage cannot list.
        StorageError: the storage failed, or listed something else.

    """
    listing = storage.call("entries", prefix)
    answer = yield from ask(listing)
    if not isinstance(answer, Iterable):
        promise = ".entries must return an iterable of coatcheck.Listed"
        raise wrong_answer(storage, promise, type(answer).__name__)
    listed = answer_of(listing, partial(list, answer))  # a lazy iterable asks the backend here
    if isinstance(listed, CoatcheckError):
        raise listed
    return _require_listed(storage, cast("list[Listed]", listed), prefix)


def ask(call: Effect) -> Effects[object]:
    """Return the answer to a call of the storage; raise the error that the call ended with."""
    answer = yield call
    if isinstance(answer, CoatcheckError):
        raise answer
    return answer


def wrong_answer(storage: StorageAccess, promise: str, found: str) -> StorageError:
    """Return the error about a storage that broke its ``promise`` and answered with what was ``found``."""
    return StorageError(f"{type(storage.storage).__name__}{promise}, not {found}; fix the storage")


def _require_listed(storage: StorageAccess, listed: Iterable[Listed], prefix: str) -> list[Listed]:
    """Return the listed entries that are ours and have a key with this prefix; each once, with its latest save.

    Callers delete what is listed: without the check, a storage that ignores the prefix would lose what other scopes
    hold.

    Raises:
        StorageError: the storage listed something other than entries.

    """
    ours: dict[str, Listed] = {}
    for entry in listed:
        if not _is_well_formed(entry):
            promise = " must list coatcheck.Listed with key: str, size: int and modified: float"
            raise wrong_answer(storage, promise, _described(entry))
        if entry.key.startswith(prefix) and is_storage_key(entry.key):
            known = ours.setdefault(entry.key, entry)
            if known.modified < entry.modified:
                ours[entry.key] = entry
    return list(ours.values())


def _described(entry: object) -> str:
    """Describe a listed object by its types, without its values, which may be content."""
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
    last. A storage that cannot list pages is listed whole for each page.

    Raises:
        InvalidRequest: the storage cannot list.
        StorageError: the storage failed, or answered with something else.

    """
    prefix = f"{scope_part(scope)}/"
    if not storage.lists_pages:
        page = newest_first((yield from entries(storage, prefix)), limit=limit, after=after)
    else:
        answer = yield from storage.attempt("page", prefix, limit=limit, after=after)
        if isinstance(answer, CoatcheckError):
            raise answer
        if not (
            isinstance(answer, Page) and isinstance(answer.after, str | None) and isinstance(answer.entries, tuple)
        ):
            raise wrong_answer(storage, ".page must return a coatcheck.Page", type(answer).__name__)
        page = answer
    contents = (
        entry for entry in _require_listed(storage, page.entries[:limit], prefix) if Key.parse(entry.key).is_content
    )
    return Page(entries=tuple(contents), after=page.after)


def damage(storage: StorageAccess, entry: Listed, *, keys: Container[str]) -> Effects[CoatcheckError | None]:
    """Read a listed entry to its end; return what is wrong with it, or None if it is intact.

    ``keys`` are the keys listed with it. None is also the answer for an entry that has been deleted since it was
    listed, and for one that is still being written.
    """
    key = Key.parse(entry.key)
    try:
        if key.is_line_index and str(key.content) not in keys:
            yield from _require_content(storage, key)
        elif key.is_content or key.is_line_index:
            metadata = yield from _require_intact(storage, entry, key)
            if "index" in metadata and str(key.line_index) not in keys:
                yield from _require_index(storage, key)
    except CoatcheckError as error:
        return error
    return None


def _require_intact(storage: StorageAccess, entry: Listed, key: Key) -> Effects[Mapping[str, str]]:
    """Read an entry to its end and check its digest; return its metadata, empty if the entry is gone."""
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
            return {}
        answer = require_stored(answer)
        content = answer.content if answer.whole is None else answer.whole
        digest = digest or begin_digest(answer.content_type)
        digest.update(content)
        read += len(content)
        # Read up to the listed size, not the saved one: bytes appended later are damage too.
        if not content or answer.whole is not None or whole or read >= entry.size:
            break
    require_digest(key, digest.hexdigest(), answer.metadata)
    return answer.metadata


def _require_index(storage: StorageAccess, key: Key) -> Effects[None]:
    """Refuse a content whose line index was not listed, unless it is listed now, or may still be written."""
    listed = {entry.key: entry.modified for entry in (yield from entries(storage, str(key)))}
    saved = listed.get(str(key), math.inf)
    if str(key.line_index) not in listed and saved < time.time() - _INDEXED_SECONDS:
        msg = (
            f"the line index of {str(key)!r} is missing: all of it can be read, but only slowly, and where the items of"
            " a list begin is lost. Saving the same result again writes it"
        )
        raise CorruptContent(msg)


def _require_gone(storage: StorageAccess, key: str) -> Effects[None]:
    """Refuse an entry that did not load, unless it is no longer listed or loads now."""
    listed = yield from entries(storage, key)
    if any(entry.key == key for entry in listed) and not isinstance((yield storage.call("load", key)), Stored):
        msg = f"only half of the entry {key!r} exists: its content or its description"
        raise CorruptContent(msg)


def _require_content(storage: StorageAccess, key: Key) -> Effects[None]:
    """Refuse a line index whose content was not listed, unless the content is listed now or the index is gone."""
    content = str(key.content)
    listed = {entry.key for entry in (yield from entries(storage, content))}
    if str(key) in listed and content not in listed:
        msg = f"the line index of {content!r} is there, but the content is not: a sweep removes the index"
        raise CorruptContent(msg)
