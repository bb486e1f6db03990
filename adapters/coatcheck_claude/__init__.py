"""Large tool results leave the conversation of an agent of the Claude Agent SDK: a hook, and a tool that reads back.

offloader = Offloader(FileStorage("./artifacts"))
options = ClaudeAgentOptions(
    hooks=hooks(offloader, scope="user-7"),
    mcp_servers={"coatcheck": server(offloader, scope="user-7")},
    allowed_tools=[READ_BACK],
)
"""

from __future__ import annotations

try:
    import claude_agent_sdk  # noqa: F401 - only to see whether it is installed
except ImportError as error:
    msg = 'coatcheck_claude needs the Claude Agent SDK: pip install "coatcheck[claude]"'
    raise ImportError(msg) from error

from coatcheck_claude.hook import hooks
from coatcheck_claude.retrieval import READ_BACK, SERVER, server

__all__ = ("READ_BACK", "SERVER", "hooks", "server")
