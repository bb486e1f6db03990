"""Tools of a real MCP server over stdio: the framework turns them into ordinary function tools."""

# ruff: noqa: ANN401 - what servers return is of any type

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from agent_framework import Agent, MCPStdioTool

from coatcheck.testing.scripting import shown_references
from coatcheck_agent_framework import ToolOffloader
from tests.adapters.agent_framework.agents import LOCAL, offloading, playing
from tests.adapters.scripts import Script, call, reading

if TYPE_CHECKING:
    from coatcheck.testing import ScriptedServer

SERVER = """
try:
    from mcp.server.mcpserver import MCPServer
except ImportError:  # its name before 2.0
    from mcp.server.fastmcp import FastMCP as MCPServer

from mcp.types import CallToolResult, ImageContent, TextContent

server = MCPServer("rows")


@server.tool()
def fetch(count: int) -> list[dict]:
    "Fetch rows."
    return [{"id": number, "name": f"customer {number}", "note": "x" * 300} for number in range(count)]


@server.tool()
def look(count: int) -> list:
    "Look at something."
    image = ImageContent.model_validate({"type": "image", "data": "iVBORw0K" * count, "mimeType": "image/png"})
    return [TextContent(type="text", text="seen " * count), image]


@server.tool()
def fail(count: int) -> CallToolResult:
    "Fail."
    content = {"type": "text", "text": "broken " * count}
    return CallToolResult.model_validate({"content": [content], "isError": True})


server.run("stdio")
"""


async def run(server: ScriptedServer, offload: ToolOffloader, *turns: Any) -> tuple[Script, str]:
    """Run an agent with the server's tools. Return its script, and the session as it would be saved."""
    script = Script(*turns)
    rows = MCPStdioTool(name="rows", command=sys.executable, args=["-c", SERVER], max_host_payload_size_bytes=1)
    with playing(server, script) as client:
        async with rows, Agent(client=client, tools=[rows], default_options=LOCAL, **offloading(offload)) as agent:
            session = agent.create_session(session_id="conversation-1")
            await agent.run("Go.", session=session)
    return script, json.dumps(session.to_dict())


async def test_one_search_covers_every_item_and_no_result_is_raw(server: ScriptedServer) -> None:
    offload = ToolOffloader()

    script, saved = await run(server, offload, call(count=60), reading(pattern="customer 58"))

    placeholder, found = script.shown[-1]
    assert placeholder.startswith("Tool result offloaded.")
    assert "customer 58" in found
    assert '"name": "customer 30"' not in saved.replace("\\", "")
    assert "customer 59" in offload.offloader.load(shown_references(placeholder)[0], scope="conversation-1").text


async def test_media_become_placeholders_and_small_results_stay(server: ScriptedServer) -> None:
    offload = ToolOffloader(max_result_tokens=4_000)  # an image counts as much as it costs, whatever its size

    script, _ = await run(server, offload, [("look", {"count": 5_000}), ("look", {"count": 1})])

    large, small = script.shown[-1]
    assert "[image: png, 30000 bytes | ref: look-" in large
    assert small == "seen "


async def test_a_huge_error_is_offloaded(server: ScriptedServer) -> None:
    offload = ToolOffloader(max_inline_tokens=3_000)

    script, _ = await run(server, offload, [("fail", {"count": 100}), ("fail", {"count": 10_000})])

    small, huge = script.shown[-1]
    assert "broken " * 100 in small
    assert "Exception: Tool result offloaded." in huge
