"""An fsspec filesystem as a storage: Google Cloud, Azure, SFTP and whatever else fsspec supports.

    <folder>/v1/<scope>/<digest>     4,096 bytes of type, time and metadata, then the content

Each entry is one file, since few filesystems keep metadata. fsspec is imported when a storage is created.
"""

from __future__ import annotations

import os
import re
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from inspect import signature
from traceback import walk_tb
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from coatcheck.core.errors import CorruptContent, InvalidRequest, describe_error, install_command
from coatcheck.core.forks import ForkSafeLock, loading
from coatcheck.core.references import DIGEST_LENGTH, Key, is_scope_part, is_storage_key
from coatcheck.storage.frame import Head, framed, read_head, unframed
from coatcheck.storage.protocol import Listed, Page, Stored, newest_first, refuse_other_content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fsspec import AbstractFileSystem

__all__ = ("FsspecBridge",)

HEAD_BYTES = 4_096
"""Bytes before the content. The number is fixed, so that a range is right even if the file is saved again between two
reads."""

HEADS_AT_ONCE = 1_000
"""Heads that a listing reads together, 4 MB; async filesystems read them in parallel."""

_UNFINISHED = "unfinished"
"""The kind of key of a file that is being written. The first eight of its digits are the time. So what a killed writer
left is listed, swept, and deleted with its scope, like an entry."""

_TIME_LENGTH = 8

_CODE = re.compile(r"[1-9][0-9]{2}|[A-Z][A-Za-z]{1,63}")
"""An HTTP status, or a service's single-word error code, such as ``ContainerNotFound``."""

_LOGIN = re.compile(r"(?<=://)[^/@]*:.*@")
"""A user name and password in a URL."""

REPLACES_NOTHING = frozenset(
    {"DatabricksFileSystem", "JupyterFileSystem", "SMBFileSystem", "WebHDFS", "WebdavFileSystem"}
)
"""Filesystems whose ``mv`` does not replace an existing file, so that nothing can be saved again; those of Jupyter and
WebHDFS do not even report the failure. Listed by name, since importing one needs its client. The last one is webdav4's,
the others are fsspec's own, as of 2026.9."""

_FOLDER_TRIES = 4
"""The first save creates three folders: the bridge's own, ``v1`` and that of the scope. Others may create each of them
at the same moment, so there is a try for each, and one more."""


class FsspecBridge:
    """Keeps content in a folder of an fsspec filesystem, each entry in one file.

    A save shows the whole entry or none: if the filesystem can rename, the file is first written under another name;
    if not, it must put a file in one step, as object stores do. The filesystem's ``mv``, if it has one, must replace an
    existing file.

    Async filesystems run on the loop that fsspec keeps for them, so they serve sync and async agents alike. Each thread
    and each forked child gets an instance of its own if fsspec demands it. A filesystem of a class with
    ``cachable = False``, or made with ``skip_instance_cache=True``, is used as it was given: a sync one by one thread
    at a time, and a forked child makes a new one. A filesystem that keeps its files or credentials in the instance
    needs one of these two options. A forked child that makes the bridge must make the filesystem too: the bridge cannot
    always tell which process made a sync one.

    Every method raises the filesystem's own errors too.

    Listing reads the head of every file, because filesystems disagree on times: the head has the writer's time. fsspec
    reports a missing bucket like a missing file, so its references count as expired. On a local disk, ``FileStorage``
    is the better choice: it follows no planted link, and only their owner can read its raw files.
    """

    def __init__(self, filesystem: AbstractFileSystem, folder: str, *, clock: Callable[[], float] = time.time) -> None:
        """Take a filesystem and the folder that is ours in it, such as ``*fsspec.url_to_fs("gs://bucket/agents")``.

        ``clock`` returns the time for each save, in seconds since the epoch.

        Raises:
            ImportError: fsspec is not installed.
            InvalidRequest: ``filesystem`` is not a filesystem; is made with ``asynchronous=True``; cannot save a file
                whole, replace it or read a part of it; keeps copies; is an archive; or has such a filesystem behind it.
                Or ``folder`` is not a str, or empty.

        """
        try:
            with loading:
                from fsspec import AbstractFileSystem  # noqa: PLC0415 - only those who use it pay for it
                from fsspec.implementations.ftp import FTPFileSystem  # noqa: PLC0415 - as above
        except ImportError as error:
            msg = f"FsspecBridge needs fsspec. Install it with: {install_command('coatcheck[fsspec]')}"
            raise ImportError(msg) from error
        if not isinstance(filesystem, AbstractFileSystem) or getattr(filesystem, "asynchronous", False):
            msg = f"FsspecBridge needs an fsspec filesystem made without asynchronous=True, not {filesystem!r}"
            raise InvalidRequest(msg)
        if not isinstance(folder, str) or not folder:
            msg = f"FsspecBridge needs a folder, such as 'bucket/agents', not {folder!r}"
            raise InvalidRequest(msg)
        layers = _layers(filesystem)
        kinds = [type(layer) for layer in layers]
        self._renames = _require_usable(kinds)
        self._is_kept = all(map(_is_kept, layers)) or issubclass(kinds[0], FTPFileSystem)
        self._is_async = all(layer.async_impl for layer in layers)
        # An async filesystem says in which process it was made, which may be the parent of this one.
        self._lock, self._process = ForkSafeLock(), getattr(filesystem, "_pid", os.getpid())
        self._given = filesystem
        self._folder = f"{filesystem._strip_protocol(folder).rstrip('/')}/v1"  # noqa: SLF001 - as fsspec's own tools do
        self._clock = clock

    def __deepcopy__(self, memo: object) -> FsspecBridge:
        """Return the bridge itself: a copy of its filesystem may lack what is stored."""
        return self

    def __repr__(self) -> str:
        folder = _LOGIN.sub("***@", self._folder.removesuffix("/v1"))  # some keep the whole URL
        return f"FsspecBridge({type(self._given).__name__}, {folder!r})"

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        """Save an entry whole or not at all; an existing one is written again, which refreshes its time.

        Two different contents that are saved under one key at the same moment are not told apart: the later one stays,
        and a whole read finds it corrupt.

        Raises:
            StorageError: the key is malformed, another content has it, or type and metadata are too long.

        """
        path = self._path(key)
        with suppress(CorruptContent):  # this save replaces a damaged entry
            existing = self._head(path)
            if existing is not None:
                refuse_other_content(key, existing[0].metadata, metadata)
        self._write(
            path,
            framed(content, content_type=content_type, metadata=metadata, saved=self._clock(), start=HEAD_BYTES),
        )

    def load(self, key: str) -> Stored | None:
        """Return the whole entry, or None.

        Raises:
            CorruptContent: the file is not what ``save`` writes.
            StorageError: the key is malformed.

        """
        path = self._path(key)
        frame = self._read(path, 0, None)
        return None if frame is None else unframed(frame, path)[0]

    def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        """Return the entry with at most ``length`` bytes from ``start``, or None; raises what ``load`` raises."""
        path = self._path(key)
        found = self._head(path)
        if found is None:
            return None
        head, size = found
        wanted = max(0, min(length, size - start))
        content = self._read(path, HEAD_BYTES + start, HEAD_BYTES + start + wanted) if wanted else b""
        if content is None:
            return None
        if len(content) != wanted:
            msg = f"{path!r} is shorter than what was saved, {size:,} bytes"
            raise CorruptContent(msg)
        return Stored(content=content, content_type=head.content_type, metadata=head.metadata, size=size)

    def delete(self, key: str) -> None:
        """Remove the entry, if it exists.

        Raises:
            StorageError: the key is malformed.

        """
        path = self._path(key)
        with suppress(FileNotFoundError), self._filesystem() as filesystem:
            filesystem.rm_file(path)

    def entries(self, prefix: str) -> list[Listed]:
        """Return the entries whose key starts with ``prefix``, even damaged ones, which get the time 0.

        For a whole key, only the files of that key are looked at.
        """
        return list(self._described(self._sizes(prefix)))

    def page(self, prefix: str, *, limit: int, after: str | None = None) -> Page:
        """Return a page of the entries whose key starts with ``prefix``.

        A folder can only be listed whole, and the time of a save is in the head of its file. So a page lists the folder
        of a scope once and reads at most 1,000 heads, in the order of their keys. Up to 1,000 entries come newest
        first; if there are more, each batch of 1,000 does.

        Raises:
            InvalidRequest: ``after`` recognizably did not come from a page.

        """
        start, _, rest = (after or "").partition(" ")
        sizes = self._sizes(prefix)
        keys = sorted(key for key in sizes if key > start)
        heads = keys[:HEADS_AT_ONCE]
        found = newest_first(self._described({key: sizes[key] for key in heads}), limit=limit, after=rest or None)
        if found.after is not None:
            return replace(found, after=f"{start} {found.after}")
        return replace(found, after=heads[-1] if len(keys) > len(heads) else None)

    def describe_error(self, error: Exception) -> str:
        """Describe a filesystem's error without content, and name the folder, which most such errors lack."""
        return " ".join([describe_error(error), *_codes(error)]) + f", in {self!r}"

    @contextmanager
    def _filesystem(self) -> Iterator[Any]:
        """Yield the filesystem, in an instance that this thread may use now.

        As a rule, fsspec caches one instance for each thread, or one for all if it is async, and finds it by its
        arguments. If it caches none, a new one may lack what another saved, so we use the one we were given. FTP gets a
        new instance each time, and with it a connection, since the server drops idle ones. SFTP gets a new one when its
        connection is gone.
        """
        if self._is_kept:
            yield self._anew()
            return
        with self._lock.held:
            # A forked child shares no connection with its parent.
            if self._process != os.getpid() or not _is_connected(self._given):
                self._given, self._process = self._anew(), os.getpid()
            if not self._is_async:
                yield self._given
                return
        yield self._given

    def _anew(self) -> Any:  # noqa: ANN401 - fsspec has no types
        made = _made_like(self._given)
        if _is_connected(made):
            return made
        type(made)._cache.pop(made._fs_token, None)  # noqa: SLF001 - else fsspec returns the same one forever
        return _made_like(self._given)

    def _path(self, key: str) -> str:
        return f"{self._folder}/{Key.parse(key)}"

    def _head(self, path: str) -> tuple[Head, int] | None:
        """Return the head of a file and the size of its content in bytes, or None if there is no file."""
        frame = self._read(path, 0, HEAD_BYTES)
        if frame is None:
            return None
        head = read_head(frame, path)
        if head.start != HEAD_BYTES or head.size is None:
            msg = f"{path!r} was not saved here: its content does not begin at byte {HEAD_BYTES:,}"
            raise CorruptContent(msg)
        return head, head.size

    def _read(self, path: str, start: int, end: int | None) -> bytes | None:
        try:
            with self._filesystem() as filesystem:
                return bytes(filesystem.cat_file(path, start=start, end=end))
        except FileNotFoundError:
            return None

    def _write(self, path: str, frame: bytes) -> None:
        scope = path.rpartition("/")[0]
        digits = f"{int(self._clock()):0{_TIME_LENGTH}x}{uuid4().hex[: DIGEST_LENGTH - _TIME_LENGTH]}"
        temporary = f"{scope}/{digits}-{_UNFINISHED}"
        with self._filesystem() as filesystem:
            if not self._renames:
                filesystem.pipe_file(path, frame)
                return
            _make_folder(filesystem, scope)
            try:
                filesystem.pipe_file(temporary, frame)
                filesystem.mv(temporary, path)
            except BaseException:
                with suppress(Exception):
                    filesystem.rm_file(temporary)
                raise

    def _sizes(self, prefix: str) -> dict[str, int]:
        """Return the sizes of our files whose key starts with ``prefix``, by key."""
        if is_storage_key(prefix):
            sizes = {key: self._size(self._path(key)) for key in map(str, Key.parse(prefix).family)}
            return {key: size for key, size in sizes.items() if size is not None}
        scope, slash, _ = prefix.partition("/")
        scopes = [scope] if slash else [name for name in self._listing(self._folder) if name.startswith(scope)]
        found = {
            f"{each}/{name}": size
            for each in scopes
            if is_scope_part(each)
            for name, size in self._listing(f"{self._folder}/{each}").items()
        }
        return {key: size for key, size in found.items() if key.startswith(prefix) and is_storage_key(key)}

    def _size(self, path: str) -> int | None:
        try:
            with self._filesystem() as filesystem:
                filesystem.invalidate_cache(path)  # see _listing
                return int(filesystem.info(path).get("size") or 0)
        except FileNotFoundError:
            return None

    def _listing(self, path: str) -> dict[str, int]:
        """Return the sizes of what is in a folder now, by name."""
        try:
            with self._filesystem() as filesystem:
                filesystem.invalidate_cache(path)  # fsspec may cache the listing, and other processes write too
                found = filesystem.ls(path, detail=True)
        except FileNotFoundError:
            return {}
        return {
            info["name"].rstrip("/").rpartition("/")[2]: int(info.get("size") or 0)
            for info in found
            if info["name"].strip("/") != path.strip("/")  # object stores may list an empty folder as a file in itself
        }

    def _described(self, sizes: Mapping[str, int]) -> Iterator[Listed]:
        """Yield files as entries, with the time of their last save, or 0 if a file does not say."""
        whole: list[str] = []
        for key, size in sizes.items():
            parsed = Key.parse(key)
            if parsed.kind == _UNFINISHED:
                yield _listed(key, size, modified=float(int(parsed.digest[:_TIME_LENGTH], 16)))
            elif size < HEAD_BYTES:
                yield _listed(key, size)
            else:
                whole.append(key)
        for first in range(0, len(whole), HEADS_AT_ONCE):
            keys = whole[first : first + HEADS_AT_ONCE]
            with self._filesystem() as filesystem:
                heads = filesystem.cat_ranges(list(map(self._path, keys)), 0, HEAD_BYTES, on_error="return")
            for key, frame in zip(keys, heads, strict=True):
                if isinstance(frame, FileNotFoundError):  # deleted meanwhile
                    continue
                if isinstance(frame, BaseException):
                    raise frame
                try:
                    head = read_head(bytes(frame), key)
                except CorruptContent:
                    yield _listed(key, sizes[key])
                else:
                    yield _listed(key, sizes[key], modified=head.saved, head=head)


def _codes(error: Exception) -> list[str]:
    """Return a server's codes for an error, such as ``403 AuthenticationFailed``: Azure's classes tell few apart."""
    given = [getattr(error, name, None) for name in ("status_code", "error_code", "code")]
    codes = [str(getattr(code, "value", code)) for code in given if code is not None]  # some are enum members
    return [code for code in codes if _CODE.fullmatch(code)]


def _layers(filesystem: object) -> list[Any]:
    """Return a filesystem and all those behind it, since what one of them does, the whole does."""
    with loading:
        from fsspec import AbstractFileSystem  # noqa: PLC0415 - only those who use it pay for it

    layers: list[Any] = []
    while isinstance(filesystem, AbstractFileSystem):
        layers.append(filesystem)
        filesystem = getattr(filesystem, "fs", None)
    return layers


def _made_like(given: Any) -> Any:  # noqa: ANN401 - fsspec has no types
    """Return a filesystem with the arguments of another. If its login is refused, close its connection."""
    try:
        return type(given)(*given.storage_args, **given.storage_options)
    except Exception as error:
        # fsspec's SFTP filesystem leaves it open, with a thread, and nobody else has a reference to the filesystem.
        for frame, _ in walk_tb(error.__traceback__):
            maker = frame.f_locals.get("self")
            if isinstance(maker, type(given)) and hasattr(maker, "client"):
                maker.client.close()
        raise


def _is_connected(filesystem: Any) -> bool:  # noqa: ANN401 - fsspec has no types
    """Return whether a filesystem is usable: an SFTP one lives as long as its connection, and never opens another."""
    get_transport = getattr(getattr(filesystem, "client", None), "get_transport", None)
    if get_transport is None:  # only clients of paramiko have it
        return True
    transport = get_transport()
    return transport is not None and transport.is_active()


def _make_folder(filesystem: Any, path: str) -> None:  # noqa: ANN401 - fsspec has no types
    """Create a folder and those above it. Over SFTP, this fails if another creates one of them at the same moment."""
    for _ in range(_FOLDER_TRIES - 1):
        with suppress(OSError):
            filesystem.makedirs(path, exist_ok=True)
            return
    filesystem.makedirs(path, exist_ok=True)


def _is_kept(layer: Any) -> bool:  # noqa: ANN401 - fsspec has no types
    """Return whether fsspec caches a filesystem by its arguments; with ``skip_instance_cache=True`` it does not.

    fsspec may have cleared its cache since, as it does in a forked child. It then knows only the last one made. An
    async filesystem says in which process it was made; for a sync one, its token tells if the thread that forked made
    it.
    """
    with loading:
        from fsspec.utils import tokenize  # noqa: PLC0415 - only those who use it pay for it

    kind, token = type(layer), layer._fs_token  # noqa: SLF001 - nothing else says so
    extra = [getattr(kind, name, None) for name in kind._extra_tokenize_attributes]  # noqa: SLF001 - as above
    maker = (kind, os.getppid(), threading.main_thread().ident)
    of_parent = tokenize(*maker, *layer.storage_args, *extra, **layer.storage_options)
    is_known = kind._cache.get(token) is layer or token in {kind._latest, of_parent}  # noqa: SLF001 - as above
    return bool(layer.cachable and (is_known or layer._pid != os.getpid()))  # noqa: SLF001 - as above


def _require_usable(kinds: Sequence[Any]) -> bool:
    """Return whether every layer can rename files; if not, files are put whole.

    Raises:
        InvalidRequest: a layer can do neither, keeps copies, or cannot replace, delete or partly read a file.

    """
    with loading:
        from fsspec import AbstractFileSystem  # noqa: PLC0415 - only those who use it pay for it
        from fsspec.archive import AbstractArchiveFileSystem  # noqa: PLC0415 - as above
        from fsspec.asyn import AsyncFileSystem  # noqa: PLC0415 - as above
        from fsspec.implementations.cached import CachingFileSystem  # noqa: PLC0415 - as above

    def renames(kind: Any) -> bool:  # noqa: ANN401 - fsspec has no types
        return kind.mv is not AbstractFileSystem.mv  # the base's copies, then deletes

    def puts_whole(kind: Any) -> bool:  # noqa: ANN401 - as above
        if issubclass(kind, AsyncFileSystem):
            return kind._pipe_file is not AsyncFileSystem._pipe_file  # noqa: SLF001 - what async filesystems override
        return kind.pipe_file is not AbstractFileSystem.pipe_file  # the base's opens the file and writes

    all_rename = all(map(renames, kinds))
    refused: dict[str, Callable[[Any], bool]] = {
        "keeps files in an archive, where none can be replaced or deleted": lambda kind: issubclass(
            kind, AbstractArchiveFileSystem
        ),
        "neither renames files nor puts them whole": lambda kind: not (renames if all_rename else puts_whole)(kind),
        "keeps copies that survive a deletion": lambda kind: issubclass(kind, CachingFileSystem),
        "reads a file whole when asked for a part": lambda kind: not _reads_parts(kind),
        "does not replace an existing file on a move": _replaces_nothing,
    }
    for kind in kinds:
        for reason, is_so in refused.items():
            if is_so(kind):
                msg = f"{kind.__name__} {reason}: pass the filesystem behind it, or another"
                raise InvalidRequest(msg)
    return all_rename


def _replaces_nothing(kind: Any) -> bool:  # noqa: ANN401 - fsspec has no types
    """Return whether ``mv`` is one that replaces nothing, and not overridden by a subclass that fixes it."""
    owner = next(at for at, base in enumerate(kind.__mro__) if "mv" in vars(base))
    return any(base.__name__ in REPLACES_NOTHING for base in kind.__mro__[: owner + 1])


def _reads_parts(kind: Any) -> bool:  # noqa: ANN401 - fsspec has no types
    """Return whether files can be read in parts: ``sshfs`` is asked for a range, but reads the whole file."""
    taken = signature(kind._cat_file if kind.async_impl else kind.cat_file).parameters  # noqa: SLF001 - as above
    return "start" in taken or any(each.kind is each.VAR_POSITIONAL for each in taken.values())  # may pass a range on


def _listed(key: str, size: int, *, modified: float = 0.0, head: Head | None = None) -> Listed:
    return Listed(
        key=key,
        size=max(0, size - HEAD_BYTES),
        modified=modified,
        metadata=None if head is None else head.metadata,
        content_type=None if head is None else head.content_type,
    )
