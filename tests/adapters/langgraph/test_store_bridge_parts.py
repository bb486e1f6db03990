"""LangGraphStoreBridge: content too large for one entry is split and read in parts, and no part is left behind."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.postgres.aio import AsyncPostgresStore
from langgraph.store.sqlite import SqliteStore

from coatcheck import CorruptContent, Offloaded, Offloader, ReferenceExpired, StorageError, TextBlock
from coatcheck.storage import LangGraphStoreBridge, langgraph_bridge
from coatcheck.storage.langgraph_bridge import MAX_ENTRY, MAX_ENTRY_BYTES, PART_BYTES
from coatcheck.testing import DeletesContract, ListsContract, ListsPagesContract, ReadsRangesContract, StorageContract
from coatcheck.testing.samples import Entry, make_entry, noise
from coatcheck.testing.storage import check_holds, save

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from langgraph.store.base import Item

NUMBERS = count()

PART = 64
"""Bytes. The size of a part in tests that make parts small."""


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Split content of more than 10 bytes into small parts."""
    monkeypatch.setattr(langgraph_bridge, "MAX_ENTRY", 10)
    monkeypatch.setattr(langgraph_bridge, "PART_BYTES", PART)


@pytest.fixture
def middling_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Split content into fewer parts, for tests that save megabytes."""
    monkeypatch.setattr(langgraph_bridge, "MAX_ENTRY", 10)
    monkeypatch.setattr(langgraph_bridge, "PART_BYTES", 200_000)


@pytest.mark.usefixtures("middling_parts")
class TestSplitInMemoryStore(StorageContract, ReadsRangesContract, DeletesContract, ListsContract, ListsPagesContract):
    @pytest.fixture
    def storage(self) -> LangGraphStoreBridge:
        return LangGraphStoreBridge(InMemoryStore())


@pytest.mark.usefixtures("middling_parts")
class TestSplitSqliteStore(StorageContract, ReadsRangesContract, DeletesContract, ListsContract, ListsPagesContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[LangGraphStoreBridge]:
        with SqliteStore.from_conn_string(str(tmp_path / "store.sqlite")) as store:
            store.setup()
            yield LangGraphStoreBridge(store)


@pytest.mark.usefixtures("middling_parts")
class TestSplitPostgresStore(StorageContract, ReadsRangesContract, DeletesContract, ListsContract, ListsPagesContract):
    @pytest.fixture
    def storage(self, postgres: str) -> Iterator[LangGraphStoreBridge]:
        with PostgresStore.from_conn_string(postgres) as store:
            yield LangGraphStoreBridge(store, (f"parts {next(NUMBERS)}", "v1"))


class Killed(BaseException):
    """Stands for the end of the process."""


class MortalStore(InMemoryStore):
    """Ends its process after ``writes_left`` writes, so that no later write happens."""

    writes_left = 1_000_000
    bytes_read = 0
    fails_with: Callable[[], BaseException] = Killed

    def put(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - LangGraph's own
        self._count()
        super().put(*arguments, **options)

    def delete(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - LangGraph's own
        self._count()
        super().delete(*arguments, **options)

    def get(self, *arguments: Any, **options: Any) -> Item | None:  # noqa: ANN401 - LangGraph's own
        found = super().get(*arguments, **options)
        self.bytes_read += 0 if found is None else len(str(found.value.get("content", "")))
        return found

    def _count(self) -> None:
        self.writes_left -= 1
        if self.writes_left < 0:
            raise self.fails_with()

    @property
    def held(self) -> list[Item]:
        return [item for items in self._data.values() for item in items.values()]


@pytest.fixture
def store() -> MortalStore:
    return MortalStore()


@pytest.fixture
def bridge(store: MortalStore) -> LangGraphStoreBridge:
    return LangGraphStoreBridge(store)


@pytest.fixture
def entry() -> Entry:
    return make_entry(noise(5 * PART + 7), content_type="application/octet-stream", lines="1")


def test_content_up_to_the_limit_is_one_entry_in_the_format_of_version_0_1(
    bridge: LangGraphStoreBridge, store: MortalStore
) -> None:
    largest = make_entry(noise(MAX_ENTRY))
    save(bridge, largest)

    (item,) = store.held
    assert item.value == {
        "content": b64encode(largest.content).decode(),
        "content_type": largest.content_type,
        "metadata": largest.metadata,
        "size": MAX_ENTRY,
    }
    check_holds(bridge, largest, "as one entry")


def test_no_entry_is_too_large_for_any_store(bridge: LangGraphStoreBridge, store: MortalStore) -> None:
    larger = make_entry(noise(MAX_ENTRY + 1))
    save(bridge, larger)

    assert len(store.held) == 1 + -(-(MAX_ENTRY + 1) // PART_BYTES)
    assert max(len(str(item.value)) for item in store.held) < MAX_ENTRY_BYTES
    assert all(item.namespace[:2] == ("coatcheck", "v1") for item in store.held), "something lies outside"
    assert [(listed.key, listed.size) for listed in bridge.entries("")] == [(larger.key, MAX_ENTRY + 1)]
    check_holds(bridge, larger, "in parts")


def test_a_range_reads_only_its_parts(bridge: LangGraphStoreBridge, store: MortalStore) -> None:
    large = make_entry(noise(MAX_ENTRY + 1))
    save(bridge, large)
    store.bytes_read = 0

    for start, length, parts in [(0, 0, 0), (5, 10, 1), (PART_BYTES - 1, 2, 2), (3 * PART_BYTES, PART_BYTES, 1)]:
        store.bytes_read = 0
        found = bridge.load_range(large.key, start=start, length=length)
        assert found is not None
        assert (found.content, found.size) == (large.content[start : start + length], MAX_ENTRY + 1)
        assert store.bytes_read <= parts * (PART_BYTES + 2) * 4 / 3


@pytest.mark.parametrize("selectors", [{"line_range": "90001-90002"}, {"pattern": "no such line"}, {}])
def test_an_entry_that_is_not_split_is_read_once(
    bridge: LangGraphStoreBridge, store: MortalStore, selectors: dict[str, Any]
) -> None:
    text = "".join(f"line {number} of a report that goes on for a while\n" for number in range(150_000))
    offloader = Offloader(bridge)
    reference = str(offloader.offload([TextBlock(text)], tool_name="t", scope="s").references[0])
    store.bytes_read = 0

    offloader.retrieve(reference, scope="s", **selectors)

    assert store.bytes_read < len(text) * 1.4, "more than the entry in base64, and the index of its lines"


def test_an_entry_that_is_not_split_is_checked_before_a_part_of_it_is_shown(
    bridge: LangGraphStoreBridge, store: MortalStore
) -> None:
    offloader = Offloader(bridge)
    reference = str(offloader.offload([TextBlock("true\n" * 9_000)], tool_name="t", scope="s").references[0])
    (item,) = store.held
    store.put(item.namespace, item.key, {**item.value, "content": b64encode(b"lies\n" * 9_000).decode()})

    with pytest.raises(CorruptContent):
        offloader.retrieve(reference, scope="s", line_range="1-2")


def test_a_hundred_megabytes_are_stored_in_postgres_and_read_in_parts(postgres: str) -> None:
    line = "the order was shipped to the address that the customer gave\n"
    text = "".join(f"{number} {line}" for number in range(1_500_000))
    assert len(text) > 100_000_000
    namespace = (f"parts {next(NUMBERS)}",)

    async def run() -> None:
        async with AsyncPostgresStore.from_conn_string(postgres) as store:
            offloader = Offloader(LangGraphStoreBridge(store, namespace))
            outcome = await offloader.aoffload([TextBlock(text)], tool_name="t", scope="s")
            assert isinstance(outcome, Offloaded)
            reference = str(outcome.references[0])
            read = await offloader.aretrieve(reference, scope="s", line_range="1400001-1400002")
            assert f"1400000 {line}" in read.text
            assert (await offloader.aload(reference, scope="s")).text == text
            assert await offloader.adelete_scope("s") == 1
            assert await store.asearch(namespace, limit=1_000) == [], "something is left in the store"

    asyncio.run(run())


@pytest.mark.usefixtures("small_parts")
class TestWriters:
    """Writers and deleters that are killed after each of their steps."""

    @pytest.mark.parametrize("writes", range(8))
    def test_leftovers_of_a_killed_writer_are_not_content_and_are_deleted_with_their_scope(
        self, bridge: LangGraphStoreBridge, store: MortalStore, entry: Entry, writes: int
    ) -> None:
        kill_after(store, writes, lambda: save(bridge, entry))

        is_whole = writes == 8  # the last write only removes the mark
        assert (bridge.load(entry.key) is not None) == is_whole
        assert {listed.key for listed in bridge.entries("")} <= {f"{entry.key}-unfinished"}
        assert Offloader(bridge).delete_scope("contract") == (1 if is_whole else 0)
        assert store.held == []

    def test_a_writer_killed_after_its_content_is_whole_leaves_only_a_mark(
        self, bridge: LangGraphStoreBridge, store: MortalStore, entry: Entry
    ) -> None:
        kill_after(store, 8, lambda: save(bridge, entry))

        check_holds(bridge, entry, "although its mark was left")
        bridge.delete(f"{entry.key}-unfinished")
        check_holds(bridge, entry, "after the mark was swept")
        assert [listed.key for listed in bridge.entries("")] == [entry.key]

    @pytest.mark.parametrize("writes", range(9))
    def test_a_writer_that_is_killed_while_it_saves_again_harms_nothing(
        self, bridge: LangGraphStoreBridge, store: MortalStore, entry: Entry, writes: int
    ) -> None:
        save(bridge, entry)

        kill_after(store, writes, lambda: save(bridge, entry))

        check_holds(bridge, entry, "although a second save was cut off")
        Offloader(bridge).delete_scope("contract")
        assert store.held == []

    def test_leftovers_of_a_killed_writer_are_swept_after_an_hour(
        self, bridge: LangGraphStoreBridge, store: MortalStore, entry: Entry, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kill_after(store, 4, lambda: save(bridge, entry))
        assert Offloader(bridge).sweep(max_bytes=0) == 0
        later = time.time() + 3_700
        monkeypatch.setattr(time, "time", lambda: later)

        assert Offloader(bridge).sweep(max_age_seconds=3_600) == 1
        assert store.held == []

    @pytest.mark.parametrize("writes", range(1, 9))
    def test_a_writer_whose_store_fails_leaves_nothing(self, entry: Entry, writes: int) -> None:
        class FailsOnce(MortalStore):
            fails_with = OSError

            def _count(self) -> None:
                self.writes_left -= 1
                if self.writes_left == -1:
                    message = "the store failed"
                    raise OSError(message)

        store = FailsOnce()
        store.writes_left = writes
        bridge = LangGraphStoreBridge(store)
        if writes == 8:  # the content is whole, and only its mark could not be removed
            with pytest.raises(OSError, match="the store failed"):
                save(bridge, entry)
            check_holds(bridge, entry, "although its mark stayed")
            return
        with pytest.raises(OSError, match="the store failed"):
            save(bridge, entry)
        assert store.held == []

    def test_if_cleaning_up_after_a_failed_write_fails_too_the_first_error_is_raised(
        self, bridge: LangGraphStoreBridge, store: MortalStore, entry: Entry
    ) -> None:
        errors = [OSError("saving failed"), OSError("cleaning up failed")]
        store.writes_left = 3
        store.fails_with = lambda: errors.pop(0)

        with pytest.raises(OSError, match="saving failed"):
            save(bridge, entry)

        assert errors == []

    @pytest.mark.parametrize("writes", range(7))
    def test_a_killed_deleter_leaves_content_that_is_whole_or_else_expired_and_listed(
        self, bridge: LangGraphStoreBridge, store: MortalStore, entry: Entry, writes: int
    ) -> None:
        save(bridge, entry)

        kill_after(store, writes, lambda: bridge.delete(entry.key))

        if writes:
            assert bridge.load(entry.key) is None
        else:
            check_holds(bridge, entry, "before anything was deleted")
        assert bool(bridge.entries("")) == (writes < 7)
        Offloader(bridge).delete_scope("contract")
        assert store.held == []

    def test_saving_again_refreshes_every_part(
        self, bridge: LangGraphStoreBridge, store: MortalStore, entry: Entry
    ) -> None:
        save(bridge, entry)
        before = max(item.updated_at for item in store.held)

        save(bridge, entry)

        assert min(item.updated_at for item in store.held) > before
        assert len(store.held) == 7

    def test_saving_again_repairs_content_that_lost_a_part(
        self, bridge: LangGraphStoreBridge, store: MortalStore, entry: Entry
    ) -> None:
        save(bridge, entry)
        bridge._store.delete(part_of(entry), "00002")
        assert bridge.load(entry.key) is None
        assert bridge.load_range(entry.key, start=2 * PART, length=1) is None

        save(bridge, entry)

        check_holds(bridge, entry, "after it was saved again")

    @pytest.mark.parametrize(
        "value", [{}, {"content": 5}, {"content": "%"}, {"content": ""}, {"content": b64encode(bytes(99)).decode()}]
    )
    def test_a_damaged_part_is_corrupt_content(
        self, bridge: LangGraphStoreBridge, store: MortalStore, entry: Entry, value: dict[str, Any]
    ) -> None:
        save(bridge, entry)
        store.put(part_of(entry), "00002", value)

        with pytest.raises(CorruptContent, match="damaged"):
            bridge.load(entry.key)
        assert bridge.load_range(entry.key, start=0, length=PART) is not None, "the first part is well"

    @pytest.mark.parametrize("damage", [{"size": "x"}, {"size": -1}, {"part_bytes": 0}, {"part_bytes": None}])
    def test_damaged_entries_are_corrupt_content_and_are_deleted_with_their_parts(
        self, bridge: LangGraphStoreBridge, store: MortalStore, entry: Entry, damage: dict[str, Any]
    ) -> None:
        save(bridge, entry)
        scope, _, digest = entry.key.partition("/")
        (head,) = (item for item in store.held if item.key == digest)
        store.put(("coatcheck", "v1", scope), digest, {**head.value, **damage})

        with pytest.raises(CorruptContent, match="damaged"):
            bridge.load(entry.key)
        assert Offloader(bridge).delete_scope("contract") == 1
        assert store.held == []

    def test_other_content_under_the_same_key_harms_no_part(self, bridge: LangGraphStoreBridge, entry: Entry) -> None:
        save(bridge, entry)
        with pytest.raises(StorageError):
            save(bridge, Entry(entry.key, noise(5 * PART, seed=2), entry.content_type, {"sha256": "2" * 64}))
        check_holds(bridge, entry, "after other content was refused")

    def test_a_split_line_index_stays_apart_from_its_content(
        self, bridge: LangGraphStoreBridge, store: MortalStore, entry: Entry
    ) -> None:
        index = Entry(f"{entry.key}-lines", noise(3 * PART, seed=3), "application/json", {"sha256": "1" * 64})
        save(bridge, entry)
        kill_after(store, 3, lambda: save(bridge, index))
        assert {listed.key for listed in bridge.entries("")} == {entry.key, f"{entry.key}-linesunfinished"}

        bridge.delete(f"{entry.key}-linesunfinished")
        check_holds(bridge, entry, "after the unfinished index was swept")
        save(bridge, index)
        bridge.delete(entry.key)
        check_holds(bridge, index, "after its content was deleted")
        bridge.delete(index.key)
        assert store.held == []

    def test_content_that_lost_a_part_has_expired(self, bridge: LangGraphStoreBridge, store: MortalStore) -> None:
        offloader = Offloader(bridge)
        outcome = offloader.offload([TextBlock("a line of a report\n" * 5_000)], tool_name="t", scope="s")
        (lost,) = (item for item in store.held if item.key == "00700" and "-lines" not in item.namespace[-1])
        store.delete(lost.namespace, lost.key)

        with pytest.raises(ReferenceExpired):
            offloader.load(str(outcome.references[0]), scope="s")


def kill_after(store: MortalStore, writes: int, work: Any) -> None:  # noqa: ANN401 - any call
    """Call ``work``, and end its process after this many writes."""
    store.writes_left = writes
    with pytest.raises(Killed):
        work()
    store.writes_left = 1_000_000


def part_of(entry: Entry) -> tuple[str, ...]:
    return ("coatcheck", "v1", "parts", *entry.key.split("/"))
