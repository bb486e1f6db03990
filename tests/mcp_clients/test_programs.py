"""Clients that people use, from npm, with the entries of docs/mcp-clients.md: what each one's model sees.

A scripted model, in the client's wire format, asks each client to call tools of a public server. The proxy and
everything that it stores stay in the test's own home directory.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from coatcheck import RETRIEVAL_TOOL
from coatcheck.replay.conversation import Result, Turn
from coatcheck.replay.files import read_conversations
from coatcheck.testing import Conversation, ModelCall, ScriptedServer
from coatcheck.testing.responses import response
from coatcheck.testing.server import responded
from tests.adapters.claude.scripted_api import run_client, scripted_api
from tests.contract.gemini import GeminiServer
from tests.mcp_clients.foreign import ENVIRONMENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from coatcheck.testing import Received, Response
    from tests.adapters.claude.scripted_api import Script

    Serve = Callable[[Script], AbstractContextManager[tuple[str, list[list[str]]]]]

pytestmark = pytest.mark.skipif(not ENVIRONMENTS.name, reason="needs the clients that `nox -s mcp_clients` installs")

PAGE = Path(__file__).parents[2] / "docs/mcp-clients.md"
PROGRAMS = ENVIRONMENTS / "node_modules"
FILES_SERVER = PROGRAMS / "@modelcontextprotocol/server-filesystem/dist/index.js"

TEXT = "".join(f"line {number} of a long file\n" for number in range(40_000))


class CodexConversation(Conversation):
    """A conversation over the Responses API, where the tools of a server share a namespace."""

    def respond(self, body: dict[str, Any], calls: Sequence[ModelCall], *, says: str | None, path: str) -> Response:
        del path
        whole = response(calls, says, number=len(self.sent))
        for item in whole["output"]:
            if item["type"] == "function_call":
                item["namespace"], _, item["name"] = item["name"].rpartition("__")
        return responded(whole, streams=bool(body.get("stream")))


class CodexServer(ScriptedServer):
    speaks: ClassVar[type[Conversation]] = CodexConversation


def serving(make: Callable[[], ScriptedServer]) -> Serve:
    """Return a function that serves a script as ``scripted_api`` does, in another wire format."""

    @contextmanager
    def served(script: Script) -> Iterator[tuple[str, list[list[str]]]]:
        seen: list[list[str]] = []

        def model(results: Sequence[Received]) -> Sequence[ModelCall]:
            seen.append([result.text for result in results])
            call = script(seen[-1])
            return [ModelCall(tool=call[0], arguments=call[1], call_id=f"call_{len(seen)}")] if call else []

        with make().serving() as server, server.conversation(model) as conversation:
            yield conversation.base_url, seen

    return served


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """How to configure a client with its model and the server ``files``, and how to ask it one question."""

    command: Sequence[str]
    """A program from the folder of npm packages, and its arguments."""

    tool: str
    """What its model calls a tool, as a format string."""

    files: Callable[[str, Sequence[str]], Mapping[str, str]]
    """Takes the model's URL and the server's command. Returns the content of each file in the home directory."""

    env: Callable[[str], Mapping[str, str]]
    """Takes the model's URL. Returns environment variables."""

    serve: Serve
    """Serves a script in the client's wire format."""

    installs: str | None = None
    """What ``coatcheck mcp install`` calls it, if that command makes its entry."""

    sessions: str | None = None
    """Where it keeps its sessions in the home directory, if ``coatcheck replay`` reads them."""


def entry_of(section: str, server: Sequence[str]) -> str:
    """Return the entry that the page shows for a client, with the paths of this machine."""
    found = re.search(rf"^### {section}$.*?^```\w+\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert found is not None
    block = found[1]
    assert '"npx", "-y", "files-server", "/path/to/notes"' in block
    there = ", ".join(map(json.dumps, server))
    return block.replace('"npx", "-y", "files-server", "/path/to/notes"', there).replace(
        "/path/to/venv/bin/python", sys.executable
    )


def claude_files(_: str, server: Sequence[str]) -> Mapping[str, str]:
    program, *arguments = server
    return {".mcp.json": json.dumps({"mcpServers": {"files": {"command": program, "args": arguments}}})}


def codex_files(url: str, server: Sequence[str]) -> Mapping[str, str]:
    model = f"""
        model = "scripted"
        model_provider = "scripted"
        [model_providers.scripted]
        name = "scripted"
        base_url = "{url}"
        env_key = "SCRIPTED_KEY"
        wire_api = "responses"
    """
    # The first question waits for the server, and no call needs approval.
    asked = 'required = true\ndefault_tools_approval_mode = "approve"\n'
    return {".codex/config.toml": model + entry_of("Codex", server) + asked}


def gemini_files(_: str, server: Sequence[str]) -> Mapping[str, str]:
    entry = json.loads(entry_of("Gemini CLI", server))
    kept = {"privacy": {"usageStatisticsEnabled": False}, "security": {"auth": {"selectedType": "gemini-api-key"}}}
    return {".gemini/settings.json": json.dumps({**entry, **kept})}


def opencode_files(url: str, server: Sequence[str]) -> Mapping[str, str]:
    limit = {"context": 200_000, "output": 8_000}
    scripted = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": url, "apiKey": "none"},
        "models": {"scripted": {"tool_call": True, "limit": limit}},
    }
    model = {"model": "scripted/scripted", "small_model": "scripted/scripted", "provider": {"scripted": scripted}}
    entry = json.loads(entry_of("opencode", server))
    return {"opencode.json": json.dumps({**entry, **model, "autoupdate": False, "share": "disabled"})}


CLIENTS = {
    "Claude Code": Client(
        command=("claude", "-p", "go", "--mcp-config", ".mcp.json", "--strict-mcp-config", "--allowedTools=mcp__files"),
        tool="mcp__files__{}",
        files=claude_files,
        env=lambda url: {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "MCP_CONNECTION_NONBLOCKING": "false",  # else the scripted model calls a tool before the server is up
            "MCP_CONNECT_TIMEOUT_MS": "60000",
        },
        serve=scripted_api,
        installs="claude-code",
        sessions=".claude/projects/*/*.jsonl",
    ),
    "Codex": Client(
        command=("codex", "exec", "--skip-git-repo-check", "--sandbox=danger-full-access", "go"),
        tool="mcp__files__{}",
        files=codex_files,
        env=lambda _: {"SCRIPTED_KEY": "none"},
        serve=serving(CodexServer),
        sessions=".codex/sessions/*/*/*/*.jsonl",
    ),
    "Gemini CLI": Client(
        command=("gemini", "-p", "go", "--yolo", "-m", "gemini-2.5-pro"),
        tool="mcp_files_{}",
        files=gemini_files,
        env=lambda url: {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
        },
        serve=serving(GeminiServer),
    ),
    "opencode": Client(
        command=("opencode", "run", "go"),
        tool="files_{}",
        files=opencode_files,
        env=lambda _: {"OPENCODE_DISABLE_MODELS_FETCH": "true"},
        serve=serving(ScriptedServer),
    ),
}


def run(client: Client, url: str, home: Path, *, shared: Path) -> subprocess.CompletedProcess[str]:
    """Run a client with the model at ``url`` and, behind the proxy, a server that shares a folder."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "NO_COLOR": "1", **client.env(url)}
    for file, text in client.files(url, ["node", str(FILES_SERVER), str(shared)]).items():
        (home / file).parent.mkdir(exist_ok=True)
        (home / file).write_text(text, encoding="utf-8")
    if client.installs is not None:
        install = [sys.executable, "-m", "coatcheck", "mcp", "install", client.installs, "files"]
        subprocess.run(install, cwd=home, env=env, check=True, capture_output=True)
    program, *arguments = client.command
    return run_client([PROGRAMS / ".bin" / program, *arguments], home, env)


@pytest.mark.parametrize("name", CLIENTS)
def test_the_model_of_a_client_sees_a_placeholder_and_reads_back(name: str, tmp_path: Path) -> None:
    client = CLIENTS[name]
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "large.txt").write_text(TEXT, encoding="utf-8")
    (notes / "small.txt").write_text("a short note", encoding="utf-8")

    def script(results: list[str]) -> tuple[str, dict[str, object]] | None:
        match len(results):
            case 0:
                return client.tool.format("read_text_file"), {"path": str(notes / "small.txt")}
            case 1:
                return client.tool.format("read_text_file"), {"path": str(notes / "large.txt")}
            case 2:
                found = re.findall(r"\w+-[0-9a-f]{16}-[0-9a-f]{4}", results[1])
                if len(found) != 1:
                    return None  # the assertion below shows what came instead
                asked: dict[str, object] = {"reference": found[0], "pattern": "line 20000 of"}
                return client.tool.format(RETRIEVAL_TOOL), asked
            case _:
                return None

    with client.serve(script) as (url, seen):
        ended = run(client, url, tmp_path, shared=notes)

    assert (ended.returncode, "done" in ended.stdout) == (0, True), ended.stderr
    assert len(seen[-1]) == 3, seen[-1]
    small, placeholder, answer = seen[-1]
    assert "a short note" in small
    assert "Tool result offloaded. [Offloaded: 1 block, " in placeholder
    assert len(placeholder) < 5_000
    assert "line 20000 of a long file" not in placeholder
    assert "> 20001| line 20000 of a long file" in answer
    if client.sessions is not None:
        left_out: list[str] = []
        (conversation,) = read_conversations(next(tmp_path.glob(client.sessions)), left_out)
        results = [part.result for part in conversation.parts if isinstance(part, Result)]
        assert not left_out
        assert ["read_text_file" in result.tool_name for result in results] == [True, True, False]
        assert sum(isinstance(part, Turn) for part in conversation.parts) == len(results) + 1


def test_claude_code_always_shows_its_model_the_definition_of_the_retrieval_tool(tmp_path: Path) -> None:
    """With tool search, the default in newer versions, its model has to search for every other tool's definition."""
    bodies: list[dict[str, Any]] = []
    client = CLIENTS["Claude Code"]
    searching = replace(client, env=lambda url: {**client.env(url), "ENABLE_TOOL_SEARCH": "true"})

    with scripted_api(lambda _: None, bodies=bodies) as (url, _):
        run(searching, url, tmp_path, shared=tmp_path)

    shown = {tool["name"] for tool in bodies[0]["tools"]}
    assert client.tool.format(RETRIEVAL_TOOL) in shown
    assert client.tool.format("read_text_file") not in shown  # the model has to search for it
