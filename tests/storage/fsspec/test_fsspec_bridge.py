"""FsspecBridge: the contract on a local disk, in memory and on a real S3 server, and what only this bridge does."""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import fsspec
import pytest
from fsspec import AbstractFileSystem
from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper
from fsspec.implementations.cached import CachingFileSystem, SimpleCacheFileSystem
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from s3fs import S3FileSystem

from coatcheck import (
    CorruptContent,
    InvalidRequest,
    Kept,
    Offloaded,
    Offloader,
    ReferenceExpired,
    ReferenceNotFound,
    StorageError,
    TextBlock,
)
from coatcheck.storage import FsspecBridge, fsspec_bridge
from coatcheck.storage.fsspec_bridge import HEAD_BYTES
from coatcheck.testing import DeletesContract, ListsContract, ListsPagesContract, ReadsRangesContract, StorageContract
from coatcheck.testing.samples import Entry, make_entry, noise, numbered_lines
from coatcheck.testing.storage import check_holds, save
from coatcheck_langchain import OffloadMiddleware
from tests.adapters.langgraph.agents import agent_of, answers, call, question, read, reference_in, say, thread
from tests.storage.aging import Aging, Clock
from tests.storage.offloader_calls import CALLS, stored
from tests.storage.seaweed import BUCKET, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from coatcheck import Listed

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

NUMBERS = count()
FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
BIG = TextBlock(numbered_lines(3_000))


class Contract(Aging, StorageContract, ReadsRangesContract, DeletesContract, ListsContract, ListsPagesContract):
    """The contracts that the bridge must keep. Subclasses choose the filesystem."""


def s3_filesystem(server: Server, **options: Any) -> S3FileSystem:  # noqa: ANN401 - whatever s3fs takes
    return S3FileSystem(key="any", secret="any", endpoint_url=server.endpoint, **options)  # noqa: S106 - no secret


class TestLocalFilesystem(Contract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> FsspecBridge:
        self.clock = Clock()
        return FsspecBridge(LocalFileSystem(), str(tmp_path / "artifacts"), clock=self.clock)


@pytest.mark.no_cover
class TestMemoryFilesystem(Contract):
    @pytest.fixture
    def storage(self) -> FsspecBridge:
        self.clock = Clock()
        return FsspecBridge(MemoryFileSystem(), f"/test-{next(NUMBERS)}", clock=self.clock)


@pytest.mark.no_cover
class TestS3Filesystem(Contract):
    @pytest.fixture
    def storage(self, server: Server) -> FsspecBridge:
        self.clock = Clock()
        return FsspecBridge(s3_filesystem(server), f"{BUCKET}/fsspec-{next(NUMBERS)}", clock=self.clock)


@pytest.fixture(params=["local", "memory", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> FsspecBridge:
    """Return the bridge on each kind of filesystem: one that renames, one that does not, an async remote one."""
    if request.param == "local":
        return FsspecBridge(LocalFileSystem(), str(tmp_path / "artifacts"))
    if request.param == "memory":
        return FsspecBridge(MemoryFileSystem(), f"/test-{next(NUMBERS)}")
    return FsspecBridge(s3_filesystem(request.getfixturevalue("server")), f"{BUCKET}/fsspec-{next(NUMBERS)}")


@pytest.fixture
def local(tmp_path: Path) -> FsspecBridge:
    return FsspecBridge(LocalFileSystem(), str(tmp_path / "artifacts"))


@pytest.fixture
def entry() -> Entry:
    return make_entry(b"what the tool returned", lines="1")


def path_of(storage: FsspecBridge, entry: Entry) -> str:
    return storage._path(entry.key)


# What is written.


def test_the_file_holds_the_raw_content_after_a_fixed_length_head(local: FsspecBridge, tmp_path: Path) -> None:
    entry = make_entry(noise(10_000), content_type="image/png")
    save(local, entry)

    file = tmp_path / "artifacts/v1" / entry.key
    assert file.read_bytes()[HEAD_BYTES:] == entry.content
    assert sorted(path for path in (tmp_path / "artifacts").rglob("*") if path.is_file()) == [file]


def test_a_filesystem_inside_another_works_too(tmp_path: Path, entry: Entry) -> None:
    storage = FsspecBridge(DirFileSystem(str(tmp_path), fs=LocalFileSystem()), "artifacts")
    save(storage, entry)

    check_holds(storage, entry, "in a folder of another filesystem")
    assert (tmp_path / "artifacts/v1" / entry.key).is_file()


def test_a_url_yields_a_filesystem_and_a_folder(tmp_path: Path, entry: Entry) -> None:
    storage = FsspecBridge(*fsspec.url_to_fs(f"file://{tmp_path}/artifacts/"))
    save(storage, entry)

    assert (tmp_path / "artifacts/v1" / entry.key).is_file()


def test_metadata_too_long_for_the_head_is_refused(storage: FsspecBridge) -> None:
    with pytest.raises(StorageError, match="type and metadata take"):
        save(storage, make_entry(b"x", note="x" * HEAD_BYTES))

    assert storage.entries("") == []


def test_other_files_are_left_alone(local: FsspecBridge, tmp_path: Path, entry: Entry) -> None:
    save(local, entry)
    scope = entry.key.partition("/")[0]
    strangers = ["notes", "v1/README", f"v1/{scope}/notes", f"v1/{scope}/{'A' * 16}", "v1/elsewhere/" + "0" * 16]
    for name in strangers:
        path = tmp_path / "artifacts" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")

    assert [listed.key for listed in local.entries("")] == [entry.key]
    assert Offloader(local).delete_scope("contract") == 1
    assert all((tmp_path / "artifacts" / name).read_text() == "mine" for name in strangers)


# Whole or not at all.


class Breaks(LocalFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Fails in the middle of a write, or when a file is renamed to its final name."""

    def __init__(self, breaks: str) -> None:
        super().__init__()
        self.breaks = breaks

    def pipe_file(self, path: str, value: bytes, **options: Any) -> None:  # noqa: ANN401 - fsspec's own
        if self.breaks == "half":
            super().pipe_file(path, value[: len(value) // 2], **options)
            message = "the line went dead"
            raise OSError(message)
        super().pipe_file(path, value, **options)

    def mv(self, path1: str, path2: str, **options: Any) -> None:  # noqa: ANN401 - fsspec's own
        if self.breaks == "name":
            message = "the line went dead"
            raise OSError(message)
        super().mv(path1, path2, **options)

    def rm_file(self, path: str) -> None:
        if self.breaks == "killed":
            return
        super().rm_file(path)


@pytest.mark.parametrize("breaks", ["half", "name"])
def test_a_save_that_breaks_off_keeps_the_old_entry_and_leaves_nothing_else(
    local: FsspecBridge, tmp_path: Path, entry: Entry, breaks: str
) -> None:
    save(local, entry)
    breaking = FsspecBridge(Breaks(breaks), str(tmp_path / "artifacts"))
    for each in (entry, make_entry(noise(10_000))):
        with pytest.raises(OSError, match="the line went dead"):
            save(breaking, each)

    check_holds(local, entry, "after a save that broke off")
    assert [listed.key for listed in local.entries("")] == [entry.key]


class Dies(LocalFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Kills its process in the middle of a write."""

    def pipe_file(self, path: str, value: bytes, **options: Any) -> None:  # noqa: ANN401 - fsspec's own
        super().pipe_file(path, value[: len(value) // 2], **options)
        os.kill(os.getpid(), signal.SIGKILL)


@FORKS
def test_files_of_a_killed_writer_are_not_content_and_a_sweep_or_deletion_removes_them(
    local: FsspecBridge, tmp_path: Path, entry: Entry
) -> None:
    never_saved = make_entry(noise(100_000))
    for scope_is_deleted in (True, False):
        save(local, entry)
        child = os.fork()
        if child == 0:
            save(FsspecBridge(Dies(), str(tmp_path / "artifacts")), never_saved)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
        [left] = [listed for listed in local.entries("") if listed.key != entry.key]
        assert local.load(never_saved.key) is None
        offloader = Offloader(local)
        assert offloader.sweep(max_age_seconds=0) == 0, "what is younger than an hour stays"
        if scope_is_deleted:
            assert offloader.delete_scope("contract") == 1, "what was never saved whole is no content"
            assert local.entries("") == []
        else:
            file = tmp_path / "artifacts/v1" / left.key
            file.rename(file.with_name(f"{int(left.modified) - 7_200:08x}{file.name[8:]}"))  # two hours ago
            assert offloader.sweep(max_age_seconds=3_600) == 1
            assert [listed.key for listed in local.entries("")] == [entry.key]


# Damage.


@pytest.mark.parametrize("kept", [0, 1, 100, HEAD_BYTES - 1, HEAD_BYTES, HEAD_BYTES + 5])
def test_a_truncated_file_is_corrupt_but_listed_and_a_save_repairs_it(
    local: FsspecBridge, tmp_path: Path, entry: Entry, kept: int
) -> None:
    save(local, entry)
    file = tmp_path / "artifacts/v1" / entry.key
    file.write_bytes(file.read_bytes()[:kept])

    with pytest.raises(CorruptContent):
        local.load(entry.key)
    with pytest.raises(CorruptContent):
        local.load_range(entry.key, start=0, length=1_000)
    assert [listed.key for listed in local.entries("")] == [entry.key]
    save(local, entry)
    check_holds(local, entry, "after a damaged file was saved again")


@pytest.mark.parametrize(
    "head", [b"\0\0", b"\xff\xff{", b"\0\x02{}", b"\0\x04null", b"\0\x0atext/plain" + b"x" * 9_000]
)
def test_a_file_with_a_foreign_head_is_corrupt(local: FsspecBridge, tmp_path: Path, entry: Entry, head: bytes) -> None:
    save(local, entry)
    (tmp_path / "artifacts/v1" / entry.key).write_bytes(head)

    with pytest.raises(CorruptContent):
        local.load_range(entry.key, start=0, length=1)


def test_a_file_with_a_damaged_head_is_listed_as_old_and_deleted_with_its_scope(
    local: FsspecBridge, tmp_path: Path, entry: Entry
) -> None:
    save(local, entry)
    file = tmp_path / "artifacts/v1" / entry.key
    file.write_bytes(b"\0" * HEAD_BYTES + entry.content)

    [listed] = local.entries("")
    assert (listed.key, listed.size, listed.modified) == (entry.key, len(entry.content), 0.0)
    assert Offloader(local).delete_scope("contract") == 1
    assert not file.exists()


class Vanishes(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Loses a file between the first and the second look, as if somebody deleted it meanwhile."""

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:  # noqa: ANN401 - fsspec's own
        found: bytes = super().cat_file(path, start=start, end=end, **options)
        self.rm_file(path)
        return found

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:  # noqa: ANN401 - fsspec's own
        found = super().ls(path, detail=detail, **options)
        for info in found:
            if info["type"] == "file":
                self.rm_file(info["name"])
        return found


def test_an_entry_deleted_during_a_read_or_a_listing_counts_as_missing(entry: Entry) -> None:
    folder = f"/test-{next(NUMBERS)}"
    vanishing = FsspecBridge(Vanishes(), folder)
    for look in (
        lambda: vanishing.load_range(entry.key, start=0, length=5),
        lambda: vanishing.entries("") or None,
    ):
        save(FsspecBridge(MemoryFileSystem(), folder), entry)
        assert look() is None


# What goes wrong.


class Fails(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A store whose keys have expired."""

    def _refuse(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - stands for any method
        message = "the credentials have expired"
        raise PermissionError(message)

    cat_file = pipe_file = ls = rm_file = _refuse


def test_a_file_that_cannot_be_read_fails_the_listing_instead_of_being_left_out(
    local: FsspecBridge, entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(local, entry)
    monkeypatch.setattr(LocalFileSystem, "cat_file", Fails.cat_file)

    with pytest.raises(PermissionError, match="the credentials have expired"):
        local.entries("")


def test_the_errors_of_a_filesystem_pass_unchanged(entry: Entry) -> None:
    storage = FsspecBridge(Fails(), "/fails")
    attempts: tuple[Callable[[], object], ...] = (
        lambda: save(storage, entry),
        lambda: storage.load(entry.key),
        lambda: storage.load_range(entry.key, start=0, length=1),
        lambda: storage.delete(entry.key),
        lambda: storage.entries(""),
        lambda: storage.page("", limit=1),
    )
    for attempt in attempts:
        with pytest.raises(PermissionError, match="the credentials have expired"):
            attempt()


@pytest.mark.parametrize("call", CALLS)
def test_a_filesystem_error_becomes_a_storage_error_of_the_offloader(call: str) -> None:
    folder = f"/test-{next(NUMBERS)}"
    reference = stored(Offloader(FsspecBridge(MemoryFileSystem(), folder)))

    with pytest.raises(
        StorageError, match=r"\(FsspecBridge\) failed: PermissionError, in FsspecBridge\(Fails"
    ) as raised:
        CALLS[call](Offloader(FsspecBridge(Fails(), folder)), reference)

    assert str(raised.value.__cause__) == "the credentials have expired"


def test_a_result_that_a_filesystem_refuses_stays_and_the_log_says_why(caplog: pytest.LogCaptureFixture) -> None:
    outcome = Offloader(FsspecBridge(Fails(), "/fails")).offload([BIG], tool_name="t")

    assert outcome == Kept(blocks=(BIG,), reason="storage failed")
    assert (
        f"saving {len(BIG.text):,} bytes (FsspecBridge) failed: PermissionError, in FsspecBridge(Fails, '/fails')\n"
        in caplog.text
    )


@pytest.mark.parametrize("given", [None, "memory", MemoryFileSystem, object()])
def test_an_object_that_is_not_a_filesystem_is_refused(given: Any) -> None:  # noqa: ANN401 - whatever a user passes
    with pytest.raises(InvalidRequest, match="needs an fsspec filesystem"):
        FsspecBridge(given, "folder")


def test_a_filesystem_bound_to_the_callers_event_loop_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="without asynchronous=True"):
        FsspecBridge(S3FileSystem(asynchronous=True), BUCKET)


@pytest.mark.parametrize(
    "filesystem",
    [CachingFileSystem(fs=LocalFileSystem()), AsyncFileSystemWrapper(LocalFileSystem(), asynchronous=False)],
    ids=["caching", "async wrapper"],
)
def test_a_filesystem_that_shows_half_written_files_is_refused(filesystem: AbstractFileSystem) -> None:
    with pytest.raises(InvalidRequest, match="neither renames files nor puts them whole"):
        FsspecBridge(filesystem, "folder")


def test_a_filesystem_that_keeps_copies_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="survive a deletion"):
        FsspecBridge(SimpleCacheFileSystem(fs=MemoryFileSystem()), "folder")


@pytest.mark.parametrize("mode", ["w", "a"])
def test_an_archive_is_refused(tmp_path: Path, mode: str) -> None:
    ZipFile(tmp_path / "some.zip", "w").close()
    archive = fsspec.filesystem("zip", fo=str(tmp_path / "some.zip"), mode=mode)

    for filesystem in (archive, DirFileSystem("agents", fs=archive)):
        with pytest.raises(InvalidRequest, match="ZipFileSystem keeps files in an archive"):
            FsspecBridge(filesystem, "folder")


class OpensOnly(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Opens files for writing, but can neither rename a file nor put it in one step."""

    mv = AbstractFileSystem.mv
    pipe_file = AbstractFileSystem.pipe_file


@pytest.mark.parametrize(
    ("behind", "reason"),
    [
        (SimpleCacheFileSystem(fs=MemoryFileSystem()), "SimpleCacheFileSystem keeps copies that survive a deletion"),
        (OpensOnly(), "OpensOnly neither renames files nor puts them whole"),
    ],
    ids=["keeps copies", "shows half a file"],
)
def test_a_filesystem_is_refused_inside_another_one_too(behind: AbstractFileSystem, reason: str) -> None:
    for filesystem in (DirFileSystem("/agents", fs=behind), DirFileSystem("/a", fs=DirFileSystem("/b", fs=behind))):
        with pytest.raises(InvalidRequest, match=reason):
            FsspecBridge(filesystem, "folder")


@pytest.mark.parametrize("folder", ["", None, b"folder", 5])
def test_a_folder_that_is_empty_or_not_a_string_is_refused(folder: Any) -> None:  # noqa: ANN401 - whatever a user passes
    with pytest.raises(InvalidRequest, match="needs a folder"):
        FsspecBridge(MemoryFileSystem(), folder)


def test_without_fsspec_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)

    with pytest.raises(ImportError, match=r"checkout\[fsspec\]"):
        FsspecBridge(MemoryFileSystem(), "folder")


# Scopes and expiry.


def test_a_miss_is_unknown_or_expired_even_after_a_restart(storage: FsspecBridge) -> None:
    reference = str(Offloader(storage).offload([BIG], tool_name="t", scope="mine").references[0])
    again = Offloader(FsspecBridge(storage._given, storage._folder.removesuffix("/v1")))

    assert again.load(reference, scope="mine").text == BIG.text
    with pytest.raises(ReferenceNotFound) as unknown:
        again.load(reference, scope="yours")
    assert not isinstance(unknown.value, ReferenceExpired)
    assert again.delete_scope("mine") == 1
    with pytest.raises(ReferenceExpired):
        Offloader(storage).load(reference, scope="mine")


def test_a_sweep_removes_old_entries_and_spares_what_was_saved_again(tmp_path: Path) -> None:
    clock = Clock()
    storage = FsspecBridge(LocalFileSystem(), str(tmp_path), clock=clock)
    old, again = make_entry(b"old"), make_entry(b"saved again")
    for entry in (old, again):
        save(storage, entry)
    clock.now = 10.0**10  # in the future, so that it is younger than an hour
    save(storage, again)

    assert Offloader(storage).sweep(max_age_seconds=0) == 1
    assert storage.load(old.key) is None
    check_holds(storage, again, "after a sweep")


class Counts(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Counts how often a folder is listed, and how many heads are read."""

    listings = 0
    heads = 0

    def cat_ranges(self, paths: list[str], *arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - fsspec's own
        Counts.heads += len(paths)
        return super().cat_ranges(paths, *arguments, **options)

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:  # noqa: ANN401 - fsspec's own
        Counts.listings += 1
        return super().ls(path, detail=detail, **options)


def test_a_sweep_lists_each_folder_once_however_much_it_deletes() -> None:
    storage = FsspecBridge(Counts(), f"/test-{next(NUMBERS)}", clock=Clock())
    for number in range(30):
        save(storage, make_entry(f"{number}".encode()))
    before = Counts.listings

    assert Offloader(storage).sweep(max_age_seconds=3_600) == 30
    assert Counts.listings - before == 2, "once for the scopes, once for the one that there is"


def test_a_page_lists_once_and_reads_a_bounded_number_of_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsspec_bridge, "HEADS_AT_ONCE", 10)
    storage, saved = FsspecBridge(Counts(), f"/test-{next(NUMBERS)}", clock=Clock()), set()
    for number in range(25):
        entry = make_entry(f"{number}".encode())
        save(storage, entry)
        saved.add(entry.key)
    scope = entry.key.partition("/")[0] + "/"
    pages: list[tuple[Listed, ...]] = []
    after: str | None = None
    while after is not None or not pages:
        listings, heads = Counts.listings, Counts.heads
        page = storage.page(scope, limit=4, after=after)
        assert (Counts.listings - listings, Counts.heads - heads <= 10) == (1, True)
        pages, after = [*pages, page.entries], page.after

    assert [len(page) for page in pages] == [4, 4, 2, 4, 4, 2, 4, 1]
    assert {entry.key for page in pages for entry in page} == saved


def test_a_full_key_lists_its_entry_and_its_line_index(storage: FsspecBridge, entry: Entry) -> None:
    index = Entry(f"{entry.key}-lines", b"index", "application/json", {"sha256": "1" * 64})
    other = make_entry(b"other")
    for each in (entry, index, other):
        save(storage, each)
    whole = {listed.key: listed for listed in storage.entries("")}

    for prefix, keys in [(entry.key, {entry.key, index.key}), (index.key, {index.key}), (other.key, {other.key})]:
        assert {listed.key: listed for listed in storage.entries(prefix)} == {key: whole[key] for key in keys}
    assert storage.entries(make_entry(b"never saved").key) == []


def test_an_emptied_scope_lists_nothing(storage: FsspecBridge, entry: Entry) -> None:
    # An S3 server may keep the folder, and list it as a file inside itself.
    save(storage, entry)
    storage.delete(entry.key)

    assert storage.entries(f"{entry.key.partition('/')[0]}/") == []
    assert storage.entries("") == []


def test_a_listing_of_more_than_one_batch_is_complete(storage: FsspecBridge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coatcheck.storage.fsspec_bridge.HEADS_AT_ONCE", 3)
    saved = [make_entry(noise(10, seed=seed), scope=f"scope {seed % 2}") for seed in range(7)]
    for entry in saved:
        save(storage, entry)

    assert {listed.key for listed in storage.entries("")} == {entry.key for entry in saved}


def test_a_listing_sees_what_other_processes_did(server: Server) -> None:
    folder = f"{BUCKET}/fsspec-{next(NUMBERS)}"
    one, other = (
        FsspecBridge(s3_filesystem(server, listings_expiry_time=1_000.0 + number), folder) for number in range(2)
    )
    first, second = make_entry(b"first"), make_entry(b"second")
    save(one, first)
    assert len(one.entries("")) == 1
    save(other, second)
    assert len(one.entries("")) == 2
    other.delete(first.key)
    assert [listed.key for listed in one.entries("")] == [second.key]


# Threads, loops and processes.


async def test_many_concurrent_results_of_an_async_agent_do_not_deadlock(storage: FsspecBridge) -> None:
    offloader = Offloader(storage)
    texts = [numbered_lines(1_000, first=1 + number) for number in range(64)]

    async def offload(text: str) -> str:
        outcome = await offloader.aoffload([TextBlock(text)], tool_name="t")
        assert isinstance(outcome, Offloaded)
        return (await offloader.aload(str(outcome.references[0]))).text

    assert await asyncio.wait_for(asyncio.gather(*map(offload, texts)), 60) == texts


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
async def test_an_agent_offloads_to_s3_and_reads_back(server: Server, is_async: bool) -> None:
    storage = FsspecBridge(s3_filesystem(server), f"{BUCKET}/fsspec-{next(NUMBERS)}")

    def fetch() -> str:
        """Fetch a large report."""
        return BIG.text

    turns = (call(("fetch", {})), read(line_range="7-7"), say())
    agent, model = agent_of([fetch], *turns, middleware=[OffloadMiddleware(storage)])
    if is_async:
        await agent.ainvoke(question(), thread("mine"))
    else:
        await asyncio.to_thread(agent.invoke, question(), thread("mine"))

    assert "line 7 of" in answers(model.seen[-1])[-1].text
    reference = reference_in(model.seen[-1])
    assert (await Offloader(storage).aload(reference, scope="mine")).text == BIG.text


async def test_the_sync_methods_work_on_a_thread_that_runs_an_event_loop(storage: FsspecBridge) -> None:
    offloader = Offloader(storage)
    reference = str(offloader.offload([BIG], tool_name="t").references[0])

    assert offloader.load(reference).text == BIG.text


def test_each_thread_has_an_instance_of_its_own_if_fsspec_keeps_instances(local: FsspecBridge) -> None:
    found: list[Any] = []

    def find() -> None:
        with local._filesystem() as filesystem:
            found.append(filesystem)

    thread = threading.Thread(target=find)
    thread.start()
    thread.join()
    find()
    find()

    assert found[0] is not found[1]
    assert found[1] is found[2]


class OwnMemory(MemoryFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Holds its files in the instance, so fsspec must not replace one instance by another."""

    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.store: dict[str, Any] = {}
        self.pseudo_dirs = [""]
        self.is_used = threading.Lock()

    def pipe_file(self, path: str, value: bytes, **options: Any) -> None:  # noqa: ANN401 - fsspec's own
        assert self.is_used.acquire(blocking=False), "another thread is here"
        super().pipe_file(path, value, **options)
        self.is_used.release()


class KeptMemory(OwnMemory):
    """Stays out of fsspec's cache only if it is made with ``skip_instance_cache=True``."""

    cachable = True


ONLY_ONE = partial(KeptMemory, skip_instance_cache=True)  # type: ignore[call-arg]  # its metaclass takes the argument


@pytest.mark.parametrize("is_within", [False, True], ids=["alone", "within another"])
@pytest.mark.parametrize("make", [OwnMemory, ONLY_ONE], ids=["class", "instance"])
def test_a_filesystem_outside_fsspecs_cache_is_used_as_given(
    entry: Entry, make: Callable[[], OwnMemory], is_within: bool
) -> None:
    own = make()
    storage = FsspecBridge(DirFileSystem("/agents", fs=own) if is_within else own, "folder")
    others = [make_entry(f"{number}".encode()) for number in range(50)]
    save(storage, entry)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda other: save(storage, other), others))

    for each in (entry, *others):
        check_holds(copy.deepcopy(storage), each, "in what was given")
    assert len(own.find("/")) == 51


def test_threads_share_an_async_filesystem_outside_fsspecs_cache_without_waiting(server: Server) -> None:
    storage = FsspecBridge(s3_filesystem(server, skip_instance_cache=True), BUCKET)
    with storage._filesystem():
        assert not storage._lock.held.locked()


class OwnS3(S3FileSystem):  # type: ignore[misc]  # fsspec has no types
    """Has a connection of its own."""

    cachable = False


@FORKS
def test_a_forked_child_makes_its_own_filesystem_if_fsspec_caches_none(server: Server, entry: Entry) -> None:
    filesystem = OwnS3(key="any", secret="any", endpoint_url=server.endpoint)  # noqa: S106 - no secret
    storage = FsspecBridge(filesystem, f"{BUCKET}/fsspec-{next(NUMBERS)}")
    save(storage, entry)
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends a child that waits for a loop that only its parent runs
        found = storage.load(entry.key)
        os._exit(0 if found is not None and found.content == entry.content else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    check_holds(storage, entry, "after a child read it")


class Connected(LocalFileSystem):  # type: ignore[misc]  # fsspec has no types
    """Belongs to the process that made it, as a connection does."""

    def __init__(self, host: str, **options: Any) -> None:  # noqa: ANN401 - fsspec's own
        super().__init__(**options)
        self.made_in = os.getpid()


@FORKS
@pytest.mark.parametrize("made_later", [[], ["another"]], ids=["the only one", "one of several"])
def test_a_child_that_makes_the_bridge_does_not_use_its_parents_filesystem(
    tmp_path: Path, made_later: list[str]
) -> None:
    filesystem = Connected("one", auto_mkdir=True)
    for host in made_later:
        Connected(host)
    child = os.fork()
    if child == 0:
        with FsspecBridge(filesystem, str(tmp_path))._filesystem() as used:
            os._exit(0 if used.made_in == os.getpid() else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@FORKS
def test_a_child_that_makes_the_bridge_shares_one_filesystem_between_threads(server: Server) -> None:
    filesystem = s3_filesystem(server)
    child = os.fork()
    if child == 0:
        S3FileSystem(anon=True)
        storage = FsspecBridge(filesystem, BUCKET)
        with storage._filesystem():
            os._exit(1 if storage._lock.held.locked() else 0)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_do_not_wait_for_each_other_after_fsspecs_cache_was_cleared(tmp_path: Path) -> None:
    filesystem = LocalFileSystem()
    LocalFileSystem.clear_instance_cache()
    storage = FsspecBridge(filesystem, str(tmp_path))

    with storage._filesystem():
        assert not storage._lock.held.locked()


def test_a_pickled_bridge_works_after_unpickling(local: FsspecBridge, entry: Entry) -> None:
    save(local, entry)

    check_holds(pickle.loads(pickle.dumps(local)), entry, "after it was pickled")  # noqa: S301 - our own


@FORKS
def test_a_forked_child_reads_and_saves(storage: FsspecBridge, entry: Entry) -> None:
    save(storage, entry)
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends a child that waits for a loop that only its parent runs
        if not isinstance(storage._given, MemoryFileSystem):
            save(storage, make_entry(b"from the child"))
        found = storage.load(entry.key)
        os._exit(0 if found is not None and found.content == entry.content else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    check_holds(storage, entry, "after a child read it")


PROCESS = """
import sys
from s3fs import S3FileSystem
from coatcheck import Offloader, TextBlock
from coatcheck.storage import FsspecBridge, fsspec_bridge
from coatcheck.testing.samples import numbered_lines

storage = FsspecBridge(S3FileSystem(key="any", secret="any", endpoint_url=sys.argv[1]), sys.argv[2])
print(Offloader(storage).offload([TextBlock(numbered_lines(3_000))], tool_name="t", scope="shared").references[0])
"""


def test_two_processes_share_a_bucket(server: Server) -> None:
    folder = f"{BUCKET}/fsspec-{next(NUMBERS)}"
    command = [sys.executable, "-c", PROCESS, server.endpoint, folder]
    reference = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    here = Offloader(FsspecBridge(s3_filesystem(server), folder))

    assert here.load(reference, scope="shared").text == BIG.text
    assert "line 2,999 of 3,000" in here.retrieve(reference, scope="shared", line_range="2999-2999").text


@pytest.fixture(autouse=True, scope="module")
def _no_connection_stays_open() -> Iterator[None]:
    yield
    S3FileSystem.clear_instance_cache()
