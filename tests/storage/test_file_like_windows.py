"""FileStorage where files and locks are as on Windows: the races of ``test_file_cleanup``, and files in use."""

from __future__ import annotations

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from coatcheck import CorruptContent, FileStorage, Offloader
from coatcheck.storage import folder
from coatcheck.testing.samples import Entry, make_entry, noise
from coatcheck.testing.storage import check_holds, save
from tests.storage.test_file_cleanup import (
    an_hour_ago,
    content_path,
    entry,
    make_old,
    root,
    storage,
    test_a_deletion_during_a_save_leaves_the_whole_entry_or_none,
    test_a_save_waits_for_a_sweep_that_has_looked_and_not_yet_removed,
    test_a_sweep_during_a_save_of_the_same_content_never_wins,
)

if TYPE_CHECKING:
    from pathlib import Path

__all__ = (
    "entry",
    "root",
    "storage",
    "test_a_deletion_during_a_save_leaves_the_whole_entry_or_none",
    "test_a_save_waits_for_a_sweep_that_has_looked_and_not_yet_removed",
    "test_a_sweep_during_a_save_of_the_same_content_never_wins",
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, and locks of what is open")
SIZE = 1_000


@pytest.fixture(autouse=True)
def like_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.storage.like_windows import behave_like_windows  # noqa: PLC0415 - only on Linux

    behave_like_windows(monkeypatch)


def test_locks_leave_nothing_in_the_folder_of_a_scope(storage: FileStorage, entry: Entry) -> None:
    save(storage, entry)
    storage.delete(entry.key)
    of_scope = content_path(storage, entry).parent

    assert {each.name for each in of_scope.parent.iterdir()} == {of_scope.name, "folders.lock"}
    assert list(of_scope.iterdir()) == []


def test_content_can_be_rewritten_and_deleted_while_it_is_read(root: Path) -> None:
    storage, entry = FileStorage(root, fsync=True), make_entry(noise(300_000, seed=1))
    save(storage, entry)
    done = threading.Event()

    def read_on() -> int:
        reads = 0
        while not done.is_set():
            reads += storage.load(entry.key) is not None
        return reads

    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(read_on)
        try:
            for _ in range(100):
                save(storage, entry)
            for _ in range(100):
                storage.delete(entry.key)
                save(storage, entry)
        finally:
            done.set()
        assert reading.result()

    check_holds(storage, entry, "after it was written again while it was read")


def test_a_file_that_a_program_has_open_stays_and_the_sweep_continues(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "BUSY_SECONDS", 0.01)
    stored = [make_entry(noise(SIZE, seed=seed)) for seed in range(3)]
    for each in stored:
        save(storage, each)
        make_old(content_path(storage, each))

    with content_path(storage, stored[0]).open("rb"):
        assert storage.sweep([each.key for each in stored], before=an_hour_ago()) == 2
        with pytest.raises(PermissionError, match="open elsewhere"):
            storage.delete(stored[0].key)

    check_holds(storage, stored[0], "after a sweep while a program had it open")
    assert len(storage.entries("")) == 1
    storage.delete(stored[0].key)
    assert storage.load(stored[0].key) is None


def test_a_save_evicts_only_files_that_no_program_has_open(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "BUSY_SECONDS", 0.01)
    storage = FileStorage(root, max_bytes=10 * SIZE)
    stored = [make_entry(noise(SIZE, seed=seed)) for seed in range(11)]
    for each in stored[:10]:
        save(storage, each)
        make_old(content_path(storage, each))
    os.utime(content_path(storage, stored[0]), (1, 1))

    with content_path(storage, stored[0]).open("rb"):
        save(storage, stored[10])

    check_holds(storage, stored[0], "although it was the oldest, since it was open")
    check_holds(storage, stored[10], "which needed room")
    Offloader(storage).sweep(max_bytes=10 * SIZE)
    assert sum(each.size for each in storage.entries("")) <= 10 * SIZE


def test_a_folder_in_place_of_content_is_distinguished_from_a_file_in_use(
    storage: FileStorage, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows does not open a folder: it reports the same error as for a file that is about to be removed."""
    save(storage, entry)
    path = content_path(storage, entry)
    path.unlink()
    path.mkdir()
    monkeypatch.setattr(folder, "BUSY_SECONDS", 60.0)
    open_file = os.open

    def open_no_folder(name: str, flags: int, mode: int = 0o777, *, dir_fd: None = None) -> int:
        if os.path.isdir(name):  # noqa: PTH112 - called with a string
            raise PermissionError(13, "Permission denied", name)
        return open_file(name, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", open_no_folder)

    with pytest.raises(CorruptContent, match="is not a file but a link, a folder or a device"):
        storage.load(entry.key)


def test_an_error_names_the_folder_once(tmp_path: Path) -> None:
    """The system's message quotes the name, so each backslash is doubled there."""
    storage = FileStorage(tmp_path / "drive\\folder")
    storage.root.mkdir()
    (storage.root / "v1").write_bytes(b"")

    with pytest.raises(NotADirectoryError) as refused:
        storage.load(make_entry(b"any").key)

    said = storage.describe_error(refused.value)
    assert said.count(repr(str(storage.root))[1:-1]) == 1
    assert said.endswith("v1'")


def test_giving_up_on_a_lock_leaves_no_file_open(
    storage: FileStorage, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder, "LOCK_SECONDS", 0.01)
    save(storage, entry)
    path = content_path(storage, entry)

    with folder.open_folder(storage.root, "v1", path.parent.name) as of_scope, of_scope.locked():
        before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - its links may lead nowhere
        with pytest.raises(TimeoutError):
            storage.delete(entry.key)
        assert set(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208 - the same; garbage may be collected meanwhile


def test_a_leftover_that_a_program_has_open_stays_and_the_sweep_continues(
    storage: FileStorage, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leftover is, for example, the temporary file of a writer that was stopped in the middle of a save."""
    monkeypatch.setattr(folder, "BUSY_SECONDS", 0.01)
    save(storage, entry)
    leftovers = [content_path(storage, entry).with_name(f".{letter * 32}.tmp") for letter in "ab"]
    for each in leftovers:
        each.touch()
        make_old(each)

    with leftovers[0].open("rb"):
        assert storage.sweep([], before=an_hour_ago()) == 0

    assert [each.exists() for each in leftovers] == [True, False]
