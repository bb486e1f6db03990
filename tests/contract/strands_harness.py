"""The harness of the Strands adapter: a real agent with the plugin, and Strands' OpenAI model on the scripted server.

A harness builds the agent and runs it, sync or async. It also converts the fixture's blocks to Strands'.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from strands import Agent, ToolContext, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.hooks import BeforeToolCallEvent
from strands.models.openai import OpenAIModel
from strands.session import FileSessionManager

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck_strands import ContextOffloader, offloaded_references
from tests.serving import CLIENT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from strands.agent import AgentResult
    from strands.models import Model
    from strands.plugins import Plugin
    from strands.types.tools import AgentTool

    from coatcheck.testing import Received, Returned, Run, Transcript
    from coatcheck.testing.server import Conversation, ScriptedServer

__all__ = ("StrandsHarness", "agent_of", "native_block")

QUESTION = "Find out."
SENT = {"text", "json", "image", "document"}
"""Kinds of blocks that Strands' OpenAI model sends; it silently leaves out the others."""


class StrandsHarness:
    """Runs an agent with the plugin."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server

    def run(self, case: Run) -> Transcript:
        with ExitStack() as serving:
            agent, conversation = self._enter(serving, case)
            stopped = result = agent(QUESTION, invocation_state=state_of(case))
            while result.stop_reason == "interrupt":
                result = agent(resume(result), invocation_state=state_of(case))
            return transcript_of(conversation, agent, result, case, was_interrupted=result is not stopped)

    async def arun(self, case: Run) -> Transcript:
        with ExitStack() as serving:
            agent, conversation = self._enter(serving, case)
            stopped = result = await agent.invoke_async(QUESTION, invocation_state=state_of(case))
            while result.stop_reason == "interrupt":
                result = await agent.invoke_async(resume(result), invocation_state=state_of(case))
            return transcript_of(conversation, agent, result, case, was_interrupted=result is not stopped)

    def _enter(self, serving: ExitStack, case: Run) -> tuple[Agent, Conversation]:
        conversation = serving.enter_context(
            self._server.conversation(lambda received: case.model([without_prefix(one) for one in received]))
        )
        delegates = [
            self._delegate(serving, name, *results.values())
            for name, results in case.tools.items()
            if name in case.final_tools
        ]
        manager = None
        if case.identity is not None:
            folder = serving.enter_context(TemporaryDirectory())
            manager = FileSessionManager(case.identity, storage_dir=folder)
        return agent_of(case, self.model(conversation), delegates, manager), conversation

    def _delegate(self, serving: ExitStack, name: str, result: Returned) -> AgentTool:
        """Return a tool that answers the user in Strands: an agent that takes over the question."""
        conversation = serving.enter_context(self._server.conversation(lambda _: (), final_answer=text_of(result)))
        agent = Agent(self.model(conversation), callback_handler=None)
        return agent.as_tool(name=name, description="Answers.", delegate=True)

    def model(self, conversation: Conversation) -> Model:
        """Return one of Strands' own models, connected to the scripted server."""
        arguments = {"base_url": conversation.base_url, "api_key": "none", "max_retries": 0, "timeout": CLIENT_SECONDS}
        return OpenAIModel(client_args=arguments, model_id="scripted")


def agent_of(
    case: Run, model: Model, delegates: Sequence[AgentTool] = (), manager: FileSessionManager | None = None
) -> Agent:
    """Build the agent of a run."""
    plugins: list[Plugin] = []
    if case.offloader is not None:
        plugins = [case.share(partial(ContextOffloader, case.offloader, scope=case.scope, native_media=False))]
    own = {name: results for name, results in case.tools.items() if name not in case.final_tools}
    tools: list[Any] = [*(tool_of(name, results, case) for name, results in own.items()), *delegates]
    # Strands' default would drop the first messages of a conversation with many pages.
    keeping_all = NullConversationManager()
    agent = Agent(
        model,
        tools=tools,
        plugins=plugins,
        callback_handler=None,
        conversation_manager=keeping_all,
        session_manager=manager,
    )

    def cancel(event: BeforeToolCallEvent) -> None:
        if event.tool_use["name"] in case.cancelled_tools:
            event.cancel_tool = text_of(case.tools[event.tool_use["name"]][event.tool_use["input"]["number"]])

    agent.add_hook(cancel, BeforeToolCallEvent)
    return agent


def state_of(case: Run) -> dict[str, Any]:
    """Return the state that a host passes with an invocation."""
    return {"coatcheck": "keep"} if case.kept_tools else {}


def resume(stopped: AgentResult) -> Any:  # noqa: ANN401 - Strands' own type is private
    """Return the responses that a stopped agent needs to continue."""
    return [
        {"interruptResponse": {"interruptId": interrupt.id, "response": "go on"}}
        for interrupt in stopped.interrupts or ()
    ]


def tool_of(name: str, results: Mapping[int, Returned], case: Run) -> AgentTool:
    """Return a tool that gives a result for each number."""

    @tool(name=name, description="Gives a result.", context=True)
    def give(number: int, tool_context: ToolContext) -> dict[str, Any]:
        if name in case.interrupting_tools:
            tool_context.interrupt("may I?")
        result = results[number]
        status = "error" if result.is_error else "success"
        content = [native_block(block) for block in result.blocks]
        returned = {"toolUseId": tool_context.tool_use["toolUseId"], "status": status, "content": content}
        return cast("dict[str, Any]", case.watch_result(returned))

    return cast("AgentTool", case.watch(give))


def text_of(result: Returned) -> str:
    """Return the text parts of a result, joined by line ends."""
    return "\n".join(block.text for block in result.blocks if isinstance(block, TextBlock))


def native_block(block: Block) -> dict[str, Any]:
    """Convert a content block to Strands' format."""
    match block:
        case TextBlock():
            return {"text": block.text}
        case JsonBlock():
            return {"json": block.value}
        case MediaBlock():
            kind, _, form = block.media_type.partition("/")
            kind = kind if kind in {"image", "audio", "video"} else "document"
            named = {"name": block.name or "unnamed"} if kind == "document" else {}
            return {kind: {"format": form, **named, "source": {"bytes": block.data}}}
        case OpaqueBlock():
            return {"guardContent": {"text": {"text": block.native}}}


def transcript_of(
    conversation: Conversation, agent: Agent, result: AgentResult, case: Run, *, was_interrupted: bool
) -> Transcript:
    """Return the transcript with the blocks and marks that the client does not send, as the conversation holds them."""
    transcript = conversation.transcript()
    results = [
        block["toolResult"] for message in agent.messages for block in message["content"] if "toolResult" in block
    ]
    sent = results[: len(results) - len(case.final_tools)]  # the model does not see the answer to the user
    received = [
        replace(whole(one, each["content"]), is_error=each["status"] == "error", references=offloaded_references(each))
        for one, each in zip(transcript.received, sent, strict=True)
    ]
    answer = "\n".join(block["text"] for block in result.message["content"]) if case.final_tools else None
    return replace(transcript, received=tuple(received), answer=answer, was_interrupted=was_interrupted)


def whole(received: Received, content: list[Any]) -> Received:
    unsent = [block for block in content if not SENT & block.keys()]
    received = replace(received, raw=received.raw + json.dumps(unsent, default=repr)) if unsent else received
    return without_prefix(received)


def without_prefix(received: Received) -> Received:
    """Return a tool result without the "Error: " that Strands and our adapter put before a failing tool's message."""
    return replace(received, text=received.text.removeprefix("Error: "))
