"""coatcheck for the Model Context Protocol: in front of any server, within one, and in the files of its clients.

Only the front door belongs here: the public names, each loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.adapting import front_door

if TYPE_CHECKING:
    from coatcheck_mcp.config import Config, Server, load

__all__ = ("Config", "Server", "load")

__getattr__, __dir__ = front_door(
    __name__,
    {"config": ("Config", "Server", "load")},
    needs="coatcheck",  # what needs FastMCP says so itself: settings and `install` work without it
    install="coatcheck[mcp]",
)
