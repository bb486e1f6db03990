"""The installed command in processes of its own: pipes, full disks, what agents stored elsewhere, completion."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import SCRIPT, answered, piped

POSIX_ONLY = pytest.mark.skipif(os.name != "posix", reason="pipes and devices as POSIX has them")

BYTES = bytes(range(256)) * 20_000
"""More than a pipe holds, so that a writer notices when its reader stops."""

AGENT = """
import sys
from coatcheck import FileStorage, Offloader, TextBlock
text = "".join(f"record {number}: fine\\n" for number in range(50_000))
outcome = Offloader(FileStorage(sys.argv[1])).offload([TextBlock(text)], tool_name="search", scope="thread-42")
print(outcome.references[0])
"""

ON_WINDOWS = r"""
import io, sys
sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="cp1252", newline="\r\n")
from coatcheck.cli import main
main()
"""
"""Runs the command with the text stream that Python on Windows gives a pipe: each line end becomes two characters."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COATCHECK_STORAGE", str(tmp_path / "artifacts"))
    monkeypatch.delenv("COATCHECK_SCOPE", raising=False)
    return tmp_path / "artifacts"


def stored(data: bytes) -> str:
    """Store in this process: storing is not what is tested here."""
    return str(answered("put", given=data)["reference"])


def test_people_read_what_a_running_agent_stored_in_its_scope_only(folder: Path) -> None:
    stored = subprocess.run([sys.executable, "-c", AGENT, folder], check=True, capture_output=True, text=True)
    reference = stored.stdout.strip()

    ours = piped("get", reference, "--scope", "thread-42", "--pattern", "record 31337:", "--context-lines", "0")
    theirs = piped("get", reference, "--scope", "thread-43")
    default = piped("cat", reference)

    assert (ours.returncode, ours.stderr) == (0, b"")
    assert b"> 31338| record 31337: fine" in ours.stdout
    assert (theirs.returncode, theirs.stdout) == (default.returncode, default.stdout) == (1, b"")
    assert theirs.stderr.startswith(b"coatcheck: scope 'thread-43' has no reference ")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-16"])
def test_a_pipe_gets_every_character_of_a_diff(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "snow ☃").mkdir()
    file = tmp_path / "snow ☃/settings.json"

    got = piped("hook", "install", f"--file={file}", "--dry-run", env={**os.environ, "PYTHONIOENCODING": encoding})

    assert got.returncode == 0
    assert got.stdout.decode().startswith(f"--- {file}\n")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-16"])
def test_a_pipe_gets_every_character_of_content(folder: Path, encoding: str) -> None:
    text = "groß 雪 ☃ 😀"
    reference = stored(f"{text}\n".encode())

    got = piped("get", reference, "--lines=1:1", env={**os.environ, "PYTHONIOENCODING": encoding})

    assert (got.returncode, got.stderr) == (0, b"")
    assert got.stdout.decode().splitlines()[-1] == f"  1| {text}"


def test_a_pipe_gets_the_line_ends_of_content(folder: Path) -> None:
    reference = stored("größer\r\n☃\n".encode())

    command = [sys.executable, "-c", ON_WINDOWS, "get", reference, "--offset=0"]
    got = subprocess.run(command, check=True, capture_output=True)

    assert "]\ngrößer\r\n☃\n" in got.stdout.decode()
    assert got.stdout.count(b"\r") == 1


def test_bytes_go_through_pipes_unchanged(folder: Path) -> None:
    put = piped("put", "--json", given=BYTES)
    reference = put.stdout.decode().partition('"reference": "')[2].partition('"')[0]

    assert (put.returncode, put.stderr) == (0, b"")
    assert piped("cat", reference).stdout == BYTES


@POSIX_ONLY
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_command_ends_silently_when_its_reader_stops_early(
    unbuffered: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    reference = stored(BYTES)

    with subprocess.Popen([SCRIPT, "cat", reference], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        assert writer.stdout
        assert writer.stderr
        assert writer.stdout.read(10) == BYTES[:10]
        writer.stdout.close()
        said = writer.stderr.read()

    assert (writer.returncode, said) == (141, b"")


@POSIX_ONLY
@pytest.mark.parametrize(
    "command",
    [
        ("replay", "conversation.json"),
        ("replay", "conversation.json", "--json"),
        ("demo", "--input", "conversation.json"),
    ],
)
def test_a_report_ends_silently_when_its_reader_is_gone(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command[0] == "demo":
        pytest.importorskip("langchain.agents", reason="the session `demo` has it")
    monkeypatch.chdir(tmp_path)
    Path("conversation.json").write_text('[{"role": "user", "content": "words"}]', encoding="utf-8")

    with subprocess.Popen([SCRIPT, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as writer:
        assert writer.stdout
        assert writer.stderr
        writer.stdout.close()
        said = writer.stderr.read()

    assert (writer.returncode, said) == (141, b"")


@POSIX_ONLY
@pytest.mark.parametrize("command", ["get", "--help", "get --help", "--version"])
def test_output_that_cannot_be_written_is_reported_on_one_line(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no device that is always full")
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # so that the write fails as late as possible
    words = [*command.split(), stored(b"words")] if command == "get" else command.split()

    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run([SCRIPT, *words], stdout=full, stderr=subprocess.PIPE, check=False)

    assert ran.returncode == 2
    assert ran.stderr == b"coatcheck: standard input or output failed: No space left on device\n"


@POSIX_ONLY
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("put <&-", 2, b"coatcheck: nothing was stored: standard input is empty\n"),
        ("rm --scope=default <&-", 1, b"Nothing was deleted.\n"),
        ("cat {reference} >&-", 0, b""),
        ("put 2>&- < {script}", 0, b""),
        ("get no-such-reference <&- >&- 2>&-", 1, b""),
    ],
)
def test_a_stream_that_the_caller_closed_counts_as_empty(command: str, code: int, said: bytes, folder: Path) -> None:
    reference = stored(b"words")

    line = f"{SCRIPT} {command.format(reference=reference, script=SCRIPT)}"
    ran = subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=False)

    assert ran.returncode == code
    assert ran.stderr.endswith(said)
    assert b"Traceback" not in ran.stderr
    assert folder.exists()


def test_a_storage_failure_prints_one_line_and_no_log(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    ran = piped("put", "--storage", tmp_path / "file", given=b"words")

    assert (ran.returncode, ran.stdout) == (2, b"")
    assert ran.stderr.startswith(b"coatcheck: nothing was stored: ")
    assert ran.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("shell", "words", "offered"),
    [
        ("bash", "coatcheck s", "show\nstats\nsweep"),
        ("bash", "coatcheck rm --sc", "--scope"),
        ("fish", "coatcheck ver", "verify"),
    ],
)
def test_shells_complete_commands_and_options(shell: str, words: str, offered: str) -> None:
    asked = {
        "_COATCHECK_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
        "_TYPER_COMPLETE_ARGS": words,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }

    ran = piped(env={**os.environ, **asked})

    assert ran.stdout.decode().startswith(offered)
    assert ran.stderr == b""
