"""The harness of the Microsoft Agent Framework: a real agent, and the framework's clients on the scripted server.

A harness builds the agent and runs it. It also converts the fixture's blocks to the framework's.
"""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agent_framework import Agent, Content, FunctionMiddleware, FunctionTool, Message, MiddlewareTermination
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from openai import AsyncOpenAI

from coatcheck import Block, MediaBlock, OpaqueBlock, TextBlock
from coatcheck_agent_framework import ToolOffloader
from tests.serving import CLIENT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agent_framework import AgentResponse, FunctionInvocationContext

    from coatcheck.testing import Received, Returned, Run, Transcript
    from coatcheck.testing.server import Conversation, ScriptedServer

__all__ = ("AgentFrameworkHarness", "client_on", "returned_by")

Api: TypeAlias = Literal["responses", "chat completions"]

QUESTION = "Find out."
MAX_TURNS = 1_000
"""The most pages that a script may read, one per turn."""

BEFORE_ERRORS = "Error: Function failed. Exception: "
"""The framework's prefix to the message of a failed tool, when it shows that message."""


class AgentFrameworkHarness:
    """Runs an agent with our middleware and our context provider."""

    def __init__(self, server: ScriptedServer, api: Api = "responses") -> None:
        self._server = server
        self._api = api

    def run(self, case: Run) -> Transcript:
        return asyncio.run(self.arun(case))

    async def arun(self, case: Run) -> Transcript:
        with self._server.conversation(case.model) as conversation:
            agent = agent_of(case, client_on(conversation, self._api))
            session = None
            if case.identity is not None or case.interrupting_tools:  # only a session can resume an interrupted run
                session = agent.create_session(session_id=case.identity)
            options: Any = {"session": session}
            if case.kept_tools:
                options["function_invocation_kwargs"] = {"coatcheck": "keep"}
            first = last = await agent.run(QUESTION, **options)
            while last.user_input_requests:
                last = await agent.run(approval_of(last), **options)
            return transcript_of(conversation, last, case, was_interrupted=last is not first)


@cache
def openai() -> AsyncOpenAI:
    """Return the client that all runs share. Making one reads the machine's certificates."""
    return AsyncOpenAI(api_key="none", max_retries=0, timeout=CLIENT_SECONDS)


def client_on(conversation: Conversation, api: Api = "responses") -> Any:
    """Return one of the framework's own clients, connected to the scripted server."""
    kind = OpenAIChatClient if api == "responses" else OpenAIChatCompletionClient
    client = kind(model="scripted", async_client=openai().with_options(base_url=conversation.base_url))
    client.function_invocation_configuration["max_iterations"] = MAX_TURNS
    client.function_invocation_configuration["include_detailed_errors"] = True
    return client


def agent_of(case: Run, client: Any) -> Agent:
    """Build the agent of a run."""
    offload = None
    if case.offloader is not None:
        offload = case.share(partial(ToolOffloader, case.offloader, scope=case.scope))
    return Agent(
        client=client,
        tools=[tool_of(name, results, case) for name, results in case.tools.items()],
        middleware=[Cancelling(case), *([] if offload is None else offload.middleware), Ending(case)],
        context_providers=[] if offload is None else [offload],
        default_options={"store": False},  # the provider keeps no history, so each request holds all of it
    )


def approval_of(stopped: AgentResponse) -> Message:
    """Return the approvals that a stopped agent needs to continue."""
    requests = stopped.user_input_requests
    return Message("user", [request.to_function_approval_response(approved=True) for request in requests])


class Cancelling(FunctionMiddleware):
    """Answers in place of tools that a host cancels."""

    def __init__(self, case: Run) -> None:
        self._case = case

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        name, arguments = context.function.name, dict(context.arguments)
        if name not in self._case.cancelled_tools:
            await call_next()
            return
        context.result = returned_by(self._case.tools[name][arguments["number"]])


class Ending(FunctionMiddleware):
    """Ends the run with a tool's result, as the framework's own handoffs do."""

    def __init__(self, case: Run) -> None:
        self._case = case

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        await call_next()
        if context.function.name in self._case.final_tools:
            raise MiddlewareTermination


def tool_of(name: str, results: Mapping[int, Returned], case: Run) -> FunctionTool:
    """Return a tool that gives a result for each number."""

    async def give(number: int) -> list[Content]:
        result: list[Content] = case.watch_result(returned_by(results[number]))
        if results[number].is_error:
            raise LookupError("\n".join(item.text or "" for item in result))
        return result

    made = FunctionTool(
        name=name,
        description="Gives a result.",
        func=give,
        approval_mode="always_require" if name in case.interrupting_tools else "never_require",
    )
    return case.watch(made)


def returned_by(result: Returned) -> list[Content]:
    """Return a result as one of the framework's tools would."""
    return [content_of(block) for block in result.blocks]


def content_of(block: Block) -> Content:
    """Convert a content block to the framework's type."""
    match block:
        case TextBlock():
            return Content.from_text(block.text)
        case MediaBlock():
            properties = {} if block.name is None else {"filename": block.name}
            return Content.from_data(block.data, block.media_type, additional_properties=properties)
        case OpaqueBlock():
            return Content.from_uri(f"https://127.0.0.1/{block.native}", media_type="image/png")
        case _:
            raise TypeError(block)


def transcript_of(
    conversation: Conversation, response: AgentResponse, case: Run, *, was_interrupted: bool
) -> Transcript:
    """Return the transcript, including what the user got."""
    transcript = conversation.transcript()
    results = [item for message in response.messages for item in message.contents if item.type == "function_result"]
    return replace(
        transcript,
        received=tuple(
            replace(without_the_frameworks_words(one), is_error=item.exception is not None)
            for one, item in zip(transcript.received, results, strict=False)  # the model does not see a final answer
        ),
        answer=str(results[-1].result) if case.final_tools else None,
        was_interrupted=was_interrupted,
    )


def without_the_frameworks_words(received: Received) -> Received:
    """Return a result without the framework's prefix before an error."""
    return replace(received, text=received.text.removeprefix(BEFORE_ERRORS))
