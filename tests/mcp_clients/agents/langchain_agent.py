"""A LangChain agent with the tools of an MCP server, run by ``serve``. It does not need coatcheck."""

# ruff: noqa: ANN401 - jobs are any JSON

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain.agents.middleware import after_model
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool
from langchain_mcp_adapters.sessions import create_session
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.tools import BaseTool
    from langchain_mcp_adapters.sessions import Connection
    from mcp import ClientSession

MAX_STEPS = 2_000
"""A model that reads page after page takes many steps."""


async def converse(job: Mapping[str, Any]) -> dict[str, Any]:
    model = ChatOpenAI(model="scripted", base_url=job["model"], api_key="none", max_retries=0)  # type: ignore[arg-type] # a plain `str` is accepted
    async with create_session(connection_to(job["server"])) as session:
        await session.initialize()
        ask_to_keep(session, job["kept"])
        tools = [tool for tool in await load_mcp_tools(session) if tool.name not in job["final"]]
        agent: Any = create_agent(
            model,
            [*tools, *(final_tool(name, answer["text"]) for name, answer in job["final"].items())],
            middleware=[after_model(partial(cancel, job["cancelled"]))] if job["cancelled"] else [],
        )
        question = {"messages": [("user", "Find out.")]}
        state = await agent.ainvoke(question, {"recursion_limit": MAX_STEPS})
    last = state["messages"][-1]
    return {"answer": last.content if isinstance(last, ToolMessage) else None}


def connection_to(server: Mapping[str, Any]) -> Connection:
    if "url" in server:
        return {"transport": "streamable_http", **server}  # type: ignore[return-value] # one member of the union
    command, *arguments = server["command"]
    return {"transport": "stdio", "command": command, "args": arguments}


def ask_to_keep(session: ClientSession, names: list[str]) -> None:
    """Send ``_meta`` with calls of some tools, since LangChain's MCP adapter passes none on."""
    call = session.call_tool

    async def call_tool(name: str, *arguments: Any, **options: Any) -> Any:
        return await call(name, *arguments, **options, meta={"coatcheck": "keep"} if name in names else None)

    session.call_tool = call_tool  # type: ignore[method-assign] # callers see no difference


def final_tool(name: str, text: str) -> BaseTool:
    def give(number: int) -> str:
        return text

    return StructuredTool.from_function(give, name=name, description="Answers.", return_direct=True)


def cancel(words: Mapping[str, str], state: Any, _: object) -> dict[str, Any]:
    """Answer the calls of tools that the host cancels."""
    calls = [call for call in state["messages"][-1].tool_calls if call["name"] in words]
    return {
        "messages": [
            ToolMessage(words[call["name"]], tool_call_id=call["id"], name=call["name"], status="error")
            for call in calls
        ]
    }
