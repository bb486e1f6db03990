"""File storage: the core's, with the constructor and the shape that Strands' own offloader has, and its old files.

Only what differs from ``coatcheck.FileStorage`` belongs here: ``store`` and ``retrieve``, the way into a sandbox, and
reading what Strands' own offloader wrote into the same folder. New content goes to the folder ``v1`` in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from strands.sandbox.not_a_sandbox_local_environment import NotASandboxLocalEnvironment

from coatcheck import FileStorage as CoreStorage
from coatcheck_strands.old_files import SIDECAR, UNTYPED, bare_name, old_name, types_in, within
from coatcheck_strands.sandbox import SandboxFileStorage
from coatcheck_strands.storing import FOLDER, StoresAndRetrieves, missing, off_loop

if TYPE_CHECKING:
    from strands.sandbox import Sandbox

__all__ = ("FileStorage",)


class FileStorage(StoresAndRetrieves, CoreStorage):
    """Keeps content as raw files on this machine, or, bound to a sandbox, in that. Reads references of old sessions."""

    def __new__(cls, artifact_dir: str = "./artifacts", *, sandbox: Sandbox | None = None) -> Any:  # noqa: ANN401
        """Return a storage of this machine, or one of ``sandbox``: what the two can do differs, so the class does."""
        if sandbox is None or isinstance(sandbox, NotASandboxLocalEnvironment):
            return super().__new__(cls)
        return SandboxFileStorage(artifact_dir, sandbox=sandbox)

    def __init__(self, artifact_dir: str = "./artifacts", *, sandbox: Sandbox | None = None) -> None:
        """Choose the folder; it is made at the first save.

        Raises:
            InvalidRequest: ``artifact_dir`` is no path.

        """
        super().__init__(artifact_dir)
        self._given = Path(artifact_dir)
        self._artifact_dir = self._given.expanduser().absolute()
        self._is_bound = sandbox is not None

    def for_sandbox(self, sandbox: Sandbox) -> FileStorage | SandboxFileStorage:
        """Return the storage for an agent with this sandbox: itself where it is this machine, or was bound before."""
        if self._is_bound or isinstance(sandbox, NotASandboxLocalEnvironment):
            return self
        return SandboxFileStorage(str(self._given), sandbox=sandbox)

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        """Return content and MIME type, also of what Strands' own offloader stored.

        Raises:
            KeyError: there is none.
            StorageError: the disk refused.

        """
        try:
            return await super().retrieve(reference)
        except KeyError:
            return await off_loop(lambda: self._old(reference))

    def _shown(self, name: str, *, content_type: str) -> str:
        return name + self.local_path(f"{FOLDER}/{FOLDER}", content_type=content_type).suffix

    def _file_in(self, reference: str) -> str:
        return bare_name(reference, [*within(self._given), *within(self._artifact_dir)])

    def _old(self, reference: str) -> tuple[bytes, str]:
        sidecar = self._artifact_dir / SIDECAR
        types = types_in(sidecar.read_bytes()) if sidecar.is_file() else {}
        name = old_name(self._file_in(reference), types)
        path = self._artifact_dir / (name or "")
        if name is None or path.is_symlink() or not path.is_file():
            raise missing(reference)
        return path.read_bytes(), types.get(name, UNTYPED)
