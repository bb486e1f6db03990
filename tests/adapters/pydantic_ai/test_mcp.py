"""Tools of a real MCP server over stdio: their results and their errors are offloaded like any other."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.toolsets import PrefixedToolset

from coatcheck import InMemoryStorage
from coatcheck.testing.scripting import shown_references
from coatcheck_pydantic_ai import ToolOffloader
from tests.adapters.mcp_rows import SERVER
from tests.adapters.pydantic_ai.agents import run
from tests.adapters.scripts import call, reading

if TYPE_CHECKING:
    from coatcheck.testing import ScriptedServer


def rows() -> MCPToolset[Any]:
    """Return the tools of a server, which runs while an agent does."""
    return MCPToolset(StdioTransport(sys.executable, ["-c", SERVER]), init_timeout=240, max_retries=3)


async def test_one_query_covers_a_whole_list_of_rows(server: ScriptedServer) -> None:
    offload = ToolOffloader()
    turns = (call(count=60), reading(query="[?id==`58`].name"))

    script, _ = await run(server, offload, *turns, toolsets=[rows()])

    placeholder, found = script.shown[-1]
    assert '"customer 58"' in found
    assert len(json.loads(offload.offloader.load(shown_references(placeholder)[0], scope="conversation-1").text)) == 60
    assert len(placeholder) < 4_000


async def test_media_become_placeholders_and_small_results_stay(server: ScriptedServer) -> None:
    offload = ToolOffloader(max_result_tokens=4_000)

    script, _ = await run(server, offload, call("look", count=5_000), toolsets=[rows()])

    (large,) = script.shown[-1]
    assert "[image: png, 30000 bytes | ref: look-" in large
    assert "[audio: wav, 30000 bytes | ref: look-" in large


async def test_an_error_stays_below_the_inline_limit_and_is_offloaded_above_it(server: ScriptedServer) -> None:
    offload = ToolOffloader(max_inline_tokens=4_000)

    script, _ = await run(server, offload, call("fail", count=100), call("fail", count=20_000), toolsets=[rows()])

    small, huge = script.shown[-1]
    assert "broken " * 100 in small
    assert "Tool result offloaded." in huge
    assert len(huge) < 10_000


async def test_parallel_calls_of_two_conversations_keep_their_scopes(server: ScriptedServer) -> None:
    offload = ToolOffloader(InMemoryStorage())
    both = [("rows_fetch", {"count": 60}), ("rows_fetch_object", {"count": 60})]
    ran = await asyncio.gather(
        *(
            run(
                server,
                offload,
                both,
                toolsets=[PrefixedToolset(rows(), "rows")],
                conversation_id=f"conversation-{number}",
            )
            for number in range(2)
        )
    )

    for number, (script, _) in enumerate(ran):
        for placeholder in script.shown[-1]:
            assert "rows_fetch" in placeholder
            reference = shown_references(placeholder)[0]
            assert "customer 59" in offload.offloader.load(reference, scope=f"conversation-{number}").text
