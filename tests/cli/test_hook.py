"""``coatcheck hook`` in fresh processes, as a client runs it: what it answers, and that it always exits with 0."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coatcheck import FileStorage, Offloader
from coatcheck.cli.hook_settings import options_for
from coatcheck.hook import command
from coatcheck.hook.answer import respond
from coatcheck.hook.command import for_shells, get_command, is_get, program, split_hook, sweep_command
from coatcheck.hook.options import Options, read_options
from coatcheck.hook.shapes import large_texts, replaced

OPENING = "Tool result offloaded. [Offloaded: "
SESSION = "50b10772-851d-4a10-b80a-0bca2ab05479"
LARGE = "".join(f"{number} INFO the service answered in {number * 7919 % 1000} ms\n" for number in range(1_000))
SMALL = "all is well\n"
ROWS = {"rows": [{"id": number, "state": "open"} for number in range(1_000)]}
HALF = LARGE[: len(LARGE) // 4]

BASH = {"stdout": LARGE, "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
READ = {
    "type": "text",
    "file": {"filePath": "/a/b.log", "content": LARGE, "numLines": 1_000, "startLine": 1, "totalLines": 1_000},
}
GREP = {"mode": "content", "numFiles": 0, "filenames": [], "content": LARGE, "numLines": 1_000}
FETCH = {"bytes": 43_780, "code": 200, "codeText": "OK", "result": LARGE, "durationMs": 12, "url": "https://a.example"}
GLOB = {"filenames": [f"/a/{number}/some_file_name.py" for number in range(2_000)], "durationMs": 3, "truncated": False}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 40_000}}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def event(response: object, *, tool: str = "Bash", **changes: object) -> dict[str, Any]:
    return {
        "session_id": SESSION,
        "transcript_path": "/a/transcript.jsonl",
        "cwd": "/a",
        "permission_mode": "default",
        "hook_event_name": "PostToolUse",
        "tool_name": tool,
        "tool_input": {"command": "journalctl"},
        "tool_response": response,
        "tool_use_id": "toolu_1",
        "duration_ms": 12,
        **changes,
    }


def run(home: Path, said: object, *words: str, **options: Any) -> subprocess.CompletedProcess[bytes]:  # noqa: ANN401 - of run
    """Run the hook in a process of its own, with what a client sends."""
    data = said if isinstance(said, bytes) else json.dumps(said).encode()
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "coatcheck", "hook", *words]
    return subprocess.run(command, input=data, env=env, check=False, capture_output=True, timeout=240, **options)


def answer(home: Path, said: object, *words: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return what the hook puts in place of the response; None if it says nothing."""
    ended = run(home, said, *words)
    assert ended.returncode == 0
    if not ended.stdout:
        return None
    output = json.loads(ended.stdout)["hookSpecificOutput"]
    assert output.keys() == {"hookEventName", "updatedToolOutput"}
    assert output["hookEventName"] == "PostToolUse"
    return output["updatedToolOutput"]


def test_the_answer_waits_for_the_reader_of_a_pipe_that_does_not_block(home: Path) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with os.fdopen(reading, "rb") as answers, os.fdopen(writing, "wb") as pipe:
        env = {**os.environ, "HOME": str(home), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-m", "coatcheck", "hook"]
        subprocess.run(command, input=json.dumps(event(BASH)).encode(), env=env, check=True, stdout=pipe)

        assert os.get_blocking(writing), "else what does not fit into the pipe is lost"
        assert json.loads(answers.read1())


# What is offloaded, in the shape of each tool's own response.


@pytest.mark.parametrize(
    ("tool", "response", "path"),
    [
        pytest.param("Bash", BASH, ("stdout",), id="Bash"),
        pytest.param("Bash", {**BASH, "stdout": "", "stderr": LARGE}, ("stderr",), id="Bash, its errors"),
        pytest.param("Read", READ, ("file", "content"), id="Read"),
        pytest.param("Grep", GREP, ("content",), id="Grep"),
        pytest.param("WebFetch", FETCH, ("result",), id="WebFetch"),
        pytest.param("mcp__a__b", LARGE, (), id="MCP, a str"),
        pytest.param("mcp__a__b", [{"type": "text", "text": LARGE}, IMAGE], (0, "text"), id="MCP, blocks"),
        pytest.param(
            "Agent",
            {"content": [{"type": "text", "text": LARGE}], "totalTokens": 5},
            ("content", 0, "text"),
            id="Agent",
        ),
    ],
)
def test_only_the_text_is_replaced(home: Path, tool: str, response: Any, path: tuple[str | int, ...]) -> None:  # noqa: ANN401 - JSON
    found = answer(home, event(response, tool=tool))

    assert type(found) is type(response)
    text, old = found, response
    for key in path:
        text, old = text[key], old[key]
    assert text.startswith(OPENING)
    assert old.count("\n") == LARGE.count("\n")
    assert replaced(found, {path: old} if path else {(): old}) == response


def test_a_list_of_names_becomes_a_list_of_one_name(home: Path) -> None:
    found = answer(home, event(GLOB, tool="Glob"))

    (name,) = found["filenames"]
    assert name.startswith(OPENING)
    assert {**found, "filenames": GLOB["filenames"]} == GLOB


def test_many_small_text_blocks_are_offloaded_together(home: Path) -> None:
    blocks = [{"type": "text", "text": f"row {number}: {'x' * 50}"} for number in range(1_000)]

    found = answer(home, event(blocks, tool="mcp__db__rows"))

    assert len(found) == 1
    assert found[0]["text"].startswith(OPENING)


@pytest.mark.parametrize("text", [LARGE, json.dumps(ROWS)], ids=["a text", "JSON"])
def test_an_mcp_result_that_is_sent_twice_is_stored_once_and_its_copy_dropped(home: Path, text: str) -> None:
    structured = {"result": text} if text is LARGE else ROWS
    response = {"content": [{"type": "text", "text": text}], "structuredContent": structured, "isError": False}

    found = answer(home, event(response, tool="mcp__a__b"))

    assert found.keys() == {"content", "isError"}
    assert found["content"][0]["text"].startswith(OPENING)
    assert len(list((home / ".coatcheck/hook").rglob("*.txt"))) == 1


@pytest.mark.parametrize("words", ["see the data", LARGE], ids=["short", "long"])
def test_what_only_structured_content_holds_is_never_lost(home: Path, words: str) -> None:
    structured = {"job": "J-4711", "log": LARGE.upper()}
    response = {"content": [{"type": "text", "text": words}], "structuredContent": structured}

    found = answer(home, event(response, tool="mcp__a__b"))

    assert found["structuredContent"]["job"] == "J-4711"
    assert found["structuredContent"]["log"].startswith(OPENING)
    assert found["content"][0]["text"] == words or found["content"][0]["text"].startswith(OPENING)


def test_the_largest_strings_are_offloaded_until_the_rest_fits() -> None:
    response = {"a": "x" * 6_000, "b": "y" * 9_000, "c": SMALL, "d": ["z" * 3_000, 5]}

    assert large_texts(response, 10_000) == {("b",): "y" * 9_000}
    assert large_texts(response, 3_500) == {("b",): "y" * 9_000, ("a",): "x" * 6_000}


def test_the_command_in_the_placeholder_reads_back_what_was_offloaded(home: Path) -> None:
    placeholder = answer(home, event(BASH))["stdout"]
    line = next(line for line in placeholder.splitlines() if line.startswith("To read more, run: "))
    command, _, options = line.removeprefix("To read more, run: ").partition(" REFERENCE ")
    reference = placeholder.splitlines()[2].split()[0]

    assert options == "--pattern=REGEX | --lines=10:20 | --offset=N"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = [*shlex.split(command), reference, "--lines=500:501"]
    read = subprocess.run([word for word in words if word != "-P"], env=env, check=True, capture_output=True, text=True)
    assert "499 INFO the service answered" in read.stdout
    assert is_get(f"{command} {reference} --lines=500:501")


def test_the_command_that_lists_what_a_session_stored_is_printed_on_stderr(home: Path) -> None:
    ended = run(home, event(BASH))
    placeholder = json.loads(ended.stdout)["hookSpecificOutput"]["updatedToolOutput"]["stdout"]

    said = "coatcheck hook: to list what this session stored: "
    (line,) = [line for line in ended.stderr.decode().splitlines() if line.startswith(said)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    words = [word for word in shlex.split(line.removeprefix(said)) if word != "-P"]
    listed = subprocess.run(words, env=env, check=True, capture_output=True, text=True).stdout
    assert placeholder.splitlines()[2].split()[0] in listed


def test_the_placeholder_names_the_mcp_tool_if_there_is_one(home: Path) -> None:
    placeholder = answer(home, event(BASH), "--retrieval-tool=mcp__files__retrieve_offloaded_content")["stdout"]

    assert "To read more: mcp__files__retrieve_offloaded_content(reference, " in placeholder


def test_content_is_stored_in_the_sessions_scope_in_a_private_folder_of_the_user(home: Path) -> None:
    placeholder = answer(home, event(BASH))["stdout"]
    folder = home / ".coatcheck/hook"

    reference = placeholder.splitlines()[2].split()[0]
    assert Offloader(FileStorage(folder)).load(reference, scope=SESSION).text == LARGE
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / "v1/total.ledger").exists(), "it has limits"


def test_the_folder_never_grows_beyond_max_bytes(home: Path) -> None:
    limit = 3 * len(LARGE)
    for number in range(5):
        assert answer(home, event({**BASH, "stdout": f"{number}\n{LARGE}"}), f"--max-bytes={limit}") is not None

    listed = FileStorage(home / ".coatcheck/hook").entries("")
    assert sum(entry.size for entry in listed) <= limit
    assert len(listed) < 5


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
def test_the_example_on_the_page_shows_an_answer_and_what_was_stored(home: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/hook.md").read_text(encoding="utf-8")
    (example,) = [block for block in page.split("```sh\n")[1:] if block.startswith("echo ")]
    program = f'coatcheck() {{ {shlex.quote(sys.executable)} -m coatcheck "$@"; }}\n'
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    script = "set -e\n" + program + example.partition("```")[0]

    said = subprocess.run(
        ["/bin/sh", "-c", script], env=env, check=True, capture_output=True, text=True, timeout=240
    ).stdout

    answered, end = json.JSONDecoder().raw_decode(said)
    placeholder = answered["hookSpecificOutput"]["updatedToolOutput"]
    assert placeholder.startswith(OPENING)
    assert placeholder.splitlines()[2].split()[0] in said[end:], "it is listed"
    assert not FileStorage(home / ".coatcheck/hook").entries("")


# What stays.


@pytest.mark.parametrize(
    ("tool", "response"),
    [
        pytest.param("Bash", {**BASH, "stdout": SMALL}, id="small"),
        pytest.param(
            "Bash", {**BASH, "persistedOutputPath": "/a/out.txt", "persistedOutputSize": 43_780}, id="spilled"
        ),
        pytest.param("Bash", {**BASH, "isImage": True}, id="an image of Bash"),
        pytest.param("Read", {"type": "image", "file": {"base64": "A" * 90_000, "type": "image/png"}}, id="an image"),
        pytest.param("Read", {"type": "pdf", "file": {"base64": "A" * 90_000, "filePath": "/a.pdf"}}, id="a document"),
        pytest.param("mcp__a__b", [IMAGE, {"type": "text", "text": SMALL}], id="an image of MCP"),
        pytest.param("Edit", {"filePath": "/a", "originalFile": LARGE, "structuredPatch": []}, id="an edit"),
        pytest.param("mcp__coatcheck__retrieve_offloaded_content", LARGE, id="what was read back by MCP"),
        pytest.param("Bash", None, id="nothing"),
        pytest.param("Bash", {"stdout": [[[1] * 9_000]]}, id="numbers"),
    ],
)
def test_a_result_that_stays_gets_no_answer(home: Path, tool: str, response: object) -> None:
    assert answer(home, event(response, tool=tool)) is None
    assert not (home / ".coatcheck").exists()


@pytest.mark.parametrize(
    ("command", "reads_back"),
    [
        ("coatcheck get bash-5514ca017f9a3e5e-0181 --lines=1:100", True),
        (f"{get_command('/a folder', 'one')} bash-5514ca017f9a3e5e-0181 --pattern='a|b; c'", True),
        ("/usr/bin/python3.12 -P -m coatcheck get r --query='[].a' | jq . | head -20", True),
        ("'/a folder/python' -m coatcheck get r", True),
        ("coatcheck get r 2>&1", True),
        ("coatcheck get r 2>&1 | head", True),
        ("coatcheck get r 2>&1; cat /var/log/syslog", False),
        ("coatcheck get r >& /dev/stderr", False),
        ("exec -a NAME coatcheck get r", True),
        ("env -u X coatcheck get r", True),
        ("env -i HOME=/a coatcheck get r", True),
        ("A=1 env B=2 /opt/coatcheck get r", True),
        ("timeout -s KILL 5 coatcheck get r", True),
        ("timeout --signal=KILL 5 coatcheck get r", True),
        ("timeout -sKILL -k 1 0.5m python -m coatcheck get r", True),
        ("nice -n 5 coatcheck get r", True),
        ("nice -5 coatcheck get r", True),
        ("sudo -u user coatcheck get r", True),
        ("sudo -nu user -- coatcheck get r", True),
        ("sudo nice -n5 env -i A=1 python3 -X utf8 -m coatcheck get r | head", True),
        ("echo r | xargs coatcheck get", True),
        ("xargs -n 1 -a refs coatcheck get", True),
        ("uv run --with x coatcheck get r", True),
        ("uvx coatcheck[cli]@1.0 get r", True),
        ("pipx run coatcheck get r", True),
        ("uv run -m coatcheck get r", True),
        ("coatcheck get r 2>/dev/null", True),
        ("coatcheck get r &>/dev/null | cat", True),
        ("coatcheck get r 2>> /dev/null |& cat", True),
        ("cd '/a folder' && coatcheck get r", True),
        ("cd /a 2>/dev/null; coatcheck get r || true", True),
        ("coatcheck get r || :", True),
        (" coatcheck get r ;\n", True),
        ("coatcheck get r --query 'a > b' --pattern='$(x)`'", True),
        ('coatcheck get r --pattern "it\'s; a | b"', True),
        ("coatcheck get r --pattern 'a\nb'", True),
        ("coatcheck get r # as before", True),
        ("(coatcheck get r | head)", True),
        ("(cd /a && coatcheck get r 2>/dev/null) ;", True),
        ("(coatcheck get r; cat /var/log/syslog)", False),
        ("(cat /var/log/syslog) | (coatcheck get r)", False),
        ("<(coatcheck get r)", False),
        ("coatcheck get r 2>/var/log/syslog", False),
        ("coatcheck get r || cat /var/log/syslog", False),
        ("cd /a && cat b && coatcheck get r", False),
        ("cat /var/log/syslog || true", False),
        ("cat /var/log/syslog '|' coatcheck get r", False),
        ("cat /var/log/syslog \\| coatcheck get r", False),
        ("cat /var/log/syslog # | coatcheck get r", False),
        ('coatcheck get "$(cat refs)"', False),
        ("env --split-string='cat /a' coatcheck get r", False),
        ("env --split='cat /a' coatcheck get r", False),
        ("env -iS'cat /a' coatcheck get r", False),
        ("env -uSHELL coatcheck get r", True),
        ("sudo -u else coatcheck get r", True),
        ("/usr/bin/uv run coatcheck get r", True),
        ("sudo -e coatcheck get r", False),
        ("sudo -nu user -e coatcheck get r", False),
        ("command -v coatcheck get r", False),
        ("python -mcat -m coatcheck get r", False),
        ("python -c -m coatcheck get r", False),
        ("python -uc -m coatcheck get r", False),
        ("python3 - -m coatcheck get r", False),
        ("python3 -m -m coatcheck get r", False),
        ("uv run -s a.py coatcheck get r", False),
        ("uv run --script=a.py coatcheck get r", False),
        ("uv run -m pytest coatcheck get r", False),
        ("sudo -u coatcheck get r", False),
        ("env -u coatcheck get r", False),
        ("strace coatcheck get r", False),
        ("xargs cat coatcheck get r", False),
        ("echo python -m coatcheck get r", False),
        ("echo r | xargs coatcheck get; cat /var/log/syslog", False),
        ("nice -n 5 cat /var/log/syslog", False),
        ("coatcheck get r#; cat /var/log/syslog", False),
        (f"coatcheck get {'r' * 20_000}", False),
        ("coatcheck get r && cat /var/log/syslog", False),
        ("coatcheck get r; cat /var/log/syslog", False),
        ("coatcheck get $(cat refs)", False),
        ("cat /var/log/syslog", False),
        ("echo coatcheck get r", False),
        ("coatcheck cat r", False),
        ("coatcheck get 'r", False),
        ("coatcheck get r\ncat /var/log/syslog", False),
    ],
)
def test_its_own_calls_are_distinguished_from_others(command: str, reads_back: bool) -> None:
    assert is_get(command) is reads_back


def test_a_result_that_was_read_back_in_the_shell_stays(home: Path) -> None:
    own = event(BASH, tool_input={"command": f"{get_command(str(home), SESSION)} bash-5514ca017f9a3e5e-0181"})

    assert answer(home, own) is None


def test_the_threshold_is_a_setting(home: Path) -> None:
    assert answer(home, event(BASH), "--max-result-tokens", "20000") is None
    assert answer(home, event({**BASH, "stdout": HALF}), "--max-result-tokens=1000") is not None


# The configuration file.

FILE = """
max_result_tokens = 20000
storage = "kept"
max_bytes = "unlimited"
[tools.Read]
never = true
[tools."db.*"]
max_result_tokens = 1500
[tools.shot]
always = true
[tools."my__srv.*"]
max_result_tokens = 1600
[tools.keep__all]
max_result_tokens = 1700
[tools."my___.*"]
max_result_tokens = 1800
"""


@pytest.mark.parametrize(
    ("tool", "tokens"),
    [
        ("Bash", 20_000),
        ("Read", 50_000),
        ("mcp__db__rows", 1_500),
        ("mcp__other__rows", 20_000),
        ("mcp__other__shot", 1_000),
        ("shot", 1_000),
        ("mcp__my__srv__get", 1_600),
        ("mcp__my__srv__keep__all", 1_700),
        ("mcp__my_____get", 1_800),
    ],
)
def test_the_rules_of_a_file_apply_to_tools_of_the_client_and_of_mcp_servers(
    home: Path, tool: str, tokens: int
) -> None:
    (home / "coatcheck.toml").write_text(FILE)

    found = options_for(Options(config=str(home / "coatcheck.toml")), tool)

    assert found.max_result_tokens == tokens
    assert (found.storage, found.max_age, found.max_bytes) == (str(home / "kept"), 604_800, None)


def test_a_result_is_offloaded_as_the_file_says(home: Path) -> None:
    (home / "coatcheck.toml").write_text(FILE)
    words = f"--config={home / 'coatcheck.toml'}"

    assert answer(home, event(BASH), words) is None
    assert answer(home, event(BASH, tool="mcp__other__shot"), words) is not None
    assert (home / "kept/v1").exists()
    assert not (home / ".coatcheck").exists()


def test_the_command_line_takes_precedence_over_the_file(home: Path) -> None:
    (home / "coatcheck.toml").write_text(FILE)
    config = f"--config={home / 'coatcheck.toml'}"
    said, _ = read_options([config, "--max-result-tokens=3000", "--storage=/mine", "--max-bytes=7"])

    assert options_for(said, "Read") == replace(said, max_age=604_800.0)


def test_an_option_takes_precedence_over_the_file_even_if_it_gives_the_default(home: Path) -> None:
    (home / "coatcheck.toml").write_text(FILE)
    words = [f"--{name}" for name in ("max-result-tokens=2500", "storage=~/.coatcheck/hook", "max-bytes=2GB")]

    said, _ = read_options([f"--config={home / 'coatcheck.toml'}", *words])

    assert options_for(said, "Bash") == replace(said, max_age=604_800.0)


@pytest.mark.parametrize("text", [None, "max_tokens = 1", 'storage = "s3://a/b"'], ids=["missing", "wrong", "a bucket"])
def test_a_file_that_the_hook_cannot_use_does_not_stop_it_from_offloading(home: Path, text: str | None) -> None:
    if text is not None:
        (home / "coatcheck.toml").write_text(text)

    assert answer(home, event(BASH), f"--config={home / 'coatcheck.toml'}") is not None
    assert (home / ".coatcheck/hook").exists()


@pytest.mark.parametrize("number", ["inf", "60000"])
def test_an_invalid_threshold_in_the_file_keeps_nothing_above_the_hard_limit(home: Path, number: str) -> None:
    (home / "coatcheck.toml").write_text(f"max_result_tokens = {number}")

    ended = run(home, event({**BASH, "stdout": "x" * 210_000}), f"--config={home / 'coatcheck.toml'}")

    assert OPENING in ended.stdout.decode()
    assert "coatcheck.toml:1: max_result_tokens" in ended.stderr.decode()


def test_a_storage_in_the_file_that_is_not_a_folder_is_reported_and_the_rest_applies(home: Path) -> None:
    (home / "coatcheck.toml").write_text('max_result_tokens = 5000\nstorage = "s3://bucket/prefix"\n')
    config = f"--config={home / 'coatcheck.toml'}"

    ended = run(home, event(BASH), config)

    said = f"storage is 's3://bucket/prefix', but the hook stores only in a folder: it uses {home}/.coatcheck/hook\n"
    assert said in ended.stderr.decode()
    assert (home / ".coatcheck/hook").exists()
    assert answer(home, event({**BASH, "stdout": HALF}), config) is None


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in a folder")
def test_the_hook_does_not_wait_for_a_pipe_in_place_of_the_file(home: Path) -> None:
    os.mkfifo(home / "pipe")

    ended = run(home, event(BASH), f"--config={home / 'pipe'}")

    assert OPENING in ended.stdout.decode()
    assert f"{home / 'pipe'} is not a regular file" in ended.stderr.decode()


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        ("", False),
        ("max_result_tokens = 3000\n[tools.Read]\nnever = true\n[tools.Grep]\nmax_result_tokens = 3500", False),
        ("[tools.Grep]\nmax_result_tokens = 2000", True),
        ("max_result_tokens = 2000", True),
        ("[tools.Grep]\nalways = true", True),
        ("tools = 5", True),
        ("max_tokens = ", True),
    ],
)
def test_a_result_that_stays_whatever_the_rules_does_not_wait_for_the_file(
    tmp_path: Path, text: str, waits: bool
) -> None:
    (tmp_path / "coatcheck.toml").write_text(text)
    options = Options(storage=str(tmp_path), config=str(tmp_path / "coatcheck.toml"))
    asked: list[str] = []

    def of_file(found: Options, tool: str) -> Options:
        asked.append(tool)
        return found

    assert respond(json.dumps(event({**BASH, "stdout": "x" * 9_000})).encode(), options, of_file=of_file) is None
    assert bool(asked) is waits


def test_a_small_result_loads_no_file(home: Path) -> None:
    ended = run(home, event({**BASH, "stdout": SMALL}), "--config=/no/such/file")

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


# What goes wrong.


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"garbage " * 5_000, id="garbage"),
        pytest.param(b"\xff\xfe" * 20_000, id="no UTF-8"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(json.dumps(LARGE).encode(), id="a str"),
        pytest.param(json.dumps(event(BASH, hook_event_name="PreToolUse")).encode(), id="another event"),
        pytest.param(json.dumps(event(BASH, session_id=None)).encode(), id="no session"),
        pytest.param(json.dumps(event(BASH, tool_name=5)).encode(), id="no tool"),
        pytest.param(json.dumps(event(BASH)).encode()[:-100], id="cut"),
    ],
)
def test_input_that_cannot_be_read_gets_no_answer(home: Path, said: bytes) -> None:
    assert answer(home, said) is None


@pytest.mark.parametrize("words", [["--no-such"], ["--max-bytes=many"], ["--max-age", "0"], ["x"], ["--storage"]])
def test_a_wrong_option_is_ignored_and_reported_on_stderr(home: Path, words: list[str]) -> None:
    ended = run(home, event(BASH), *words)

    assert ended.returncode == 0
    assert OPENING in ended.stdout.decode()
    assert ended.stderr.startswith(b"coatcheck hook: ")


def test_the_options_are_read_in_both_forms() -> None:
    options, wrong = read_options(["--storage=/a=b", "--max-age", "60s", "--max-bytes=5"])

    assert (options, wrong) == (Options(storage="/a=b", max_age=60, max_bytes=5), [])


@pytest.mark.parametrize(
    ("word", "means"),
    [
        ("--max-age=7d", Options(max_age=604_800)),
        ("--max-age=2W", Options(max_age=1_209_600)),
        ("--max-bytes=3GB", Options(max_bytes=3_000_000_000)),
        ("--max-bytes=5 mb", Options(max_bytes=5_000_000)),
        ("--max-bytes=1.5GB", Options(max_bytes=1_500_000_000)),
        ("--max-bytes=7d", None),
        ("--max-age=d", None),
        ("--max-age=30", None),  # without a unit: seconds would be a surprise
        ("--max-age=-5", None),
        ("--max-result-tokens=2KB", None),
        pytest.param("--max-bytes=" + 400 * "9" + "GB", None, id="more bytes than a float holds"),
        pytest.param("--max-result-tokens=" + 5_000 * "9", None, id="more digits than Python reads"),
        ("--max-age=\u0665", None),
    ],
)
def test_ages_and_sizes_take_the_same_forms_as_everywhere_else(word: str, means: Options | None) -> None:
    options, wrong = read_options([word])

    assert options == (means or Options())
    assert len(wrong) == (means is None)


@pytest.mark.parametrize("words", [["--no-such", "5"], ["--max-bytes", "many"], ["--storage", "--max-age=5d"]])
def test_one_mistake_is_reported_once(words: list[str]) -> None:
    assert len(read_options(words)[1]) == 1


def blocked(home: Path) -> None:
    """Put a file where the folder belongs. Permissions would not do: root ignores them."""
    (home / ".coatcheck").write_bytes(b"")


def test_a_result_stays_if_the_folder_cannot_be_used(home: Path) -> None:
    blocked(home)

    assert answer(home, event(BASH)) is None


def test_a_result_above_the_hard_limit_is_cut_if_the_folder_cannot_be_used(home: Path) -> None:
    blocked(home)

    cut = answer(home, event(BASH), "--max-inline-tokens=5000")["stdout"]

    assert cut.startswith("Tool result cut. ")
    assert len(cut) <= 20_000 + 1_000


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process as POSIX has them")
def test_a_full_disk_keeps_the_result_and_leaves_no_half_written_file(home: Path) -> None:
    import resource  # noqa: PLC0415 - not on Windows

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

    ended = run(home, event(BASH), preexec_fn=fill)

    assert (ended.returncode, ended.stdout) == (0, b"")
    assert not [path for path in (home / ".coatcheck").rglob("*") if path.is_file() and path.suffix != ".ledger"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_an_answer_that_cannot_be_written_does_not_change_the_exit_code(home: Path) -> None:
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "coatcheck", "hook"],
            input=json.dumps(event(BASH)).encode(),
            env=env,
            check=False,
            stdout=full,
            stderr=full,
            timeout=240,
        )

    assert ended.returncode == 0


@pytest.mark.skipif(os.name != "posix", reason="terminals as POSIX has them")
def test_a_person_who_types_the_command_gets_help_at_once(home: Path) -> None:
    import pty  # noqa: PLC0415 - not on Windows

    keyboard, inside = pty.openpty()
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "coatcheck", "hook"]
    ended = subprocess.run(command, stdin=inside, env=env, check=False, capture_output=True, timeout=240)
    os.close(keyboard)
    os.close(inside)

    assert b"install" in ended.stdout + ended.stderr


@pytest.mark.skipif(os.name != "posix", reason="a folder in use cannot be deleted elsewhere")
def test_a_result_is_offloaded_even_if_the_working_folder_was_deleted(home: Path) -> None:
    gone = home / "gone"
    gone.mkdir()
    ended = run(home, event(BASH), "--storage=artifacts", cwd=gone, preexec_fn=gone.rmdir)

    assert not gone.exists()
    assert OPENING in json.loads(ended.stdout)["hookSpecificOutput"]["updatedToolOutput"]["stdout"]


@pytest.mark.parametrize(("most_digits", "digits"), [("0", "7" * 5_000), ("640", "7" * 1_000), ("9000", "7" * 5_000)])
def test_a_long_number_keeps_its_digits_whatever_limit_python_has(
    home: Path, monkeypatch: pytest.MonkeyPatch, most_digits: str, digits: str
) -> None:
    monkeypatch.setenv("PYTHONINTMAXSTRDIGITS", most_digits)
    response = json.dumps({**BASH, "count": 7_000_007}).replace("7000007", digits)
    ended = run(home, json.dumps(event("RESPONSE")).replace('"RESPONSE"', response).encode())

    assert f'"count": {digits}'.encode() in ended.stdout
    assert OPENING.encode() in ended.stdout


def test_an_internal_error_keeps_the_result_and_cuts_it_above_the_hard_limit(home: Path) -> None:
    broken = home / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text("import sys\nsys.modules['coatcheck.offloader'] = None\n")
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": os.pathsep.join([str(broken), *filter(None, sys.path)])}
    ends = [
        subprocess.run(
            [sys.executable, "-m", "coatcheck", "hook", *words],
            input=json.dumps(event(BASH)).encode(),
            env=env,
            check=True,
            capture_output=True,
            timeout=240,
        ).stdout
        for words in ([], ["--max-inline-tokens=3000"])
    ]

    assert ends[0] == b""
    assert json.loads(ends[1])["hookSpecificOutput"]["updatedToolOutput"]["stdout"].startswith("Tool result cut. ")


def test_a_result_that_stays_loads_neither_the_command_line_nor_the_library(home: Path) -> None:
    said = event({**BASH, "stdout": HALF[:9_000]}, prompt="x" * 5_000)
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-X", "importtime", "-m", "coatcheck", "hook"]
    ended = subprocess.run(
        command, input=json.dumps(said).encode(), env=env, check=True, capture_output=True, timeout=240
    )

    loaded = {line.rpartition("|")[2].strip() for line in ended.stderr.decode().splitlines()}
    assert {"coatcheck.hook.answer", "coatcheck.hook.shapes"} <= loaded
    assert not loaded & {
        "typer",
        "rich",
        "tiktoken",
        "orjson",
        "re2",
        "jmespath",
        "coatcheck.offloader",
        "coatcheck.core.tokens",
    }


def test_a_command_on_windows_works_in_every_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_ON_WINDOWS", True)
    monkeypatch.setattr(sys, "executable", r"C:\venv\Scripts\our-own.exe")
    monkeypatch.setattr(os.path, "abspath", lambda path: path)

    said = get_command(r"C:\me\.coatcheck\hook", "s")

    assert said.startswith("C:/venv/Scripts/our-own.exe -E ")
    assert said.endswith(" -m coatcheck get --storage=C:/me/.coatcheck/hook --scope=s")
    assert is_get(f"{said} REFERENCE --pattern=x")
    assert sweep_command(r"D:\kept").endswith(" --storage=D:/kept")
    assert split_hook(" ".join([*program(), "hook", "--max-age=7d"])) == ("", ["--max-age=7d"])
    assert for_shells(r"\\host\share") == r"\\host\share", "a shell of POSIX would take // for /"
