"""One folder of a file storage, opened once: every name is looked up in the open folder, and no link is followed.

A path can lead elsewhere from one call to the next; an open folder cannot. This module does what needs the operating
system: opening, writing, renaming, locking, and choosing file extensions for content types. ``file`` says what the
files mean. Where the system cannot look up names in an open folder (Windows), links are refused by checking first.

Windows neither replaces nor removes a file that somebody has open: a reader, for a moment, or a virus scanner. So this
module retries for a while.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
import zlib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from coatcheck.core.errors import CorruptContent

try:
    import fcntl
except ImportError:  # Windows
    from coatcheck.storage import byte_locks as fcntl  # type: ignore[no-redef]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ("EXTENSIONS", "Folder", "extension", "make_folders", "open_folder", "unless_in_use")

Result = TypeVar("Result")

_CHUNK_BYTES = 1 << 20
"""Bytes written in one call, so that the thread gives up the interpreter's lock at least once a megabyte."""

LOCK_SECONDS = 10.0
"""How long to wait for a lock, which its owner holds for milliseconds. ``flock`` itself has no time limit."""

LOCK_PAUSE_SECONDS = 0.001
"""How long to wait between two attempts to lock, and between two retries on Windows."""

BUSY_SECONDS = 2.0
"""How long to wait on Windows for whoever has a file open: a reader for milliseconds, a virus scanner for longer."""

_LOCKS = "folders.lock"
"""An empty file next to the folders of the scopes, with a byte to lock for each folder. Windows cannot lock folders,
and nobody else can read the locked bytes of a file."""

_OF_SCOPES = 1 << 30
"""Bytes of ``_LOCKS`` for the folders of scopes. Two more follow: one for the folder that holds these folders, and one
for the file in it that is locked."""

_ON_WINDOWS = os.name == "nt"
_SHARING_VIOLATION = 32

# Most of these do not exist on Windows, where planting a symbolic link takes rights that make the attack moot.
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_DIRECTORY = getattr(os, "O_DIRECTORY", 0)
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)  # else reading a pipe planted in place of a file would never return
_BINARY = getattr(os, "O_BINARY", 0)
_MORE_READS = 3
"""Further attempts to read a file. Over NFS 3, an open file is stale once another host has replaced it; the new file
can be read."""

_TO_READ = os.O_RDONLY | _NO_FOLLOW | _NO_WAITING | _CLOSE_ON_EXEC | _BINARY

_IN_OPEN_FOLDERS = os.scandir in os.supports_fd and os.supports_dir_fd >= {
    os.open,
    os.mkdir,
    os.rmdir,
    os.stat,
    os.unlink,
    os.rename,
    os.utime,
}
_FOLLOWS_LINKS = os.utime not in os.supports_follow_symlinks
_NO_FOLDER = frozenset({errno.ENOTDIR, errno.ELOOP})


EXTENSIONS = {
    "text/plain": ".txt",
    "application/json": ".json",
    "application/pdf": ".pdf",
    "application/vnd.coatcheck.lines+json": ".json",
    "audio/mpeg": ".mp3",
    "audio/wav": ".wav",
    "audio/x-wav": ".wav",
    "image/gif": ".gif",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/svg+xml": ".svg",
    "image/webp": ".webp",
    "text/csv": ".csv",
    "text/html": ".html",
    "text/markdown": ".md",
    "video/mp4": ".mp4",
}
"""The usual extension for each type. If several types share an extension, a file with it has the first of them."""


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder, made by ``open_folder``. Its methods raise ``OSError`` as the system does."""

    path: Path

    descriptor: int | None
    """The descriptor of the open folder; None if the system cannot look up names in one."""

    base: str
    """What to put before a name in this folder: ``""`` if the system looks it up in ``descriptor``, else the path."""

    is_of_scope: bool
    """Whether it is the folder of a scope, and not one above it."""

    @property
    def modified(self) -> float:
        """When a name in this folder was last added, changed or removed, in seconds since the epoch."""
        return (self.path.stat() if self.descriptor is None else os.fstat(self.descriptor)).st_mtime

    def scan(self) -> Iterator[os.DirEntry[str]]:
        """Yield what is in this folder."""
        with os.scandir(self.path if self.descriptor is None else self.descriptor) as found:
            yield from found

    def status(self, name: str) -> os.stat_result | None:
        """Return the status of a regular file, or None if there is none."""
        try:
            found = os.stat(self.base + name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return found if stat.S_ISREG(found.st_mode) else None

    def status_now(self, name: str) -> os.stat_result | None:
        """Return a fresh ``status``: NFS answers from memory for up to a minute, unless the file is opened first."""
        found = self.status(name)
        if found is not None:
            with suppress(OSError):  # if the file is gone or cannot be opened, the first status must do
                os.close(os.open(self.base + name, _TO_READ, dir_fd=self.descriptor))
                found = self.status(name)
        return found

    def read(
        self,
        name: str,
        *,
        start: int = 0,
        length: int | None = None,
        size: int | None = None,
        more: int = _MORE_READS,
    ) -> bytes | None:
        """Return bytes of a regular file, or None if there is none; ``size`` is what the whole file must have.

        Retry up to ``more`` times if another host replaces the file meanwhile.

        Raises:
            CorruptContent: the file has another size, or the name is that of a link, a folder or a device.

        """
        try:
            if _ON_WINDOWS:
                descriptor = self._open_when_free(name)
            else:
                descriptor = os.open(self.base + name, _TO_READ, dir_fd=self.descriptor)
            is_file = False
            try:
                status = os.fstat(descriptor)
                is_file = stat.S_ISREG(status.st_mode)
            finally:
                if not is_file:  # closed here: ``open`` refuses a folder, and leaves it open
                    os.close(descriptor)
            if not is_file:
                raise self._no_file(name)
            with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor, opened without following links
                if size not in {None, status.st_size}:
                    msg = f"{str(self.path / name)!r} has {status.st_size:,} bytes, and {size:,} were saved"
                    raise CorruptContent(msg)
                file.seek(start)
                return file.read() if length is None else file.read(length)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise self._no_file(name) from error
            if error.errno != errno.ESTALE or not more:
                raise
        return self.read(name, start=start, length=length, size=size, more=more - 1)

    @contextmanager
    def temporary_file(self, content: bytes, *, fsync: bool) -> Iterator[str]:
        """Write a temporary file, for its owner only, and yield its name for a rename; remove the file on failure."""
        name = f".{os.urandom(16).hex()}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _CLOSE_ON_EXEC | _BINARY
        descriptor = os.open(self.base + name, flags, 0o600, dir_fd=self.descriptor)
        try:
            try:
                view = memoryview(content)
                while view:
                    view = view[os.write(descriptor, view[:_CHUNK_BYTES]) :]
                if fsync:
                    _sync(descriptor)
            finally:
                os.close(descriptor)
            yield name
        except BaseException:
            self.remove(name)
            raise

    def rename(self, old: str, new: str) -> None:
        """Rename a file in one step, replacing whatever has the new name."""
        at = self.descriptor
        replace = partial(os.replace, self.base + old, self.base + new, src_dir_fd=at, dst_dir_fd=at)
        _when_free(replace) if _ON_WINDOWS else replace()

    def touch(self, name: str) -> None:
        """Set the time of a file to now."""
        os.utime(self.base + name, dir_fd=self.descriptor, follow_symlinks=_FOLLOWS_LINKS)

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        unlink = partial(os.unlink, self.base + name, dir_fd=self.descriptor)
        with suppress(FileNotFoundError):
            _when_free(unlink) if _ON_WINDOWS else unlink()

    def remove_folder(self, name: str) -> None:
        """Remove a folder in this one, if it exists and is empty."""
        with suppress(OSError):
            os.rmdir(self.base + name, dir_fd=self.descriptor)

    def sync(self) -> None:
        """Wait until the names in this folder are on the disk. Windows persists names without being asked."""
        if self.descriptor is not None:
            _sync(self.descriptor)

    @contextmanager
    def locked(self, descriptor: int | None = None) -> Iterator[None]:
        """Exclude all other threads and processes that lock this folder, if the file system has locks.

        The lock belongs to an open descriptor and ends with the process, however that ends, so it leaves nothing to
        clean up.

        Args:
            descriptor: that of an open file, to lock the file instead of the folder.

        Raises:
            TimeoutError: another process held the lock for 10 seconds, such as one suspended in the middle of a save.

        """
        held = self.descriptor if descriptor is None else descriptor
        if _ON_WINDOWS:
            held = self._open_byte(of_file=descriptor is not None)
        try:
            given_up = 0.0
            while held is not None:
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    now = time.monotonic()
                    given_up = given_up or now + LOCK_SECONDS
                    if now > given_up:
                        raise TimeoutError(errno.ETIMEDOUT, "another process keeps it locked", str(self.path)) from None
                    time.sleep(LOCK_PAUSE_SECONDS)
                    continue
                except OSError:
                    pass  # some network file systems have no locks: a sweep may miss a concurrent save there
                break
            yield
        finally:
            if held is not None:
                with suppress(OSError):
                    fcntl.flock(held, fcntl.LOCK_UN)  # closing is not enough: a forked child has a copy open
                if _ON_WINDOWS:
                    os.close(held)

    def _open_byte(self, *, of_file: bool) -> int:
        """Open the file of locks at the byte for this folder, or for the file in it that is to be locked."""
        byte = _OF_SCOPES + of_file
        if self.is_of_scope and not of_file:
            byte = zlib.crc32(self.path.name.encode()) % _OF_SCOPES
        path = (self.path.parent if self.is_of_scope else self.path) / _LOCKS
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _CLOSE_ON_EXEC | _BINARY, 0o600)
        os.lseek(descriptor, byte, os.SEEK_SET)
        return descriptor

    @contextmanager
    def locked_file(self, name: str, *, make: bool = False) -> Iterator[int | None]:
        """Open a file to read and write, exclude all others that open it this way, and yield its descriptor.

        It yields None if there is no such file; with ``make``, the file is created, for its owner only.

        Raises:
            TimeoutError: as for ``locked``.

        """
        flags = os.O_RDWR | (os.O_CREAT if make else 0) | _NO_FOLLOW | _NO_WAITING | _CLOSE_ON_EXEC | _BINARY
        try:
            descriptor = os.open(self.base + name, flags, 0o600, dir_fd=self.descriptor)
        except FileNotFoundError:
            if make:
                raise
            yield None
            return
        try:
            with self.locked(descriptor):
                yield descriptor
        finally:
            os.close(descriptor)

    def _open_when_free(self, name: str) -> int:
        """Open a file to read on Windows, even while it is being replaced or removed."""
        if os.path.isdir(self.base + name):  # noqa: PTH112 - as everywhere here. Windows cannot open a folder
            raise self._no_file(name)
        return _when_free(partial(os.open, self.base + name, _TO_READ))

    def _no_file(self, name: str) -> CorruptContent:
        return CorruptContent(f"{str(self.path / name)!r} is not a file but a link, a folder or a device")


@contextmanager
def unless_in_use() -> Iterator[None]:
    """Skip the rest of the block if Windows does not remove a file because a program has it open."""
    try:
        yield
    except PermissionError as error:
        if getattr(error, "winerror", None) != _SHARING_VIOLATION:
            raise


def _when_free(call: Callable[[], Result]) -> Result:
    """Return what ``call`` returns; repeat it for a while if somebody has the file open."""
    given_up = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return call()
        except PermissionError:
            if time.monotonic() > given_up:
                raise
        time.sleep(LOCK_PAUSE_SECONDS)


def _sync(descriptor: int) -> None:
    """Wait until what was written is on the disk. On macOS, ``fsync`` alone leaves it in the disk's cache."""
    to_the_disk = getattr(fcntl, "F_FULLFSYNC", None)
    if to_the_disk is not None:
        with suppress(OSError):  # not every filesystem on macOS supports it
            fcntl.fcntl(descriptor, to_the_disk)
            return
    os.fsync(descriptor)


@contextmanager
def open_folder(root: Path, *names: str) -> Iterator[Folder]:
    """Open ``root``, or the folder that ``names`` lead to from it. Only ``root``, its owner's choice, may be a link."""
    descriptor: int | None = None
    for depth, name in enumerate((str(root), *names)):
        parent = descriptor
        try:
            if _IN_OPEN_FOLDERS:
                flags = os.O_RDONLY | _DIRECTORY | _CLOSE_ON_EXEC | (_NO_FOLLOW if depth else 0)
                descriptor = os.open(name, flags, dir_fd=parent)
            elif not stat.S_ISDIR(root.joinpath(*names[:depth]).stat(follow_symlinks=not depth).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        except OSError as error:
            if error.errno in _NO_FOLDER:
                where = str(root.joinpath(*names[:depth]))
                raise NotADirectoryError(errno.ENOTDIR, "not a folder but a link or a file", where) from error
            raise
        finally:
            if parent is not None:
                os.close(parent)
    path = root.joinpath(*names)
    try:
        base = "" if descriptor is not None else f"{path}{os.sep}"
        yield Folder(path, descriptor, base, is_of_scope=len(names) > 1)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def make_folders(root: Path, names: tuple[str, ...], *, fsync: bool) -> None:
    """Create ``root``, its parents, and the folders ``names``, each in the one before it, for their owner only."""
    missing = [folder for folder in (root, *root.parents) if fsync and not folder.exists()]
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    for number, name in enumerate(names):
        with open_folder(root, *names[:number]) as folder, suppress(FileExistsError):
            os.mkdir(folder.base + name, 0o700, dir_fd=folder.descriptor)
    for made in missing:
        with open_folder(made.parent) as parent:
            parent.sync()


def extension(content_type: str) -> str:
    """Return an extension that fits ``content_type``, so that editors and viewers open the file."""
    content_type = content_type.partition("; items=")[0]  # for many joined text blocks, as ``contents`` stores them
    known = EXTENSIONS.get(content_type)
    if known is not None:
        return known
    kind, _, subtype = content_type.partition("/")
    plain = re.fullmatch(r"[a-z0-9]{1,8}", subtype)
    return f".{subtype}" if plain is not None and kind in {"image", "audio", "video", "text", "application"} else ".bin"
