"""``coatcheck mcp --config FILE`` with ``[servers.NAME]``, as processes: commands and a URL, on stdio and a port."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from coatcheck import RETRIEVAL_TOOL
from coatcheck_mcp import offloaded_references
from tests.adapters.mcp.ports import reserved_port, wait_until_listening
from tests.adapters.mcp.processes import PATIENCE, TINY, Process, wait_until_gone
from tests.cli.running import run

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVERS = f"""
[tools."near.env"]
always = true

[tools.far_big]
never = true

[servers.near]
command = {json.dumps(TINY[0])}
args = [{json.dumps(TINY[1])}]
cwd = "place"
env = {{ SECRET = "${{HIDDEN}}" }}

[servers.far]
command = {json.dumps(TINY[0])}
args = [{json.dumps(TINY[1])}]
"""

GONE = """
[servers.gone]
command = "no-such-command-anywhere"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("several")
    (folder / "place").mkdir()
    (folder / "coatcheck.toml").write_text(SERVERS + GONE, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Process]:
    """Shake hands; at the end let the client leave, and check that no process is left."""
    environment = {"HIDDEN": "s3cret", "HEARD": "heard", "CANCELLED": "cancelled"}
    with Process(folder, options=["--config", "coatcheck.toml"], env=environment) as client:
        assert client.shake_hands()["result"]["serverInfo"]["name"] == "coatcheck"
        yield client
        pids = [int(client.said(client.call(f"{name}_pid"))) for name in ("near", "far")]
        assert client.leave() == 0
        for pid in pids:
            wait_until_gone(pid)


def tools_of(client: Process) -> list[str]:
    return [tool["name"] for tool in client.ask("tools/list")["result"]["tools"]]


def test_two_servers_are_served_without_a_third_that_does_not_start(client: Process, folder: Path) -> None:
    names = tools_of(client)
    assert names[-1] == RETRIEVAL_TOOL
    assert {name.partition("_")[0] for name in names} == {"near", "far", "retrieve"}
    shown = client.call("near_big")["result"]
    (reference,) = shown["_meta"]["coatcheck"]["references"]
    assert reference.startswith("near_big-")
    assert "line of a log" in client.said(client.call(RETRIEVAL_TOOL, reference=reference, pattern="log"))
    assert "there is no such command" in client.call("gone_pid")["error"]["message"]
    pid = int(client.said(client.call("near_pid")))
    assert Path(f"/proc/{pid}/cwd").resolve() == (folder / "place").resolve()
    client.wait_for_stderr("results of near, far, gone above 2,500 tokens")
    client.wait_for_stderr("could not start the MCP server gone")


def test_rules_in_the_file_match_by_server_and_by_the_name_that_clients_see(client: Process) -> None:
    secret = client.call("near_env", name="SECRET")
    assert secret["result"]["_meta"]["coatcheck"]["references"]
    assert "s3cret" in client.said(secret)
    assert client.said(client.call("far_env", name="SECRET")) == ""
    assert "_meta" not in client.call("far_big")["result"]


def test_a_server_that_dies_takes_no_other_with_it_and_is_restarted(client: Process) -> None:
    near, far = (int(client.said(client.call(f"{name}_pid"))) for name in ("near", "far"))
    assert client.call("far_die")["error"]["message"].startswith("the MCP server far has ended")
    second = int(client.said(client.call("far_pid")))
    os.kill(second, signal.SIGKILL)
    wait_until_gone(second)
    assert "far_pid" in tools_of(client)
    third = int(client.said(client.call("far_pid")))
    assert len({far, second, third}) == 3
    assert int(client.said(client.call("near_pid"))) == near


def test_a_cancelled_call_is_cancelled_at_its_server_only(client: Process, folder: Path) -> None:
    heard, cancelled = folder / "place/heard", folder / "place/cancelled"
    for note in (heard, cancelled):
        os.mkfifo(note)  # a read blocks until it is written
    call = client.send("tools/call", name="near_silent", arguments={})
    assert heard.read_text(encoding="utf-8")
    client.notify("notifications/cancelled", requestId=call, reason="enough")
    assert cancelled.read_text(encoding="utf-8")
    assert client.said(client.call("far_pid"))
    assert not (folder / "cancelled").exists()


def test_a_proxy_serves_clients_on_a_port_and_reaches_a_server_at_a_url(folder: Path, tmp_path: Path) -> None:
    """Two proxies: one on a port in front of two commands, and one in front of the first proxy and of a command."""
    env = {**os.environ, "COATCHECK_MCP_TOKEN": "tok", "HIDDEN": "x"}
    command = [sys.executable, "-m", "coatcheck.cli", "mcp", "--storage=inner", "--config=coatcheck.toml"]
    with reserved_port() as port, subprocess.Popen([*command, f"--http={port}"], cwd=folder, env=env) as inner:
        try:
            wait_until_listening(inner, port)
            url = f"http://127.0.0.1:{port}/mcp"
            anyio.run(use, url)
            header = ["--url", url, "--header", "Authorization: Bearer $COATCHECK_MCP_TOKEN"]
            with Process(tmp_path, options=header, env={"COATCHECK_MCP_TOKEN": "tok"}) as one:
                one.shake_hands()
                assert "far_pid" in tools_of(one)
            (tmp_path / "outer.toml").write_text(
                f'{GONE}[servers.web]\nurl = "{url}"\nheaders.Authorization = "Bearer ${{COATCHECK_MCP_TOKEN}}"\n',
                encoding="utf-8",
            )
            with Process(tmp_path, options=["--config=outer.toml"], env={"COATCHECK_MCP_TOKEN": "tok"}) as client:
                client.shake_hands()
                assert client.said(client.call("web_near_env", name="SECRET"))
                assert "web_far_pid" in tools_of(client)
        finally:
            inner.terminate()


async def use(url: str) -> None:
    async with (
        httpx2.AsyncClient(headers={"Authorization": "Bearer tok"}, timeout=PATIENCE) as http,
        Client(streamable_http_client(url, http_client=http), mode="auto") as client,
    ):
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"near_big", "far_big", RETRIEVAL_TOOL} < names
        (reference,) = offloaded_references(await client.call_tool("near_big"))
        back: Any = await client.call_tool(RETRIEVAL_TOOL, {"reference": reference})
        assert "line of a log" in back.content[0].text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--config=coatcheck.toml"], "names the variable HIDDEN, which is not set"),
        (["--config=coatcheck.toml", "--name=near"], "--name is for the one server of the command line"),
        (["--config=coatcheck.toml", "--oauth"], "--header and --oauth are for --url"),
        ([], "or several as [servers.NAME] in a file"),
    ],
    ids=["variable", "name", "oauth", "no server"],
)
def test_settings_that_cannot_be_served_are_refused_with_the_reason(
    folder: Path, options: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("HIDDEN", raising=False)
    if "variable" not in words:
        monkeypatch.setenv("HIDDEN", "x")
    ran = run("mcp", *options)
    assert ran.exit_code == 2
    assert words in ran.stderr


def test_a_server_on_the_command_line_replaces_those_of_the_file(folder: Path) -> None:
    with Process(folder, *TINY, options=["--config", "coatcheck.toml"]) as client:
        assert client.shake_hands()["result"]["serverInfo"]["name"] == "tiny"
