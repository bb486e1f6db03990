"""Which storage a path or URL names, which one is the default, and what is reported when there is none."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from coatcheck import FileStorage
from coatcheck.cli.failure import CannotRun
from coatcheck.cli.location import leftovers, storage_at
from tests.cli.running import answered, run

if TYPE_CHECKING:
    from pathlib import Path


def root(location: str) -> str:
    storage = storage_at(location)
    assert isinstance(storage, FileStorage)
    return str(storage.root)


def test_a_path_and_a_file_url_name_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()

    assert root(str(folder)) == str(folder)
    assert root(folder.as_uri()) == str(folder)
    assert root(folder.as_uri().replace("file:", "FILE:")) == str(folder)


@pytest.mark.skipif(os.name != "posix", reason="HOME is what POSIX has")
def test_the_default_is_a_folder_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("COATCHECK_STORAGE", raising=False)
    monkeypatch.chdir(tmp_path)

    reference = answered("put", given=b"words")["reference"]

    assert [path.name for path in tmp_path.iterdir()] == [".coatcheck"]
    assert run("cat", reference).stdout == "words"
    assert "[env var: COATCHECK_STORAGE; default: ~/.coatcheck]" in " ".join(run("ls", "--help").output.split())


def test_the_option_takes_precedence_over_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COATCHECK_STORAGE", str(tmp_path / "variable"))

    run("put", "--storage", tmp_path / "option", given=b"words")

    assert [path.name for path in tmp_path.iterdir()] == ["option"]


@pytest.mark.parametrize(
    "command",
    [
        ("get", "x"),
        ("cat", "x"),
        ("show", "x"),
        ("ls",),
        ("stats",),
        ("verify",),
        ("sweep", "--max-age=1d"),
        ("rm", "--scope=x"),
    ],
)
def test_a_missing_folder_is_refused_as_a_typo(command: tuple[str, ...], tmp_path: Path) -> None:
    ran = run(*command, "--storage", tmp_path / "artefacts")

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(f"coatcheck: there is no folder {tmp_path / 'artefacts'}: the first save creates it.")
    assert ran.stderr.count("\n") == 1
    assert not (tmp_path / "artefacts").exists()


def test_a_path_that_is_not_a_folder_is_reported_as_such(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("words")

    ran = run("ls", "--storage", tmp_path / "file")

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr.startswith(
        f"coatcheck: {tmp_path / 'file'} is not a folder. To use another storage, pass --storage"
    )


def test_an_unusable_path_is_not_reported_as_an_output_error(tmp_path: Path) -> None:
    too_long = tmp_path / ("long" * 1_000)

    ran = run("verify", "--storage", too_long)

    assert (ran.exit_code, ran.stdout, ran.stderr) == (2, "", f"coatcheck: {too_long}: File name too long\n")


@pytest.mark.parametrize(
    ("location", "said"),
    [
        (
            "gs://bucket/folder",
            'gs://bucket/folder: this needs fsspec. Install it with: pip install "/path/to/checkout[fsspec]"',
        ),
        (
            "arrow_hdfs://host/folder",
            'arrow_hdfs://host/folder: this needs fsspec. Install it with: pip install "/path/to/checkout[fsspec]"',
        ),
        ("file://folder/of/mine", "file://folder/of/mine names a folder on the machine 'folder'; give a path"),
        ("file://me:word@folder/of/mine", "file://***@folder/of/mine names a folder on the machine 'folder'; give a"),
        ("memory://me:word@agents", "memory://***@agents is gone as soon as a command ends"),
        ("~no-such-user/folder", "FileStorage cannot find the folder '~no-such-user/folder': Could not determine home"),
    ],
)
def test_a_location_that_names_no_storage_is_reported(
    location: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)

    ran = run("ls", "--storage", location)

    assert ran.exit_code == 2
    assert ran.stderr.startswith(f"coatcheck: {said}")
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["put", "ls"])
def test_memory_that_no_other_command_could_read_is_refused(command: str) -> None:
    ran = run(command, "--storage", "memory://agents", given=b"words")

    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == (
        "coatcheck: memory://agents is gone as soon as a command ends, so the next one could read nothing;"
        " name a folder\n"
    )


def test_a_drive_letter_is_not_a_url() -> None:
    with pytest.raises(CannotRun, match="there is no folder"):
        storage_at("c://folder")


def test_a_bucket_without_the_s3_extra_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)

    ran = run("ls", "--storage", "s3://bucket/prefix")

    assert (ran.exit_code, ran.stderr) == (
        2,
        'coatcheck: S3Storage needs boto3. Install it with: pip install "/path/to/checkout[s3]"\n',
    )


@pytest.mark.parametrize("needs", [None, "fsspec"])
def test_an_address_that_cannot_be_used_is_shown_without_its_password(
    needs: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if needs is not None:
        monkeypatch.setitem(sys.modules, needs, None)

    ran = run("ls", "--storage", "no-such-filesystem://bob:hunter2@host/kept")

    assert ran.exit_code == 2
    assert ran.stderr.startswith("coatcheck: no-such-filesystem://***@host/kept: ")
    assert "hunter2" not in ran.stderr


@pytest.mark.parametrize(
    "login", ["bob:hunter2", ":hunter2", "bob:hunter2@home", "bob:", "bob:hun ter2", "bob:hun/ter2@home"]
)
def test_an_uninstall_never_shows_a_password(login: str) -> None:
    assert leftovers(f"postgresql://{login}@db/x") == "What it stored stays in postgresql://***@db/x."


def test_an_uninstall_never_shows_a_query_which_may_hold_a_secret() -> None:
    assert leftovers("az://c/x?sig=hunter2") == "What it stored stays in az://c/x?***."


def test_an_uninstall_shows_the_path_of_a_folder_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / "what?"
    folder.mkdir()
    assert (leftovers(str(folder)) or "").startswith(f"What it stored stays in {folder}. To delete")


@pytest.mark.parametrize("location", ["sftp://bob@host/x", "s3://bucket/a:b@c"])
def test_an_uninstall_shows_an_address_without_a_password_and_its_command(location: str) -> None:
    told = leftovers(location) or ""
    assert told.startswith(f"What it stored stays in {location}. To delete what nobody used for a day: ")
    assert told.endswith(f" --storage={location}")
