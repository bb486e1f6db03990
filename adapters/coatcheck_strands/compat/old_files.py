"""References to files: those that ``store`` returns, and those in old sessions of Strands' own offloader.

Only parsing such references belongs here: a reference in, a file name out. Strands' own offloader names a file by time,
counter and call, and keeps the types of all files in a sidecar file. Its references were full paths once, and bare
names later. A name without its extension is accepted too. No other file in the folder can be named.
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
"""The file in which Strands' own offloader keeps the type of each of its files, by name."""

UNTYPED = "application/octet-stream"
"""The type of a file that the sidecar does not list, because the sidecar was lost."""

OLD_NAME = re.compile(r"\d{10,}_\d+_[\w.-]+")
"""A file or object name of Strands' own offloader: time, counter and call. Nothing else can be named."""


def within(folder: PurePath) -> tuple[PurePath, PurePath]:
    """Return the folders in which a reference may name a file: the folder itself for old ones, one below for ours."""
    return folder, folder / "v1" / FOLDER


def bare_name(reference: str, folders: Collection[PurePath]) -> str:
    """Return the file name in a bare name or a path; an empty one if the path is outside ``folders``."""
    path = PurePath(reference)
    return path.name if len(path.parts) == 1 or path.parent in folders else ""


def old_name(name: str, types: Mapping[str, str]) -> str | None:
    """Return the full name of the old file ``name``, which may lack its extension; None if it is not one."""
    found = [name] if name in types else [known for known in types if PurePath(known).stem == name]
    if not found and OLD_NAME.fullmatch(name):
        found = [name]
    return found[0] if len(found) == 1 and PurePath(found[0]).name == found[0] else None


def types_in(sidecar: bytes) -> dict[str, str]:
    """Return the types in a sidecar by file name; none if it is damaged."""
    try:
        found = json.loads(sidecar)
    except ValueError:
        return {}
    return {str(name): str(kind) for name, kind in found.items()} if isinstance(found, dict) else {}
