"""Turns a path or a URL into a storage; no other module does.

    a path, file:///a/path    a folder: ``FileStorage``
    s3://bucket/prefix        ``S3Storage``
    any other URL             that fsspec filesystem: ``FsspecBridge``; a chain of them is refused

Addresses and credentials come from the environment, as for the other tools of each service.
"""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING, TypedDict

from coatcheck.cli.failure import CannotRun
from coatcheck.core.errors import CoatcheckError, install_command
from coatcheck.hook.command import sweep_command

if TYPE_CHECKING:
    from coatcheck.storage.file import FileStorage
    from coatcheck.storage.protocol import Storage

__all__ = (
    "DEFAULT_STORAGE",
    "STORAGE_VARIABLE",
    "Limits",
    "fault_of",
    "leftovers",
    "storage_at",
    "to_be_written",
    "without_secret",
)

STORAGE_VARIABLE = "COATCHECK_STORAGE"

DEFAULT_STORAGE = "~/.coatcheck"
"""One per user, wherever a command runs: what was put from one folder can be read back from another."""

_USE_ANOTHER = f"To use another storage, pass --storage or set {STORAGE_VARIABLE}"

_URL = re.compile(r"([a-z][a-z0-9+._-]+)://", re.IGNORECASE)
"""At least two characters, so that a Windows drive is not taken for a scheme. Some fsspec schemes contain ``_``."""

_SECRET = re.compile(r"(?<=://)[^/@:]*:.*(?=@)|(?<=\?).*")
"""In a URL: a user name, which may be empty, with any password; or a query. A name alone is not secret."""


class Limits(TypedDict, total=False):
    """The limits of a folder, as ``FileStorage`` takes them, in seconds and bytes."""

    max_age: float | None
    max_bytes: int | None
    max_scope_bytes: int | None


def storage_at(
    location: str,
    *,
    may_be_new: bool = False,
    is_made: bool = False,
    refresh_on_read: bool = True,
    limits: Limits | None = None,
) -> Storage:
    """Return the storage at a path or a URL.

    Args:
        location: the path or the URL.
        may_be_new: whether a folder that does not exist yet is accepted; otherwise it is treated as a typo.
        is_made: whether a folder in which nothing was ever saved is treated as a typo too.
        refresh_on_read: whether a read counts as use, if the storage tracks use.
        limits: the limits of a folder; other storages have none.

    Raises:
        CannotRun: there is no such storage, it is on another machine or in memory, or its extra is not installed.
        InvalidRequest: no file system can have such a path, or the S3 URL names no bucket.

    """
    scheme = _scheme(location)
    if "::" in (chain := location.partition("://"))[0] and chain[1]:  # not a folder, although it has no scheme either
        msg = "a chain of filesystems cannot be named here: make an FsspecBridge of it, or name only the last URL"
        raise CannotRun(msg)
    if scheme == "s3":
        return _bucket(location)
    if scheme == "memory":  # fsspec's, of this process
        shown = without_secret(location)
        msg = f"{shown} is gone as soon as a command ends, so the next one could read nothing; name a folder"
        raise CannotRun(msg)
    if scheme not in {"", "file"}:
        return _filesystem(location)
    storage = _folder(
        _path(location), may_be_new=may_be_new, refresh_on_read=refresh_on_read, limits=limits or Limits()
    )
    if is_made:
        _require_made(storage)
    return storage


def fault_of(location: str) -> str:
    """Say why nothing could be stored at a location, as far as that shows without a connection; "" if it may work."""
    try:
        if _scheme(location) in {"", "file", "s3", "memory"}:  # a chain has no scheme
            storage = storage_at(location, may_be_new=True)
            if os.path.lexists(getattr(storage, "root", "")):
                storage_at(location)  # a file is no folder
        else:  # some of fsspec's filesystems connect as soon as one is made
            _require_known(location)
    except (CannotRun, CoatcheckError) as error:
        return str(error)
    return ""


def to_be_written(location: str) -> str:
    """Return a location as written to a client's settings: a path becomes absolute, since a client runs anywhere.

    Raises:
        CannotRun: it is in an unknown user's home. A folder named ``~`` would be created in its place.

    """
    if "://" in location:
        return location
    path = os.path.expanduser(location)  # noqa: PTH111 - Path's own raises for an unknown ``~user``
    if path.startswith("~"):
        msg = f"--storage is {location!r}, in an unknown home directory; name another folder"
        raise CannotRun(msg)
    return os.path.abspath(path)  # noqa: PTH100 - Path's own leaves ``..`` in


def leftovers(location: str) -> str | None:
    """Say where stored content stays after an uninstall, and how to delete it unless the command may need a secret.

    Return None if there is no such folder.
    """
    is_url = bool(_scheme(location))
    if not is_url and not os.path.isdir(os.path.expanduser(location)):  # noqa: PTH111, PTH112 - no error for a user without a home
        return None
    shown = without_secret(location)
    hint = f" To delete what nobody used for a day: {sweep_command(location)}" if shown == location else ""
    return f"What it stored stays in {shown}.{hint}"


def without_secret(location: str) -> str:
    """Return a location with its secret masked, to show to others."""
    return _SECRET.sub("***", location) if _scheme(location) else location


def _scheme(location: str) -> str:
    found = _URL.match(location)
    return found[1].lower() if found else ""


def _path(location: str) -> str:
    """Return the path that a location names.

    Raises:
        CannotRun: it is the URL of another machine, or of a relative path, which looks the same.

    """
    if not _scheme(location):
        return location
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    parts = urlsplit(location)
    if parts.netloc not in {"", "localhost"}:
        shown, machine = without_secret(location), parts.netloc.rpartition("@")[2]
        msg = f"{shown} names a folder on the machine {machine!r}; give a path, or file:///a/path"
        raise CannotRun(msg)
    return url2pathname(parts.path)


def _require_made(storage: FileStorage) -> None:
    from coatcheck.storage.file import VERSION

    try:
        os.lstat(storage.root / VERSION)
    except FileNotFoundError:
        msg = f"there is no coatcheck storage in {storage.root}: the first save makes one. {_USE_ANOTHER}"
        raise CannotRun(msg) from None
    except OSError as error:
        msg = f"{storage.root}: {error.strerror}"
        raise CannotRun(msg) from None


def _folder(path: str, *, may_be_new: bool, refresh_on_read: bool, limits: Limits) -> FileStorage:
    from coatcheck.storage.file import FileStorage

    storage = FileStorage(path, refresh_on_read=refresh_on_read, **limits)
    if may_be_new:
        return storage
    try:
        is_folder = stat.S_ISDIR(storage.root.stat().st_mode)
    except FileNotFoundError:
        msg = f"there is no folder {storage.root}: the first save creates it. {_USE_ANOTHER}"
        raise CannotRun(msg) from None
    except OSError as error:
        msg = f"{storage.root}: {error.strerror}"
        raise CannotRun(msg) from None
    if not is_folder:
        msg = f"{storage.root} is not a folder. {_USE_ANOTHER}"
        raise CannotRun(msg)
    return storage


def _bucket(url: str) -> Storage:
    from coatcheck.storage.s3 import S3Storage

    bucket, _, prefix = url.partition("://")[2].partition("/")  # not urlsplit: a prefix may hold "?" and "#"
    try:
        return S3Storage(bucket, prefix)
    except ImportError as error:
        raise CannotRun(str(error)) from None


def _require_known(url: str) -> None:
    """Raise ``CannotRun`` if fsspec does not know such a URL, or if the package for it is not installed."""
    try:
        from fsspec import get_filesystem_class
    except ImportError:
        msg = f"{without_secret(url)}: this needs fsspec. Install it with: {install_command('coatcheck[fsspec]')}"
        raise CannotRun(msg) from None
    try:
        get_filesystem_class(url.partition("://")[0])
    except (ImportError, ValueError) as error:
        msg = f"{without_secret(url)}: {error}"
        raise CannotRun(msg) from error


def _filesystem(url: str) -> Storage:
    _require_known(url)
    from fsspec import url_to_fs

    from coatcheck.storage.fsspec_bridge import FsspecBridge

    try:
        return FsspecBridge(*url_to_fs(url))
    except Exception as error:  # each filesystem raises its own for a missing package, a wrong address, a refused login
        shown = without_secret(url)
        # The error may quote a part of the secret.
        msg = f"{shown}: {error if shown == url else type(error).__name__}"
        raise CannotRun(msg) from error
