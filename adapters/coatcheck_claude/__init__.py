"""coatcheck for the Claude Agent SDK: a hook takes large results out of the conversation, one tool reads them back.

offloader = Offloader(FileStorage("./artifacts"))
options = ClaudeAgentOptions(
    hooks=hooks(offloader, scope="user-7"),
    mcp_servers={SERVER: server(offloader, scope="user-7")},
    allowed_tools=[READ_BACK],
)

Only the public names belong here. Each is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.adapting import front_door

if TYPE_CHECKING:
    from coatcheck_claude.hook import hooks
    from coatcheck_claude.retrieval import READ_BACK, SERVER, server

__all__ = ("READ_BACK", "SERVER", "hooks", "server")

if not TYPE_CHECKING:  # type checkers that see a ``__getattr__`` accept any name, even a misspelled one
    __getattr__, __dir__ = front_door(
        __name__,
        {"hook": ("hooks",), "retrieval": ("READ_BACK", "SERVER", "server")},
        needs="claude_agent_sdk",
        install="coatcheck[claude]",
    )
