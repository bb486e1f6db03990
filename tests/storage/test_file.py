"""FileStorage: the contract, and how its files appear to people, other programs and attackers."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import (
    ByteCounter,
    CorruptContent,
    FileStorage,
    InvalidRequest,
    Kept,
    Offloaded,
    Offloader,
    Storage,
    StorageError,
    TextBlock,
)
from coatcheck.testing import (
    DeletesContract,
    ListsContract,
    ListsPagesContract,
    LocalPathContract,
    ReadsRangesContract,
    StorageContract,
    SweepsContract,
)
from coatcheck.testing.samples import MALFORMED_KEYS, Entry, id_of_key, make_entry, noise
from coatcheck.testing.storage import check_holds, load, save
from tests.storage.offloader_calls import BIG, CALLS, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

POSIX_ONLY = pytest.mark.skipif(os.name != "posix", reason="modes and links as POSIX has them")
NOBODY = 65534


class TestFileStorage(
    StorageContract,
    ReadsRangesContract,
    DeletesContract,
    ListsContract,
    ListsPagesContract,
    SweepsContract,
    LocalPathContract,
):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> FileStorage:
        return FileStorage(tmp_path / "artifacts")

    def make_older(self, storage: Storage, key: str) -> bool:
        assert isinstance(storage, FileStorage)
        os.utime(storage.local_path(key, content_type="text/plain"), (1_000, 1_000))
        return True


class TestFileStorageWithLimits(TestFileStorage):
    """Limits that are never reached change nothing."""

    @pytest.fixture
    def storage(self, tmp_path: Path) -> FileStorage:
        root = tmp_path / "artifacts"
        return FileStorage(root, max_age=timedelta(days=36_500), max_bytes=10**12, max_scope_bytes=10**11)


class TestFileStorageWithFsync(TestFileStorage):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> FileStorage:
        return FileStorage(tmp_path / "artifacts", fsync=True)


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


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir())


# What people and other programs find in the folder.


def test_nothing_is_created_before_the_first_save(root: Path, storage: FileStorage, entry: Entry) -> None:
    assert storage.load(entry.key) is None
    assert storage.entries("") == []
    storage.delete(entry.key)

    assert not root.exists()


def test_an_entry_is_a_content_file_and_a_description(root: Path, storage: FileStorage, entry: Entry) -> None:
    save(storage, entry)

    assert files(root) == [f"v1/{entry.key}.entry.json", f"v1/{entry.key}.txt"]
    assert (root / f"v1/{entry.key}.txt").read_bytes() == entry.content
    assert json.loads((root / f"v1/{entry.key}.entry.json").read_bytes()) == {
        "content_type": "text/plain",
        "size": len(entry.content),
        "metadata": entry.metadata,
    }


@pytest.mark.parametrize(
    ("content_type", "extension"),
    [
        ("text/plain", ".txt"),
        ("application/json", ".json"),
        ("text/html", ".html"),
        ("text/csv", ".csv"),
        ("image/png", ".png"),
        ("image/jpeg", ".jpg"),
        ("image/svg+xml", ".svg"),
        ("audio/mpeg", ".mp3"),
        ("video/mp4", ".mp4"),
        ("application/pdf", ".pdf"),
        ("application/octet-stream", ".bin"),
        ("x/y", ".bin"),
        ("image/../../etc", ".bin"),
        ("text/plain; charset=utf-8", ".bin"),
        ("", ".bin"),
    ],
)
def test_the_extension_matches_the_content_type(storage: FileStorage, content_type: str, extension: str) -> None:
    path = storage.local_path("0123456789abcdef/fedcba9876543210", content_type=content_type)

    assert path.name == f"fedcba9876543210{extension}"


@POSIX_ONLY
def test_only_the_owner_has_access(root: Path, storage: FileStorage, entry: Entry) -> None:
    umask = os.umask(0)
    try:
        save(storage, entry)
    finally:
        os.umask(umask)

    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (root, *root.rglob("*"))}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


@POSIX_ONLY
def test_the_mode_of_an_existing_folder_is_left_alone(root: Path, storage: FileStorage, entry: Entry) -> None:
    root.mkdir(mode=0o755)
    root.chmod(0o755)

    save(storage, entry)

    assert stat.S_IMODE(root.stat().st_mode) == 0o755


def test_files_of_others_are_left_alone(root: Path, storage: FileStorage, entry: Entry) -> None:
    save(storage, entry)
    strangers = (
        "notes.txt",
        "v2/anything",
        "v1/README",
        "v1/not-a-scope/file.txt",
        f"v1/{entry.key.partition('/')[0]}/notes.md.txt~",
        f"v1/{entry.key.partition('/')[0]}/.hidden",
    )
    for name in strangers:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("mine")

    (root / f"v1/{entry.key.partition('/')[0]}/folder.txt").mkdir()
    assert [listed.key for listed in storage.entries("")] == [entry.key]
    storage.delete(entry.key)

    assert storage.load(entry.key) is None
    assert files(root) == sorted(strangers)
    assert {(root / name).read_text() for name in strangers} == {"mine"}


def test_a_relative_root_is_made_absolute_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, entry: Entry
) -> None:
    monkeypatch.chdir(tmp_path)
    storage = FileStorage("artifacts")
    monkeypatch.chdir("/")

    save(storage, entry)

    assert (tmp_path / "artifacts/v1").is_dir()
    assert repr(storage) == f"FileStorage({str(tmp_path / 'artifacts')!r})"


@pytest.mark.parametrize("root", ["", "a\0b", "a\ud800b", b"artifacts", None, 5])
def test_a_root_that_is_not_a_path_is_refused(root: Any) -> None:  # noqa: ANN401 - whatever a user passes
    with pytest.raises(InvalidRequest, match=r"needs a folder|home directory"):
        FileStorage(root)


@pytest.mark.parametrize("root", ["s3://bucket/a/b", "S3://bucket", "memory://x", "abfs+ssl://x", "file:///folder"])
def test_a_url_is_refused_rather_than_taken_for_a_local_folder(root: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(f"{root!r} is a URL: S3Storage('bucket', 'prefix') is for")):
        FileStorage(root)


def test_a_root_in_the_home_of_an_unknown_user_is_refused_with_the_reason() -> None:
    with pytest.raises(
        InvalidRequest, match="cannot find the folder '~a user that nobody is/x': Could not determine home"
    ):
        FileStorage("~a user that nobody is/x")


# What attackers plant and request.


@pytest.mark.parametrize(
    "key", [*MALFORMED_KEYS, "scope/a.b", "SCOPE/DIGEST", "scope/digest/more", "scope/digest\n"], ids=id_of_key
)
def test_a_malformed_key_is_refused_by_every_method(tmp_path: Path, storage: FileStorage, key: str) -> None:
    attempts: tuple[Callable[[], object], ...] = (
        lambda: storage.save(key, b"x", content_type="text/plain", metadata={}),
        lambda: storage.load(key),
        lambda: storage.load_range(key, start=0, length=0),
        lambda: storage.delete(key),
        lambda: storage.local_path(key, content_type="text/plain"),
    )
    for attempt in attempts:
        with pytest.raises(StorageError, match="malformed storage key"):
            attempt()
    assert files(tmp_path) == []


@pytest.mark.parametrize("key", [None, 5, b"scope/digest"])
def test_a_key_that_is_not_a_string_is_malformed_too(storage: FileStorage, key: Any) -> None:  # noqa: ANN401
    with pytest.raises(StorageError, match="malformed storage key"):
        storage.load(key)


@POSIX_ONLY
@pytest.mark.parametrize("what", ["content", "entry"])
def test_a_planted_link_to_a_file_is_never_followed(
    tmp_path: Path, storage: FileStorage, entry: Entry, what: str
) -> None:
    save(storage, entry)
    planted = content_path(storage, entry) if what == "content" else entry_path(storage, entry)
    secret = tmp_path / "secret"
    secret.write_bytes(planted.read_bytes())  # the same bytes, so that only the link itself gives it away
    planted.unlink()
    planted.symlink_to(secret)

    with pytest.raises(StorageError):
        storage.load(entry.key)
    with pytest.raises(StorageError):
        storage.load_range(entry.key, start=0, length=1)
    before = secret.read_bytes(), secret.stat().st_mtime_ns
    try:
        save(storage, entry)
    except StorageError:
        assert planted.is_symlink()
    else:
        assert not planted.is_symlink(), "the link should have been replaced, not written through"
        check_holds(storage, entry, "after a link was replaced")
    assert (secret.read_bytes(), secret.stat().st_mtime_ns) == before


@POSIX_ONLY
@pytest.mark.parametrize("folder", ["v1", "v1/scope"])
def test_a_planted_link_to_a_folder_is_never_written_to(
    tmp_path: Path, root: Path, storage: FileStorage, entry: Entry, folder: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    planted = root / folder.replace("scope", entry.key.partition("/")[0])
    planted.parent.mkdir(parents=True)
    planted.symlink_to(elsewhere, target_is_directory=True)

    with pytest.raises(NotADirectoryError, match="not a folder but a link"):
        save(storage, entry)

    assert list(elsewhere.iterdir()) == []


@POSIX_ONLY
def test_a_planted_link_to_a_scope_is_neither_read_nor_listed_nor_emptied(
    tmp_path: Path, root: Path, storage: FileStorage, entry: Entry
) -> None:
    victim = FileStorage(tmp_path / "victim")
    save(victim, entry)
    scope = entry.key.partition("/")[0]
    (root / "v1").mkdir(parents=True)
    (root / "v1" / scope).symlink_to(content_path(victim, entry).parent, target_is_directory=True)

    assert storage.entries("") == []
    assert storage.entries(f"{scope}/") == []
    with suppress(OSError):  # a refusal is as good
        assert storage.load(entry.key) is None
    with suppress(OSError):
        storage.delete(entry.key)
    with suppress(OSError):
        save(storage, entry)
    check_holds(victim, entry, "although another storage has a link to it")


@POSIX_ONLY
def test_a_folder_in_place_of_content_is_corrupt_and_leaves_no_descriptor_open(
    storage: FileStorage, entry: Entry
) -> None:
    save(storage, entry)
    path = content_path(storage, entry)
    path.unlink()
    path.mkdir()
    before = set(Path("/dev/fd").iterdir())

    for _ in range(5):
        with pytest.raises(CorruptContent, match="is not a file but a link, a folder or a device"):
            storage.load(entry.key)
    assert set(Path("/dev/fd").iterdir()) <= before  # garbage of earlier tests may be collected meanwhile


@POSIX_ONLY
def test_a_device_in_place_of_content_is_not_read(storage: FileStorage, entry: Entry) -> None:
    save(storage, entry)
    path = content_path(storage, entry)
    path.unlink()
    os.mkfifo(path)  # reading it would block forever

    with pytest.raises(StorageError):
        storage.load(entry.key)


# What goes wrong.


@pytest.mark.parametrize("fsync", [False, True])
@pytest.mark.parametrize("at_write", [1, 2, 3, 4])
def test_a_full_disk_leaves_the_whole_entry_or_none(
    monkeypatch: pytest.MonkeyPatch, root: Path, at_write: int, *, fsync: bool
) -> None:
    # os.write is replaced: a really full disk needs a file system of its own, which a test here cannot mount.
    storage, entry = FileStorage(root, fsync=fsync), make_entry(noise(3_500_000))
    written, writes = os.write, iter(range(1, 100))

    def fill_up(descriptor: int, data: memoryview) -> int:
        if next(writes) == at_write:
            written(descriptor, bytes(data[: len(data) // 2]))
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fill_up)
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            save(storage, entry)

    assert storage.load(entry.key) is None
    assert storage.entries("") == []
    assert not [name for name in files(root) if name.endswith(".tmp")]
    save(storage, entry)
    check_holds(storage, entry, "after there was room again")


def test_short_writes_are_completed(monkeypatch: pytest.MonkeyPatch, storage: FileStorage) -> None:
    entry, written = make_entry(noise(100_000)), os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: written(descriptor, data[:999]))

    save(storage, entry)

    check_holds(storage, entry, "although every write was short")


@pytest.mark.parametrize(("stale_reads", "is_read"), [(3, True), (4, False)])
def test_a_file_that_another_host_replaces_while_it_is_read_is_read_again(
    monkeypatch: pytest.MonkeyPatch, storage: FileStorage, stale_reads: int, *, is_read: bool
) -> None:
    entry, status, left = make_entry(b"replaced"), os.fstat, [stale_reads]
    save(storage, entry)

    def stale(descriptor: int) -> os.stat_result:
        # Stands in for NFS 3, which needs a server and kernel support.
        if left[0] > 0:
            left[0] -= 1
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return status(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", stale)
        if is_read:
            check_holds(storage, entry, "although it was stale")
        else:
            with pytest.raises(OSError, match=os.strerror(errno.ESTALE)):
                storage.load(entry.key)


@pytest.mark.parametrize("at_rename", [1, 2])
def test_a_failed_rename_leaves_no_temporary_file(
    monkeypatch: pytest.MonkeyPatch, root: Path, storage: FileStorage, entry: Entry, at_rename: int
) -> None:
    replace, renames = os.replace, iter(range(1, 10))

    def refuse(source: str, target: str, **folders: int | None) -> None:
        if next(renames) == at_rename:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(source, target, **folders)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", refuse)
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            save(storage, entry)

    assert not [name for name in files(root) if name.endswith(".tmp")]
    assert storage.load(entry.key) is None
    save(storage, entry)
    check_holds(storage, entry, "after renaming worked again")


def test_no_temporary_file_is_left(root: Path, storage: FileStorage) -> None:
    for number in range(20):
        save(storage, make_entry(noise(1_000, seed=number)))

    assert {Path(name).suffix for name in files(root)} == {".txt", ".json"}


def test_truncated_content_is_written_again(storage: FileStorage, entry: Entry) -> None:
    save(storage, entry)
    content_path(storage, entry).write_bytes(entry.content[:5])

    save(storage, entry)

    check_holds(storage, entry, "after a damaged file was saved again")


@pytest.mark.parametrize("size", [20_000, 2_000_000])
def test_content_with_a_flipped_bit_is_written_again(tmp_path: Path, size: int) -> None:
    offloader = Offloader(FileStorage(tmp_path), token_counter=ByteCounter())
    block = TextBlock("x" * size)
    reference = str(offloader.offload([block], tool_name="t").references[0])
    (path,) = tmp_path.glob("v1/*/*.txt")
    path.write_bytes(b"y" + path.read_bytes()[1:])

    assert isinstance(offloader.offload([block], tool_name="t"), Offloaded)

    assert offloader.load(reference).text == block.text


def test_reading_all_of_damaged_text_raises(tmp_path: Path) -> None:
    offloader = Offloader(FileStorage(tmp_path), token_counter=ByteCounter(), max_retrieval_tokens=50_000)
    reference = str(offloader.offload([TextBlock("x" * 20_000)], tool_name="t").references[0])
    (path,) = tmp_path.glob("v1/*/*.txt")
    whole = path.read_bytes()

    path.write_bytes(b"y" + whole[1:])
    with pytest.raises(CorruptContent, match="SHA-256 differs"):
        offloader.retrieve(reference)
    path.write_bytes(whole[:-1])
    with pytest.raises(CorruptContent, match="has 19,999 bytes, and 20,000 were saved"):
        offloader.retrieve(reference)


@pytest.mark.parametrize("changed", [b"", b"what the tool", b"what the tool returned, and more"])
def test_content_of_the_wrong_size_is_corrupt_whichever_part_is_read(
    storage: FileStorage, entry: Entry, changed: bytes
) -> None:
    save(storage, entry)
    content_path(storage, entry).write_bytes(changed)

    for start, length in [(0, 0), (0, 4), (5, 3), (22, 1), (0, 1_000)]:
        with pytest.raises(CorruptContent, match=f"has {len(changed)} bytes, and 22 were saved"):
            storage.load_range(entry.key, start=start, length=length)
    with pytest.raises(CorruptContent, match="were saved"):
        storage.load(entry.key)


def test_vanished_content_is_none_and_can_be_saved_again(storage: FileStorage, entry: Entry) -> None:
    save(storage, entry)
    content_path(storage, entry).unlink()
    assert storage.load(entry.key) is None
    assert storage.load_range(entry.key, start=0, length=0) is None

    save(storage, entry)

    check_holds(storage, entry, "after its content vanished and was saved again")


def test_an_entry_without_its_description_is_none_and_can_be_saved_again(storage: FileStorage, entry: Entry) -> None:
    save(storage, entry)
    entry_path(storage, entry).unlink()
    assert storage.load(entry.key) is None
    assert [listed.key for listed in storage.entries("")] == [entry.key], "deleting its scope must take it too"

    save(storage, entry)

    check_holds(storage, entry, "after its description vanished and was saved again")


@pytest.mark.parametrize(
    "damaged", [b"", b"{", b"[]", b"{}", b'{"content_type": "x", "size": "y", "metadata": {}}', b"\xff"]
)
def test_a_damaged_description_makes_content_corrupt(storage: FileStorage, entry: Entry, damaged: bytes) -> None:
    save(storage, entry)
    entry_path(storage, entry).write_bytes(damaged)

    with pytest.raises(CorruptContent, match="is damaged"):
        storage.load(entry.key)


def test_a_vanished_folder_is_created_again(root: Path, storage: FileStorage, entry: Entry) -> None:
    save(storage, entry)
    content_path(storage, entry).unlink()
    entry_path(storage, entry).unlink()
    content_path(storage, entry).parent.rmdir()
    (root / "v1").rmdir()
    root.rmdir()

    save(storage, entry)

    check_holds(storage, entry, "after the folder was made again")


def test_a_file_in_place_of_the_root_is_an_error_that_names_it(root: Path, storage: FileStorage, entry: Entry) -> None:
    root.write_text("not a folder")

    with pytest.raises(NotADirectoryError, match="not a folder but a link or a file") as raised:
        save(storage, entry)
    assert raised.value.filename == str(root)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Drop root's privileges for a while."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


@POSIX_ONLY
@pytest.mark.parametrize("mode", [0o000, 0o500])
def test_a_folder_without_permission_raises_the_systems_own_error(
    storage: FileStorage, entry: Entry, mode: int
) -> None:
    save(storage, entry)
    folder = content_path(storage, entry).parent
    attempts: list[Callable[[], object]] = [lambda: save(storage, make_entry(b"something else"))]
    if mode == 0:
        attempts += [lambda: storage.load(entry.key), lambda: storage.entries(""), lambda: storage.delete(entry.key)]
    folder.chmod(mode)
    try:
        for attempt in attempts:
            with unprivileged(), pytest.raises(PermissionError):
                attempt()
    finally:
        folder.chmod(0o700)
    check_holds(storage, entry, "after the folder could be used again")


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Callable[[], OSError]:
    """Return a function that makes the disk fail, and returns the error that the disk then raises."""
    error = OSError(errno.EIO, os.strerror(errno.EIO))

    def fail(*_: object, **__: object) -> None:
        raise error

    def refuse() -> OSError:
        for name in ("open", "scandir", "utime"):
            monkeypatch.setattr(os, name, fail)
        return error

    return refuse


@pytest.mark.parametrize("call", ["load", "entries", "delete", "save", "page", "sweep"])
def test_any_disk_error_passes_unchanged(
    monkeypatch: pytest.MonkeyPatch, storage: FileStorage, entry: Entry, refuse: Callable[[], OSError], call: str
) -> None:
    save(storage, entry)
    attempts: dict[str, Callable[[], object]] = {
        "load": lambda: storage.load(entry.key),
        "entries": lambda: storage.entries(""),
        "delete": lambda: storage.delete(entry.key),
        "save": lambda: save(storage, entry),
        "page": lambda: storage.page("", limit=1),
        "sweep": lambda: storage.sweep([entry.key], before=0.0),
    }

    error = refuse()
    with pytest.raises(OSError, match=os.strerror(errno.EIO)) as raised:
        attempts[call]()
    monkeypatch.undo()

    assert raised.value is error


@pytest.mark.parametrize("call", CALLS)
def test_any_disk_error_becomes_a_storage_error_of_the_offloader(
    monkeypatch: pytest.MonkeyPatch, root: Path, storage: FileStorage, refuse: Callable[[], OSError], call: str
) -> None:
    offloader = Offloader(storage)
    reference = stored(offloader)

    error = refuse()
    with pytest.raises(StorageError) as raised:
        CALLS[call](offloader, reference)
    monkeypatch.undo()

    assert raised.value.__cause__ is error
    words = f"(FileStorage) failed: OSError: [Errno {errno.EIO}] {os.strerror(errno.EIO)}, in {str(root)!r}"
    assert str(raised.value).endswith(words)


def test_a_result_that_cannot_be_saved_stays_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, root: Path, refuse: Callable[[], OSError]
) -> None:
    refuse()
    outcome = Offloader(FileStorage(root)).offload([BIG], tool_name="t")
    monkeypatch.undo()

    assert outcome == Kept(blocks=(BIG,), reason="storage failed")
    words = f"saving 100,000 bytes (FileStorage) failed: OSError: [Errno {errno.EIO}] {os.strerror(errno.EIO)}, in "
    assert f"{words}{str(root)!r}" in caplog.text


# Cost and durability.


def test_fsync_covers_content_and_file_names(monkeypatch: pytest.MonkeyPatch, root: Path, entry: Entry) -> None:
    waited: list[str] = []
    synced = os.fsync

    def note(descriptor: int) -> None:
        waited.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        synced(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    save(FileStorage(root / "fast"), entry)
    assert waited == []

    safe = FileStorage(root / "safe", fsync=True)
    save(safe, entry)
    made = waited[:1]
    assert made == ["folder"], "the new root has a name in its own folder"
    all_of_it = ["file", "file", "folder", "folder", "folder"]
    assert waited[1:] == all_of_it, "names last, up to the root"

    waited.clear()
    save(FileStorage(root / "fast", fsync=True), entry)
    assert waited == all_of_it, "another writer has saved it a moment ago, and has not waited"


@pytest.mark.parametrize("can", [True, False])
def test_fsync_asks_macos_to_flush_the_disks_own_cache(
    monkeypatch: pytest.MonkeyPatch, root: Path, entry: Entry, *, can: bool
) -> None:
    fcntl = pytest.importorskip("fcntl")
    asked: list[str] = []

    def call(_: int, command: int) -> None:
        assert command == 51
        asked.append("full")
        if not can:
            raise OSError(errno.ENOTSUP, "not on this filesystem")

    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", call)
    monkeypatch.setattr(os, "fsync", lambda _: asked.append("plain"))

    save(FileStorage(root, fsync=True), entry)

    once = ["full"] if can else ["full", "plain"]
    assert asked == once * (len(asked) // len(once))
    assert len(asked) // len(once) >= 5


def test_a_range_reads_only_its_own_bytes(storage: FileStorage) -> None:
    entry = make_entry(b"")
    save(storage, entry)
    path = content_path(storage, entry)
    with path.open("r+b") as file:
        file.truncate(20_000_000_000)  # a sparse file: reading all of it would take minutes and all memory
    described = json.loads(entry_path(storage, entry).read_bytes())
    entry_path(storage, entry).write_text(json.dumps({**described, "size": 20_000_000_000}))

    found = storage.load_range(entry.key, start=19_000_000_000, length=1_000)

    assert found is not None
    assert found.content == bytes(1_000)


def test_saving_and_reading_list_no_folder(monkeypatch: pytest.MonkeyPatch, storage: FileStorage, entry: Entry) -> None:
    save(storage, entry)

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(os, "scandir", refuse)  # its cost would grow with the number of entries
    monkeypatch.setattr(os, "listdir", refuse)

    save(storage, entry)
    save(storage, make_entry(b"another"))
    check_holds(storage, entry, "next to another")
    storage.load_range(entry.key, start=0, length=1)


@pytest.mark.parametrize("fsync", [False, True])
def test_saving_again_under_another_type_leaves_no_file_of_the_old_type(tmp_path: Path, *, fsync: bool) -> None:
    storage, entry = FileStorage(tmp_path, fsync=fsync), make_entry(b"[1]", content_type="text/plain")
    again = Entry(entry.key, entry.content, "application/json", entry.metadata)
    save(storage, entry)
    save(storage, again)

    check_holds(storage, again, "after a save under another type")
    names = sorted(path.name.partition(".")[2] for path in tmp_path.rglob(f"{entry.key.partition('/')[2]}*"))
    assert names == ["entry.json", "json"]


def test_saving_again_writes_nothing(monkeypatch: pytest.MonkeyPatch, storage: FileStorage, entry: Entry) -> None:
    save(storage, entry)
    before = content_path(storage, entry).stat().st_ino, entry_path(storage, entry).stat().st_ino

    def refuse(*_: object) -> int:
        raise AssertionError

    monkeypatch.setattr(os, "write", refuse)
    save(storage, entry)

    assert (content_path(storage, entry).stat().st_ino, entry_path(storage, entry).stat().st_ino) == before


def test_everything_can_be_read_after_a_restart(root: Path) -> None:
    entries = [make_entry(noise(500, seed=number), scope=f"scope {number % 3}") for number in range(30)]
    for entry in entries:
        save(FileStorage(root), entry)

    restarted = FileStorage(root)

    assert {listed.key for listed in restarted.entries("")} == {entry.key for entry in entries}
    for entry in entries:
        assert load(restarted, entry).content == entry.content


def test_a_damaged_description_is_replaced_by_the_next_save_of_its_content(tmp_path: Path) -> None:
    offloader = Offloader(FileStorage(tmp_path))
    content = [TextBlock("word " * 20_000)]
    reference = str(offloader.offload(content, tool_name="t").references[0])
    (description,) = tmp_path.glob("v1/*/*.entry.json")
    description.write_bytes(b"")

    assert isinstance(offloader.offload(content, tool_name="t"), Offloaded)
    assert offloader.load(reference).text == content[0].text


def test_a_storage_exposes_its_root_and_fsync(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path / "artifacts", fsync=True)

    assert (storage.root, storage.fsync) == (tmp_path / "artifacts", True)


def test_reading_does_not_refresh_if_that_is_turned_off(storage: FileStorage, root: Path, entry: Entry) -> None:
    save(storage, entry)
    path = storage.local_path(entry.key, content_type=entry.content_type)
    looking = FileStorage(root, refresh_on_read=False)

    os.utime(path, (1_000, 1_000))
    looking.load(entry.key)
    looking.load_range(entry.key, start=0, length=1)
    assert path.stat().st_mtime == 1_000
    save(looking, entry)
    assert path.stat().st_mtime > 1_000
    os.utime(path, (1_000, 1_000))
    storage.load_range(entry.key, start=0, length=1)
    assert path.stat().st_mtime > 1_000
