"""The harness of the OpenAI Agents SDK: a real agent with wrapped tools, and the SDK's models on the scripted server.

A harness builds the agent and runs it, sync or async. It also converts the fixture's blocks to the SDK's.
"""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import base64
import json
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agents import (
    Agent,
    FunctionTool,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    ProgrammaticToolCallingTool,
    RunConfig,
    Runner,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from openai import AsyncOpenAI

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck_openai import ToolOffloader
from tests.contract.loops import on_a_loop
from tests.serving import CLIENT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agents import Model, RunResult, RunState, Tool
    from agents.tool_context import ToolContext

    from coatcheck.testing import ModelCall, Received, Returned, Run, Transcript
    from coatcheck.testing.server import Conversation, ScriptedServer

__all__ = ("OpenAIAgentsHarness", "native_output")

Api: TypeAlias = Literal["responses", "chat completions"]

QUESTION = "Find out."
MAX_TURNS = 1_000
"""The most pages that a script may read, one per turn."""


class OpenAIAgentsHarness:
    """Runs an agent with wrapped tools."""

    def __init__(self, server: ScriptedServer, api: Api = "responses") -> None:
        self._server = server
        self._api = api

    def run(self, case: Run) -> Transcript:
        with self._serving(case) as (agent, conversation):
            stopped = result = on_a_loop(partial(Runner.run_sync, agent, QUESTION, **options_of(case)))
            while result.interruptions:
                result = on_a_loop(partial(Runner.run_sync, agent, go_on(result), **options_of(case)))
            return transcript_of(conversation, result, case, was_interrupted=result is not stopped)

    async def arun(self, case: Run) -> Transcript:
        with self._serving(case) as (agent, conversation):
            stopped = result = await Runner.run(agent, QUESTION, **options_of(case))
            while result.interruptions:
                result = await Runner.run(agent, go_on(result), **options_of(case))
            return transcript_of(conversation, result, case, was_interrupted=result is not stopped)

    @contextmanager
    def _serving(self, case: Run) -> Iterator[tuple[Agent, Conversation]]:
        def model(received: Sequence[Received]) -> Sequence[ModelCall]:
            return [replace(call, by_code=call.tool in case.code_tools) for call in case.model(received)]

        with self._server.conversation(model) as conversation:
            yield agent_of(case, model_on(conversation, self._api)), conversation


@cache
def client() -> AsyncOpenAI:
    """Return the client that all runs share. Making one reads the machine's certificates."""
    return AsyncOpenAI(api_key="none", max_retries=0, timeout=CLIENT_SECONDS)


def model_on(conversation: Conversation, api: Api) -> Model:
    """Return one of the SDK's own models, connected to the scripted server."""
    kind = OpenAIResponsesModel if api == "responses" else OpenAIChatCompletionsModel
    return kind("scripted", client().with_options(base_url=conversation.base_url))


def agent_of(case: Run, model: Model) -> Agent:
    """Build the agent of a run."""
    tools: list[Tool] = [tool_of(name, results, case) for name, results in case.tools.items()]
    if case.offloader is not None:
        tools = case.share(partial(ToolOffloader, case.offloader, scope=case.scope)).tools(tools)
    if case.code_tools:
        tools.append(ProgrammaticToolCallingTool())
    return Agent(
        name="scripted",
        model=model,
        tools=tools,
        tool_use_behavior={"stop_at_tool_names": list(case.final_tools)} if case.final_tools else "run_llm_again",
    )


def options_of(case: Run) -> dict[str, Any]:
    """Return the options that a host passes with a run."""
    config = RunConfig(
        group_id=case.identity,
        tracing_disabled=True,
        trace_metadata={"coatcheck": "keep"} if case.kept_tools else None,
    )
    return {"run_config": config, "max_turns": MAX_TURNS}


def go_on(stopped: RunResult) -> RunState[Any]:
    """Return the state with which a stopped agent continues."""
    state = stopped.to_state()
    for interruption in stopped.interruptions:
        state.approve(interruption)
    return state


def tool_of(name: str, results: Mapping[int, Returned], case: Run) -> FunctionTool:
    """Return a tool that gives a result for each number."""

    async def give(context: ToolContext[Any], arguments: str) -> Any:
        return case.watch_result(native_output(results[json.loads(arguments)["number"]]))

    def cancel(data: Any) -> ToolGuardrailFunctionOutput:
        number = json.loads(data.context.tool_arguments)["number"]
        return ToolGuardrailFunctionOutput.reject_content(text_of(results[number]))

    schema = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
    more: dict[str, Any] = {"allowed_callers": ["programmatic"]} if name in case.code_tools else {}
    made = FunctionTool(
        name=name,
        description="Gives a result.",
        params_json_schema=schema,
        on_invoke_tool=give,
        strict_json_schema=False,
        needs_approval=name in case.interrupting_tools,
        tool_input_guardrails=[ToolInputGuardrail(cancel)] if name in case.cancelled_tools else None,
        **more,
    )
    return case.watch(made)


def text_of(result: Returned) -> str:
    """Return the text parts of a result, joined by line ends."""
    return "\n".join(block.text for block in result.blocks if isinstance(block, TextBlock))


def native_output(result: Returned) -> Any:
    """Return a result as one of the SDK's tools would: a ``str``, a value or parts."""
    match result.blocks:
        case [TextBlock(text)]:
            return text
        case [JsonBlock(value)]:
            return value
        case blocks:
            return [native_part(block) for block in blocks]


def native_part(block: Block) -> Any:
    """Convert a content block to the SDK's type."""
    match block:
        case TextBlock():
            return ToolOutputText(text=block.text)
        case JsonBlock():
            return block.value
        case MediaBlock():
            url = f"data:{block.media_type};base64,{base64.b64encode(block.data).decode()}"
            if block.media_type.startswith("image/"):
                return ToolOutputImage(image_url=url)
            return ToolOutputFileContent(file_data=url, filename=block.name)
        case OpaqueBlock():
            return ToolOutputFileContent(file_id=str(block.native))


def transcript_of(conversation: Conversation, result: RunResult, case: Run, *, was_interrupted: bool) -> Transcript:
    """Return the transcript, including what the user got."""
    answer = result.final_output if case.final_tools else None
    return replace(conversation.transcript(), answer=answer, was_interrupted=was_interrupted)
