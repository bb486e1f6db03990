"""What a storage is: bytes under keys, and the capabilities that it may add.

A storage has two methods; a foreign one that names its references itself has ``NamesReferences`` instead. Everything
else is a capability: the engine looks for its methods by name, because ``isinstance`` misses methods that a storage
passes on. A storage with none of them works, but it is slower on large content and has no clean-up. All methods may be
plain or ``async``: the engine awaits what is awaitable and keeps everything else off the event loop.

Keys are made by ``coatcheck.core.references.Key``. They contain only hex digits, one ``/`` and an optional ``-lines``;
a storage may rely on that and should refuse anything else.

Three things that no method shows are attributes, which a storage sets; the default is False:

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
"""What a method or callback returns that may be plain or ``async``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """One entry of a storage, whole or in part."""

    content: bytes
    """All the bytes, or the part that was asked for."""

    content_type: str
    """MIME type, as saved."""

    metadata: Mapping[str, str]
    """As saved, unchanged."""

    size: int
    """Bytes of the whole entry, even if ``content`` is a part of it."""

    whole: bytes | None = field(default=None, repr=False)
    """All the bytes, from a ``load_range`` that had to read them. The engine then asks for no further part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One entry of a listing."""

    key: str
    """The key it was saved under."""

    size: int
    """Bytes stored."""

    modified: float
    """Time of the last save or, on a storage of this machine, of the last use; in seconds since the epoch."""

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
    """What to pass for the next page; None if this is the last one."""


@runtime_checkable
class Storage(Protocol):
    """Keeps bytes under keys. Sync or async; safe for many threads at once.

    Errors of the backend pass as they are: the engine makes a ``StorageError`` of each, with the cause kept. It repeats
    their class and, of an ``OSError``, the system's words; ``DescribesErrors`` says more.
    """

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> MaybeAwaitable[None]:
        """Save an entry whole or not at all; when this returns, ``load`` finds it.

        Saving an entry again refreshes its time. If ``metadata["sha256"]`` of the existing entry differs from the new
        one, two contents met under one short key: raise ``StorageError`` and keep the old one. Any exception means that
        nothing was saved; the tool result then stays in the conversation.
        """
        ...

    def load(self, key: str) -> MaybeAwaitable[Stored | None]:
        """Return the whole entry, or None if there is none."""
        ...


@runtime_checkable
class NamesReferences(Protocol):
    """Chooses its references itself, as the frameworks' own storages do: ``load`` takes what ``save_named`` returned.

    The model sees that reference as it is. Without keys there are no metadata, parts or line indexes, so reading a part
    loads the whole. Frameworks cut an old result to its first 200 characters. These hold a reference of up to 110; a
    longer one may be cut, and then the model has lost it.

    A storage that says ``takes_file_name = True`` gets a further keyword argument, ``file_name``: the name that the
    tool gave the file, or None. It is for storages that keep a content's type only as the ending of a name.
    """

    def save_named(self, name: str, content: bytes, *, content_type: str) -> MaybeAwaitable[str]:
        """Save an entry whole or not at all; return its reference, one line without spaces at its ends.

        ``name`` contains only small letters, digits and underscores. It is the same for the same content, tool and
        scope, and no other content has it. A reference that contains it can be read only in the scope that saved it;
        one that does not can be read in every scope. Any exception means that nothing was saved; the tool result then
        stays in the conversation.
        """
        ...

    def load(self, key: str) -> MaybeAwaitable[Stored | None]:
        """Return the entry that has this reference, or None if there is none."""
        ...


@runtime_checkable
class ReadsRanges(Protocol):
    """Reads a part of an entry at a cost that does not grow with the entry."""

    def load_range(self, key: str, *, start: int, length: int) -> MaybeAwaitable[Stored | None]:
        """Return the entry with ``content`` being at most ``length`` bytes from ``start``, or None if there is none.

        A range beyond the end gives fewer bytes or none; ``length=0`` asks only for type, metadata and size.
        """
        ...


@runtime_checkable
class Deletes(Protocol):
    """Removes entries."""

    def delete(self, key: str) -> MaybeAwaitable[None]:
        """Remove the entry. Removing what is not there is no error."""
        ...


@runtime_checkable
class DeletesMany(Protocol):
    """Removes many entries at the cost of one, beside ``Deletes``."""

    def delete_many(self, keys: Sequence[str]) -> MaybeAwaitable[Collection[str]]:
        """Remove the entries, up to 1,000 at once; return those of ``keys`` that are not known to be gone.

        Removing what is not there is no error. The engine removes each entry that is left with ``delete``, which then
        raises what is wrong. So nothing need be raised here for single entries, and a backend that cannot do this after
        all may return all of them.
        """
        ...


@runtime_checkable
class Lists(Protocol):
    """Lists its entries."""

    def entries(self, prefix: str) -> MaybeAwaitable[Iterable[Listed]]:
        """Return the entries that have a key with this ``prefix``, in any order; ``""`` means all.

        Other prefixes are: a scope, up to its ``/``; the first digits of scopes, a multiple of 16, for all scopes below
        the first parts of a tuple; and a whole key. A sweep asks once with ``""``, and then with the key of each
        content that it is about to delete, or whose index it is about to delete, so a whole key should cost little. Of
        a storage that has ``DeletesMany`` it asks for the scope instead, once for up to 1,000 of them.
        """
        ...


@runtime_checkable
class ListsPages(Protocol):
    """Lists a few entries, newest first, without listing all of them where that costs requests."""

    def page(self, prefix: str, *, limit: int, after: str | None = None) -> MaybeAwaitable[Page]:
        """Return at most ``limit`` entries that have a key with this ``prefix``, newest first, as ``entries`` does.

        ``after`` is that of the previous page; None gives the first one. The cost of the first page has a bound,
        whatever is stored: ideally one request. A backend that does not list by time, such as S3, sorts what one
        request returned: all pages together give every entry, but only those of one request are in order. Entries saved
        between two pages may be on neither.
        """
        ...


@runtime_checkable
class Sweeps(Protocol):
    """Removes entries unless somebody has just saved them again: it checks their time and removes them in one step."""

    def sweep(self, keys: Iterable[str], *, before: float) -> MaybeAwaitable[int]:
        """Remove each of ``keys`` last saved or used before then, in seconds since the epoch; return their number.

        Also remove what killed writers left before then.
        """
        ...


@runtime_checkable
class LocalPath(Protocol):
    """Keeps each entry's raw content in a file of this machine."""

    def local_path(self, key: str, *, content_type: str) -> Path:
        """Return the file that holds, or would hold, the content saved under ``key`` with this type."""
        ...


@runtime_checkable
class DescribesErrors(Protocol):
    """Says what may be repeated of its backend's errors, where their class and the system's words say too little."""

    def describe_error(self, error: Exception) -> str:
        """Return what takes the place of the class and the words of an error that another method raised.

        This method is plain, never ``async``, and quick. What it returns goes into the message of the ``StorageError``
        and into logs, as one line of at most 1,000 characters, so it must not quote content. No model sees it. The
        engine asks only where something failed, and not about a call that had no answer in time.
        """
        ...


def newest_first(listed: Iterable[Listed], *, limit: int, after: str | None) -> Page:
    """Return a page of entries that are all at hand, for storages where that costs little.

    The next page begins after the last entry of this one, not at a number, so it misses nothing when entries go.

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
    """Return the rank of the last entry of a page of ``newest_first``: its time, negated, and its key.

    Raises:
        InvalidRequest: ``after`` did not come from a page.

    """
    modified, _, key = after.partition(" ")
    try:
        negated = -float(modified)
        if math.isnan(negated):
            raise ValueError  # noqa: TRY301 - as float does for other words
    except ValueError:
        msg = f"after must be the `after` of the previous page, not {after!r}"
        raise InvalidRequest(msg) from None
    return negated, key


def _rank(entry: Listed) -> tuple[float, str]:
    return -entry.modified, entry.key


def refuse_other_content(key: str, existing: Mapping[str, str], new: Mapping[str, str]) -> None:
    """Raise if two different contents meet under one key.

    Raises:
        StorageError: the full digests differ.

    """
    if existing.get("sha256") != new.get("sha256"):
        msg = (
            f"another content is already stored under {key!r}: their short digests are equal; the new one was not saved"
        )
        raise StorageError(msg)
