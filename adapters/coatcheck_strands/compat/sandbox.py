"""File storage inside a Strands sandbox, through the sandbox's file operations.

Only what goes through a sandbox belongs here. The files are those that ``coatcheck.FileStorage`` writes, so a folder
shared by a sandbox and its host reads the same on both sides. A sandbox cannot rename files, so an entry's description
is written last: the entry exists only once that is there and its size matches. In this process, saves of one entry take
turns.
"""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import Future
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from coatcheck import CorruptContent, FileStorage, StorageError, Stored
from coatcheck_strands.compat.cycles import FOLDER
from coatcheck_strands.compat.old_files import SIDECAR, UNTYPED, bare_name, old_name, types_in, within
from coatcheck_strands.compat.storing import KnownScopes, StoresAndRetrieves, missing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strands.sandbox import Sandbox

__all__ = ("SandboxFileStorage",)

_ANYWHERE = Path("/").absolute()
_LAYOUT = FileStorage(_ANYWHERE)
"""Used only to name files; it stores nothing."""


class SandboxFileStorage(StoresAndRetrieves):
    """Keeps content as raw files in a sandbox. Reads references of old sessions."""

    def __init__(self, artifact_dir: str, *, sandbox: Sandbox) -> None:
        """Set the folder in the sandbox. It is created at the first save."""
        self._folder = PurePosixPath(artifact_dir)
        self._sandbox = sandbox
        self.known_scopes: KnownScopes = KnownScopes()
        # Thread futures, not asyncio ones, because agents run on a new loop each time.
        self._saving: dict[str, Future[None]] = {}

    def __repr__(self) -> str:
        return f"SandboxFileStorage({str(self._folder)!r})"

    def for_sandbox(self, sandbox: Sandbox) -> SandboxFileStorage:
        """Return this storage, which is already bound."""
        del sandbox
        return self

    async def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        """Save an entry.

        Raises:
            StorageError: the key is malformed, or other content has it.

        """
        content, metadata = bytes(content), dict(metadata)
        while (running := self._running(key)) is not None:
            await asyncio.shield(asyncio.wrap_future(running))  # another save: it continues if we are cancelled
        try:
            existing = await self.load(key)
            if existing is not None and existing.metadata.get("sha256") != metadata.get("sha256"):
                msg = f"another content is already stored under {key!r}; the new one was not saved"
                raise StorageError(msg)
            if existing is None or existing.metadata != metadata:
                await self._write(key, content, content_type=content_type, metadata=metadata)
        finally:
            self._saving.pop(key).set_result(None)

    async def load(self, key: str) -> Stored | None:
        """Return the whole entry, or None.

        Raises:
            StorageError: the key is malformed, or the description is damaged.

        """
        described = await self._described(key)
        if described is None:
            return None
        content_type, size = described["content_type"], described["size"]
        content = await self._read(self._path(key, content_type))
        if content is None or len(content) != size:
            return None
        return Stored(content=content, content_type=content_type, metadata=described["metadata"], size=size)

    async def _old(self, reference: str) -> tuple[bytes, str]:
        types = types_in(await self._read(str(self._folder / SIDECAR)) or b"")
        name = old_name(self._file_in(reference), types)
        content = None if name is None else await self._read(str(self._folder / name))
        if name is None or content is None:
            raise missing(reference)
        return content, types.get(name, UNTYPED)

    def _running(self, key: str) -> Future[None] | None:
        """Return the running save of this key. If there is none, begin one and return None."""
        mine: Future[None] = Future()
        first = self._saving.setdefault(key, mine)  # atomic
        return None if first is mine else first

    async def _write(self, key: str, content: bytes, *, content_type: str, metadata: dict[str, str]) -> None:
        await self._sandbox.write_file(self._path(key, content_type), content)
        description = {"content_type": content_type, "size": len(content), "metadata": metadata}
        await self._sandbox.write_file(self._description(key), json.dumps(description).encode())

    def _shown(self, name: str, *, content_type: str) -> str:
        return name + PurePosixPath(self._path(f"{FOLDER}/{FOLDER}", content_type)).suffix

    def _file_in(self, reference: str) -> str:
        return bare_name(reference, within(self._folder))

    async def _described(self, key: str) -> dict[str, Any] | None:
        path = self._description(key)
        found = await self._read(path)
        if found is None:
            return None
        try:
            description = json.loads(found)
            return {
                "content_type": str(description["content_type"]),
                "size": int(description["size"]),
                "metadata": dict(description["metadata"]),
            }
        except (ValueError, TypeError, KeyError) as error:
            msg = f"{path!r} is damaged: {error}"
            raise CorruptContent(msg) from error

    async def _read(self, path: str) -> bytes | None:
        try:
            return await self._sandbox.read_file(path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _path(self, key: str, content_type: str) -> str:
        path = _LAYOUT.local_path(key, content_type=content_type)  # refuses a malformed key
        return str(self._folder / path.relative_to(_ANYWHERE).as_posix())

    def _description(self, key: str) -> str:
        return str(PurePosixPath(self._path(key, "text/plain")).with_suffix(".entry.json"))
