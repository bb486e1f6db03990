"""The real Claude Code that the SDK bundles, with a scripted model on loopback: checks what reaches the model.

Claude Code silently drops an answer of the wrong shape. Only its next request shows whether it did.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, create_sdk_mcp_server, tool

from coatcheck import FileStorage, Offloader
from coatcheck.cli.hook_commands import MATCHER, MATCHERS
from coatcheck.hook.command import is_get
from coatcheck.replay.conversation import Result, Turn
from coatcheck.replay.files import read_conversations
from coatcheck_claude import READ_BACK, SERVER, hooks, server
from tests.adapters.claude.scripted_api import SECONDS, run_client, scripted_api

CLIENT = Path(claude_agent_sdk.__file__).parent / "_bundled/claude"
OPENING = "Tool result offloaded. [Offloaded: "

pytestmark = pytest.mark.skipif(not CLIENT.exists(), reason="this wheel of the SDK brings no Claude Code")


def environment(home: Path, url: str) -> dict[str, str]:
    """Return an environment in which a client uses only loopback and reads none of the user's own settings."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "large.txt").write_text("".join(f"line {number} of a file that is large\n" for number in range(1_500)))
    plain: dict[str, object] = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
    cells = [{**plain, "id": f"cell-{number}", "source": "print(1)\n" * 200} for number in range(115)]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / "large.ipynb").write_text(json.dumps(notebook))
    return folder


async def talk(options: ClaudeAgentOptions) -> None:
    """Send one message with the SDK's client, and wait for the answer."""
    async with ClaudeSDKClient(options) as client:
        await client.query("go")
        async for _ in client.receive_response():
            pass


def reference_in(placeholder: str) -> str:
    found = re.search(r"\w+-[0-9a-f]{16}-[0-9a-f]{4}", placeholder)
    assert found is not None
    return found[0]


def test_the_command_replaces_what_each_tool_returned_and_reads_it_back(tmp_path: Path, files: Path) -> None:
    """The tools are Bash, Read, Grep, and Read of a notebook. The output of ``coatcheck get`` is not offloaded."""

    def script(results: list[str]) -> tuple[str, dict[str, object]] | None:
        match len(results):
            case 0:
                return "Bash", {"command": "seq 1 5000", "description": "count"}
            case 1:
                return "Read", {"file_path": str(files / "large.txt")}
            case 2:
                return "Grep", {"pattern": "line", "path": str(files), "output_mode": "content", "head_limit": 900}
            case 3:
                return "Read", {"file_path": str(files / "large.ipynb")}
            case 4:
                line = next(line for line in results[0].splitlines() if line.startswith("To read more, run: "))
                command = line.removeprefix("To read more, run: ").partition(" REFERENCE")[0].replace(" -P ", " ")
                words = f"{command} {reference_in(results[0])} --lines=4000:4001"
                assert is_get(words)
                return "Bash", {"command": words, "description": "read on"}
            case _:
                return None

    command = shlex.join([sys.executable, "-m", "coatcheck", "hook"])
    settings = tmp_path / "settings.json"
    entry = {"matcher": MATCHER, "hooks": [{"type": "command", "command": command}]}
    settings.write_text(json.dumps({"hooks": {"PostToolUse": [entry]}}))
    with scripted_api(script) as (url, seen):
        words = ["-p", "go", "--settings", str(settings), "--allowedTools", "Bash,Read,Grep"]
        ended = run_client([CLIENT, *words], files, environment(tmp_path, url))

    assert (ended.returncode, ended.stdout.strip()) == (0, "done")
    bash, read, grep, notebook, back = seen[-1]
    assert bash.startswith(OPENING)
    assert read.startswith(f"1\t{OPENING}"), "the client counts the lines of a file"
    assert grep.startswith(OPENING)
    assert notebook.startswith(f'<cell id="cell-0">{OPENING}')
    assert "4000| 4000\n" in back
    assert OPENING not in back


def test_the_command_replaces_what_powershell_returned(tmp_path: Path, files: Path) -> None:
    """The shell is a stand-in that prints numbers. It does not affect whether Claude Code accepts the hook's answer."""

    def script(results: list[str]) -> tuple[str, dict[str, object]] | None:
        return None if results else ("PowerShell", {"command": "1..5000", "description": "count"})

    shell = tmp_path / "bin/pwsh"
    shell.parent.mkdir()
    shell.write_text("#!/bin/sh\nexec seq 1 5000\n")
    shell.chmod(0o755)
    command = shlex.join([sys.executable, "-m", "coatcheck", "hook"])
    settings = tmp_path / "settings.json"
    entry = {"matcher": MATCHER, "hooks": [{"type": "command", "command": command}]}
    settings.write_text(json.dumps({"hooks": {"PostToolUse": [entry]}}))
    with scripted_api(script) as (url, seen):
        around = environment(tmp_path, url)
        around |= {"PATH": f"{shell.parent}{os.pathsep}{around['PATH']}", "CLAUDE_CODE_USE_POWERSHELL_TOOL": "1"}
        words = ["-p", "go", "--settings", str(settings), "--allowedTools", "PowerShell"]
        ended = run_client([CLIENT, *words], files, around)

    assert (ended.returncode, ended.stdout.strip()) == (0, "done")
    assert seen[-1][0].startswith(OPENING)
    assert reference_in(seen[-1][0]).startswith("powershell-")


def test_after_a_compaction_the_model_is_told_what_it_can_still_read(tmp_path: Path, files: Path) -> None:
    """The scripted model's summary is just ``done``, so only the hook can name the references."""

    def script(results: list[str]) -> tuple[str, dict[str, object]] | None:
        is_first = not results and len(bodies) == 1
        return ("Bash", {"command": "seq 1 5000", "description": "count"}) if is_first else None

    command = shlex.join([sys.executable, "-m", "coatcheck", "hook"])
    settings = tmp_path / "settings.json"
    hooks = [{"type": "command", "command": command}]
    entries = {event: [{"matcher": matcher, "hooks": hooks}] for event, matcher in MATCHERS.items()}
    settings.write_text(json.dumps({"hooks": entries}))
    options = ["--settings", str(settings), "--allowedTools", "Bash"]
    bodies: list[dict[str, Any]] = []
    with scripted_api(script, bodies=bodies) as (url, seen):
        for asked in (["-p", "go"], ["-p", "/compact", "--continue"], ["-p", "and now?", "--continue"]):
            assert run_client([CLIENT, *asked, *options], files, environment(tmp_path, url)).returncode == 0

    reference = reference_in(seen[1][0])
    assert seen[-1] == [], "the placeholder is gone"
    last = json.dumps(bodies[-1]["messages"])
    assert last.count(reference) == 1
    assert f" | --offset=N` still reads the stored results {reference}." in last
    assert "Keep word for word: " in last
    (transcript,) = (tmp_path / ".claude/projects").glob("*/*.jsonl")
    left_out: list[str] = []
    before, after = read_conversations(transcript, left_out)
    assert not left_out
    assert [part.result.tool_name for part in before.parts if isinstance(part, Result)] == ["Bash"]
    assert sum(isinstance(part, Turn) for part in before.parts) == 2
    assert not any(isinstance(part, Result) for part in after.parts)


async def test_the_sdk_hooks_replace_a_result_and_the_sdk_server_reads_it_back(tmp_path: Path, files: Path) -> None:
    """Every request holds the tool's definition, although a client with tool search would hide it from the model."""

    def script(results: list[str]) -> tuple[str, dict[str, object]] | None:
        match len(results):
            case 0:
                return "Bash", {"command": "seq 1 5000", "description": "count"}
            case 1:
                return READ_BACK, {"reference": reference_in(results[0]), "line_range": "4000:4001"}
            case _:
                return None

    offloader = Offloader(FileStorage(tmp_path / "artifacts"))
    bodies: list[dict[str, Any]] = []
    with scripted_api(script, bodies=bodies) as (url, seen):
        options = ClaudeAgentOptions(
            hooks=hooks(offloader, scope="user-7"),
            mcp_servers={SERVER: server(offloader, scope="user-7")},
            allowed_tools=["Bash", READ_BACK],
            env=environment(tmp_path, url),
            cwd=files,
            setting_sources=[],
        )

        await asyncio.wait_for(talk(options), SECONDS)

    placeholder, back = seen[-1]
    assert placeholder.startswith(OPENING)
    assert f"To read more: {READ_BACK}(" in placeholder
    assert "4000| 4000\n" in back
    assert all(READ_BACK in {tool["name"] for tool in body["tools"]} for body in bodies)


@pytest.mark.parametrize(
    ("limits", "opening"),
    [
        pytest.param({}, "Error: result (", id="as it is"),
        pytest.param({"MAX_MCP_OUTPUT_TOKENS": "1000000"}, OPENING, id="with the variable that the page names"),
    ],
)
async def test_the_hook_gets_a_huge_result_of_an_mcp_tool_only_if_the_client_may_pass_it_on(
    tmp_path: Path, files: Path, limits: dict[str, str], opening: str
) -> None:
    """Otherwise Claude Code has written it to a file before, and tells the model where. The page says both."""

    @tool("read_log", "Return the log.", {})
    async def read_log(_: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "a line of the log\n" * 80_000}]}

    def script(results: list[str]) -> tuple[str, dict[str, object]] | None:
        return None if results else ("mcp__logs__read_log", {})

    offloader = Offloader(FileStorage(tmp_path / "artifacts"))
    with scripted_api(script) as (url, seen):
        options = ClaudeAgentOptions(
            hooks=hooks(offloader, scope="user-7"),
            mcp_servers={
                SERVER: server(offloader, scope="user-7"),
                "logs": create_sdk_mcp_server("logs", tools=[read_log]),
            },
            allowed_tools=["mcp__logs__read_log", READ_BACK],
            env=environment(tmp_path, url) | limits,
            max_buffer_size=100_000_000,
            cwd=files,
            setting_sources=[],
        )
        await asyncio.wait_for(talk(options), SECONDS)

    assert seen[-1][0].startswith(opening)
