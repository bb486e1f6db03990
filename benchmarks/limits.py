"""The least that any system must do, written as plainly as possible. Every measurement is compared with it.

A limit does one part of the work and nothing else: no preview, no digest, no reference, no scope.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ("encode_and_write", "ranged_read", "ripgrep", "ripgrep_program")

CONTEXT_LINES = 5
"""Lines that `retrieve_offloaded_content` shows around a match by default."""


def encode_and_write(text: str, path: Path) -> None:
    """Encode text and write it to a new file, with only one copy in memory."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        view = memoryview(text.encode("utf-8"))
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)


def ranged_read(path: Path, start: int, size: int) -> bytes:
    """Read ``size`` bytes of a file from a known position."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.pread(descriptor, size, start)
    finally:
        os.close(descriptor)


def ripgrep_program() -> str | None:
    """Return the path of ripgrep: the one installed with this Python, else one on the machine, else None."""
    installed = Path(sys.executable).with_name("rg")
    return str(installed) if installed.exists() else shutil.which("rg")


def ripgrep(program: str, pattern: str, path: Path) -> str:
    """Search a file line by line, in a separate process as people run it, and return what it prints."""
    command = [
        program,
        "--no-config",
        "--line-number",
        f"--context={CONTEXT_LINES}",
        "--regexp",
        pattern,
        os.fspath(path),
    ]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 - a fixed program


def ripgrep_version() -> str:
    """Return ripgrep's name and version."""
    program = ripgrep_program()
    if program is None:
        return "no ripgrep"
    said = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout  # noqa: S603
    return " ".join(said.split()[:2])
