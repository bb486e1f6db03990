"""The start of the proxy: how long it waits for a server, who may reach its port, and what it tells people."""

# ruff: noqa: ANN401 - what the protocol and the library pass is of any type

from __future__ import annotations

import errno
import json
import os
import shlex
import socket
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import MCPError

from coatcheck import InMemoryStorage
from coatcheck.cli.mcp_command import _headers as headers_of
from coatcheck.cli.mcp_command import _token as given_token
from coatcheck_mcp import Proxy, Upstream, command_upstream, load, url_upstream
from tests.adapters.mcp.ports import reserved_port, wait_until_listening
from tests.adapters.mcp.processes import PATIENCE, TINY, Process
from tests.adapters.mcp.servers import HELLO, Everything, FailsToStart, client_of
from tests.cli.running import run
from tests.core.storages import DictStorage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence
    from pathlib import Path


@pytest.fixture(autouse=True)
def logging_of_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the loggers of this process alone: a command that runs in it would take them from all later tests."""
    monkeypatch.setattr("coatcheck.cli.mcp_command.log_in_background", lambda: None)


REASON = "no such luck"
TOKEN_VARIABLE = "COATCHECK_MCP_TOKEN"  # noqa: S105 - the name of the variable


class TestWaiting:
    @pytest.mark.parametrize(
        ("error", "said"),
        [
            (OSError(REASON), REASON),
            (OSError("Too many open files"), "Too many open files; let coatcheck have more files open (`ulimit -n`)"),
        ],
        ids=["any reason", "too many files"],
    )
    async def test_requests_that_wait_for_the_same_start_fail_with_it(
        self, monkeypatch: pytest.MonkeyPatch, error: OSError, said: str
    ) -> None:
        monkeypatch.setattr("coatcheck_mcp.proxy.DISCOVER_SECONDS", 0.01)
        never = FailsToStart(error)
        failures: list[str] = []

        async def ask(client: Any) -> None:
            with pytest.raises(MCPError) as refused:
                await client.list_tools()
            failures.append(str(refused.value))

        proxy = Proxy(never.upstream("never"), InMemoryStorage())
        async with client_of({}, proxy=proxy, mode="auto") as client:
            with anyio.fail_after(PATIENCE):
                async with anyio.create_task_group() as tasks:
                    for _ in range(3):
                        tasks.start_soon(ask, client)
                    await anyio.wait_all_tasks_blocked()
                    never.starts[0].set()
            assert failures == [f"coatcheck could not start the MCP server never: {said}"] * 3
            assert len(never.starts) == 1

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, client)
                await anyio.wait_all_tasks_blocked()
                never.starts[1].set()
        assert len(never.starts) == 2, "a later request tries again"

    async def test_the_proxy_gives_up_on_a_silent_server_after_the_time_in_the_settings(self) -> None:
        silent = command_upstream([sys.executable, "-c", "import sys; sys.stdin.read()"], start_seconds=0.01)
        with pytest.RaisesGroup(
            pytest.RaisesExc(MCPError, match=r"within 0\.01 seconds; start_timeout in a coatcheck\.toml"),
            flatten_subgroups=True,
        ):
            async with client_of(silent):
                pass

    async def test_a_modern_client_is_also_told_why_a_start_failed(self) -> None:
        gone = command_upstream([sys.executable, "-c", ""])
        async with client_of(gone, mode="auto") as client:
            with pytest.raises(MCPError, match=r"could not start the MCP server .*: it ended before it answered"):
                await client.list_tools()

    def test_a_login_has_two_minutes_whatever_the_settings_say(self) -> None:
        assert url_upstream("https://h/mcp", start_seconds=5).start_seconds == 5
        assert url_upstream("https://h/mcp", start_seconds=5, oauth=True).start_seconds == 120

    def test_the_file_sets_the_time_limit_of_a_start(self, tmp_path: Path) -> None:
        file = tmp_path / "coatcheck.toml"
        for text, seconds in (("", 60), ('start_timeout = "5m"', 300), ('start_timeout = "unlimited"', float("inf"))):
            file.write_text(text)
            assert load(file).start_seconds == seconds

    def test_the_command_gives_each_server_the_time_in_the_file(self, tmp_path: Path) -> None:
        settings = tmp_path / "coatcheck.toml"
        settings.write_text('start_timeout = "1s"\n')
        silent = [sys.executable, "-c", "import sys; sys.stdin.read()"]
        with Process(tmp_path, *silent, options=[f"--config={settings}"]) as client:
            assert "it did not answer within 1 seconds" in client.shake_hands()["error"]["message"]


@contextmanager
def on_a_port(folder: Path, server: Sequence[str] = TINY) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start the proxy on a port of loopback, without any token from the environment of the tests."""
    command = [sys.executable, "-m", "coatcheck.cli", "mcp", f"--storage={folder / 'store'}"]
    env = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
    with (
        reserved_port() as port,
        subprocess.Popen(
            [*command, f"--http={port}", "--", *server], env=env, stderr=subprocess.PIPE, text=True
        ) as proxy,
    ):
        try:
            yield proxy, port
        finally:
            proxy.kill()


def status_of(port: int, token: str) -> int:
    """Return the status of a request with a token, once the whole answer has arrived."""
    headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("POST", "/mcp", message, {**headers, "Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


_NO_HEADER = "holds a line end, another control character or a letter that is not ASCII"


class TestToken:
    async def test_no_server_inherits_it_unless_its_entry_sets_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(TOKEN_VARIABLE, "the ports")
        monkeypatch.setenv("FROM_THE_ENTRY", "s3cret")
        found = []
        for env in (None, {TOKEN_VARIABLE: "its own"}):
            async with client_of(command_upstream(TINY, env=env)) as client:
                told = [await client.call_tool("env", {"name": name}) for name in (TOKEN_VARIABLE, "FROM_THE_ENTRY")]
                found.append([each.content[0].text for each in told])
        assert found == [["", "s3cret"], ["its own", "s3cret"]]

    def test_without_a_token_a_new_one_is_made_and_shown_on_stderr(self, tmp_path: Path) -> None:
        tokens = []
        for _ in range(2):
            with on_a_port(tmp_path) as (proxy, port):
                assert proxy.stderr is not None
                line = next(line for line in proxy.stderr if "Authorization" in line)
                token = line.removeprefix("coatcheck: clients must send the header 'Authorization: Bearer ").rstrip(
                    "'\n"
                )
                wait_until_listening(proxy, port)
                assert status_of(port, token) == 200
                assert status_of(port, f"{token}x") == 401
                tokens.append(token)
        assert tokens[0] != tokens[1]
        assert all(len(token) >= 43 for token in tokens), "256 bits"

    @pytest.mark.parametrize(
        ("value", "fault", "remedy"),
        [
            ("", "is empty", "give it a value"),
            ("  ", "is empty", "give it a value"),
            ("t\xf6k", _NO_HEADER, "correct it"),
            ("to\nken", _NO_HEADER, "correct it"),
            ("\udcff", _NO_HEADER, "correct it"),
        ],
        ids=["empty", "blanks", "letter", "line end", "byte"],
    )
    def test_a_token_that_no_client_can_send_is_refused_at_the_start_and_not_shown(
        self, tmp_path: Path, value: str, fault: str, remedy: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("coatcheck.cli.mcp_command._serve_port", lambda *_: None)
        ran = run("mcp", "--http=8123", f"--storage={tmp_path}", "--", *TINY, env={TOKEN_VARIABLE: value})

        assert ran.exit_code == 2
        assert ran.stderr == (
            f"coatcheck: {TOKEN_VARIABLE} {fault}, so no client could connect; {remedy}, or unset it to have one made\n"
        )

    def test_a_token_from_a_file_loses_the_line_end_that_no_header_can_hold(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(TOKEN_VARIABLE, "token\r\n")
        assert given_token() == "token"


@pytest.mark.parametrize("option", ["--scope", "--storage", "--name"])
def test_an_empty_option_is_refused_at_the_start(tmp_path: Path, option: str) -> None:
    ran = run("mcp", f"--storage={tmp_path}", option, "", "--", *TINY)

    assert ran.exit_code == 2
    assert ran.stderr == f"coatcheck: {option} is empty; give it a value, or leave it out\n"


@pytest.mark.parametrize("where", ["on the command line", "in the file"])
def test_an_invalid_url_ends_the_start_with_a_message_and_no_traceback(tmp_path: Path, where: str) -> None:
    url, config = "http://h:1/\\u0007", tmp_path / "coatcheck.toml"
    config.write_text(f'[servers.a]\nurl = "{url}"\n', encoding="utf-8")
    option = "--url=http://h:port/" if where == "on the command line" else f"--config={config}"
    ran = run("mcp", f"--storage={tmp_path}", option)

    assert ran.exit_code == 2
    assert ran.stderr.startswith("coatcheck: the URL must be one like https://example.com/mcp, not 'http://h:")


class TestHeaders:
    @pytest.mark.parametrize("named", ["$NOPE", "${NOPE}"])
    def test_a_variable_that_is_not_set_is_refused_at_the_start(
        self, tmp_path: Path, named: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("coatcheck.cli.mcp_command._serve", lambda _: None)
        header = f"Authorization: Bearer {named}"
        ran = run("mcp", f"--storage={tmp_path}", "--url=http://127.0.0.1:1/mcp", f"--header={header}")

        assert ran.exit_code == 2
        assert ran.stderr == (
            "coatcheck: --header Authorization names the variable NOPE, which is not set; set it where the proxy"
            " starts\n"
        )

    def test_variables_are_filled_in_and_nothing_else(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ONE", "$1")
        monkeypatch.setenv("TWO", "b")
        given = ["A: $ONE-${TWO}c", "B:  $ and 5$ ", "C: plain"]

        assert headers_of(given) == {"A": "$1-bc", "B": "$ and 5$", "C": "plain"}

    def test_a_token_from_a_file_loses_its_line_end(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TOKEN", "s3cret\r\n")

        assert headers_of(["Authorization: Bearer $TOKEN"]) == {"Authorization": "Bearer s3cret"}

    @pytest.mark.parametrize("token", ["", " \n", "s3cr\net", "s3cret\x01", "s3crét", "s3cret😀"])
    def test_a_value_that_no_header_can_have_is_refused_and_not_shown(
        self, tmp_path: Path, token: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("coatcheck.cli.mcp_command._serve", lambda _: None)
        monkeypatch.setenv("TOKEN", token)
        ran = run(
            "mcp", f"--storage={tmp_path}", "--url=http://127.0.0.1:1/mcp", "--header=Authorization: Bearer $TOKEN"
        )

        assert ran.exit_code == 2
        assert "--header Authorization" in ran.stderr
        assert ("TOKEN, which is empty; give it a value" in ran.stderr) is (not token.strip())
        assert "s3cr" not in ran.stderr


class TestWords:
    def test_a_port_in_use_is_reported_on_one_line(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            ran = run("mcp", f"--http={port}", f"--storage={tmp_path}", "--", *TINY)

        assert ran.exit_code == 2
        why = os.strerror(errno.EADDRINUSE)
        assert ran.stderr == (
            f"coatcheck: port {port} of 127.0.0.1 cannot be used: {why}; name another one with --http\n"
        )

    def test_errors_while_it_serves_on_a_port_are_reported_on_stderr(self, tmp_path: Path) -> None:
        with on_a_port(tmp_path, ["no-such-command"]) as (proxy, port):
            assert proxy.stderr is not None
            line = next(line for line in proxy.stderr if "Authorization" in line)
            wait_until_listening(proxy, port)
            status_of(port, line.rstrip("'\n").rpartition(" ")[2])
            proxy.terminate()
            said = proxy.stderr.read()

        assert said.startswith("coatcheck: could not start the MCP server no-such-command: there is no such command")

    def test_a_secret_in_the_address_of_the_storage_is_not_shown(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("coatcheck.cli.mcp_command._serve", lambda _: None)
        monkeypatch.setattr("coatcheck.cli.mcp_command.storage_at", lambda *_, **__: InMemoryStorage())

        ran = run("mcp", "--storage=sftp://me:s3cret@host/a", "--scope=mine", "--", *TINY)

        assert ran.exit_code == 0
        assert "s3cret" not in ran.stderr
        assert "are stored in sftp://***@host/a; " in ran.stderr
        assert "to list them, with the secret in place of ***: " in ran.stderr

    def test_limits_that_nothing_enforces_are_not_promised(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        settings = tmp_path / "coatcheck.toml"
        settings.write_text('storage = "sftp://host/a"\nmax_age = "7d"\n', encoding="utf-8")
        monkeypatch.setattr("coatcheck.cli.mcp_command._serve", lambda _: None)
        monkeypatch.setattr("coatcheck.cli.mcp_command.storage_at", lambda *_, **__: DictStorage())

        ran = run("mcp", f"--config={settings}", "--scope=mine", "--", *TINY)

        assert ran.exit_code == 0
        assert "are stored in sftp://host/a; nothing is removed there\n" in ran.stderr
        assert f"coatcheck: {settings}: max_age has no effect, because the storage is not a folder" in ran.stderr

    def test_stats_say_how_to_list_everything(self, tmp_path: Path) -> None:
        run("put", f"--storage={tmp_path}", given=b"kept")

        said = run("mcp", "stats", f"--storage={tmp_path}").stdout.splitlines()[-1]

        assert said.startswith("To list what a server stored in a folder, use the --scope that --json shows. All: ")
        listed = subprocess.check_output(shlex.split(said.partition(" All: ")[2]), text=True)
        assert "LAST SAVED OR USED" in listed

    def test_messages_call_a_server_by_the_name_that_its_user_gave(self, tmp_path: Path) -> None:
        with Process(tmp_path, "no-such-command", options=["--name=issues"]) as client:
            error = client.shake_hands()["error"]
            client.leave()
        assert error["message"].startswith("coatcheck could not start the MCP server issues: there is no such command")
        assert "coatcheck: results of issues above" in client.stderr
        said = "coatcheck: could not start the MCP server issues: there is no such command"
        assert client.stderr.count(said) == 1, "clients show a log to people, and answers to few"


class TestScope:
    def test_the_command_that_lists_the_scope_is_shown_and_can_be_pasted(self, tmp_path: Path) -> None:
        with Process(tmp_path, *TINY) as client:
            client.shake_hands()
            (reference,) = client.call("big")["result"]["_meta"]["coatcheck"]["references"]
            client.leave()

        (line,) = [line for line in client.stderr.splitlines() if line.startswith("coatcheck: to list them: ")]
        listed = subprocess.check_output(shlex.split(line.removeprefix("coatcheck: to list them: ")), text=True)
        assert reference in listed

    @pytest.mark.parametrize("scope", [["mine"], ["team 7", "laptop"]], ids=["one part", "two parts"])
    def test_a_chosen_scope_is_shown_at_the_start(self, tmp_path: Path, scope: list[str]) -> None:
        with Process(tmp_path, *TINY, options=[f"--scope={part}" for part in scope]) as client:
            client.shake_hands()
            client.leave()

        words = shlex.join(["ls", f"--storage={tmp_path / 'store'}", *(f"--scope={part}" for part in scope)])
        assert client.stderr.count("to list them: ") == 1
        assert f" -m coatcheck {words}\n" in client.stderr


class TestRules:
    """Rules in the file that match no tool are reported once the tools are known."""

    def said(self, folder: Path, *options: str) -> list[str]:
        rules = ("big", "tiny.t*t", "bgi", "other.*")
        file = folder / "coatcheck.toml"
        file.write_text("".join(f'[tools."{rule}"]\nnever = true\n' for rule in rules), encoding="utf-8")
        with Process(folder, *TINY, options=[f"--config={file}", *options]) as client:
            client.shake_hands()
            for _ in range(2):
                client.ask("tools/list")
            client.leave()
        return [line for line in client.stderr.splitlines() if "no tool matches" in line]

    def test_they_are_reported_once(self, tmp_path: Path) -> None:
        (line,) = self.said(tmp_path, "--name=tiny")
        assert line.startswith('coatcheck: no tool matches [tools."bgi"], [tools."other.*"] in ')
        assert "here: tools are tiny.big, tiny.die, tiny.env, " in line
        assert line.endswith(", tiny.pid and 2 more; did you mean big?")

    def test_without_a_name_rules_for_servers_are_among_the_unused_ones(self, tmp_path: Path) -> None:
        (line,) = self.said(tmp_path)
        assert '[tools."tiny.t*t"]' in line
        assert "; without --name they have no server's name before them" in line


async def test_tools_of_several_servers_are_reported_only_when_none_is_missing() -> None:
    told: list[list[str]] = []
    late_is_up = False

    @asynccontextmanager
    async def connect() -> AsyncIterator[Any]:
        if not late_is_up:
            msg = "not yet"
            raise OSError(msg)
        async with Everything().upstream().connect() as streams:
            yield streams

    upstreams = {"a": Everything().upstream(), "late": Upstream(name="late", connect=connect)}
    proxy = Proxy(upstreams, InMemoryStorage(), on_tools=lambda names: told.append(list(names)))
    async with client_of(upstreams, proxy=proxy) as client:
        await client.list_tools()
        assert told == []
        late_is_up = True
        await client.call_tool("late_small")
        for _ in range(2):
            await client.list_tools()
    assert len(told) == 1
    assert {"a_log", "late_log"} < set(told[0])
