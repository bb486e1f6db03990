"""What FileStorage leaves behind and what it cleans up: crashes, damage, sweeps during writes, planted links."""

from __future__ import annotations

import errno
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from coatcheck import FileStorage, Offloaded, Offloader, StorageError, TextBlock
from coatcheck.storage.folder import Folder
from coatcheck.testing.samples import Entry, make_entry, noise
from coatcheck.testing.storage import check_holds, load, save

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

POSIX_ONLY = pytest.mark.skipif(os.name != "posix", reason="links and pipes as POSIX has them")
HOUR = 3_600.0
TEMPORARY = f".{'0' * 32}.tmp"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


@pytest.fixture
def storage(root: Path) -> FileStorage:
    return FileStorage(root)


@pytest.fixture
def entry() -> Entry:
    return make_entry(b"what the tool returned")


def content_path(storage: FileStorage, entry: Entry) -> Path:
    return storage.local_path(entry.key, content_type=entry.content_type)


def entry_path(storage: FileStorage, entry: Entry) -> Path:
    return content_path(storage, entry).with_suffix(".entry.json")


def make_old(*paths: Path) -> None:
    for path in paths:
        os.utime(path, (1_000, 1_000))


def an_hour_ago() -> float:
    return time.time() - HOUR


def files(root: Path) -> set[str]:
    return {path.name for path in root.rglob("*") if not path.is_dir()}


# Damage must not block clean-up.


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20])


def alter(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"text/plain", b"text/plaio"))


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@POSIX_ONLY
@pytest.mark.parametrize("damage", [empty, cut, link, pipe, Path.unlink])
def test_a_damaged_description_blocks_no_other_call(
    storage: FileStorage, entry: Entry, damage: Callable[[Path], None]
) -> None:
    neighbour = make_entry(b"neighbour")
    for each in (entry, neighbour):
        save(storage, each)
    damage(entry_path(storage, entry))

    assert {listed.key for listed in storage.entries("")} == {entry.key, neighbour.key}
    storage.delete(entry.key)

    assert files(content_path(storage, entry).parent) == {
        path(storage, neighbour).name for path in (content_path, entry_path)
    }
    check_holds(storage, neighbour, "after a damaged entry was deleted")
    save(storage, entry)
    check_holds(storage, entry, "after it was saved again")


@POSIX_ONLY
@pytest.mark.parametrize("damage", [empty, cut, alter, link, pipe, Path.unlink])
def test_an_entry_with_a_damaged_description_is_deleted_with_its_scope_and_swept(
    root: Path, damage: Callable[[Path], None]
) -> None:
    storage = FileStorage(root)
    offloader = Offloader(storage)
    for scope in ("deleted", "swept"):
        offloader.offload([TextBlock("word " * 20_000)], tool_name="t", scope=scope)
    for description in root.glob("v1/*/*.entry.json"):
        damage(description)

    assert offloader.delete_scope("deleted") == 1
    assert len(storage.entries("")) == 1
    make_old(*root.glob("v1/*/*.txt"))
    assert offloader.sweep(max_age_seconds=2 * HOUR) == 1

    assert files(root) == set()


@POSIX_ONLY
def test_a_link_in_place_of_a_content_is_not_listed_with_the_size_of_its_target(
    storage: FileStorage, entry: Entry, tmp_path: Path
) -> None:
    save(storage, entry)
    elsewhere, planted = tmp_path / "elsewhere", content_path(storage, entry)
    elsewhere.write_bytes(b"of somebody else")
    planted.unlink()
    planted.symlink_to(elsewhere)

    assert storage.entries("") == []


def test_content_whose_description_vanished_is_found_by_a_sweep(root: Path) -> None:
    offloader = Offloader(FileStorage(root))
    offloader.offload([TextBlock("word " * 20_000)], tool_name="t")
    for description in root.glob("v1/*/*.entry.json"):
        description.unlink()
    make_old(*root.glob("v1/*/*.txt"))

    assert offloader.sweep(max_bytes=10) == 1
    assert files(root) == set()


# What killed writers leave.


def test_temporary_files_of_killed_writers_are_swept_after_an_hour(storage: FileStorage, entry: Entry) -> None:
    save(storage, entry)
    folder = content_path(storage, entry).parent
    old, young = folder / TEMPORARY, folder / TEMPORARY.replace("0", "f")
    for path in (old, young):
        path.write_bytes(b"half a content")
    make_old(old)

    assert Offloader(storage).sweep(max_bytes=10**9) == 0

    assert files(folder) == {young.name, content_path(storage, entry).name, entry_path(storage, entry).name}


@POSIX_ONLY
def test_links_in_place_of_all_files_of_an_entry_are_swept_and_not_followed(
    storage: FileStorage, entry: Entry, tmp_path: Path
) -> None:
    save(storage, entry)
    stranger = tmp_path / "stranger"
    stranger.write_text("mine")
    folder = content_path(storage, entry).parent
    for path in (content_path(storage, entry), entry_path(storage, entry), folder / TEMPORARY):
        path.unlink(missing_ok=True)
        path.symlink_to(stranger)

    assert storage.sweep([entry.key], before=an_hour_ago()) == 1

    assert files(folder) == set()
    assert stranger.read_text() == "mine"


def test_a_line_index_is_not_swept_while_its_content_is_in_use(storage: FileStorage, entry: Entry) -> None:
    index = replace(entry, key=f"{entry.key}-lines")
    for each in (entry, index):
        save(storage, each)
        make_old(content_path(storage, each))
    load(storage, entry)

    assert storage.sweep([index.key], before=an_hour_ago()) == 0

    make_old(content_path(storage, entry))
    assert storage.sweep([index.key], before=an_hour_ago()) == 1


def test_a_sweep_lists_a_folder_equally_often_however_many_contents_it_removes(
    storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan, listings = Folder.scan, []

    def note(folder: Folder) -> Iterator[os.DirEntry[str]]:
        listings.append(folder.path)
        return scan(folder)

    def listings_of_sweep(count: int) -> int:
        contents = [make_entry(noise(100, seed=number)) for number in range(count)]
        swept = [each for entry in contents for each in (entry, replace(entry, key=f"{entry.key}-lines"))]
        for each in swept:
            save(storage, each)
            make_old(content_path(storage, each))
        listings.clear()
        assert storage.sweep([each.key for each in swept], before=an_hour_ago()) == 2 * count
        return len(listings)

    monkeypatch.setattr(Folder, "scan", note)

    assert listings_of_sweep(20) == listings_of_sweep(2)


def test_a_description_without_content_is_swept_after_an_hour(storage: FileStorage) -> None:
    gone, coming = make_entry(b"killed in between"), make_entry(b"just being saved")
    for each in (gone, coming):
        save(storage, each)
        content_path(storage, each).unlink()  # as after a kill between the two renames
    make_old(entry_path(storage, gone))

    assert storage.sweep((), before=an_hour_ago()) == 0

    assert files(content_path(storage, gone).parent) == {entry_path(storage, coming).name}
    assert storage.load(gone.key) is None


def test_half_an_entry_is_listed_deleted_with_its_scope_and_swept(root: Path, storage: FileStorage) -> None:
    half, swept, young, coming = (make_entry(b"half", scope=scope) for scope in "1234")
    for each in (half, swept, young, coming):
        save(storage, each)
        content_path(storage, each).unlink()
        assert storage.load(each.key) is None
    make_old(entry_path(storage, half), entry_path(storage, swept))
    os.utime(entry_path(storage, young), (time.time() - 120,) * 2)

    listed = {found.key: found for found in storage.entries("")}
    assert set(listed) == {half.key, swept.key, young.key}, "what may still be under way is no half"
    assert {found.size for found in listed.values()} == {0}
    assert listed[swept.key].modified == 1_000
    assert Offloader(storage).delete_scope("1") == 1
    assert storage.sweep([swept.key, young.key], before=an_hour_ago()) == 1

    assert files(root) == {entry_path(storage, each).name for each in (young, coming)}


def test_a_foreign_file_named_like_an_entry_does_not_hide_it(storage: FileStorage, entry: Entry) -> None:
    save(storage, entry)
    for extension in (".aaa", ".zzz"):
        content_path(storage, entry).with_suffix(extension).mkdir()

    assert [listed.key for listed in storage.entries("")] == [entry.key]


def test_a_sweep_leaves_foreign_files_alone(root: Path, storage: FileStorage, entry: Entry) -> None:
    save(storage, entry)
    scope = entry.key.partition("/")[0]
    strangers = [
        "notes.tmp",
        "v1/.notes.tmp",
        "v1/notes/x.entry.json",
        f"v1/{scope}/notes.entry.json",
        f"v1/{scope}/.notes.tmp",
        f"v1/{scope}/{entry.key.partition('/')[2]}.txt~",
    ]
    for name in strangers:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("mine")
        make_old(root / name)
    (root / "v1/empty").mkdir()
    make_old(root / "v1/empty", content_path(storage, entry))

    assert storage.sweep([entry.key], before=an_hour_ago()) == 1

    assert sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()) == sorted(strangers)
    assert (root / "v1/empty").is_dir()


def test_the_folder_of_a_scope_is_removed_an_hour_after_its_last_entry(root: Path, storage: FileStorage) -> None:
    gone, young = make_entry(b"gone", scope="gone"), make_entry(b"young", scope="young")
    for each in (gone, young):
        save(storage, each)
        storage.delete(each.key)
    make_old(content_path(storage, gone).parent)

    storage.sweep((), before=an_hour_ago())

    assert [path.name for path in (root / "v1").iterdir()] == [young.key.partition("/")[0]]


def test_a_sweep_removes_the_folder_that_it_has_emptied(root: Path, storage: FileStorage, entry: Entry) -> None:
    kept = make_entry(b"kept", scope="kept")
    for each in (entry, kept):
        save(storage, each)
    make_old(content_path(storage, entry), entry_path(storage, entry), content_path(storage, entry).parent)

    assert storage.sweep([entry.key], before=an_hour_ago()) == 1

    assert [path.name for path in (root / "v1").iterdir()] == [kept.key.partition("/")[0]]


def test_a_save_survives_the_sweep_of_its_empty_folder(
    monkeypatch: pytest.MonkeyPatch, storage: FileStorage, entry: Entry
) -> None:
    save(storage, entry)
    storage.delete(entry.key)
    written = Folder.temporary_file

    def sweep_first(folder: Folder, content: bytes, *, fsync: bool) -> AbstractContextManager[str]:
        monkeypatch.setattr(Folder, "temporary_file", written)
        folder.path.rmdir()
        return folder.temporary_file(content, fsync=fsync)

    monkeypatch.setattr(Folder, "temporary_file", sweep_first)
    save(storage, entry)

    check_holds(storage, entry, "although its folder was swept away while it was saved")


# Sweeps, deletions and saves at once.


def test_a_sweep_during_a_save_of_the_same_content_never_wins(storage: FileStorage, entry: Entry) -> None:
    save(storage, entry)
    together = threading.Barrier(2)

    def save_again() -> None:
        together.wait()
        save(storage, entry)

    def sweep() -> None:
        together.wait()
        storage.sweep([entry.key], before=an_hour_ago())

    with ThreadPoolExecutor(2) as threads:
        for _ in range(300):
            make_old(content_path(storage, entry))
            for running in [threads.submit(save_again), threads.submit(sweep)]:
                running.result()
            check_holds(storage, entry, "after it was saved again during a sweep")


def test_a_save_waits_for_a_sweep_that_has_looked_and_not_yet_removed(
    monkeypatch: pytest.MonkeyPatch, storage: FileStorage, entry: Entry
) -> None:
    save(storage, entry)
    make_old(content_path(storage, entry))
    remove, threads = Folder.remove, ThreadPoolExecutor(1)
    saving = []

    def save_first(folder: Folder, name: str) -> None:
        monkeypatch.setattr(Folder, "remove", remove)
        saving.append(threads.submit(save, storage, entry))
        wait(saving, timeout=0.3)  # without a lock the save would be done by then, and removed next
        folder.remove(name)

    monkeypatch.setattr(Folder, "remove", save_first)
    with threads:
        assert storage.sweep([entry.key], before=an_hour_ago()) == 1
        saving[0].result()

    check_holds(storage, entry, "after it was saved while a sweep removed it")


def test_a_sweep_asks_a_network_disk_again_before_it_removes(
    storage: FileStorage, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS caches the times of files for up to a minute, and asks its server again when a file is opened."""
    save(storage, entry)
    make_old(content_path(storage, entry))
    status, open_file = Folder.status, os.open
    remembered: dict[str, os.stat_result | None] = {}

    def status_from_memory(folder: Folder, name: str) -> os.stat_result | None:
        return remembered.setdefault(name, status(folder, name))

    def open_anew(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        remembered.pop(path, None)
        return open_file(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(Folder, "status", status_from_memory)
    monkeypatch.setattr(os, "open", open_anew)
    assert storage.entries("")[0].modified < an_hour_ago()
    content_path(storage, entry).touch()  # another host saves it again

    assert storage.sweep([entry.key], before=an_hour_ago()) == 0
    assert load(storage, entry) is not None


def test_a_deletion_during_a_save_leaves_the_whole_entry_or_none(storage: FileStorage) -> None:
    entry = make_entry(b"deleted and saved")
    together = threading.Barrier(2)

    def save_it() -> None:
        together.wait()
        save(storage, entry)

    def delete_it() -> None:
        together.wait()
        storage.delete(entry.key)

    with ThreadPoolExecutor(2) as threads:
        for _ in range(300):
            for running in [threads.submit(save_it), threads.submit(delete_it)]:
                running.result()
            both = content_path(storage, entry).exists(), entry_path(storage, entry).exists()
            assert both in {(True, True), (False, False)}, "half an entry stayed"


def test_the_first_of_two_contents_with_the_same_key_stays(
    root: Path, storage: FileStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = make_entry(b"named first")
    written = Folder.temporary_file

    @contextmanager
    def save_another_next(folder: Folder, content: bytes, *, fsync: bool) -> Iterator[str]:
        monkeypatch.setattr(Folder, "temporary_file", written)
        with folder.temporary_file(content, fsync=fsync) as name:
            save(storage, entry)
            yield name

    monkeypatch.setattr(Folder, "temporary_file", save_another_next)
    with pytest.raises(StorageError, match="another content"):
        save(storage, Entry(entry.key, b"named second", "image/png", {"sha256": "2" * 64}))

    check_holds(storage, entry, "after another content got the same name")
    assert files(root) == {content_path(storage, entry).name, entry_path(storage, entry).name}


def test_damaged_content_is_replaced_by_another_with_its_key(root: Path, storage: FileStorage) -> None:
    entry = make_entry(b"named first")
    save(storage, entry)
    content_path(storage, entry).write_bytes(b"named")
    other = Entry(entry.key, b"named second", "text/plain", {"sha256": "2" * 64})

    save(storage, other)

    check_holds(storage, other, "after the content under its name was cut off")


# Reading.


def test_reading_refreshes_the_time(storage: FileStorage, entry: Entry) -> None:
    save(storage, entry)
    reads: tuple[Callable[[], object], ...] = (
        lambda: load(storage, entry),
        lambda: storage.load_range(entry.key, start=0, length=0),
    )
    for read in reads:
        make_old(content_path(storage, entry))
        read()
        assert content_path(storage, entry).stat().st_mtime > an_hour_ago()


@pytest.fixture
def refuse_times(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a function that makes setting file times fail with an error number: a read-only mount would need root."""

    def refuse_with(number: int) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "utime", refuse)

    return refuse_with


def test_an_entry_that_cannot_be_refreshed_can_still_be_read(
    refuse_times: Callable[[int], None], storage: FileStorage, entry: Entry
) -> None:
    save(storage, entry)
    refuse_times(errno.EROFS)

    check_holds(storage, entry, "on a disk that takes no writes")


def test_a_result_that_a_read_only_disk_already_holds_is_not_cut(
    refuse_times: Callable[[int], None], root: Path
) -> None:
    block = TextBlock("word " * 60_000)
    first = Offloader(FileStorage(root)).offload([block], tool_name="t")
    assert isinstance(first, Offloaded)
    refuse_times(errno.EROFS)

    assert Offloader(FileStorage(root)).offload([block], tool_name="t") == first  # above ``max_inline_tokens``


def test_a_save_fails_if_a_sweep_may_remove_what_it_could_not_refresh(
    refuse_times: Callable[[int], None], storage: FileStorage, entry: Entry
) -> None:
    save(storage, entry)
    refuse_times(errno.EACCES)  # a file of another user, who may remove it

    with pytest.raises(PermissionError):
        save(storage, entry)


# Links that are planted while a call runs.


@POSIX_ONLY
@pytest.mark.parametrize("level", ["scope", "v1"])
def test_a_link_planted_while_a_save_runs_is_not_followed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, root: Path, storage: FileStorage, level: str
) -> None:
    before, entry = make_entry(b"makes the folder"), make_entry(noise(100))
    save(storage, before)
    scope = content_path(storage, before).parent
    planted = scope if level == "scope" else root / "v1"
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / scope.name).mkdir(parents=True)
    written = Folder.temporary_file

    def plant_first(folder: Folder, content: bytes, *, fsync: bool) -> AbstractContextManager[str]:
        monkeypatch.setattr(Folder, "temporary_file", written)
        planted.rename(tmp_path / "moved away")
        planted.symlink_to(elsewhere, target_is_directory=True)
        return folder.temporary_file(content, fsync=fsync)

    monkeypatch.setattr(Folder, "temporary_file", plant_first)
    save(storage, entry)

    assert files(elsewhere) == set()
    with pytest.raises(NotADirectoryError, match="not a folder but a link"):
        storage.load(entry.key)


def test_an_offloader_that_cannot_save_keeps_the_result(tmp_path: Path) -> None:
    (tmp_path / "v1").write_text("a file where the folder should be")
    block = TextBlock("word " * 20_000)

    outcome = Offloader(FileStorage(tmp_path)).offload([block], tool_name="t")

    assert not isinstance(outcome, Offloaded)
    assert outcome.blocks == (block,)
