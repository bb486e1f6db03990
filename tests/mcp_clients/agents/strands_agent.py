"""A Strands agent with the tools of an MCP server, run by ``serve``. It does not need coatcheck."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from strands import Agent
from strands.agent.conversation_manager import NullConversationManager
from strands.hooks import BeforeToolCallEvent
from strands.models.openai import OpenAIModel
from strands.tools.mcp import MCPClient

if TYPE_CHECKING:
    from collections.abc import Mapping

QUESTION = "Find out."


def converse(job: Mapping[str, Any]) -> dict[str, Any]:
    final = job["final"]
    with client_of(job) as client:
        tools = [tool for tool in client.list_tools_sync() if tool.tool_name not in final]
        agent = Agent(
            model_at(job["model"]),
            tools=[*tools, *(delegate(name, answer["model"]) for name, answer in final.items())],
            callback_handler=None,
            # The default drops the first messages of a conversation with many pages.
            conversation_manager=NullConversationManager(),
        )

        def cancel(event: BeforeToolCallEvent) -> None:
            event.cancel_tool = job["cancelled"].get(event.tool_use["name"], False)

        agent.add_hook(cancel, BeforeToolCallEvent)
        result = asyncio.run(agent.invoke_async(QUESTION)) if job["is_async"] else agent(QUESTION)
    return {"answer": "\n".join(block["text"] for block in result.message["content"]) if final else None}


def client_of(job: Mapping[str, Any]) -> MCPClient:
    server, meta = job["server"], {"coatcheck": "keep"} if job["kept"] else None
    if "url" in server:
        return MCPClient(url=server["url"], headers=server["headers"], meta=meta)
    command, *arguments = server["command"]
    parameters = StdioServerParameters(command=command, args=arguments)
    return MCPClient(lambda: stdio_client(parameters), meta=meta)


def model_at(url: str) -> OpenAIModel:
    return OpenAIModel(client_args={"base_url": url, "api_key": "none", "max_retries": 0}, model_id="scripted")


def delegate(name: str, url: str) -> Any:  # noqa: ANN401 - a tool
    """Return a tool that answers the user. In Strands, that is an agent that the question is passed on to."""
    agent = Agent(model_at(url), callback_handler=None)
    return agent.as_tool(name=name, description="Answers.", delegate=True)
