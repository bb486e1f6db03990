"""The shape of Strands' own offloader storages, over a storage with keys: ``store`` and ``retrieve``.

Only this shape belongs here. It is for direct calls, and for Strands' own offloader; ``ContextOffloader`` uses the keys
of the core instead. What is stored directly has no scope: whoever has its reference may read it.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import re
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from coatcheck import Stored

__all__ = ("FOLDER", "StoresAndRetrieves", "missing", "off_loop")

FOLDER = "0" * 16
"""In the place of a scope: the keys of the core are two times 16 hex digits."""

_REFERENCE = re.compile(r"(?:.*_)?([0-9a-f]{16})(?:\.\w+)?")
_LONGEST_NAME = 64

Result = TypeVar("Result")


class StoresAndRetrieves:
    """``store`` and ``retrieve`` over the ``save`` and ``load``, sync or async, of the class beside it."""

    save: Callable[..., Any]
    load: Callable[..., Any]

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        """Store content; return its reference, the same for the same arguments.

        Raises:
            StorageError: the storage failed.

        """

        def save() -> tuple[str, object]:
            digest = hashlib.sha256(f"{key}\0{content_type}\0".encode("utf-8", "surrogatepass"))
            digest.update(content)
            digits, metadata = digest.hexdigest()[:16], {"sha256": digest.hexdigest()}
            return digits, self.save(f"{FOLDER}/{digits}", content, content_type=content_type, metadata=metadata)

        digits, saved = await off_loop(save)
        if inspect.isawaitable(saved):
            await saved
        name = re.sub(r"[^\w-]+", "_", key)[:_LONGEST_NAME]
        return self._shown(f"{name}_{digits}", content_type=content_type)

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        """Return content and MIME type.

        Raises:
            KeyError: there is none.
            StorageError: the storage failed.

        """
        named = _REFERENCE.fullmatch(self._file_in(reference))
        if named is None:
            raise missing(reference)
        found: Stored | None = await off_loop(lambda: self.load(f"{FOLDER}/{named[1]}"))
        if inspect.isawaitable(found):
            found = await found
        if found is None:
            raise missing(reference)
        return found.content, found.content_type

    def _shown(self, name: str, *, content_type: str) -> str:
        """Return the reference for a name: the name itself, unless a class shows more."""
        del content_type
        return name

    def _file_in(self, reference: str) -> str:
        """Return the name in a reference; an empty one where it cannot be ours."""
        return reference


def missing(reference: str) -> KeyError:
    """Return what is raised for a reference that leads nowhere."""
    return KeyError(f"reference not found: {reference}")


async def off_loop(work: Callable[[], Result]) -> Result:
    """Run ``work`` on a thread and await it."""
    return await asyncio.to_thread(work)
