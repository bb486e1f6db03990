"""Lists from a real MCP server, over its real client: each item is a block, and the list is stored as one content."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from mcp import StdioServerParameters, stdio_client
from strands.tools.mcp import MCPClient

from coatcheck import InMemoryStorage
from coatcheck_strands import ContextOffloader, offloaded_references
from tests.adapters.strands.agents import agent, call, reading, results, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from strands.types.tools import AgentTool

SERVER = """
try:
    from mcp.server.mcpserver import MCPServer
except ImportError:  # its name before 2.0
    from mcp.server.fastmcp import FastMCP as MCPServer

server = MCPServer("rows")

@server.tool()
def fetch(count: int) -> list[dict]:
    "Fetch rows."
    return [{"id": number, "name": f"customer {number}", "note": "x" * 300} for number in range(count)]

server.run("stdio")
"""


@pytest.fixture(scope="module")
def tools() -> Iterator[list[AgentTool]]:
    parameters = StdioServerParameters(command=sys.executable, args=["-c", SERVER])
    transport: Any = partial(stdio_client, parameters)  # Strands' types expect the streams of the next version
    with MCPClient(transport, startup_timeout=240) as client:
        yield client.list_tools_sync()


@pytest.mark.parametrize("count", [60, 2_000])
def test_one_search_covers_every_item(count: int, tools: list[AgentTool]) -> None:
    plugin = ContextOffloader(InMemoryStorage())
    wanted = f"customer {count - 2}"
    turns = (
        call(count=count),
        reading(pattern=f'"{wanted}"', context_lines=1),
        reading(query=f"[?id==`{count - 2}`].name"),
    )
    subject = agent(plugin, turns=turns, tools=tools)

    subject("go")

    placeholder, found, queried = results(subject)
    assert f"{count:,} items, " in text_of(placeholder)
    assert f'[item {count - 1}]|   "name": "{wanted}"' in text_of(found)
    assert f'"{wanted}"' in text_of(queried)
    (reference,) = offloaded_references(placeholder)
    items = plugin.offloader_of(subject).load(reference).items
    assert items is not None
    assert [json.loads(item)["id"] for item in items] == list(range(count))
