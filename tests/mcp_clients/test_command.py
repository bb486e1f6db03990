"""``coatcheck mcp`` itself, on stdio and on a port, in front of a real server, for agents that do not know about it."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import RETRIEVAL_TOOL
from coatcheck.testing import ModelCall
from coatcheck.testing.scripting import shown_references
from tests.adapters.mcp.ports import reserved_port, wait_until_listening
from tests.mcp_clients.foreign import ENVIRONMENTS, TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from coatcheck.testing import Received, ScriptedServer
    from tests.mcp_clients.foreign import ForeignAgent

pytestmark = pytest.mark.skipif(not ENVIRONMENTS.name, reason="needs the frameworks that `nox -s mcp_clients` installs")

RECORDS = (sys.executable, str(Path(__file__).parent / "records.py"))
PICTURE = bytes(range(256)) * 400
"""What the tool ``draw`` returns."""

STEP = [("read_log", {"number": 1}), ("read_log", {"number": 2}), ("list_rows", {}), ("draw", {}), ("fail", {})]


@contextmanager
def proxy(folder: Path, transport: str, scope: str) -> Iterator[Mapping[str, Any]]:
    """Yield how an agent reaches the proxy: the command that starts it, or the URL where it runs."""
    settings = folder / "coatcheck.toml"
    settings.write_text("[tools.draw]\nalways = true\n", encoding="utf-8")
    options = [f"--storage={folder / 'store'}", f"--scope={scope}", f"--config={settings}"]
    command = [sys.executable, "-m", "coatcheck.cli", "mcp", *options]
    if transport == "stdio":
        yield {"command": [*command, "--", *RECORDS]}
        return
    env = {**os.environ, "COATCHECK_MCP_TOKEN": TOKEN}
    with (
        reserved_port() as port,
        subprocess.Popen([*command, f"--http={port}", "--", *RECORDS], env=env, cwd=folder) as process,
    ):
        wait_until_listening(process, port)
        yield {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"Authorization": f"Bearer {TOKEN}"}}
        process.terminate()


class Script:
    """A model that makes all its calls at once, and then reads back."""

    def __init__(self, *, reads: Sequence[Mapping[str, object]] = (), first: Sequence[Any] = STEP) -> None:
        self.received: list[Received] = []
        self._reads = reads
        self._first = first

    def __call__(self, received: Sequence[Received]) -> list[ModelCall]:
        self.received = list(received)
        if not received:
            return calls(self._first)
        if len(received) > len(self._first):
            return []
        references = [reference for each in received for reference in shown_references(each.text)]
        reads = zip(references, self._reads, strict=False)
        return calls([(RETRIEVAL_TOOL, {"reference": reference, **read}) for reference, read in reads])


def calls(made: Sequence[tuple[str, Mapping[str, object]]]) -> list[ModelCall]:
    return [
        ModelCall(tool=name, arguments=arguments, call_id=f"{name}_{number}")
        for number, (name, arguments) in enumerate(made)
    ]


def converse(agent: ForeignAgent, server: ScriptedServer, address: Mapping[str, Any], script: Script) -> bytes:
    """Run a conversation, and return the last request to the model."""
    with server.conversation(script) as conversation:
        agent.run({"model": conversation.base_url, "server": address})
        return conversation.sent[-1]


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("framework", ["langchain", "strands"])
def test_large_results_are_offloaded_read_back_and_stay_in_their_scope(
    agents: Callable[[str], ForeignAgent], server: ScriptedServer, tmp_path: Path, *, framework: str, transport: str
) -> None:
    agent = agents(framework)
    script = Script(reads=[{"line_range": "2000-2001"}, {"pattern": "line 3999 of"}, {"query": "rows[2999].name"}, {}])
    with proxy(tmp_path, transport, "one") as address:
        seen = converse(agent, server, address, script)
    one, two, rows, image, failure, *answers = (each.text for each in script.received)
    for number, shown in ((1, one), (2, two)):
        assert shown.startswith("Tool result offloaded.")
        assert f"line 1 of log {number}\n" in shown
        assert f"line 2000 of log {number}\n" not in shown
    assert "row 1500" not in rows
    assert "[image: png, 102400 bytes | ref: " in image
    assert "no such record" in failure
    assert "line 2000 of log 1\n" in answers[0]
    assert "line 2001 of log 1" in answers[0]
    assert "line 3999 of log 2" in answers[1]
    assert "row 2999" in answers[2]
    assert base64.b64encode(PICTURE) in seen

    (reference,) = shown_references(one)
    script = Script(first=[(RETRIEVAL_TOOL, {"reference": reference})])
    with proxy(tmp_path, transport, "two") as address:
        converse(agent, server, address, script)
    (answer,) = (each.text for each in script.received)
    assert "line 1 of log 1" not in answer
    assert reference in answer
