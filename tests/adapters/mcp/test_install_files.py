"""A client's file is replaced whole or not at all. Its mode, owner and links stay, and a backup is kept."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from coatcheck import InvalidRequest
from coatcheck_mcp.install.files import Source, read, write

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW = '{"old": "é"}\r\n', '{"new": "\ufeff"}\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "client/mcp.json"
    path.parent.mkdir()
    path.write_bytes(OLD.encode())
    path.chmod(0o640)
    return path


@pytest.fixture
def backups(tmp_path: Path) -> Path:
    return tmp_path / "own/backups"


def source_of(path: Path) -> Source:
    source = read(path)
    assert source is not None
    return source


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_new_file_has_the_mode_of_the_old_one_and_nothing_is_left_over(file: Path, backups: Path) -> None:
    write(source_of(file), NEW, backups=backups)

    assert file.read_bytes() == NEW.encode()
    assert mode_of(file) == 0o640
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_owner_stays_the_owner(file: Path, backups: Path) -> None:
    os.chown(file, 12345, 23456)

    write(source_of(file), NEW, backups=backups)

    assert (file.stat().st_uid, file.stat().st_gid) == (12345, 23456)


def test_the_backup_has_the_old_content_and_is_for_the_user_alone(file: Path, backups: Path) -> None:
    backup = write(source_of(file), NEW, backups=backups)

    assert backup.read_bytes() == OLD.encode()
    assert mode_of(backup) == 0o600
    assert mode_of(backups) == 0o700


def test_backups_of_the_same_content_are_kept_once(file: Path, backups: Path) -> None:
    first = write(source_of(file), NEW, backups=backups)
    second = write(source_of(file), OLD, backups=backups)
    again = write(source_of(file), NEW, backups=backups)

    assert first == again != second
    assert len(list(backups.iterdir())) == 2


@pytest.mark.parametrize("half", [b"", OLD.encode()[:5]], ids=["nothing", "a part"])
def test_a_truncated_backup_is_written_again(file: Path, backups: Path, half: bytes) -> None:
    backup = write(source_of(file), NEW, backups=backups)
    backup.write_bytes(half)  # as a full disk or a killed process leaves it
    file.write_bytes(OLD.encode())

    assert write(source_of(file), NEW, backups=backups) == backup

    assert backup.read_bytes() == OLD.encode()
    assert mode_of(backup) == 0o600
    assert list(backups.iterdir()) == [backup]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in a folder")
def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mcp.json")

    with pytest.raises(InvalidRequest, match=r"mcp\.json is not a regular file"):
        read(tmp_path / "mcp.json")


def test_a_link_stays_and_its_target_is_replaced(file: Path, backups: Path, tmp_path: Path) -> None:
    link, outer = tmp_path / "mcp.json", tmp_path / "outer.json"
    link.symlink_to("client/mcp.json")
    outer.symlink_to(link)

    write(source_of(outer), NEW, backups=backups)

    assert (link.is_symlink(), outer.is_symlink()) == (True, True)
    assert file.read_bytes() == NEW.encode()


def test_a_file_that_changed_meanwhile_stays_as_it_is(file: Path, backups: Path) -> None:
    source = source_of(file)
    file.write_text("{}")

    with pytest.raises(InvalidRequest, match="changed meanwhile, so it stays as it is; run the command again"):
        write(source, NEW, backups=backups)

    assert file.read_text() == "{}"
    assert list(file.parent.iterdir()) == [file]


def test_a_file_that_changes_while_the_new_one_is_written_stays_too(
    file: Path, backups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def sync_late(number: int) -> None:
        sync(number)
        file.write_text("{}")

    monkeypatch.setattr(os, "fsync", sync_late)

    with pytest.raises(InvalidRequest, match="changed meanwhile"):
        write(source_of(file), NEW, backups=backups)

    assert file.read_text() == "{}"
    assert list(file.parent.iterdir()) == [file]


def test_a_deleted_file_is_not_created_again(file: Path, backups: Path) -> None:
    source = source_of(file)
    file.unlink()

    with pytest.raises(InvalidRequest, match="was not changed: No such file or directory"):
        write(source, NEW, backups=backups)

    assert not file.exists()


def test_a_read_only_file_stays_as_it_is(file: Path, backups: Path) -> None:
    file.chmod(0o444)

    with pytest.raises(InvalidRequest, match="is read-only, so it stays as it is; make it writable"):
        write(source_of(file), NEW, backups=backups)

    assert file.read_bytes() == OLD.encode()


def test_a_file_with_two_names_stays_as_it_is(file: Path, backups: Path, tmp_path: Path) -> None:
    os.link(file, tmp_path / "other.json")

    with pytest.raises(InvalidRequest, match=r"has 2 names \(hard links\)"):
        write(source_of(file), NEW, backups=backups)

    assert (tmp_path / "other.json").samefile(file)


@pytest.mark.parametrize("failing", ["fsync", "fchmod"])
def test_a_failing_disk_leaves_the_old_file_and_nothing_else(
    failing: str, file: Path, backups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, fail)

    with pytest.raises(InvalidRequest, match="was not changed: No space left on device"):
        write(source_of(file), NEW, backups=backups)

    assert file.read_bytes() == OLD.encode()
    assert list(file.parent.iterdir()) == [file]


def test_without_a_backup_nothing_is_changed(file: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")

    with pytest.raises(InvalidRequest, match="was not changed"):
        write(source_of(file), NEW, backups=tmp_path / "taken")

    assert file.read_bytes() == OLD.encode()


def test_the_new_file_is_on_disk_before_it_takes_the_name(
    file: Path, backups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bytes] = []
    sync = os.fsync

    def look(number: int) -> None:
        held.append(file.read_bytes())
        sync(number)

    monkeypatch.setattr(os, "fsync", look)

    write(source_of(file), NEW, backups=backups)

    assert held == [OLD.encode(), NEW.encode()]  # when the file is synced, then its folder


def test_a_missing_file_is_no_error_but_an_unreadable_one_is(tmp_path: Path) -> None:
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xe9"}')
    (tmp_path / "loop.json").symlink_to("loop.json")

    assert read(tmp_path / "none.json") is None
    assert read(tmp_path / "latin.json/none.json") is None
    with pytest.raises(InvalidRequest, match="is not UTF-8; save it as UTF-8"):
        read(tmp_path / "latin.json")
    with pytest.raises(InvalidRequest, match="cannot be read: Is a directory"):
        read(tmp_path)
    with pytest.raises(InvalidRequest, match="cannot be read"):
        read(tmp_path / "loop.json")


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "huge.json").open("wb") as huge:
        huge.truncate(65_000_000)

    with pytest.raises(InvalidRequest, match="more than 64,000,000 bytes, too many to edit"):
        read(tmp_path / "huge.json")
