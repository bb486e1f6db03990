"""Who may read what was stored: the scope of a client of an MCP server.

It comes from the user or from the transport, never from what a model sent. Session ids are of no use: the library gives
each request of a modern client another one.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from mcp.server.auth.provider import principal_components

from coatcheck import InvalidRequest

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken

__all__ = ("folder_scope", "no_scope", "subject_scope")


def folder_scope(server: str, folder: str | Path | None = None) -> str:
    """Return the scope of a server that one client has started in a folder: the same after a restart.

    Args:
        server: the server's name.
        folder: the folder that it runs in; None for the working directory.

    """
    place = Path(folder or ".").resolve()
    digest = hashlib.sha256(f"{server}\0{place}".encode("utf-8", "surrogateescape")).hexdigest()
    return f"mcp-{digest[:32]}"


def subject_scope(token: AccessToken) -> tuple[str, ...]:
    """Return the scope of whom a token authenticates: client, issuer and subject, as far as the token names them."""
    return tuple(part or "-" for part in principal_components(token))


def no_scope() -> InvalidRequest:
    """Return the error for a client over HTTP whom nobody knows."""
    return InvalidRequest(
        "nobody can tell the clients of this server apart, so nothing is stored: pass scope=... to OffloadMiddleware,"
        " or add authentication to the server"
    )
