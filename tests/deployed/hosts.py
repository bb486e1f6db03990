"""The servers in which frameworks deploy agents, each with an agent of ours: how to start and how to ask it."""

from __future__ import annotations

import json
import os
import sys
from abc import ABC, abstractmethod
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.request import Request, urlopen

from coatcheck.testing import ScriptedServer
from tests.contract.gemini import GeminiServer
from tests.serving import free_ports, running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from coatcheck.testing import ModelCall, Received

__all__ = (
    "ANSWER",
    "AdkServer",
    "AgentCore",
    "AgentFramework",
    "Hayhooks",
    "Host",
    "LangGraphServer",
    "Model",
    "PydanticAi",
)

AGENTS = Path(__file__).with_name("agents")
ANSWER = "the last word of the model"
SECONDS = 60.0
"""Seconds. The longest wait for an answer."""


class Model:
    """The model of all agents on one server. A test sets the script that it plays."""

    def __init__(self) -> None:
        self.plays: Callable[[Sequence[Received]], Sequence[ModelCall]] = lambda _: []

    def __call__(self, received: Sequence[Received]) -> Sequence[ModelCall]:
        return self.plays(received)


class Host(ABC):
    """A running server with an agent that has a tool ``fetch``."""

    speaks: ClassVar[type[ScriptedServer]] = ScriptedServer

    def __init__(self, address: str, model: Model) -> None:
        self.address = address
        self.model = model

    @classmethod
    @contextmanager
    def started(cls, folder: Path) -> Iterator[Host]:
        """Start the server with its data in ``folder``, and stop it at the end of the block."""
        model, [port] = Model(), free_ports(1)
        with cls.speaks().serving() as wire, wire.conversation(model, final_answer=ANSWER) as conversation:
            env = {
                **os.environ,
                "COATCHECK_ARTIFACTS": str(folder / "artifacts"),
                "COATCHECK_MODEL": conversation.base_url,
                "GOOGLE_API_KEY": "none",
                "GOOGLE_GEMINI_BASE_URL": conversation.base_url,
            }
            with running(cls.command(port, folder), folder, port=port, env=env):
                yield cls(f"http://127.0.0.1:{port}", model)

    @classmethod
    @abstractmethod
    def command(cls, port: int, folder: Path) -> list[str]:
        """Return the command that starts the server."""

    @abstractmethod
    def ask(self, session: str, *, agent: str) -> str:
        """Ask the agent in a new or known session, and return the server's answer."""

    @abstractmethod
    def stream(self, session: str, *, agent: str) -> str:
        """Do the same through the server's streaming endpoint."""

    def post(self, path: str, body: object, **headers: str) -> str:
        """Send a request, and return the whole answer."""
        request = Request(  # noqa: S310 - our own
            self.address + path, json.dumps(body).encode(), {"Content-Type": "application/json", **headers}
        )
        with urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 - our own
            text: str = answer.read().decode()
            return text


class LangGraphServer(Host):
    """``langgraph dev``. It fails every call that would block its event loop."""

    @classmethod
    def command(cls, port: int, folder: Path) -> list[str]:
        """Return the command that starts the server."""
        program = AGENTS / "langgraph_graphs.py"
        graphs = {name: f"{program}:{name}" for name in ("middleware", "node", "store", "blocking")}
        auth = {"path": f"{AGENTS / 'langgraph_auth.py'}:auth"}
        config = folder / "langgraph.json"
        config.write_text(json.dumps({"dependencies": [str(AGENTS)], "graphs": graphs, "auth": auth}))
        options = ("--host=127.0.0.1", f"--port={port}", "--no-browser", "--no-reload", f"--config={config}")
        return [_program("langgraph"), "dev", *options]

    def ask(self, session: str, *, agent: str) -> str:
        """Run the graph in a thread to its end."""
        return self._run(session, agent, "wait")

    def stream(self, session: str, *, agent: str) -> str:
        """Run the graph in a thread, and read its events."""
        return self._run(session, agent, "stream", stream_mode=["messages", "updates"])

    def _run(self, thread: str, agent: str, way: str, **options: object) -> str:
        self.post("/threads", {"thread_id": thread, "if_exists": "do_nothing"})
        question = {"messages": [{"role": "user", "content": "?"}]}
        body = {"assistant_id": agent, "input": question, "multitask_strategy": "enqueue", **options}
        return self.post(f"/threads/{thread}/runs/{way}", body)


class AdkServer(Host):
    """``adk api_server``, of Google ADK."""

    speaks = GeminiServer

    @classmethod
    def command(cls, port: int, folder: Path) -> list[str]:
        """Return the command that starts the server."""
        sessions = f"--session_service_uri=sqlite+aiosqlite:///{folder / 'sessions.db'}"
        return [_program("adk"), "api_server", "--host=127.0.0.1", f"--port={port}", sessions, str(AGENTS / "adk")]

    def ask(self, session: str, *, agent: str) -> str:
        """Run the agent to its end."""
        return self._run(session, agent, "/run")

    def stream(self, session: str, *, agent: str) -> str:
        """Run the agent, and read its events."""
        return self._run(session, agent, "/run_sse", streaming=True)

    def _run(self, session: str, agent: str, path: str, **options: object) -> str:
        self._open(session, agent)
        message = {"role": "user", "parts": [{"text": "?"}]}
        names = {"appName": agent, "userId": "ada", "sessionId": session}
        return self.post(path, {**names, "newMessage": message, **options})

    def _open(self, session: str, agent: str) -> None:
        known = f"/apps/{agent}/users/ada/sessions"
        with urlopen(self.address + known, timeout=SECONDS) as answer:  # noqa: S310 - our own
            if session not in {each["id"] for each in json.load(answer)}:
                self.post(f"{known}/{session}", {})


class Hayhooks(Host):
    """``hayhooks run``, of Haystack."""

    @classmethod
    def command(cls, port: int, folder: Path) -> list[str]:
        """Return the command that starts the server."""
        del folder
        pipelines = f"--pipelines-dir={AGENTS / 'hayhooks'}"
        return [_program("hayhooks"), "run", "--host=127.0.0.1", f"--port={port}", pipelines]

    def ask(self, session: str, *, agent: str) -> str:
        """Call the agent by its own path."""
        return self.post(f"/{agent}/run", {"text": "?", "conversation": session})

    def stream(self, session: str, *, agent: str) -> str:
        """Call the agent as an OpenAI client does."""
        message = {"role": "user", "content": "?"}
        return self.post("/chat/completions", {"model": agent, "messages": [message], "stream": True, "user": session})


class Application(Host):
    """A program of ours that serves its agent itself, and always streams."""

    program: ClassVar[str]

    @classmethod
    def command(cls, port: int, folder: Path) -> list[str]:
        """Return the command that starts the server."""
        del folder
        return [sys.executable, str(AGENTS / cls.program), str(port)]

    def ask(self, session: str, *, agent: str) -> str:
        """Run the agent, which streams."""
        return self.stream(session, agent=agent)


class AgentCore(Application):
    """The runtime of Amazon Bedrock AgentCore, with a Strands agent."""

    program = "agentcore_app.py"

    def stream(self, session: str, *, agent: str) -> str:
        """Invoke the agent."""
        named: dict[str, Any] = {"X-Amzn-Bedrock-AgentCore-Runtime-Session-Id": session}
        return self.post("/invocations", {"prompt": "?", "agent": agent}, **named)


class AgUi(Application):
    """A web application that speaks AG-UI to user interfaces."""

    def stream(self, session: str, *, agent: str) -> str:
        """Run the agent."""
        message = {"id": "1", "role": "user", "content": "?"}
        names = {"threadId": session, "runId": "1", "state": {}, "tools": [], "context": [], "forwardedProps": {}}
        return self.post("/", {**names, "messages": [message], "agent": agent}, Accept="text/event-stream")


class PydanticAi(AgUi):
    """Pydantic AI behind AG-UI."""

    program = "pydantic_ai_app.py"


class AgentFramework(AgUi):
    """The Microsoft Agent Framework behind AG-UI."""

    program = "agent_framework_app.py"


def _program(name: str) -> str:
    """Return the path of a program in this environment."""
    return str(Path(sys.executable).with_name(name))
