"""Agents for the tests of the OpenAI Agents adapter: real ones, whose model is a script behind the SDK's own client."""

# ruff: noqa: ANN401 - what the SDK and tools pass is of any type

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from agents import Agent, FunctionTool, RunConfig, Runner

from coatcheck import RETRIEVAL_TOOL
from coatcheck.testing import ModelCall
from coatcheck.testing.samples import numbered_lines
from coatcheck.testing.scripting import shown_references
from tests.contract.openai_agents_harness import model_on

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agents import Model

    from coatcheck.testing import Received, ScriptedServer

__all__ = ("BIG", "MIDDLE", "Script", "call", "config", "playing", "reading", "returning", "run", "text_outputs")

BIG = numbered_lines(2_000)
MIDDLE = "line 1,000 of 2,000"

Turn: TypeAlias = "Sequence[tuple[str, dict[str, Any]]] | Callable[[Sequence[Received]], Sequence[tuple[str, Any]]]"
"""What the model calls at once, each by its name and arguments, or what says so when it sees the results."""


_ids = itertools.count()


class Script:
    """Plays one turn after another, then answers; keeps what it was shown."""

    def __init__(self, *turns: Turn) -> None:
        self.turns = list(turns)
        self.shown: list[list[str]] = []

    def __call__(self, received: Sequence[Received]) -> Sequence[ModelCall]:
        self.shown.append([one.text for one in received])
        turn = self.turns.pop(0) if self.turns else ()
        calls = turn(received) if callable(turn) else turn
        # Other ids in each run: the SDK drops all but the last of a session's calls with the same.
        return [ModelCall(tool=name, arguments=arguments, call_id=f"call_{next(_ids)}") for name, arguments in calls]


def call(name: str = "fetch", **arguments: object) -> list[tuple[str, dict[str, Any]]]:
    """Return a turn with one call."""
    return [(name, arguments)]


def reading(result: int = 0, **selectors: object) -> Callable[[Sequence[Received]], list[tuple[str, Any]]]:
    """Return a turn that reads back the first reference of a result."""

    def turn(received: Sequence[Received]) -> list[tuple[str, Any]]:
        return [(RETRIEVAL_TOOL, {"reference": shown_references(received[result].text)[0], **selectors})]

    return turn


@contextmanager
def playing(server: ScriptedServer, script: Script) -> Iterator[Model]:
    """Serve a script, and give the SDK's model that asks it."""
    with server.conversation(script) as conversation:
        yield model_on(conversation, "responses")


def returning(output: object, name: str = "fetch", **more: Any) -> FunctionTool:
    """Return a tool that gives the same output each time; an exception is raised."""

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
    """Return the configuration of a run of one conversation."""
    return RunConfig(group_id=group_id, tracing_disabled=True, **more)


async def run(server: ScriptedServer, tools: Sequence[Any], *turns: Turn, **more: Any) -> Script:
    """Run an agent with these tools once, and return the script it played."""
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
