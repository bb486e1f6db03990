"""An MCP server of rows, images and errors, as a program for the tests of adapters."""

from __future__ import annotations

__all__ = ("SERVER",)

SERVER = """
try:
    from mcp.server.mcpserver import Context, MCPServer
except ImportError:  # its name before 2.0
    from mcp.server.fastmcp import Context, FastMCP as MCPServer

from mcp.types import AudioContent, CallToolResult, EmbeddedResource, ImageContent, ResourceLink, TextContent

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
    data = "iVBORw0K" * count
    return [
        TextContent(type="text", text="seen " * count),
        ImageContent(type="image", data=data, mimeType="image/png"),
        AudioContent(type="audio", data=data, mimeType="audio/wav"),
    ]


@server.tool()
def read(count: int) -> list:
    "Read files."
    text = "words of a file " * 40
    files = [{"uri": f"file:///{number}.txt", "text": text} for number in range(count)]
    files.append({"uri": "store:///scan.bin", "blob": "iVBORw0K"})
    items = [EmbeddedResource.model_validate({"type": "resource", "resource": each}) for each in files]
    about = {"annotations": {"priority": 0.5}, "_meta": {"chunk": "KEY-7"}}
    end = TextContent.model_validate({"type": "text", "text": "the end", **about})
    link = ResourceLink.model_validate({"type": "resource_link", "uri": "file:///more.txt", "name": "more"})
    return [*items, end, link]


@server.tool()
def fail(count: int) -> CallToolResult:
    "Fail."
    content = {"type": "text", "text": "broken " * count}
    return CallToolResult.model_validate({"content": [content], "isError": True})


server.run("stdio")
"""
