"""A storage in a folder: raw content in files that people and their tools can read.

    root/v1/<scope>/<digest>.txt          the content, byte for byte, with an extension that fits its type
    root/v1/<scope>/<digest>.entry.json   content type, size and metadata, written before the content

An entry exists if both files do. A save names the description first, and a deletion removes the content first, so a
crash leaves the whole entry or none. Naming and deleting lock the scope's folder; reading and writing need no lock.

With limits, ``root/v1/total.ledger`` counts what is stored; see ``bounds``. Windows cannot lock folders, so
``root/v1/folders.lock`` is locked in their place.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from coatcheck.core.checks import require_flag
from coatcheck.core.errors import CorruptContent, InvalidRequest, StorageError, describe_error
from coatcheck.core.references import is_scope_part, split_key
from coatcheck.storage.bounds import MAX_LOOKS, TOTAL, Bounds, count_in, count_out, make_room, recount
from coatcheck.storage.entry_files import (
    ENTRY_SUFFIX,
    Description,
    content_name,
    content_names,
    describe,
    listing,
    load_json,
    remove,
    remove_leftovers,
    remove_unused,
)
from coatcheck.storage.folder import Folder, extension, make_folders, open_folder
from coatcheck.storage.protocol import Listed, Page, Stored, newest_first

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import timedelta

__all__ = ("VERSION", "FileStorage")

VERSION = "v1"
"""The folder under the root that holds everything, created by the first save."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class FileStorage:
    """Keeps content as raw files under ``root/v1/``; a save or a read costs the same however much is stored.

    Folders have mode 0700 and files 0600. Safe for many threads and processes on one folder: equal content has one
    name, and a rename is atomic. Content survives the end of the process and, with ``fsync=True``, a power cut.

    Every method raises ``StorageError`` if the key is malformed, and the disk's own ``OSError`` if the disk refuses.
    There is no time limit: a disk that hangs, as a network disk may, blocks the async methods of every offloader.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        fsync: bool = False,
        refresh_on_read: bool = True,
        max_age: float | timedelta | None = None,
        max_bytes: int | None = None,
        max_scope_bytes: int | None = None,
    ) -> None:
        """Choose the folder; the first save creates it.

        Args:
            root: the folder. It may hold other programs' files: only its ``v1`` is used.
            fsync: wait until content and names are on the disk before a save returns.
            refresh_on_read: whether reading counts as use, for sweeps and for these limits; False for a caller that
                only inspects content.
            max_age: remove what has not been saved or read for this long, in seconds or as a ``timedelta``. A save does
                this, at most an hour late. None: no limit.
            max_bytes: the most bytes to keep, as ``coatcheck stats`` counts them. A save that needs room removes what
                has not been saved or read for longest, until a tenth is free; larger content is refused. None: no
                limit.
            max_scope_bytes: the same for each scope.

        Raises:
            InvalidRequest: ``root`` cannot be the path of a folder, a flag is not a bool, or a limit is not a number
                above 0.

        """
        try:
            # An empty str is refused: it would mean the current folder.
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
                f"FileStorage needs a folder, and {root!r} is a URL: S3Storage('bucket', 'prefix') is for"
                " s3://bucket/prefix, FsspecBridge for what fsspec knows"
            )
            raise InvalidRequest(msg)
        self._given_root = os.fspath(root)
        self._fsync = require_flag("fsync", fsync)
        self._refresh_on_read = require_flag("refresh_on_read", refresh_on_read)
        self._bounds = Bounds(max_age=max_age, max_bytes=max_bytes, max_scope_bytes=max_scope_bytes)

    def __repr__(self) -> str:
        return f"FileStorage({str(self._root)!r})"

    @property
    def evicts(self) -> bool:
        """Whether it removes entries by itself, which it does if it has a limit."""
        return self._bounds.is_set

    @property
    def root(self) -> Path:
        """The folder, absolute."""
        return self._root

    @property
    def given_root(self) -> str:
        """The folder as it was given, for a configuration that others load too."""
        return self._given_root

    @property
    def fsync(self) -> bool:
        """Whether a save waits for the disk."""
        return self._fsync

    @property
    def refresh_on_read(self) -> bool:
        """Whether reading counts as use."""
        return self._refresh_on_read

    @property
    def max_age(self) -> float | timedelta | None:
        """How long an unused entry is kept, as it was given."""
        return self._bounds.max_age

    @property
    def max_bytes(self) -> int | None:
        """The most bytes that are kept."""
        return self._bounds.max_bytes

    @property
    def max_scope_bytes(self) -> int | None:
        """The most bytes that are kept in each scope."""
        return self._bounds.max_scope_bytes

    def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        """Save an entry whole or not at all; without ``fsync``, saving an existing entry only refreshes its time.

        Raises:
            StorageError: the key is malformed, another content has it, or the content alone is larger than a limit.
            OSError: the disk refused.

        """
        scope, stem = split_key(key)
        if len(content) > self._bounds.largest:
            msg = (
                f"content of {len(content):,} bytes is larger than the {self._bounds.largest:,} that {self!r} may hold"
            )
            raise StorageError(msg)
        try:
            self._save(scope, stem, content, content_type=content_type, metadata=metadata)
        except FileNotFoundError:  # the folder was never created, or a sweep has just removed it because it was empty
            make_folders(self._root, (VERSION, scope), fsync=self._fsync)
            self._save(scope, stem, content, content_type=content_type, metadata=metadata)

    def load(self, key: str) -> Stored | None:
        """Return the whole entry, or None; with ``refresh_on_read`` this refreshes its time, as a save does.

        Raises:
            CorruptContent: the description is damaged, the content's size is not the one that was saved, or one of
                the two names belongs to something other than a file.
            StorageError: the key is malformed.
            OSError: the disk refused.

        """
        return self.load_range(key, start=0, length=sys.maxsize)

    def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        """Return the entry with at most ``length`` bytes from ``start``, or None; raises what ``load`` raises."""
        scope, stem = split_key(key)
        with suppress(FileNotFoundError), open_folder(self._root, VERSION, scope) as folder:
            description = describe(folder, stem)
            if description is None:
                return None
            name, size = stem + extension(description["content_type"]), description["size"]
            content = folder.read(name, start=start, length=None if start + length >= size else length, size=size)
            if content is None:
                return None
            if self._refresh_on_read:
                with suppress(OSError):  # a read-only disk can still be read
                    folder.touch(name)
            return Stored(content=content, **description)
        return None

    def delete(self, key: str) -> None:
        """Remove the entry, even a damaged one, if it exists.

        Raises:
            StorageError: the key is malformed.
            OSError: the disk refused.

        """
        scope, stem = split_key(key)
        with suppress(FileNotFoundError), open_folder(self._root, VERSION, scope) as folder, folder.locked():
            count_out(folder, remove(folder, stem, content_names(folder, stem)))

    def entries(self, prefix: str) -> list[Listed]:
        """Return the entries whose key starts with ``prefix``, even damaged ones and halves: clean-up deletes them.

        Raises:
            OSError: the disk refused.

        """
        return [
            listed for folder in self._scopes(prefix) for listed in listing(folder) if listed.key.startswith(prefix)
        ]

    def page(self, prefix: str, *, limit: int, after: str | None = None) -> Page:
        """Return a page of the entries whose key starts with ``prefix``, newest first.

        This looks at every name under the prefix, and reads the descriptions of the entries on the page.

        Raises:
            InvalidRequest: ``after`` did not come from a page.
            OSError: the disk refused.

        """
        found = newest_first(self.entries(prefix), limit=limit, after=after)
        return replace(found, entries=tuple(map(self._described, found.entries)))

    def _described(self, entry: Listed) -> Listed:
        """Return the entry with its metadata if its description exists and is intact, else as it is."""
        scope, stem = split_key(entry.key)
        try:
            with open_folder(self._root, VERSION, scope) as folder:
                description = describe(folder, stem)
        except (OSError, CorruptContent):  # one damaged description must not hide the others
            return entry
        if description is None:
            return entry
        return replace(entry, metadata=description["metadata"], content_type=description["content_type"])

    def sweep(self, keys: Iterable[str], *, before: float) -> int:
        """Remove the ``keys`` last used before ``before``, and the files of killed writers; see ``coatcheck.Sweeps``.

        This also corrects the count of what is stored, on which the limits rely.

        Raises:
            StorageError: a key is malformed.
            OSError: the disk refused; what was not removed yet is still there.

        """
        unwanted: dict[str, list[str]] = {}
        for scope, stem in map(split_key, keys):
            unwanted.setdefault(scope, []).append(stem)
        removed = 0
        for folder in self._scopes(""):
            was_used = folder.modified >= before  # read now, since each removal changes it
            for stem in unwanted.get(folder.path.name, ()):
                with folder.locked():
                    removed += remove_unused(folder, stem, before=before)
            remove_leftovers(folder, before=before)
            if not was_used:  # removed if it is empty
                with open_folder(self._root, VERSION) as versioned:
                    versioned.remove_folder(folder.path.name)
        recount(self._root, VERSION, now=time.time())
        return removed

    def local_path(self, key: str, *, content_type: str) -> Path:
        """Return the file that holds, or would hold, the content."""
        scope, stem = split_key(key)
        return self._root / VERSION / scope / (stem + extension(content_type))

    def describe_error(self, error: Exception) -> str:
        """Return the system's words, and the folder if they lack it: most names are relative to an open folder."""
        words, root = describe_error(error), repr(str(self._root))  # as errors quote it, with doubled backslashes
        return words if root[1:-1] in words else f"{words}, in {root}"

    def _save(self, scope: str, stem: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
        """Write an entry, or only refresh its time if the very same content and description are there.

        Raises:
            FileNotFoundError: the folder of its scope does not exist.

        """
        dumps, _ = load_json()
        description = Description(content_type=content_type, size=len(content), metadata=dict(metadata))
        written_description = dumps(description)
        with open_folder(self._root, VERSION, scope) as folder:
            # With fsync, write it again: an earlier writer may not have waited for the disk.
            if not self._fsync and folder.status(stem + ENTRY_SUFFIX) is not None:
                with folder.locked():
                    name = content_name(folder, stem, metadata)
                    is_described = folder.read(stem + ENTRY_SUFFIX) == written_description
                    # If the disk damaged the old bytes, the new ones must be written before they are acknowledged.
                    if is_described and name is not None and folder.read(name) == content:
                        _refresh(folder, name)
                        return
            with (
                folder.temporary_file(content, fsync=self._fsync) as written,
                folder.temporary_file(written_description, fsync=self._fsync) as described,
            ):
                self._name(folder, stem, (described, written), description)
            if self._fsync:
                folder.sync()
                for above in ((VERSION,), ()):
                    with open_folder(self._root, *above) as parent:
                        parent.sync()

    def _name(self, folder: Folder, stem: str, temporary: tuple[str, str], description: Description) -> None:
        """Rename two temporary files to those of an entry, after making room for it if the limits require that."""
        name, size = stem + extension(description["content_type"]), description["size"]
        for _ in range(MAX_LOOKS):
            with folder.locked():
                existing = None
                if folder.status(stem + ENTRY_SUFFIX) is not None:
                    # Another writer may have saved other content meanwhile.
                    existing = content_name(folder, stem, description["metadata"])
                replaced = None if existing is None else folder.status(existing)
                grown = size - (0 if replaced is None else replaced.st_size)
                # Without limits, there is a count only if another storage on this folder has limits.
                is_counted = self._bounds.is_set or folder.status(f"../{TOTAL}") is not None
                if not is_counted or count_in(folder, grown, self._bounds, now=time.time()):
                    folder.rename(temporary[0], stem + ENTRY_SUFFIX)
                    folder.rename(temporary[1], name)  # now the entry exists
                    if existing not in {None, name}:  # under another type, and so under another name
                        folder.remove(existing)
                    return
            bounds, now = self._bounds, time.time()
            make_room(self._root, VERSION, folder.path.name, size=size, bounds=bounds, now=now, spared=temporary)
        raise OSError(errno.ENOSPC, "others fill the storage as fast as room is made; raise its limit", str(self._root))

    def _scopes(self, prefix: str) -> Iterator[Folder]:
        """Yield the folders of the scopes that may have keys with this ``prefix``."""
        scope, slash, _ = prefix.partition("/")
        with suppress(FileNotFoundError), open_folder(self._root, VERSION) as versioned:
            names = [
                found.name
                for found in versioned.scan()
                if (found.name == scope if slash else found.name.startswith(scope))
                and is_scope_part(found.name)
                and found.is_dir(follow_symlinks=False)
            ]
            for name in names:
                with suppress(FileNotFoundError), open_folder(self._root, VERSION, name) as folder:
                    yield folder


def _refresh(folder: Folder, name: str) -> None:
    """Set the time of content that is saved again. A read-only disk may refuse: no sweep removes it there."""
    try:
        folder.touch(name)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
