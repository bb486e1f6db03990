"""LangGraphStoreBridge: the storage contract over LangGraph's own stores and a real Postgres, sync and async."""

from __future__ import annotations

import asyncio
import copy
import json
import random
import re
import time
from datetime import datetime, timedelta, timezone
from itertools import count, islice
from sqlite3 import ProgrammingError
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from langchain_core.tools import tool
from langgraph.store import base
from langgraph.store.base import InvalidNamespaceError
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.postgres.aio import AsyncPostgresStore
from langgraph.store.sqlite import SqliteStore

from coatcheck import (
    ByteCounter,
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
from coatcheck.storage import LangGraphStoreBridge
from coatcheck.testing import DeletesContract, ListsContract, ListsPagesContract, ReadsRangesContract, StorageContract
from coatcheck.testing.samples import Entry, make_entry, numbered_lines
from coatcheck.testing.storage import check_holds, save
from coatcheck_langchain import OffloadMiddleware
from tests.adapters.langgraph.agents import (
    ScriptedModel,
    agent_of,
    answers,
    call,
    question,
    read,
    reference_in,
    say,
    thread,
)
from tests.formats.kept import check_storage, every_version, left_by
from tests.storage.offloader_calls import CALLS, stored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from langgraph.store.base import Item, TTLConfig

NUMBERS = count()
BIG = numbered_lines(2_000)


class TestInMemoryStore(StorageContract, ReadsRangesContract, DeletesContract, ListsContract, ListsPagesContract):
    @pytest.fixture
    def storage(self) -> LangGraphStoreBridge:
        return LangGraphStoreBridge(InMemoryStore())


class TestSqliteStore(StorageContract, ReadsRangesContract, DeletesContract, ListsContract, ListsPagesContract):
    @pytest.fixture
    def storage(self, tmp_path: Path) -> Iterator[LangGraphStoreBridge]:
        with SqliteStore.from_conn_string(str(tmp_path / "store.sqlite")) as store:
            store.setup()
            yield LangGraphStoreBridge(store)


class TestPostgresStore(StorageContract, ReadsRangesContract, DeletesContract, ListsContract, ListsPagesContract):
    @pytest.fixture
    def storage(self, postgres: str) -> Iterator[LangGraphStoreBridge]:
        with PostgresStore.from_conn_string(postgres) as store:
            yield LangGraphStoreBridge(store, (f"test {next(NUMBERS)}", "v1"))


@pytest.fixture(params=["Asia/Tokyo", "America/Los_Angeles"])
def far_from_utc(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not hasattr(time, "tzset"):
        pytest.skip("this system sets no time zone for one process")
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_from_utc")
def test_times_in_sqlite_are_right_in_every_time_zone(tmp_path: Path, entry: Entry) -> None:
    with SqliteStore.from_conn_string(str(tmp_path / "store.sqlite")) as store:
        store.setup()
        bridge = LangGraphStoreBridge(store)
        save(bridge, entry)

        assert abs(bridge.entries("")[0].modified - time.time()) < 3_600
        assert Offloader(bridge).sweep(max_age_seconds=4 * 3_600) == 0
        check_holds(bridge, entry, "after a sweep")


@pytest.fixture
def store() -> InMemoryStore:
    return InMemoryStore()


@pytest.fixture
def entry() -> Entry:
    return make_entry(b"what the tool returned")


def test_an_async_store_serves_an_async_agent_without_a_deadlock(postgres: str) -> None:
    texts = [numbered_lines(1_000, first=1 + number) for number in range(20)]

    async def run() -> list[str]:
        async with AsyncPostgresStore.from_conn_string(postgres) as store:
            offloader = Offloader(LangGraphStoreBridge(store, (f"test {next(NUMBERS)}",)))
            outcomes = await asyncio.gather(*(offloader.aoffload([TextBlock(text)], tool_name="t") for text in texts))
            assert all(isinstance(outcome, Offloaded) for outcome in outcomes)
            references = [str(outcome.references[0]) for outcome in outcomes]
            found = [(await offloader.aload(reference)).text for reference in references]
            assert "line 7 of" in (await offloader.aretrieve(references[0], line_range="7-7")).text
            assert await offloader.adelete_scope("default") == len(texts)
            return found

    assert asyncio.run(run()) == texts


def test_a_burst_in_an_async_store_is_listed_whole_and_deleted_with_its_scope(postgres: str) -> None:
    texts = [f"entry {number} of a customer\n" * 200 for number in range(200)]
    namespace = f"test {next(NUMBERS)}"

    async def run() -> tuple[int, int, list[str]]:
        async with AsyncPostgresStore.from_conn_string(postgres) as store:
            bridge = LangGraphStoreBridge(store, (namespace,))
            offloader = Offloader(bridge, token_counter=ByteCounter(), max_result_tokens=500)
            saving = (offloader.aoffload([TextBlock(text)], tool_name="t", scope="customer") for text in texts)
            references = [str(outcome.references[0]) for outcome in await asyncio.gather(*saving)]
            save_in_one_moment(postgres, namespace)
            # Listed separately, because the deletion lists until nothing is left, and so hides what one listing missed.
            listed = {entry.key for entry in await asyncio.to_thread(bridge.entries, "")}
            deleted = await offloader.adelete_scope("customer")
            return len(listed), deleted, [each for each in references if await is_readable(offloader, each)]

    assert asyncio.run(run()) == (200, 200, [])


def save_in_one_moment(postgres: str, namespace: str) -> None:
    """Give all entries the same time, as if saved in one tick: PostgreSQL may then order each page differently."""
    with psycopg.connect(postgres) as connection:
        connection.execute("UPDATE store SET updated_at = now() WHERE prefix LIKE %s", [f"{namespace}.%"])


async def is_readable(offloader: Offloader, reference: str) -> bool:
    try:
        await offloader.aload(reference, scope="customer")
    except ReferenceExpired:
        return False
    return True


@tool
def fetch() -> str:
    """Fetch a large report."""
    return BIG


TURNS = (call(("fetch", {})), read(line_range="7-7"), say())


def test_a_sync_agent_offloads_to_postgres_and_reads_back(postgres: str) -> None:
    namespace = (f"test {next(NUMBERS)}",)
    with PostgresStore.from_conn_string(postgres) as store:
        agent, model = agent_of([fetch], *TURNS, middleware=[OffloadMiddleware(LangGraphStoreBridge(store, namespace))])
        agent.invoke(question(), thread("mine"))
    with PostgresStore.from_conn_string(postgres) as store:
        check_conversation(model, Offloader(LangGraphStoreBridge(store, namespace)))


def test_an_async_agent_offloads_to_postgres_and_reads_back(postgres: str) -> None:
    namespace = (f"test {next(NUMBERS)}",)

    async def run() -> ScriptedModel:
        async with AsyncPostgresStore.from_conn_string(postgres) as store:
            bridge = LangGraphStoreBridge(store, namespace)
            agent, model = agent_of([fetch], *TURNS, middleware=[OffloadMiddleware(bridge)])
            await agent.ainvoke(question(), thread("mine"))
        return model

    model = asyncio.run(run())
    with PostgresStore.from_conn_string(postgres) as store:  # a sync agent reads what an async one stored
        check_conversation(model, Offloader(LangGraphStoreBridge(store, namespace)))


def check_conversation(model: ScriptedModel, elsewhere: Offloader) -> None:
    """Check that the model read its line, and that another process reads the result in its scope until deleted."""
    messages = model.seen[-1]
    assert "line 7 of" in answers(messages)[-1].text
    reference = reference_in(messages)
    assert elsewhere.load(reference, scope="mine").text == BIG
    with pytest.raises(ReferenceNotFound) as unknown:
        elsewhere.load(reference, scope="yours")
    assert not isinstance(unknown.value, ReferenceExpired)
    assert elsewhere.delete_scope("mine") == 1
    with pytest.raises(ReferenceExpired):
        elsewhere.load(reference, scope="mine")


def test_an_entry_is_not_in_the_search_index(entry: Entry) -> None:
    embedded: list[str] = []

    def embed(texts: Sequence[str]) -> list[list[float]]:
        embedded.extend(texts)
        return [[0.0, 1.0] for _ in texts]

    store = InMemoryStore(index={"dims": 2, "embed": embed, "fields": ["$"]})
    save(LangGraphStoreBridge(store), entry)
    assert embedded == []

    store.put(("users",), "u", {"text": "indexed"})
    assert embedded != [], "the store does index what it is not told to leave out"


def test_other_entries_in_the_store_are_left_alone(store: InMemoryStore, entry: Entry) -> None:
    scope = entry.key.partition("/")[0]
    others = [(("coatcheck",), "x"), (("coatcheck", "v1"), "y"), (("coatcheck", "v1", scope), "z"), (("users",), "u")]
    for namespace, key in others:
        store.put(namespace, key, {"mine": True})
    bridge = LangGraphStoreBridge(store)
    save(bridge, entry)

    assert [listed.key for listed in bridge.entries("")] == [entry.key]
    assert Offloader(bridge).delete_scope("contract") == 1
    assert all(store.get(namespace, key) is not None for namespace, key in others)


class BusyStore(InMemoryStore):
    """Lets others use the store between two pages of a listing."""

    searches = 0
    meanwhile: Callable[[], object] | None = None

    def search(self, within: tuple[str, ...], /, **options: Any) -> list[Any]:  # noqa: ANN401 - LangGraph's own
        if "parts" in within:  # what a deletion looks for
            return super().search(within, **options)
        self.searches += 1
        found = super().search(within, **options)
        if self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
            self.meanwhile = meanwhile
        return found


def test_a_listing_longer_than_a_page_is_whole() -> None:
    store = BusyStore()
    bridge = LangGraphStoreBridge(store)
    saved = [make_entry(f"{number}".encode()) for number in range(45)]
    for each in saved:
        save(bridge, each)

    assert sorted(listed.key for listed in bridge.entries("")) == sorted(each.key for each in saved)
    assert store.searches == 4, "pages of 20 that share two items each, and the last item once more"


@pytest.mark.parametrize("seed", range(30))
def test_a_listing_misses_nothing_while_others_delete_and_save(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secret
    store = BusyStore()
    bridge = LangGraphStoreBridge(store)
    there = {entry.key: entry for entry in (make_entry(f"{n}".encode(), scope=f"{n % 3}") for n in range(120))}
    for entry in there.values():
        save(bridge, entry)
    coming = iter([make_entry(chance.randbytes(5), scope=f"{chance.randrange(3)}") for _ in range(30)])

    def others() -> None:
        for key in chance.sample(sorted(there), min(len(there), chance.choice([0, 1, 30]))):
            bridge.delete(key)
            del there[key]
        for new in islice(coming, chance.randrange(3)):
            save(bridge, new)

    store.meanwhile = others
    listed = [found.key for found in bridge.entries("")]

    assert len(listed) == len(set(listed))
    assert there.keys() <= set(listed)


class TiedStore(InMemoryStore):
    """Gives each burst of entries the same time, and orders it anew for every page, as PostgreSQL may."""

    burst = 14

    def search(self, within: tuple[str, ...], /, *, limit: int = 10, offset: int = 0, **_: Any) -> list[Any]:  # noqa: ANN401
        found = super().search(within, limit=1_000)
        begin = datetime(2026, 1, 1, tzinfo=timezone.utc)
        for number, item in enumerate(found):
            item.updated_at = begin - timedelta(seconds=number // self.burst)
        chance = random.Random(limit * 1_000 + offset)  # noqa: S311 - no secret
        found.sort(key=lambda item: (-item.updated_at.timestamp(), chance.random()))
        return found[offset : offset + limit]


@pytest.mark.parametrize("burst", [2, 14, 19, 20, 21, 90, 300])
def test_a_listing_misses_nothing_of_a_burst(burst: int) -> None:
    store = TiedStore()
    store.burst = burst
    bridge = LangGraphStoreBridge(store)
    saved = [make_entry(f"{number}".encode()) for number in range(300)]
    for each in saved:
        save(bridge, each)

    listed = [found.key for found in bridge.entries("")]

    assert sorted(listed) == sorted(each.key for each in saved)


@pytest.mark.parametrize("burst", [1, 7, 30])
def test_pages_of_a_store_ordered_by_time_read_little_more_than_they_show(
    burst: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, read = TiedStore(), list[int]()
    store.burst = burst
    bridge = LangGraphStoreBridge(store)
    saved = [make_entry(f"{number}".encode()) for number in range(90)]
    for each in saved:
        save(bridge, each)
    search = TiedStore.search

    def counting(store: TiedStore, within: tuple[str, ...], /, **options: Any) -> list[Any]:  # noqa: ANN401
        read.append(options["limit"])
        return search(store, within, **options)

    monkeypatch.setattr(TiedStore, "search", counting)

    first = bridge.page(f"{saved[0].key.partition('/')[0]}/", limit=10)

    assert sum(read) <= 20 + 3 * burst
    listed = [*first.entries]
    while first.after is not None:
        first = bridge.page(f"{saved[0].key.partition('/')[0]}/", limit=10, after=first.after)
        listed += first.entries
    assert [entry.modified for entry in listed] == sorted((entry.modified for entry in listed), reverse=True)
    assert sorted(entry.key for entry in listed) == sorted(each.key for each in saved)


def test_pages_of_an_unordered_store_are_ordered_too() -> None:
    bridge = LangGraphStoreBridge(InMemoryStore())
    saved = [make_entry(f"{number}".encode()) for number in range(45)]
    for each in saved:
        save(bridge, each)

    page = bridge.page(f"{saved[0].key.partition('/')[0]}/", limit=3)

    assert [entry.key for entry in page.entries] == [each.key for each in reversed(saved[-3:])]
    assert page.after is not None


@pytest.mark.parametrize("after", ["", "yesterday", "nan key"])
def test_a_made_up_page_position_is_refused(after: str) -> None:
    bridge = LangGraphStoreBridge(InMemoryStore())
    entry = make_entry(b"a")
    save(bridge, entry)

    with pytest.raises(InvalidRequest, match="after must be the `after` of the previous page"):
        bridge.page(f"{entry.key.partition('/')[0]}/", limit=3, after=after)


class StoreWithoutOffset(InMemoryStore):
    """Has no offset, like MongoDB's store."""

    items_read = 0

    def search(self, *arguments: Any, offset: int = 0, **options: Any) -> list[Any]:  # noqa: ANN401 - LangGraph's own
        if offset:
            message = "offset is not implemented"
            raise NotImplementedError(message)
        found = super().search(*arguments, **options)
        self.items_read += len(found)
        return found


def test_a_store_without_an_offset_is_listed_whole() -> None:
    bridge = LangGraphStoreBridge(StoreWithoutOffset())
    saved = [make_entry(f"{number}".encode()) for number in range(70)]
    for each in saved:
        save(bridge, each)

    assert sorted(found.key for found in bridge.entries("")) == sorted(each.key for each in saved)
    assert Offloader(bridge).delete_scope("contract") == 70
    assert bridge.entries("") == []


@pytest.mark.parametrize("entries", [1, 20, 21, 1_000])
def test_listing_a_store_without_an_offset_reads_each_value_only_a_few_times(entries: int) -> None:
    store = StoreWithoutOffset()
    bridge = LangGraphStoreBridge(store)
    for number in range(entries):
        save(bridge, make_entry(f"{number}".encode()))

    assert len(bridge.entries("")) == entries
    assert store.items_read <= 3 * entries


class TouchingStore(InMemoryStore):
    """Counts a read of an entry as a new save, unless told not to, like MongoDB's store."""

    def get(self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        item = super().get(namespace, key)
        if item is not None and refresh_ttl is not False:
            item.updated_at = datetime.fromtimestamp(time.time(), timezone.utc)
        return item


def test_a_sweep_deletes_from_a_store_that_counts_a_read_as_a_save(
    entry: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridge = LangGraphStoreBridge(TouchingStore())
    save(bridge, entry)
    later = time.time() + 7_200
    monkeypatch.setattr(time, "time", lambda: later)

    assert Offloader(bridge).sweep(max_age_seconds=3_600) == 1


@pytest.mark.filterwarnings("ignore:The default datetime adapter:DeprecationWarning")  # LangGraph's, on Python 3.12
def test_listing_a_store_does_not_prolong_its_entries(tmp_path: Path, entry: Entry) -> None:
    ttl: TTLConfig = {"default_ttl": 60, "refresh_on_read": True}
    with SqliteStore.from_conn_string(str(tmp_path / "store.sqlite"), ttl=ttl) as store:
        store.setup()
        bridge = LangGraphStoreBridge(store)
        save(bridge, entry)

        def end() -> object:
            return store.conn.execute("SELECT expires_at FROM store").fetchone()[0]

        store.conn.execute("UPDATE store SET expires_at = datetime('now', '+1 minute')")
        soon = end()
        bridge.entries("")
        bridge.entries(entry.key)
        bridge.page(f"{entry.key.partition('/')[0]}/", limit=3)
        Offloader(bridge).sweep(max_age_seconds=86_400)
        assert end() == soon

        bridge.load(entry.key)
        assert end() != soon, "a read does, as the store is set up"


class ForgetfulStore(InMemoryStore):
    """Finds nothing again in a long namespace, like a search engine that cuts long words."""

    def get(self, namespace: tuple[str, ...], key: str, **_: Any) -> Item | None:  # noqa: ANN401 - LangGraph's own
        return super().get(namespace, key) if len(".".join(namespace)) <= 100 else None


def test_a_result_that_a_store_does_not_give_back_stays(caplog: pytest.LogCaptureFixture) -> None:
    store = ForgetfulStore()
    offloader = Offloader(LangGraphStoreBridge(store))

    for parts, is_stored in [(1, True), (8, False), (8, False), (2, True)]:
        scope = tuple(f"{part}" for part in range(parts))
        outcome = offloader.offload([TextBlock(BIG)], tool_name="t", scope=scope)
        assert isinstance(outcome, Offloaded) is is_stored

    assert "does not give back" in caplog.text
    assert len(store.search(())) == 2, "what is not found again is not left behind either"


def test_a_save_is_read_back_once_for_each_length_of_scope(entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    bridge, asked = LangGraphStoreBridge(InMemoryStore()), list[str]()
    get = InMemoryStore.get

    def counting(store: InMemoryStore, namespace: tuple[str, ...], key: str, **options: Any) -> Item | None:  # noqa: ANN401
        asked.append(key)
        return get(store, namespace, key, **options)

    monkeypatch.setattr(InMemoryStore, "get", counting)
    for each in (entry, make_entry(b"another"), make_entry(b"in another scope", scope="another")):
        save(bridge, each)

    assert len(asked) == 3 + 1, "a look before each save, and one after the first"


class UnsteadyStore(InMemoryStore):
    """Orders its entries differently for every page."""

    def search(self, *arguments: Any, limit: int = 10, offset: int = 0, **options: Any) -> list[Any]:  # noqa: ANN401
        found = super().search(*arguments, limit=1_000, **options)
        random.Random(offset).shuffle(found)  # noqa: S311 - no secret
        return found[offset : offset + limit]


def test_a_listing_ends_even_if_the_order_keeps_changing() -> None:
    bridge = LangGraphStoreBridge(UnsteadyStore())
    for number in range(100):
        save(bridge, make_entry(f"{number}".encode()))

    listed = [found.key for found in bridge.entries("")]

    assert 20 < len(listed) == len(set(listed))


def test_a_sweep_lists_once_however_much_it_deletes(monkeypatch: pytest.MonkeyPatch) -> None:
    store = BusyStore()
    bridge = LangGraphStoreBridge(store)
    for number in range(30):
        save(bridge, make_entry(f"{number}".encode()))
    bridge.entries("")
    a_listing = store.searches
    later = time.time() + 7_200
    monkeypatch.setattr(time, "time", lambda: later)

    assert Offloader(bridge).sweep(max_age_seconds=3_600) == 30
    assert store.searches == 2 * a_listing


def test_a_whole_key_lists_its_entry_and_the_index_of_its_lines(store: InMemoryStore, entry: Entry) -> None:
    bridge = LangGraphStoreBridge(store)
    index = Entry(f"{entry.key}-lines", b"index", "application/json", {"sha256": "1" * 64})
    for each in (entry, index, make_entry(b"other")):
        save(bridge, each)
    whole = {listed.key: listed for listed in bridge.entries("")}

    for prefix, keys in [(entry.key, {entry.key, index.key}), (index.key, {index.key})]:
        assert {listed.key: listed for listed in bridge.entries(prefix)} == {key: whole[key] for key in keys}
    assert bridge.entries(make_entry(b"never saved").key) == []


@pytest.mark.parametrize("value", [{}, {"content": "%"}, {"content": 5}, {"content": "", "content_type": "x"}])
def test_a_damaged_entry_is_corrupt_content(store: InMemoryStore, entry: Entry, value: dict[str, Any]) -> None:
    scope, _, digest = entry.key.partition("/")
    store.put(("coatcheck", "v1", scope), digest, value)

    bridge = LangGraphStoreBridge(store)
    with pytest.raises(CorruptContent, match="damaged"):
        bridge.load(entry.key)

    save(bridge, entry)
    check_holds(bridge, entry, "after what was damaged was saved again")


@pytest.mark.parametrize("size", ["abc", None, -1, float("nan")])
def test_a_damaged_size_hides_no_other_entry_and_is_deleted_with_its_scope(store: InMemoryStore, size: object) -> None:
    bridge = LangGraphStoreBridge(store)
    damaged, well = make_entry(b"damaged"), make_entry(b"well")
    scope, _, digest = damaged.key.partition("/")
    save(bridge, well)
    store.put(("coatcheck", "v1", scope), digest, {"size": size}, index=False)

    assert {listed.key: listed.size for listed in bridge.entries("")} == {damaged.key: 0, well.key: 4}
    assert Offloader(bridge).delete_scope("contract") == 2
    assert bridge.entries("") == []


@pytest.fixture
def closed(tmp_path: Path) -> LangGraphStoreBridge:
    with SqliteStore.from_conn_string(str(tmp_path / "store.sqlite")) as store:
        store.setup()
    return LangGraphStoreBridge(store)  # its connection is closed


def test_the_errors_of_a_store_propagate_unchanged(closed: LangGraphStoreBridge, entry: Entry) -> None:
    attempts: tuple[Callable[[], object], ...] = (
        lambda: save(closed, entry),
        lambda: closed.load(entry.key),
        lambda: closed.load_range(entry.key, start=0, length=1),
        lambda: closed.delete(entry.key),
        lambda: closed.entries(""),
        lambda: closed.page("", limit=1),
    )
    for attempt in attempts:
        with pytest.raises(ProgrammingError, match="closed database"):
            attempt()


@pytest.mark.parametrize("name", CALLS)
def test_an_offloader_raises_a_storage_error_if_its_store_fails(closed: LangGraphStoreBridge, name: str) -> None:
    reference = stored(Offloader(LangGraphStoreBridge(InMemoryStore())))

    with pytest.raises(StorageError, match=r"\(LangGraphStoreBridge\) failed: ProgrammingError$") as raised:
        CALLS[name](Offloader(closed), reference)

    assert "closed database" in str(raised.value.__cause__)


def test_a_result_that_a_store_refuses_stays_and_the_log_says_why(
    closed: LangGraphStoreBridge, caplog: pytest.LogCaptureFixture
) -> None:
    block = TextBlock(BIG)

    outcome = Offloader(closed).offload([block], tool_name="t")

    assert outcome == Kept(blocks=(block,), reason="storage failed")
    assert f"saving {len(BIG):,} bytes (LangGraphStoreBridge) failed: ProgrammingError\n" in caplog.text


def test_a_sync_call_to_an_async_store_on_its_own_loop_is_refused_with_what_to_call(
    postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with AsyncPostgresStore.from_conn_string(postgres) as store:
            offloader = Offloader(LangGraphStoreBridge(store, (f"test {next(NUMBERS)}",)))
            assert isinstance(offloader.offload([TextBlock(BIG)], tool_name="t"), Kept)
            with pytest.raises(StorageError, match="await the async method"):
                offloader.delete_scopes(under=("tenant-7",))

    asyncio.run(run())

    assert "InvalidStateError: an async store answers no sync call on its own event loop" in caplog.text


def test_a_deep_copy_saves_into_the_same_store(store: InMemoryStore, entry: Entry) -> None:
    bridge = LangGraphStoreBridge(store)

    save(copy.deepcopy([bridge])[0], entry)

    check_holds(bridge, entry, "that a copy saved, as a Haystack pipeline makes one")


def test_another_scope_finds_nothing(store: InMemoryStore) -> None:
    offloader = Offloader(LangGraphStoreBridge(store))
    reference = str(offloader.offload([TextBlock("word " * 20_000)], tool_name="t", scope="mine").references[0])

    with pytest.raises(ReferenceNotFound):
        offloader.load(reference, scope="yours")


@pytest.mark.parametrize("store", [InMemoryStore, None, {}, object()])
def test_an_object_that_is_not_a_store_is_refused(store: Any) -> None:  # noqa: ANN401 - whatever a user passes
    with pytest.raises(InvalidRequest, match="needs a LangGraph store"):
        LangGraphStoreBridge(store)


@pytest.mark.parametrize("module", ["langgraph.store.redis.aio", "langgraph_checkpoint_aws.store.valkey.store"])
def test_a_store_that_does_not_find_all_that_it_holds_is_refused(module: str) -> None:
    kind = type("UnfitStore", (InMemoryStore,), {"__module__": module})
    store = type("MyStore", (kind,), {})()

    with pytest.raises(InvalidRequest, match="MyStore does not find all that it holds"):
        LangGraphStoreBridge(store)


@pytest.mark.parametrize("namespace", [(), "coatcheck", ["coatcheck"], None])
def test_an_invalid_namespace_is_refused(store: InMemoryStore, namespace: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match=re.escape(f"not {namespace!r}")):
        LangGraphStoreBridge(store, namespace)


@every_version
def test_what_earlier_versions_stored_in_postgres_is_read(version: str, postgres: str, tmp_path: Path) -> None:
    left = left_by(version, "langgraph-postgres", tmp_path)
    with PostgresStore.from_conn_string(postgres) as store:
        for prefix, key, value in json.loads((tmp_path / "rows.json").read_text()):
            store.put((version.replace(".", "-"), *prefix.split(".")), key, value, index=False)

        check_storage(LangGraphStoreBridge(store, (version.replace(".", "-"), "coatcheck", "v1")), left)


@pytest.mark.parametrize(
    "namespace",
    [("acme.com",), ("acme", "1795370060.6"), ("",), ("acme", ""), ("langgraph", "v1"), ("nul\0",), ("acme", 5)],
    ids=ascii,
)
def test_a_namespace_that_langgraph_refuses_is_refused_when_the_bridge_is_made(
    store: InMemoryStore,
    namespace: Any,  # noqa: ANN401 - whatever a user passes
) -> None:
    # The oldest LangGraph takes NUL, but PostgreSQL does not.
    if "\0" not in namespace[0] or hasattr(base, "validate_op_namespace"):
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "key", {})

    with pytest.raises(InvalidRequest, match=re.escape(f"not {namespace!r}: LangGraph's stores refuse it")):
        LangGraphStoreBridge(store, namespace)


@pytest.mark.parametrize("namespace", [("acme com",), ("käse", "langgraph"), ("*", "%_"), ("a" * 300,)], ids=ascii)
def test_a_namespace_that_langgraph_accepts_is_accepted(store: InMemoryStore, entry: Entry, namespace: Any) -> None:  # noqa: ANN401
    bridge = LangGraphStoreBridge(store, namespace)
    save(bridge, entry)
    check_holds(bridge, entry, "in an odd namespace")
