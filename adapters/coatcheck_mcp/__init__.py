"""coatcheck for MCP: oversized tool results stay out of the client's conversation, one tool reads them back.

Only the front door belongs here: the public names, each loaded when it is first used. ``OffloadMiddleware`` is for
authors of FastMCP servers; ``Proxy`` is what ``coatcheck mcp`` puts in front of any other server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.adapting import front_door

if TYPE_CHECKING:
    from coatcheck_mcp.convert import offloaded_references
    from coatcheck_mcp.middleware import OffloadMiddleware
    from coatcheck_mcp.proxy import Proxy

__all__ = ("OffloadMiddleware", "Proxy", "offloaded_references")

__getattr__, __dir__ = front_door(
    __name__,
    {
        "convert": ("offloaded_references",),
        "middleware": ("OffloadMiddleware",),
        "proxy": ("Proxy",),
    },
    needs="mcp_types",
    install="coatcheck[mcp]",
    more={"OffloadMiddleware": ("fastmcp", "coatcheck[mcp]")},
)
