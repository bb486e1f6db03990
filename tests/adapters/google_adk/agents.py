"""Real apps for the tests of the ADK adapter. Their model is a script behind Google's own client."""

# ruff: noqa: ANN401 - what ADK and tools pass is of any type

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.base_tool import BaseTool
from google.genai.types import FunctionDeclaration

from tests.adapters.scripts import Script, Turn
from tests.contract.google_adk_harness import agent_on, message

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from google.adk.agents import BaseAgent, LlmAgent, RunConfig
    from google.adk.events import Event
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.sessions import BaseSessionService

    from tests.contract.gemini import GeminiServer

__all__ = ("APP", "CONVERSATION", "SESSION", "USER", "Talk", "playing", "returning", "run", "texts_in")

APP, USER, SESSION = "app", "ada", "session-1"
CONVERSATION = (APP, USER, SESSION)
"""The scope that a run stores in, unless a test says otherwise."""


class Returning(BaseTool):
    """Gives the same result each time, or raises it if it is an exception."""

    def __init__(self, result: object, name: str = "fetch", *, skip: bool = False, **more: Any) -> None:
        super().__init__(name=name, description="Gives a result.", **more)
        self.result = result
        self.skip = skip

    def _get_declaration(self) -> FunctionDeclaration:
        schema = {"type": "object", "properties": {}}
        return FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        if isinstance(self.result, Exception):
            raise self.result
        tool_context.actions.skip_summarization = self.skip or None
        return self.result


returning = Returning


@contextmanager
def playing(server: GeminiServer, script: Script, tools: Sequence[Any] = (), **more: Any) -> Iterator[LlmAgent]:
    """Serve a script, and yield an agent whose model plays it."""
    with server.conversation(script) as conversation:
        yield agent_on(conversation, tools, **more)


@dataclass(kw_only=True)
class Talk:
    """One user's session with an app."""

    agent: BaseAgent
    plugins: Sequence[BasePlugin]
    user: str = USER
    session: str = SESSION
    app: str = APP
    service: BaseSessionService | None = None
    config: RunConfig | None = None

    async def ask(self, question: str = "Go.") -> list[Event]:
        """Ask, and return the events of the answer."""
        service = self.service or InMemorySessionService()
        runner = Runner(app=App(name=self.app, root_agent=self.agent, plugins=[*self.plugins]), session_service=service)
        ids: dict[str, Any] = {"app_name": self.app, "user_id": self.user, "session_id": self.session}
        if await service.get_session(**ids) is None:
            await service.create_session(**ids)
        asked = runner.run_async(
            user_id=self.user, session_id=self.session, new_message=message(question), run_config=self.config
        )
        return [event async for event in asked]


async def run(
    server: GeminiServer, plugin: BasePlugin, tools: Sequence[Any], *turns: Turn, agent: Any = None, **more: Any
) -> Script:
    """Run an agent with these tools once, and return the script that it played."""
    script = Script(*turns)
    with playing(server, script, tools, **(agent or {})) as made:
        await Talk(agent=made, plugins=[plugin], **more).ask()
    return script


def texts_in(events: Sequence[Event]) -> str:
    """Return everything in the events, as JSON."""
    return "\n".join(event.model_dump_json() for event in events)
