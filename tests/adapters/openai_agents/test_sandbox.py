"""A ``SandboxAgent`` of the SDK, with a real shell on this machine: which of its results are offloaded."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from agents import Runner
from agents.run_config import SandboxRunConfig
from agents.sandbox import SandboxAgent
from agents.sandbox.capabilities import Shell

from coatcheck.testing.scripting import shown_references
from coatcheck_openai import ToolOffloader
from tests.adapters.openai_agents.agents import BIG, MIDDLE, Script, call, config, playing, reading, returning

if TYPE_CHECKING:
    from agents.sandbox.capabilities.shell import ShellToolSet

    from coatcheck.testing import ScriptedServer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the SDK's sandbox without a container")

ROWS = "\n".join(map(str, range(1, 30_001)))
COMMAND = {"cmd": "seq 1 30000", "yield_time_ms": 60_000}


@pytest.mark.parametrize("wrapped", [False, True], ids=["left alone", "wrapped"])
async def test_a_shell_is_offloaded_if_its_capability_gets_our_copy_of_the_tool(
    server: ScriptedServer, wrapped: bool
) -> None:
    from agents.sandbox.sandboxes.unix_local import UnixLocalSandboxClient  # noqa: PLC0415 - not on every system

    offload, script = ToolOffloader(), Script(call("exec_command", **COMMAND), call(), reading(1, pattern="line 1,000"))

    def wrap(tools: ShellToolSet) -> None:
        if wrapped:
            tools.exec_command = offload.tools([tools.exec_command])[0]  # type: ignore[assignment] # a copy

    with playing(server, script) as model:
        tools = offload.tools([returning(BIG)])
        agent = SandboxAgent(name="a", model=model, tools=tools, capabilities=[Shell(configure_tools=wrap)])
        sandbox = SandboxRunConfig(client=UnixLocalSandboxClient())
        await Runner.run(agent, "Go.", run_config=config(sandbox=sandbox))

    shell, own, found = script.shown[-1]
    assert own.startswith("Tool result offloaded.")
    assert MIDDLE in found
    assert shell.startswith("Tool result offloaded.") is wrapped
    stored = offload.offloader.load(shown_references(shell)[0], scope="conversation-1").text if wrapped else shell
    assert ROWS in stored
