"""``coatcheck mcp -- COMMAND`` as a process, with a client and a server that misbehave: no hang, no orphan."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from coatcheck import RETRIEVAL_TOOL
from coatcheck_mcp.serving import KILL_SECONDS
from tests.adapters.mcp.processes import PATIENCE, TINY, Process, handled, wait_until_gone
from tests.cli.running import answered, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_session_works_from_the_first_line_to_the_last(start: Callable[..., Process], tmp_path: Path) -> None:
    client = start(FROM_THE_ENTRY="s3cret")
    hello = client.shake_hands()["result"]
    assert hello["serverInfo"] == {"name": "tiny", "version": "1"}
    assert client.said(client.call("env", name="FROM_THE_ENTRY")) == "s3cret"
    shown = client.call("big")["result"]
    (reference,) = shown["_meta"]["coatcheck"]["references"]
    back = client.call(RETRIEVAL_TOOL, reference=reference, pattern="log")
    assert "line of a log" in client.said(back)
    assert client.said(client.call("flood")) == "flooded"
    server = int(client.said(client.call("pid")))
    assert client.leave() == 0
    wait_until_gone(server)
    assert "a result of big, about" in client.stderr
    assert reference in client.stderr
    counted = [sys.executable, "-m", "coatcheck.cli", "mcp", "stats", f"--storage={tmp_path / 'store'}", "--json"]
    (scope,) = json.loads(subprocess.check_output(counted))["scopes"]
    assert scope["contents"] == 1
    assert (scope["server"], scope["folder"]) == ("tiny", str(client.folder))
    assert f"--scope={scope['scope']}" in client.stderr
    folder = client.folder / "store"
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_server_that_dies_ends_its_call_with_a_clear_error_and_is_started_again(
    start: Callable[..., Process],
) -> None:
    client = start()
    client.shake_hands()
    before = client.said(client.call("pid"))
    for ending in ("die", "half"):
        error = client.call(ending)["error"]
        assert error["message"].startswith("the MCP server tiny has ended")
        assert client.said(client.call("pid")) != before
    assert client.leave() == 0


def test_a_server_that_ended_while_nobody_waited_is_started_again_by_the_next_call(
    start: Callable[..., Process],
) -> None:
    client = start()
    client.shake_hands()
    before = int(client.said(client.call("pid")))
    os.kill(before, signal.SIGKILL)
    client.wait_for_stderr("the MCP server tiny has ended; the next request starts it again")
    assert client.said(client.call("pid")) != str(before)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            ("no-such-command-anywhere",),
            "there is no such command as no-such-command-anywhere in the folders of PATH; write its",
        ),
        (("./no-such-server",), "/no-such-server"),
        (("npx -y foo",), "'npx -y foo' is one word: the program is \"npx\" alone"),
        ((sys.executable, "-c", "import sys; sys.exit('a reason')"), "it ended before it answered"),
        ((*TINY, "--not-an-mcp-server"), "it ended before it answered"),
    ],
    ids=["missing", "missing in its folder", "one word", "failing", "another program"],
)
def test_a_server_that_does_not_start_is_named_in_the_error(
    start: Callable[..., Process], command: tuple[str, ...], words: str
) -> None:
    client = start(*command)
    error = client.shake_hands()["error"]
    assert error["message"].startswith("coatcheck could not start the MCP server")
    assert words in error["message"]
    assert client.leave() == 0


@pytest.mark.parametrize("ending", ["client leaves", signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_no_process_is_left_even_if_the_server_does_not_notice_the_end(
    start: Callable[..., Process], ending: str | signal.Signals
) -> None:
    with handled(ending if isinstance(ending, signal.Signals) else signal.SIGTERM, signal.SIG_DFL):
        client = start(*TINY, "--stay")
    client.shake_hands()
    server = int(client.said(client.call("pid")))
    client.send("tools/call", name="silent", arguments={})
    if isinstance(ending, signal.Signals):
        client.popen.send_signal(ending)
        client.popen.wait(PATIENCE)
    else:
        client.leave()
    wait_until_gone(server)


ENDED_BY_SIGNALS = """
import mcp.client.stdio
from coatcheck.cli import main
from coatcheck_mcp import serving

mcp.client.stdio.PROCESS_TERMINATION_TIMEOUT = 600  # only the second signal can end the server
serving.KILL_SECONDS = 2  # a busy server may take a moment to note that signal
main()
"""


def test_a_client_that_does_not_wait_for_the_proxy_leaves_no_server(tmp_path: Path) -> None:
    signals = tmp_path / "signals"
    with handled(signal.SIGINT, signal.SIG_DFL):
        noting, program = {"SIGNALS": str(signals)}, ("-c", ENDED_BY_SIGNALS)
        client = Process(tmp_path, *TINY, "--stay", env=noting, program=program)
    with client:
        client.shake_hands()
        server = int(client.said(client.call("pid")))
        client.popen.send_signal(signal.SIGINT)
        while not (signals.exists() and signals.read_text(encoding="utf-8")):  # at first it is empty
            os.sched_yield()
        client.popen.send_signal(signal.SIGTERM)
        client.popen.wait(PATIENCE)
    wait_until_gone(server)
    assert signals.read_text(encoding="utf-8").split() == ["SIGINT", "SIGTERM"]
    assert KILL_SECONDS < 0.4, "Claude Code kills the proxy then"


def test_a_proxy_under_nohup_outlives_its_terminal(tmp_path: Path) -> None:
    with handled(signal.SIGHUP, signal.SIG_IGN):
        client = Process(tmp_path, *TINY)
    with client:
        client.shake_hands()
        client.popen.send_signal(signal.SIGHUP)
        assert client.said(client.call("pid"))
        assert client.leave() == 0


def test_no_process_is_left_if_the_server_was_about_to_start(start: Callable[..., Process], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pid")  # a read blocks until it is written
    client = start(*TINY, "--never-up", PID_FILE=str(tmp_path / "pid"))
    client.send("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"})
    server = int((tmp_path / "pid").read_text(encoding="utf-8"))
    client.popen.send_signal(signal.SIGTERM)
    client.popen.wait(PATIENCE)
    wait_until_gone(server)


def test_a_killed_proxy_leaves_no_server(start: Callable[..., Process]) -> None:
    client = start()
    client.shake_hands()
    server = int(client.said(client.call("pid")))
    client.popen.kill()
    wait_until_gone(server)


def test_a_cancelled_call_is_cancelled_at_the_server(start: Callable[..., Process], tmp_path: Path) -> None:
    heard, cancelled = tmp_path / "heard", tmp_path / "cancelled"
    for note in (heard, cancelled):
        os.mkfifo(note)  # a read blocks until it is written
    client = start(HEARD=str(heard), CANCELLED=str(cancelled))
    client.shake_hands()
    call = client.send("tools/call", name="silent", arguments={})
    assert heard.read_text(encoding="utf-8")
    client.notify("notifications/cancelled", requestId=call, reason="enough")
    assert json.loads(cancelled.read_text(encoding="utf-8"))["method"] == "notifications/cancelled"
    assert client.said(client.call("pid"))


def test_lines_that_are_not_json_do_not_end_the_session(start: Callable[..., Process]) -> None:
    client = start()
    client.shake_hands()
    assert client.popen.stdin is not None
    client.popen.stdin.write(b'{"jsonrpc": "2.0", "id"\n\xff\xfe\n[]\n')
    client.popen.stdin.flush()
    assert client.said(client.call("pid"))


def test_a_folder_that_the_user_chose_has_no_limits_unless_a_file_sets_them(start: Callable[..., Process]) -> None:
    proxy = start()
    proxy.shake_hands()

    assert proxy.said(proxy.call("big")).startswith("Tool result offloaded.")
    proxy.wait_for_stderr("; nothing is removed there")


@pytest.mark.parametrize("kind", ["file", "read-only"])
def test_an_unwritable_folder_is_reported_at_the_start_and_ends_nothing(
    tmp_path: Path, start: Callable[..., Process], kind: str
) -> None:
    if kind == "file":
        (tmp_path / "store").write_text("words", encoding="utf-8")
    else:
        (tmp_path / "store").mkdir(mode=0o500)
        if os.access(tmp_path / "store", os.W_OK):
            pytest.skip("this user may write everywhere")
    proxy = start()
    proxy.shake_hands()

    assert proxy.said(proxy.call("big")).startswith("line of a log")
    proxy.leave()
    assert "coatcheck: nothing can be stored there (" in proxy.stderr
    assert "stay in the conversation, and above 50,000 tokens they are cut\n" in proxy.stderr


@pytest.mark.parametrize("named", ["option", "variable", "file"])
def test_settings_without_limits_delete_nothing_of_others_in_a_folder_that_the_user_chose(
    tmp_path: Path, named: str
) -> None:
    folder, settings = tmp_path / "shared", tmp_path / "coatcheck.toml"
    assert run("put", f"--storage={folder}", "--scope=agent-1", given=b"kept for months\n").exit_code == 0
    for path in folder.rglob("*"):
        os.utime(path, (time.time() - 10 * 86_400,) * 2)
    settings.write_text('storage = "shared"\n' if named == "file" else "max_result_tokens = 2500\n", encoding="utf-8")
    storage = ["--storage=shared"] if named == "option" else []
    env = {"COATCHECK_STORAGE": "shared"} if named == "variable" else {}
    with Process(tmp_path, *TINY, options=[f"--config={settings}", *storage], storage=None, env=env) as proxy:
        proxy.shake_hands()
        assert proxy.said(proxy.call("big")).startswith("Tool result offloaded.")
        proxy.leave()

    assert answered("stats", f"--storage={folder}", "--scope=agent-1")["contents"] == 2
    assert "; nothing is removed there\n" in proxy.stderr


def test_a_scope_from_the_environment_may_contain_spaces(start: Callable[..., Process]) -> None:
    start(COATCHECK_SCOPE="team 7").wait_for_stderr(" '--scope=team 7'\n")


def test_by_default_a_week_and_two_gigabytes_are_kept_in_the_users_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COATCHECK_STORAGE", raising=False)
    with Process(tmp_path, *TINY, options=["--scope=mine"], storage=None, env={"HOME": str(tmp_path)}) as client:
        client.shake_hands()
        (reference,) = client.call("big")["result"]["_meta"]["coatcheck"]["references"]
        client.leave()
    folder = tmp_path / ".coatcheck/mcp"
    assert "are stored in ~/.coatcheck/mcp; at most 2,000,000,000 bytes, 7 days without use\n" in client.stderr
    assert folder.stat().st_mode & 0o777 == 0o700
    assert run("get", reference, "--scope=mine", f"--storage={folder}").exit_code == 0
    assert run("get", reference, "--scope=yours", f"--storage={folder}").exit_code == 1


def test_the_limits_in_the_file_apply(start: Callable[..., Process], tmp_path: Path) -> None:
    settings = tmp_path / "coatcheck.toml"
    settings.write_text('max_bytes = "10KB"\nmax_age = "1d"\n', encoding="utf-8")
    proxy = start(options=[f"--config={settings}"])
    proxy.shake_hands()

    assert proxy.said(proxy.call("big")).startswith("line of a log")
    proxy.wait_for_stderr("; at most 10,000 bytes, 1 days without use")
    proxy.wait_for_stderr("larger than the 10,000")


def test_servers_share_references_only_under_the_same_name(start: Callable[..., Process]) -> None:
    def text_of(reference: str, name: str) -> str:
        client = start(options=[f"--name={name}"])
        client.shake_hands()
        return client.said(client.call(RETRIEVAL_TOOL, reference=reference))

    first = start(options=["--name=work"])
    first.shake_hands()
    (reference,) = first.call("big")["result"]["_meta"]["coatcheck"]["references"]
    assert "line of a log" in text_of(reference, "work")
    assert "line of a log" not in text_of(reference, "home")
