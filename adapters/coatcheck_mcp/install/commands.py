"""``install``, ``uninstall`` and ``status``: which entry is meant, and what its file would hold afterwards.

Nothing is written here, so that a dry run is the same up to the last step; ``files.write`` writes.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from coatcheck import InvalidRequest
from coatcheck_mcp.install.clients import CLIENTS, Machine, Place
from coatcheck_mcp.install.entries import is_wrapped, unwrap, wrap
from coatcheck_mcp.install.files import difference, read
from coatcheck_mcp.install.spans import Value, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from coatcheck_mcp.install.clients import Client
    from coatcheck_mcp.install.files import Source

__all__ = ("Change", "Found", "clients_of", "files_of", "find_servers", "install", "uninstall")


@dataclass(frozen=True, slots=True)
class Found:
    """A server in a client's file."""

    server: str
    place: Place
    source: Source
    entry: Value

    @property
    def goes_through(self) -> bool:
        """Whether coatcheck is in front of it."""
        return is_wrapped(self.entry)


@dataclass(frozen=True, slots=True)
class Change:
    """What a file would hold; what it holds now if there is nothing to do."""

    found: Found
    text: str
    others: tuple[Place, ...]
    """Other places with a server of that name, which are not changed."""

    @property
    def is_needed(self) -> bool:
        """Whether the file does not hold the text yet."""
        return self.text != self.found.source.text

    @property
    def diff(self) -> str:
        """The difference, as ``diff -u`` shows it."""
        return difference(self.found.source.path, self.found.source.text, self.text)


def files_of(client: str, machine: Machine) -> list[Path]:
    """Return the files of a client that exist.

    Raises:
        InvalidRequest: there is no such client.

    """
    paths = dict.fromkeys(place.path for place in _client(client).places(machine))
    return [path for path in paths if os.path.lexists(path)]


def clients_of(file: Path, machine: Machine) -> list[str]:
    """Return the clients that keep servers in a file."""
    return [name for name, client in CLIENTS.items() if any(place.path == file for place in client.places(machine))]


def find_servers(
    client: str | None, machine: Machine, *, server: str | None = None, file: Path | None = None
) -> list[Found]:
    """Return the servers of a client, or those of one name. Of two with one name, the one that counts comes first.

    Args:
        client: its name; None: any, if a file is named.
        machine: where to look.
        server: the name of the server; None: all of them.
        file: the only file to look into; None: all those of the client.

    Raises:
        InvalidRequest: there is no such client, or a file cannot be read or understood; the message names file and
            line.

    """
    if file is None:
        places = list(_client(client).places(machine))
    elif client is None:
        tables = dict.fromkeys(table for each in CLIENTS.values() for table in each.tables)
        places = [Place(file, (table,), "file") for table in tables]
    else:
        places = _client(client).places_in(file, machine)
    sources = {path: read(path) for path in dict.fromkeys(place.path for place in places)}
    if file is not None and sources[file] is None:
        msg = f"there is no file {file}"
        raise InvalidRequest(msg)
    read_in = {path: (each, _parsed(each)) for path, each in sources.items() if each is not None and each.text.strip()}
    return [
        found for place in places if place.path in read_in for found in _servers(place, *read_in[place.path], server)
    ]


def install(
    client: str, server: str, machine: Machine, *, options: Sequence[str] = (), file: Path | None = None
) -> Change:
    """Return the change that puts ``coatcheck mcp`` in front of a server. If it is there, nothing changes.

    Args:
        client: the client's name.
        server: the server's name in its file.
        machine: where to look.
        options: those of ``coatcheck mcp``, such as ``["--config", "/a/coatcheck.toml"]``.
        file: the only file to look into.

    Raises:
        InvalidRequest: there is no such server, or more than one and the client does not say which counts; or the entry
            or its file is not understood.

    """
    found = find_servers(client, machine, server=server, file=file)
    chosen = _choose(_client(client), server, found, machine, file)
    return _change(chosen, found, partial(wrap, options=["--name", server, *options]), needed=not chosen.goes_through)


def uninstall(client: str, server: str, machine: Machine, *, file: Path | None = None) -> Change:
    """Return the change that takes ``coatcheck mcp`` away from a server. If it is not there, nothing changes.

    Raises:
        InvalidRequest: as for ``install``, or the entry is not one that ``install`` makes.

    """
    found = find_servers(client, machine, server=server, file=file)
    through = [each for each in found if each.goes_through]
    chosen = _choose(_client(client), server, through or found, machine, file)
    return _change(chosen, found, unwrap, needed=chosen.goes_through)


def _client(name: str | None) -> Client:
    if name is None or name not in CLIENTS:
        msg = f"{name!r} is not one of {', '.join(CLIENTS)}; for others, the lines to paste are in https://github.com/coatcheck/coatcheck/blob/main/docs/mcp-clients.md"
        raise InvalidRequest(msg)
    return CLIENTS[name]


def _parsed(source: Source) -> Value:
    try:
        return parse(source.text)
    except InvalidRequest as error:
        msg = f"{source.path}:{error}"
        raise InvalidRequest(msg) from None


def _servers(place: Place, source: Source, whole: Value, server: str | None) -> list[Found]:
    table = whole
    for key in place.keys:
        with _at(source, table):
            member = table.member(key)
        if member is None:
            return []
        table = member.value
        if table.members is None:
            with _at(source, table):
                msg = f"{key!r} must be an object"
                raise InvalidRequest(msg)
    if server is not None:
        with _at(source, table):
            table.member(server)
    return [
        Found(member.name, place, source, member.value)
        for member in table.members or ()
        if server in {None, member.name}
    ]


@contextmanager
def _at(source: Source, value: Value) -> Iterator[None]:
    """Add the file, and the line of a value, to an error from the block."""
    try:
        yield
    except InvalidRequest as error:
        line = 1 + source.text.count("\n", 0, value.start)
        msg = f"{source.path}:{line}: {error}"
        raise InvalidRequest(msg) from None


def _choose(client: Client, server: str, found: list[Found], machine: Machine, file: Path | None) -> Found:
    if not found:
        names = [each.server for each in find_servers(client.name, machine, file=file)]
        near = f"; it has {', '.join(map(repr, dict.fromkeys(names)))}" if names else ""
        msg = f"no file of {client.name} has a server {server!r}{near}; --file names another file"
        raise InvalidRequest(msg)
    if len(found) > 1 and not client.ranked:
        files = " and ".join(str(each.place.path) for each in found)
        msg = f"{server!r} is in {files}, and {client.name} does not say which one counts; choose with --file"
        raise InvalidRequest(msg)
    return found[0]


def _change(chosen: Found, found: list[Found], edit: Callable[[str, Value], str], *, needed: bool) -> Change:
    others = tuple(each.place for each in found if each is not chosen)
    if not needed:
        return Change(chosen, chosen.source.text, others)
    with _at(chosen.source, chosen.entry):
        try:
            return Change(chosen, edit(chosen.source.text, chosen.entry), others)
        except InvalidRequest as error:
            msg = f"{chosen.server!r} stays as it is: {error}"
            raise InvalidRequest(msg) from None
