"""Real agents for the tests of the Pydantic AI adapter. Their model is a script behind Pydantic AI's own client."""

# ruff: noqa: ANN401 - what tools return is of any type

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent, Tool

from tests.adapters.scripts import Script
from tests.contract.pydantic_ai_harness import model_on

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pydantic_ai.models import Model
    from pydantic_ai.run import AgentRunResult

    from coatcheck.testing import ScriptedServer
    from coatcheck_pydantic_ai import ToolOffloader
    from tests.adapters.scripts import Turn

__all__ = ("parts_of", "playing", "returning", "run")


@contextmanager
def playing(server: ScriptedServer, script: Script) -> Iterator[Model]:
    """Serve a script, and yield the Pydantic AI model that plays it."""
    with server.conversation(script) as conversation:
        yield model_on(conversation)


def returning(output: object, name: str = "fetch", **more: Any) -> Tool[Any]:
    """Return a tool that gives the same output each time, or raises it if it is an exception."""

    async def give() -> Any:
        if isinstance(output, Exception):
            raise output
        return output

    return Tool(give, name=name, description="Gives a result.", **more)


async def run(
    server: ScriptedServer,
    offload: ToolOffloader,
    *turns: Turn,
    tools: Sequence[Any] = (),
    more: Sequence[Any] = (),
    **options: Any,
) -> tuple[Script, AgentRunResult[str]]:
    """Run an agent with these tools once; return the script that it played, and the result of the run.

    ``more`` are capabilities next to ours. ``options`` go to the run, and ``toolsets`` to the agent.
    """
    script = Script(*turns)
    with playing(server, script) as model:
        agent = Agent(model, tools=tools, toolsets=options.pop("toolsets", None), capabilities=[offload, *more])
        result = await agent.run("Go.", **{"conversation_id": "conversation-1", **options})
    return script, result


def parts_of(result: AgentRunResult[Any]) -> list[Any]:
    """Return the parts of all messages of a run, in order."""
    return [part for message in result.all_messages() for part in message.parts]
