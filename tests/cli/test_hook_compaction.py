"""After a compaction the hook tells the model what its session stored: the summary may have lost the placeholders."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import FileStorage, Offloaded, Offloader, TextBlock
from coatcheck.core.notice import MAX_KEPT
from tests.cli.test_hook import BASH, SESSION, event, run

if TYPE_CHECKING:
    from pathlib import Path

LIMIT = 800
"""Tokens, at four characters each: as in the line of ``keep_references``, but with a command in place of a tool."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def started(**changes: object) -> dict[str, Any]:
    """Return what Claude Code 2.1.332 sends when a session continues from a summary."""
    return {
        "session_id": SESSION,
        "transcript_path": "/a/transcript.jsonl",
        "cwd": "/a",
        "prompt_id": "82bd48bc-dcf5-4e24-8f40-5fdcf505b514",
        "hook_event_name": "SessionStart",
        "source": "compact",
        "model": "claude-opus-5-5",
        **changes,
    }


def told(home: Path, *words: str, **changes: object) -> str | None:
    """Return what the hook adds to the context; None if it says nothing."""
    ended = run(home, started(**changes), *words)
    assert (ended.returncode, ended.stderr) == (0, b"")
    if not ended.stdout:
        return None
    output = json.loads(ended.stdout)["hookSpecificOutput"]
    assert output.keys() == {"hookEventName", "additionalContext"}
    assert output["hookEventName"] == "SessionStart"
    return str(output["additionalContext"])


def store(home: Path, number: int) -> list[str]:
    """Store results as the hook does, a second apart; return their references."""
    folder = home / ".coatcheck/hook"
    offloader = Offloader(FileStorage(folder), max_result_tokens=100)
    found = []
    for each in range(number):
        outcome = offloader.offload([TextBlock(f"{each} words " * 500)], tool_name="Bash", scope=SESSION)
        assert isinstance(outcome, Offloaded)
        found.append(str(outcome.references[0]))
        for file in folder.rglob("*"):
            if file.is_file() and file.stat().st_mtime > number:
                os.utime(file, (each, each))
    return found


def test_the_command_in_the_line_reads_back_what_was_offloaded_before_the_compaction(home: Path) -> None:
    placeholder = json.loads(run(home, event(BASH)).stdout)["hookSpecificOutput"]["updatedToolOutput"]["stdout"]
    reference = placeholder.splitlines()[2].split()[0]

    line = told(home)

    assert line is not None
    assert "\n" not in line
    found = re.fullmatch(
        rf"Keep word for word: `(.+) REFERENCE (--.+)` still reads the stored results {reference}\.", line
    )
    assert found is not None
    assert found[2] == "--pattern=REGEX | --lines=10:20 | --query=JMESPATH | --offset=N"
    words = [word for word in shlex.split(found[1]) if word != "-P"]
    read = subprocess.run([*words, reference, "--lines=500:501"], check=True, capture_output=True, text=True)
    assert "499 INFO the service answered" in read.stdout


def test_the_line_names_the_newest_references_and_a_command_that_lists_the_others(home: Path) -> None:
    references = store(home, MAX_KEPT + 3)

    line = told(home)

    assert line is not None
    assert re.findall(r"bash-[0-9a-f]{16}-[0-9a-f]{4}", line) == references[3:], "oldest first"
    listing = line.partition(" and older ones, which `")[2].removesuffix("` lists.")
    words = [word for word in shlex.split(listing) if word != "-P"]
    listed = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    assert all(reference in listed for reference in references)
    assert len(line) < 4 * LIMIT


def test_the_line_names_the_mcp_tool_if_there_is_one(home: Path) -> None:
    store(home, MAX_KEPT + 1)

    line = told(home, "--retrieval-tool=mcp__files__retrieve_offloaded_content")

    assert line is not None
    assert line.startswith("Keep word for word: mcp__files__retrieve_offloaded_content still reads the stored results ")
    assert line.endswith(" and older ones, which mcp__files__retrieve_offloaded_content() lists.")


def test_the_folder_is_the_one_that_the_file_names(home: Path) -> None:
    file = home / "coatcheck.toml"
    file.write_text('storage = "~/kept"\n')
    run(home, event(BASH), f"--config={file}")

    line = told(home, f"--config={file}")

    assert line is not None
    assert f" --storage={home}/kept " in line


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"source": "startup"}, id="a new session"),
        pytest.param({"source": "resume"}, id="its placeholders are still there"),
        pytest.param({"session_id": "another"}, id="a session that stored nothing"),
        pytest.param({"session_id": ""}, id="no session"),
        pytest.param({"session_id": None}, id="no id"),
        pytest.param({"source": ["compact"]}, id="no source"),
    ],
)
def test_the_hook_says_nothing_if_nothing_was_lost(home: Path, changes: dict[str, object]) -> None:
    store(home, 1)

    assert told(home, **changes) is None


def test_a_session_that_stored_nothing_creates_no_folder(home: Path) -> None:
    assert told(home) is None

    assert not (home / ".coatcheck").exists()


def test_a_folder_that_cannot_be_read_is_reported_and_nothing_fails(home: Path) -> None:
    (home / ".coatcheck").mkdir()
    (home / ".coatcheck/hook").write_text("a file")

    ended = run(home, started())

    assert (ended.returncode, ended.stdout) == (0, b"")
    assert b"coatcheck hook: " in ended.stderr


def test_a_small_result_that_names_the_event_stays(home: Path) -> None:
    ended = run(home, event({"stdout": "SessionStart compact"}))

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")
