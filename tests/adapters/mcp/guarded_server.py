"""A server on a port that requires an OAuth login, with FastMCP's own provider. Run as a program, not imported."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from fastmcp import FastMCP
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider
from fastmcp.server.dependencies import get_access_token
from mcp.server.auth.settings import ClientRegistrationOptions

if TYPE_CHECKING:
    from mcp.shared.auth import OAuthToken

PORT = int(sys.argv[1])


TOLD_SECONDS = 3
"""Seconds. The lifetime of a token that the client is told. The real one is longer: the server counts in whole seconds,
and a request in the last of them would need another login instead of another token."""


class Counting(InMemoryOAuthProvider):
    """Counts how often a token was renewed without a login."""

    renewals = 0

    async def exchange_authorization_code(self, *args: Any) -> OAuthToken:  # noqa: ANN401 - the library's
        """Return the first token after a login."""
        token = await super().exchange_authorization_code(*args)
        return token.model_copy(update={"expires_in": TOLD_SECONDS})

    async def exchange_refresh_token(self, *args: Any) -> OAuthToken:  # noqa: ANN401 - the library's
        """Return a new token for an old one."""
        self.renewals += 1
        return await super().exchange_refresh_token(*args)


PROVIDER = Counting(
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
def renewals() -> str:
    """Return how often a token was renewed."""
    return str(PROVIDER.renewals)


@server.tool
def big() -> str:
    """Return more than fits."""
    return "line of a log\n" * 9_000


server.run(transport="http", host="127.0.0.1", port=PORT, show_banner=False)
