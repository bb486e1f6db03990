"""``coatcheck hook install`` and ``uninstall``: the hook in the settings file of Claude Code.

What the hook itself does is in ``coatcheck.hook``; it runs without any of this. How a file is edited in place is in
``coatcheck_mcp.install``, which does the same for the servers of clients.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from difflib import unified_diff
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coatcheck.cli.failure import CannotRun, reported
from coatcheck.cli.options import PlainCommand
from coatcheck.cli.printing import show
from coatcheck.core.errors import InvalidRequest
from coatcheck.hook.command import program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from coatcheck_mcp.install.spans import Member, Value

__all__ = ("hook",)

MATCHER = "^(Agent|Bash|BashOutput|Glob|Grep|Read|Task|TaskOutput|WebFetch|WebSearch|mcp__.*)$"
"""The tools with results that the model reads whole. Claude Code starts no process for the others."""

_SECONDS = 60
"""After which Claude Code goes on with the result as it is."""

_EVENT = "PostToolUse"
_OURS = " -m coatcheck hook"
"""In every command that ``install`` writes."""
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


def _edit(path: Path, change: Callable[[str], str], *, dry_run: bool, done: str) -> None:
    """Change the text of a settings file, or show the difference."""
    from coatcheck_mcp.install.files import read, write  # noqa: PLC0415 - not for --help

    source = read(path)
    old = "" if source is None else source.text
    try:
        new = change(old if old.strip() else "{}\n")
    except CannotRun as error:
        msg = f"{path} was not changed: {error}"
        raise CannotRun(msg) from None
    except InvalidRequest as error:  # begins with the number of the line
        msg = f"{path}:{error}; it was not changed"
        raise CannotRun(msg) from None
    if new == old or not (old or json.loads(new)):
        show(f"Nothing to do: {path} {done}.")
    elif dry_run:
        before, after = (text.splitlines(keepends=True) for text in (old, new))
        show("".join(unified_diff(before, after, str(path), str(path))).rstrip("\n"))
    elif source is None:
        _make(path, new)
        show(f"{path} {done} now. Start Claude Code again.")
    else:
        backup = write(source, new, backups=Path.home() / _BACKUPS)
        show(f"{path} {done} now. Start Claude Code again. A copy of the old file: {backup}")


def _make(path: Path, text: str) -> None:
    """Write a file that was not there, whole or not at all."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".coatcheck-{os.urandom(8).hex()}")
    try:
        with os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(text.encode())
        os.link(temporary, path)  # fails if somebody made the file meanwhile
    except OSError as error:
        msg = f"{path} was not written: {error.strerror}"
        raise CannotRun(msg) from None
    finally:
        temporary.unlink(missing_ok=True)


def _with_hook(text: str, *, command: str) -> str:
    """Return the text of a settings file with the hook, once."""
    from coatcheck_mcp.install.spans import parse  # noqa: PLC0415 - not for --help

    if _commands(parse(text)) == [command]:
        return text
    text = _without_hook(text)
    new: object = {"matcher": MATCHER, "hooks": [{"type": "command", "command": command, "timeout": _SECONDS}]}
    place = _require(parse(text), "the file", members=True)
    for depth, name in enumerate(("hooks", _EVENT)):
        member = place.member(name)
        if member is None:
            wrapped = {_EVENT: [new]} if name == "hooks" else [new]
            return _inserted(text, place, wrapped, depth=depth, name=name)
        place = _require(member.value, name, members=name == "hooks")
    return _inserted(text, place, new, depth=2)


def _without_hook(text: str) -> str:
    """Return the text of a settings file without the hook, and without what would be empty then."""
    from coatcheck_mcp.install.spans import parse  # noqa: PLC0415 - not for --help

    while (path := _path_to_ours(parse(text))) is not None:
        # What holds nothing but ours goes with it.
        container, index = next((each for each in reversed(path) if len(_parts(each[0])) > 1), path[0])
        text = _removed(text, container, index)
    return text


def _require(value: Value, name: str, *, members: bool) -> Value:
    if (value.members if members else value.items) is None:
        msg = f"{name} must be {'an object' if members else 'an array'}, as Claude Code documents it; edit it by hand"
        raise CannotRun(msg)
    return value


def _commands(root: Value) -> list[str]:
    """Return the commands of ours in a settings file."""
    return [command for *_, command in _ours(root)]


def _path_to_ours(root: Value) -> list[tuple[Value, int]] | None:
    """Return the containers that lead to the last command of ours, each with the index of what leads on."""
    found = list(_ours(root))
    return found[-1][0] if found else None


def _ours(root: Value) -> Iterator[tuple[list[tuple[Value, int]], str]]:
    hooks = root.member("hooks")
    event = None if hooks is None else hooks.value.member(_EVENT)
    if hooks is None or event is None:
        return
    above = [(root, _index(root, hooks)), (hooks.value, _index(hooks.value, event))]
    for number, entry in enumerate(event.value.items or ()):
        listed = entry.member("hooks")
        for position, each in enumerate(() if listed is None else listed.value.items or ()):
            command = each.member("command")
            words = None if command is None else command.value.string
            if listed is not None and words is not None and _OURS in words:
                yield [*above, (event.value, number), (listed.value, position)], words


def _index(container: Value, member: Member) -> int:
    return (container.members or ()).index(member)


def _parts(container: Value) -> list[tuple[int, int]]:
    """Return where each member or item of a container begins and ends."""
    members = [(member.key.start, member.value.end) for member in container.members or ()]
    return members or [(item.start, item.end) for item in container.items or ()]


def _inserted(text: str, container: Value, new: object, *, depth: int, name: str | None = None) -> str:
    """Return the text with one more member or item at the end of a container, laid out as the file is."""
    line = "\r\n" if "\r\n" in text else "\n"
    unit = (re.search(r"\n([ \t]+)\S", text) or ["", "  "])[1]
    outer, inner = line + unit * depth, line + unit * (depth + 1)
    words = json.dumps(new, indent=unit, ensure_ascii=False).replace("\n", inner)
    words = words if name is None else f"{json.dumps(name)}: {words}"
    parts = _parts(container)
    if parts:
        return f"{text[: parts[-1][1]]},{inner}{words}{text[parts[-1][1] :]}"
    inside = text[container.start + 1 : container.end - 1]  # blanks, or a comment
    return (
        f"{text[: container.start + 1]}{inner}{words}{inside if inside.strip() else outer}{text[container.end - 1 :]}"
    )


def _removed(text: str, container: Value, index: int) -> str:
    """Return the text without a member or item of a container, and without the comma that it needed."""
    parts = _parts(container)
    start, end = parts[index]
    if index + 1 < len(parts):
        return text[:start] + text[parts[index + 1][0] :]
    if index:
        return text[: parts[index - 1][1]] + text[end:]
    before, behind = text[container.start + 1 : start], text[end : container.end - 1].lstrip(",")
    inside = f"{before}{behind}" if f"{before}{behind}".strip() else ""
    return text[: container.start + 1] + inside + text[container.end - 1 :]


_command = partial(hook.command, cls=PlainCommand)
_command("install", epilog="Exit codes: 0 done, 2 could not run; the file is as it was then.")(install)
_command("uninstall", epilog="Exit codes: 0 done, 2 could not run; the file is as it was then.")(uninstall)
