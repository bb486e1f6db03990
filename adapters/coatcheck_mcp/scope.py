"""Who may read what was stored: the scope of a client of an MCP server.

It comes from the user or from the transport, never from what a model sent. Session ids are of no use: the mcp package
gives each request of a modern client a new one.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from mcp.server.auth.provider import principal_components

from coatcheck import InvalidRequest

if TYPE_CHECKING:
    from mcp.server.auth.provider import AccessToken

__all__ = ("folder_scope", "no_scope", "subject_scope", "working_folder")


def working_folder() -> str:
    """Return the working directory without symbolic links; if it was deleted, what the shell left in ``PWD``, if any.

    Call this once, at the start: a tool may change the directory, and the scope must not change with it. It also reads
    the file system, which would block the event loop.
    """
    try:
        return os.path.realpath(os.getcwd())  # noqa: PTH109 - as a str
    except OSError:
        left = os.environ.get("PWD", "")
        return os.path.realpath(left) if os.path.isabs(left) else ""  # noqa: PTH117 - as a str


def folder_scope(server: str, folder: str) -> str:
    """Return the scope of a server that one client has started in a folder: the same after a restart.

    Args:
        server: the server's name.
        folder: the folder that it runs in, as ``working_folder`` returns it.

    """
    digest = hashlib.sha256(f"{server}\0{folder}".encode("utf-8", "surrogateescape")).hexdigest()
    return f"mcp-{digest[:32]}"


def subject_scope(token: AccessToken) -> tuple[str, str, str] | None:
    """Return the scope of the user that a token authenticates: client, issuer and subject. None: it names no subject.

    Without a subject, all users of a client would share one scope. Some verifiers put the subject only into the claims.
    """
    client, issuer, subject = principal_components(token)
    subject = subject or str((token.claims or {}).get("sub") or "")
    return (client or "-", issuer or "-", subject) if subject else None


def no_scope() -> InvalidRequest:
    """Return the error for a client over HTTP that nobody can identify."""
    return InvalidRequest(
        "nobody can tell the clients of this server apart, so nothing is stored: pass scope=... to OffloadMiddleware,"
        " or add authentication to the server, with tokens that name a subject (sub)"
    )
