"""OAuth for a server at a URL: FastMCP's client, which opens a browser. Only what that client lacks belongs here.

Tokens stay in memory, so each start of the proxy logs in once, for all its clients.
"""

from __future__ import annotations

import threading
import warnings
import webbrowser

from fastmcp.client.auth import OAuth

from coatcheck_mcp.hook import logger

__all__ = ("Login",)


class Login(OAuth):
    """A login that works without a browser on this machine, or with a browser that blocks until it is closed."""

    def __init__(self, url: str) -> None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Using in-memory token storage")  # the documentation says so
            super().__init__(url, client_name="coatcheck")

    async def redirect_handler(self, authorization_url: str) -> None:
        """Open a browser, and log the whole address on one line.

        FastMCP's own handler waits for the browser before it listens for what the browser sends back. So a browser that
        does not return at once, such as one in a terminal, never logs in. FastMCP's handler also requests the address
        once beforehand, to find out whether the server still knows the client. That is not needed here: nothing is left
        from an earlier start, because tokens stay in memory.
        """
        logger.info("to log in, a browser opens %s", authorization_url)
        threading.Thread(target=webbrowser.open, args=[authorization_url], daemon=True).start()
