"""Where each client keeps its servers: the files, the keys in them, and which one counts if a name is in several.

Only places belong here. Each is from the client's own documentation; those on macOS and Windows were never tried there.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ("CLIENTS", "Client", "Machine", "Place")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Where clients look: the user's folder, the project, and what the environment says."""

    home: Path = field(default_factory=Path.home)
    folder: Path = field(default_factory=Path.cwd)
    """The project, or a folder within it."""

    variables: Mapping[str, str] = field(default_factory=lambda: os.environ)
    system: str = sys.platform

    def upwards(self) -> tuple[Path, ...]:
        """Return the folder and those above it: the project may begin in any of them."""
        return (self.folder, *self.folder.parents)


@dataclass(frozen=True, slots=True)
class Place:
    """A table of servers: a file, and the keys that lead to the table."""

    path: Path
    keys: tuple[str, ...]
    reach: str
    """Where it applies: local, project or user; or ``file``, if the user named the file."""


@dataclass(frozen=True, slots=True)
class Client:
    """A program that starts MCP servers."""

    name: str
    """The name as users type it: ``claude-code``."""

    title: str
    """The name as its makers write it: ``Claude Code``."""

    places: Callable[[Machine], Iterator[Place]]
    """Yields its places; of two that apply to the same folder, the one that counts comes first."""

    tables: tuple[str, ...]
    """The keys that the table of servers may have in a file that the user names."""

    ranked: bool = False
    """Whether its documentation says which place counts if several have a server of the same name."""

    def places_in(self, file: Path, machine: Machine) -> list[Place]:
        """Return the places in a file that the user names."""
        known = [place for place in self.places(machine) if place.path == file]
        return known or [Place(file, (table,), "file") for table in self.tables]


def _claude_code(machine: Machine) -> Iterator[Place]:
    """Yield the places of https://code.claude.com/docs/en/mcp: local, then project, then user."""
    own = Path(machine.variables.get("CLAUDE_CONFIG_DIR") or machine.home) / ".claude.json"
    for folder in machine.upwards():
        for name in dict.fromkeys((str(folder), folder.as_posix())):  # on Windows, also with /
            yield Place(own, ("projects", name, "mcpServers"), "local")
    for folder in machine.upwards():
        yield Place(folder / ".mcp.json", ("mcpServers",), "project")
    yield Place(own, ("mcpServers",), "user")


def _cursor(machine: Machine) -> Iterator[Place]:
    """Yield the places of https://cursor.com/docs/mcp."""
    own = machine.home / ".cursor/mcp.json"
    for folder in machine.upwards():
        if folder != machine.home:
            yield Place(folder / ".cursor/mcp.json", ("mcpServers",), "project")
    yield Place(own, ("mcpServers",), "user")


def _vs_code(machine: Machine) -> Iterator[Place]:
    """Yield the places of https://code.visualstudio.com/docs/agents/reference/mcp-configuration."""
    for folder in machine.upwards():
        yield Place(folder / ".vscode/mcp.json", ("servers",), "project")
    yield Place(_profile(machine) / "Code/User/mcp.json", ("servers",), "user")


def _profile(machine: Machine) -> Path:
    """Return the folder in which programs of this system keep a user's settings."""
    if machine.system == "darwin":
        return machine.home / "Library/Application Support"
    if machine.system == "win32":
        return Path(machine.variables.get("APPDATA") or machine.home / "AppData/Roaming")
    return Path(machine.variables.get("XDG_CONFIG_HOME") or machine.home / ".config")


CLIENTS = {
    client.name: client
    for client in (
        Client("claude-code", "Claude Code", _claude_code, ("mcpServers",), ranked=True),
        Client("cursor", "Cursor", _cursor, ("mcpServers",)),
        Client("vscode", "VS Code", _vs_code, ("servers", "mcpServers")),
    )
}
"""The clients that ``install`` knows, by name."""
