"""``coatcheck hook install`` and ``uninstall``: the hook in the settings file of Claude Code.

What the hook itself does is in ``coatcheck.hook``; it runs without any of this. How a file is edited in place is in
``coatcheck_mcp.install``, which does the same for the servers of clients.
"""

from __future__ import annotations

import json
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coatcheck.cli.failure import CannotRun, reported
from coatcheck.cli.options import PlainCommand
from coatcheck.cli.printing import show
from coatcheck.hook.command import program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck_mcp.install.spans import Value

__all__ = ("hook",)

MATCHER = "^(Agent|Bash|BashOutput|Glob|Grep|Read|Task|TaskOutput|WebFetch|WebSearch|mcp__.*)$"
"""The tools with results that the model reads whole. Claude Code starts no process for the others."""

_SECONDS = 60
"""After which Claude Code goes on with the result as it is."""

_EVENT = "PostToolUse"
_OURS = " -m coatcheck hook"
_BACKUPS = ".coatcheck/backups"

hook = typer.Typer(
    help="""\b
What Claude Code runs after each tool: a large result is stored, a preview stays.
Reads the hook's JSON on standard input. Always exits with 0. Its options:
--storage DIR, --max-result-tokens N, --max-inline-tokens N, --max-age SECONDS,
--max-bytes N, --retrieval-tool NAME (of an MCP tool, for a client without a shell).""",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_Project = Annotated[bool, typer.Option("--project", help="This folder's .claude/settings.json; else your own.")]
_File = Annotated[Path | None, typer.Option("--file", metavar="PATH", help="Another settings file.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show the difference.")]


@reported
def install(
    options: Annotated[list[str] | None, typer.Argument(metavar="[-- OPTION...]", help="Options of the hook.")] = None,
    *,
    project: _Project = False,
    file: _File = None,
    dry_run: _DryRun = False,
) -> None:
    """Add the hook to the settings of Claude Code.

    Everything else in the file stays as it is, comments too.
    """
    from coatcheck.hook.options import read_options  # noqa: PLC0415 - not for --help

    _, wrong = read_options(options or [])
    if wrong:
        raise CannotRun("; ".join(wrong))
    command = shlex.join([*program(), "hook", *(options or [])])
    _edit(_path(file, project=project), partial(_with_hook, command=command), dry_run=dry_run, done="has the hook")


@reported
def uninstall(*, project: _Project = False, file: _File = None, dry_run: _DryRun = False) -> None:
    """Take the hook out of the settings of Claude Code again.

    Only its entry goes; the rest of the file stays as it is now.
    """
    _edit(_path(file, project=project), _without_hook, dry_run=dry_run, done="does not have the hook")


def _path(file: Path | None, *, project: bool) -> Path:
    if file is not None:
        return file.absolute()
    return (Path.cwd() if project else Path.home()) / ".claude" / "settings.json"


def _edit(path: Path, change: partial[str], *, dry_run: bool, done: str) -> None: ...


def _with_hook(text: str, *, command: str) -> str:
    """Return the text of a settings file with the hook, once."""
    from coatcheck_mcp.install.spans import parse  # noqa: PLC0415 - not for --help

    text = _without_hook(text)
    entry: object = {"matcher": MATCHER, "hooks": [{"type": "command", "command": command, "timeout": _SECONDS}]}
    place = root = parse(text)
    for name, wrapped in (("hooks", {_EVENT: [entry]}), (_EVENT, [entry])):
        member = place.member(name)
        if member is None:
            return _inserted(text, place, f"{json.dumps(name)}: {_laid_out(wrapped, text, place, root)}", root)
        place = member.value
        if (place.members if name == "hooks" else place.items) is None:
            msg = f"{name!r} in it is not what Claude Code documents; edit it by hand"
            raise CannotRun(msg)
    return _inserted(text, place, _laid_out(entry, text, place, root), root)
