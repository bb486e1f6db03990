"""The three storages that the adapter exports: as storages of coatcheck, and in the shape of Strands' own offloader."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest
from strands.vended_plugins import context_offloader as theirs

from coatcheck import CorruptContent, NamesReferences, Offloader, Storage, StorageError, TextBlock, scope
from coatcheck.testing import (
    DeletesContract,
    ListsContract,
    ListsPagesContract,
    LocalPathContract,
    ReadsRangesContract,
    StorageContract,
    SweepsContract,
)
from coatcheck.testing.samples import make_entry
from coatcheck.testing.storage import save
from coatcheck_strands import ContextOffloader, FileStorage, InMemoryStorage
from coatcheck_strands.compat.sandbox import SandboxFileStorage
from tests.adapters.strands.agents import BIG, agent, call, reading, references, results, run, text_of
from tests.adapters.strands.sandboxes import FolderSandbox

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from coatcheck import Stored


class TestInMemoryStorage(
    StorageContract, ReadsRangesContract, DeletesContract, ListsContract, ListsPagesContract, SweepsContract
):
    @pytest.fixture
    def storage(self) -> InMemoryStorage:
        return InMemoryStorage()


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
        made: FileStorage = FileStorage(str(tmp_path))
        return made

    def make_older(self, storage: Storage, key: str) -> bool:
        assert isinstance(storage, FileStorage)
        os.utime(storage.local_path(key, content_type="text/plain"), (1_000, 1_000))
        return True


class TestSandboxFileStorage(StorageContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> SandboxFileStorage:
        return SandboxFileStorage("artifacts", sandbox=FolderSandbox(tmp_path))


# The shape of Strands' own offloader storages.


def files(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern))


def in_memory(tmp_path: Path) -> Any:  # noqa: ANN401
    return InMemoryStorage()


def on_files(tmp_path: Path) -> Any:  # noqa: ANN401
    return FileStorage(str(tmp_path))


def in_a_sandbox(tmp_path: Path) -> Any:  # noqa: ANN401
    return FileStorage("artifacts", sandbox=FolderSandbox(tmp_path))


@pytest.fixture(params=[in_memory, on_files, in_a_sandbox])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Any]:
    """Return a function that makes a storage, and makes it again as after a restart."""
    return lambda: request.param(tmp_path)


@pytest.mark.parametrize("content", [b"", b"text\r\n\0\xff", b"x" * 2_000_000], ids=len)
async def test_what_was_stored_is_retrieved(made: Callable[[], Any], content: bytes) -> None:
    storage = made()

    reference = await storage.store("call_1_0", content, "application/pdf")

    assert await storage.retrieve(reference) == (content, "application/pdf")


async def test_the_type_is_text_unless_said_otherwise(made: Callable[[], Any]) -> None:
    storage = made()

    assert (await storage.retrieve(await storage.store("key", b"x")))[1] == "text/plain"


async def test_equal_content_under_two_keys_is_two_entries(made: Callable[[], Any]) -> None:
    storage = made()

    assert await storage.store("one", b"x") != await storage.store("two", b"x")
    assert await storage.store("one", b"x") == await storage.store("one", b"x")


@pytest.mark.parametrize("key", ["../../x", "a/b\\c", "n" * 1_400, "", "ü \n", "\ud800"], ids=ascii)
async def test_no_key_becomes_a_path(made: Callable[[], Any], key: str, tmp_path: Path) -> None:
    storage = made()

    reference = await storage.store(key, b"content")

    assert await storage.retrieve(reference) == (b"content", "text/plain")
    assert "/" not in reference
    assert not (tmp_path.parent / "x").exists()


@pytest.mark.parametrize(
    "reference",
    ["nowhere", "", "../secret.txt", "/etc/passwd", ".metadata.json", "v1", "x_" + "0" * 16, "a\0b", "secret.txt"],
    ids=ascii,
)
async def test_a_reference_that_leads_nowhere_is_a_key_error(
    made: Callable[[], Any], reference: str, tmp_path: Path
) -> None:
    for folder in (tmp_path, tmp_path / "artifacts", tmp_path.parent):
        folder.mkdir(exist_ok=True)
        (folder / "secret.txt").write_text("secret")
    (tmp_path / ".metadata.json").write_text("{}")

    with pytest.raises(KeyError, match="Reference not found"):
        await made().retrieve(reference)


async def test_strands_own_offloader_can_use_our_storages(made: Callable[[], Any]) -> None:
    subject = agent(theirs.ContextOffloader(made()), turns=(call(), reading(pattern="^line 1,234 of")))

    await subject.invoke_async("go")

    assert "> 1234| line 1,234 of 2,000" in text_of(results(subject)[-1])


async def test_our_storages_take_keys_and_do_not_name_their_references(made: Callable[[], Any]) -> None:
    assert isinstance(made(), Storage)
    assert not isinstance(made(), NamesReferences)


async def test_clear_empties_the_memory() -> None:
    storage = InMemoryStorage()
    reference = await storage.store("key", b"x")

    storage.clear()

    with pytest.raises(KeyError):
        await storage.retrieve(reference)


@pytest.mark.parametrize("is_scoped", [False, True])
async def test_an_error_of_the_disk_is_raised_as_it_is(tmp_path: Path, *, is_scoped: bool) -> None:
    (tmp_path / "file").write_text("no folder")
    storage: FileStorage = FileStorage(str(tmp_path / "file"))

    with scope("mine") if is_scoped else nullcontext():
        with pytest.raises(NotADirectoryError):
            await storage.store("key", b"x")
        with pytest.raises(NotADirectoryError):
            await storage.retrieve("key_0123456789abcdef.txt")


class OutOfReach(StorageError):
    """The error that a host's own storage raises."""


class HostsStorage(FileStorage):
    def load(self, key: str) -> Stored | None:
        raise OutOfReach(key) from ConnectionError(key)

    load_range = load  # type: ignore[assignment]


async def test_the_error_of_a_hosts_own_storage_is_raised_as_it_is(tmp_path: Path) -> None:
    storage = HostsStorage(str(tmp_path))
    outcome = await Offloader(storage).aoffload([TextBlock(BIG)], tool_name="t", scope="mine")

    with scope("mine"), pytest.raises(OutOfReach):
        await storage.retrieve(str(outcome.references[0]))


@pytest.mark.parametrize(("other", "is_seen"), [(b"other", False), (b"longer", True)])
async def test_content_that_the_host_stored_is_checked_only_by_its_size(
    tmp_path: Path, other: bytes, *, is_seen: bool
) -> None:
    storage: FileStorage = FileStorage(str(tmp_path))
    reference = await storage.store("key", b"first")
    (file,) = files(tmp_path, "v1/*/*.txt")
    file.write_bytes(other)

    with pytest.raises(CorruptContent) if is_seen else nullcontext():
        assert await storage.retrieve(reference) == (other, "text/plain")


async def test_damaged_content_of_a_conversation_is_corrupt_and_not_missing(tmp_path: Path) -> None:
    storage: FileStorage = FileStorage(str(tmp_path))
    outcome = await Offloader(storage).aoffload([TextBlock(BIG)], tool_name="t", scope="mine")
    for description in files(tmp_path, "v1/*/*.entry.json"):
        description.write_text("{}")  # raises a KeyError inside, which must not look like a missing reference

    with scope("mine"), pytest.raises(CorruptContent):
        await storage.retrieve(str(outcome.references[0]))


async def test_what_was_stored_survives_a_restart_with_its_type(tmp_path: Path) -> None:
    reference = await FileStorage(str(tmp_path)).store("key", b"%PDF", "application/pdf")

    assert reference.endswith(".pdf")
    assert await FileStorage(str(tmp_path)).retrieve(reference) == (b"%PDF", "application/pdf")


async def test_a_file_is_named_by_its_path_its_name_or_its_stem(tmp_path: Path) -> None:
    storage = FileStorage(str(tmp_path))
    reference = await storage.store("key", b"content")
    (file,) = files(tmp_path, "v1/*/*.txt")

    for named in (
        reference,
        str(tmp_path / reference),
        reference.removesuffix(".txt"),
        str(file),
        file.name,
        file.stem,
    ):
        assert await storage.retrieve(named) == (b"content", "text/plain")


async def test_a_relative_folder_is_the_same_as_its_absolute_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reference = await FileStorage("./artifacts").store("key", b"content")

    for named in (f"./artifacts/{reference}", f"artifacts/{reference}", str(tmp_path / "artifacts" / reference)):
        assert (await FileStorage("./artifacts").retrieve(named))[0] == b"content"


# Old files of Strands' own offloader.


async def their_file(folder: Path, content: bytes = b"theirs", kind: str = "text/plain") -> str:
    return str(await theirs.FileStorage(str(folder)).store("call_1_0", content, kind))


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "image/png"])
async def test_their_file_is_read_by_path_name_and_stem(tmp_path: Path, kind: str) -> None:
    reference = await their_file(tmp_path, kind=kind)
    name = reference.rpartition("/")[2]
    before = files(tmp_path, "*")

    for named in (reference, name, str(tmp_path / name), name.rpartition(".")[0]):
        assert await FileStorage(str(tmp_path)).retrieve(named) == (b"theirs", kind)
    assert files(tmp_path, "*") == before


async def test_their_file_without_its_sidecar_is_read_without_its_type(tmp_path: Path) -> None:
    name = (await their_file(tmp_path)).rpartition("/")[2]
    (tmp_path / ".metadata.json").write_text("{broken")

    assert await FileStorage(str(tmp_path)).retrieve(name) == (b"theirs", "application/octet-stream")


async def test_no_sidecar_leads_out_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = tmp_path / "artifacts"
    folder.mkdir()
    (folder / ".metadata.json").write_text(json.dumps({"../secret.txt": "text/plain", "1700000000000_1_link.txt": "x"}))
    (folder / "1700000000000_1_link.txt").symlink_to(tmp_path / "secret.txt")

    for named in ("../secret.txt", "secret", "1700000000000_1_link.txt"):
        with pytest.raises(KeyError):
            await FileStorage(str(folder)).retrieve(named)


async def test_their_file_in_a_sandbox_is_read(tmp_path: Path) -> None:
    sandbox = FolderSandbox(tmp_path)
    reference = await theirs.FileStorage("artifacts", sandbox=sandbox).store("call_1_0", b"theirs", "image/png")

    found = await FileStorage("artifacts", sandbox=sandbox).retrieve(reference.rpartition("/")[2])

    assert found == (b"theirs", "image/png")


def test_an_old_conversation_goes_on(tmp_path: Path) -> None:
    """A session that began with Strands' own offloader goes on with ours: its references can still be read."""
    old = agent(theirs.ContextOffloader(theirs.FileStorage(str(tmp_path))))
    old("go")
    reading_again = (reading(pattern="^line 1,234 of"), call(), "done")

    new = agent(ContextOffloader(FileStorage(str(tmp_path))), turns=reading_again, messages=old.messages)
    new("and on")

    assert "> 1234| line 1,234 of 2,000" in text_of(results(new)[1])
    assert references(results(new)[2])[0].startswith("fetch-"), "what is new has keys"


def test_deleted_content_is_expired_even_if_the_folder_may_hold_old_files(tmp_path: Path) -> None:
    plugin = ContextOffloader(FileStorage(str(tmp_path)))
    old = agent(plugin)
    old("go")
    plugin.offloader_of(old).delete_scope("default")

    new = agent(plugin, turns=(reading(),), messages=old.messages)
    new("and on")

    assert text_of(results(new)[-1]).startswith("Error: reference expired")


# Sandboxes.


def test_each_agent_has_its_files_in_its_own_sandbox(tmp_path: Path) -> None:
    plugin = ContextOffloader(FileStorage("artifacts"))
    sandboxes = [FolderSandbox(tmp_path / name) for name in ("one", "two")]

    found = []
    for sandbox in sandboxes:
        subject = agent(plugin, turns=(call(), reading(pattern="^line 77 of")), sandbox=sandbox)
        subject("go")
        found.append(text_of(results(subject)[-1]))

    assert all(">   77| line 77 of" in answer or "> 77| line 77 of" in answer for answer in found)
    for sandbox in sandboxes:
        assert [name for name in sandbox.files() if name.endswith(".txt")]
        assert all(name.startswith("artifacts/v1/") for name in sandbox.files())


def test_a_sandbox_that_was_given_takes_precedence_over_the_agents(tmp_path: Path) -> None:
    own, agents = FolderSandbox(tmp_path / "own"), FolderSandbox(tmp_path / "agents")

    run(ContextOffloader(FileStorage("artifacts", sandbox=own)), sandbox=agents)

    assert own.files()
    assert not (tmp_path / "agents").exists()


def test_a_folder_of_a_sandbox_reads_the_same_on_the_host(tmp_path: Path) -> None:
    result = run(ContextOffloader(FileStorage("artifacts", sandbox=FolderSandbox(tmp_path))))

    host = ContextOffloader(FileStorage(str(tmp_path / "artifacts")))
    assert host.offloader_of().load(references(result)[0]).text == BIG


def test_without_a_sandbox_the_files_are_on_this_machine(tmp_path: Path) -> None:
    storage = FileStorage(str(tmp_path))

    run(ContextOffloader(storage))

    assert list(tmp_path.glob("v1/*/*.txt"))


async def test_a_damaged_description_in_a_sandbox_is_an_error(tmp_path: Path) -> None:
    storage = SandboxFileStorage("artifacts", sandbox=FolderSandbox(tmp_path))
    entry = make_entry(b"content")
    await asyncio.to_thread(save, storage, entry)
    (description,) = files(tmp_path, "**/*.entry.json")
    description.write_text("{")

    with pytest.raises(Exception, match="is damaged"):
        await storage.load(entry.key)


async def test_half_written_content_in_a_sandbox_counts_as_missing(tmp_path: Path) -> None:
    storage = SandboxFileStorage("artifacts", sandbox=FolderSandbox(tmp_path))
    entry = make_entry(b"content")
    await asyncio.to_thread(save, storage, entry)
    (content,) = files(tmp_path, "**/*.txt")
    content.write_bytes(b"cont")

    assert await storage.load(entry.key) is None
