"""Read a configuration file that somebody else owns, and write it whole or not at all, with a copy kept.

Only bytes and files belong here; ``entries`` and ``claude_hook`` change the text.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import unified_diff
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from coatcheck import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("Source", "create", "difference", "read", "write")

_BACKUPS = ".coatcheck/backups"

_MAX_BYTES = 64_000_000
"""The largest file to edit. Claude Code keeps what users typed in the same file; tens of megabytes were seen."""


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was read."""

    path: Path
    """As the user or the client names it; may be a link."""

    text: str


def read(path: Path) -> Source | None:
    """Read a file; return None if there is none.

    Raises:
        InvalidRequest: it cannot be read, or is not UTF-8.

    """
    try:
        if stat.S_ISFIFO(path.stat().st_mode):  # opening it would wait for a writer
            msg = f"{path} is not a regular file"
            raise InvalidRequest(msg)
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            msg = f"{path} has more than {_MAX_BYTES:,} bytes, too many to edit; do it by hand"
            raise InvalidRequest(msg)
        return Source(path, data.decode())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise InvalidRequest(msg) from None
    except UnicodeDecodeError:
        msg = f"{path} is not UTF-8; save it as UTF-8, or edit it by hand"
        raise InvalidRequest(msg) from None


def difference(path: Path, old: str, new: str) -> str:
    """Return the difference between two versions of a file's text, as ``diff -u`` shows it."""
    before, after = (StringIO(text, newline="\n").readlines() for text in (old, new))
    lines = unified_diff(before, after, str(path), str(path))
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def create(path: Path, text: str) -> None:
    """Create a file that was not there, and the folders that it needs; only the user may read them.

    Raises:
        InvalidRequest: somebody made the file meanwhile, or the disk refused. Then no part of ours is there.

    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _temporary(path, text.encode(), put=os.link):  # fails if somebody made the file meanwhile
            pass
    except OSError as error:
        msg = f"{path} was not written: {error.strerror}"
        raise InvalidRequest(msg) from None


def write(source: Source, text: str, *, backups: Path | None = None) -> Path:
    """Replace a file that was read, and return the path of a copy of the old one. coatcheck never writes that back.

    The new file has the mode and the owner of the old one, and appears under its name only when complete. A link stays,
    and its target is replaced.

    Args:
        source: the file as it was read.
        text: the new content.
        backups: the folder of the copies, which may hold secrets: nobody but the user can read it. None:
            ``.coatcheck/backups`` in the user's home.

    Raises:
        InvalidRequest: the file changed since it was read, is read-only, or the disk refused. The file is then as it
            was.

    """
    target = Path(os.path.realpath(source.path))
    try:
        was = _refuse_changed(source, target)
        backup = _keep(source, Path.home() / _BACKUPS if backups is None else backups)
        _replace(source, target, text.encode(), was)
    except OSError as error:
        msg = f"{target} was not changed: {error.strerror}"
        raise InvalidRequest(msg) from None
    return backup


def _refuse_changed(source: Source, target: Path) -> os.stat_result:
    """Check that a file still holds what was read and may be replaced; return its properties."""
    found = target.stat()
    if not found.st_mode & stat.S_IWUSR:
        msg = f"{target} is read-only, so it stays as it is; make it writable, or edit it by hand"
        raise InvalidRequest(msg)
    if found.st_nlink > 1:
        msg = f"{target} has {found.st_nlink} names (hard links), which a new file would separate; edit it by hand"
        raise InvalidRequest(msg)
    if target.read_bytes() != source.text.encode():
        msg = f"{target} changed meanwhile, so it stays as it is; run the command again"
        raise InvalidRequest(msg)
    return found


def _keep(source: Source, folder: Path) -> Path:
    """Write a copy of what a file held. The same content of the same file is kept once."""
    digests = _digest(os.fsencode(source.path.absolute())), _digest(source.text.encode())
    backup = folder / ".".join((source.path.name.lstrip("."), *digests))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _temporary(backup, source.text.encode()):
        pass  # no owner to copy, and no need to wait for the disk
    return backup


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


@contextmanager
def _temporary(target: Path, data: bytes, *, put: Callable[[str, Path], None] = os.replace) -> Iterator[int]:
    """Write a file next to ``target``, and ``put`` it there after the block, unless anything fails."""
    number, name = tempfile.mkstemp(prefix=".coatcheck-", dir=target.parent)  # with mode 0600
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
            file.flush()
            yield number
        put(name, target)
    finally:
        with suppress(OSError):  # ``os.replace`` took this name away
            Path(name).unlink()


def _replace(source: Source, target: Path, data: bytes, was: os.stat_result) -> None:
    with _temporary(target, data) as number:
        _copy_owner(number, was)
        os.fsync(number)
        _refuse_changed(source, target)  # the last check; a write right after it goes unnoticed
    _sync_folder(target.parent)


def _copy_owner(number: int, was: os.stat_result) -> None:
    if os.name == "nt":  # Windows has no such modes and owners; the folder's rights are inherited
        return
    now = os.fstat(number)
    if (now.st_uid, now.st_gid) != (was.st_uid, was.st_gid):
        os.fchown(number, was.st_uid, was.st_gid)
    os.fchmod(number, stat.S_IMODE(was.st_mode))


def _sync_folder(folder: Path) -> None:
    """Wait until the new name is on the disk, if the system can open a folder."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
