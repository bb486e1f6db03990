"""The command line on an fsspec filesystem: its URL names the storage, and an unfinished write is not damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import fsspec
import pytest

from coatcheck import Offloader, TextBlock
from coatcheck.cli.location import fault_of
from coatcheck.storage import FsspecBridge
from tests.cli.running import answered, run

if TYPE_CHECKING:
    from pathlib import Path

LINES = b"words of a large result\n" * 50_000


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COATCHECK_STORAGE", f"local://{tmp_path / 'artifacts'}")
    monkeypatch.delenv("COATCHECK_SCOPE", raising=False)
    return f"local://{tmp_path / 'artifacts'}"


def test_agents_and_people_read_what_the_other_stored(url: str) -> None:
    offloader = Offloader(FsspecBridge(*fsspec.url_to_fs(url)))
    outcome = offloader.offload([TextBlock(LINES.decode())], tool_name="search", scope="thread-42")
    (reference,) = outcome.references

    assert run("cat", reference.id, "--scope", "thread-42").stdout_bytes == LINES
    assert run("cat", reference.id).exit_code == 1
    assert offloader.load(answered("put", given=b"words")["reference"]).data == b"words"


def test_verify_reports_damage_but_not_an_unfinished_write(url: str, tmp_path: Path) -> None:
    answered("put", given=b"words")
    (file,) = (path for path in (tmp_path / "artifacts").rglob("*") if path.is_file())
    file.with_name(f"{file.name}-unfinished").write_bytes(file.read_bytes()[:4_098])

    well = answered("verify")
    file.write_bytes(file.read_bytes().replace(b"words", b"wards"))

    assert (well["contents"], well["damaged"]) == (1, [])
    assert run("verify").exit_code == 1


@pytest.mark.parametrize("location", ["no-such-protocol://host/folder", "reference://folder"])
def test_a_filesystem_that_cannot_be_made_is_reported_on_one_line(location: str) -> None:
    ran = run("ls", "--storage", location)

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"coatcheck: {location}: ")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "location",
    [
        "http://bob:hunter2@127.0.0.1:1/x",
        "ftp://bob:hunter2/x@127.0.0.1/x",
        "github://bob:hunter2@repository/x",
        "simplecache::ftp://bob:hunter2@127.0.0.1:1/x",
    ],
)
def test_no_message_shows_a_password(location: str) -> None:
    ran = run("ls", "--storage", location)

    assert ran.exit_code == 2
    assert "hunter2" not in ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("location", "fault"),
    [
        ("no-such://bucket/kept", "no-such://bucket/kept: Protocol not known: no-such"),
        ("no-such://user:word@[::1]/kept", "no-such://***@[::1]/kept: Protocol not known: no-such"),
        ("local://kept/a::b", ""),
    ],
)
def test_a_filesystem_that_nobody_knows_is_refused_before_any_connects(
    location: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(url: str) -> None:
        raise AssertionError(url)

    monkeypatch.setattr("fsspec.url_to_fs", connect)
    assert fault_of(location) == fault
