"""The command with which a model reads back in a shell, and whether a call of the shell is that command."""

from __future__ import annotations

import os
import re
import shlex
import sys
from io import StringIO
from itertools import pairwise

__all__ = ("get_command", "is_get", "list_command", "program", "split_hook")

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_PYTHON = re.compile(r"(?:python|pypy|py)[\d.]*w?(?:\.exe)?", re.IGNORECASE)
_WITH_VALUE = frozenset({"-W", "-X"})
"""The flags of Python that take the next word."""

_LAUNCHED = re.compile(r"coatcheck(?:\.exe)?(?:\[.*\])?(?:[@=].*)?")
"""Our program, as a launcher names it too: with extras and a version."""

_LAUNCHERS = (["uv", "run"], ["uv", "tool", "run"], ["uvx"], ["pipx", "run"], ["poetry", "run"], ["pdm", "run"])
_FLAG = re.compile(
    r"-[qvnU]+|--(?:no-.*|quiet|verbose|isolated|frozen|locked|offline|active|exact|dev|refresh|upgrade)?"
)
"""The options of launchers that take no value. One that is missing here makes a command foreign, so it stays."""

_WRAPPERS = {
    "command": "",
    "doas": "-u -C",
    "env": "-u --unset -C --chdir",
    "exec": "-a",
    "ionice": "-c --class -n --classdata",
    "nice": "-n --adjustment",
    "nohup": "",
    "setsid": "",
    "stdbuf": "-i --input -o --output -e --error",
    "sudo": "-u --user -g --group -h --host -p --prompt -C --close-from -D --chdir -R --chroot -T --command-timeout",
    "time": "-f --format -o --output",
    "timeout": "-s --signal -k --kill-after",
    "xargs": "-a --arg-file -d --delimiter -E -I -L -n --max-args -P --max-procs -s --max-chars",
}
"""Programs that run the command behind their options, and those of the options that take the next word."""

_DURATION = re.compile(r"\d[\d.]*[smhd]?")
"""What ``timeout`` has behind its options."""

_SEPARATORS = frozenset({"&&", "||", ";"})
_DRIVE = re.compile(r"(?:^|\s)[A-Za-z]:\\")
"""A path of Windows outside quotes: a backslash is only itself there."""

_MODULE = ["-m", "coatcheck"]
_OPERATORS = frozenset(";&()<>|")
_PIPE = "|"
_TO_STDOUT = (">&", "1")
"""The end of ``2>&1``."""

_MOST_CHARACTERS = 16_000
"""More than our own command has, with three paths as long as they may be: ``shlex`` takes quadratic time for a word."""


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


def split_hook(command: str) -> tuple[str, list[str]] | None:
    """Return what a command has before the program that runs the hook, as it is written, and the words behind ``hook``.

    None: the command does not run the hook. One that only mentions it, in a quoted word or to another program, does
    not; neither does a module with a longer name.
    """
    starts, words = _words(command)
    found = _find(words, "hook")
    return None if found is None else (command[: starts[found[0]]], words[found[1] :])


def _find(words: list[str], verb: str) -> tuple[int, int] | None:
    """Return the index where our program with this command begins, and the index behind both; None: it is not there."""
    for index, (word, after) in enumerate(pairwise(words)):
        if after == verb and _LAUNCHED.fullmatch(_name([word])) and (start := _start(words[:index])) is not None:
            return start, index + 2
    for index in range(len(words)):
        if words[index : index + 3] == [*_MODULE, verb] and (python := _python_before(words[:index])) is not None:
            return (python, index + 3) if _start(words[:python]) is not None else None
    return None


def _start(words: list[str]) -> int | None:
    """Return where the command that goes on behind these words begins; None if it is that of another program.

    There are at most assignments and wrappers before it, which are no part of it, and a launcher with its options.
    """
    start = 1 + max((index for index, word in enumerate(words) if word in _SEPARATORS), default=-1)
    while start < len(words):
        if (valued := _WRAPPERS.get(_name([words[start]]).removesuffix(".exe"))) is not None:
            start = _behind_options(words, start + 1, frozenset(valued.split()))
        elif not _ASSIGNMENT.fullmatch(words[start]):
            break
        else:
            start += 1
    launcher = [_name([word]).removesuffix(".exe") for word in _arguments(words[start:])]
    return start if start == len(words) or launcher in _LAUNCHERS else None


def _behind_options(words: list[str], at: int, valued: frozenset[str]) -> int:
    """Return where the options of a wrapper end, with their values, and the time that ``timeout`` has behind them."""
    while at < len(words) and words[at].startswith("-"):
        first, last = words[at][:2], f"-{words[at][-1]}"  # of one dash: `-u NAME`, `-uNAME`, or `-nu NAME`
        is_short = first != "--" and (first not in valued or len(words[at]) == len(first))
        at += 2 if words[at] in valued or (is_short and last in valued) else 1
    return at + (at < len(words) and _DURATION.fullmatch(words[at]) is not None)


def _arguments(words: list[str]) -> list[str]:
    """Return the words that are neither options nor their values, and an option at the end that waits for its value."""
    found, waiting = [], []
    for word in words:
        if word.startswith("-"):
            waiting = [] if "=" in word or _FLAG.fullmatch(word) else [word]
        elif waiting:
            waiting = []
        else:
            found.append(word)
    return found + waiting


def _words(command: str) -> tuple[list[int], list[str]]:
    """Return the words of a command and where each begins, at the latest at the blanks before it."""
    source = StringIO(command)
    lexer = shlex.shlex(source, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split, lexer.commenters = True, ""
    if _DRIVE.search(command):
        lexer.escape = ""
    starts, words, at = [], [], 0
    try:
        while (word := lexer.get_token()) is not None:
            starts.append(at)
            words.append(word)
            at = source.tell()
            at -= not command[at - 1].isspace()  # it has read the first character of the next word
    except ValueError:  # a quote that never ends: somebody wrote it anew
        rest = command[at:].split()
        starts += [at] * len(rest)
        words += rest
    return starts, words


def _python_before(words: list[str]) -> int | None:
    """Return the index of the Python that words end with, with its flags; None if they end with something else."""
    index = len(words) - 1
    while index > 0 and (words[index].startswith("-") or words[index - 1] in _WITH_VALUE):
        index -= 1
    found = index >= 0 and (words[index] == sys.executable or _PYTHON.fullmatch(_name(words[index:])))
    return index if found else None


def is_get(command: str) -> bool:
    """Return whether what a shell's command prints is from ``coatcheck get``, as such or through other programs."""
    if len(command) > _MOST_CHARACTERS or any(mark in command for mark in ("\n", "`", "$(")):
        return False
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split, words.commenters = True, ""  # to a shell, a # within a word begins no comment
    try:
        found = list(words)
    except ValueError:  # a quote that never ends
        return False
    operators = [(word, after) for word, after in pairwise([*found, ""]) if set(word) <= _OPERATORS]
    if not all(word == _PIPE or (word, after) == _TO_STDOUT for word, after in operators):
        return False
    pipes = [-1, *(index for index, word in enumerate(found) if word == _PIPE), len(found)]
    return any(_find(found[before + 1 : after], "get") for before, after in pairwise(pipes))


def _name(words: list[str]) -> str:
    """Return the name of the program that the first of some words is, without its folder."""
    return words[0].replace("\\", "/").rpartition("/")[2] if words else ""
