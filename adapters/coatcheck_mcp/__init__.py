"""coatcheck for the Model Context Protocol: in front of any server, inside one, and in clients' configuration files.

Only the public names belong here. Each is loaded on first use. ``OffloadMiddleware`` is for authors of FastMCP servers;
``Proxy`` is what ``coatcheck mcp`` puts in front of any other server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.adapting import front_door

if TYPE_CHECKING:
    from coatcheck_mcp.config import Config, Server, load
    from coatcheck_mcp.convert import offloaded_references
    from coatcheck_mcp.middleware import OffloadMiddleware
    from coatcheck_mcp.proxy import Proxy
    from coatcheck_mcp.transports import Upstream, command_upstream, url_upstream

__all__ = (
    "Config",
    "OffloadMiddleware",
    "Proxy",
    "Server",
    "Upstream",
    "command_upstream",
    "load",
    "offloaded_references",
    "url_upstream",
)

_LIBRARY = ("mcp_types", "coatcheck[mcp]")  # the `mcp` package from its second major version on

if not TYPE_CHECKING:  # type checkers that see a ``__getattr__`` accept any name, even a misspelled one
    __getattr__, __dir__ = front_door(
        __name__,
        {
            "config": ("Config", "Server", "load"),
            "convert": ("offloaded_references",),
            "middleware": ("OffloadMiddleware",),
            "proxy": ("Proxy",),
            "transports": ("Upstream", "command_upstream", "url_upstream"),
        },
        needs="coatcheck",  # names that need a library are in ``more``: settings and ``install`` work without FastMCP
        install="coatcheck[mcp]",
        more={
            "OffloadMiddleware": ("fastmcp", "coatcheck[mcp]"),
            "Proxy": _LIBRARY,
            "Upstream": _LIBRARY,
            "command_upstream": _LIBRARY,
            "url_upstream": _LIBRARY,
        },
    )
