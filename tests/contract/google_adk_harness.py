"""The harness of Google ADK: a real app with the plugin, and ADK's Gemini on the scripted server.

A harness builds the agent and runs it, sync or async. It also converts the fixture's blocks to ADK's.
"""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Any

import httpx
from google.adk.agents import LlmAgent, RunConfig
from google.adk.apps import App
from google.adk.models import Gemini
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.base_tool import BaseTool
from google.genai import Client
from google.genai.types import (
    Blob,
    Content,
    FileData,
    FunctionDeclaration,
    FunctionResponse,
    HttpOptions,
    Part,
)

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck_adk import OffloadPlugin
from tests.serving import CLIENT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from google.adk.events import Event
    from google.adk.plugins.base_plugin import BasePlugin

    from coatcheck.core.references import Scope
    from coatcheck.testing import Returned, Run, Transcript
    from coatcheck.testing.server import Conversation
    from tests.contract.gemini import GeminiServer

__all__ = ("APP", "USER", "GoogleAdkHarness", "agent_on", "message", "native_result")

APP, USER = "scripted", "user-1"
QUESTION = "Find out."
NOBODY = ("debug_user_id", "debug_session_id")
"""The user and the session that ``Runner.run_debug`` uses by default."""

MAX_CALLS = 1_000
"""The most pages that a script may read, one per model call."""

CONFIRMING = "adk_request_confirmation"
"""The function that ADK calls when a tool asks for a confirmation."""


class GoogleAdkHarness:
    """Runs an app with the plugin."""

    def __init__(self, server: GeminiServer) -> None:
        self._server = server

    def run(self, case: Run) -> Transcript:
        with self._serving(case) as (runner, conversation):
            ids = ids_of(case)
            asyncio.run(runner.session_service.create_session(app_name=APP, user_id=ids[0], session_id=ids[1]))

            def ask(question: Content) -> list[Event]:
                return list(runner.run(user_id=ids[0], session_id=ids[1], new_message=question, run_config=config()))

            turns = [ask(message(QUESTION))]
            while confirmation := confirmation_of(turns[-1]):
                turns.append(ask(confirmation))
            return transcript_of(conversation, turns, case)

    async def arun(self, case: Run) -> Transcript:
        with self._serving(case) as (runner, conversation):
            ids = ids_of(case)
            await runner.session_service.create_session(app_name=APP, user_id=ids[0], session_id=ids[1])

            async def ask(question: Content) -> list[Event]:
                events = runner.run_async(user_id=ids[0], session_id=ids[1], new_message=question, run_config=config())
                return [event async for event in events]

            turns = [await ask(message(QUESTION))]
            while confirmation := confirmation_of(turns[-1]):
                turns.append(await ask(confirmation))
            return transcript_of(conversation, turns, case)

    def scope_of(self, identity: str) -> Scope:
        return (APP, USER, identity)

    @contextmanager
    def _serving(self, case: Run) -> Iterator[tuple[Runner, Conversation]]:
        with self._server.conversation(case.model) as conversation:
            tools = [tool_of(name, results, case) for name, results in case.tools.items()]
            plugins: list[BasePlugin] = []
            if case.offloader is not None:
                plugins.append(case.share(partial(OffloadPlugin, case.offloader, scope=case.scope)))
            app = App(name=APP, root_agent=agent_on(conversation, tools), plugins=plugins)
            yield Runner(app=app, session_service=InMemorySessionService()), conversation


@cache
def clients() -> dict[str, Any]:
    """Return the HTTP clients that all runs share. Making one reads the machine's certificates."""
    return {
        "httpx_client": httpx.Client(timeout=CLIENT_SECONDS),
        "httpx_async_client": httpx.AsyncClient(timeout=CLIENT_SECONDS),
    }


class LoopbackGemini(Gemini):
    """ADK's Gemini, connected to a server on this machine. Old versions accept no client as an argument."""

    address: str

    @cached_property
    def api_client(self) -> Client:
        options = HttpOptions(base_url=self.address, **clients())
        return Client(api_key="none", vertexai=False, http_options=options)


def agent_on(conversation: Conversation, tools: Sequence[Any], **more: Any) -> LlmAgent:
    """Build an agent with ADK's own Gemini, connected to the scripted server."""
    model = LoopbackGemini(model="gemini-scripted", address=conversation.base_url)
    return LlmAgent(model=model, tools=list(tools), **{"name": "scripted", **more})


def message(text: str) -> Content:
    """Return a user message."""
    return Content(role="user", parts=[Part(text=text)])


def config() -> RunConfig:
    return RunConfig(max_llm_calls=MAX_CALLS)


def ids_of(case: Run) -> tuple[str, str]:
    """Return the user id and the session id of a run."""
    return NOBODY if case.identity is None else (USER, case.identity)


def confirmation_of(events: Sequence[Event]) -> Content | None:
    """Return the confirmation that a stopped agent needs to continue; None if it did not stop."""
    asked = [call for event in events for call in event.get_function_calls() if call.name == CONFIRMING]
    answers = [FunctionResponse(id=call.id, name=call.name, response={"confirmed": True}) for call in asked]
    return Content(role="user", parts=[Part(function_response=answer) for answer in answers]) if asked else None


class ScriptedTool(BaseTool):
    """Gives a result for each number."""

    def __init__(self, name: str, results: Mapping[int, Returned], case: Run) -> None:
        keep = {"coatcheck": "keep"} if name in case.kept_tools else None
        super().__init__(name=name, description="Gives a result.", custom_metadata=keep)
        self.results = results
        self.interrupts = name in case.interrupting_tools
        self.is_final = name in case.final_tools
        self.watch_result = case.watch_result

    def _get_declaration(self) -> FunctionDeclaration:
        schema = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
        return FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        if self.interrupts and tool_context.tool_confirmation is None:
            tool_context.request_confirmation(hint="Go on?")
            tool_context.actions.skip_summarization = True
            return {"error": "This call needs a confirmation."}
        tool_context.actions.skip_summarization = self.is_final or None
        return self.watch_result(native_result(self.results[args["number"]]))


def tool_of(name: str, results: Mapping[int, Returned], case: Run) -> BaseTool:
    """Return a tool that gives a result for each number."""
    made: BaseTool = case.watch(ScriptedTool(name, results, case))
    return made


def native_result(result: Returned) -> Any:
    """Return a result as an ADK tool would: a ``str``, a value or parts; an error by ADK's convention."""
    content = native_content(result.blocks)
    return {"error": content} if result.is_error else content


def native_content(blocks: Sequence[Block]) -> Any:
    """Return content blocks as an ADK tool would."""
    match blocks:
        case [TextBlock(text)]:
            return text
        case [JsonBlock(value)]:
            return value
        case [block]:
            return native_part(block)
        case _:
            return [native_part(block) for block in blocks]


def native_part(block: Block) -> Any:
    """Convert a content block to ADK's type."""
    match block:
        case TextBlock():
            return Part(text=block.text)
        case JsonBlock():
            return block.value
        case MediaBlock():
            return Part(inline_data=Blob(data=block.data, mime_type=block.media_type, display_name=block.name))
        case OpaqueBlock():
            return Part(file_data=FileData(file_uri=str(block.native), mime_type="text/plain"))


def transcript_of(conversation: Conversation, turns: Sequence[Sequence[Event]], case: Run) -> Transcript:
    """Return the transcript, including what the user got."""
    responses = [response for event in turns[-1] for response in event.get_function_responses()]
    answers = [(each.response or {}).get("result") for each in responses if each.name in case.final_tools]
    answer = answers[-1] if answers else None
    return replace(conversation.transcript(), answer=answer, was_interrupted=len(turns) > 1)
