"""A Pydantic AI agent with the tools of an MCP server, run by ``serve``. It does not need coatcheck."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastmcp.client.transports import StdioTransport
from openai import AsyncOpenAI
from pydantic_ai import Agent, ToolOutput
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_ai.mcp import CallToolFunc, ToolResult

MAX_REQUESTS = 2_000
"""A model that reads page after page takes many requests."""


async def converse(job: Mapping[str, Any]) -> dict[str, Any]:
    final = job["final"]
    toolset = toolset_of(job)
    async with toolset, AsyncOpenAI(base_url=job["model"], api_key="none", max_retries=0) as client:
        agent: Agent[None, Any] = Agent(
            OpenAIChatModel("scripted", provider=OpenAIProvider(openai_client=client)),
            output_type=[*(final_tool(name, answer["text"]) for name, answer in final.items()), str],
            toolsets=[toolset.filtered(lambda _, tool: tool.name not in final)],
        )
        result = await agent.run("Find out.", usage_limits=UsageLimits(request_limit=MAX_REQUESTS))
    return {"answer": result.output if final else None}


def toolset_of(job: Mapping[str, Any]) -> MCPToolset[Any]:
    async def call(_: object, call_tool: CallToolFunc, name: str, arguments: dict[str, Any]) -> ToolResult:
        if name in job["cancelled"]:
            return job["cancelled"][name]  # type: ignore[no-any-return] # a str
        return await call_tool(name, arguments, metadata={"coatcheck": "keep"} if name in job["kept"] else None)

    # By default, the second error in a row ends the run, even if a wrong reference caused it.
    options: dict[str, Any] = {"process_tool_call": call, "tool_error_behavior": "failed"}
    server = job["server"]
    if "url" in server:
        return MCPToolset(server["url"], headers=server["headers"], **options)
    command, *arguments = server["command"]
    return MCPToolset(StdioTransport(command, arguments), **options)


def final_tool(name: str, text: str) -> ToolOutput[Any]:
    def give(number: int) -> str:
        return text

    return ToolOutput(give, name=name, description="Answers.")
