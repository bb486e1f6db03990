"""A result of many text blocks is stored as one content. Each block is found in it, and is read back exactly."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coatcheck import (
    Always,
    ByteCounter,
    FileStorage,
    InMemoryStorage,
    JsonBlock,
    MediaBlock,
    Offloaded,
    Offloader,
    OpaqueBlock,
    TextBlock,
    Truncated,
)
from coatcheck.engine.entries import damage
from coatcheck.engine.execution import StorageAccess, run
from tests.core.storages import DictStorage, FailingStorage, RangeStorage, Shelves

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from coatcheck import Block

ROWS = [json.dumps({"id": number, "name": f"customer {number}"}, indent=2) for number in range(60)]


def offloaded(storage: Any, blocks: Sequence[Block | str]) -> tuple[Offloader, Offloaded]:  # noqa: ANN401 - of any kind
    offloader = Offloader(storage, token_counter=ByteCounter(), policies={"*": Always()})
    given = [TextBlock(block) if isinstance(block, str) else block for block in blocks]
    outcome = offloader.offload(given, tool_name="rows", scope="s")
    assert isinstance(outcome, Offloaded)
    return offloader, outcome


def encoded(texts: Sequence[str]) -> tuple[bytes, ...]:
    return tuple(text.encode("utf-8", "surrogatepass") for text in texts)


ODD = st.text(st.characters() | st.sampled_from("\n\r\0\ud800\udfff\u2028é漢"), max_size=12)


@given(filled=st.lists(ODD.filter(bool), min_size=9, max_size=30), empty=st.lists(st.integers(0, 29), max_size=5))
@example(filled=["\n"] * 9, empty=[0, 0, 9])
@example(filled=["a\r", "\n", "\r\n", "\0", "\ud83d", "\ude00", "\udfff", "x\n\n", "\ufeff"], empty=[])
def test_every_text_block_comes_back_exactly(filled: list[str], empty: list[int]) -> None:
    texts = list(filled)
    for place in empty:
        texts.insert(place, "")

    offloader, outcome = offloaded(InMemoryStorage(), texts)

    (reference,) = outcome.references
    content = offloader.load(reference, scope="s")
    assert content.items == encoded(texts)
    assert content.data == b"\n".join(encoded(texts))
    assert (reference.items, reference.content_type, content.content_type) == (len(texts), "text/plain", "text/plain")


@pytest.mark.parametrize("storage", [DictStorage, RangeStorage, InMemoryStorage])
def test_every_text_block_of_a_result_over_a_megabyte_comes_back_exactly(storage: type) -> None:
    texts = [f"{number} é\n{'x' * 300}" for number in range(5_000)]

    offloader, outcome = offloaded(storage(), texts)

    assert offloader.load(outcome.references[0], scope="s").items == encoded(texts)
    found = offloader.retrieve(outcome.references[0], scope="s", pattern="^4321 é")
    assert "> 8643 [item 4322]| 4321 é" in found.text


def test_eight_text_blocks_stay_apart_and_empty_ones_do_not_count() -> None:
    offloader, outcome = offloaded(InMemoryStorage(), ["a", "", "b", "c", "d", "e", "f", "g", "h", ""])

    assert len(outcome.references) == 8
    assert [offloader.load(reference, scope="s").items for reference in outcome.references] == [None] * 8
    assert len(offloaded(InMemoryStorage(), "abcdefghi")[1].references) == 1


def test_different_items_with_the_same_joined_bytes_are_different_content() -> None:
    storage = InMemoryStorage()
    one = ["a\nb", "c", *"defghij"]
    other = ["a", "b\nc", *"defghij"]
    text = "\n".join(one)
    assert text == "\n".join(other)

    offloader, first = offloaded(storage, one)
    _, second = offloaded(storage, other)
    _, third = offloaded(storage, [text])

    assert len({str(outcome.references[0]) for outcome in (first, second, third)}) == 3
    assert offloader.load(first.references[0], scope="s").items == encoded(one)
    assert offloader.load(second.references[0], scope="s").items == encoded(other)
    assert offloader.load(third.references[0], scope="s").items is None


def test_json_values_become_items_while_media_and_unknown_blocks_do_not() -> None:
    image, native = MediaBlock(b"image", "image/png"), OpaqueBlock(object())
    blocks: list[Block | str] = [native, *"abcd", image, JsonBlock({"page": 1}), *"efghi"]

    offloader, outcome = offloaded(InMemoryStorage(), blocks)

    texts, medium = outcome.references
    assert offloader.load(texts, scope="s").items == encoded([*"abcd", '{"page":1}', *"efghi"])
    assert offloader.load(medium, scope="s").data == b"image"
    assert outcome.blocks[0] is native or outcome.blocks[1] is native
    assert "[Offloaded: 11 blocks" in outcome.text
    assert "(text/plain, 10 items, " in outcome.text


def test_one_search_covers_all_items_and_names_the_matching_ones() -> None:
    offloader, outcome = offloaded(InMemoryStorage(), ROWS)

    found = offloader.retrieve(outcome.references[0], scope="s", pattern="customer 4[78]", context_lines=1)

    assert found.text == (
        "[2 matches for /customer 4[78]/]\n\n"
        '  190|   "id": 47,\n> 191 [item 48]|   "name": "customer 47"\n  192| }\n---\n'
        '  194|   "id": 48,\n> 195 [item 49]|   "name": "customer 48"\n  196| }'
    )


def test_a_match_in_a_long_line_names_its_item() -> None:
    offloader, outcome = offloaded(InMemoryStorage(), ["<" + "x" * 5_000 + f" {number} needle>" for number in range(9)])

    found = offloader.retrieve(outcome.references[0], scope="s", pattern="7 needle")

    assert "> 8 [item 8, characters " in found.text


def test_a_match_that_does_not_fit_names_its_item() -> None:
    storage = InMemoryStorage()
    _, outcome = offloaded(storage, [f"{number} " + "漢" * 900 for number in range(9)])
    offloader = Offloader(storage, token_counter=ByteCounter(), max_retrieval_tokens=256)

    assert " [item 4, characters " in offloader.retrieve(outcome.references[0], scope="s", pattern="^3 漢+").text


def test_a_query_sees_each_item_even_if_it_spans_many_lines() -> None:
    offloader, outcome = offloaded(InMemoryStorage(), ROWS)

    one = offloader.retrieve(outcome.references[0], scope="s", query="[?id==`47`].name")
    each = offloader.retrieve(outcome.references[0], scope="s", query="name", offset=-20)

    assert '\n"customer 47"\n' in one.text
    assert "each item queried by itself, 60 of 60 gave a result" in each.text
    assert '60| "customer 59"' in each.text


def test_the_preview_of_object_items_is_a_table_whose_gaps_name_readable_lines() -> None:
    offloader, outcome = offloaded(
        InMemoryStorage(), [json.dumps({"id": n, "b": "x" * 40}, indent=2) for n in range(900)]
    )
    first = re.search(r"\[… lines (\d+)-[\d,]+ of 3,600 not shown", outcome.text)

    assert "\n900 JSON objects, one a line: id (each row shown has b: " in outcome.text
    assert first is not None
    start = int(first[1])
    read = offloader.retrieve(outcome.references[0], scope="s", line_range=f"{start}-{start + 1}").text
    assert read.endswith(f'{start}| {{\n  {start + 1}|   "id": {(start - 1) // 4},')


def test_items_that_are_not_json_are_queried_by_line() -> None:
    offloader, outcome = offloaded(InMemoryStorage(), ['{"id": 1}\n{"id": 2}'] * 9)

    found = offloader.retrieve(outcome.references[0], scope="s", query="id")
    assert "each line queried by itself, 18 of 18" in found.text


def test_twenty_thousand_text_blocks_take_two_saves() -> None:
    storage = DictStorage()

    offloader, outcome = offloaded(storage, [f'{{"i": {number}, "v": {number * 7}}}' for number in range(20_000)])

    assert len(storage.kept) == 2
    found = offloader.retrieve(outcome.references[0], scope="s", pattern="139993")
    assert found.matches == 1
    assert "[item 20000]" in found.text
    assert "[Offloaded: 20000 blocks, ~" in outcome.text


def test_the_file_of_joined_text_blocks_opens_as_text(tmp_path: Path) -> None:
    offloader, outcome = offloaded(FileStorage(tmp_path), ROWS)

    (path,) = tmp_path.rglob("*.txt")
    assert path.read_text() == "\n".join(ROWS)
    assert offloader.load(outcome.references[0], scope="s").items == encoded(ROWS)


def test_the_item_index_is_verified_and_deleted_with_its_content(tmp_path: Path) -> None:
    storage = FileStorage(tmp_path)
    offloader, _ = offloaded(storage, ROWS)
    keys = {entry.key for entry in storage.entries("")}

    assert len(keys) == 2
    for entry in storage.entries(""):
        assert run(damage(StorageAccess(storage), entry, keys=keys)) is None
    assert offloader.delete_scope("s") == 1
    assert list(storage.entries("")) == []


@pytest.mark.parametrize("change", ["gone", "no index", "of others"])
def test_without_the_item_index_the_joined_content_is_still_found(change: str) -> None:
    storage = DictStorage()
    offloader, outcome = offloaded(storage, ROWS)
    (key,) = [key for key in storage.kept if key.endswith("-lines")]
    if change == "gone":
        del storage.kept[key]
    else:
        entry = storage.kept[key]
        index = b"{}" if change == "no index" else entry.content.replace(b'"items":[0,', b'"items":[0,1,')
        assert index != entry.content
        storage.kept[key] = replace(entry, content=index, size=len(index))

    content = offloader.load(outcome.references[0], scope="s")

    assert content.items is None
    assert content.data == b"\n".join(encoded(ROWS))
    found = offloader.retrieve(outcome.references[0], scope="s", pattern="customer 47")
    assert found.matches == 1


@pytest.mark.parametrize("items", ["0", "[]", "[1]", "[0, 2, 2]", "[0, 99999]", "[0, true]", '["0"]', "[0, -1]"])
def test_an_index_with_impossible_items_is_ignored(items: str) -> None:
    storage = DictStorage()
    offloader, outcome = offloaded(storage, ROWS)
    (key,) = [key for key in storage.kept if key.endswith("-lines")]
    entry = storage.kept[key]
    index = {**json.loads(entry.content), "items": json.loads(items)}
    changed = json.dumps(index).encode()
    storage.kept[key] = replace(entry, content=changed, size=len(changed))

    assert offloader.load(outcome.references[0], scope="s").items is None
    assert "[item" not in offloader.retrieve(outcome.references[0], scope="s", pattern="customer 47").text


def test_a_storage_that_names_its_references_keeps_the_joined_text_but_no_item_starts() -> None:
    offloader, outcome = offloaded(Shelves(), ROWS)

    (reference,) = outcome.references
    content = offloader.load(reference, scope="s")
    assert content.data == b"\n".join(encoded(ROWS))
    assert content.items is None
    assert "(text/plain, 60 items, " in outcome.text
    assert offloader.retrieve(reference, scope="s", pattern="customer 47").matches == 1


def test_text_blocks_that_cannot_be_stored_are_cut_together() -> None:
    offloader = Offloader(
        FailingStorage(after=1), token_counter=ByteCounter(), max_result_tokens=600, max_inline_tokens=1_000
    )

    outcome = offloader.offload([TextBlock(f"{number} " * 900) for number in range(20)], tool_name="rows")

    assert isinstance(outcome, Truncated)
    (block,) = outcome.blocks
    assert isinstance(block, TextBlock)
    assert "0 0 0" in block.text
    assert "19 19 19" in block.text


# The mark that a message keeps.


@pytest.mark.parametrize("count", [9, 20_000])
def test_the_mark_of_a_message_is_short_for_any_number_of_text_blocks(count: int) -> None:
    _, outcome = offloaded(InMemoryStorage(), [f"text {number}" for number in range(count)])

    assert outcome.mark == {"references": [str(outcome.references[0])]}


def test_the_mark_of_a_message_with_many_media_names_the_index_and_the_totals() -> None:
    media = [MediaBlock(b"%d" % number, "image/png") for number in range(1_000, 1_300)]

    offloader, outcome = offloaded(InMemoryStorage(), media)

    assert outcome.index == outcome.references[-1]
    assert outcome.mark == {"references": [str(outcome.index)], "blocks": 300, "bytes": 1_200}
    listed = offloader.load(str(outcome.index), scope="s").text.splitlines()
    assert [line.split()[1] for line in listed] == [str(reference) for reference in outcome.references[:-1]]


def test_eight_references_are_all_in_the_mark() -> None:
    _, outcome = offloaded(InMemoryStorage(), "abcdefgh")

    assert outcome.index is None
    assert outcome.mark == {"references": [str(reference) for reference in outcome.references]}
