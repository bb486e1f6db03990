"""The harness of Pydantic AI: a real agent with our capability, and its OpenAI models on the scripted server.

A harness builds the agent and runs it, sync or async. It also converts the fixture's blocks to Pydantic AI's.
"""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from openai import AsyncOpenAI
from pydantic_ai import (
    Agent,
    BinaryContent,
    DeferredToolRequests,
    DeferredToolResults,
    ImageUrl,
    RunContext,
    SkipToolExecution,
    Tool,
    ToolOutput,
    ToolReturn,
    UsageLimits,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck_pydantic_ai import ToolOffloader
from tests.contract.loops import on_a_loop
from tests.serving import CLIENT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.models import Model
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import ToolDefinition

    from coatcheck.testing import Received, Returned, Run, Transcript
    from coatcheck.testing.server import Conversation, ScriptedServer

__all__ = ("PydanticAIHarness", "model_on", "native_result")

Api: TypeAlias = Literal["responses", "chat completions"]

QUESTION = "Find out."
MAX_TURNS = 1_000
"""The most pages that a script may read, one per turn."""


class PydanticAIHarness:
    """Runs an agent with the capability."""

    def __init__(self, server: ScriptedServer, api: Api = "chat completions") -> None:
        self._server = server
        self._api = api

    def run(self, case: Run) -> Transcript:
        with self._serving(case) as (agent, conversation):
            result = stopped = on_a_loop(partial(agent.run_sync, QUESTION, **options_of(case)))
            while isinstance(result.output, DeferredToolRequests):
                result = on_a_loop(partial(agent.run_sync, **go_on(result), **options_of(case)))
            return transcript_of(conversation, result, case, was_interrupted=result is not stopped)

    async def arun(self, case: Run) -> Transcript:
        with self._serving(case) as (agent, conversation):
            result = stopped = await agent.run(QUESTION, **options_of(case))
            while isinstance(result.output, DeferredToolRequests):
                result = await agent.run(**go_on(result), **options_of(case))
            return transcript_of(conversation, result, case, was_interrupted=result is not stopped)

    @contextmanager
    def _serving(self, case: Run) -> Iterator[tuple[Agent[None, Any], Conversation]]:
        with self._server.conversation(
            lambda received: case.model([without_frame(one) for one in received])
        ) as conversation:
            yield agent_of(case, self.model(conversation)), conversation

    def model(self, conversation: Conversation) -> Model:
        """Return one of Pydantic AI's own models, connected to the scripted server."""
        return model_on(conversation, self._api)


@cache
def client() -> AsyncOpenAI:
    """Return the client that all runs share. Making one reads the machine's certificates."""
    return AsyncOpenAI(api_key="none", max_retries=0, timeout=CLIENT_SECONDS)


def model_on(conversation: Conversation, api: Api = "chat completions") -> Model:
    """Return one of Pydantic AI's own models, connected to the scripted server."""
    kind = OpenAIResponsesModel if api == "responses" else OpenAIChatModel
    provider = OpenAIProvider(openai_client=client().with_options(base_url=conversation.base_url))
    return kind("scripted", provider=provider)


def agent_of(case: Run, model: Model) -> Agent[None, Any]:
    """Build the agent of a run."""
    own = {name: results for name, results in case.tools.items() if name not in case.final_tools}
    finals: list[Any] = [
        ToolOutput(lambda number, results=results: text_of(results[number]), name=name, description="Answers.")
        for name, results in case.tools.items()
        if name in case.final_tools
    ]
    offload = []
    if case.offloader is not None:
        offload = [case.share(partial(ToolOffloader, case.offloader, scope=case.scope))]
    return Agent(
        model,
        output_type=[*finals, str, DeferredToolRequests],
        tools=[tool_of(name, results, case) for name, results in own.items()],
        capabilities=[*offload, Cancels(case)],
    )


def options_of(case: Run) -> dict[str, Any]:
    """Return the options that a host passes with a run."""
    return {"conversation_id": case.identity, "usage_limits": UsageLimits(request_limit=MAX_TURNS)}


def go_on(stopped: AgentRunResult[Any]) -> dict[str, Any]:
    """Return the arguments with which a stopped agent continues."""
    approvals: Any = {call.tool_call_id: True for call in stopped.output.approvals}
    return {
        "message_history": stopped.all_messages(),
        "deferred_tool_results": DeferredToolResults(approvals=approvals),
    }


class Cancels(AbstractCapability[Any]):
    """Acts as a host that cancels calls."""

    def __init__(self, case: Run) -> None:
        self._case = case

    async def before_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any]
    ) -> dict[str, Any]:
        """Answer in place of the tool."""
        if call.tool_name in self._case.cancelled_tools:
            raise SkipToolExecution(text_of(self._case.tools[call.tool_name][args["number"]]))
        return args


def tool_of(name: str, results: Mapping[int, Returned], case: Run) -> Tool[None]:
    """Return a tool that gives a result for each number."""

    async def give(number: int) -> Any:
        return case.watch_result(native_result(results[number]))

    made = Tool[None](
        give,
        name=name,
        description="Gives a result.",
        requires_approval=name in case.interrupting_tools,
        metadata={"coatcheck": "keep"} if name in case.kept_tools else None,
    )
    return case.watch(made)


def text_of(result: Returned) -> str:
    """Return the text parts of a result, joined by line ends."""
    return "\n".join(block.text for block in result.blocks if isinstance(block, TextBlock))


def native_result(result: Returned) -> Any:
    """Return a result as a Pydantic AI tool would: a ``str``, a value, a list with files, or several strings."""
    if result.is_error:
        raise ToolFailed(text_of(result))
    parts = [native_part(block) for block in result.blocks]
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, str) for part in parts):  # a list of strings would be one JSON value
        return ToolReturn(return_value=parts[0], content=parts[1:])
    return parts


def native_part(block: Block) -> Any:
    """Convert a content block to Pydantic AI's type."""
    match block:
        case TextBlock():
            return block.text
        case JsonBlock():
            return block.value
        case MediaBlock():
            return BinaryContent(block.data, media_type=block.media_type)
        case OpaqueBlock():
            return ImageUrl(f"https://127.0.0.1/{block.native}")


def transcript_of(
    conversation: Conversation, result: AgentRunResult[Any], case: Run, *, was_interrupted: bool
) -> Transcript:
    """Return the transcript, including what the user got. Files reach the model after the results, in user messages."""
    transcript = conversation.transcript()
    messages = json.loads(conversation.sent[-1]).get("messages", ())
    told = [message for message in messages if message["role"] == "user" and not holds_results(message["content"])]
    files = json.dumps(told[1:]) if told[1:] else ""
    parts = [part for message in result.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    received = [
        without_frame(replace(one, raw=one.raw + files, is_error=part.outcome == "failed"))
        for one, part in zip(transcript.received, parts, strict=False)  # the model does not see a final answer
    ]
    answer = result.output if case.final_tools else None
    return replace(transcript, received=tuple(received), answer=answer, was_interrupted=was_interrupted)


def holds_results(content: Any) -> bool:
    """Return whether a user message holds tool results, as those to Anthropic and Bedrock do."""
    parts = content if isinstance(content, list) else []
    return any("toolResult" in part or part.get("type") == "tool_result" for part in parts)


def without_frame(received: Received) -> Received:
    """Unwrap an error from the JSON that Pydantic AI puts around it if the API cannot mark errors."""
    try:
        said = json.loads(received.text)
    except ValueError:
        return received
    is_framed = isinstance(said, dict) and list(said) == ["error"] and isinstance(said["error"], str)
    return replace(received, text=said["error"]) if is_framed else received
