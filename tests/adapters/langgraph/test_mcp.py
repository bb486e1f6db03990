"""Tools of a real MCP server over stdio, in a real agent with a checkpointer: no second copy of a result stays."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from coatcheck_langchain import OffloadMiddleware, arestore_artifact, restore_artifact
from tests.adapters.langgraph.agents import agent_of, answers, call, question, say, thread

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.tools import BaseTool

client = pytest.importorskip("langchain_mcp_adapters.client", reason="langchain-mcp-adapters needs mcp 1.x")
adapted = pytest.importorskip("langchain_mcp_adapters.tools", reason="langchain-mcp-adapters needs mcp 1.x")

SERVER = """
from mcp.server.fastmcp import FastMCP
from mcp.types import ToolAnnotations

server = FastMCP("rows", log_level="ERROR")
row = lambda n: {"id": n, "name": f"größe {n}" + "x" * 400, "share": n / 7, "ok": n % 2 == 0, "none": None}


@server.tool()
def as_object(size: int) -> dict[str, dict]:
    return {str(n): row(n) for n in range(size)}


@server.tool()
def as_list(size: int) -> list[dict]:
    return [row(n) for n in range(size)]


@server.tool()
def as_lines(size: int) -> list[str]:
    return [f"line {n}: {'x' * 4000}" for n in range(size)]


@server.tool()
def as_text(size: int) -> str:
    return "\\n".join(f"line {n}" for n in range(size))


@server.tool(annotations=ToolAnnotations(readOnlyHint=True, coatcheck="keep"))
def as_kept(size: int) -> dict[str, dict]:
    # It asks to stay in the conversation, which is for the host to say.
    return {str(n): row(n) for n in range(size)}


server.run()
"""


SIZES = {"as_object": 2_000, "as_list": 5, "as_lines": 8, "as_text": 20_000, "as_kept": 20}


async def test_the_structured_copy_is_not_in_the_checkpoint_and_can_be_restored(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    script = tmp_path / "server.py"
    script.write_text(SERVER, encoding="utf-8")
    connection = {"command": sys.executable, "args": [str(script)], "transport": "stdio"}
    # One session for all. Otherwise each listing and each call would start a server: two seconds of processor time.
    async with client.MultiServerMCPClient({"rows": connection}).session("rows") as session:
        tools = {tool.name: tool for tool in await adapted.load_mcp_tools(session)}
        assert tools.keys() == SIZES.keys()
        for name, tool in tools.items():
            with subtests.test(name):
                await check_round_trip(tool, SIZES[name])


async def check_round_trip(tool: BaseTool, size: int) -> None:
    raw = await tool.ainvoke({"type": "tool_call", "name": tool.name, "args": {"size": size}, "id": "raw"})
    middleware = OffloadMiddleware(max_result_tokens=200, preview_tokens=50)
    saver = InMemorySaver()
    script = (call((tool.name, {"size": size})), say())
    agent, _ = agent_of([tool], *script, middleware=[middleware], checkpointer=saver)

    await agent.ainvoke(question(), thread("t"))

    state: Any = await agent.aget_state(thread("t"))
    (message,) = answers(state.values["messages"])
    assert list(raw.artifact) == ["structured_content"]
    assert len(json.dumps(message.artifact)) < 1_000 < len(json.dumps(raw.artifact))
    back = restore_artifact(message, middleware.offloader, scope="t")
    assert json.dumps(back, sort_keys=True) == json.dumps(raw.artifact, sort_keys=True)
    assert await arestore_artifact(message, middleware.offloader, scope="t") == back
