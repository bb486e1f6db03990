"""What a right ``coatcheck.toml`` says that would fail here, or change nothing.

The proxy does not refuse such a file: a program may be there later, and another server must not wait for it. So only
``coatcheck mcp check`` asks.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from coatcheck_mcp.config import VARIABLE, load
from coatcheck_mcp.programs import missing_folder, missing_program
from coatcheck_mcp.tables import read_tables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from coatcheck_mcp.config import Config, Server
    from coatcheck_mcp.tables import Table

__all__ = ("find_doubts", "without_secrets")

_HEAD = re.compile(r"[^*?\[]*")
"""What a pattern begins with before its first wildcard."""

_SUSPECT = (
    r"(?:key|token|secret|pass(?:w|phrase|\b|_)|pwd|auth|credential|bearer|header|connection[-_]?string"
    r"|(?<![a-z])pat(?![a-z]))"
)
_SECRET_OPTION = re.compile(rf"(?i)^-.*{_SUSPECT}")
_SECRET_WORD = re.compile(rf"(?i)((?:-[\w-]*=)?[\w.-]*{_SUSPECT}[\w.-]*=).")
"""As in ``-e API_KEY=...``, or ``--env=API_KEY=...``: whatever follows is the value."""

_SECRET_PAIR = re.compile(rf"(?i)(?<![\w.-])([\w.-]*{_SUSPECT}[\w.-]*=)[^;&\s]+")
"""As in a connection string."""

_LOGIN = re.compile(r"(?<=://)[^/\s]*@")
_QUERY = re.compile(r"[?#]")
"""Where the query or the fragment of a URL begins."""

_LONG_WORD = re.compile(r"(?=[A-Za-z]*\d)[A-Za-z0-9]{20,}")
"""Letters and digits without a break: tokens are such, names are not."""

_HIDDEN = "***"


def find_doubts(file: str | os.PathLike[str], *, variables: Mapping[str, str] = os.environ) -> list[str]:
    """Return what would fail if a proxy started here and now, each with its line and key.

    Args:
        file: the file.
        variables: the environment that the proxy would have.

    Raises:
        InvalidRequest: as ``load``.

    """
    raw = load(file, variables=None)
    root = read_tables(raw.path or Path(file))
    named = (text for server in raw.servers.values() for _, text in _filled_in(server))
    unset = {name: f"${{{name}}}" for text in named for name in VARIABLE.findall(text)}  # they stay as they are
    config = load(file, variables={**unset, **variables})
    found: list[str] = []
    for name, table in root.tables("servers").items():
        found += _of_variables(raw.servers[name], table, variables)
        found += _of_program(config.servers[name], table, variables)
    return [*found, *_of_patterns(config, root)]


def without_secrets(words: Collection[str]) -> list[str]:
    """Return words of a command line, or an address, without what looks like a secret.

    These are the value of an option such as ``--api-key`` and of a variable such as ``API_KEY=...``, the login, query
    and fragment of a URL, and long words of letters and digits.
    """
    shown: list[str] = []
    hides = False
    for word in words:
        option, equals, _ = word.partition("=")
        if hides and not word.startswith("-"):
            shown.append(_HIDDEN)
        elif equals and _SECRET_OPTION.match(option):
            shown.append(f"{option}={_HIDDEN}")
        elif secret := _SECRET_WORD.match(word):
            shown.append(f"{secret[1]}{_HIDDEN}")
        else:
            without = _SECRET_PAIR.sub(rf"\1{_HIDDEN}", _LOGIN.sub(f"{_HIDDEN}@", _without_query(word)))
            shown.append(_LONG_WORD.sub(_HIDDEN, without))
        hides = not equals and _SECRET_OPTION.match(word) is not None
    return shown


def _without_query(word: str) -> str:
    found = _QUERY.search(word) if "://" in word else None
    return f"{word[: found.end()]}{_HIDDEN}" if found else word


def _filled_in(server: Server) -> Iterator[tuple[str, str]]:
    """Yield the values in which ``${NAME}`` is a variable, each with its key."""
    yield "url", server.url or ""
    for key, values in (("env", server.env), ("headers", server.headers)):
        for value in values.values():
            yield key, value


def _as_they_are(server: Server) -> Iterator[tuple[str, str]]:
    """Yield the other values, each with its key."""
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
        return  # it is looked for in that folder
    if wrong := missing_program(server.command, cwd=server.cwd, variables={**variables, **server.env}):
        yield table.complaint("command", f"cannot start: {wrong}")


def _of_patterns(config: Config, root: Table) -> Iterator[str]:
    """Yield the patterns that begin with the name of no server. In a file without servers, ``--name`` may say it."""
    for pattern, table in root.tables("tools").items() if config.servers else ():
        head = _HEAD.match(pattern)
        server, dot, _ = (head[0] if head else "").partition(".")
        if dot and server not in config.servers:
            names = ", ".join(config.servers)
            yield table.complaint(None, f"begins with {server!r}, but the file has no [servers.{server}], only {names}")
