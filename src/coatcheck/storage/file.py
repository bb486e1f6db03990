"""A storage in a folder: raw content in files that people and their tools can read.

    root/v1/<scope>/<digest>.txt          the content, byte for byte, with an extension that fits its type
    root/v1/<scope>/<digest>.entry.json   content type, size and metadata, written before the content

An entry exists when its content file does, so a crash leaves the whole entry or none. Content goes to a temporary file
in the same folder and is renamed into place. Nothing outside ``v1/`` is ever touched, and no symbolic link is followed.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict
from uuid import uuid4

import orjson

from coatcheck.errors import CorruptContent, InvalidRequest, StorageError
from coatcheck.policy import require_flag
from coatcheck.references import DIGEST_LENGTH, is_storage_key, require_storage_key
from coatcheck.storage.memory import refuse_other_content
from coatcheck.storage.protocol import Listed, Stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ("FileStorage",)

_ENTRY_SUFFIX = ".entry.json"
_CHUNK_BYTES = 1 << 20
"""Written at once, so that a thread holding the interpreter's lock gives it back at least once a megabyte."""

_EXTENSIONS = {
    "text/plain": ".txt",
    "application/json": ".json",
    "application/pdf": ".pdf",
    "application/vnd.coatcheck.lines+json": ".json",
    "image/jpeg": ".jpg",
    "image/svg+xml": ".svg",
    "audio/mpeg": ".mp3",
    "audio/x-wav": ".wav",
    "text/html": ".html",
    "text/markdown": ".md",
}

# Most do not exist on Windows, where a planted symbolic link needs rights that make it moot.
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)  # a pipe planted in place of a file would hold its reader for ever
_BINARY = getattr(os, "O_BINARY", 0)


class _Description(TypedDict):
    content_type: str
    size: int
    metadata: dict[str, str]


class FileStorage:
    """Keeps content as raw files under ``root/v1/``; a save or a read costs the same however much is stored.

    Folders have mode 0700 and files 0600. Safe for many threads and processes on one folder: equal content has one
    name, and a rename is atomic. Survives the end of the process; ``fsync=True`` makes it survive a power cut too.
    """

    def __init__(self, root: str | os.PathLike[str], *, fsync: bool = False) -> None:
        """Choose the folder; it is made at the first save.

        Args:
            root: the folder. It may hold other programs' files: only its ``v1`` is used.
            fsync: wait until content and names are on the disk before a save returns.

        Raises:
            InvalidRequest: an argument is no path, or no yes or no.

        """
        if not isinstance(root, str | os.PathLike) or not os.fspath(root):
            msg = f"FileStorage needs a folder as a text or a path, not {root!r}"
            raise InvalidRequest(msg)
        self._root = Path(os.fspath(root)).expanduser().absolute()
        self._folder = self._root / "v1"
        self._fsync = require_flag("fsync", fsync)

    def __repr__(self) -> str:
        return f"FileStorage({str(self._root)!r})"

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        """Save an entry whole or not at all; one that is there already only has its time refreshed.

        Raises:
            StorageError: the key is malformed, another content has it, or the disk refused.

        """
        content_path, entry_path = self._paths(key, content_type)
        with self._failing_as_storage_error(f"save {len(content):,} bytes"):
            self._make_folders(content_path.parent)
            if self._refresh(key, metadata):
                return
            temporary = self._write(content_path.parent, content)
            self._name(temporary, content_path, entry_path, content_type=content_type, metadata=metadata)

    def save_unnamed(
        self, content: bytes, *, scope_tag: str, content_type: str, name: Callable[[], tuple[str, Mapping[str, str]]]
    ) -> None:
        """Save an entry whose key ``name()`` gives once the content is written; see ``coatcheck.SavesUnnamed``.

        Raises:
            StorageError: the key is malformed, another content has it, or the disk refused.

        """
        folder = self._entry_path(f"{scope_tag}/{'0' * DIGEST_LENGTH}").parent
        with self._failing_as_storage_error(f"save {len(content):,} bytes"):
            self._make_folders(folder)
            temporary = self._write(folder, content)
            try:
                key, metadata = name()
                content_path, entry_path = self._paths(key, content_type)
                if not self._refresh(key, metadata):
                    self._name(temporary, content_path, entry_path, content_type=content_type, metadata=metadata)
            finally:
                temporary.unlink(missing_ok=True)

    def load(self, key: str) -> Stored | None:
        """Return the whole entry, or None.

        Raises:
            StorageError: the key is malformed, or the disk refused.

        """
        return self._read(key, start=0, length=None)

    def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        """Return the entry with at most ``length`` bytes from ``start``, or None.

        Raises:
            StorageError: the key is malformed, or the disk refused.

        """
        return self._read(key, start=start, length=length)

    def delete(self, key: str) -> None:
        """Remove the entry, if it is there: its content first, so that no half of it is ever found.

        Raises:
            StorageError: the key is malformed, or the disk refused.

        """
        entry_path = self._entry_path(key)
        with self._failing_as_storage_error(f"delete {key!r}"):
            self._refuse_links(entry_path.parent)
            description = _describe(entry_path)
            if description is not None:
                self._paths(key, description["content_type"])[0].unlink(missing_ok=True)
                entry_path.unlink(missing_ok=True)

    def entries(self, prefix: str) -> list[Listed]:
        """Return the entries whose key starts with ``prefix``.

        Raises:
            StorageError: the disk refused.

        """
        scope, slash, _ = prefix.partition("/")
        with self._failing_as_storage_error("list its entries"):
            folders = self._scopes(scope, whole=bool(slash))
            found = [listed for folder in folders for listed in _listing(folder)]
        return [listed for listed in found if listed.key.startswith(prefix)]

    def local_path(self, key: str, *, content_type: str) -> Path:
        """Return the file that holds, or would hold, the content."""
        return self._paths(key, content_type)[0]

    def _paths(self, key: str, content_type: str) -> tuple[Path, Path]:
        entry_path = self._entry_path(key)
        name = entry_path.name.removesuffix(_ENTRY_SUFFIX)
        return entry_path.with_name(name + _extension(content_type)), entry_path

    def _entry_path(self, key: str) -> Path:
        return self._folder / (require_storage_key(key) + _ENTRY_SUFFIX)

    def _make_folders(self, folder: Path) -> None:
        self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
        for each in (self._folder, folder):
            each.mkdir(exist_ok=True, mode=0o700)
            self._refuse_links(each)

    def _refuse_links(self, *folders: Path) -> None:
        """Raise if ``v1`` or one of ``folders`` in it is a link: what it leads to is not ours to read or to change."""
        for folder in (self._folder, *folders):
            try:
                found = folder.lstat()
            except FileNotFoundError:
                continue
            if not stat.S_ISDIR(found.st_mode):
                raise NotADirectoryError(errno.ENOTDIR, "not a folder but a link or a file", str(folder))

    def _refresh(self, key: str, metadata: Mapping[str, str]) -> bool:
        """Refresh the time of an entry that is there, whole and the same; return whether it is."""
        try:
            existing = _describe(self._entry_path(key))
        except CorruptContent:  # a power cut can leave it empty; what is saved now replaces it
            existing = None
        if existing is None:
            return False
        # Under its own type: other content that meets it here may have another, and hence another file name.
        content_path = self._paths(key, existing["content_type"])[0]
        if _regular_size(content_path) != existing["size"]:
            return False
        refuse_other_content(key, existing["metadata"], metadata)
        os.utime(content_path)
        return True

    def _name(
        self, temporary: Path, content_path: Path, entry_path: Path, *, content_type: str, metadata: Mapping[str, str]
    ) -> None:
        """Give written content its name, after its description has one: an entry begins to exist in one step."""
        size = temporary.stat().st_size
        description = _Description(content_type=content_type, size=size, metadata=dict(metadata))
        written = [temporary]
        try:
            written.append(self._write(entry_path.parent, orjson.dumps(description)))
            written[1].replace(entry_path)
            temporary.replace(content_path)
        except BaseException:
            for path in written:
                path.unlink(missing_ok=True)
            raise
        if self._fsync:
            _fsync_folder(content_path.parent)

    def _write(self, folder: Path, content: bytes) -> Path:
        """Write a temporary file, and leave none behind if that fails."""
        temporary = folder / f".{uuid4().hex}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _CLOSE_ON_EXEC | _BINARY
        descriptor = os.open(temporary, flags, 0o600)
        try:
            try:
                view = memoryview(content)
                while view:
                    view = view[os.write(descriptor, view[:_CHUNK_BYTES]) :]
                if self._fsync:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return temporary

    @contextmanager
    def _failing_as_storage_error(self, doing: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            msg = f"{self!r} could not {doing}: {error}"
            raise StorageError(msg) from error

    def _read(self, key: str, *, start: int, length: int | None) -> Stored | None:
        entry_path = self._entry_path(key)
        with self._failing_as_storage_error(f"load {key!r}"):
            self._refuse_links(entry_path.parent)
            description = _describe(entry_path)
            if description is None:
                return None
            content_type = description["content_type"]
            content = _read_part(self._paths(key, content_type)[0], start=start, length=length)
        if content is None:
            return None
        return Stored(
            content=content,
            content_type=content_type,
            metadata=description["metadata"],
            size=description["size"],
        )

    def _scopes(self, scope: str, *, whole: bool) -> list[Path]:
        """Return the folders of the scopes that start with ``scope``, or that are it where ``whole`` is true."""
        try:
            self._refuse_links()
            with os.scandir(self._folder) as found:
                return [
                    Path(item)
                    for item in found
                    if item.is_dir(follow_symlinks=False)
                    and (item.name == scope or not whole)
                    and item.name.startswith(scope)
                ]
        except FileNotFoundError:
            return []


def _describe(entry_path: Path) -> _Description | None:
    """Return what an entry file says, or None if there is none.

    Raises:
        CorruptContent: it does not hold what ``save`` writes.

    """
    raw = _read_part(entry_path, start=0, length=None)
    if raw is None:
        return None
    try:
        found = orjson.loads(raw)
        return _Description(
            content_type=str(found["content_type"]), size=int(found["size"]), metadata=dict(found["metadata"])
        )
    except (ValueError, TypeError, KeyError) as error:
        msg = f"{str(entry_path)!r} is damaged: {error}"
        raise CorruptContent(msg) from error


def _read_part(path: Path, *, start: int, length: int | None) -> bytes | None:
    """Return bytes of a regular file, or None if there is none. A symbolic link is an error, not a file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _NO_FOLLOW | _NO_WAITING | _CLOSE_ON_EXEC | _BINARY)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor, opened without following links
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        file.seek(start)
        return file.read() if length is None else file.read(length)


def _regular_size(path: Path) -> int | None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def _listing(folder: Path) -> Iterator[Listed]:
    """Yield the entries in the folder of a scope: what has no description beside it is a stranger."""
    paths = {path.name: path for path in folder.iterdir()}
    for name, path in paths.items():
        listed = _listed(path) if name.partition(".")[0] + _ENTRY_SUFFIX in paths else None
        if listed is not None:
            yield listed


def _listed(path: Path) -> Listed | None:
    """Return the entry whose content file this is, or None for entry files, temporary files and strangers."""
    key = f"{path.parent.name}/{path.name.partition('.')[0]}"
    if path.name.startswith(".") or path.name.endswith(_ENTRY_SUFFIX) or not is_storage_key(key):
        return None
    try:
        found = path.lstat()
    except FileNotFoundError:  # deleted since the folder was read
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return Listed(key=key, size=found.st_size, modified=found.st_mtime)


def _extension(content_type: str) -> str:
    """Return an extension that fits ``content_type``, so that editors and viewers open the file."""
    known = _EXTENSIONS.get(content_type)
    if known is not None:
        return known
    kind, _, subtype = content_type.partition("/")
    plain = re.fullmatch(r"[a-z0-9]{1,8}", subtype)
    return f".{subtype}" if plain is not None and kind in {"image", "audio", "video", "text", "application"} else ".bin"


def _fsync_folder(folder: Path) -> None:
    if os.name == "nt":  # Windows opens no folders, and keeps names without being asked
        return
    descriptor = os.open(folder, os.O_RDONLY | _CLOSE_ON_EXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
