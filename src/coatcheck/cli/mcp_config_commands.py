"""``coatcheck mcp check``, ``install``, ``uninstall`` and ``status``: settings, and the files of MCP clients.

Only the commands belong here. ``coatcheck_mcp.config`` reads settings, ``coatcheck_mcp.install`` edits files; both are
loaded when a command runs, and neither needs the extra ``mcp``. The entry that ``install`` writes does.
"""

from __future__ import annotations

import math
import os
import shlex
import sys
from contextlib import suppress
from functools import partial
from itertools import pairwise, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coatcheck.cli.failure import NOT_AS_EXPECTED, CannotRun, reported, telling_each_mistake
from coatcheck.cli.location import STORAGE_VARIABLE, fault_of, leftovers, to_be_written, without_secret
from coatcheck.cli.options import SCOPE_VARIABLE, AsJson, PlainCommand, refuse_empty
from coatcheck.cli.printing import complain, show, show_as_is, show_json
from coatcheck.core.errors import InvalidRequest, install_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck_mcp.config import Config, ToolRule
    from coatcheck_mcp.install import Change, Found

__all__ = ("missing_extra", "register")

_NAME_COLUMNS = 22
_DAY = 86_400

_Client = Annotated[str, typer.Argument(metavar="CLIENT", help="claude-code, cursor or vscode.")]
_Server = Annotated[str, typer.Argument(metavar="SERVER", help="The server's name in the client's file.")]
_File = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", help="The client's file, if it is not where it usually is.")
]
_Config = Annotated[Path | None, typer.Option("--config", metavar="FILE", help="A coatcheck.toml.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")]


def missing_extra() -> str | None:
    """Say what to install if this Python cannot run the proxy."""
    try:
        import coatcheck_mcp.link  # noqa: F401 - needs the extra, and half a second
    except ImportError as error:
        return f"`coatcheck mcp` needs its extra ({error}): {install_command('coatcheck[cli,mcp]')}"
    return None


@reported
def check(
    file: Annotated[str | None, typer.Argument(hidden=True)] = None,
    *,
    config: _Config = None,
) -> None:
    """Check a coatcheck.toml; show what applies.

    Without --config these are the defaults. COATCHECK_STORAGE and COATCHECK_SCOPE
    override both, as for the proxy. No server is started.
    """
    from coatcheck_mcp.checking import find_doubts
    from coatcheck_mcp.config import load

    if file is not None:
        msg = f"name the file with --config: coatcheck mcp check --config {shlex.quote(file)}"
        raise CannotRun(msg)
    overriding = os.environ.get(STORAGE_VARIABLE) or None
    with telling_each_mistake():
        found = load(config, variables=None).stored_in(overriding)
    doubts = [] if config is None else find_doubts(config, storage=overriding)
    if fault := fault_of(found.storage):
        doubts.append(f"nothing can be stored: {fault}")
    right = f"{found.path} {'says' if doubts else 'is right. It says'}:"
    show("No file: these are the defaults." if found.path is None else right)
    for name, value in (*_values(found), *_rules(found), *_servers(found)):
        show(f"{name:<{_NAME_COLUMNS}} {value}")
    unread = Path("coatcheck.toml").absolute()
    if config is None and unread.is_file():
        complain(f"{unread} was not read: name it with --config.")
    for doubt in doubts:
        complain(f"coatcheck: {doubt}")
    if doubts:
        raise typer.Exit(NOT_AS_EXPECTED)


def _values(config: Config) -> Iterator[tuple[str, str]]:
    from coatcheck_mcp.config import KNOBS, UNLIMITED

    scope = os.environ.get(SCOPE_VARIABLE) or config.scope
    yield "storage", f"{without_secret(config.storage)}{_by(STORAGE_VARIABLE)}"
    yield "scope", f"{'chosen by the proxy' if scope is None else repr(scope)}{_by(SCOPE_VARIABLE)}"
    yield "max_age", UNLIMITED if config.max_age_seconds is None else f"{config.max_age_seconds / _DAY:g} days"
    for name in ("max_bytes", "max_scope_bytes"):
        limit = getattr(config, name)
        yield name, UNLIMITED if limit is None else f"{limit:,} bytes"
    yield "offer_tool", config.offer_tool
    yield "start_timeout", f"{config.start_seconds:g} seconds" if math.isfinite(config.start_seconds) else UNLIMITED
    derived = {"preview_tokens": config.settings.preview_limit, "max_retrieval_tokens": config.settings.retrieval_limit}
    for name in KNOBS:
        value = derived.get(name, getattr(config.settings, name))
        yield name, str(value).lower() if isinstance(value, bool) else f"{value:,}"


def _by(variable: str) -> str:
    """Say that the variable decided, if it is set."""
    return f" (from {variable}, which overrides a file)" if os.environ.get(variable) else ""


def _rules(config: Config) -> Iterator[tuple[str, str]]:
    for pattern, rule in config.tools.items():
        yield "tool", f"{pattern}: {_worded(rule)}"
    if config.tools:
        yield "", "(which tools these are is known when the servers run)"


def _worded(rule: ToolRule) -> str:
    threshold = getattr(rule, "threshold", None)
    return type(rule).__name__.lower() if threshold is None else f"over {threshold:,} tokens"


def _servers(config: Config) -> Iterator[tuple[str, str]]:
    from coatcheck_mcp.redacting import without_secrets

    for name, server in config.servers.items():
        address = " ".join(without_secrets([server.url or ""]))
        words = [] if server.command is None else without_secrets([server.command, *server.args])
        yield "server", f"{name}: {shlex.join(words) or address}"
        if server.cwd is not None:
            yield "", f"in the folder {server.cwd}"
        if secrets := ", ".join((*server.env, *server.headers)):
            yield "", f"with {secrets}"


@reported
def install(
    client: _Client,
    server: _Server,
    *,
    file: _File = None,
    config: _Config = None,
    storage: Annotated[str | None, typer.Option(metavar="PATH|URL", help="Where results go.")] = None,
    scope: Annotated[list[str] | None, typer.Option(metavar="SCOPE", help="Who may read them back.")] = None,
    dry_run: _DryRun = False,
) -> None:
    """Put coatcheck in front of a server.

    Only its entry in the client's file changes. --config, --storage and --scope become part of it.
    """
    from coatcheck_mcp.config import load
    from coatcheck_mcp.install import Machine
    from coatcheck_mcp.install import install as plan

    refuse_empty(storage=storage, scope=scope)
    options: list[str] = []
    if config is not None:
        with telling_each_mistake():
            read = load(config, variables=None)  # a wrong one would fail in the client, unseen
        options += ["--config", os.fspath(read.path or config)]
    if storage is not None:
        options += ["--storage", to_be_written(storage)]
    for part in scope or ():
        options += ["--scope", part]
    change = plan(client, server, Machine(), options=options, file=_absolute(file))
    if change.is_needed and not dry_run and (missing := missing_extra()):  # the client would only say that it failed
        raise CannotRun(missing)
    already = "already goes through coatcheck"
    _carry_out(change, client, dry_run=dry_run, already=already, done="goes through coatcheck now")
    if options and not change.is_needed:
        again = shlex.join(["coatcheck", "mcp", "uninstall", client, server, *([f"--file={file}"] if file else [])])
        complain(f"The options were not applied: run `{again}` first, and then this command again.")
    elif change.is_needed and change.found.place.reach == "project":
        complain(f"Do not share {change.found.source.path}: other people do not have {sys.executable}.")


@reported
def uninstall(client: _Client, server: _Server, *, file: _File = None, dry_run: _DryRun = False) -> None:
    """Remove coatcheck from a server.

    Only its entry changes; the rest of the file does not. Stored content is not
    deleted: uninstall says where it stays.
    """
    from coatcheck_mcp.install import Machine
    from coatcheck_mcp.install import uninstall as plan

    change = plan(client, server, Machine(), file=_absolute(file))
    _carry_out(change, client, dry_run=dry_run, already="does not go through coatcheck", done="is as it was before")
    if change.is_needed and not dry_run and (left := leftovers(_storage_of(change.found))):
        show(left)


def _storage_of(found: Found) -> str:
    """Return the storage of a server's proxy: from its options, else from the environment, else from its file."""
    from coatcheck_mcp.config import DEFAULT_STORAGE, load

    args = found.entry.member("args")
    words = (None if args is None else args.value.strings) or ()
    options = dict(pairwise(takewhile(lambda word: word not in {"--", "--url"}, words)))  # the server's own follow
    exported = os.environ.get(STORAGE_VARIABLE)
    with suppress(InvalidRequest):  # a variable that is there twice
        env = found.entry.member("env")
        variable = None if env is None else env.value.member(STORAGE_VARIABLE)
        exported = exported if variable is None else variable.value.string
    if chosen := options.get("--storage") or exported:
        return str(chosen)
    storage: str = DEFAULT_STORAGE
    with suppress(InvalidRequest):  # a file that is wrong by now
        storage = load(options.get("--config"), variables=None).storage
    return storage


def _absolute(file: Path | None) -> Path | None:
    return None if file is None else file.absolute()


def _carry_out(change: Change, client: str, *, dry_run: bool, already: str, done: str) -> None:
    from coatcheck_mcp.install import CLIENTS, write

    name, path = change.found.server, change.found.source.path
    for place in change.others:
        complain(f"There is another {name!r} in {place.path} ({place.reach}); it stays as it is.")
    if not change.is_needed:
        show(f"{name!r} {already} in {path}; nothing was changed.")
    elif dry_run:
        show_as_is(change.diff)
    else:
        backup = write(change.found.source, change.text)
        show(f"{name!r} {done}, in {path} ({change.found.place.reach}).")
        show(f"Restart {CLIENTS[client].title}, or reload its servers. A copy of the old file: {backup}")


@reported
def status(
    client: Annotated[str | None, typer.Argument(metavar="[CLIENT]", help="Only this client.")] = None,
    *,
    file: _File = None,
    as_json: AsJson = False,
) -> None:
    """List servers, and which go through coatcheck."""
    found: list[tuple[str | None, Found]] = []
    failed = False
    for name, path in _places(client, _absolute(file)):
        servers = _servers_in(path, name)
        failed = failed or servers is None
        found += [(name, each) for each in servers or ()]
    if as_json:
        show_json([_facts(name, each) for name, each in found])
    elif found:
        show(f"{'CLIENT':<12} {'SERVER':<{_NAME_COLUMNS}} {'COATCHECK':<9}  FILE")
        for name, each in found:
            row = f"{name or '-':<12} {each.server:<{_NAME_COLUMNS}} {'yes' if each.goes_through else 'no':<9}"
            show(f"{row}  {each.source.path} ({each.place.reach})")
    elif not failed:
        complain("No server is configured here; there may be some in another folder.")
    if failed:
        raise typer.Exit(NOT_AS_EXPECTED)


def _places(client: str | None, file: Path | None) -> Iterator[tuple[str | None, Path]]:
    """Yield the files to look into, each with its client, or with None for a file that is not a client's."""
    from coatcheck_mcp.install import CLIENTS, Machine, clients_of, files_of

    if file is not None:
        names: list[str | None] = [client] if client else [*clients_of(file, Machine())] or [None]
        yield from ((name, file) for name in names)
    else:
        for name in CLIENTS if client is None else (client,):
            yield from ((name, path) for path in files_of(name, Machine()))


def _servers_in(path: Path, client: str | None) -> list[Found] | None:
    """Return the servers in a file. If it is wrong, say why and return None."""
    from coatcheck_mcp.install import Machine, find_servers

    try:
        found: list[Found] = find_servers(client, Machine(), file=path)
    except InvalidRequest as error:
        complain(f"coatcheck: {error}")
        return None
    return found


def _facts(client: str | None, found: Found) -> dict[str, object]:
    return {
        "client": client,
        "server": found.server,
        "goes_through_coatcheck": found.goes_through,
        "file": os.fspath(found.source.path),
        "reach": found.place.reach,
    }


def register(group: typer.Typer) -> None:
    """Add the commands to ``coatcheck mcp``."""
    command = partial(group.command, cls=PlainCommand)
    command("check", epilog="Exit codes: 0 right, 1 would fail here, 2 wrong, or could not run.")(check)
    command("install", epilog="Exit codes: 0 done, 2 could not run; then the file is unchanged.")(install)
    command("uninstall", epilog="Exit codes: 0 done, 2 could not run; then the file is unchanged.")(uninstall)
    command("status", epilog="Exit codes: 0 listed, 1 a file could not be read, 2 could not run.")(status)
