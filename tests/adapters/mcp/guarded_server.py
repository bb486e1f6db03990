"""A server on a port that wants an OAuth login, made with FastMCP's own provider. Run, not imported."""

from __future__ import annotations

import sys

from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from fastmcp.server.dependencies import get_access_token
from mcp.server.auth.settings import ClientRegistrationOptions

PORT = int(sys.argv[1])
PROVIDER = InMemoryOAuthProvider(
    base_url=f"http://127.0.0.1:{PORT}", client_registration_options=ClientRegistrationOptions(enabled=True)
)

server = FastMCP("guarded", auth=PROVIDER)


@server.tool
def who() -> str:
    """Return the name of the client that is logged in."""
    token = get_access_token()
    assert token is not None
    return str(PROVIDER.clients[token.client_id].client_name)


@server.tool
def big() -> str:
    """Return more than fits."""
    return "line of a log\n" * 9_000


server.run(transport="http", host="127.0.0.1", port=PORT, show_banner=False)
