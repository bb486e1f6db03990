"""``store`` and ``retrieve``, the interface of Strands' own offloader storages, on top of a storage with keys.

Only this interface belongs here. It is for direct calls, for Strands' own offloader, and for subclasses that override
it; otherwise ``ContextOffloader`` uses the keys of the core. What the host stores has no scope: whoever has its
reference may read it.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
from collections import OrderedDict
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from coatcheck import (
    InvalidRequest,
    Offloader,
    ReferenceNotFound,
    StorageError,
    StrandsOffloaderStorageBridge,
)
from coatcheck.adapting import ForkSafeLock, remember_latest
from coatcheck_strands.compat.calling import scope_at_hand
from coatcheck_strands.compat.cycles import FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable

    from coatcheck import Scope, Storage, Stored

__all__ = ("KnownScopes", "StoresAndRetrieves", "missing", "shipped")

MAX_SCOPES = 256
"""Scopes that one storage object remembers. Each costs one check of the reference, and no storage access."""

_REFERENCE = re.compile(r"(?:.*_)?([0-9a-f]{16})(?:\.\w+)?")

_LONGEST_NAME = 128
"""Characters. A name from the core ends with the scope's name, has at most 73, and must stay whole."""

Method = TypeVar("Method", bound="Callable[..., Any]")

_shipped: set[object] = set()


def shipped(method: Method) -> Method:
    """Mark a ``store`` or ``retrieve`` as this package's, to tell it from an override."""
    _shipped.add(method)
    return method


class KnownScopes:
    """The latest 256 scopes under which one storage object saved in this process. Thread-safe."""

    def __init__(self) -> None:
        self._names: OrderedDict[Scope, None] = OrderedDict()
        self._lock = ForkSafeLock()

    def note(self, scope: Scope) -> None:
        """Remember a scope."""
        with self._lock.held:
            remember_latest(self._names, scope, value=None, most=MAX_SCOPES)

    def names(self) -> list[Scope]:
        """Return the scopes, the latest first."""
        with self._lock.held:
            return list(reversed(self._names))


class StoresAndRetrieves:
    """``store`` and ``retrieve`` on top of the other base class's ``save`` and ``load``, sync or async.

    Both also raise the backend's errors, as Strands' own storages do.
    """

    save: Callable[..., Any]
    load: Callable[..., Any]
    known_scopes: KnownScopes

    @shipped
    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        """Store content, and return its reference. The same arguments give the same reference.

        Raises:
            TypeError: ``content`` is not bytes.
            StorageError: the storage refused the content, because it is too large or other content has this key.

        """
        if not isinstance(content, bytes | bytearray | memoryview):
            msg = f"content must be bytes, not {type(content).__name__}: encode it, as in 'text'.encode()"
            raise TypeError(msg)

        def save() -> tuple[str, object]:
            digest = hashlib.sha256(f"{key}\0{content_type}\0".encode("utf-8", "surrogatepass"))
            digest.update(content)
            digits, metadata = digest.hexdigest()[:16], {"sha256": digest.hexdigest()}
            return digits, self.save(f"{FOLDER}/{digits}", content, content_type=content_type, metadata=metadata)

        digits, saved = await asyncio.to_thread(save)
        if inspect.isawaitable(saved):
            await saved
        name = re.sub(r"[^\w-]+", "_", key)[:_LONGEST_NAME]
        return self._shown(f"{name}_{digits}", content_type=content_type)

    @shipped
    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        """Return the content and MIME type of a reference, made by ``store`` or found in a placeholder.

        A reference from a placeholder is looked up in the scope of the current tool call, else in the ambient scope. If
        there is neither, it is looked up in the scopes under which a plugin saved with this object.

        Raises:
            KeyError: there is no such content.
            CorruptContent: the content of a placeholder's reference does not match its digest, or ``retrieve_named``
                finds the content that ``store`` named damaged.

        """
        scope = scope_at_hand()
        if scope is None:
            try:
                return await self.retrieve_named(reference)
            except KeyError:
                scopes = self.known_scopes.names()
        else:
            scopes = [scope]
        named = SimpleNamespace(store=self.store, retrieve=self.retrieve_named)
        readers = [Offloader(StrandsOffloaderStorageBridge(cast("Any", named)))]
        if not self.is_overridden():  # an override must not return what was saved without it
            readers.append(Offloader(cast("Storage", self)))
        for name in scopes:
            for reader in readers:
                try:
                    content = await reader.aload(reference, scope=name)
                except (InvalidRequest, ReferenceNotFound):
                    continue
                except StorageError as error:
                    own = _own_error(error)
                    raise own from own.__cause__
                return content.data, content.content_type
        raise missing(reference)

    async def retrieve_named(self, reference: str) -> tuple[bytes, str]:
        """Return only what ``store`` named, here or in Strands' own offloader, whatever its scope.

        Raises:
            KeyError: there is no such content.
            CorruptContent: the storage itself detects damage, such as a wrong size. No digest is compared, so other
                bytes of the same size are returned as they are.

        """
        found: Stored | None = None
        if (named := _REFERENCE.fullmatch(self._file_in(reference))) is not None:
            found = await asyncio.to_thread(self.load, f"{FOLDER}/{named[1]}")
            if inspect.isawaitable(found):
                found = await found
        return await self._old(reference) if found is None else (found.content, found.content_type)

    def is_overridden(self) -> bool:
        """Return whether a subclass, or the host on this object, replaced ``store`` or ``retrieve``."""
        return any(getattr(method, "__func__", None) not in _shipped for method in (self.store, self.retrieve))

    async def _old(self, reference: str) -> tuple[bytes, str]:
        """Return what Strands' own offloader stored in the same place, if that persists. Else raise ``KeyError``."""
        raise missing(reference)

    def _shown(self, name: str, *, content_type: str) -> str:
        """Return the reference for a name: the name itself, unless a subclass adds to it."""
        del content_type
        return name

    def _file_in(self, reference: str) -> str:
        """Return the name in a reference; an empty one if the reference cannot be ours."""
        return reference


def _own_error(error: StorageError) -> BaseException:
    """Return the storage's own exception if an ``Offloader`` wrapped it in a ``StorageError``; else the error itself.

    An ``Offloader`` never makes a subclass of ``StorageError``, so the storage itself raised that. A ``LookupError``
    stays wrapped, because here it would mean that there is no such content.
    """
    cause = error.__cause__
    if cause is None or type(error) is not StorageError or isinstance(cause, LookupError):
        return error
    return cause


def missing(reference: str) -> KeyError:
    """Return the error for a reference without content."""
    return KeyError(f"Reference not found: {reference}")
