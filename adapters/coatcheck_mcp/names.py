"""The names that clients see when one proxy serves several servers: ``SERVER_TOOL``, and the same for prompts.

The separator is an underscore because model providers allow only letters, digits, ``_`` and ``-`` in a tool's name.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from coatcheck import RETRIEVAL_TOOL

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("LONGEST_SERVER", "LONGEST_TOOL", "find_clash", "full_name", "shown_name", "split_name")

_BETWEEN = "_"

LONGEST_TOOL = 64
"""Characters. Several model providers refuse a whole request if one of its tools has a longer name."""

_DIGEST = 8

LONGEST_SERVER = 48
"""Characters. Leaves room for part of a tool's own name."""


def full_name(server: str, name: str) -> str:
    """Return the name of a server's tool or prompt with the server's name before it."""
    return f"{server}{_BETWEEN}{name}"


def shown_name(server: str, name: str) -> str:
    """Return the name by which clients know a tool: the full name; above 64 characters, its start and a digest."""
    full = full_name(server, name)
    if len(full) <= LONGEST_TOOL:
        return full
    digest = hashlib.sha256(full.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{full[: LONGEST_TOOL - _DIGEST - len(_BETWEEN)]}{_BETWEEN}{digest}"


def split_name(shown: object, servers: Iterable[str]) -> tuple[str, str] | None:
    """Split a name that clients see into the server and the name there; None if it begins with no server's name."""
    for server in servers:
        if isinstance(shown, str) and shown.startswith(server + _BETWEEN):
            return server, shown.removeprefix(server + _BETWEEN)
    return None


def find_clash(servers: Iterable[str]) -> tuple[str, str] | None:
    """Return a server whose name begins another server's or the retrieval tool's name, and that name; else None.

    With servers ``a`` and ``a_b``, nobody could tell which of them ``a_b_c`` belongs to.
    """
    names = list(servers)
    for server in names:
        for other in (*names, RETRIEVAL_TOOL):
            if other.startswith(server + _BETWEEN):
                return server, other
    return None
