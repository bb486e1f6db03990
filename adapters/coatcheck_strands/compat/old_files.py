"""References to files: those that ``store`` gives, and those of sessions that Strands' own offloader stored.

Only reading such references belongs here: values in, a file's name out. That offloader names a file by time, counter
and call, and keeps the types of all files in one file next to them. Its references were full paths once, bare names
later; a name without its extension is accepted too. No other file in the folder can be named.
"""

from __future__ import annotations

import json
import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from coatcheck_strands.compat.cycles import FOLDER

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ("OLD_NAME", "SIDECAR", "UNTYPED", "bare_name", "old_name", "types_in", "within")

SIDECAR = ".metadata.json"
"""The file that holds the types of all files of Strands' own offloader, by name."""

UNTYPED = "application/octet-stream"
"""The type of a file that the sidecar does not know, because it was lost."""

OLD_NAME = re.compile(r"\d{10,}_\d+_[\w.-]+")
"""How that offloader names a file, or an object: by time, counter and call. Nothing else can be named."""


def within(folder: PurePath) -> tuple[PurePath, PurePath]:
    """Return the folders of the files that a reference may name: the folder itself for old ones, one below for ours."""
    return folder, folder / "v1" / FOLDER


def bare_name(reference: str, folders: Collection[PurePath]) -> str:
    """Return the name of the file that a bare name or a path names; an empty one if that lies elsewhere."""
    path = PurePath(reference)
    return path.name if len(path.parts) == 1 or path.parent in folders else ""


def old_name(name: str, types: Mapping[str, str]) -> str | None:
    """Return the name of the old file that ``name`` means, with or without its extension."""
    found = [name] if name in types else [known for known in types if PurePath(known).stem == name]
    if not found and OLD_NAME.fullmatch(name):
        found = [name]
    return found[0] if len(found) == 1 and PurePath(found[0]).name == found[0] else None


def types_in(sidecar: bytes) -> dict[str, str]:
    """Return the types in a sidecar; none where it is damaged."""
    try:
        found = json.loads(sidecar)
    except ValueError:
        return {}
    return {str(name): str(kind) for name, kind in found.items()} if isinstance(found, dict) else {}
