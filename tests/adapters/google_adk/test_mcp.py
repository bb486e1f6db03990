"""Tools of a real MCP server over stdio: their results are offloaded like any other."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from mcp import StdioServerParameters

from coatcheck.testing.scripting import shown_references
from coatcheck_adk import OffloadPlugin
from tests.adapters.google_adk.agents import CONVERSATION, run
from tests.adapters.scripts import call, reading

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.contract.gemini import GeminiServer

SERVER = """
try:
    from mcp.server.mcpserver import MCPServer
except ImportError:  # its name before 2.0
    from mcp.server.fastmcp import FastMCP as MCPServer

from mcp.types import CallToolResult, EmbeddedResource, ImageContent, TextContent

server = MCPServer("rows")


def row(number):
    return {"id": number, "name": f"customer {number}", "note": "x" * 300}


@server.tool()
def fetch(count: int) -> list[dict]:
    "Fetch rows."
    return [row(number) for number in range(count)]


@server.tool()
def fetch_object(count: int) -> dict[str, dict]:
    "Fetch rows by their names."
    return {str(number): row(number) for number in range(count)}


@server.tool()
def look(count: int) -> list:
    "Look at something."
    image = ImageContent.model_validate({"type": "image", "data": "iVBORw0K" * count, "mimeType": "image/png"})
    return [TextContent(type="text", text="seen"), image]


@server.tool()
def read(count: int) -> list:
    "Read files."
    text = "words of a file " * 40
    resources = [{"uri": f"file:///{number}.txt", "text": text} for number in range(count)]
    files = [EmbeddedResource.model_validate({"type": "resource", "resource": each}) for each in resources]
    about = {"annotations": {"priority": 0.5}, "_meta": {"chunk": "KEY-7"}}
    return [*files, TextContent.model_validate({"type": "text", "text": "the end", **about})]


@server.tool()
def fail(count: int) -> CallToolResult:
    "Fail."
    content = {"type": "text", "text": "broken " * count}
    return CallToolResult.model_validate({"content": [content], "isError": True})


server.run("stdio")
"""


@asynccontextmanager
async def connected() -> AsyncIterator[McpToolset]:
    """Yield the tools of a server. Not a fixture: pytest would close it in another task."""
    server = StdioServerParameters(command=sys.executable, args=["-c", SERVER])
    tools = McpToolset(connection_params=StdioConnectionParams(server_params=server, timeout=240))
    try:
        yield tools
    finally:
        await tools.close()


async def test_one_search_covers_every_item_and_nothing_is_stored_twice(server: GeminiServer) -> None:
    plugin = OffloadPlugin()
    turns = (call(count=60), reading(pattern='"customer 58"', context_lines=1), reading(query="[?id==`58`].name"))
    async with connected() as tools:
        script = await run(server, plugin, [tools], *turns)

    placeholder, found, queried = script.shown[-1]
    assert "60 items, " in placeholder
    assert '"name": "customer 58"' in found
    assert '"customer 58"' in queried
    (reference,) = shown_references(placeholder)
    items = plugin.offloader.load(reference, scope=CONVERSATION).items
    assert items is not None
    assert [json.loads(item)["id"] for item in items] == list(range(60))


async def test_structured_content_that_repeats_an_object_is_stored_once(server: GeminiServer) -> None:
    async with connected() as tools:
        script = await run(server, OffloadPlugin(), [tools], call("fetch_object", count=60), reading(query='"58".name'))

    placeholder, found = script.shown[-1]
    assert "object with 60 keys" in placeholder
    assert "customer 58\n" in found


async def test_media_become_placeholders_and_small_results_and_errors_stay(server: GeminiServer) -> None:
    calls = [("look", {"count": 5_000}), ("look", {"count": 10}), ("fail", {"count": 3_000})]
    async with connected() as tools:
        script = await run(server, OffloadPlugin(), [tools], calls)

    large, small, failed = script.shown[-1]
    assert "[image: png, 30000 bytes | ref: " in large
    assert small == ""  # not one text but the MCP server's whole result, which the script shows as ""
    assert failed == ""


async def test_other_fields_of_text_items_are_stored_too(server: GeminiServer) -> None:
    plugin = OffloadPlugin()
    async with connected() as tools:
        script = await run(server, plugin, [tools], call("read", count=40), reading(pattern="file:///37.txt"))

    placeholder, found = script.shown[-1]
    stored = [plugin.offloader.load(each, scope=CONVERSATION).text for each in shown_references(placeholder)]
    assert all(f"file:///{number}.txt" in "".join(stored) for number in range(40))
    assert "KEY-7" in "".join(stored)
    assert '"priority"' in "".join(stored)
    assert "file:///37.txt" in found
