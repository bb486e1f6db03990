"""Real agents for the tests of the OpenAI Agents adapter. Their model is a script behind the SDK's own client."""

# ruff: noqa: ANN401 - what the SDK and tools pass is of any type

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agents import Agent, FunctionTool, RunConfig, Runner

from tests.adapters.scripts import BIG, MIDDLE, Script, call, reading
from tests.contract.openai_agents_harness import model_on

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agents import Model

    from coatcheck.testing import ScriptedServer
    from tests.adapters.scripts import Turn

__all__ = ("BIG", "MIDDLE", "Script", "call", "config", "playing", "reading", "returning", "run", "text_outputs")


@contextmanager
def playing(server: ScriptedServer, script: Script) -> Iterator[Model]:
    """Serve a script, and yield the SDK's model that plays it."""
    with server.conversation(script) as conversation:
        yield model_on(conversation, "responses")


def returning(output: object, name: str = "fetch", **more: Any) -> FunctionTool:
    """Return a tool that gives the same output each time, or raises it if it is an exception."""

    async def give(_: Any, __: str) -> Any:
        if isinstance(output, Exception):
            raise output
        return output

    schema = {"type": "object", "properties": {}}
    return FunctionTool(
        name=name,
        description="Gives a result.",
        params_json_schema=schema,
        on_invoke_tool=give,
        strict_json_schema=False,
        **more,
    )


def config(group_id: str | None = "conversation-1", **more: Any) -> RunConfig:
    """Return the configuration of a run in one conversation."""
    return RunConfig(group_id=group_id, tracing_disabled=True, **more)


async def run(server: ScriptedServer, tools: Sequence[Any], *turns: Turn, **more: Any) -> Script:
    """Run an agent with these tools once, and return the script that it played."""
    script = Script(*turns)
    options = {"run_config": config(), **more}
    mcp_servers = options.pop("mcp_servers", [])
    with playing(server, script) as model:
        agent = Agent(name="scripted", model=model, tools=list(tools), mcp_servers=mcp_servers)
        await Runner.run(agent, "Go.", **options)
    return script


def text_outputs(items: Sequence[Any]) -> list[str]:
    """Return the tool results in the items of a session."""
    return [str(item["output"]) for item in items if item.get("type") == "function_call_output"]
