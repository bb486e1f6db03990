"""The harness of the Haystack adapter: an ``Agent`` with the hook, and the real OpenAI client.

A harness builds the agent and runs it, sync or async. It also converts the fixture's blocks to Haystack's. The client
refuses media in a tool result, and calls without an id. In these cases the harness reads what the client was about to
send from the framework's own messages.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from haystack.components.agents import Agent
from haystack.components.agents.state.state_utils import replace_values
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage, FileContent, ImageContent, TextContent
from haystack.hooks.human_in_the_loop import (
    AlwaysAskPolicy,
    BlockingConfirmationStrategy,
    ConfirmationHook,
    ConfirmationUIResult,
)
from haystack.hooks.human_in_the_loop.types import ConfirmationUI
from haystack.tools.errors import ToolInvocationError
from haystack.tools.tool import Tool
from haystack.utils import Secret

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck.testing import Received, Transcript
from coatcheck_haystack import SCOPE_CONTEXT_KEY, RetrievalTool, ToolResultOffloadHook, offloaded_references
from tests.serving import CLIENT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from haystack.components.agents.state import State
    from haystack.components.generators.chat.types import ChatGenerator
    from haystack.dataclasses import ToolCallResult

    from coatcheck import Offloader, Scope
    from coatcheck.testing import Returned, Run
    from coatcheck.testing.server import Conversation, ScriptedServer

__all__ = ("HaystackHarness",)

MAX_STEPS = 2_000
"""The step limit. A model that reads page after page takes many steps."""

REFUSED = ("Unsupported tool result", "`ToolCall` must have a non-null `id`")
"""The beginnings of the client's refusals."""

NUMBER = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}

Native = TextContent | ImageContent | FileContent


class Listener:
    """A ``before_llm`` hook that keeps the messages that the client is about to get."""

    def __init__(self) -> None:
        self.messages: Sequence[ChatMessage] = ()

    def run(self, state: State) -> None:
        self.messages = state.data["messages"]


class CodeCaller:
    """A ``before_tool`` hook that marks calls as made by code, as Anthropic's generator does."""

    def __init__(self, tools: frozenset[str]) -> None:
        self.tools = tools

    def run(self, state: State) -> None:
        *earlier, last = state.data["messages"]
        if any(call.tool_name in self.tools for call in last.tool_calls):
            said = {"caller": {"type": "code_execution_20250825", "tool_id": "1"}}
            calls = [replace(call, extra=said) for call in last.tool_calls]
            message = ChatMessage.from_assistant(last.text, tool_calls=calls)
            state.set("messages", [*earlier, message], handler_override=replace_values)


class FixtureTool(Tool):
    """Gives a result for each number. An error carries the fixture's own words."""

    def __init__(self, name: str, results: Mapping[int, Returned], case: Run) -> None:
        self.results = results
        self.watch_result = case.watch_result
        super().__init__(
            name=name,
            description="Gives a result.",
            parameters=NUMBER,
            function=self.give,
            outputs_to_string={"raw_result": True},
        )

    def give(self, number: int) -> str | list[Native]:
        result: str | list[Native] = self.watch_result(native_result(self.results[number]))
        return result

    def invoke(self, **arguments: Any) -> Any:  # noqa: ANN401 - as in Tool
        self._raise_if_error(arguments["number"])
        return super().invoke(**arguments)

    async def invoke_async(self, **arguments: Any) -> Any:  # noqa: ANN401 - as in Tool
        self._raise_if_error(arguments["number"])
        return await super().invoke_async(**arguments)

    def _raise_if_error(self, number: int) -> None:
        returned = self.results[number]
        if returned.is_error:
            raise ToolInvocationError(text_of(returned), tool_name=self.name)


class RejectingUser(ConfirmationUI):
    """Rejects every call of a tool, with a reason."""

    def __init__(self, results: Mapping[int, Returned]) -> None:
        self.results = results

    def get_user_confirmation(
        self, tool_name: str, tool_description: str, tool_params: dict[str, Any]
    ) -> ConfirmationUIResult:
        del tool_name, tool_description
        return ConfirmationUIResult(action="reject", feedback=text_of(self.results[tool_params["number"]]))


class HaystackHarness:
    """Runs an ``Agent``, with ``run`` or ``run_async``."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server

    def run(self, case: Run) -> Transcript:
        with self._server.conversation(case.model) as conversation:
            listener = Listener()
            agent = agent_of(case, self.generator(conversation), listener)
            try:
                ended = agent.run(messages=[ChatMessage.from_user("Find out.")], hook_context=context_of(case))
            except ValueError as error:
                return _seen_by(listener, conversation, error)
            return _transcript_of(conversation, ended)

    async def arun(self, case: Run) -> Transcript:
        with self._server.conversation(case.model) as conversation:
            listener = Listener()
            agent = agent_of(case, self.generator(conversation), listener)
            try:
                question = [ChatMessage.from_user("Find out.")]
                ended = await agent.run_async(messages=question, hook_context=context_of(case))
            except ValueError as error:
                return _seen_by(listener, conversation, error)
            return _transcript_of(conversation, ended)

    def generator(self, conversation: Conversation) -> ChatGenerator:
        """Return one of Haystack's own generators, connected to the scripted server."""
        return OpenAIChatGenerator(
            api_key=Secret.from_token("none"),
            model="scripted",
            api_base_url=conversation.base_url,
            max_retries=0,
            timeout=CLIENT_SECONDS,
            http_client_kwargs={"trust_env": False, "verify": False},  # no proxy; certificates take 70 ms to read
        )


def agent_of(case: Run, generator: ChatGenerator, listener: Listener) -> Agent:
    """Build the agent of a run."""
    tools: list[Tool] = [case.watch(FixtureTool(name, results, case)) for name, results in case.tools.items()]
    hooks: dict[str, list[Any]] = {"before_llm": [listener], "before_tool": [CodeCaller(case.code_tools)]}
    if case.offloader is not None:
        hook, reader = case.share(partial(hook_and_reader, case.offloader, case.scope))
        tools += [] if reader.name in case.tools else [reader]  # users add it themselves, but not twice under one name
        hooks["after_tool"] = [hook]
    if case.cancelled_tools:
        hooks["before_tool"] += [ConfirmationHook({name: rejection(case.tools[name]) for name in case.cancelled_tools})]
    return Agent(
        chat_generator=generator,
        tools=tools,
        hooks=hooks,  # type: ignore[arg-type] # a hook is any object with run
        exit_conditions=["text", *case.final_tools],
        max_agent_steps=MAX_STEPS,
    )


def hook_and_reader(offloader: Offloader, scope: Scope | None) -> tuple[ToolResultOffloadHook, RetrievalTool]:
    hook = ToolResultOffloadHook(offloader, scope=scope)
    return hook, RetrievalTool(hook)


def context_of(case: Run) -> dict[str, Any] | None:
    """Return the context that a host passes with a run."""
    context = {SCOPE_CONTEXT_KEY: case.identity} if case.identity is not None else {}
    return {**context, **({"coatcheck": "keep"} if case.kept_tools else {})} or None


def rejection(results: Mapping[int, Returned]) -> BlockingConfirmationStrategy:
    """Return a strategy that asks about every call, with a user who rejects each."""
    return BlockingConfirmationStrategy(confirmation_policy=AlwaysAskPolicy(), confirmation_ui=RejectingUser(results))


def native_result(result: Returned) -> str | list[Native]:
    """Return a result as a Haystack tool would: a ``str``, or a list of Haystack's content."""
    if len(result.blocks) == 1 and isinstance(result.blocks[0], TextBlock):
        return result.blocks[0].text
    return [native_block(block) for block in result.blocks]


def text_of(returned: Returned) -> str:
    """Return the text parts of a result, joined by line ends."""
    return "\n".join(block.text for block in returned.blocks if isinstance(block, TextBlock))


def native_block(block: Block) -> Native:
    """Convert a content block to Haystack's type."""
    match block:
        case TextBlock():
            return TextContent(block.text)
        case JsonBlock():
            return TextContent(json.dumps(block.value))
        case MediaBlock():
            encoded = base64.b64encode(block.data).decode()
            if block.media_type.startswith("image/"):
                return ImageContent(encoded, mime_type=block.media_type, validation=False)
            return FileContent(encoded, mime_type=block.media_type, filename=block.name, validation=False)
        case OpaqueBlock():
            # A file whose bytes nobody can decode.
            return FileContent(str(block.native), mime_type="application/x-unknown", validation=False)


def _seen_by(listener: Listener, conversation: Conversation, error: ValueError) -> Transcript:
    """Return the transcript of messages that the client refused to send; raise any other error."""
    if conversation.error is not None or not str(error).startswith(REFUSED):
        raise error
    results = [message.tool_call_result for message in listener.messages]
    received = tuple(_received(result) for result in results if result is not None)
    return Transcript(received=received, offered=conversation.transcript().offered)


def _transcript_of(conversation: Conversation, ended: Mapping[str, Any]) -> Transcript:
    """Return the transcript with a tool's answer to the user, and with the marks that are not sent."""
    transcript = conversation.transcript()
    results = [message for message in ended["messages"] if message.tool_call_result is not None]
    received = [
        replace(one, is_error=message.tool_call_result.error, references=offloaded_references(message))
        for one, message in zip(transcript.received, results, strict=False)  # the model does not see a final answer
    ]
    return replace(transcript, received=tuple(received), answer=_answer(ended))


def _answer(ended: Mapping[str, Any]) -> str | None:
    """Return a tool's answer to the user, if there is one."""
    result = ended["last_message"].tool_call_result
    return None if result is None else _received(result).text


def _received(result: ToolCallResult) -> Received:
    content = result.result
    texts = [content] if isinstance(content, str) else [part.text for part in content if isinstance(part, TextContent)]
    raw = content if isinstance(content, str) else [asdict(part) for part in content]
    return Received(text="\n".join(texts), raw=json.dumps(raw, ensure_ascii=False), is_error=result.error)
