"""Whether a server's program is there, and what to say if it is not.

``coatcheck mcp check`` asks before the start, and the proxy after a failed start. Both say the same.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("missing_folder", "missing_program")


def missing_folder(cwd: str | os.PathLike[str] | None) -> str | None:
    """Return what is wrong with the folder in which a program should run; None if nothing is."""
    if cwd is None or os.path.isdir(cwd):  # noqa: PTH112 - never raises, unlike Path's
        return None
    return _unseen(cwd, "folder") or f"{os.fspath(cwd)} is not a folder"


def _unseen(place: str | os.PathLike[str], what: str) -> str | None:
    """Return why a path cannot be inspected, such as that nothing is there; None if it can."""
    try:
        os.stat(place)  # noqa: PTH116 - as above
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a path cannot have such characters
        return f"there is no {what} {os.fspath(place)}"
    except OSError as error:  # such as a folder above it that only others may enter
        return f"{os.fspath(place)}: {error.strerror}"
    return None


def missing_program(command: str, *, cwd: str | os.PathLike[str] | None, variables: Mapping[str, str]) -> str | None:
    """Return why a program cannot be found; None if it can.

    Args:
        command: the program. One with a slash is looked for in ``cwd``, any other in the folders of ``PATH``.
        cwd: the folder in which it should run; None for the working directory.
        variables: its environment variables.

    """
    path = variables.get("PATH", os.defpath)
    place = Path(cwd or ".").absolute() / command
    is_path = os.path.dirname(command) != ""  # noqa: PTH120 - "./server" has a folder, which Path drops
    if shutil.which(place if is_path else command, path=path):
        return None
    program, *arguments = command.split() or [command]
    if arguments:
        words = ", ".join(f'"{word}"' for word in arguments)
        return f'{command!r} is one word: the program is "{program}" alone, and its arguments are words too: {words}'
    if is_path:
        return _unseen(place, "program") or f"{place} is {'not executable' if place.is_file() else 'a folder'}"
    # Does not quote PATH: clients get this message too.
    return f"there is no such command as {command} in the folders of PATH; write its absolute path, or correct PATH"
