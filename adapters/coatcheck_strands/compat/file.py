"""File storage: the core's, with the constructor and methods of Strands' own offloader storage, and its old files.

Only what differs from ``coatcheck.FileStorage`` belongs here: ``store`` and ``retrieve``, access to a sandbox, and
reading what Strands' own offloader wrote into the same folder. New content goes to the subfolder ``v1``.
"""

from __future__ import annotations

import asyncio
import copy
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeGuard

from strands.sandbox.not_a_sandbox_local_environment import NotASandboxLocalEnvironment

from coatcheck import FileStorage as CoreStorage
from coatcheck_strands.compat.cycles import FOLDER
from coatcheck_strands.compat.old_files import SIDECAR, UNTYPED, bare_name, old_name, types_in, within
from coatcheck_strands.compat.sandbox import SandboxFileStorage
from coatcheck_strands.compat.storing import KnownScopes, StoresAndRetrieves, missing, shipped

if TYPE_CHECKING:
    from strands.sandbox import Sandbox

__all__ = ("FileStorage",)


class FileStorage(StoresAndRetrieves, CoreStorage):
    """Keeps content as raw files on this machine or in the sandbox it is bound to. Reads references of old sessions."""

    def __new__(cls, artifact_dir: str = "./artifacts", *_: Any, sandbox: Sandbox | None = None, **__: Any) -> Any:  # noqa: ANN401
        """Return a storage for this machine, or a ``SandboxFileStorage``, because the two have different methods.

        A subclass with its own ``store`` or ``retrieve`` keeps its class, because only these two are called on it.
        """
        made = super().__new__(cls)
        if not _is_sandbox(sandbox) or made.is_overridden():
            return made
        return SandboxFileStorage(artifact_dir, sandbox=sandbox)

    def __init__(self, artifact_dir: str = "./artifacts", *, sandbox: Sandbox | None = None) -> None:
        """Set the folder. It is created at the first save.

        Raises:
            InvalidRequest: ``artifact_dir`` is not a path.

        """
        super().__init__(artifact_dir)
        self._artifact_dir = self.root  # the name in Strands' own class, which a subclass may use
        self._is_bound = sandbox is not None
        self._inside = SandboxFileStorage(artifact_dir, sandbox=sandbox) if _is_sandbox(sandbox) else None
        self.known_scopes: KnownScopes = KnownScopes()

    def for_sandbox(self, sandbox: Sandbox) -> FileStorage | SandboxFileStorage:
        """Return the storage for an agent with this sandbox: itself if that is this machine, or if already bound."""
        if self._is_bound or not _is_sandbox(sandbox):
            return self
        inside = SandboxFileStorage(self.given_root, sandbox=sandbox)
        if not self.is_overridden():
            return inside
        bound = copy.copy(self)  # with whatever the subclass keeps, such as a key
        vars(bound).update(_is_bound=True, _inside=inside)
        return bound

    @shipped
    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        """Store content, and return its reference. The same arguments give the same reference.

        Raises:
            OSError: writing failed.

        """
        if self._inside is not None:
            return await self._inside.store(key, content, content_type)
        return await super().store(key, content, content_type)

    async def retrieve_named(self, reference: str) -> tuple[bytes, str]:
        """Return the content that ``store`` named, here or in Strands' own offloader.

        Raises:
            KeyError: there is no such content.
            OSError: reading failed.

        """
        if self._inside is not None:
            return await self._inside.retrieve_named(reference)
        return await super().retrieve_named(reference)

    def _shown(self, name: str, *, content_type: str) -> str:
        return name + self.local_path(f"{FOLDER}/{FOLDER}", content_type=content_type).suffix

    def _file_in(self, reference: str) -> str:
        return bare_name(reference, [*within(PurePath(self.given_root)), *within(self._artifact_dir)])

    async def _old(self, reference: str) -> tuple[bytes, str]:
        return await asyncio.to_thread(self._old_file, reference)

    def _old_file(self, reference: str) -> tuple[bytes, str]:
        sidecar = self._artifact_dir / SIDECAR
        types = types_in(sidecar.read_bytes()) if sidecar.is_file() else {}
        name = old_name(self._file_in(reference), types)
        path = self._artifact_dir / (name or "")
        if name is None or path.is_symlink() or not path.is_file():
            raise missing(reference)
        return path.read_bytes(), types.get(name, UNTYPED)


def _is_sandbox(sandbox: Sandbox | None) -> TypeGuard[Sandbox]:
    """Return whether ``sandbox`` keeps files somewhere other than this machine."""
    return sandbox is not None and not isinstance(sandbox, NotASandboxLocalEnvironment)
