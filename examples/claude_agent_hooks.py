# /// script
# requires-python = ">=3.10"
# dependencies = ["coatcheck[claude]"]
#
# [tool.uv.sources]
# coatcheck = { path = ".." }  # not on the package index yet: this checkout
# ///
"""The hooks for the Claude Agent SDK, called as the SDK calls them: no client, no model, no network.

With an API key, `ClaudeSDKClient(options)` runs a whole agent with the same options.
"""

import asyncio

from claude_agent_sdk import ClaudeAgentOptions

from coatcheck import Offloader
from coatcheck_claude import READ_BACK, SERVER, hooks, server

offloader = Offloader()
options = ClaudeAgentOptions(
    hooks=hooks(offloader, scope="user-7"),
    mcp_servers={SERVER: server(offloader, scope="user-7")},
    allowed_tools=["Bash", READ_BACK],
)

log = "".join(f"{number} INFO served in {number % 90} ms\n" for number in range(5_000))
event = {
    "session_id": "one",
    "transcript_path": "",
    "cwd": "",
    "hook_event_name": "PostToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "journalctl"},
    "tool_response": {"stdout": log, "stderr": "", "interrupted": False, "isImage": False},
    "tool_use_id": "toolu_1",
}
hook = options.hooks["PostToolUse"][0].hooks[0]
answer = asyncio.run(hook(event, "toolu_1", {"signal": None}))
shown = answer["hookSpecificOutput"]["updatedToolOutput"]["stdout"]
print(shown)

assert len(shown) < len(log) // 10
reference = shown.splitlines()[2].split()[0]
print(offloader.retrieve(reference, scope="user-7", line_range="4000:4002").text)
