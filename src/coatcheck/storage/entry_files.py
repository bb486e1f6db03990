"""The files of one entry in the folder of a scope: what they are called, and what they say.

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
"""A description without content that is older than this is not a save or deletion in progress but half an entry: its
content was lost, or a writer was killed."""


class Description(TypedDict):
    """What an entry file says."""

    content_type: str
    size: int
    metadata: dict[str, str]


@cache
def load_json() -> tuple[Callable[[Any], bytes], Callable[[bytes], Any]]:
    """Return what writes and what reads JSON, loaded with the first entry; see ``json_text`` in ``blocks``."""
    with loading:
        import orjson  # noqa: PLC0415

    return orjson.dumps, orjson.loads


def describe(folder: Folder, stem: str) -> Description | None:
    """Return what an entry file says, or None if there is none.

    Raises:
        CorruptContent: it does not hold what ``save`` writes.

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
    """Return the name of an entry's content file, if it is there in full length. The folder is locked.

    Raises:
        StorageError: another content has this name.

    """
    try:
        existing = describe(folder, stem)
    except CorruptContent:  # a power cut can leave it empty; what is saved now replaces it
        existing = None
    if existing is None:
        return None
    # Look under its own type: other content under this key may have another type, and so another file name.
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
            if folder.status(name) is not None:  # else a damaged type may have led to it
                return [name]
    return [found.name for found in folder.scan() if stem_of(found.name) == stem]


def remove(folder: Folder, stem: str, names: Iterable[str]) -> int:
    """Remove an entry, its content first, so that no half of it is ever found; return how many bytes its content had.

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
    """Remove an entry if it was last used before then; return whether it was removed. The folder is locked.

    Using a content uses its line index too. One that a program has open is in use, where the system says so.
    """
    names = content_names(folder, stem)
    used = times(folder, names) or times(folder, [stem + ENTRY_SUFFIX])
    content = stem.removesuffix(INDEX_SUFFIX)
    is_index = content != stem and folder.status(content + ENTRY_SUFFIX) is not None  # else a sweep took the content
    of_content = times(folder, content_names(folder, content)) if is_index else []
    if not (names or used) or max([*used, *of_content], default=0.0) >= before:
        return False
    return try_to_remove(folder, stem, names) is not None


def try_to_remove(folder: Folder, stem: str, names: Iterable[str]) -> int | None:
    """Do what ``remove`` does; return None if Windows refuses that, because a program has a file open."""
    with unless_in_use():
        return remove(folder, stem, names)
    return None


def remove_leftovers(folder: Folder, *, before: float, spared: Collection[str] = ()) -> None:
    """Remove temporary files and descriptions without content, if too old to be part of a save.

    The ``spared`` stay, and on Windows what a program has open.
    """
    names = [found.name for found in folder.scan() if found.name not in spared]
    alone = _descriptions_alone(folder, names)
    for name in names:
        if _LEFTOVER.fullmatch(name) or name in alone:
            with folder.locked(), unless_in_use():  # whoever saves this entry meanwhile gives it a new description
                if max(times(folder, [name]), default=0.0) < before:
                    folder.remove(name)


def times(folder: Folder, names: Iterable[str]) -> list[float]:
    """Return when those of ``names`` that are files were last written or used, by whichever host."""
    return [status.st_mtime for status in map(folder.status_now, names) if status is not None]


def listing(folder: Folder) -> Iterator[Listed]:
    """Yield the entries in the folder of a scope, half entries too; other files in it are left out."""
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
    """Return the stems of the descriptions without content, by name."""
    contents = set(map(stem_of, names))
    stems = {name: name.removesuffix(ENTRY_SUFFIX) for name in names if name.endswith(ENTRY_SUFFIX)}
    return {name: stem for name, stem in stems.items() if stem not in contents and is_stem(folder, stem)}


def stem_of(name: str) -> str | None:
    """Return the stem of a content file's name, or None if it is not such a name."""
    match = _CONTENT.fullmatch(name)
    return None if match is None else match.group(1)


def is_stem(folder: Folder, stem: str) -> bool:
    """Return whether an entry of this folder may have this name."""
    return is_storage_key(f"{folder.path.name}/{stem}")
