"""Find what would fail on this machine, or would have no effect, in a valid ``coatcheck.toml``.

The proxy accepts such a file: a program may be installed later, and one broken server must not stop the others. So only
``coatcheck mcp check`` looks for this.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from coatcheck_mcp.config import ENVIRONMENT, NO_EFFECT, VARIABLE, load
from coatcheck_mcp.programs import missing_folder, missing_program
from coatcheck_mcp.tables import read_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from coatcheck_mcp.config import Config, Server
    from coatcheck_mcp.tables import Table

__all__ = ("find_doubts",)

_WILDCARD = re.compile(r"[*?\[]")


def find_doubts(
    file: str | os.PathLike[str], *, variables: Mapping[str, str] = ENVIRONMENT, storage: str | None = None
) -> list[str]:
    """Return everything that would fail or have no effect if a proxy started here and now, with its line and key.

    Args:
        file: the file.
        variables: the environment that the proxy would have.
        storage: the storage that overrides the file's; None: nothing does.

    Raises:
        InvalidRequest: as for ``load``.

    """
    raw = load(file, variables=None)
    root = read_tables(raw.path or Path(file))
    named = (text for server in raw.servers.values() for _, text in _filled_in(server))
    unset = {name: f"${{{name}}}" for text in named for name in VARIABLE.findall(text)}  # unset ones stay as they are
    config = load(file, variables={**unset, **variables})
    found: list[str] = []
    for name, table in root.tables("servers").items():
        found += _of_variables(raw.servers[name], table, variables)
        found += _of_program(config.servers[name], table, variables)
    return [
        *_of_limits(config.stored_in(storage), root),
        *found,
        *_of_patterns(config, root),
    ]


def _filled_in(server: Server) -> Iterator[tuple[str, str]]:
    """Yield the values in which ``${NAME}`` is a variable, each with its key."""
    yield "url", server.url or ""
    for key, values in (("env", server.env), ("headers", server.headers)):
        for value in values.values():
            yield key, value


def _as_they_are(server: Server) -> Iterator[tuple[str, str]]:
    """Yield the values in which ``${NAME}`` stays as it is, each with its key."""
    yield "command", server.command or ""
    yield "cwd", os.fspath(server.cwd or "")
    for word in server.args:
        yield "args", word


def _of_variables(server: Server, table: Table, variables: Mapping[str, str]) -> Iterator[str]:
    for key, text in _filled_in(server):
        for name in VARIABLE.findall(text):
            if name not in variables:
                yield table.complaint(
                    key, f"names the variable {name}, which is not set here; set it where the proxy starts"
                )
    for key, text in _as_they_are(server):
        for name in VARIABLE.findall(text):
            where = "variables are filled in only in env, url and headers"
            yield table.complaint(key, f"has ${{{name}}}, which stays as it is: {where}")


def _of_program(server: Server, table: Table, variables: Mapping[str, str]) -> Iterator[str]:
    if server.command is None:
        return
    if folder := missing_folder(server.cwd):
        yield table.complaint("cwd", f"must be a folder: {folder}")
    if folder and os.path.dirname(server.command) and not os.path.isabs(server.command):  # noqa: PTH117, PTH120 - as in missing_program
        return  # the program would be looked for in that folder
    if wrong := missing_program(server.command, cwd=server.cwd, variables={**variables, **server.env}):
        yield table.complaint("command", f"cannot start: {wrong}")


def _of_limits(config: Config, root: Table) -> Iterator[str]:
    for key in config.limits_without_effect:
        yield root.complaint(key, NO_EFFECT)


def _of_patterns(config: Config, root: Table) -> Iterator[str]:
    """Yield what is wrong with patterns for unknown servers. If the file has no servers, ``--name`` may name one."""
    for pattern, table in root.tables("tools").items() if config.servers else ():
        server, dot, _ = _WILDCARD.split(pattern)[0].partition(".")
        if dot and server not in config.servers:
            names = ", ".join(config.servers)
            yield table.complaint(None, f"begins with {server!r}, but the file has no [servers.{server}], only {names}")
