"""What in a valid ``coatcheck.toml`` would fail on this machine, or would have no effect.

The proxy accepts such a file: a program may be installed later, and one broken server must not stop the others. So only
``coatcheck mcp check`` looks for this.
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
"""The part of a pattern before its first wildcard."""

_SUSPECT = re.compile(
    r"(?i)key|token|secret|pass(?:w|code|phrase|\b|_)|pwd|auth|credential|bearer|header|cookie|signature"
    r"|connection[-_]?string|(?<![a-z])(?:pat|sig)(?![a-z])|(?-i:^-H)"
)
_NAME = re.compile(r"[\w.-]+")
_ASSIGNS = r"[\"']?\s*=\s*|[\"']\s*:\s*|:\s+"
_VALUE_OF_NAME = re.compile(_ASSIGNS)
"""As in ``API_KEY=...``, ``{"token": ...`` or ``X-Api-Key: ...``, but not in ``auth-server:1.2``."""

_VALUE_OF_OPTION = re.compile(rf"{_ASSIGNS}|:|\s+(?![-\s])")
"""As in ``--token:...``, or in ``--token ...`` where a whole script is one word."""

_LOGIN = re.compile(r"(?<=://)[^/?#\s]*@")
_QUERY = re.compile(r"[?#]")
"""Where the query or the fragment of a URL begins."""

_LONG_WORD = re.compile(r"[A-Za-z0-9]{20,}")
"""If it has a digit, it is most likely a token: names have no digits, or are shorter."""

_HIDDEN = "***"


def find_doubts(file: str | os.PathLike[str], *, variables: Mapping[str, str] = os.environ) -> list[str]:
    """Return everything that would fail if a proxy started here and now, each with its line and key.

    Args:
        file: the file.
        variables: the environment that the proxy would have.

    Raises:
        InvalidRequest: as ``load``.

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
    return [*_of_storage(config, root), *found, *_of_patterns(config, root)]


def without_secrets(words: Collection[str]) -> list[str]:
    """Return words of a command line, or an address, without what looks like a secret.

    It hides what follows a suspect name, such as ``--api-key`` or ``API_KEY=``: the rest of the word, or the next word.
    It also hides the login, query and fragment of a URL, and long words of letters and digits.
    """
    shown: list[str] = []
    hides = False
    for word in words:
        is_option = word.startswith("-")
        shown.append(_HIDDEN if hides and not is_option else _without_secrets(word))
        hides = is_option and _NAME.fullmatch(word) is not None and _SUSPECT.search(word) is not None
    return shown


def _without_secrets(word: str) -> str:
    without = _without_login(word)
    query = _QUERY.search(without) if "://" in without else None
    without = f"{without[: query.end()]}{_HIDDEN}" if query else without
    return _LONG_WORD.sub(_hide_token, _without_value(without))


def _without_login(word: str) -> str:
    before, _, rest = word.partition("://")
    login, at, host = rest.rpartition("@")
    if ":" not in login:
        return _LOGIN.sub(f"{_HIDDEN}@", word)
    # What follows the colon may be a password with any character in it. A ? or # may also begin a query: then all the
    # rest is hidden.
    return f"{before}://{_HIDDEN}" if _QUERY.search(login) else f"{before}://{_HIDDEN}{at}{host}"


def _without_value(word: str) -> str:
    """Return a word without the value of its first suspect name and all after it, in time linear in its length."""
    for name in _NAME.finditer(word):
        value = (_VALUE_OF_OPTION if name[0].startswith("-") else _VALUE_OF_NAME).match(word, name.end())
        if value and value.end() < len(word) and _SUSPECT.search(name[0]):
            return f"{word[: value.end()]}{_HIDDEN}"
    return word


def _hide_token(word: re.Match[str]) -> str:
    return _HIDDEN if any(character.isdigit() for character in word[0]) else word[0]


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
        return  # it would be looked for in that folder
    if wrong := missing_program(server.command, cwd=server.cwd, variables={**variables, **server.env}):
        yield table.complaint("command", f"cannot start: {wrong}")


def _of_storage(config: Config, root: Table) -> Iterator[str]:
    if config.storage.startswith("~") and "storage" in config.given:  # the default keeps its ``~`` until it is used
        yield root.complaint("storage", "is in a home that is not known: name another folder")


def _of_patterns(config: Config, root: Table) -> Iterator[str]:
    """Yield what is wrong with patterns for unknown servers. If the file has none, ``--name`` may name the server."""
    for pattern, table in root.tables("tools").items() if config.servers else ():
        head = _HEAD.match(pattern)
        server, dot, _ = (head[0] if head else "").partition(".")
        if dot and server not in config.servers:
            names = ", ".join(config.servers)
            yield table.complaint(None, f"begins with {server!r}, but the file has no [servers.{server}], only {names}")
