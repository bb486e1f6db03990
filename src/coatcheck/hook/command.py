"""Our own command lines: writes one for any shell and folder, and finds one in what a shell runs.

``get_command``, ``list_command`` and ``sweep_command`` write. ``split_hook`` finds the hook in an entry of a client's
settings, and ``is_get`` tells whether a command's output was read back. Both skip what may come before our program,
such as ``cd``, ``uv run`` or ``sudo -u``. Both take what they do not know for another program.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from io import StringIO
from itertools import pairwise, takewhile

__all__ = ("for_shells", "get_command", "is_get", "list_command", "program", "split_hook", "sweep_command")

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_PYTHON = re.compile(r"(?:python|pypy|py)[\d.]*w?(?:\.exe)?", re.IGNORECASE)
_LAUNCHED = re.compile(r"coatcheck(?:\.exe)?(?:\[.*\])?(?:[@=].*)?")
"""The name of our program, also with extras and a version, as launchers take it."""

_MODULE_LAUNCHERS = (["uv", "run", "-m"], ["uv", "run", "--module"])
_LAUNCHERS = (
    *(["uv", "run"], ["uv", "tool", "run"], ["uvx"], ["pipx", "run"], ["poetry", "run"], ["pdm", "run"]),
    *_MODULE_LAUNCHERS,
)
_FLAG = re.compile(
    r"-[qvnU]+|--(?:no-.*|quiet|verbose|isolated|frozen|locked|offline|active|exact|dev|refresh|upgrade)?"
)
"""Launcher options that take no value. A command with an option that is missing here counts as another program's."""

_WRAPPERS = {
    "command": ("", "-v -V"),
    "doas": ("-u -C", "-s"),
    "env": ("-u --unset -C --chdir", "-S --split-string"),
    "exec": ("-a", ""),
    "ionice": ("-c --class -n --classdata", ""),
    "nice": ("-n --adjustment", ""),
    "nohup": ("", ""),
    "python": ("-W -X", "-c -m -"),
    "setsid": ("", ""),
    "stdbuf": ("-i --input -o --output -e --error", ""),
    "sudo": (
        "-u --user -g --group -h --host -p --prompt -C --close-from -D --chdir -R --chroot -T --command-timeout",
        "-e --edit -l --list",
    ),
    "time": ("-f --format -o --output", ""),
    "timeout": ("-s --signal -k --kill-after", ""),
    "uv": ("", "-m --module -s --script --gui-script"),
    "xargs": ("-a --arg-file -d --delimiter -E -I -L -n --max-args -P --max-procs -s --max-chars", ""),
}
"""Programs that run the command after their options. For each: the options that take the next word as their value, and
the options with which it runs something else."""

_PLAIN = _WRAPPERS.keys() - {"python", "uv"}
"""Wrappers that need no word of their own, such as ``-m`` or ``run``, before the command."""

_DURATION = re.compile(r"\d[\d.]*[smhd]?")
"""The duration that ``timeout`` takes after its options."""

_SEPARATORS = frozenset({"&&", "||", ";"})
_DRIVE = re.compile(r"(?:^|\s)[A-Za-z]:\\")
"""A Windows path outside quotes: its backslashes escape nothing."""

_ON_WINDOWS = os.name == "nt"
_MODULE = ["-m", "coatcheck"]
_OPERATORS = frozenset(";&()<>|")
_PIPES = frozenset({"|", "|&"})
_TO_NOWHERE = frozenset({">", ">>", "&>", "&>>", ">&"})
_TO_STDOUT = (">&", "1")
"""The end of ``2>&1``."""

_NOTHING = frozenset({"true", ":"})
"""Commands that print nothing, after ``||``."""

_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.""", re.DOTALL)
_TEXT_IN_SINGLE = re.compile(r"[`$\n;&()<>|#]")
_TEXT_IN_DOUBLE = re.compile(r"[;&<>|#]")

_SUBSHELL = re.compile(r"\(([^()]*)\)\s*")
"""A whole command in parentheses: it prints what it would print without them."""

_MAX_CHARACTERS = 16_000
"""Longer than our own command with three of the longest paths. ``shlex`` takes quadratic time for a word."""


def for_shells(path: str) -> str:
    """Return a path as written in a command: on Windows with forward slashes.

    Backslashes would need quotes, and no quotes work in all of Git Bash, PowerShell and ``cmd``.
    """
    return path.replace("\\", "/") if _ON_WINDOWS and _DRIVE.match(path) else path


def program() -> list[str]:
    """Return the words that run ``coatcheck`` in any folder, with the Python that runs now.

    ``-P`` keeps the client's folder, which may be an untrusted project, off the module search path. Python 3.10 lacks
    it. ``-E`` ignores variables such as ``PYTHONPATH``, which are for the project's programs. ``-I`` would also ignore
    what ``pip install --user`` has installed.
    """
    return [for_shells(sys.executable), "-E", *(["-P"] if sys.version_info >= (3, 11) else []), "-m", "coatcheck"]


def get_command(folder: str, scope: str) -> str:
    """Return the command that reads back from a folder, without its reference."""
    return shlex.join([*program(), "get", f"--storage={for_shells(folder)}", f"--scope={scope}"])


def list_command(storage: str, scope: str | tuple[str, ...] = (), *, all_scopes: bool = False) -> str:
    """Return the command that lists a scope, or all of them, to paste into a shell in any folder."""
    parts = (scope,) if isinstance(scope, str) else scope
    which = ["--all-scopes"] if all_scopes else [f"--scope={part}" for part in parts]
    return shlex.join([*program(), "ls", f"--storage={_absolute(storage)}", *which])


def sweep_command(storage: str) -> str:
    """Return the command that deletes what was not used for a day, to paste into a shell in any folder."""
    return shlex.join([*program(), "sweep", "--max-age=1d", f"--storage={_absolute(storage)}"])


def _absolute(storage: str) -> str:
    if "://" in storage:
        return storage
    return for_shells(os.path.abspath(os.path.expanduser(storage)))  # noqa: PTH100, PTH111 - pathlib is not loaded yet


def split_hook(command: str) -> tuple[str, list[str]] | None:
    """Return what comes before the program that runs the hook in a command, as written, and the words after ``hook``.

    Return None if the command does not run the hook. A command that only mentions it, in a quoted word or to another
    program, does not; neither does one that runs a module with a longer name.
    """
    starts, words = _words(command)
    found = _find(words, "hook")
    return None if found is None else (command[: starts[found[0]]], words[found[1] :])


def _find(words: list[str], verb: str) -> tuple[int, int] | None:
    """Return the index where our program with this verb begins, and the index after both; None if it is not there."""
    for index, (word, after) in enumerate(pairwise(words)):
        if after == verb and _LAUNCHED.fullmatch(_name(word)) and (start := _start(words[:index])) is not None:
            return start, index + 2
    for index in range(len(words)):
        if words[index : index + 3] == [*_MODULE, verb] and (python := _python_before(words[:index])) is not None:
            return (python, index + 3) if _start(words[:python]) is not None else None
    return None


def _start(words: list[str]) -> int | None:
    """Return the index where the command that continues after these words begins; None if it is another program's.

    Only assignments and wrappers may come before it; they are not part of it. It may begin with a launcher and the
    launcher's options.
    """
    start = 1 + max((index for index, word in enumerate(words) if word in _SEPARATORS), default=-1)
    while start < len(words):
        if (name := _name(words[start]).removesuffix(".exe")) in _PLAIN:
            before, start = start, _behind_options(words, start + 1, frozenset(_WRAPPERS[name][0].split()))
            if _runs_another(name, words[before + 1 : start]):
                return None
        elif not _ASSIGNMENT.fullmatch(words[start]):
            break
        else:
            start += 1
    launcher = [_name(word).removesuffix(".exe") for word in _arguments(words[start:])]
    if launcher[:1] == ["uv"] and _runs_another("uv", words[start : -1 if launcher in _MODULE_LAUNCHERS else None]):
        return None
    return start if start == len(words) or launcher in _LAUNCHERS else None


def _runs_another(program: str, options: list[str]) -> bool:
    """Return whether a program with these options runs something other than the words after them."""
    valued, foreign = (each.split() for each in _WRAPPERS[program])
    for option in options:
        if option in foreign or (option[2:] and any(each.startswith(option.partition("=")[0]) for each in foreign)):
            return True
        for letter in option[1:] if option.startswith("-") and not option.startswith("--") else "":
            if f"-{letter}" in foreign:
                return True
            if f"-{letter}" in valued:
                break
    return False


def _behind_options(words: list[str], at: int, valued: frozenset[str]) -> int:
    """Return the index after a wrapper's options, their values, and the duration that ``timeout`` takes after them."""
    while at < len(words) and words[at].startswith("-"):
        first, last = words[at][:2], f"-{words[at][-1]}"  # of one dash: `-u NAME`, `-uNAME`, or `-nu NAME`
        is_short = first != "--" and (first not in valued or len(words[at]) == len(first))
        at += 2 if words[at] in valued or (is_short and last in valued) else 1
    return at + (at < len(words) and _DURATION.fullmatch(words[at]) is not None)


def _arguments(words: list[str]) -> list[str]:
    """Return the words that are neither options nor their values, and a last option that still lacks its value."""
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
    """Return the words of a command and where each begins, with or without the spaces before it."""
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
            at -= not command[at - 1].isspace()  # the lexer has read the first character of the next word
    except ValueError:  # an unclosed quote: somebody edited the command
        rest = command[at:].split()
        starts += [at] * len(rest)
        words += rest
    return starts, words


def _python_before(words: list[str]) -> int | None:
    """Return the index of the Python that ends these words, followed only by its flags; None if there is none."""
    index, valued = len(words) - 1, _WRAPPERS["python"][0].split()
    while index > 0 and (words[index].startswith("-") or words[index - 1] in valued):
        index -= 1
    ours = {sys.executable, for_shells(sys.executable)}
    found = index >= 0 and (words[index] in ours or _PYTHON.fullmatch(_name(words[index])))
    return index if found and not _runs_another("python", words[index + 1 :]) else None


def is_get(command: str) -> bool:
    """Return whether a shell command's output comes from ``coatcheck get``, directly or through other programs.

    ``cd`` before it, ``|| true`` after it and messages to ``/dev/null`` are allowed, because they print nothing.
    """
    source = _QUOTED.sub(_without_marks, command.strip()).removesuffix(";")
    if subshell := _SUBSHELL.fullmatch(source):
        source = subshell[1]
    if len(command) > _MAX_CHARACTERS or any(mark in source for mark in ("\n", "`", "$(")):
        return False
    lexer = shlex.shlex(source, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""  # to a shell, a # within a word begins no comment
    try:
        words = _printing(list(takewhile(lambda word: not word.startswith("#"), lexer)))
    except ValueError:  # an unclosed quote
        return False
    if any(set(word) <= _OPERATORS and word not in _PIPES for word in words if word):
        return False
    pipes = [-1, *(index for index, word in enumerate(words) if word in _PIPES), len(words)]
    return any(_find(words[before + 1 : after], "get") for before, after in pairwise(pipes))


def _without_marks(quoted: re.Match[str]) -> str:
    """Replace the characters in a quoted part that would mean something to the shell outside quotes."""
    marks = _TEXT_IN_DOUBLE if quoted[0].startswith('"') else _TEXT_IN_SINGLE
    return marks.sub("_", quoted[0])


def _printing(words: list[str]) -> list[str]:
    """Return the words of a command without the parts that print nothing."""
    found: list[str] = []
    left = words[::-1]
    while left:
        word, after = left.pop(), left[-1] if left else ""
        if (word, after) == _TO_STDOUT or (word in _TO_NOWHERE and after == "/dev/null"):
            left.pop()
            if found and found[-1].isdecimal():  # of `2>`
                found.pop()
        else:
            found.append(word)
    if found[:1] == ["cd"] and found[2:3] in (["&&"], [";"]):
        found = found[3:]
    return found[:-2] if found[-2:-1] == ["||"] and found[-1] in _NOTHING else found


def _name(word: str) -> str:
    """Return the name of the program in a word, without its folder."""
    return word.replace("\\", "/").rpartition("/")[2]
