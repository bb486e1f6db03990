"""A storage in a folder: raw content in files that people and their tools can read.

    root/v1/<scope>/<digest>.txt          the content, byte for byte, with an extension that fits its type
    root/v1/<scope>/<digest>.entry.json   content type, size and metadata, written before the content

An entry exists when both files do. The description gets its name first and the content loses its own first, so a crash
leaves the whole entry or none. Naming and deleting lock the folder of the scope; reading and writing need no lock.
"""

from __future__ import annotations

import os
import re
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from coatcheck.core.errors import CorruptContent, ForeignCall, InvalidRequest
from coatcheck.core.forks import loading
from coatcheck.core.policy import require_flag
from coatcheck.core.references import is_scope_part, is_storage_key, split_key
from coatcheck.storage.folder import Folder, make_folders, open_folder
from coatcheck.storage.protocol import Listed, Page, Stored, newest_first, refuse_other_content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = ("FileStorage",)

_VERSION = "v1"
_ENTRY_SUFFIX = ".entry.json"
_CONTENT = re.compile(r"([^.]+)\.[a-z0-9]{1,8}")
_TEMPORARY = re.compile(r"\.[0-9a-f]{32}\.tmp")

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")

_UNDER_WAY_SECONDS = 60.0
"""A description without content that is older than this is not a save or deletion in progress but half an entry: its
content was lost, or a writer was killed."""

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


class _Description(TypedDict):
    content_type: str
    size: int
    metadata: dict[str, str]


class FileStorage:
    """Keeps content as raw files under ``root/v1/``; a save or a read costs the same however much is stored.

    Folders have mode 0700 and files 0600. Safe for many threads and processes on one folder: equal content has one
    name, and a rename is atomic. Survives the end of the process; ``fsync=True`` makes it survive a power cut too.

    Every method raises ``StorageError`` if the key is malformed or the disk refuses; ``__cause__`` is the disk's own
    error. There is no time limit: a disk that hangs, as a network disk may, blocks every offloader's async methods.
    """

    def __init__(self, root: str | os.PathLike[str], *, fsync: bool = False, refresh_on_read: bool = True) -> None:
        """Choose the folder; it is made at the first save.

        Args:
            root: the folder. It may hold other programs' files: only its ``v1`` is used.
            fsync: wait until content and names are on the disk before a save returns.
            refresh_on_read: whether reading counts as use, for sweeps; False for a caller that only inspects content.

        Raises:
            InvalidRequest: ``root`` cannot be the path of a folder, or another argument is not a bool.

        """
        try:
            # An empty str is refused: it would be the current folder.
            self._root = Path(os.fspath(root) or "\0").expanduser().absolute()
            is_path = b"\0" not in os.fsencode(self._root)
        except (TypeError, ValueError):  # not a str, a lone surrogate
            is_path = False
        except RuntimeError as error:  # ``~user`` for a user that does not exist
            msg = f"FileStorage cannot find the folder {root!r}: {error}"
            raise InvalidRequest(msg) from None
        if not is_path:
            msg = f"FileStorage needs a folder as a str or a path, not {root!r}"
            raise InvalidRequest(msg)
        if _URL.match(os.fspath(root)) is not None:
            msg = (
                f"FileStorage needs a folder, and {root!r} is a URL: S3Storage keeps content in S3, FsspecBridge"
                " elsewhere"
            )
            raise InvalidRequest(msg)
        self._fsync = require_flag("fsync", fsync)
        self._refresh_on_read = require_flag("refresh_on_read", refresh_on_read)

    def __repr__(self) -> str:
        return f"FileStorage({str(self._root)!r})"

    @property
    def root(self) -> Path:
        """The folder, absolute."""
        return self._root

    @property
    def fsync(self) -> bool:
        """Whether a save waits for the disk."""
        return self._fsync

    @property
    def refresh_on_read(self) -> bool:
        """Whether reading counts as use."""
        return self._refresh_on_read

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        """Save an entry whole or not at all; without ``fsync``, one that is there only has its time refreshed.

        Raises:
            StorageError: the key is malformed, another content has it, or the disk refused.

        """
        scope, stem = split_key(key)
        with ForeignCall(self, f"save {len(content):,} bytes"):
            try:
                self._save(scope, stem, content, content_type=content_type, metadata=metadata)
            except FileNotFoundError:  # the folder was never made, or a sweep has just removed it because it was empty
                make_folders(self._root, (_VERSION, scope), fsync=self._fsync)
                self._save(scope, stem, content, content_type=content_type, metadata=metadata)

    def load(self, key: str) -> Stored | None:
        """Return the whole entry, or None; with ``refresh_on_read`` this refreshes its time, as a save does.

        Raises:
            CorruptContent: what describes the content is damaged, the content has another size than was saved, or
                something else has the name of a file.
            StorageError: the key is malformed, or the disk refused.

        """
        return self.load_range(key, start=0, length=sys.maxsize)

    def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        """Return the entry with at most ``length`` bytes from ``start``, or None; raises what ``load`` raises."""
        scope, stem = split_key(key)
        with (
            ForeignCall(self, f"load {key!r}"),
            suppress(FileNotFoundError),
            open_folder(self._root, _VERSION, scope) as folder,
        ):
            description = _describe(folder, stem)
            if description is None:
                return None
            name, size = stem + _extension(description["content_type"]), description["size"]
            content = folder.read(name, start=start, length=None if start + length >= size else length, size=size)
            if content is None:
                return None
            if self._refresh_on_read:
                with suppress(OSError):  # what a disk that takes no writes holds can still be read
                    folder.touch(name)
            return Stored(content=content, **description)
        return None

    def delete(self, key: str) -> None:
        """Remove the entry, even a damaged one, if it is there.

        Raises:
            StorageError: the key is malformed, or the disk refused.

        """
        scope, stem = split_key(key)
        with (
            ForeignCall(self, f"delete {key!r}"),
            suppress(FileNotFoundError),
            open_folder(self._root, _VERSION, scope) as folder,
            folder.locked(),
        ):
            _remove(folder, stem, _content_names(folder, stem))

    def entries(self, prefix: str) -> list[Listed]:
        """Return the entries that have a key with this ``prefix``, even damaged ones and halves: clean-up deletes them.

        Raises:
            StorageError: the disk refused.

        """
        scope, slash, _ = prefix.partition("/")
        found: list[Listed] = []
        with ForeignCall(self, "list its entries"):
            for folder in self._scopes(scope, whole=bool(slash)):
                found += (listed for listed in _listing(folder) if listed.key.startswith(prefix))
        return found

    def page(self, prefix: str, *, limit: int, after: str | None = None) -> Page:
        """Return a page of the entries that have a key with this ``prefix``, newest first.

        It looks at every name under the prefix, and reads the descriptions of the entries on the page.

        Raises:
            StorageError: the disk refused.

        """
        found = newest_first(self.entries(prefix), limit=limit, after=after)
        return replace(found, entries=tuple(map(self._described, found.entries)))

    def _described(self, entry: Listed) -> Listed:
        """Return an entry with its metadata, if its description is there and intact."""
        scope, stem = split_key(entry.key)
        try:
            with open_folder(self._root, _VERSION, scope) as folder:
                description = _describe(folder, stem)
        except (OSError, CorruptContent):  # one damaged description must not hide the others
            return entry
        if description is None:
            return entry
        return replace(entry, metadata=description["metadata"], content_type=description["content_type"])

    def sweep(self, keys: Iterable[str], *, before: float) -> int:
        """Remove the ``keys`` last used before then, and the files of killed writers; see ``coatcheck.Sweeps``.

        Raises:
            StorageError: a key is malformed, or the disk refused; what was not removed yet is still there.

        """
        unwanted: dict[str, list[str]] = {}
        for scope, stem in map(split_key, keys):
            unwanted.setdefault(scope, []).append(stem)
        removed = 0
        with ForeignCall(self, "sweep"):
            for folder in self._scopes("", whole=False):
                for stem in unwanted.get(folder.path.name, ()):
                    with folder.locked():
                        removed += _remove_unused(folder, stem, before=before)
                _remove_leftovers(folder, before=before)
                if folder.modified < before:  # removed if it is empty
                    with open_folder(self._root, _VERSION) as versioned:
                        versioned.remove_folder(folder.path.name)
        return removed

    def local_path(self, key: str, *, content_type: str) -> Path:
        """Return the file that holds, or would hold, the content."""
        scope, stem = split_key(key)
        return self._root / _VERSION / scope / (stem + _extension(content_type))

    def _save(self, scope: str, stem: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        """Refresh the time of an entry that is there with this very content, or else write it.

        Raises:
            FileNotFoundError: the folder of its scope is not there.

        """
        dumps, _ = _load_json()
        description = _Description(content_type=content_type, size=len(content), metadata=dict(metadata))
        with open_folder(self._root, _VERSION, scope) as folder:
            if not self._fsync:  # else it is written again: an earlier writer may not have waited for the disk
                with folder.locked():
                    name = _content_name(folder, stem, metadata)
                    # A disk that damaged the old bytes must not have new ones acknowledged unwritten.
                    if name is not None and folder.read(name) == content:
                        folder.touch(name)
                        return
            with (
                folder.written(content, fsync=self._fsync) as temporary,
                folder.written(dumps(description), fsync=self._fsync) as described,
                folder.locked(),
            ):
                _content_name(folder, stem, metadata)  # another writer may have been quicker, with other content
                folder.rename(described, stem + _ENTRY_SUFFIX)
                folder.rename(temporary, stem + _extension(content_type))  # now the entry exists
            if self._fsync:
                folder.sync()
                for above in ((_VERSION,), ()):
                    with open_folder(self._root, *above) as parent:
                        parent.sync()

    def _scopes(self, scope: str, *, whole: bool) -> Iterator[Folder]:
        """Yield the folders of the scopes that start with ``scope``, or that are it if ``whole`` is true."""
        with suppress(FileNotFoundError), open_folder(self._root, _VERSION) as versioned:
            names = [
                found.name
                for found in versioned.scan()
                if found.name.startswith(scope)
                and (found.name == scope or not whole)
                and is_scope_part(found.name)
                and found.is_dir(follow_symlinks=False)
            ]
            for name in names:
                with suppress(FileNotFoundError), open_folder(self._root, _VERSION, name) as folder:
                    yield folder


@cache
def _load_json() -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Return what writes and what reads JSON, loaded with the first entry; see ``json_text`` in ``blocks``."""
    with loading:
        import orjson  # noqa: PLC0415

    return orjson.dumps, orjson.loads


def _describe(folder: Folder, stem: str) -> _Description | None:
    """Return what an entry file says, or None if there is none.

    Raises:
        CorruptContent: it does not hold what ``save`` writes.

    """
    _, loads = _load_json()
    name = stem + _ENTRY_SUFFIX
    raw = folder.read(name)
    if raw is None:
        return None
    try:
        found = loads(raw)
        return _Description(
            content_type=str(found["content_type"]), size=int(found["size"]), metadata=dict(found["metadata"])
        )
    except (ValueError, TypeError, KeyError) as error:
        msg = f"{str(folder.path / name)!r} is damaged: {error}"
        raise CorruptContent(msg) from error


def _content_name(folder: Folder, stem: str, metadata: Mapping[str, str]) -> str | None:
    """Return the name of the content of an entry that is there in full length. The folder is locked.

    Raises:
        StorageError: another content has this name.

    """
    try:
        existing = _describe(folder, stem)
    except CorruptContent:  # a power cut can leave it empty; what is saved now replaces it
        existing = None
    if existing is None:
        return None
    # Under its own type: other content that meets it here may have another, and hence another file name.
    name = stem + _extension(existing["content_type"])
    status = folder.status(name)
    if status is None or status.st_size != existing["size"]:
        return None
    refuse_other_content(f"{folder.path.name}/{stem}", existing["metadata"], metadata)
    return name


def _content_names(folder: Folder, stem: str) -> list[str]:
    """Return the names that the content of an entry has: one; any number if its description is damaged."""
    with suppress(CorruptContent):
        description = _describe(folder, stem)
        if description is not None:
            name = stem + _extension(description["content_type"])
            if folder.status(name) is not None:  # else a damaged type may have led to it
                return [name]
    return [found.name for found in folder.scan() if _stem_of(found.name) == stem]


def _remove(folder: Folder, stem: str, content_names: list[str]) -> None:
    """Remove an entry, its content first, so that no half of it is ever found. The folder is locked."""
    for name in (*content_names, stem + _ENTRY_SUFFIX):
        folder.remove(name)


def _remove_unused(folder: Folder, stem: str, *, before: float) -> bool:
    """Remove an entry if it was last used before then; return whether it was. The folder is locked."""
    names = _content_names(folder, stem)
    times = _times(folder, names) or _times(folder, [stem + _ENTRY_SUFFIX])
    if not (names or times) or max(times, default=0.0) >= before:
        return False
    _remove(folder, stem, names)
    return True


def _remove_leftovers(folder: Folder, *, before: float) -> None:
    """Remove temporary files, and descriptions of nothing, that are older than any save can take."""
    names = [found.name for found in folder.scan()]
    alone = _descriptions_alone(folder, names)
    for name in names:
        if _TEMPORARY.fullmatch(name) or name in alone:
            with folder.locked():  # whoever saves this entry meanwhile gives it a new description
                if max(_times(folder, [name]), default=0.0) < before:
                    folder.remove(name)


def _times(folder: Folder, names: Iterable[str]) -> list[float]:
    """Return when those that are files were last written or used."""
    return [status.st_mtime for status in map(folder.status, names) if status is not None]


def _listing(folder: Folder) -> Iterator[Listed]:
    """Yield the entries in the folder of a scope, halves of them too; other files in it are strangers'."""
    names = [found.name for found in folder.scan()]
    alone = _descriptions_alone(folder, names)
    under_way = time.time() - _UNDER_WAY_SECONDS
    for name in names:
        is_half = name in alone
        stem = alone[name] if is_half else _stem_of(name)
        status = folder.status(name) if stem is not None and _is_stem(folder, stem) else None
        if status is not None and not (is_half and status.st_mtime > under_way):
            size = 0 if is_half else status.st_size
            yield Listed(key=f"{folder.path.name}/{stem}", size=size, modified=status.st_mtime)


def _descriptions_alone(folder: Folder, names: list[str]) -> dict[str, str]:
    """Return the stems of the descriptions without content, by name."""
    contents = set(map(_stem_of, names))
    stems = {name: name.removesuffix(_ENTRY_SUFFIX) for name in names if name.endswith(_ENTRY_SUFFIX)}
    return {name: stem for name, stem in stems.items() if stem not in contents and _is_stem(folder, stem)}


def _stem_of(name: str) -> str | None:
    """Return the stem of a content file's name, or None if it is no such name."""
    match = _CONTENT.fullmatch(name)
    return None if match is None else match.group(1)


def _is_stem(folder: Folder, stem: str) -> bool:
    return is_storage_key(f"{folder.path.name}/{stem}")


def _extension(content_type: str) -> str:
    """Return an extension that fits ``content_type``, so that editors and viewers open the file."""
    content_type = content_type.partition("; items=")[0]  # of many texts, as ``contents`` stores them
    known = _EXTENSIONS.get(content_type)
    if known is not None:
        return known
    kind, _, subtype = content_type.partition("/")
    plain = re.fullmatch(r"[a-z0-9]{1,8}", subtype)
    return f".{subtype}" if plain is not None and kind in {"image", "audio", "video", "text", "application"} else ".bin"
