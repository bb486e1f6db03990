"""FileStorage with limits: what it evicts and counts, also with several processes and after kills."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from coatcheck import (
    FileStorage,
    InvalidRequest,
    Kept,
    Offloaded,
    Offloader,
    ReferenceExpired,
    ReferenceNotFound,
    StorageError,
    TextBlock,
    Truncated,
)
from coatcheck.storage import ledger
from coatcheck.storage.folder import Folder, open_folder
from coatcheck.testing.samples import Entry, make_entry, noise
from coatcheck.testing.storage import check_holds, load, save
from tests.storage.writing import LARGEST, entry_of, write_within

SIZE = 1_000
TOTAL = "total.ledger"
WRITERS = 3
REPOSITORY = Path(__file__).parents[2]


def entries(count: int, *, scope: str = "one", first: int = 0) -> list[Entry]:
    return [make_entry(noise(SIZE, seed=first + number), scope=scope) for number in range(count)]


def kept(storage: FileStorage, stored: list[Entry]) -> list[int]:
    """Return the positions of the entries that are still stored, without counting as use."""
    keys = {listed.key for listed in storage.entries("")}
    return [position for position, entry in enumerate(stored) if entry.key in keys]


def used(storage: FileStorage, entry: Entry, *, at: float) -> None:
    os.utime(storage.local_path(entry.key, content_type=entry.content_type), (at, at))


def save_in_order(storage: FileStorage, stored: list[Entry]) -> None:
    """Save entries as if half an hour ago, a second apart: a coarse clock could not tell them apart."""
    for position, entry in enumerate(stored):
        save(storage, entry)
        used(storage, entry, at=time.time() - 1_800 + position)


def listed_bytes(root: Path, prefix: str = "") -> int:
    return sum(listed.size for listed in FileStorage(root).entries(prefix))


def counted_bytes(root: Path, name: str = TOTAL) -> int:
    with open_folder(root, "v1") as folder, folder.locked_file(name) as descriptor:
        assert descriptor is not None
        count = ledger._read(descriptor)
    assert count is not None
    return count.size


# What is evicted.


def test_the_least_recently_used_entries_make_room(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path, max_bytes=10 * SIZE)
    stored = entries(11)
    save_in_order(storage, stored[:10])
    assert kept(storage, stored) == list(range(10))

    save(storage, stored[10])

    assert kept(storage, stored) == list(range(1, 11))


def test_reading_and_saving_again_both_count_as_use(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path, max_bytes=10 * SIZE)
    stored = entries(11)
    save_in_order(storage, stored[:10])
    assert load(storage, stored[0]) is not None
    save(storage, stored[1])

    save(storage, stored[10])

    assert kept(storage, stored) == [0, 1, *range(3, 11)]


def test_reading_without_a_refresh_does_not_protect_from_eviction(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path, max_bytes=10 * SIZE, refresh_on_read=False)
    stored = entries(11)
    save_in_order(storage, stored[:10])
    assert load(storage, stored[0]) is not None

    save(storage, stored[10])

    assert 0 not in kept(storage, stored)


def test_a_full_scope_evicts_only_its_own_entries(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path, max_scope_bytes=3 * SIZE)
    older, stored = entries(3, scope="other"), entries(4, first=10)
    save_in_order(storage, older)
    save_in_order(storage, stored[:3])

    save(storage, stored[3])

    assert kept(storage, older) == [0, 1, 2]
    assert kept(storage, stored) == [1, 2, 3]
    assert counted_bytes(tmp_path) == listed_bytes(tmp_path) == 6 * SIZE


def test_room_for_the_whole_storage_comes_from_every_scope(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path, max_bytes=4 * SIZE, max_scope_bytes=3 * SIZE)
    older, stored = entries(2, scope="other"), entries(3, first=10)
    save_in_order(storage, older)
    save_in_order(storage, stored)

    assert kept(storage, older) == [1]
    assert kept(storage, stored) == [0, 1, 2]
    scope = stored[0].key.partition("/")[0]
    assert counted_bytes(tmp_path, f"{scope}.ledger") == listed_bytes(tmp_path, f"{scope}/") == 3 * SIZE


def test_equal_content_of_two_scopes_is_evicted_from_one_of_them_only(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path, max_bytes=2 * SIZE)
    first, second = (make_entry(noise(SIZE, seed=1), scope=scope) for scope in ("one", "two"))
    save_in_order(storage, [first, second])

    save(storage, make_entry(noise(SIZE, seed=2), scope="three"))

    assert kept(storage, [first, second]) in ([1], [])
    another = FileStorage(tmp_path, max_bytes=3 * SIZE)
    save_in_order(another, [first, second])
    save(another, make_entry(noise(SIZE, seed=3), scope="three"))
    check_holds(another, second, "although the same content of another scope went")


@pytest.mark.parametrize("age", [3_600 * 24, timedelta(days=1)], ids=["seconds", "timedelta"])
def test_an_entry_unused_for_too_long_is_evicted_by_the_first_save_of_an_hour(
    tmp_path: Path, age: float | timedelta
) -> None:
    old, young, new = entries(3)
    before = FileStorage(tmp_path)
    for entry, hours in ((old, 25), (young, 23)):
        save(before, entry)
        used(before, entry, at=time.time() - hours * 3_600)

    save(FileStorage(tmp_path, max_age=age), new)

    assert kept(before, [old, young, new]) == [1, 2]


class Ahead:
    """A clock that runs ahead."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def time(self) -> float:
        return time.time() + self.seconds


def test_a_save_with_a_clock_ahead_keeps_its_files_and_later_limits_still_apply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = FileStorage(tmp_path, max_age=3_600 * 24)
    early, old, new = entries(3)
    with monkeypatch.context() as patch:
        patch.setattr("coatcheck.storage.file.time", Ahead(3_600 * 24 * 365))
        save(storage, early)
        check_holds(storage, early, "after it was saved with a clock ahead")
    save(storage, old)
    used(storage, old, at=time.time() - 25 * 3_600)

    monkeypatch.setattr("coatcheck.storage.file.time", Ahead(3_700))
    save(storage, new)

    assert kept(storage, [early, old, new]) == [0, 2]


def test_a_line_index_is_evicted_with_its_content_and_not_before(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path)
    text = "".join(f"line {number}\n" for number in range(200_000))
    outcome = Offloader(storage).offload([TextBlock(text)], tool_name="t", scope="one")
    assert isinstance(outcome, Offloaded)
    content, index = sorted(storage.entries(""), key=lambda listed: listed.key)
    assert index.key == f"{content.key}-lines"
    path = storage.local_path(index.key, content_type="application/vnd.coatcheck.lines+json")
    os.utime(path, (1_000, 1_000))  # nobody has read it since

    bounded = FileStorage(tmp_path, max_bytes=content.size + index.size)
    other = make_entry(noise(SIZE, seed=1), scope="two")
    save(bounded, other)

    assert [listed.key for listed in storage.entries("")] == [other.key], "both, although one would have been enough"
    assert not [path for path in tmp_path.rglob("*") if path.name.endswith("-lines.entry.json")]


def test_files_of_others_are_neither_counted_nor_removed(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path, max_bytes=10 * SIZE)
    stored = entries(11)
    save_in_order(storage, stored[:10])
    mine = storage.local_path(stored[0].key, content_type="text/plain").with_name("notes.txt")
    mine.write_bytes(bytes(100 * SIZE))
    os.utime(mine, (1_000, 1_000))

    save(storage, stored[10])

    assert mine.exists()
    assert kept(storage, stored) == list(range(1, 11))


def test_the_hourly_clean_up_removes_leftovers_and_empty_folders(tmp_path: Path) -> None:
    plain = FileStorage(tmp_path)
    old, new = entries(1, scope="old"), entries(1, scope="new")
    save(plain, old[0])
    leftover = plain.local_path(old[0].key, content_type="text/plain").with_name(f".{'0' * 32}.tmp")
    leftover.write_bytes(b"half")
    plain.delete(old[0].key)
    for path in (leftover, leftover.parent):
        os.utime(path, (1_000, 1_000))

    save(FileStorage(tmp_path, max_bytes=10 * SIZE), new[0])

    assert not leftover.exists()
    os.utime(leftover.parent, (1_000, 1_000))
    with open_folder(tmp_path, "v1") as folder:
        folder.remove(TOTAL)
    save(FileStorage(tmp_path, max_bytes=10 * SIZE), new[0])
    save(FileStorage(tmp_path, max_bytes=10 * SIZE), entries(1, scope="new", first=5)[0])
    assert not leftover.parent.exists()


# What is reported.


def test_the_model_is_told_that_content_expired_and_not_that_it_never_existed(tmp_path: Path) -> None:
    offloader = Offloader(FileStorage(tmp_path, max_bytes=150_000))
    first, second = (
        offloader.offload([TextBlock(word * 20_000)], tool_name="t", scope="one") for word in ("word ", "other ")
    )
    assert isinstance(first, Offloaded)
    assert isinstance(second, Offloaded)

    assert "other" in offloader.retrieve(second.references[0].id, scope="one").text
    with pytest.raises(ReferenceExpired, match="reference expired"):
        offloader.retrieve(first.references[0].id, scope="one")
    with pytest.raises(ReferenceNotFound, match="reference not found"):
        offloader.retrieve(f"{first.references[0].id[:-4]}0000", scope="one")


def test_a_result_whose_parts_evict_each_other_is_not_offloaded(tmp_path: Path) -> None:
    offloader = Offloader(FileStorage(tmp_path, max_bytes=150_000), max_inline_tokens=1_000_000)
    parts = [TextBlock(word * 20_000) for word in ("one ", "two ", "six ")]

    outcome = offloader.offload(parts, tool_name="t", scope="one")

    assert isinstance(outcome, Kept)
    assert outcome.reason == "storage failed"


def test_content_larger_than_a_limit_is_refused_and_nothing_is_evicted(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path, max_bytes=10 * SIZE, max_scope_bytes=5 * SIZE)
    stored = entries(2)
    save_in_order(storage, stored)

    with pytest.raises(StorageError, match="content of 5,001 bytes is larger than the 5,000"):
        save(storage, make_entry(noise(5 * SIZE + 1, seed=9)))

    assert kept(storage, stored) == [0, 1]
    outcome = Offloader(storage, max_inline_tokens=2_500).offload([TextBlock("word " * 20_000)], tool_name="t")
    assert isinstance(outcome, Truncated)


def test_only_a_storage_with_a_limit_evicts(tmp_path: Path) -> None:
    assert FileStorage(tmp_path).evicts is False
    assert FileStorage(tmp_path, max_age=1).evicts is True
    storage = FileStorage(tmp_path, max_age=60, max_bytes=5, max_scope_bytes=4)
    assert storage.evicts is True
    assert (storage.max_age, storage.max_bytes, storage.max_scope_bytes) == (60, 5, 4)


@pytest.mark.parametrize(
    "limits",
    [
        {"max_bytes": 0},
        {"max_bytes": 1.5},
        {"max_scope_bytes": True},
        {"max_scope_bytes": "2GB"},
        {"max_age": 0},
        {"max_age": -1.0},
        {"max_age": float("nan")},
        {"max_age": timedelta(0)},
        {"max_age": "7d"},
        {"max_age": True},
    ],
    ids=str,
)
def test_an_invalid_limit_is_refused_by_name(tmp_path: Path, limits: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match=next(iter(limits))):
        FileStorage(tmp_path, **limits)


# What is counted.


def test_the_counted_bytes_equal_the_listed_bytes(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path, max_bytes=100 * SIZE, max_scope_bytes=50 * SIZE)
    stored = [*entries(5), *entries(5, scope="two", first=10)]
    save_in_order(storage, stored)
    save(storage, stored[0])
    storage.delete(stored[1].key)
    storage.delete(stored[1].key)
    storage.sweep([stored[2].key], before=time.time() + 1)

    assert counted_bytes(tmp_path) == listed_bytes(tmp_path) == 8 * SIZE


def test_with_fsync_content_that_is_written_again_counts_once(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path, fsync=True, max_bytes=100 * SIZE)
    for _ in range(3):
        save(storage, entries(1)[0])

    assert counted_bytes(tmp_path) == SIZE


def test_a_storage_without_limits_updates_the_count_of_one_with_limits(tmp_path: Path) -> None:
    bounded, plain = FileStorage(tmp_path, max_bytes=10 * SIZE), FileStorage(tmp_path)
    save_in_order(bounded, entries(1))
    stored = entries(8, first=1)
    save_in_order(plain, stored)
    plain.delete(stored[0].key)

    assert counted_bytes(tmp_path) == listed_bytes(tmp_path) == 8 * SIZE
    save_in_order(plain, entries(10, first=20))
    assert len(plain.entries("")) == 18, "it removes nothing itself"
    save(bounded, entries(1, first=40)[0])
    assert listed_bytes(tmp_path) <= 10 * SIZE


def test_without_a_limit_there_is_no_ledger_and_no_save_counts_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coatcheck.storage.file.count_in", None)
    save_in_order(FileStorage(tmp_path), entries(3))

    assert not list(tmp_path.rglob("*.ledger"))


@pytest.mark.parametrize(
    "damaged",
    [b"", b"half a rec", bytes(28), b"\xff" * 28, bytes(100)],
    ids=["empty", "short", "zeros", "ones", "long"],
)
def test_a_damaged_ledger_is_rewritten_by_the_next_save(tmp_path: Path, damaged: bytes) -> None:
    storage = FileStorage(tmp_path, max_bytes=10 * SIZE)
    stored = entries(11)
    save_in_order(storage, stored[:10])
    (tmp_path / "v1" / TOTAL).write_bytes(damaged)

    save(storage, stored[10])

    assert kept(storage, stored) == list(range(1, 11))
    assert counted_bytes(tmp_path) == listed_bytes(tmp_path)


def test_a_sweep_corrects_the_count(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path, max_bytes=10 * SIZE, max_scope_bytes=10 * SIZE)
    stored = entries(5)
    save_in_order(storage, stored)
    for entry in stored[:3]:  # as a user who deletes files by hand
        storage.local_path(entry.key, content_type=entry.content_type).unlink()
    assert counted_bytes(tmp_path) == 5 * SIZE

    Offloader(FileStorage(tmp_path)).sweep(max_bytes=10**9)

    assert counted_bytes(tmp_path) == listed_bytes(tmp_path) == 2 * SIZE
    assert [path.name for path in tmp_path.rglob("*.ledger")] == [TOTAL]
    save_in_order(storage, entries(1, first=7))
    assert {counted_bytes(tmp_path, path.name) for path in tmp_path.rglob("*.ledger")} == {3 * SIZE}


def test_a_full_storage_that_cannot_evict_refuses_the_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = FileStorage(tmp_path, max_bytes=10 * SIZE)
    stored = entries(11)
    save_in_order(storage, stored[:10])

    def refuse(folder: Folder, name: str) -> None:
        if not name.endswith(".tmp"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)

    with monkeypatch.context() as broken:
        broken.setattr(Folder, "remove", refuse)
        with pytest.raises(PermissionError):
            save(storage, stored[10])

    assert kept(storage, stored) == list(range(10))
    save(storage, stored[10])
    assert kept(storage, stored) == list(range(1, 11))


# Several processes.


def test_processes_that_fill_one_folder_stay_within_its_limits_together(tmp_path: Path) -> None:
    limit = 40 * LARGEST
    with ProcessPoolExecutor(WRITERS, mp_context=get_context("spawn")) as processes:
        running = [
            processes.submit(write_within, str(tmp_path), limit, first=1_000 * each, count=150)
            for each in range(WRITERS)
        ]
        assert max(process.result() for process in running) <= limit

    assert listed_bytes(tmp_path) <= limit
    assert counted_bytes(tmp_path) == pytest.approx(listed_bytes(tmp_path), rel=0.05)
    storage = FileStorage(tmp_path)
    for listed in storage.entries(""):
        assert storage.load(listed.key) is not None, "half an entry is listed"


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL on Windows")
def test_processes_killed_during_eviction_leave_whole_entries_and_a_count_that_a_sweep_corrects(
    tmp_path: Path,
) -> None:
    limit = 10 * LARGEST  # so that every other save evicts, and most kills happen while one does
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), *filter(None, sys.path)])}
    for kill in range(6):
        command = [
            sys.executable,
            "-m",
            "tests.storage.writing",
            str(tmp_path),
            str(LARGEST),
            str(limit),
            str(kill * 10_000),
        ]
        with subprocess.Popen(command, cwd=REPOSITORY, env=env, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            said = [writer.stdout.readline() for _ in range(12 + kill)]
            writer.kill()
            said += writer.stdout.readlines()  # it may have continued, and evicted entries that it acknowledged before
        assert said[11 + kill], "the writer died by itself"
        storage = FileStorage(tmp_path)
        for listed in storage.entries(""):
            assert storage.load(listed.key) is not None, "half an entry is listed"
        newest = int(said[-1])
        check_holds(storage, entry_of(newest, size=LARGEST), "although its writer was killed")
        assert listed_bytes(tmp_path) <= limit
        assert counted_bytes(tmp_path) >= listed_bytes(tmp_path), "a count that is too low would fill the disk"

    Offloader(FileStorage(tmp_path)).sweep(max_bytes=10**9)
    assert counted_bytes(tmp_path) == listed_bytes(tmp_path)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL on Windows")
def test_many_writers_killed_between_count_and_rename_leave_a_count_within_5_percent(
    tmp_path: Path,
) -> None:
    writers, each = 20, 25
    children = list[int]()
    for number in range(writers):
        child = os.fork()
        if child == 0:  # pragma: no branch
            _save_and_die(tmp_path, entries(each + 1, scope=f"{number % 3:016x}", first=100 * number))
        children.append(child)
    ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    assert ends == [-signal.SIGKILL] * writers

    listed = listed_bytes(tmp_path)
    assert listed == writers * each * SIZE
    assert counted_bytes(tmp_path) == listed + writers * SIZE, "what they left on the disk counts"
    assert counted_bytes(tmp_path) == pytest.approx(listed, rel=0.05)
    Offloader(FileStorage(tmp_path)).sweep(max_bytes=10**9)
    assert counted_bytes(tmp_path) == listed_bytes(tmp_path)


def _save_and_die(root: Path, stored: list[Entry]) -> None:
    """Save all entries, and kill this process when the last one is counted but not yet renamed."""
    try:
        storage = FileStorage(root, max_bytes=10**9)
        for entry in stored[:-1]:
            save(storage, entry)
        Folder.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
        save(storage, stored[-1])
    finally:
        os._exit(1)


@pytest.mark.parametrize("call", range(0, 60, 3))
def test_a_death_at_any_call_during_eviction_damages_no_entry_that_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """A kill at every place: nothing runs after that moment, not even clean-up code."""
    storage = FileStorage(tmp_path, max_bytes=10 * SIZE)
    stored = entries(12)
    save_in_order(storage, stored[:10])
    child = os.fork()
    if child == 0:  # pragma: no branch
        _die_at(call)
        save(storage, stored[10])
        os._exit(0)
    os.waitpid(child, 0)

    assert counted_bytes(tmp_path) >= listed_bytes(tmp_path)
    for position in kept(storage, stored):
        if storage.load(stored[position].key) is not None:
            check_holds(storage, stored[position], f"after a death at call {call}")
    save(storage, stored[11])
    check_holds(storage, stored[11], "saved after it")
    assert listed_bytes(tmp_path) <= 10 * SIZE
    assert set(kept(storage, stored)) >= {5, 6, 7, 8, 9, 11}


def _die_at(call: int) -> None:
    """Make this process exit without any clean-up at the given system call, counting those that change something."""
    left = [call]

    def dying(real: Any) -> Any:  # noqa: ANN401 - any function of os
        def called(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as that function
            if left[0] == 0:
                os._exit(1)
            left[0] -= 1
            return real(*args, **kwargs)

        return called

    for name in ("unlink", "write", "replace", "utime", "ftruncate"):
        setattr(os, name, dying(getattr(os, name)))
    ledger._PWRITE = dying(ledger._PWRITE)
