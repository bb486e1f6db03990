"""How a command ends when something fails: an error is one line and an exit code, a bug is a traceback."""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from coatcheck import CorruptContent, InvalidRequest, ReferenceExpired, ReferenceNotFound, StorageError
from coatcheck.cli import failure
from coatcheck.cli.failure import CannotRun, reported
from tests.cli.running import run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ReferenceNotFound("what\nfailed"), 1),
        (ReferenceExpired("what\nfailed"), 1),
        (CorruptContent("what\nfailed"), 1),
        (StorageError("what\nfailed"), 2),
        (InvalidRequest("what\nfailed"), 2),
        (CannotRun("what\nfailed"), 2),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(error: Exception, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    @reported
    def command() -> None:
        raise error

    with pytest.raises(SystemExit) as ended:
        command()

    assert ended.value.code == code
    assert capsys.readouterr() == ("", "coatcheck: what failed\n")


def test_a_reader_that_went_away_is_not_an_error_on_windows_either(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @reported
    def command() -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    with pytest.raises(SystemExit, match="2"):
        command()
    assert capsys.readouterr().err == "coatcheck: standard input or output failed: Invalid argument\n"
    monkeypatch.setattr(failure, "_ON_WINDOWS", True)
    with pytest.raises(SystemExit, match="141"):
        command()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 141, ""),
        (
            OSError(errno.EIO, "Input/output error"),
            2,
            "coatcheck: standard input or output failed: Input/output error\n",
        ),
        (PermissionError(errno.EACCES, "Permission denied", "/a/file"), 2, "coatcheck: /a/file: Permission denied\n"),
    ],
)
def test_output_that_cannot_be_written_is_discarded(
    error: OSError,
    code: int,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    @reported
    def command() -> None:
        sys.stdout.write("cannot be written")
        raise error

    with (
        (tmp_path / "output").open("w", encoding="utf-8") as output,
        mock.patch.object(sys, "stdout", output),
        pytest.raises(SystemExit) as ended,
    ):
        command()

    assert ended.value.code == code
    assert capsys.readouterr().err == said
    assert (tmp_path / "output").read_text() == ""


@pytest.mark.parametrize("made", [("hook", "install"), ("ls",)])
def test_a_user_without_a_home_is_told_so(
    made: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.delenv("COATCHECK_STORAGE", raising=False)
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)  # as for a user id without an account, which clusters assign
    monkeypatch.chdir(tmp_path)

    ran = run(*made)

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.count("\n") == 1
    assert "etermine home directory" in ran.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "message", ["Could not determine home directory.", "could not determine the home directory for '~/x', set HOME"]
)
def test_an_error_of_a_library_that_needs_a_home_is_not_taken_for_a_bug(
    message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @reported
    def command() -> None:
        raise RuntimeError(message)

    with pytest.raises(SystemExit) as ended:
        command()

    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith("; set HOME to a folder that can be written\n")


@pytest.mark.parametrize("bug", [LookupError, RuntimeError])
def test_a_bug_is_not_reported_as_a_user_error(bug: type[Exception]) -> None:
    @reported
    def command() -> None:
        message = "bug"
        raise bug(message)

    with pytest.raises(bug, match="bug"):
        command()
