"""Storages that choose their own references: what they are asked for, what is shown, and who may read it."""

from __future__ import annotations

import re
import time
import unicodedata
from urllib.parse import unquote

import pytest

from coatcheck import (
    ByteCounter,
    InvalidRequest,
    Kept,
    MediaBlock,
    Offloaded,
    Offloader,
    ReferenceExpired,
    ReferenceNotFound,
    Stored,
    TextBlock,
    Truncated,
)
from coatcheck.core.references import find_storage_references, suggested_name
from tests.core.storages import Shelves

BIG = TextBlock("".join(f"line {number}\n" for number in range(5_000)))
ALICE, BOB = "alice", "bob"


class AsyncShelves:
    """``Shelves`` with async methods."""

    def __init__(self) -> None:
        self.shelves = Shelves()

    async def save_named(self, name: str, content: bytes, *, content_type: str) -> str:
        return self.shelves.save_named(name, content, content_type=content_type)

    async def load(self, key: str) -> Stored | None:
        return self.shelves.load(key)


def offloader(storage: Shelves | AsyncShelves) -> Offloader:
    return Offloader(storage, max_result_tokens=600, token_counter=ByteCounter())


def offloaded(storage: Shelves, *blocks: TextBlock | MediaBlock, scope: str = ALICE, tool: str = "search") -> Offloaded:
    outcome = offloader(storage).offload(blocks, tool_name=tool, scope=scope)
    assert isinstance(outcome, Offloaded)
    return outcome


def test_the_name_suggested_to_a_storage_is_a_slug_and_two_digests() -> None:
    storage = Shelves()

    offloaded(storage, BIG, tool="../../Search the web!", scope="tenant/7")

    (name,) = storage.names
    assert re.fullmatch(r"search_the_web_[0-9a-f]{16}_scope_[0-9a-f]{16}", name)


def test_the_storages_own_reference_is_shown_and_accepted_unchanged() -> None:
    storage = Shelves()
    outcome = offloaded(storage, BIG)
    reference = f"shelf://7/{storage.names[0]}.bin"

    assert [str(one) for one in outcome.references] == [reference]
    assert f"\n  {reference} (text/plain, {len(BIG.text):,} bytes)" in outcome.text
    assert offloader(storage).load(reference, scope=ALICE).text == BIG.text
    answer = offloader(storage).retrieve(f" `{reference}` ", scope=ALICE, line_range=(41, 42)).text
    assert "line 40\n" in answer
    assert f'"{reference}"' in offloader(storage).retrieve(reference, scope=ALICE).text, "the literal next call"


async def test_an_async_storage_may_choose_its_references_too() -> None:
    storage = AsyncShelves()
    outcome = await offloader(storage).aoffload((BIG,), tool_name="search", scope=ALICE)

    assert isinstance(outcome, Offloaded)
    content = await offloader(storage).aload(str(outcome.references[0]), scope=ALICE)
    assert content.text == BIG.text


def test_two_results_of_one_tool_do_not_overwrite_each_other() -> None:
    storage = Shelves()
    other = TextBlock(BIG.text.replace("line", "row"))
    references = [str(offloaded(storage, block).references[0]) for block in (BIG, other)]

    assert [offloader(storage).load(reference, scope=ALICE).text for reference in references] == [BIG.text, other.text]


def test_the_same_result_has_the_same_placeholder_again() -> None:
    assert offloaded(Shelves(), BIG).blocks == offloaded(Shelves(), BIG).blocks


def test_a_reference_that_names_another_scope_is_unknown() -> None:
    storage = Shelves()
    reference = str(offloaded(storage, BIG).references[0])

    with pytest.raises(ReferenceNotFound) as error:
        offloader(storage).load(reference, scope=BOB)

    assert not isinstance(error.value, ReferenceExpired)


@pytest.mark.parametrize("around", ["{hers}/{his}/..", "{his}/../{hers}", "{his} {hers}", "{hers}0"])
def test_a_reference_crafted_around_that_of_another_scope_is_unknown(around: str) -> None:
    storage = Shelves("{}")
    hers, his = (str(offloaded(storage, BIG, scope=scope).references[0]) for scope in (ALICE, BOB))
    crafted = around.format(hers=hers, his=his)
    storage.kept[crafted] = storage.kept[hers]

    with pytest.raises(ReferenceNotFound):
        offloader(storage).load(crafted, scope=BOB)


class Folding(Shelves):
    """Finds names like servers and file systems that decode percent-escapes and ignore case or invisible characters."""

    def load(self, key: str) -> Stored | None:
        return super().load(unicodedata.normalize("NFD", unquote(unquote(key))).casefold().replace("\u200d", ""))


@pytest.mark.parametrize(
    "respelled", ["_SCOPE_", "_\u017fcope_", "_sco\u200dpe_", "_%73cope_", "%255Fscope_", "_%C5%BFcope_"]
)
def test_respelling_a_name_opens_no_other_scope(respelled: str) -> None:
    storage = Folding()
    reference = str(offloaded(storage, BIG).references[0]).replace("_scope_", respelled)

    with pytest.raises(ReferenceNotFound):
        offloader(storage).load(reference, scope=BOB)
    assert offloader(storage).load(reference, scope=ALICE).text == BIG.text


def test_a_storage_may_add_to_the_name() -> None:
    storage = Shelves("{}0")
    reference = str(offloaded(storage, BIG).references[0])

    assert offloader(storage).load(reference, scope=ALICE).text == BIG.text
    with pytest.raises(ReferenceNotFound):
        offloader(storage).load(reference.upper(), scope=BOB)


def test_a_tool_named_like_a_scope_opens_no_other_scope() -> None:
    storage = Shelves()
    bobs = suggested_name("x", BOB, digest="0" * 64).rpartition("_")[2]
    reference = str(offloaded(storage, BIG, tool=f"scope_{bobs}").references[0])

    assert f"scope_{bobs}" in reference
    with pytest.raises(ReferenceNotFound):
        offloader(storage).load(reference, scope=BOB)


def test_a_reference_of_this_scope_whose_content_is_gone_is_expired() -> None:
    storage = Shelves()
    reference = str(offloaded(storage, BIG).references[0])
    storage.kept.clear()

    with pytest.raises(ReferenceExpired, match="call again the tool"):
        offloader(storage).retrieve(reference, scope=ALICE)


def test_a_reference_that_was_never_made_is_unknown() -> None:
    with pytest.raises(ReferenceNotFound) as error:
        offloader(Shelves()).retrieve("shelf://7/never-made.bin", scope=ALICE)

    assert not isinstance(error.value, ReferenceExpired)


@pytest.mark.parametrize("reference", ["", "  ", "x" * 4_097])
def test_a_string_that_cannot_be_a_reference_is_refused(reference: str) -> None:
    with pytest.raises(InvalidRequest, match="reference"):
        offloader(Shelves()).retrieve(reference, scope=ALICE)


def test_anyone_with_the_reference_reads_a_storage_that_drops_the_name() -> None:
    storage = Shelves("slot-1")
    reference = str(offloaded(storage, BIG).references[0])

    assert offloader(storage).load(reference, scope=BOB).text == BIG.text


@pytest.mark.parametrize("answer", [None, 7, "", " padded ", "two\nlines", "x" * 4_097])
def test_an_answer_that_is_not_a_reference_leaves_the_result_in_the_conversation(answer: object) -> None:
    storage = Shelves()
    storage.save_named = lambda *_, **__: answer  # type: ignore[method-assign, assignment]

    outcome = offloader(storage).offload((BIG,), tool_name="search", scope=ALICE)

    assert outcome == Kept(blocks=(BIG,), reason="storage failed")


def test_if_the_storage_fails_a_result_stays_and_a_huge_one_is_cut() -> None:
    storage = Shelves()
    storage.shape = "{missing}"

    kept = offloader(storage).offload((BIG,), tool_name="search", scope=ALICE)
    cut = Offloader(storage, max_inline_tokens=2_600, token_counter=ByteCounter()).offload(
        (BIG,), tool_name="search", scope=ALICE
    )

    assert isinstance(kept, Kept)
    assert isinstance(cut, Truncated)


def test_a_placeholder_is_not_offloaded_again() -> None:
    storage = Shelves()
    outcome = offloaded(storage, BIG)

    again = Offloader(storage, max_result_tokens=100, token_counter=ByteCounter()).offload(
        outcome.blocks, tool_name="agent", scope=ALICE
    )

    assert again == Kept(blocks=outcome.blocks, reason="exempt")


def test_expand_replaces_the_references_of_its_scope_only() -> None:
    storage = Shelves()
    mine, yours = (str(offloaded(storage, BIG, scope=scope).references[0]) for scope in (ALICE, BOB))

    expanded = offloader(storage).expand(f"See [{mine}], not {yours}.", scope=ALICE)

    assert expanded == f"See [{BIG.text}], not {yours}."


def test_expand_leaves_a_word_too_long_for_a_reference_alone() -> None:
    storage = Shelves()
    reference = str(offloaded(storage, BIG).references[0])
    row = "cell," * 1_000 + reference

    assert offloader(storage).expand(f"{row}\n{reference}", scope=ALICE) == f"{row}\n{BIG.text}"


def test_a_long_word_is_searched_for_references_in_linear_time() -> None:
    def took(length: int) -> float:
        started = time.process_time()
        assert not list(find_storage_references("QUJD" * length, ALICE))
        return time.process_time() - started

    long, short = (min(took(length) for _ in range(3)) for length in (8_000, 2_000))
    assert long < 8 * short + 0.05


def test_media_and_text_of_one_result_each_have_a_reference() -> None:
    storage = Shelves()
    image = MediaBlock(b"\x89PNG" * 500, "image/png")
    text, medium = offloaded(storage, BIG, image).references

    assert offloader(storage).load(str(medium), scope=ALICE).data == image.data
    assert offloader(storage).retrieve(str(medium), scope=ALICE, native_media=True).blocks == (image,)
    assert offloader(storage).load(str(text), scope=ALICE).text == BIG.text


@pytest.mark.parametrize("part", ["\0", "\ud800"], ids=ascii)
def test_a_reference_that_no_storage_can_accept_is_unknown_without_asking_it(part: str) -> None:
    class Strict(Shelves):
        def load(self, key: str) -> Stored | None:
            message = f"asked for {key!r}"
            raise ValueError(message)

    storage = Strict()
    [reference] = offloaded(storage, BIG).references
    for asked in (f"{part}{reference}", f"{str(reference)[:9]}{part}{str(reference)[9:]}", part * 5):
        with pytest.raises(ReferenceNotFound) as unknown:
            offloader(storage).load(asked, scope=ALICE)
        assert not isinstance(unknown.value, ReferenceExpired)
