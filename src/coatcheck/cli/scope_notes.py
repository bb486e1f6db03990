"""Notes on what the digests of a proxy's scopes stand for: a server, and the folder that it ran in.

    root/scopes/<digest>.json    {"scope": "mcp-...", "server": "github", "folder": "/a/project"}

A proxy writes a note next to what it stores, once, as soon as it knows its server. So nothing removes notes. No content
is found through a note, so a missing or wrong one costs nothing but a name. The server's command is not in it, since it
may hold secrets.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import NamedTuple

from coatcheck.core.errors import CorruptContent
from coatcheck.core.references import scope_part
from coatcheck.storage.file import FileStorage
from coatcheck.storage.folder import make_folders, open_folder

__all__ = ("ScopeNote", "read_note", "write_note")

_FOLDER = "scopes"
_MAX_BYTES = 50_000
"""More bytes than a note with the longest path has."""


class ScopeNote(NamedTuple):
    """What one scope stands for."""

    scope: str
    server: str
    folder: str


def write_note(storage: object, scope: str, *, server: str) -> None:
    """Note that ``scope`` stands for a server in the working directory. If that fails, do nothing."""
    if not isinstance(storage, FileStorage):
        return
    name = f"{scope_part(scope)}.json"
    with suppress(OSError):
        folder = os.fsencode(os.getcwd()).decode("utf-8", "replace")  # noqa: PTH109 - as a str
        data = json.dumps(ScopeNote(scope, server, folder)._asdict()).encode()
        make_folders(storage.root, (_FOLDER,), fsync=False)
        with open_folder(storage.root, _FOLDER) as notes, notes.temporary_file(data, fsync=False) as written:
            notes.rename(written, name)


def read_note(storage: object, part: str) -> ScopeNote | None:
    """Return what the scope of a key stands for; None if there is no note, or it is another scope's."""
    if not isinstance(storage, FileStorage):
        return None
    with suppress(OSError, ValueError, TypeError, RecursionError, CorruptContent):
        with open_folder(storage.root, _FOLDER) as notes:
            data = notes.read(f"{part}.json", length=_MAX_BYTES)
        note = ScopeNote(**json.loads(data or b"{}"))
        is_text = all(isinstance(each, str) for each in note)
        return note if is_text and scope_part(note.scope) == part else None
    return None
