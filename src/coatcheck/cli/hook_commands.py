"""``coatcheck hook install`` and ``uninstall``: the hook in the settings file of Claude Code.

The hook itself is in ``coatcheck.hook``, and runs without this module. ``coatcheck_mcp.install`` edits the file in
place, as it does for the servers of clients.
"""

from __future__ import annotations

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coatcheck.cli.failure import CannotRun, reported, telling_each_mistake
from coatcheck.cli.location import leftovers, to_be_written
from coatcheck.cli.options import PlainCommand
from coatcheck.cli.printing import complain, show, show_as_is
from coatcheck.core.errors import InvalidRequest
from coatcheck.hook.command import for_shells, list_command, program, split_hook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ("hook",)

MATCHER = (
    "^(Agent|Bash|BashOutput|Glob|Grep|LSP|ListMcpResourcesTool|PowerShell|Read|ReadMcpResource.*|Task|TaskOutput"
    "|WebFetch|WebSearch|mcp__.*)$"
)
"""The tools whose results the model reads whole. Claude Code starts no process for the others."""

MATCHERS = {"PostToolUse": MATCHER, "SessionStart": "compact"}
"""By event: after these tools, and when a session continues with a summary of itself."""

_EMPTY = "{}\n"
"""What a new settings file holds before the hook is added."""

_SECONDS = 60
"""After this many seconds Claude Code goes on with the result as it is."""

hook: typer.Typer = typer.Typer(
    help="""\b
Claude Code runs this after each tool: a preview replaces a large result.
After a compaction it lists what the session stored.
Reads the hook's JSON on standard input. Exit codes: 0 always. Its options:
--storage DIR, --max-result-tokens N, --max-inline-tokens N, --max-bytes SIZE,
--max-age AGE, --config FILE (a coatcheck.toml), and --retrieval-tool NAME
(for a client without a shell).""",
    no_args_is_help=True,
    rich_markup_mode=None,
)

_Project = Annotated[bool, typer.Option("--project", help="This folder's .claude/settings.json; else your own.")]
_File = Annotated[Path | None, typer.Option("--file", metavar="PATH", help="Another settings file.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show the difference.")]


@reported
def install(
    options: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OPTION]", help="For the hook, such as --max-age=7d; --max-age= drops it."),
    ] = None,
    *,
    project: _Project = False,
    file: _File = None,
    dry_run: _DryRun = False,
) -> None:
    """Add the hook to the settings of Claude Code.

    Everything else in the file stays unchanged, including comments. Options of an
    earlier install are kept unless you give them again.
    """
    from coatcheck.hook.options import split_options

    path = _path(file, project=project)
    if file is not None and not path.parent.is_dir():
        msg = f"{path.parent} is not a folder: make it first, or correct --file"
        raise CannotRun(msg)
    given, dropped = _checked(options or [])
    notes: list[str] = []

    def add(text: str) -> str:
        from coatcheck_mcp.install.claude_hook import command_in, with_hook

        prefix, old = split_hook(command_in(text)) or ("", [])
        before, unknown = split_options(old)
        merged = {name: value for name, value in {**before, **given}.items() if name not in dropped}
        words = [f"{name}={value}" for name, value in merged.items()]
        notes.extend([*_differences(before, merged, unknown), *_listing(words)])
        command = prefix + shlex.join([*program(), "hook", *words])
        hooks = [{"type": "command", "command": command, "timeout": _SECONDS}]
        new: str = with_hook(text, entries={event: {"matcher": at, "hooks": hooks} for event, at in MATCHERS.items()})
        return new

    changed = _edit(path, add, dry_run=dry_run, done="has the hook")
    for note in notes:
        show(note)
    if changed and project:
        complain(f"Do not share {path}: other people do not have {sys.executable}.")
    if file is None and (other := _other_with_hook(path, project=project)) is not None:
        remove = f"coatcheck hook uninstall{'' if project else ' --project'}"
        complain(f"{other} has the hook too. If its options differ, either may answer; to remove it: {remove}")


def _checked(words: list[str]) -> tuple[dict[str, str], set[str]]:
    """Return the options that are given, and those to reset to their defaults.

    Raises:
        CannotRun: an option is wrong. A client would show nobody what the hook says about it.

    """
    from coatcheck.cli.hook_settings import checked_file
    from coatcheck.hook.options import OPTIONS, read_options, split_options

    dropped = {word[:-1] for word in words if word.endswith("=") and word[:-1] in OPTIONS}
    kept = [word for word in words if word.removesuffix("=") not in dropped]
    _, wrong = read_options(kept)
    if wrong:
        raise CannotRun("; ".join(wrong))
    given, _ = split_options(kept)
    if "://" in given.get("--storage", ""):
        msg = f"--storage must be a folder, not {given['--storage']!r}: the hook stores in no other storage"
        raise CannotRun(msg)
    if "--storage" in given:
        given["--storage"] = for_shells(to_be_written(given["--storage"]))
    if "--config" in given:
        with telling_each_mistake():
            given["--config"] = for_shells(checked_file(given["--config"], has_storage="--storage" in given))
    return given, dropped


def _differences(before: dict[str, str], now: dict[str, str], unknown: list[str]) -> Iterator[str]:
    """Yield what changed in the options of the entry, and what did not."""
    for name, old in before.items():
        if name not in now:
            yield f"{name}={old} was removed."
        elif now[name] == old:
            yield f"{name}={old} is kept from before."
        else:
            yield f"{name} was {old}, and is now {now[name]}."
    for name in now.keys() - before.keys():
        yield f"{name} is now {now[name]}."
    for each in unknown:
        yield f"Dropped from the earlier command: {each}."


def _listing(words: list[str]) -> Iterator[str]:
    """Yield how to list what the hook stores with these options, and what is wrong with their file, if anything.

    Raises:
        CannotRun: the hook could store nothing.

    """
    from coatcheck.cli.hook_settings import options_for
    from coatcheck.hook.options import DEFAULT_STORAGE, read_options

    options, _ = read_options(words)
    try:
        options = options_for(options, "")
    except InvalidRequest as error:  # in a file that an earlier install named
        yield f"{error}; the hook goes on without this file."
    if not options.has_home:
        named = options.storage if options.has_folder else DEFAULT_STORAGE
        msg = f"the folder is {named!r}, in an unknown home directory; name another with --storage"
        raise CannotRun(msg)
    yield f"To list what it stores: {list_command(options.folder, all_scopes=True)}"


@reported
def uninstall(*, project: _Project = False, file: _File = None, dry_run: _DryRun = False) -> None:
    """Remove the hook from Claude Code's settings.

    Only its entries are removed; the rest of the file does not change. Stored content
    is not deleted: uninstall says where it stays.
    """
    path = _path(file, project=project)
    notes: list[str] = []

    def without(text: str) -> str:
        from coatcheck_mcp.install.claude_hook import without_hook

        new: str = without_hook(text)
        if new != text and not dry_run:
            notes.extend(_leftovers(text))
        return new

    changed = _edit(path, without, dry_run=dry_run, done="does not have the hook")
    if not changed and file is None and (other := _other_with_hook(path, project=project)) is not None:
        show(f"{other} has it: coatcheck hook uninstall{'' if project else ' --project'}")
    for note in notes:
        show(note)


def _leftovers(text: str) -> Iterator[str]:
    """Yield where the hook of a settings file stored content, and how to delete that; nothing if it is there twice."""
    from coatcheck.cli.hook_settings import options_for
    from coatcheck.hook.options import read_options
    from coatcheck_mcp.install.claude_hook import command_in

    try:
        _, words = split_hook(command_in(text)) or ("", [])
    except InvalidRequest:
        return
    options, _ = read_options(words)
    try:
        options = options_for(options, "")
    except InvalidRequest as error:  # the hook went on without this file
        if "storage" not in options.given:
            yield f"{error}; if it named a storage, what the hook stored there stays too."
    if left := leftovers(options.folder):
        yield left


def _other_with_hook(path: Path, *, project: bool) -> Path | None:
    """Return the other settings file, the user's own or this folder's, if it has the hook.

    Return None if that file cannot be read, or no home directory is known.
    """
    from coatcheck_mcp.install.claude_hook import without_hook
    from coatcheck_mcp.install.files import read

    try:
        other = _path(None, project=not project)
        source = None if other == path else read(other)
        return other if source is not None and without_hook(source.text) != source.text else None
    except (InvalidRequest, RuntimeError):
        return None


def _path(file: Path | None, *, project: bool) -> Path:
    if file is not None:
        return file.absolute()
    return (Path.cwd() if project else Path.home()) / ".claude" / "settings.json"


def _edit(path: Path, change: Callable[[str], str], *, dry_run: bool, done: str) -> bool:
    """Change the text of a settings file, or show the difference; return whether there is any."""
    from coatcheck_mcp.install.files import create, difference, read, write

    source = read(path)
    old = "" if source is None else source.text
    settings = old if old.strip() else _EMPTY
    try:
        new = change(settings)
    except InvalidRequest as error:
        where = f"{path}:{error}" if str(error)[:1].isdecimal() else f"{path}: {error}"  # it may begin with a line
        msg = f"{where}; it was not changed"
        raise CannotRun(msg) from None
    if new == settings:
        show(f"Nothing to do: {path} {done}.")
        return False
    if dry_run:
        show_as_is(difference(path, old, new))
    elif source is None:
        create(path, new)
        show(f"{path} {done} now. Start Claude Code again.")
    else:
        backup = write(source, new)
        show(f"{path} {done} now. Start Claude Code again. A copy of the old file: {backup}")
    return True


_command = partial(hook.command, cls=PlainCommand)
_command(
    "install",
    context_settings={"ignore_unknown_options": True},
    epilog="Exit codes: 0 done, 2 could not run; then the file is unchanged.",
)(install)
_command("uninstall", epilog="Exit codes: 0 done, 2 could not run; then the file is unchanged.")(uninstall)
