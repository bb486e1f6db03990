"""Real agents for the Agent Framework adapter's tests. Their model is a script behind the framework's own client."""

# ruff: noqa: ANN401 - what the framework and tools pass is of any type

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent_framework import Agent, AgentSession, FunctionTool

from tests.adapters.scripts import Script
from tests.contract.agent_framework_harness import client_on

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from coatcheck.testing import ScriptedServer
    from coatcheck_agent_framework import ToolOffloader
    from tests.adapters.scripts import Turn

__all__ = ("LOCAL", "agent_on", "offloading", "playing", "results_in", "returning", "run")

LOCAL = {"store": False}
"""Options of an agent with a client that sends the whole history in each request."""


@contextmanager
def playing(server: ScriptedServer, script: Script) -> Iterator[Any]:
    """Serve a script, and yield the framework's client that plays it."""
    with server.conversation(script) as conversation:
        yield client_on(conversation)


def returning(result: object, name: str = "fetch", **more: Any) -> FunctionTool:
    """Return a tool that gives the same result each time, or raises it if it is an exception."""

    async def give() -> Any:
        if isinstance(result, Exception):
            raise result
        return result

    return FunctionTool(name=name, description="Gives a result.", func=give, **more)


def offloading(offload: ToolOffloader, *, before: Sequence[Any] = (), after: Sequence[Any] = ()) -> Mapping[str, Any]:
    """Return the arguments that make an agent offload, with other middleware before and after ours."""
    return {"middleware": [*before, *offload.middleware, *after], "context_providers": [offload]}


def agent_on(client: Any, offload: ToolOffloader | None, tools: Sequence[Any] = (), **more: Any) -> Agent:
    """Return an agent that offloads."""
    parts = {} if offload is None else offloading(offload)
    return Agent(client=client, tools=list(tools), default_options=LOCAL, **{**parts, **more})


async def run(
    server: ScriptedServer,
    offload: ToolOffloader | None,
    tools: Sequence[Any],
    *turns: Turn,
    session: str | AgentSession | None = "conversation-1",
    options: Mapping[str, Any] | None = None,
    **more: Any,
) -> Script:
    """Run an agent with these tools once, in a session, and return the script that it played."""
    script = Script(*turns)
    given = AgentSession(session_id=session) if isinstance(session, str) else session
    with playing(server, script) as client:
        await agent_on(client, offload, tools, **more).run("Go.", session=given, **(options or {}))
    return script


def results_in(messages: Sequence[Any]) -> list[Any]:
    """Return the tool results in messages."""
    return [item for message in messages for item in message.contents if item.type == "function_result"]
