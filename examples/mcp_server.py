# /// script
# requires-python = ">=3.10"
# dependencies = ["coatcheck[mcp]"]
#
# [tool.uv.sources]
# coatcheck = { path = ".." }  # not on the package index yet: this checkout
# ///
"""An MCP server whose tool returns far too much: one line keeps the result out of all clients' conversations.

    python examples/mcp_server.py

Runs offline, in one process. FastMCP's own client plays the MCP client, and searches for the line that matters.
"""

import asyncio
import tempfile

from fastmcp import Client, FastMCP

from coatcheck import FileStorage
from coatcheck_mcp import OffloadMiddleware, offloaded_references

storage = FileStorage(tempfile.mkdtemp())
server = FastMCP("logs", middleware=[OffloadMiddleware(storage)])


@server.tool
def read_log(lines: int) -> str:
    """Return last night's log."""
    log = [f"12:{number % 60:02} INFO job={number} done" for number in range(lines)]
    log[31_337] = "12:17 ERROR job=31337 disk full on node-7"
    return "\n".join(log)


async def main() -> None:
    """Call the tool as a client would, and read the result back."""
    async with Client(server) as client:
        result = await client.call_tool("read_log", {"lines": 50_000})
        shown = result.content[0].text
        print(shown, "\n")
        (reference,) = offloaded_references(result)
        found = await client.call_tool("retrieve_offloaded_content", {"reference": reference, "pattern": "ERROR"})
        print(found.content[0].text)
    assert shown.startswith("Tool result offloaded.")
    assert "disk full on node-7" in found.content[0].text


asyncio.run(main())
