"""What a storage is: bytes under keys, and the capabilities that one may add.

Two methods make a storage; a foreign one that names its references itself has ``NamesReferences`` instead. Everything
else is a capability, asked for with ``isinstance``; a storage with none of them works, only slower on large content and
without clean-up. All methods may be plain or ``async``: the engine awaits what is awaitable and keeps what is not off
the event loop. Keys are made by ``coatcheck.core.references`` and hold only hex digits, one ``/`` and an optional
``-lines``; a storage may rely on that and should refuse anything else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from pathlib import Path

__all__ = (
    "Deletes",
    "Listed",
    "Lists",
    "LocalPath",
    "MaybeAwaitable",
    "NamesReferences",
    "ReadsRanges",
    "Storage",
    "Stored",
    "Sweeps",
)

Result = TypeVar("Result")
MaybeAwaitable: TypeAlias = Result | Awaitable[Result]


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
    """Bytes of the whole entry, also where ``content`` is a part of it."""

    whole: bytes | None = field(default=None, repr=False)
    """All the bytes, from a ``load_range`` that had to read them: the engine then asks for no further part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One entry of a listing."""

    key: str
    """The key it was saved under."""

    size: int
    """Bytes stored."""

    modified: float
    """Time of the last save, or, on a storage of this machine, of the last use; in seconds since the epoch."""


@runtime_checkable
class Storage(Protocol):
    """Keeps bytes under keys. Sync or async; safe for many threads at once."""

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> MaybeAwaitable[None]:
        """Save an entry whole or not at all; when this returns, ``load`` finds it.

        Saving what is there already refreshes the entry's time. Where ``metadata["sha256"]`` of the existing entry
        differs from the new one, two contents met under one short key: raise ``StorageError`` and keep the old one.
        Any exception means that nothing was saved; the tool result then stays in the conversation.
        """
        ...

    def load(self, key: str) -> MaybeAwaitable[Stored | None]:
        """Return the whole entry, or None if there is none."""
        ...


@runtime_checkable
class NamesReferences(Protocol):
    """Chooses its references itself, as the frameworks' own storages do: ``load`` takes what ``save_named`` returned.

    The model is shown that reference as it is. Without keys there are no metadata, parts or line indexes, so reading a
    part loads the whole. Up to 110 characters of it lie within the first 200 of a placeholder, which frameworks leave
    of an old result; a longer one may be cut there, and then it is lost to the model.
    """

    def save_named(self, name: str, content: bytes, *, content_type: str) -> MaybeAwaitable[str]:
        """Save an entry whole or not at all; return its reference, one line without spaces at its ends.

        ``name`` holds only small letters, digits and underscores. It is the same for the same content, tool and scope,
        and no other content has it. A reference that keeps it can be read in the scope of the saving only; one that
        does not can be read in every scope.
        Any exception means that nothing was saved; the tool result then stays in the conversation.
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

        A range beyond the end gives fewer bytes or none; ``length=0`` asks for type, metadata and size only.
        """
        ...


@runtime_checkable
class Deletes(Protocol):
    """Removes entries."""

    def delete(self, key: str) -> MaybeAwaitable[None]:
        """Remove the entry. Removing what is not there is no error."""
        ...


@runtime_checkable
class Lists(Protocol):
    """Names its entries."""

    def entries(self, prefix: str) -> MaybeAwaitable[Iterable[Listed]]:
        """Return the entries whose key starts with ``prefix``, in any order; ``""`` means all.

        A sweep asks once with ``""``, and then with each whole key that it is about to delete: that should cost little.
        """
        ...


@runtime_checkable
class Sweeps(Protocol):
    """Removes entries that nobody has just saved again: it looks at their time and removes them in one step."""

    def sweep(self, keys: Iterable[str], *, before: float) -> MaybeAwaitable[int]:
        """Remove those of ``keys`` whose time is before then, in seconds since the epoch; return how many that were.

        Clear away, too, what was left until then by writers that did not come to an end.
        """
        ...


@runtime_checkable
class LocalPath(Protocol):
    """Keeps each entry's raw content in a file of this machine."""

    def local_path(self, key: str, *, content_type: str) -> Path:
        """Return the file that holds, or would hold, the content saved under ``key`` with this type."""
        ...
