"""How a command ends when something fails: each error with its exit code on one line, and bugs as bugs."""

from __future__ import annotations

import errno
import sys
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from coatcheck import CorruptContent, InvalidRequest, ReferenceExpired, ReferenceNotFound, StorageError
from coatcheck.cli.failure import CannotRun, reported

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
def test_output_that_cannot_be_written_is_given_up(
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


def test_a_bug_is_not_an_error_of_the_user() -> None:
    @reported
    def command() -> None:
        message = "bug"
        raise LookupError(message)

    with pytest.raises(LookupError, match="bug"):
        command()
