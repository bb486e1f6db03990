"""Bridges to the storages of Strands Agents: the unified one, and the older one of its own offloader.

Both are recognized by their methods alone, sync or async; Strands is not imported. A unified storage keeps only bytes
under keys, so a frame around the content holds type and metadata. An async method is awaited on the caller's loop, so
one that does blocking work inside ``async def`` blocks that loop.
"""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import Awaitable, Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

from coatcheck.core.errors import CorruptContent, InvalidRequest
from coatcheck.core.references import Key, is_storage_key
from coatcheck.storage.frame import framed, unframed
from coatcheck.storage.protocol import Listed, Stored, refuse_other_content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from coatcheck.storage.protocol import MaybeAwaitable

__all__ = ("StrandsOffloaderStorageBridge", "StrandsStorageBridge")

Result = TypeVar("Result")
Calls: TypeAlias = Generator[object, Any, Result]
"""Calls of a foreign storage, written once for sync and async: each answer is sent back, awaited if necessary."""


class UnifiedStorage(Protocol):
    """The methods of ``strands.storage.Storage`` that are used here."""

    def write(self, key: str, data: bytes) -> MaybeAwaitable[None]:
        """Store bytes, replacing what is there."""
        ...

    def read(self, key: str) -> MaybeAwaitable[bytes | None]:
        """Return the bytes, or None."""
        ...

    def delete(self, key: str) -> MaybeAwaitable[None]:
        """Remove the entry, if it exists."""
        ...

    def list(self, query: str) -> MaybeAwaitable[Iterable[str]]:
        """Return the keys that start with ``query``."""
        ...


class OffloaderStorage(Protocol):
    """The methods of the storages of Strands' own offloader that are used here."""

    def store(self, key: str, content: bytes, content_type: str) -> MaybeAwaitable[str]:
        """Store content and return its reference."""
        ...

    def retrieve(self, reference: str) -> MaybeAwaitable[tuple[bytes, str]]:
        """Return content and type, or raise ``KeyError``."""
        ...


class StrandsStorageBridge:
    """Makes a unified storage of Strands a ``coatcheck.Storage``.

    It cannot list by pages: the storage lists all keys at once, and only the entry itself holds the time of its save.
    So listing a scope reads every entry in it, even for the first page.
    """

    def __init__(
        self, storage: UnifiedStorage, *, prefix: str = "offloader/", clock: Callable[[], float] = time.time
    ) -> None:
        """Put ``prefix`` before every key; the default is that of Strands' own offloader, and ``""`` means none.

        ``clock`` returns the time for each save, in seconds since the epoch.

        Raises:
            InvalidRequest: ``storage`` lacks ``write`` or ``read``, or ``prefix`` is not a str.

        """
        _require_methods(
            storage, "write", "read", owner=StrandsStorageBridge, such_as="strands.storage.LocalFileStorage"
        )
        if not isinstance(prefix, str):
            msg = f"prefix must be a str, and may be empty, not {prefix!r}"
            raise InvalidRequest(msg)
        self._storage = storage
        self._prefix = prefix
        self._clock = clock

    def __deepcopy__(self, memo: object) -> StrandsStorageBridge:
        """Return the bridge itself: a copy of its storage would lack what is saved from now on."""
        return self

    def __repr__(self) -> str:
        return f"StrandsStorageBridge({self._storage!r}, prefix={self._prefix!r})"

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> MaybeAwaitable[None]:
        """Save an entry.

        Raises:
            StorageError: the key is malformed, or another content has it.

        """
        return _run_calls(self._save(key, content, content_type=content_type, metadata=metadata))

    def metadata_to_save(self, metadata: Mapping[str, str], existing: Mapping[str, str] | None) -> Mapping[str, str]:
        """Return the metadata to save; ``existing`` is what is there, or None. A subclass may add to the metadata."""
        del existing
        return metadata

    def load(self, key: str) -> MaybeAwaitable[Stored | None]:
        """Return the whole entry, or None.

        Raises:
            StorageError: the key is malformed, or the entry is not a frame.

        """
        return _run_calls(self._load(key))

    def delete(self, key: str) -> MaybeAwaitable[None]:
        """Remove the entry, if it exists.

        Raises:
            StorageError: the key is malformed.

        """
        return self._storage.delete(self._name(key))

    def entries(self, prefix: str) -> MaybeAwaitable[Iterable[Listed]]:
        """Return the entries whose key starts with ``prefix``, even damaged ones, which get the time 0."""
        return _run_calls(self._entries(prefix))

    def _save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> Calls[None]:
        name = self._name(key)
        found = yield self._storage.read(name)
        existing = None
        if found is not None:
            with suppress(CorruptContent):  # this save replaces a damaged entry
                existing = unframed(found, name)[0].metadata
        if existing is not None:
            refuse_other_content(key, existing, metadata)
        described = self.metadata_to_save(metadata, existing)
        yield self._storage.write(
            name, framed(content, content_type=content_type, metadata=described, saved=self._clock())
        )

    def _load(self, key: str) -> Calls[Stored | None]:
        name = self._name(key)
        frame = yield self._storage.read(name)
        return None if frame is None else unframed(frame, name)[0]

    def _entries(self, prefix: str) -> Calls[list[Listed]]:
        found: list[Listed] = []
        names = yield self._storage.list(self._prefix + prefix)
        for name in names:
            key = name.removeprefix(self._prefix)
            frame = (yield self._storage.read(name)) if is_storage_key(key) else None
            if frame is not None:
                found.append(_listed(key, frame))
        return found

    def _name(self, key: str) -> str:
        return f"{self._prefix}{Key.parse(key)}"


class StrandsOffloaderStorageBridge:
    """Makes a storage of Strands' own offloader a ``coatcheck.NamesReferences``: the model sees its references."""

    def __init__(self, storage: OffloaderStorage) -> None:
        """Take a storage.

        Raises:
            InvalidRequest: it lacks ``store`` or ``retrieve``.

        """
        owner = StrandsOffloaderStorageBridge
        _require_methods(storage, "store", "retrieve", owner=owner, such_as="the FileStorage of Strands' own offloader")
        self._storage = storage

    def __deepcopy__(self, memo: object) -> StrandsOffloaderStorageBridge:
        """Return the bridge itself: a copy of its storage would lack what is saved from now on."""
        return self

    def __repr__(self) -> str:
        return f"StrandsOffloaderStorageBridge({self._storage!r})"

    def save_named(self, name: str, content: bytes, *, content_type: str) -> MaybeAwaitable[str]:
        """Save an entry and return the reference that the storage gave it."""
        return self._storage.store(name, content, content_type)

    def load(self, key: str) -> MaybeAwaitable[Stored | None]:
        """Return the entry with this reference, or None."""
        return _run_calls(self._load(key))

    def _load(self, key: str) -> Calls[Stored | None]:
        if re.split(r"[/\\]", key)[-1].startswith("."):
            return None  # not content but the storage's own notes, which name the references of every scope
        try:
            content, content_type = yield self._storage.retrieve(key)
        except KeyError:
            return None
        return Stored(content=content, content_type=content_type, metadata={}, size=len(content))


def _require_methods(storage: object, *methods: str, owner: type, such_as: str) -> None:
    """Check that a storage has these methods.

    Raises:
        InvalidRequest: it lacks one, or is a class.

    """
    if isinstance(storage, type) or not all(callable(getattr(storage, method, None)) for method in methods):
        named = " and ".join(methods)
        msg = f"{owner.__name__} needs a storage with the methods {named}, as {such_as} has, not {storage!r}"
        raise InvalidRequest(msg)


def _listed(key: str, frame: bytes) -> Listed:
    try:
        entry, saved = unframed(frame, key)
    except CorruptContent:
        return Listed(key=key, size=len(frame), modified=0.0)
    return Listed(key=key, size=entry.size, modified=saved, metadata=entry.metadata, content_type=entry.content_type)


def _run_calls(calls: Calls[Result]) -> MaybeAwaitable[Result]:
    """Run ``calls`` to the end, or until an answer must be awaited; then return an awaitable that runs the rest."""
    answer: object = None
    try:
        while True:
            answer = calls.send(answer)
            if inspect.isawaitable(answer):
                return _arun_calls(calls, answer)
    except StopIteration as stop:
        return cast("Result", stop.value)


async def _arun_calls(calls: Calls[Result], first: Awaitable[object]) -> Result:
    answer: object = first
    try:
        while True:
            try:
                answer = await answer if inspect.isawaitable(answer) else answer
            except Exception as error:  # noqa: BLE001, PERF203 - it belongs to whoever made the call
                answer = calls.throw(error)
            else:
                answer = calls.send(answer)
    except StopIteration as stop:
        return cast("Result", stop.value)
