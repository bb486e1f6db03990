"""Put ``coatcheck mcp`` in front of a server in a client's own configuration file, and take it away again.

Only the names that the command line uses belong here. Nothing in this package needs FastMCP.
"""

from __future__ import annotations

from coatcheck_mcp.install.clients import CLIENTS, Machine
from coatcheck_mcp.install.commands import Change, Found, clients_of, files_of, find_servers, install, uninstall
from coatcheck_mcp.install.files import write

__all__ = (
    "CLIENTS",
    "Change",
    "Found",
    "Machine",
    "clients_of",
    "files_of",
    "find_servers",
    "install",
    "uninstall",
    "write",
)
