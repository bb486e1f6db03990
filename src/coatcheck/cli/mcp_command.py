"""``coatcheck mcp``: its arguments, and the proxy that it starts.

What the proxy does is in ``coatcheck_mcp``, loaded when it runs. Standard output belongs to the protocol, so messages
for people go to standard error.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from coatcheck.cli.background_log import log_in_background
from coatcheck.cli.failure import CannotRun, reported, telling_each_mistake
from coatcheck.cli.location import STORAGE_VARIABLE, Limits, storage_at, without_secret
from coatcheck.cli.mcp_config_commands import missing_extra
from coatcheck.cli.options import SCOPE_VARIABLE, AsJson, PlainCommand, make_plain, refuse_empty, scope_of
from coatcheck.cli.printing import complain, show
from coatcheck.cli.storage_commands import stats
from coatcheck.core.tokens import TiktokenCounter
from coatcheck.hook.command import list_command

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Collection, Mapping, Sequence

    from coatcheck.core.references import Scope
    from coatcheck.storage import Storage
    from coatcheck_mcp import Config, Proxy, Upstream

__all__ = ("mcp",)

_HELP = """\b
Put coatcheck in front of an MCP server. In place of its command, write:
    coatcheck mcp -- npx -y some-mcp-server --its-options"""
"""The mark keeps the lines as they are, so that help fits a screen of 24 lines."""

_EPILOG = "Exit codes: 0 the client left, 2 could not run."
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)
"""A variable of the environment in a header: ``$NAME`` or ``${NAME}``."""

_TOOLS_SHOWN = 8
"""The most tool names in a message about a rule that matches none of them."""

_COMMAND = "coatcheck.mcp.command"
"""The key of ``ctx.meta`` under which the group leaves the server's command for the proxy."""

_TYPED = "coatcheck.mcp.typed"
"""The key under which it leaves all words after ``coatcheck mcp``."""


class _Group(TyperGroup):
    """Subcommands, or a server's command after ``--``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - those of typer
        """Take the scope's environment variable as one part, as the other commands do."""
        super().__init__(*args, **kwargs)
        make_plain(self.params)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - as typer calls it
        ctx.meta[_TYPED] = list(args)
        if "--" in args and args[0] not in self.commands:
            cut = args.index("--")
            ctx.meta[_COMMAND] = args[cut + 1 :]
            args = args[:cut]
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - as typer calls it
        if args[0] not in self.commands:
            typed = ctx.meta[_TYPED]
            end = typed.index("--") if "--" in typed else len(typed)
            begin = end - len(args)  # options are read up to the first word that is not one
            meant = shlex.join(["coatcheck", "mcp", *typed[:begin], "--", *typed[begin:]])
            ctx.fail(f"{args[0]!r} is not one of {', '.join(self.commands)}. A server's command goes after --: {meant}")
        return super().resolve_command(ctx, args)


mcp: typer.Typer = typer.Typer(
    cls=_Group,
    invoke_without_command=True,
    subcommand_metavar="-- COMMAND...",
    epilog=_EPILOG,
)


@mcp.callback(help=_HELP)
@reported
def run_proxy(
    ctx: typer.Context,
    *,
    storage: Annotated[
        str | None,
        typer.Option(envvar=STORAGE_VARIABLE, metavar="PATH|URL", help="Where content goes."),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(envvar=SCOPE_VARIABLE, metavar="SCOPE", help="Who may read back."),
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="Settings: a coatcheck.toml.")] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help='The server, as in [tools."NAME.*"].')] = None,
    url: Annotated[str | None, typer.Option(metavar="URL", help="The server's address, instead of a command.")] = None,
    header: Annotated[
        list[str] | None, typer.Option(metavar="NAME:VALUE", help="For that address; $NAME in it is a variable.")
    ] = None,
    oauth: Annotated[bool, typer.Option("--oauth", help="Log in at that address with a browser.")] = False,
    http: Annotated[
        int | None, typer.Option(metavar="PORT", min=1, max=65_535, help="Serve on 127.0.0.1 instead of stdio.")
    ] = None,
) -> None:
    """Put coatcheck in front of an MCP server."""
    if ctx.invoked_subcommand is not None:
        return
    refuse_empty(storage=storage, scope=scope, name=name)
    command = ctx.meta.get(_COMMAND, [])
    is_one = bool(command or url)
    # Before anything else is loaded: otherwise the first large result would wait for the vocabulary. Loading it takes
    # 77 MB, of which 29 are free for the rest afterwards. On a thread during the imports it would take as long, and
    # more memory at its peak.
    TiktokenCounter().warm_up()
    settings = _settings(config, fill_in=not is_one).stored_in(storage)
    if (bool(command) and bool(url)) or not (is_one or settings.servers):
        msg = (
            "name one server, by its command after `--`, as in `coatcheck mcp -- npx -y SERVER`, or by its --url;"
            " or several as [servers.NAME] in a file, and that file by --config"
        )
        raise CannotRun(msg)
    headers = _headers(header or [])
    if url is None and (headers or oauth):
        msg = "--header and --oauth are for --url; a command gets its secrets from the environment"
        raise CannotRun(msg)
    seconds = settings.start_seconds
    if is_one:
        one = _upstream(command, url, headers=headers, oauth=oauth, seconds=seconds)
        upstream: Upstream | dict[str, Upstream] = one if name is None else replace(one, name=name)
    else:
        upstream = _upstreams(settings, name)
    token, listener = (None, None) if http is None else (_token(), _listener(http))
    proxy = _proxy(upstream, settings, scope=scope, name=name)
    if listener is None:
        _serve(proxy)
    else:
        _serve_port(proxy, listener, token)


@mcp.command("stats", cls=PlainCommand, epilog="Exit codes: 0 counted, 2 could not run.")
@reported
def proxy_stats(
    *,
    storage: Annotated[
        str | None,
        typer.Option(envvar=STORAGE_VARIABLE, metavar="PATH|URL", help="The proxy's storage, if not the default one."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Count what proxies have stored, by scope.

    If you chose no scope, there is one for each server and folder, and it is
    shown as both. Others are shown as a digest and the tool that was last used.
    """
    from coatcheck_mcp.config import DEFAULT_STORAGE

    refuse_empty(storage=storage)
    where = storage or DEFAULT_STORAGE
    stats(storage=where, scope=None, as_json=as_json)
    if not as_json:
        everything = list_command(without_secret(where), all_scopes=True)
        one = "To list what a server stored in a folder, use the --scope that --json shows."
        show(f"{one} All{_hidden(where)}: {everything}")


def _settings(path: Path | None, *, fill_in: bool) -> Config:
    """Return the settings of a file, or the defaults. ``fill_in``: fill in variables, to start its servers.

    Raises:
        CannotRun: the extra is not installed, or the file is wrong.

    """
    if missing := missing_extra():
        raise CannotRun(missing)
    from coatcheck_mcp import load  # needs the extra

    with telling_each_mistake():
        return load(path, variables=os.environ if fill_in else None)


def _headers(given: Sequence[str]) -> dict[str, str]:
    """Return the headers given as ``NAME:VALUE``. Secrets belong in variables: others can see a command line."""
    from coatcheck_mcp.config import fault_in_header

    headers = {}
    for each in given:
        name, colon, value = each.partition(":")
        if not colon or not name.strip():
            msg = f"--header must be NAME:VALUE, such as 'Authorization: Bearer $TOKEN', not {each!r}"
            raise CannotRun(msg)
        filled_in = _VARIABLE.sub(partial(_value_of, header=name.strip()), value.strip())
        if fault := fault_in_header(filled_in):
            msg = f"the value of --header {name.strip()} {fault}; correct it, or the variable in it"
            raise CannotRun(msg)
        headers[name.strip()] = filled_in
    return headers


def _value_of(found: re.Match[str], *, header: str) -> str:
    """Return the value of a variable in a header, without whitespace around it: a token from a file has a line end.

    Raises:
        CannotRun: it is not set, so that the server would get its name in place of a token; or it is empty.

    """
    name = found[1] or found[2]
    value = os.environ.get(name, "").strip()
    if not value:
        what = "is empty; give it a value" if name in os.environ else "is not set; set it"
        msg = f"--header {header} names the variable {name}, which {what} where the proxy starts"
        raise CannotRun(msg)
    return value


def _upstream(
    command: Sequence[str], url: str | None, *, headers: Mapping[str, str], oauth: bool, seconds: float
) -> Upstream:
    from coatcheck_mcp import command_upstream, url_upstream

    if url is None:
        return command_upstream(command, start_seconds=seconds)
    try:
        return url_upstream(url, headers=headers, oauth=oauth, start_seconds=seconds)
    except ValueError as error:
        raise CannotRun(str(error)) from None


def _upstreams(settings: Config, name: str | None) -> dict[str, Upstream]:
    """Return the servers of the file by name."""
    from coatcheck_mcp import command_upstream

    if name is not None:
        msg = "--name is for the one server of the command line; those of the file have their names there"
        raise CannotRun(msg)
    found = {}
    seconds = settings.start_seconds
    for server in settings.servers.values():
        if server.command is None:
            found[server.name] = _upstream([], server.url or "", headers=server.headers, oauth=False, seconds=seconds)
        else:
            words = [server.command, *server.args]
            found[server.name] = command_upstream(words, env=server.env, cwd=server.cwd, start_seconds=seconds)
    return found


def _kept(storage: Storage, settings: Config) -> str:
    """Say how long stored content is kept. Only a folder has the limits of the settings."""
    from coatcheck.storage.file import FileStorage

    most: list[str] = []
    if settings.max_bytes is not None:
        most.append(f"{settings.max_bytes:,} bytes")
    if settings.max_scope_bytes is not None:
        most.append(f"{settings.max_scope_bytes:,} bytes for each scope")
    if settings.max_age_seconds is not None:
        most.append(f"{settings.max_age_seconds / 86_400:g} days without use")
    return f"at most {', '.join(most)}" if most and isinstance(storage, FileStorage) else "nothing is removed there"


def _proxy(
    upstream: Upstream | dict[str, Upstream],
    settings: Config,
    *,
    scope: Sequence[str] | None,
    name: str | None,
) -> Proxy:
    from coatcheck_mcp import Proxy
    from coatcheck_mcp.config import NO_EFFECT

    where = settings.storage
    limits = Limits(
        max_age=settings.max_age_seconds, max_bytes=settings.max_bytes, max_scope_bytes=settings.max_scope_bytes
    )
    stored = storage_at(where, may_be_new=True, limits=limits)
    chosen = scope_of(scope) if scope else settings.scope
    is_one = not isinstance(upstream, dict)
    proxy = Proxy(
        upstream,
        stored,
        scope=chosen,
        identity_of=None if chosen is not None else _said_once(where, stored, name),
        policy_of=partial(settings.rule_of, server=name) if is_one else settings.rule_of_shown,
        on_tools=partial(
            _say_unused, settings, partial(settings.names_of, server=name) if is_one else settings.names_of_shown
        ),
        offer_tool=settings.offer_tool,
        settings=settings.settings,
    )
    log_in_background()
    names = ", ".join(upstream) if isinstance(upstream, dict) else upstream.name
    above = f"{proxy.offloader.settings.max_result_tokens:,} tokens"
    rules = f", or by the rules of {settings.path}," if settings.tools else ""
    place = f"{without_secret(where)}; {_kept(stored, settings)}"
    complain(f"coatcheck: results of {names} above {above}{rules} are stored in {place}")
    for key in settings.limits_without_effect:
        complain(f"coatcheck: {settings.path}: {key} {NO_EFFECT}")
    if fault := _fault_of(stored):
        cut = f"above {proxy.offloader.settings.max_inline_tokens:,} tokens they are cut"
        complain(
            f"coatcheck: nothing can be stored there ({fault}): correct that, or name another folder with --storage"
        )
        complain(f"coatcheck: until then results stay in the conversation, and {cut}")
    if chosen is not None:
        complain(f"coatcheck: {_how_to_list(where, chosen)}")
    return proxy


def _fault_of(storage: Storage) -> str:
    """Return why a folder, created if need be, cannot be written to; "" if it can, or for other storages."""
    from coatcheck.storage.file import FileStorage
    from coatcheck.storage.folder import make_folders

    if not isinstance(storage, FileStorage):
        return ""
    try:
        make_folders(storage.root, (), fsync=False)
    except OSError as error:
        return storage.describe_error(error)
    return "" if os.access(storage.root, os.W_OK | os.X_OK) else f"no permission to write to {str(storage.root)!r}"


def _say_unused(settings: Config, names_of: Callable[[str], set[str]], tools: Collection[str]) -> None:
    """Tell people which rules of the file match no tool, and which tools may have been meant."""
    named = [names_of(tool) for tool in tools]
    patterns = settings.unused_patterns(named)
    if not patterns:
        return
    from difflib import get_close_matches  # only for the message

    unused = ", ".join(f'[tools."{pattern}"]' for pattern in patterns)
    near = [name for pattern in patterns for name in get_close_matches(pattern, set[str]().union(*named), n=1)]
    meant = f"; did you mean {' and '.join(near)}?" if near else ""
    shown = sorted(max(names, key=lambda name: (len(name), name)) for names in named)
    listed = ", ".join(shown[:_TOOLS_SHOWN]) + (f" and {len(shown) - _TOOLS_SHOWN} more" * (len(shown) > _TOOLS_SHOWN))
    without_server = all(len(names) == 1 for names in named)
    hint = "; without --name they have no server's name before them" if without_server else ""
    what = f"no tool matches {unused} in {settings.path}, so it changes nothing here"
    _say(f"{what}: tools are {listed}{hint}{meant}")


def _said_once(where: str, stored: Storage, name: str | None) -> Callable[[str], str]:
    """Return a function that makes a scope from a server's name, tells people how to list it, and writes a note.

    A server's name is known once it is up. The ``name`` that the user gave overrides what the server calls itself.
    """
    from coatcheck.cli.scope_notes import write_note
    from coatcheck_mcp.scope import folder_scope, working_folder

    folder = working_folder()  # now: it may be deleted later, as a worktree may

    @cache
    def said(server: str) -> str:
        scope: str = folder_scope(name or server, folder)
        _say(_how_to_list(where, scope))
        write_note(stored, scope, server=name or server)
        return scope

    return said


def _how_to_list(where: str, scope: Scope) -> str:
    return f"to list them{_hidden(where)}: {list_command(without_secret(where), scope)}"


def _hidden(where: str) -> str:
    """Say that a command hides a storage's secret, if it does: clients keep what they read on standard error."""
    return "" if without_secret(where) == where else ", with the secret in place of ***"


def _say(message: str) -> None:
    """Tell people something while requests run, without making the requests wait until it is read."""
    logging.getLogger("coatcheck_mcp").info("%s", message)


def _serve(proxy: Proxy) -> None:
    import anyio

    from coatcheck_mcp.serving import serve_stdio

    for stream in (0, 1):
        with suppress(OSError, AttributeError):  # closed, or Windows, where Python 3.11 lacks it
            os.set_blocking(stream, True)  # otherwise an answer that does not fit into the client's pipe is cut
    anyio.run(serve_stdio, proxy)
    logging.shutdown()
    # A thread still waits for the next line on standard input, and the interpreter would wait for the thread.
    os._exit(0)


def _token() -> str | None:
    """Return the token from the environment, without whitespace around it; None if there is none, so that one is made.

    Raises:
        CannotRun: it is empty, or has characters that no header can have, so that no client could send it.

    """
    from coatcheck_mcp.config import fault_in_header
    from coatcheck_mcp.transports import TOKEN_VARIABLE

    if (given := os.environ.get(TOKEN_VARIABLE)) is None:
        return None
    token = given.strip()
    fault, remedy = (fault_in_header(token), "correct it") if token else ("is empty", "give it a value")
    if fault:
        msg = f"{TOKEN_VARIABLE} {fault}, so no client could connect; {remedy}, or unset it to have one made"
        raise CannotRun(msg)
    return token


def _listener(port: int) -> socket.socket:
    """Open a port on this machine.

    Raises:
        CannotRun: the port is taken, or this user may not open it.

    """
    import socket  # only for HTTP

    from coatcheck_mcp.serving import LOOPBACK

    try:
        return socket.create_server((LOOPBACK, port))
    except OSError as error:
        why = os.strerror(error.errno or 0)
        msg = f"port {port} of {LOOPBACK} cannot be used: {why}; name another one with --http"
        raise CannotRun(msg) from None


def _serve_port(proxy: Proxy, listener: socket.socket, token: str | None) -> None:
    import secrets  # only for HTTP

    import anyio

    from coatcheck_mcp.serving import LOOPBACK, PATH, serve_http
    from coatcheck_mcp.transports import TOKEN_VARIABLE

    complain(f"coatcheck: serving on http://{LOOPBACK}:{listener.getsockname()[1]}{PATH}")
    if token is not None:
        complain(f"coatcheck: clients must send the header 'Authorization: Bearer' with the value of {TOKEN_VARIABLE}")
    else:
        token = secrets.token_urlsafe(32)
        complain(f"coatcheck: clients must send the header 'Authorization: Bearer {token}'")
    anyio.run(partial(serve_http, proxy, listener=listener, token=token))
