"""What commands write, and where: answers to standard output, everything else to standard error.

A file or a pipe gets content as it is. A terminal gets it without control characters, because what a tool returned may
be crafted to control the terminal. Nothing is read as markup.
"""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from functools import partial
from io import TextIOWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

__all__ = (
    "complain",
    "iso_time",
    "local_time",
    "one_line",
    "open_console",
    "printable",
    "progress",
    "show",
    "show_as_is",
    "show_bytes",
    "show_json",
)


def printable(text: str) -> str:
    """Return foreign text without characters that would control a terminal. Line ends stay, tabs become spaces."""
    plain = text.replace("\r\n", "\n").expandtabs(4)
    return "".join(character if character.isprintable() or character == "\n" else "·" for character in plain)


def one_line(text: str) -> str:
    """Return foreign text as ``printable`` does, on one line, so that it cannot pass for lines of ours."""
    return printable(" ".join(text.splitlines()))


def show(text: str) -> None:
    """Write ``text`` and a line end to standard output; to a terminal, without what would control it."""
    show_as_is(f"{text}\n")


def show_as_is(text: str) -> None:
    """Write ``text`` to standard output: to a terminal as ``show`` does, otherwise in UTF-8.

    The stream's own encoding, such as the locale's on Windows, may lack characters; readers would see ``?`` instead.
    """
    if not sys.stdout.isatty() and isinstance(sys.stdout, TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    sys.stdout.write(printable(text) if sys.stdout.isatty() else text)


def show_bytes(data: bytes) -> None:
    """Write ``data`` to standard output, exactly."""
    rest = memoryview(data)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]  # with PYTHONUNBUFFERED set, one write may write only a part


def show_json(value: object) -> None:
    """Write ``value`` to standard output as JSON, in ASCII, which is harmless everywhere."""
    sys.stdout.write(f"{json.dumps(value, indent=2)}\n")


def complain(message: str) -> None:
    """Write a message for people to standard error, on one line. Do nothing if standard error is closed or full."""
    with suppress(OSError):
        sys.stderr.write(f"{one_line(message)}\n")
        sys.stderr.flush()


def open_console(*, quiet: bool) -> Console:
    """Return a console that writes reports to standard output, or nothing if ``quiet``."""
    from rich.console import Console

    class OnPipes(Console):
        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704 - rich, which is handling the error, would exit with 1; ``reported`` knows better

    return OnPipes(highlight=False, quiet=quiet)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], object]]:
    """Show a progress bar while the block runs, if standard error is a terminal. Yield a function to advance it."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console  # 0.1 s that only people at a terminal wait for
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield partial(bar.advance, bar.add_task(what, total=total))


def local_time(seconds: float) -> str:
    """Format seconds since the epoch for people: local time, to the minute."""
    return datetime.fromtimestamp(seconds, timezone.utc).astimezone().strftime("%Y-%m-%d %H:%M")


def iso_time(seconds: float) -> str:
    """Format seconds since the epoch for programs: ISO 8601, in UTC."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")
