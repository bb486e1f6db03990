"""The bridges to Strands' storages: the contract over a unified one, and the older kind that names references."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import (
    ByteCounter,
    CorruptContent,
    FileStorage,
    InvalidRequest,
    NamesReferences,
    Offloaded,
    Offloader,
    ReferenceExpired,
    Storage,
    StorageError,
    StrandsOffloaderStorageBridge,
    StrandsStorageBridge,
    TextBlock,
)
from coatcheck.testing import DeletesContract, ListsContract, StorageContract
from coatcheck.testing.samples import make_entry
from coatcheck.testing.storage import save
from coatcheck.testing.suite import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterable

KEY = make_entry(b"content").key
BIG = TextBlock("".join(f"line {number}\n" for number in range(5_000)))


class Unified:
    """A sync storage with Strands' unified interface."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.threads: set[str] = set()

    def write(self, key: str, data: bytes) -> None:
        self.threads.add(threading.current_thread().name)
        self.held[key] = data

    def read(self, key: str) -> bytes | None:
        return self.held.get(key)

    def delete(self, key: str) -> None:
        self.held.pop(key, None)

    def list(self, query: str) -> Iterable[str]:
        return sorted(key for key in self.held if key.startswith(query))


class AsyncUnified:
    """The async variant, which Strands ships."""

    def __init__(self) -> None:
        self.sync = Unified()

    async def write(self, key: str, data: bytes) -> None:
        self.sync.write(key, data)

    async def read(self, key: str) -> bytes | None:
        return self.sync.read(key)

    async def delete(self, key: str) -> None:
        self.sync.delete(key)

    async def list(self, query: str) -> Iterable[str]:
        return self.sync.list(query)


class UnifiedContract(StorageContract, DeletesContract, ListsContract):
    now = 1_000.0

    def make_older(self, storage: Storage, key: str) -> bool:
        self.now += 60
        return True


class TestOverASyncStorage(UnifiedContract):
    @pytest.fixture
    def storage(self) -> StrandsStorageBridge:
        return StrandsStorageBridge(Unified(), clock=lambda: self.now)


class TestOverAnAsyncStorage(UnifiedContract):
    @pytest.fixture
    def storage(self) -> StrandsStorageBridge:
        return StrandsStorageBridge(AsyncUnified(), clock=lambda: self.now)


def test_keys_begin_with_the_prefix() -> None:
    storage = Unified()
    entry = make_entry(b"content")

    save(StrandsStorageBridge(storage), entry)
    save(StrandsStorageBridge(storage, prefix=""), entry)

    assert sorted(storage.held) == sorted([entry.key, f"offloader/{entry.key}"])


def test_content_of_strands_own_offloader_can_be_loaded() -> None:
    storage = Unified()
    storage.write(f"offloader/{KEY}", b"\x00\x0atext/plainhello")

    found = wait_for(StrandsStorageBridge(storage).load(KEY))

    assert found is not None
    assert (found.content, found.content_type, found.metadata) == (b"hello", "text/plain", {})


def test_foreign_keys_are_not_listed() -> None:
    storage = Unified()
    storage.write("offloader/tooluse_1_0", b"\x00\x0atext/plainhello")
    storage.write(f"session/{KEY}", b"theirs")

    assert wait_for(StrandsStorageBridge(storage).entries("")) == []


@pytest.mark.parametrize(
    "frame", [b"", b"\x00", b"\x00\x00x", b"\x00\x09text", b"\x00\x02{}x", b"\x00\x02{[x", b"\x00\x01\xff"]
)
def test_bytes_that_are_not_a_frame_are_corrupt(frame: bytes) -> None:
    storage = Unified()
    storage.write(f"offloader/{KEY}", frame)

    with pytest.raises(CorruptContent, match=f"offloader/{KEY}"):
        wait_for(StrandsStorageBridge(storage).load(KEY))


@pytest.mark.parametrize("damage", [{"saved": "nan"}, {"saved": 1e300}, {"saved": -1.0}, {"size": -5}])
def test_an_impossible_time_or_size_is_corrupt_and_listed_as_old(damage: dict[str, object]) -> None:
    storage = Unified()
    head = json.dumps({"content_type": "text/plain", "metadata": {}, "saved": 1.0, "size": 5, **damage}).encode()
    storage.write(f"offloader/{KEY}", len(head).to_bytes(2, "big") + head + b"hello")
    bridge = StrandsStorageBridge(storage)

    with pytest.raises(CorruptContent, match="is not a frame"):
        wait_for(bridge.load(KEY))
    assert [listed.modified for listed in wait_for(bridge.entries(""))] == [0.0]


def test_more_metadata_than_a_frame_holds_is_refused() -> None:
    with pytest.raises(StorageError, match="65,535"):
        save(StrandsStorageBridge(Unified()), make_entry(b"content", long="x" * 70_000))


async def test_a_sync_storage_is_called_off_the_loop() -> None:
    storage = Unified()
    offloader = Offloader(StrandsStorageBridge(storage), max_result_tokens=600, token_counter=ByteCounter())

    assert isinstance(await offloader.aoffload([BIG], tool_name="t"), Offloaded)
    assert threading.current_thread().name not in storage.threads


# The older storages, which choose their references themselves.


class Shelf:
    """A storage for Strands' own offloader as a user may write one, with sync methods."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[bytes, str]] = {}
        self.threads: set[str] = set()

    def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        self.threads.add(threading.current_thread().name)
        reference = f"shelf_{len(self.held)}_{key}"
        self.held[reference] = (content, content_type)
        return reference

    def retrieve(self, reference: str) -> tuple[bytes, str]:
        return self.held[reference]


class AsyncShelf:
    def __init__(self) -> None:
        self.sync = Shelf()

    async def store(self, key: str, content: bytes, content_type: str = "text/plain") -> str:
        return self.sync.store(key, content, content_type)

    async def retrieve(self, reference: str) -> tuple[bytes, str]:
        return self.sync.retrieve(reference)


@pytest.mark.parametrize("bridge", [StrandsStorageBridge(Unified()), StrandsOffloaderStorageBridge(Shelf())])
def test_a_deep_copy_is_the_bridge_itself_because_a_copied_storage_would_be_dropped(bridge: object) -> None:
    assert copy.deepcopy([bridge])[0] is bridge


@pytest.fixture(params=[Shelf, AsyncShelf])
def shelf(request: pytest.FixtureRequest) -> Shelf | AsyncShelf:
    made: Shelf | AsyncShelf = request.param()
    return made


def test_the_bridge_is_a_storage_that_names_its_references(shelf: Shelf | AsyncShelf) -> None:
    bridge = StrandsOffloaderStorageBridge(shelf)

    assert isinstance(bridge, NamesReferences)
    assert not isinstance(bridge, Storage)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_an_offloader_stores_and_reads_back(shelf: Shelf | AsyncShelf, *, is_async: bool) -> None:
    offloader = Offloader(StrandsOffloaderStorageBridge(shelf), max_result_tokens=600, token_counter=ByteCounter())

    if is_async:
        outcome = asyncio.run(offloader.aoffload([BIG], tool_name="search", scope="one"))
        content = asyncio.run(offloader.aload(str(outcome.references[0]), scope="one"))
    else:
        outcome = offloader.offload([BIG], tool_name="search", scope="one")
        content = offloader.load(str(outcome.references[0]), scope="one")

    assert str(outcome.references[0]).startswith("shelf_0_search_")
    assert content.text == BIG.text


def test_missing_content_is_expired(shelf: Shelf | AsyncShelf) -> None:
    offloader = Offloader(StrandsOffloaderStorageBridge(shelf), max_result_tokens=600, token_counter=ByteCounter())
    reference = str(offloader.offload([BIG], tool_name="search").references[0])
    (shelf.sync if isinstance(shelf, AsyncShelf) else shelf).held.clear()

    with pytest.raises(ReferenceExpired):
        offloader.load(reference)


async def test_a_sync_store_is_called_off_the_loop() -> None:
    shelf = Shelf()
    offloader = Offloader(StrandsOffloaderStorageBridge(shelf), max_result_tokens=600, token_counter=ByteCounter())

    assert isinstance(await offloader.aoffload([BIG], tool_name="t"), Offloaded)
    assert threading.current_thread().name not in shelf.threads


@pytest.mark.parametrize("reference", [".metadata.json", "artifacts/.metadata.json", "artifacts\\.metadata.json"])
def test_the_metadata_file_of_a_storage_is_not_content(reference: str) -> None:
    shelf = Shelf()
    shelf.held[reference] = b"the references of everybody", "application/json"

    assert wait_for(StrandsOffloaderStorageBridge(shelf).load(reference)) is None


def test_a_damaged_entry_hides_no_other_and_can_be_saved_again_or_deleted() -> None:
    unified = Unified()
    bridge = StrandsStorageBridge(unified)
    damaged, well = make_entry(b"damaged"), make_entry(b"well")
    for entry in (damaged, well):
        save(bridge, entry)
    unified.held[f"offloader/{damaged.key}"] = b"no frame"

    assert {listed.key for listed in wait_for(bridge.entries(""))} == {damaged.key, well.key}
    save(bridge, damaged)
    found = wait_for(bridge.load(damaged.key))
    assert found is not None
    assert found.content == damaged.content
    unified.held[f"offloader/{damaged.key}"] = b"no frame"
    assert Offloader(bridge).delete_scope("contract") == 2
    assert unified.held == {}


@pytest.mark.parametrize("wrong", [None, "./artifacts", Unified, FileStorage("./artifacts")])
def test_an_object_that_is_not_a_strands_storage_is_refused_at_once(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match=r"^StrandsStorageBridge needs a storage with the methods write and read"):
        StrandsStorageBridge(wrong)
    said = r"^StrandsOffloaderStorageBridge needs a storage with the methods store and retrieve, as"
    with pytest.raises(InvalidRequest, match=said):
        StrandsOffloaderStorageBridge(wrong)


def test_each_bridge_refuses_the_storage_of_the_other() -> None:
    with pytest.raises(InvalidRequest, match="write and read"):
        StrandsStorageBridge(Shelf())  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="store and retrieve"):
        StrandsOffloaderStorageBridge(Unified())  # type: ignore[arg-type]


def test_a_prefix_that_is_not_a_string_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"^prefix must be a str, and may be empty, not None"):
        StrandsStorageBridge(Unified(), prefix=None)  # type: ignore[arg-type]
