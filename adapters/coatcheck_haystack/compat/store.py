"""``FileSystemToolResultStore``: files in a folder, under names chosen by the writer.

Only the store belongs here. It reads what Haystack's own class wrote, and writes where that class would, so that a
user's own read tool keeps working. The references of ``coatcheck.FileStorage`` contain no path of this machine.
"""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from haystack.core.serialization import default_from_dict, default_to_dict
from haystack.hooks.tool_result_offloading import ToolResultStore

__all__ = ("FileSystemToolResultStore",)

_NO_FILE = {errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ELOOP}


class FileSystemToolResultStore(ToolResultStore):
    """Keeps each content in its own file, written whole or not at all. New folders have mode 0700, files 0600."""

    __module__ = "haystack_integrations.hooks.coatcheck"  # Haystack loads it from there without an allowlist

    supports_binary_content = True
    stores_text_as_utf8 = True

    def __init__(self, root: str | os.PathLike[str]) -> None:
        """Set the folder. It is created at the first write."""
        self.root: Path = Path(root)

    def write(self, *, key: str, content: str | bytes) -> str:
        """Write a file, and return its absolute path. A ``str`` is written as UTF-8, and keeps lone surrogates.

        Args:
            key: the file's name, or its path below the folder.
            content: what to write. It replaces earlier content under this key.

        Raises:
            ValueError: the key is empty, contains NUL, or leads out of the folder by dots, as an absolute path or
                through a link.
            OSError: the file could not be written.

        """
        path = self._inside(key, "Result key")
        folders = (path.parent, *path.parent.parents)
        for missing in reversed([folder for folder in folders if not folder.exists()]):
            missing.mkdir(exist_ok=True, mode=0o700)
        data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
        # Write a temporary file and rename it, so that a concurrent reader sees the whole old or the whole new file.
        handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
        return str(path)

    def read(self, reference: str) -> str | bytes:
        """Return a file's content: a ``str`` if it is valid UTF-8, else its bytes.

        Raises:
            ValueError: the reference leads out of the folder, or contains NUL.
            FileNotFoundError: there is no such file, or no file can have this name.
            OSError: the file could not be read.

        """
        try:
            data = self._inside(reference, "Result reference").read_bytes()
        except OSError as error:
            if error.errno in _NO_FILE:
                raise FileNotFoundError(errno.ENOENT, "no such file", reference) from error
            raise
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return data

    def to_dict(self) -> dict[str, Any]:
        """Return what ``from_dict`` needs."""
        return default_to_dict(self, root=str(self.root))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> FileSystemToolResultStore:
        """Return the store that ``to_dict`` serialized."""
        return default_from_dict(cls, data)

    def _inside(self, path_like: str, what: str) -> Path:
        """Return the path of a key or a reference, with every link followed. Raise if it is not below the folder."""
        root = self.root.resolve()
        path = (root / path_like).resolve()
        if path == root or not path.is_relative_to(root):
            msg = f"{what} {path_like!r} resolves outside the store root {str(root)!r}"
            raise ValueError(msg)
        return path
