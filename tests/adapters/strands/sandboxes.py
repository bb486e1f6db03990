"""A sandbox for tests: it keeps real files in a folder of its own, and runs no commands."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from strands.sandbox import Sandbox

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path


class FolderSandbox(Sandbox):
    """Keeps the files of a sandbox below ``root``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    async def read_file(self, path: str, **_: object) -> bytes:
        return await asyncio.to_thread((self.root / path).read_bytes)

    async def write_file(self, path: str, content: bytes, **_: object) -> None:
        target = self.root / path
        await asyncio.to_thread(target.parent.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(target.write_bytes, content)

    async def remove_file(self, path: str, **_: object) -> None:
        await asyncio.to_thread((self.root / path).unlink)

    async def list_files(self, path: str, **_: object) -> list[Any]:
        raise NotImplementedError

    def execute_streaming(self, command: str, **_: object) -> AsyncGenerator[Any, None]:
        raise NotImplementedError

    def execute_code_streaming(self, code: str, language: str, **_: object) -> AsyncGenerator[Any, None]:
        raise NotImplementedError

    def files(self) -> list[str]:
        """Return the paths of all files, relative to ``root``."""
        return sorted(path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file())
