"""Many calls at once, and servers, proxies and clients that vanish in the middle: clear errors, no hang, no orphan."""

# ruff: noqa: ANN401 - lines are any JSON

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext, suppress
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from coatcheck import RETRIEVAL_TOOL, FileStorage, Offloader
from coatcheck_mcp import offloaded_references
from coatcheck_mcp.scope import folder_scope
from tests.adapters.mcp.ports import TOKEN, client_at, front_of, reserved_port, wait_until_listening
from tests.adapters.mcp.processes import PATIENCE, TINY, Process, handled, wait_until_gone
from tests.adapters.mcp.servers import HELLO, Everything

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CALLS = 200
LARGE = 40
"""How many of these calls return a large result."""

RUDE = """
import json, os, subprocess, sys, time
ends = False
for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            info = {"name": "rude", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("noise", "shut", "pid")]}
        case "tools/call":
            name = message["params"]["name"]
            if name == "noise":
                sys.stdout.write("Downloading...\\n" * 2_000)
            elif name == "shut":
                os.close(1)
                time.sleep(600)
            elif name == "silent":
                continue
            elif name in ("help", "leave", "detach"):
                helper = subprocess.Popen(["sleep", "600"], start_new_session=name == "detach")
                with open("helper", "w") as file:
                    file.write(str(helper.pid))
                ends = name != "help"
            result = {"content": [{"type": "text", "text": str(os.getpid())}]}
            if ends and not message["params"]["arguments"].get("answers"):
                os._exit(3)
        case _:
            continue
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\\n")
    sys.stdout.flush()
    if ends:
        os._exit(3)
"""


@pytest.fixture
def start(start: Callable[..., Process]) -> Callable[..., Process]:
    """Return a function that starts a proxy and shakes hands."""

    def make(*command: str) -> Process:
        process = start(*command)
        process.shake_hands()
        return process

    return make


def size_of(call: int) -> int:
    return 100_000 + call if call % (CALLS // LARGE) == 0 else call


def test_two_hundred_concurrent_calls_get_their_own_results(start: Callable[..., Process], tmp_path: Path) -> None:
    client = start()
    sizes = {
        client.send("tools/call", name="huge", arguments={"size": size_of(call)}): size_of(call)
        for call in range(CALLS)
    }
    answers = {answer["id"]: answer["result"] for answer in (client.read() for _ in range(CALLS))}
    stored = Offloader(FileStorage(tmp_path / "store"))
    assert answers.keys() == sizes.keys()
    for identifier, size in sizes.items():
        references = answers[identifier].get("_meta", {}).get("coatcheck", {}).get("references", [])
        if references:
            found = stored.load(references[0], scope=folder_scope("tiny", os.path.realpath(tmp_path))).text
        else:
            found = answers[identifier]["content"][0]["text"]
        assert len(found) == size
        assert bool(references) == (size >= 100_000)


@pytest.mark.parametrize("options", [(), ("--scope", "mine")], ids=["folder", "scope"])
def test_a_deleted_working_directory_breaks_no_call(options: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with Process(tmp_path / "work", *TINY, options=options, storage=os.fspath(tmp_path / "store")) as process:
        process.shake_hands()
        shutil.rmtree(tmp_path / "work")
        assert process.ask("tools/list")["result"]["tools"]
        answer = process.ask("tools/call", name="huge", arguments={"size": 100_000})
        (reference,) = answer["result"]["_meta"]["coatcheck"]["references"]
        back = process.ask("tools/call", name=RETRIEVAL_TOOL, arguments={"reference": reference})
        assert not back["result"]["isError"]


@pytest.mark.parametrize("is_gone", [False, True], ids=["nobody reads", "the reader is gone"])
def test_a_full_or_closed_stderr_blocks_no_call(is_gone: bool, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)  # room for some forty lines
    with Process(tmp_path, *TINY, stderr=writing) as process:
        os.close(writing)
        process.shake_hands()
        if is_gone:
            os.close(reading)
        for _ in range(80):
            answer = process.call("huge", size=12_000)
            assert answer["result"]["_meta"]["coatcheck"]["references"]
        assert process.leave() == 0
        with suppress(OSError):
            os.close(reading)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_two_hundred_concurrent_calls_over_http_get_their_own_results(mode: str) -> None:
    found: list[bool] = []

    async def call(client: Any, number: int) -> None:
        is_large = number % (CALLS // LARGE) == 0
        result = await client.call_tool("log" if is_large else "small")
        assert bool(offloaded_references(result)) == is_large
        found.append(is_large)

    async with front_of(Everything()) as url, client_at(url, mode) as client:
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                for number in range(CALLS):
                    tasks.start_soon(call, client, number)
    assert (len(found), sum(found)) == (CALLS, LARGE)


def test_all_calls_of_a_killed_server_end_with_a_clear_error(
    start: Callable[..., Process],
) -> None:
    client = start()
    waiting = {client.send("tools/call", name="silent", arguments={}) for _ in range(20)}
    os.kill(int(client.said(client.call("pid"))), signal.SIGKILL)
    errors = [client.read() for _ in waiting]
    assert {error["id"] for error in errors} == waiting
    assert all(error["error"]["message"].startswith("the MCP server tiny has ended") for error in errors)
    assert client.said(client.call("pid"))


def test_a_server_that_closes_its_output_counts_as_ended(start: Callable[..., Process]) -> None:
    client = start(sys.executable, "-c", RUDE)
    server = int(client.said(client.call("pid")))
    assert "has ended" in client.call("shut")["error"]["message"]
    wait_until_gone(server)
    assert client.said(client.call("pid")) != str(server)


@pytest.mark.parametrize("way", ["leave", "detach"])
def test_a_dead_server_counts_as_ended_even_if_its_child_holds_its_output(
    start: Callable[..., Process], tmp_path: Path, way: str
) -> None:
    client = start(sys.executable, "-c", RUDE)
    waiting = {client.send("tools/call", name=name, arguments={}) for name in ("silent", way)}
    try:
        errors = [client.read() for _ in waiting]
        assert {error["id"] for error in errors} == waiting
        assert all("has ended" in error["error"]["message"] for error in errors)
        assert client.said(client.call("pid"))
        helper = int((tmp_path / "helper").read_text())
        if way == "leave":
            wait_until_gone(helper)
    finally:
        if way == "detach":
            os.kill(int((tmp_path / "helper").read_text()), signal.SIGKILL)


def test_output_before_a_server_dies_is_read_even_if_its_child_holds_the_pipe(
    start: Callable[..., Process], tmp_path: Path
) -> None:
    client = start(sys.executable, "-c", RUDE)
    assert int(client.said(client.call("leave", answers=True)))  # its process id
    client.wait_for_stderr("the MCP server rude has ended; the next request starts it again")
    assert client.said(client.call("pid"))
    assert client.leave() == 0
    wait_until_gone(int((tmp_path / "helper").read_text()))


def test_processes_that_a_server_started_end_with_it(start: Callable[..., Process], tmp_path: Path) -> None:
    client = start(sys.executable, "-c", RUDE)
    assert client.said(client.call("help"))
    assert client.leave() == 0
    wait_until_gone(int((tmp_path / "helper").read_text()))


def test_a_server_that_also_prints_to_stdout_is_understood(start: Callable[..., Process]) -> None:
    client = start(sys.executable, "-c", RUDE)
    assert client.said(client.call("noise")) == client.said(client.call("pid"))


def test_a_client_that_dies_within_a_message_leaves_no_process(start: Callable[..., Process]) -> None:
    client = start()
    server = int(client.said(client.call("pid")))
    assert client.popen.stdin is not None
    client.popen.stdin.write(b'{"jsonrpc": "2.0", "id": 9, "meth')
    assert client.leave() == 0
    wait_until_gone(server)


def test_a_client_that_vanishes_before_its_results_arrive_leaves_no_process(tmp_path: Path) -> None:
    reads, writes = os.pipe()
    command = [sys.executable, "-m", "coatcheck.cli", "mcp", f"--storage={tmp_path / 'store'}", "--", *TINY]
    with (
        (tmp_path / "stderr").open("wb") as stderr,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=writes, stderr=stderr) as proxy,
    ):
        os.close(writes)
        assert proxy.stdin is not None
        with open(reads, "rb") as stdout:  # noqa: PTH123 - a file descriptor
            send(proxy, 0, "initialize", HELLO)
            stdout.readline()
            send(proxy, 1, "tools/call", {"name": "pid", "arguments": {}})
            server = int(json.loads(stdout.readline())["result"]["content"][0]["text"])
            for number in range(2, 50):
                send(proxy, number, "tools/call", {"name": "huge", "arguments": {"size": 9_000}})
        with suppress(BrokenPipeError):
            proxy.stdin.close()
        assert proxy.wait(PATIENCE) == 0
    assert "Traceback" not in (tmp_path / "stderr").read_text(encoding="utf-8")
    wait_until_gone(server)


def test_a_client_with_nonblocking_pipes_is_waited_for_and_gets_whole_answers(tmp_path: Path) -> None:
    (reads, into), (out_of, writes) = os.pipe(), os.pipe()
    for each in (into, out_of):
        os.set_blocking(each, False)
    command = [sys.executable, "-m", "coatcheck.cli", "mcp", f"--storage={tmp_path / 'store'}", "--", *TINY]
    with subprocess.Popen(command, stdin=out_of, stdout=into) as proxy, open(reads, "rb") as answers:  # noqa: PTH123
        os.close(out_of)
        with open(writes, "wb") as proxy.stdin:  # noqa: PTH123 - a file descriptor
            send(proxy, 0, "initialize", HELLO)
            assert json.loads(answers.readline())["id"] == 0
            assert os.get_blocking(into), "else what does not fit into the pipe is lost"
            os.close(into)
            call = {"name": "huge", "arguments": {"size": 150_000}, "_meta": {"coatcheck": "keep"}}
            send(proxy, 1, "tools/call", call)
            assert len(json.loads(answers.readline())["result"]["content"][0]["text"]) == 150_000
        assert proxy.wait(PATIENCE) == 0


def send(proxy: subprocess.Popen[bytes], number: int, method: str, params: object) -> None:
    assert proxy.stdin is not None
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    proxy.stdin.write(json.dumps(message).encode() + b"\n")
    proxy.stdin.flush()


@pytest.mark.parametrize(
    ("ending", "options"), [(signal.SIGTERM, ["--stay"]), (signal.SIGHUP, ["--stay"]), (signal.SIGKILL, [])]
)
def test_a_proxy_on_a_port_that_ends_during_a_call_leaves_no_server(
    tmp_path: Path, ending: signal.Signals, options: list[str]
) -> None:
    command = [sys.executable, "-m", "coatcheck.cli", "mcp", f"--storage={tmp_path / 'store'}"]
    env = {**os.environ, "COATCHECK_MCP_TOKEN": TOKEN}
    starting = nullcontext() if ending == signal.SIGKILL else handled(ending, signal.SIG_DFL)
    with (
        reserved_port() as port,
        starting,
        subprocess.Popen(
            [*command, f"--http={port}", "--", *TINY, *options], env=env, stderr=subprocess.DEVNULL
        ) as proxy,
    ):
        wait_until_listening(proxy, port)
        session, _ = post(port, 0, "initialize", HELLO)
        _, answer = post(port, 1, "tools/call", {"name": "pid", "arguments": {}}, session=session)
        server = int(answer["result"]["content"][0]["text"])
        left = request(port, 2, "tools/call", {"name": "silent", "arguments": {}}, session=session)
        left.close()  # other clients are served although one has gone away
        assert post(port, 3, "tools/call", {"name": "pid", "arguments": {}}, session=session)[1] != {}
        waiting = request(port, 4, "tools/call", {"name": "silent", "arguments": {}}, session=session)
        proxy.send_signal(ending)
        proxy.wait(PATIENCE)
        waiting.close()
    wait_until_gone(server)


def request(port: int, number: int, method: str, params: object, *, session: str = "") -> HTTPConnection:
    """Send a request, and leave its answer unread."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        **({"Mcp-Session-Id": session} if session else {}),
    }
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    connection.request("POST", "/mcp", json.dumps(message), headers)
    return connection


def post(port: int, number: int, method: str, params: object, *, session: str = "") -> tuple[str, Any]:
    """Send a request, and return the id of the session and the answer."""
    connection = request(port, number, method, params, session=session)
    response = connection.getresponse()
    events = [line[6:] for line in response.read().splitlines() if line.startswith(b"data: {")]
    connection.close()
    return response.headers.get("Mcp-Session-Id", session), json.loads(events[-1])
