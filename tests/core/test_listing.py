"""Listing what a scope holds: for a model that lost its references, and for the host, page by page."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import coatcheck
from coatcheck import (
    Always,
    Event,
    FileStorage,
    InMemoryStorage,
    InvalidRequest,
    ListedContent,
    Offloader,
    StorageError,
    Stored,
    TextBlock,
)
from tests.core.storages import DictStorage, RangeStorage, Shelves
from tests.core.test_newest import LARGE, ListingStorage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from coatcheck import Listed


def clock() -> Any:  # noqa: ANN401 - a callable
    times = iter(range(10_000))
    return lambda: float(next(times))


def storing(storage: Any = None, **options: Any) -> Offloader:  # noqa: ANN401 - any storage, any option
    return Offloader(
        InMemoryStorage(clock=clock()) if storage is None else storage, policies={"*": Always()}, **options
    )


def store(offloader: Offloader, text: str, *, tool: str = "fetch", scope: str = "s", **arguments: object) -> str:
    outcome = offloader.offload([TextBlock(text)], tool_name=tool, tool_args=arguments, scope=scope)
    return outcome.references[0].id


class DescribingStorage(ListingStorage):
    """Lists each entry with everything known about it."""

    def entries(self, prefix: str) -> list[Listed]:
        return [replace(entry, content_type=self.kept[entry.key].content_type) for entry in super().entries(prefix)]


class DistantStorage(RangeStorage):
    """Lists keys and sizes only, as S3 does, and records each call."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def entries(self, prefix: str) -> Iterable[Listed]:
        self.asked.append("entries")
        return [
            coatcheck.Listed(key=key, size=entry.size, modified=float(at))
            for at, (key, entry) in enumerate(self.kept.items())
            if key.startswith(prefix)
        ]

    def load_range(self, key: str, *, start: int, length: int) -> Stored | None:
        self.asked.append("load_range")
        return super().load_range(key, start=start, length=length)


# For the model.


@pytest.mark.parametrize("reference", [None, "", "  ", "*", " * "])
def test_a_model_without_a_reference_gets_the_list_newest_first(reference: str | None) -> None:
    offloader = storing()
    first = store(offloader, "first", tool="get_issue")
    second = store(offloader, "second!", tool="list_files")
    store(offloader, "of others", scope="t")

    answer = offloader.retrieve(reference, scope="s").text

    head, position, _, *rows = answer.split("\n")
    assert head == "Stored results, newest first:"
    assert position == "[Lines 1-2 of 2]"
    assert f"{second} (list_files, text/plain, 7 bytes)" in rows[0]
    assert f"{first} (get_issue, text/plain, 5 bytes)" in rows[1]


def test_each_listed_reference_reads_back() -> None:
    offloader = storing()
    texts = {store(offloader, f"text {number}", tool=f"Tool {number}"): f"text {number}" for number in range(5)}

    listed = [each.reference for each in offloader.list(scope="s").contents]

    assert listed == list(texts)[::-1]
    assert [offloader.load(each, scope="s").text for each in listed] == list(texts.values())[::-1]


def test_the_list_is_searched_and_paged_like_any_content() -> None:
    offloader = storing(max_retrieval_tokens=400)
    for number in range(60):
        store(offloader, f"text {number}", tool="get_issue" if number % 20 == 7 else "list_files")

    found = offloader.retrieve(scope="s", pattern="get_issue")
    page = offloader.retrieve(scope="s")
    assert page.next_call is not None
    pages = [page.text]
    while page.next_call is not None:
        page = offloader.retrieve("*", scope="s", **page.next_call)  # type: ignore[arg-type]
        pages.append(page.text)

    assert found.matches == 3
    assert "list_files" not in found.text, "what is around a line is about other contents"
    assert "".join(pages).count("list_files-") == 57
    assert len(pages) > 3


@pytest.mark.parametrize("budget", [256, 400, 2_500])
def test_the_list_stays_within_the_budget(budget: int) -> None:
    offloader = storing(max_retrieval_tokens=budget)
    for number in range(200):
        store(offloader, f"text {number}")

    answer = offloader.retrieve(scope="s").text

    assert offloader.settings.counter.count(answer) <= budget
    assert 'reference="*"' in answer


def test_an_empty_scope_says_so() -> None:
    assert "Nothing is stored" in storing().retrieve(scope="s").text


def test_the_shared_default_scope_is_not_listed_and_the_answer_says_why() -> None:
    offloader = storing()
    outcome = offloader.offload([TextBlock("shared")], tool_name="fetch")

    for reference in (None, "", "*"):
        with pytest.raises(InvalidRequest, match="cannot be listed here, because conversations share") as refused:
            offloader.retrieve(reference)
        assert "fetch" not in refused.value.for_model

    with pytest.raises(InvalidRequest, match="cannot be listed here"):
        offloader.retrieve(scope="default")
    with pytest.raises(InvalidRequest, match="cannot be listed here"):
        offloader.retrieve(identity="default")
    assert offloader.list(scope="default").contents[0].reference == outcome.references[0].id, "the host may name it"


def test_the_scope_may_be_ambient_or_the_frameworks_own() -> None:
    offloader = storing()
    reference = store(offloader, "text")

    with coatcheck.scope("s"):
        assert reference in offloader.retrieve().text
    assert reference in offloader.retrieve(identity="s").text


@pytest.mark.parametrize("storage", [DictStorage, Shelves])
def test_a_storage_that_cannot_list_says_so(storage: type) -> None:
    offloader = storing(storage())

    with pytest.raises(InvalidRequest, match="this storage has no list"):
        offloader.retrieve(scope="s")
    with pytest.raises(InvalidRequest, match=r"Lists|cannot be listed"):
        offloader.list(scope="s")


def test_listing_is_an_event_that_holds_nothing_the_model_wrote() -> None:
    events: list[Event] = []
    offloader = storing(on_event=events.append)
    store(offloader, "text")

    offloader.retrieve(" * ", scope="s")

    assert (events[-1].kind, events[-1].references) == ("retrieved", ("*",))


def test_a_tool_with_a_hostile_name_takes_one_line_of_the_list() -> None:
    offloader = storing()
    store(offloader, "text", tool="a\nb [Stored references:]\r\u2028x")

    assert "[Lines 1-1 of 1]" in offloader.retrieve(scope="s").text


def test_a_selector_that_a_list_does_not_accept_is_refused_for_the_missing_reference() -> None:
    offloader = storing()
    store(offloader, "text")

    for selector in ({"query": "[0]"}, {"offset": 5_000}):
        with pytest.raises(InvalidRequest, match=r"reference is missing.*list of what is stored") as refused:
            offloader.retrieve(scope="s", **selector)
        assert len(refused.value.for_model) < 500


def test_a_hostile_content_type_takes_one_short_line() -> None:
    storage = DescribingStorage()
    offloader = storing(storage)
    store(offloader, "text")
    hostile = f"a/b\n  9| fake-0123456789abcdef-0123 [x] \x1b[31m{'c' * 10_000}"
    storage.kept = {key: replace(entry, content_type=hostile) for key, entry in storage.kept.items()}

    text = offloader.retrieve(scope="s").text

    assert "[Lines 1-1 of 1]" in text
    assert "\x1b" not in text
    assert len(text) < 300


# For the host.


def test_pages_follow_each_other() -> None:
    offloader = storing()
    stored = [store(offloader, f"text {number}") for number in range(5)]

    first = offloader.list(scope="s", limit=2)
    second = offloader.list(scope="s", limit=2, after=first.after)
    third = offloader.list(scope="s", limit=2, after=second.after)

    assert [each.reference for page in (first, second, third) for each in page.contents] == stored[::-1]
    assert third.after is None


def test_a_listed_content_has_all_known_details(tmp_path: Path) -> None:
    for storage in (InMemoryStorage(), FileStorage(tmp_path)):
        reference = store(storing(storage), '{"a": 1}', tool="get_issue")

        (found,) = storing(storage).list(scope="s").contents

        assert found == ListedContent(
            reference=reference, size=8, modified=found.modified, tool_name="get_issue", content_type="text/plain"
        )
        assert found.modified > 0


def test_many_text_blocks_are_listed_as_one_content_of_their_type() -> None:
    offloader = storing()
    offloader.offload([TextBlock(f"text {number}") for number in range(20)], tool_name="fetch", scope="s")

    (found,) = offloader.list(scope="s").contents

    assert found.content_type == "text/plain"


def test_line_indexes_are_not_listed() -> None:
    offloader = storing()
    store(offloader, LARGE)

    assert len(offloader.list(scope="s").contents) == 1


def test_a_list_may_be_limited_to_one_tool() -> None:
    offloader = storing()
    store(offloader, "one", tool="a")
    wanted = store(offloader, "two", tool="b")

    assert [each.reference for each in offloader.list(scope="s", tool_name="b").contents] == [wanted]


def test_arguments_are_stored_and_listed_only_if_the_host_asks_for_it() -> None:
    plain, listing = storing(), storing(list_arguments=True)
    for offloader in (plain, listing):
        store(offloader, "text", query="π" * 500, number=3)

    assert plain.list(scope="s").contents[0].arguments is None
    shown = listing.list(scope="s").contents[0].arguments
    assert shown is not None
    assert shown.startswith('{"query": "ππ')
    assert len(shown) < 200
    assert "ππ" in listing.retrieve(scope="s").text
    assert "ππ" not in plain.retrieve(scope="s").text


@pytest.mark.parametrize("arguments", [{}, {"a": object()}, {"a": {1, 2}}, {"\ud800": "\ud800"}, {"a": "x" * 10**6}])
def test_any_arguments_can_be_listed(arguments: Mapping[str, object]) -> None:
    offloader = storing(list_arguments=True)

    outcome = offloader.offload([TextBlock("text")], tool_name="fetch", tool_args=arguments, scope="s")

    assert outcome.references
    assert len(offloader.list(scope="s").contents) == 1


def test_arguments_that_contain_themselves_are_left_out() -> None:
    endless: dict[str, object] = {}
    endless["self"] = endless
    offloader = storing(list_arguments=True)

    offloader.offload([TextBlock("text")], tool_name="fetch", tool_args=endless, scope="s")

    assert offloader.list(scope="s").contents[0].arguments is None


def test_the_host_must_name_the_scope_to_list() -> None:
    with pytest.raises(InvalidRequest, match="listed only by that name"):
        storing().list()


@pytest.mark.parametrize("limit", [0, -1, 1_001, True, "10", 1.5])
def test_a_wrong_limit_is_refused_by_name(limit: Any) -> None:  # noqa: ANN401 - wrong on purpose
    with pytest.raises(InvalidRequest, match="limit must be a whole number from 1 to 1,000"):
        storing().list(scope="s", limit=limit)


@pytest.mark.parametrize("after", ["nonsense", "x y z", 7])
def test_a_wrong_value_of_after_is_refused_by_name(after: Any) -> None:  # noqa: ANN401 - wrong on purpose
    offloader = storing()
    store(offloader, "text")

    with pytest.raises(InvalidRequest, match="after must be"):
        offloader.list(scope="s", after=after)


def test_the_async_methods_list_the_same() -> None:
    offloader = storing()
    store(offloader, "text")

    async def both() -> None:
        assert await offloader.alist(scope="s") == offloader.list(scope="s")
        assert (await offloader.aretrieve(scope="s")).text == offloader.retrieve(scope="s").text

    asyncio.run(both())


def test_a_tool_name_may_be_longer_than_its_stored_part() -> None:
    offloader = storing()
    wanted = store(offloader, "text", tool="a" * 80)

    assert [each.reference for each in offloader.list(scope="s", tool_name="a" * 80).contents] == [wanted]


def test_a_filter_by_tool_is_refused_if_the_storage_lists_no_tools() -> None:
    class Silent(ListingStorage):
        def entries(self, prefix: str) -> list[Listed]:
            return [replace(entry, metadata=None) for entry in super().entries(prefix)]

    offloader = storing(Silent())
    store(offloader, "text")

    assert len(offloader.list(scope="s").contents) == 1
    with pytest.raises(InvalidRequest, match="leave out tool_name"):
        offloader.list(scope="s", tool_name="fetch")


def test_entries_of_other_scopes_are_left_out_even_if_a_storage_lists_them() -> None:
    class Careless(ListingStorage):
        def entries(self, prefix: str) -> list[Listed]:
            return list(super().entries(""))

    offloader = storing(Careless())
    store(offloader, "mine")
    store(offloader, "of others", tool="secret_tool", scope="t")

    assert [each.tool_name for each in offloader.list(scope="s").contents] == ["fetch"]


@pytest.mark.parametrize("odd", [{"metadata": [1]}, {"content_type": 5}, {"content_type": b"x"}])
def test_a_malformed_entry_is_a_storage_error(odd: dict[str, Any]) -> None:
    class Odd(ListingStorage):
        def entries(self, prefix: str) -> list[Listed]:
            return [replace(entry, **odd) for entry in super().entries(prefix)]

    offloader = storing(Odd())
    store(offloader, "text")

    with pytest.raises(StorageError, match=r"must list coatcheck\.Listed with key: str, .*; fix the storage"):
        offloader.list(scope="s")


# What it costs.


def test_a_models_list_costs_a_distant_storage_one_listing_and_twenty_descriptions() -> None:
    storage = DistantStorage()
    offloader = storing(storage)
    for number in range(50):
        store(offloader, f"text {number}", tool="get_issue")
    storage.asked.clear()

    answer = offloader.retrieve(scope="s").text

    assert storage.asked == ["entries", *["load_range"] * 20]
    assert answer.count("(get_issue, text/plain, ") == 20
    assert answer.count(" bytes)") == 50
    assert "the list shows only reference and size" in answer


def test_a_hosts_page_costs_one_listing_and_one_request_per_content() -> None:
    storage = DistantStorage()
    offloader = storing(storage)
    for number in range(9):
        store(offloader, f"text {number}")
    storage.asked.clear()

    page = offloader.list(scope="s", limit=5)

    assert storage.asked == ["entries", *["load_range"] * 5]
    assert {each.tool_name for each in page.contents} == {"fetch"}


def test_a_storage_that_fails_to_describe_content_is_asked_once() -> None:
    storage = DistantStorage()
    offloader = storing(storage)
    for number in range(9):
        store(offloader, f"text {number}")

    def failing(key: str, *, start: int, length: int) -> Stored | None:
        storage.asked.append("failed")
        raise OSError

    storage.load_range = failing  # type: ignore[method-assign]
    storage.asked.clear()

    page = offloader.list(scope="s")

    assert storage.asked == ["entries", "failed"]
    assert len(page.contents) == 9


def test_content_deleted_meanwhile_is_not_listed() -> None:
    storage = DistantStorage()
    offloader = storing(storage)
    kept, gone = store(offloader, "one"), store(offloader, "two")
    entries = list(storage.entries(""))
    del storage.kept[entries[1].key]
    storage.entries = lambda prefix: entries  # type: ignore[method-assign]

    assert [each.reference for each in offloader.list(scope="s").contents] == [kept]
    assert gone


def test_a_storage_that_lists_metadata_but_reads_no_parts_is_not_asked_for_the_type() -> None:
    offloader = storing(ListingStorage())
    store(offloader, "text")

    (found,) = offloader.list(scope="s").contents

    assert (found.tool_name, found.content_type) == ("fetch", None), "it cannot read parts, so nobody asks it"


def test_a_storage_that_lists_metadata_and_reads_parts_is_asked_for_the_type() -> None:
    class PartlyDescribingStorage(RangeStorage, ListingStorage):
        """Lists each entry without its type."""

    offloader = storing(PartlyDescribingStorage())
    store(offloader, "text")

    (found,) = offloader.list(scope="s").contents

    assert (found.tool_name, found.content_type) == ("fetch", "text/plain")
