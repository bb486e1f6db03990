"""An OpenAI Agents SDK agent with the tools of an MCP server, run by ``serve``. It does not need coatcheck."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents import (
    Agent,
    FunctionTool,
    OpenAIChatCompletionsModel,
    RunConfig,
    RunContextWrapper,
    Runner,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
)
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp, MCPUtil
from openai import AsyncOpenAI

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents.mcp import MCPToolMetaContext

MAX_TURNS = 2_000
"""A model that reads page after page takes many turns."""

SECONDS = 60
"""The time limit of one call, whether it returns a kilobyte or 100 MB."""


async def converse(job: Mapping[str, Any]) -> dict[str, Any]:
    final = job["final"]
    async with server_of(job) as server, AsyncOpenAI(base_url=job["model"], api_key="none", max_retries=0) as client:
        agent: Agent[Any] = Agent(
            name="scripted",
            model=OpenAIChatCompletionsModel("scripted", client),
            tool_use_behavior={"stop_at_tool_names": list(final)} if final else "run_llm_again",
        )
        # The agent would list the tools itself, but the host changes some of them first.
        offered = await MCPUtil.get_function_tools(
            server, convert_schemas_to_strict=False, run_context=RunContextWrapper(None), agent=agent
        )
        for tool in offered:
            if isinstance(tool, FunctionTool) and tool.name in job["cancelled"]:
                tool.tool_input_guardrails = [refusing(job["cancelled"][tool.name])]
        agent.tools = [
            *(tool for tool in offered if tool.name not in final),
            *(final_tool(name, answer["text"]) for name, answer in final.items()),
        ]
        result = await Runner.run(agent, "Find out.", max_turns=MAX_TURNS, run_config=RunConfig(tracing_disabled=True))
    return {"answer": result.final_output if final else None}


def server_of(job: Mapping[str, Any]) -> MCPServerStdio | MCPServerStreamableHttp:
    def meta_of(call: MCPToolMetaContext) -> dict[str, Any] | None:
        return {"coatcheck": "keep"} if call.tool_name in job["kept"] else None

    options: dict[str, Any] = {"tool_meta_resolver": meta_of, "client_session_timeout_seconds": SECONDS}
    server = job["server"]
    if "url" in server:
        params: Any = {"url": server["url"], "headers": server["headers"], "timeout": SECONDS}
        return MCPServerStreamableHttp(params, **options)
    command, *arguments = server["command"]
    return MCPServerStdio({"command": command, "args": arguments}, **options)


def refusing(reason: str) -> ToolInputGuardrail[Any]:
    return ToolInputGuardrail(lambda _: ToolGuardrailFunctionOutput.reject_content(reason))


def final_tool(name: str, text: str) -> FunctionTool:
    async def give(*_: object) -> str:
        return text

    schema = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
    return FunctionTool(
        name=name, description="Answers.", params_json_schema=schema, on_invoke_tool=give, strict_json_schema=False
    )
