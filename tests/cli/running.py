"""Helpers for the command-line tests: ways to run a command, and small data in place of megabytes."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import typer
from typer.testing import CliRunner

from coatcheck.cli.app import app

if TYPE_CHECKING:
    from typer.testing import Result

SCRIPT = Path(sys.executable).with_name("coatcheck")
"""The installed command."""

COMMANDS = cache(typer.main.get_command)
"""Builds the commands once. Typer would build them all for each run, which takes longer than almost any command."""

LIBRARY = {
    "abc.py": "class Other:\n    pass\n",
    "json/decoder.py": '\n\n\nclass Wanted(ValueError):\n    """With:\n\n    msg: a text\n    pos: a place\n    """\n',
}


def run(*arguments: str | Path, given: bytes = b"", env: dict[str, str] | None = None) -> Result:
    """Run ``coatcheck`` with these arguments and this input, on an 80-column screen that is not a terminal."""
    settings: dict[str, str | None] = {"COLUMNS": "80", "TERM": "dumb", **(env or {})}
    with mock.patch("typer.testing._get_command", COMMANDS):
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=given, env=settings)


def answered(*arguments: str | Path, given: bytes = b"") -> Any:  # noqa: ANN401 - whatever JSON holds
    """Run a command with ``--json`` that must succeed, and return what it prints."""
    ran = run(*arguments, "--json", given=given)
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


def piped(*arguments: str | Path, given: bytes = b"", **settings: Any) -> subprocess.CompletedProcess[bytes]:  # noqa: ANN401 - those of subprocess
    """Run the installed command in a process of its own, with pipes for input and output."""
    return subprocess.run([SCRIPT, *arguments], input=given, capture_output=True, check=False, **settings)


@dataclass(frozen=True)
class Seen:
    """What a person at a terminal saw."""

    exit_code: int
    screen: str


def at_terminal(*arguments: str | Path, typed: str = "", input_too: bool = True) -> Seen:
    """Run a command in this process at a real terminal, 80 columns by 24 lines, and type ``typed`` there.

    Its input is the terminal; if ``input_too`` is false, a pipe that holds ``typed``.
    """
    import fcntl  # noqa: PLC0415 - not on Windows, and neither are the others
    import pty  # noqa: PLC0415
    import termios  # noqa: PLC0415

    outside, inside = pty.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    seen = bytearray()

    def watch() -> None:
        with suppress(OSError):  # Linux raises this once no process has the terminal open
            while part := os.read(outside, 65_536):
                seen.extend(part)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with ExitStack() as stack:
        screen = stack.enter_context(os.fdopen(inside, "w", encoding="utf-8"))
        errors = stack.enter_context(os.fdopen(os.dup(inside), "w", encoding="utf-8"))
        if input_too:
            keyboard = stack.enter_context(os.fdopen(os.dup(inside), encoding="utf-8"))
            os.write(outside, typed.encode())
        else:
            read, write = os.pipe()
            os.write(write, typed.encode())
            os.close(write)
            keyboard = stack.enter_context(os.fdopen(read, encoding="utf-8"))
        stack.enter_context(mock.patch("typer.main.get_command", COMMANDS))
        for name, stream in (("stdout", screen), ("stderr", errors), ("stdin", keyboard)):
            stack.enter_context(mock.patch.object(sys, name, stream))
        try:
            app([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code
    watcher.join()
    os.close(outside)
    assert isinstance(code, int)
    return Seen(code, seen.decode().replace("\r\n", "\n"))


def facts(*arguments: str | Path) -> dict[str, Any]:
    """Run ``coatcheck demo --json``, and return what it prints."""
    ran = run("demo", "--json", *arguments)
    assert ran.exit_code == 0, ran.output
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def write(folder: Path, files: dict[str, str]) -> Path:
    """Write files with these names and contents, and return the folder."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder
