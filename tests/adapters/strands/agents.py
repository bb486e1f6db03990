"""Real agents for the tests of the Strands adapter. Their model plays a script instead of asking a server."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeAlias

from strands import Agent, tool
from strands.models import Model

from coatcheck.testing.samples import numbered_lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from strands.types.content import Messages
    from strands.types.tools import AgentTool, ToolResult, ToolSpec

RETRIEVE = "retrieve_offloaded_content"
BIG = numbered_lines(2_000)
"""20,000 tokens by the estimate of Strands' models, and 30,000 by our counter."""

MIDDLE = "line 1,000 of 2,000"

Turn: TypeAlias = "str | Sequence[tuple[str, dict[str, Any]]]"
"""What the model does: answer with text, or call tools in parallel, each by its name and arguments."""


class ScriptedModel(Model):
    """Plays one turn after another, and repeats the last one if it is a str. Counts tokens as Strands' models do."""

    def __init__(self, *turns: Turn | Callable[[Messages], Turn]) -> None:
        self.turns = [*turns, "done"]
        self.seen: list[list[Any]] = []
        self.offered: list[list[str]] = []
        self.counted: list[Any] = []
        self.tokens: int | Exception | None = None

    def update_config(self, **_: object) -> None:
        pass

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - never called
        raise NotImplementedError

    async def count_tokens(self, messages: Messages, *_: object, **__: object) -> int:
        if all(
            message.keys() == {"role", "content"} for message in messages
        ):  # messages in a conversation have more keys
            self.counted.append(messages)
        if isinstance(self.tokens, Exception):
            raise self.tokens
        return await super().count_tokens(messages) if self.tokens is None else self.tokens

    async def stream(
        self, messages: Messages, tool_specs: list[ToolSpec] | None = None, *_: object, **__: object
    ) -> AsyncIterator[Any]:
        self.offered.append([spec["name"] for spec in tool_specs or ()])
        self.seen.append(json.loads(json.dumps(messages, default=repr)))
        turn = self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]
        turn = turn(messages) if callable(turn) else turn
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(turn, str):
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": turn}}}
            yield {"contentBlockStop": {}}
        else:
            for number, (name, arguments) in enumerate(turn):
                call = {"name": name, "toolUseId": f"call_{len(self.seen)}_{number}"}
                yield {"contentBlockStart": {"start": {"toolUse": call}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(arguments)}}}}
                yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(turn, str) else "tool_use"}}


def returning(*blocks: dict[str, Any] | str, name: str = "fetch", status: str = "success") -> AgentTool:
    """Return a tool that returns the very same dictionaries each time, as a caching tool would."""
    content = [{"text": block} if isinstance(block, str) else block for block in blocks]

    @tool(name=name, description="Gives a result.")
    def give() -> dict[str, Any]:
        return {"status": status, "content": content}

    return give


def call(name: str = "fetch", **arguments: object) -> list[tuple[str, dict[str, Any]]]:
    """Return a turn with one call."""
    return [(name, arguments)]


def agent(*plugins: Any, turns: Sequence[Any] = (), tools: Sequence[Any] | None = None, **more: Any) -> Agent:  # noqa: ANN401
    """Return an agent; by default it has a tool that gives ``BIG``, and its model calls that tool."""
    model = ScriptedModel(*(turns or (call(),)))
    given = [returning(BIG)] if tools is None else list(tools)
    return Agent(model, tools=given, plugins=list(plugins), callback_handler=None, **more)


def results(subject: Agent) -> list[ToolResult]:
    """Return the tool results in an agent's conversation."""
    return [
        block["toolResult"] for message in subject.messages for block in message["content"] if "toolResult" in block
    ]


def text_of(result: ToolResult) -> str:
    """Return the text in a tool result."""
    return "\n".join(block["text"] for block in result["content"] if "text" in block)


def run(*plugins: Any, **more: Any) -> ToolResult:  # noqa: ANN401
    """Run an agent once, and return its last tool result."""
    subject = agent(*plugins, **more)
    subject("go")
    return results(subject)[-1]


def references(result: ToolResult) -> list[str]:
    """Return the references listed in a placeholder, ours or theirs: the first word of each line."""
    listed = text_of(result).partition("[Stored references:]\n")[2]
    return re.findall(r"^  (\S+) \(", listed.partition("\n\n")[0], re.MULTILINE)


def reading(position: int = 0, **selectors: object) -> Callable[[Messages], Turn]:
    """Return a turn that reads back the reference at ``position`` in the last result."""

    def turn(messages: Messages) -> Turn:
        found = [block["toolResult"] for message in messages for block in message["content"] if "toolResult" in block]
        offloaded = next(result for result in found if references(result))
        return [(RETRIEVE, {"reference": references(offloaded)[position], **selectors})]

    return turn
