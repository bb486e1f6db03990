"""The names that clients see when one proxy serves several servers: ``SERVER_TOOL``, and the same for prompts.

An underscore, because models' providers allow letters, digits, ``_`` and ``-`` in the name of a tool, and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck import RETRIEVAL_TOOL

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("find_clash", "shown_name", "split_name")

_BETWEEN = "_"


def shown_name(server: str, name: str) -> str:
    """Return the name under which clients see a tool or a prompt of a server."""
    return f"{server}{_BETWEEN}{name}"


def split_name(shown: object, servers: Iterable[str]) -> tuple[str, str] | None:
    """Return the server and its own name for what clients see; None if no server's name begins it."""
    for server in servers:
        if isinstance(shown, str) and shown.startswith(server + _BETWEEN):
            return server, shown.removeprefix(server + _BETWEEN)
    return None


def find_clash(servers: Iterable[str]) -> tuple[str, str] | None:
    """Return a server and what its name begins: another server's name, or the retrieval tool's; None if all are clear.

    With servers ``a`` and ``a_b``, nobody could tell which of them ``a_b_c`` belongs to.
    """
    names = list(servers)
    for server in names:
        for other in (*names, RETRIEVAL_TOOL):
            if other.startswith(server + _BETWEEN):
                return server, other
    return None
