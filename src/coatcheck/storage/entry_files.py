"""The files of one entry in a scope's folder: their names and what they contain.

``file`` decides when entries are written and removed; ``bounds`` decides which ones make room. ``folder`` does what
needs the operating system.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypedDict

from coatcheck.core.errors import CorruptContent
from coatcheck.core.forks import loading
from coatcheck.core.references import INDEX_SUFFIX, is_storage_key
from coatcheck.storage.folder import extension, unless_in_use
from coatcheck.storage.protocol import Listed, refuse_other_content

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from coatcheck.storage.folder import Folder

__all__ = (
    "ENTRY_SUFFIX",
    "Description",
    "content_name",
    "content_names",
    "describe",
    "is_stem",
    "listing",
    "load_json",
    "remove",
    "remove_leftovers",
    "remove_unused",
    "stem_of",
    "times",
    "try_to_remove",
)

ENTRY_SUFFIX = ".entry.json"
_CONTENT = re.compile(r"([^.]+)\.[a-z0-9]{1,8}")
_LEFTOVER = re.compile(r"\.[0-9a-f]{32}\.tmp")

_UNDER_WAY_SECONDS = 60.0
"""A description without content that is older than this is half an entry, not a save or deletion in progress: its
content was lost, or a writer was killed."""


class Description(TypedDict):
    """What an entry's description file contains."""

    content_type: str
    size: int
    metadata: dict[str, str]


@cache
def load_json() -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Return the functions that write and read JSON, loaded with the first entry; see ``json_text`` in ``blocks``."""
    with loading:
        import orjson  # noqa: PLC0415

    return orjson.dumps, orjson.loads


def describe(folder: Folder, stem: str) -> Description | None:
    """Return the description of an entry, or None if there is none.

    Raises:
        CorruptContent: the file does not hold what ``save`` writes.

    """
    _, loads = load_json()
    name = stem + ENTRY_SUFFIX
    raw = folder.read(name)
    if raw is None:
        return None
    try:
        found = loads(raw)
        return Description(
            content_type=str(found["content_type"]), size=int(found["size"]), metadata=dict(found["metadata"])
        )
    except (ValueError, TypeError, KeyError) as error:
        msg = f"{str(folder.path / name)!r} is damaged: {error}"
        raise CorruptContent(msg) from error


def content_name(folder: Folder, stem: str, metadata: Mapping[str, str]) -> str | None:
    """Return the name of an entry's content file, if it exists in full length. The folder is locked.

    Raises:
        StorageError: another content has this name.

    """
    try:
        existing = describe(folder, stem)
    except CorruptContent:  # a power cut can leave it empty; this save replaces it
        existing = None
    if existing is None:
        return None
    # Use the existing type: other content under this key may have another type, and so another file name.
    name = stem + extension(existing["content_type"])
    status = folder.status(name)
    if status is None or status.st_size != existing["size"]:
        return None
    refuse_other_content(f"{folder.path.name}/{stem}", existing["metadata"], metadata)
    return name


def content_names(folder: Folder, stem: str) -> list[str]:
    """Return the names of an entry's content files: one, or any number if its description is damaged."""
    with suppress(CorruptContent):
        description = describe(folder, stem)
        if description is not None:
            name = stem + extension(description["content_type"])
            if folder.status(name) is not None:  # if there is no such file, the type may be damaged
                return [name]
    return [found.name for found in folder.scan() if stem_of(found.name) == stem]


def remove(folder: Folder, stem: str, names: Iterable[str]) -> int:
    """Remove an entry, its content first, so that nobody finds half of it; return how many bytes its content had.

    The folder is locked.
    """
    size = 0
    for name in names:
        status = folder.status(name)
        size += 0 if status is None else status.st_size
        folder.remove(name)
    folder.remove(stem + ENTRY_SUFFIX)
    return size


def remove_unused(folder: Folder, stem: str, *, before: float) -> bool:
    """Remove an entry if it was last used before ``before``; return whether it was removed. The folder is locked.

    Using a content counts as using its line index. A file that a program has open is in use, if the system says so.
    """
    names = content_names(folder, stem)
    used = times(folder, names) or times(folder, [stem + ENTRY_SUFFIX])
    content = stem.removesuffix(INDEX_SUFFIX)
    is_index = content != stem and folder.status(content + ENTRY_SUFFIX) is not None  # else a sweep removed the content
    of_content = times(folder, content_names(folder, content)) if is_index else []
    if not (names or used) or max([*used, *of_content], default=0.0) >= before:
        return False
    return try_to_remove(folder, stem, names) is not None


def try_to_remove(folder: Folder, stem: str, names: Iterable[str]) -> int | None:
    """Do what ``remove`` does; return None if Windows refuses, because a program has a file open."""
    with unless_in_use():
        return remove(folder, stem, names)
    return None


def remove_leftovers(folder: Folder, *, before: float, spared: Collection[str] = ()) -> None:
    """Remove temporary files and descriptions without content that are too old to be part of a save.

    The ``spared`` stay, and on Windows also the files that a program has open.
    """
    names = [found.name for found in folder.scan() if found.name not in spared]
    alone = _descriptions_alone(folder, names)
    for name in names:
        if _LEFTOVER.fullmatch(name) or name in alone:
            with folder.locked(), unless_in_use():  # if the entry is saved meanwhile, its description is new
                if max(times(folder, [name]), default=0.0) < before:
                    folder.remove(name)


def times(folder: Folder, names: Iterable[str]) -> list[float]:
    """Return when those of ``names`` that are files were last written or used, by any host."""
    return [status.st_mtime for status in map(folder.status_now, names) if status is not None]


def listing(folder: Folder) -> Iterator[Listed]:
    """Yield the entries in a scope's folder, half entries too, but no other files."""
    names = [found.name for found in folder.scan()]
    alone = _descriptions_alone(folder, names)
    under_way = time.time() - _UNDER_WAY_SECONDS
    for name in names:
        is_half = name in alone
        stem = alone[name] if is_half else stem_of(name)
        status = folder.status(name) if stem is not None and is_stem(folder, stem) else None
        if status is not None and not (is_half and status.st_mtime > under_way):
            size = 0 if is_half else status.st_size
            yield Listed(key=f"{folder.path.name}/{stem}", size=size, modified=status.st_mtime)


def _descriptions_alone(folder: Folder, names: list[str]) -> dict[str, str]:
    """Return the stems of the descriptions without content, by file name."""
    contents = set(map(stem_of, names))
    stems = {name: name.removesuffix(ENTRY_SUFFIX) for name in names if name.endswith(ENTRY_SUFFIX)}
    return {name: stem for name, stem in stems.items() if stem not in contents and is_stem(folder, stem)}


def stem_of(name: str) -> str | None:
    """Return the stem of a content file's name, or None for any other name."""
    match = _CONTENT.fullmatch(name)
    return None if match is None else match.group(1)


def is_stem(folder: Folder, stem: str) -> bool:
    """Return whether an entry in this folder may have this stem."""
    return is_storage_key(f"{folder.path.name}/{stem}")
