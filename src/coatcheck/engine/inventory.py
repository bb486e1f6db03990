"""What a storage holds, and whether it is still what was saved, as generators of effects.

Only looking belongs here: nothing is changed, and no error of one entry hides the others. What is deleted, and when,
is decided in ``cleanup``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from coatcheck.core.errors import CoatcheckError, CorruptContent, StorageError
from coatcheck.core.references import begin_digest
from coatcheck.engine.contents import is_content, is_line_index, require_digest, require_stored
from coatcheck.storage.failing import failing_as_storage_error
from coatcheck.storage.protocol import Listed, Stored

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from coatcheck.engine.access import StorageAccess
    from coatcheck.engine.execution import Effects

__all__ = ("content_key", "damage", "entries")

PART_BYTES = 8 << 20
"""Read at once, where the storage reads parts: memory does not grow with the entry, and a network gives it in time."""


def entries(storage: StorageAccess, prefix: str) -> Effects[list[Listed]]:
    """Return the entries whose key starts with ``prefix``.

    Raises:
        InvalidRequest: the storage cannot list.
        StorageError: the storage failed, or listed something else.

    """
    answer = yield storage.entries(prefix)
    if isinstance(answer, CoatcheckError):
        raise answer
    with failing_as_storage_error(storage.storage, "list its entries"):  # an iterable may ask its backend only now
        listed = list(cast("Iterable[Listed]", answer))
    for entry in listed:
        if not _is_well_formed(entry):
            msg = (
                f"{type(storage.storage).__name__} listed {str(entry)[:200]!r}, where coatcheck.Listed with key: str,"
                " size: int and modified: float was due: whoever wrote the storage must convert it"
            )
            raise StorageError(msg)
    return listed


def _is_well_formed(entry: object) -> bool:
    return (
        isinstance(entry, Listed)
        and isinstance(entry.key, str)
        and isinstance(entry.size, int)
        and isinstance(entry.modified, int | float)
    )


def content_key(key: str) -> str:
    """Return the key of the content that a line index belongs to; any other key as it is."""
    return key.partition("-")[0] if is_line_index(key) else key


def damage(storage: StorageAccess, entry: Listed, *, keys: Container[str]) -> Effects[CoatcheckError | None]:
    """Read a listed entry to its end; return why it is not what was saved, or cannot be read, or None if it is well.

    ``keys`` are those that were listed with it. None, too, for an entry that was deleted since it was listed, and for
    what a storage is still writing.
    """
    if not is_content(entry.key) and not is_line_index(entry.key):
        return None
    if is_line_index(entry.key) and content_key(entry.key) not in keys:
        return (yield from _left_behind(storage, entry.key))
    key, read, digest = entry.key, 0, None
    while True:
        part = storage.load_range(key, start=read, length=PART_BYTES) if storage.reads_ranges else storage.load(key)
        answer = yield part
        if answer is None:
            return (yield from _lost(storage, key))
        try:
            answer = require_stored(answer)
        except CoatcheckError as error:
            return error
        content = answer.content if answer.whole is None else answer.whole
        digest = digest or begin_digest(answer.content_type)
        digest.update(content)
        read += len(content)
        # The size that was found there, not the one that was saved: what was added behind the end is damage, too.
        if not content or answer.whole is not None or not storage.reads_ranges or read >= entry.size:
            break
    try:
        require_digest(key, digest.hexdigest(), answer.metadata)
    except CorruptContent as error:
        return error
    return None


def _lost(storage: StorageAccess, key: str) -> Effects[CoatcheckError | None]:
    """Return what is wrong with an entry that could not be loaded: nothing, if it is no longer listed, or there now."""
    try:
        listed = yield from entries(storage, key)
    except CoatcheckError as error:
        return error
    if all(entry.key != key for entry in listed) or isinstance((yield storage.load(key)), Stored):
        return None
    return CorruptContent(f"of what was saved under {key!r} only a part is there: its content, or what describes it")


def _left_behind(storage: StorageAccess, key: str) -> Effects[CoatcheckError | None]:
    """Return what is wrong with a line index whose content was not listed: nothing, if that changed since."""
    try:
        listed = {entry.key for entry in (yield from entries(storage, content_key(key)))}
    except CoatcheckError as error:
        return error
    if key not in listed or content_key(key) in listed:
        return None
    return CorruptContent(f"the lines of {content_key(key)!r} are there, and that content is not: a sweep removes them")
