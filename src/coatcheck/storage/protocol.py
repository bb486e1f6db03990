"""What a storage is: bytes under keys, and the capabilities that it may add.

A storage has the two methods of ``Storage``; a foreign one that chooses its own references has those of
``NamesReferences`` instead. Everything else is a capability: the engine looks up its methods by name, because
``isinstance`` misses delegated methods. A storage without any capability works, but it is slower on large content and
has no clean-up. All methods may be plain or ``async``: the engine awaits what is awaitable and keeps everything else
off the event loop.

Keys are made by ``coatcheck.core.references.Key``. They contain only hex digits, one ``/`` and an optional ``-lines``;
a storage may rely on that and should refuse anything else.

Three attributes say what no method shows. A storage may set them; the default is False:

    evicts            It removes entries by itself to make room for new ones, as ``InMemoryStorage`` does. The engine
                      then checks that a result of several entries is still whole before it shows the model their
                      references.
    is_local          It answers at once, without a network. Its calls then run on the threads for local work and have
                      no time limit. A storage with ``local_path`` is local unless it says otherwise.
    takes_file_name   See ``NamesReferences``.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, runtime_checkable

from coatcheck.core.errors import InvalidRequest, StorageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from pathlib import Path

__all__ = (
    "Deletes",
    "DeletesMany",
    "DescribesErrors",
    "Listed",
    "Lists",
    "ListsPages",
    "LocalPath",
    "MaybeAwaitable",
    "NamesReferences",
    "Page",
    "ReadsRanges",
    "Storage",
    "Stored",
    "Sweeps",
    "newest_first",
    "parse_after",
    "refuse_other_content",
)

Result = TypeVar("Result")
MaybeAwaitable: TypeAlias = Result | Awaitable[Result]
"""The return type of a method or callback that may be plain or ``async``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One entry of a storage, whole or in part."""

    content: bytes
    """All the bytes, or the range that was requested."""

    content_type: str
    """MIME type, as saved."""

    metadata: Mapping[str, str]
    """As saved, unchanged."""

    size: int
    """Bytes of the whole entry, even if ``content`` is only a part of it."""

    whole: bytes | None = field(default=None, repr=False)
    """All the bytes, if ``load_range`` had to read them anyway. The engine then asks for no further range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One entry of a listing."""

    key: str
    """The key that the entry was saved under."""

    size: int
    """Bytes stored."""

    modified: float
    """When the entry was last saved or, in a storage on this machine, last used; in seconds since the epoch."""

    metadata: Mapping[str, str] | None = None
    """As saved, if the listing has it at no further cost; None if only ``load`` or ``load_range`` shows it."""

    content_type: str | None = None
    """As saved, under the same condition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some entries of a listing, and how to go on."""

    entries: tuple[Listed, ...]
    """Newest first."""

    after: str | None
    """What to pass to get the next page; None if this is the last one."""


@runtime_checkable
class Storage(Protocol):
    """Keeps bytes under keys. Sync or async; safe for many threads at once.

    Let the backend's errors pass: the engine turns each into a ``StorageError`` with the original as its cause. Its
    message has their class and, for an ``OSError``, the system's words; with ``DescribesErrors`` it can say more.
    """

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> MaybeAwaitable[None]:
        """Save an entry whole or not at all; when this returns, ``load`` finds it.

        Saving an entry again refreshes its time. If the existing entry has a different ``metadata["sha256"]``, two
        contents share one short key: raise ``StorageError`` and keep the old one. Any exception means that nothing was
        saved; the tool result then stays in the conversation.
        """
        ...

    def load(self, key: str) -> MaybeAwaitable[Stored | None]:
        """Return the whole entry, or None if there is none."""
        ...


@runtime_checkable
class NamesReferences(Protocol):
    """Chooses its references itself, as the frameworks' own storages do: ``load`` takes what ``save_named`` returned.

    The model sees that reference unchanged. Without keys there are no metadata, ranges or line indexes, so reading a
    part loads the whole entry. Frameworks cut an old result to its first 200 characters. Those have room for a
    reference of up to 110; a longer one may be cut, and the model then loses it.

    A storage with ``takes_file_name = True`` gets one more keyword argument, ``file_name``: the name that the tool gave
    the file, or None. It is for storages that keep a content's type only as the extension of a name.
    """

    def save_named(self, name: str, content: bytes, *, content_type: str) -> MaybeAwaitable[str]:
        """Save an entry whole or not at all; return its reference, one line without spaces at its ends.

        ``name`` contains only lower-case letters, digits and underscores. It is the same for the same content, tool and
        scope, and no other content has it. A reference that contains it can be read only in the scope that saved it;
        one that does not can be read in every scope. Any exception means that nothing was saved; the tool result then
        stays in the conversation.
        """
        ...

    def load(self, key: str) -> MaybeAwaitable[Stored | None]:
        """Return the entry with this reference, or None if there is none."""
        ...


@runtime_checkable
class ReadsRanges(Protocol):
    """Reads a range of an entry at a cost that does not grow with the entry."""

    def load_range(self, key: str, *, start: int, length: int) -> MaybeAwaitable[Stored | None]:
        """Return the entry with at most ``length`` bytes from ``start`` as its content, or None if there is none.

        A range past the end gives fewer bytes or none; ``length=0`` asks only for type, metadata and size.
        """
        ...


@runtime_checkable
class Deletes(Protocol):
    """Removes entries."""

    def delete(self, key: str) -> MaybeAwaitable[None]:
        """Remove the entry. A missing entry is not an error."""
        ...


@runtime_checkable
class DeletesMany(Protocol):
    """Removes many entries at the cost of one, in addition to ``Deletes``."""

    def delete_many(self, keys: Sequence[str]) -> MaybeAwaitable[Collection[str]]:
        """Remove the entries, up to 1,000 at once; return those of ``keys`` that are not known to be gone.

        A missing entry is not an error. The engine calls ``delete`` for each key returned, and that raises what is
        wrong. So do not raise here for single entries; if the backend turns out to lack this, return all keys.
        """
        ...


@runtime_checkable
class Lists(Protocol):
    """Lists its entries."""

    def entries(self, prefix: str) -> MaybeAwaitable[Iterable[Listed]]:
        """Return the entries whose key starts with ``prefix``, in any order; ``""`` means all.

        Other prefixes are: a scope, up to its ``/``; the first digits of scopes, a multiple of 16, for all tuple scopes
        that begin with the same parts; and a whole key. A sweep lists ``""`` once, and then the key of each content
        that it is about to delete, or whose index it is about to delete, so a whole key should cost little. If the
        storage has ``DeletesMany``, the sweep lists the scope instead, once for up to 1,000 entries to delete.
        """
        ...


@runtime_checkable
class ListsPages(Protocol):
    """Lists a few entries, newest first, without listing all of them where that costs requests."""

    def page(self, prefix: str, *, limit: int, after: str | None = None) -> MaybeAwaitable[Page]:
        """Return at most ``limit`` of the entries that ``entries`` returns for ``prefix``, newest first.

        ``after`` is that of the previous page; None gives the first page. The cost of the first page must be bounded,
        whatever is stored: ideally one request. A backend that does not list by time, such as S3, sorts what one
        request returned: all pages together have every entry, but only those of one request are in order. An entry
        saved between two pages may be on neither.
        """
        ...


@runtime_checkable
class Sweeps(Protocol):
    """Removes entries unless somebody has just saved them again: checks their time and removes them in one step."""

    def sweep(self, keys: Iterable[str], *, before: float) -> MaybeAwaitable[int]:
        """Remove each of ``keys`` last saved or used before ``before``; return how many.

        ``before`` is in seconds since the epoch. Also remove what killed writers left before it.
        """
        ...


@runtime_checkable
class LocalPath(Protocol):
    """Keeps each entry's raw content in a file on this machine."""

    def local_path(self, key: str, *, content_type: str) -> Path:
        """Return the file that holds, or would hold, the content saved under ``key`` with this type."""
        ...


@runtime_checkable
class DescribesErrors(Protocol):
    """Describes its backend's errors, where their class and the system's words say too little."""

    def describe_error(self, error: Exception) -> str:
        """Return what the message says about an error of another method, in place of its class and the system's words.

        This method is plain, never ``async``, and quick. What it returns goes into the message of the ``StorageError``
        and into logs, as one line of at most 1,000 characters, so it must not quote content. No model sees it. The
        engine calls it only after a failure, and not if a call got no answer in time.
        """
        ...


def newest_first(listed: Iterable[Listed], *, limit: int, after: str | None) -> Page:
    """Return a page of ``listed``, for storages that can list all their entries at little cost.

    The next page begins after the last entry of this one, not at a number, so it misses nothing if entries are deleted.

    Raises:
        InvalidRequest: ``after`` did not come from a page.

    """
    ordered = sorted(listed, key=_rank)
    if after is not None:
        last = parse_after(after)
        ordered = [entry for entry in ordered if _rank(entry) > last]
    page = tuple(ordered[:limit])
    return Page(entries=page, after=f"{page[-1].modified!r} {page[-1].key}" if len(ordered) > limit else None)


def parse_after(after: str) -> tuple[float, str]:
    """Return the rank of the last entry of a page of ``newest_first``: its negated time and its key.

    Raises:
        InvalidRequest: ``after`` did not come from a page.

    """
    modified, _, key = after.partition(" ")
    try:
        negated = -float(modified)
        if math.isnan(negated):
            raise ValueError  # noqa: TRY301 - as float does for anything else
    except ValueError:
        msg = f"after must be the `after` of the previous page, not {after!r}"
        raise InvalidRequest(msg) from None
    return negated, key


def _rank(entry: Listed) -> tuple[float, str]:
    return -entry.modified, entry.key


def refuse_other_content(key: str, existing: Mapping[str, str], new: Mapping[str, str]) -> None:
    """Refuse a content whose key already belongs to a different one.

    Raises:
        StorageError: the full digests differ.

    """
    if existing.get("sha256") != new.get("sha256"):
        msg = (
            f"another content is already stored under {key!r}: their short digests are equal; the new one was not saved"
        )
        raise StorageError(msg)
