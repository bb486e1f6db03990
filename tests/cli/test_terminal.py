"""At a terminal: no content steers it, long work shows a progress bar, and a deletion is confirmed first."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from coatcheck import FileStorage, Offloader
from tests.cli.running import answered, at_terminal, piped, run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.name != "posix", reason="terminals as POSIX has them")

HOSTILE = "\x1b]0;owned\x07\x1b[2J[bold red]words[/]\r\u202e\x9b31m\x7f\n"
"""Sets the title, clears the screen, returns to the start of the line, reverses the text direction, and colours it."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COATCHECK_STORAGE", str(tmp_path / "artifacts"))
    monkeypatch.delenv("COATCHECK_SCOPE", raising=False)
    return tmp_path / "artifacts"


def stored(data: bytes, *options: str) -> str:
    return str(answered("put", *options, given=data)["reference"])


def steers(screen: str) -> set[str]:
    """Return the characters on a screen that are neither printable nor a line end."""
    return {character for character in screen if not character.isprintable() and character != "\n"}


@pytest.mark.parametrize("command", ["put", "get", "cat"])
def test_a_tool_result_cannot_steer_the_terminal(command: str, folder: Path) -> None:
    reference = stored(HOSTILE.encode())

    arguments, typed = (("put",), HOSTILE) if command == "put" else ((command, reference), "")
    seen = at_terminal(*arguments, typed=typed, input_too=command != "put")

    assert seen.exit_code == 0
    assert "·]0;owned··[2J[bold red]words[/]···31m·\n" in seen.screen
    assert steers(seen.screen) == set()


@pytest.mark.parametrize("command", ["get", "cat"])
def test_a_pipe_gets_a_tool_result_unchanged(command: str, folder: Path) -> None:
    assert HOSTILE.encode() in piped(command, stored(HOSTILE.encode())).stdout


def test_names_from_the_command_line_cannot_steer_the_terminal(tmp_path: Path) -> None:
    seen = at_terminal("get", "\x1b[2Jstdin-0123456789abcdef-0000", "--storage", tmp_path)
    missing = at_terminal("ls", "--storage", tmp_path / "\x1b[2J")
    shown = at_terminal("ls", "--storage", tmp_path, "--scope", "\x1b[2J")

    assert (seen.exit_code, missing.exit_code, shown.exit_code) == (1, 2, 0)
    assert steers(seen.screen + missing.screen + shown.screen) == set()


def test_comments_in_a_settings_file_cannot_steer_the_terminal(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text('{"a": 1\n// \x1b]0;owned\x07\x1b[2J\n}\n')

    seen = at_terminal("hook", "install", "--dry-run", "--file", settings)

    assert seen.exit_code == 0
    assert " // ·]0;owned··[2J\n" in seen.screen
    assert steers(seen.screen) == set()
    assert b" // \x1b]0;owned\x07\x1b[2J\n" in piped("hook", "install", "--dry-run", f"--file={settings}").stdout


def test_content_that_is_not_text_is_not_written_to_a_terminal(folder: Path) -> None:
    seen = at_terminal("cat", stored(b"\x89PNG\0", "--type", "image/png"))

    assert seen.exit_code == 2
    assert seen.screen == "coatcheck: this is image/png, not text for a terminal: write it to a file with > FILE\n"


def test_put_does_not_wait_for_a_person_to_type(folder: Path) -> None:
    seen = at_terminal("put", typed="words\n\x04")

    assert seen.exit_code == 2
    assert "some-command | coatcheck put, or coatcheck put < FILE" in seen.screen
    assert not folder.exists()


@pytest.mark.parametrize("arguments", [("verify",), ("sweep", "--max-age", "30d")])
def test_long_work_shows_a_progress_bar_only_at_a_terminal(
    arguments: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def store_long_ago() -> None:
        stored(b"words")
        for file in folder.rglob("*.txt"):
            os.utime(file, (1_000, 1_000))

    monkeypatch.setenv("TERM", "xterm")
    store_long_ago()
    ran = run(*arguments)
    store_long_ago()
    seen = at_terminal(*arguments)

    assert ran.stderr == ""
    assert re.search("(Verifying|Sweeping).*100%", seen.screen)
    assert seen.exit_code == 0


@pytest.mark.parametrize(("typed", "code", "left"), [("y\n", 0, 0), ("n\n", 1, 1), ("\n", 1, 1), ("\x04", 1, 1)])
def test_rm_asks_first(typed: str, code: int, left: int, folder: Path) -> None:
    stored(b"words", "--scope", "mine")

    seen = at_terminal("rm", "--scope", "mine", typed=typed)

    assert seen.exit_code == code
    assert "This deletes 1 content, 5 bytes, of scope 'mine'" in seen.screen
    assert len(FileStorage(folder).entries("")) == left


def test_rm_does_not_ask_if_yes_was_given_or_nothing_is_stored(folder: Path) -> None:
    stored(b"words", "--scope", "mine")

    told = at_terminal("rm", "--scope", "mine", "--yes")
    nothing = at_terminal("rm", "--scope", "mine")

    assert (told.exit_code, told.screen) == (0, "Deleted 1 content, 5 bytes.\n")
    assert (nothing.exit_code, nothing.screen) == (
        1,
        f"Nothing is stored in scope 'mine' of FileStorage('{folder}').\n",
    )


def test_rm_deletes_nothing_if_nobody_answers(folder: Path) -> None:
    reference = stored(b"words", "--scope", "mine")

    ran = piped("rm", "--scope", "mine")

    assert (ran.returncode, ran.stdout) == (1, b"")
    assert Offloader(FileStorage(folder)).load(reference, scope="mine").data == b"words"
