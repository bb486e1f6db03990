"""The command with which a model reads back in a shell, and whether a call of the shell is that command."""

from __future__ import annotations

import os
import shlex
import sys

__all__ = ("get_command", "is_get", "list_command", "program")

_OPERATORS = frozenset(";&()<>|")
_PIPE = "|"


def program() -> list[str]:
    """Return the words that run ``coatcheck`` in any folder, with the Python that runs now.

    ``-P`` keeps the folder of the client, which may be a project that nobody trusts, out of the places where Python
    looks for modules. Python 3.10 lacks it.
    """
    return [sys.executable, *(["-P"] if sys.version_info >= (3, 11) else []), "-m", "coatcheck"]


def get_command(folder: str, scope: str) -> str:
    """Return the command that reads back from a folder, without its reference."""
    return shlex.join([*program(), "get", f"--storage={folder}", f"--scope={scope}"])


def list_command(storage: str, scope: str | tuple[str, ...] = (), *, all_scopes: bool = False) -> str:
    """Return the command that lists a scope, or all of them, to paste into a shell in any folder."""
    where = storage if "://" in storage else os.path.abspath(os.path.expanduser(storage))  # noqa: PTH100, PTH111 - pathlib is not loaded yet
    parts = (scope,) if isinstance(scope, str) else scope
    which = ["--all-scopes"] if all_scopes else [f"--scope={part}" for part in parts]
    return shlex.join([*program(), "ls", f"--storage={where}", *which])


def is_get(command: str) -> bool:
    """Return whether a shell's command is ``coatcheck get`` and nothing else, but for what its answer is piped into."""
    if any(mark in command for mark in ("\n", "`", "$(")):
        return False
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    try:
        found = list(words)
    except ValueError:  # a quote that never ends
        return False
    operators = [word for word in found if set(word) <= _OPERATORS]
    return all(word == _PIPE for word in operators) and _runs_get(found)


def _runs_get(words: list[str]) -> bool:
    name, *rest = words or [""]
    name = name.replace("\\", "/").rpartition("/")[2]
    if name.startswith("python"):
        while rest and rest[0].startswith("-") and rest[0] != "-m":
            del rest[0]
        return rest[:3] == ["-m", "coatcheck", "get"]
    return name in {"coatcheck", "coatcheck.exe"} and rest[:1] == ["get"]
