"""The command line, for people: ``coatcheck`` and ``python -m coatcheck.cli``.

Only the entry point belongs here, and the check that the extra is installed. The commands are in ``app``. What each
does is in its own modules, such as ``demo``, which are loaded when the command runs.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coatcheck.hook.options import Options

__all__ = ("main",)

_EXTRA = "typer"
"""The module whose absence means that the extra is not installed; it brings rich along."""

_TYPED = frozenset({"install", "uninstall", "-h", "--help"})
"""The words after ``hook`` that only a person types, never a client."""


def _options_of_file(options: Options, tool: str) -> Options:
    from coatcheck.cli.hook_settings import options_for  # only where a file is named

    return options_for(options, tool)


def main() -> None:
    """Run the command that the arguments name, and end the process with its exit code."""
    # A client writes its event to a pipe. A person at a terminal would wait forever, and gets the help below instead.
    if sys.argv[1:2] == ["hook"] and _TYPED.isdisjoint(sys.argv[2:3]) and not os.isatty(0):
        from coatcheck.hook.answer import main as answer_hook  # a client waits: nothing else is loaded

        answer_hook(sys.argv[2:], of_file=_options_of_file)
    import io
    import logging
    from pathlib import Path

    try:
        from coatcheck.cli.app import app  # needs the extra
        from coatcheck.cli.failure import reported
    except ImportError as error:
        if (error.name or "").partition(".")[0] != _EXTRA:
            raise
        from coatcheck.core.errors import install_command

        sys.stderr.write(f"coatcheck: the command line needs its extra: {install_command('coatcheck[cli]')}\n")
        raise SystemExit(2) from None
    # Python has None for a stream that the caller closed, and no command expects that.
    nowhere = Path(os.devnull)
    sys.stdin = sys.stdin or nowhere.open(encoding="utf-8")
    sys.stdout = sys.stdout or nowhere.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or nowhere.open("w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Not every terminal or pipe can encode all data; on Windows a pipe would also change its line ends.
            stream.reconfigure(errors="replace", newline=None if stream.isatty() else "\n")
    logging.getLogger("coatcheck").addHandler(logging.NullHandler())  # a command reports warnings itself, on one line
    reported(app)()  # commands are wrapped one by one; what remains is the help that typer writes itself
