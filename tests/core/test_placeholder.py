"""Building a placeholder: what fits, what is left out first, and how several previews share one budget."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import (
    Always,
    ByteCounter,
    MediaBlock,
    Offloaded,
    Offloader,
    OpaqueBlock,
    TextBlock,
    TiktokenCounter,
)
from coatcheck.core.facts import Estimate, Reference
from coatcheck.core.notice import MAX_LISTED
from coatcheck.core.placeholder import (
    FIRST_SHOWN,
    LAST_SHOWN,
    Placeholder,
    ReadyPreview,
    Slot,
    build_placeholder,
    cut_to,
)
from coatcheck.core.plan import Offload
from coatcheck.core.preview import Previewed
from coatcheck.core.tokens import CountedOnce

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coatcheck import Block

COUNTER = ByteCounter()
TOKENS = Estimate(90_000, exact=False)
INDEX = Reference(id="tool-" + "f" * 16 + "-ffff", content_type="text/plain", size=900)
UNKNOWN = OpaqueBlock({"type": "of another client"})


def _text(number: int = 0, *, lines: int = 4_000) -> Slot:
    text = "".join(f"{number} {line}\n" for line in range(lines))
    content = Previewed(text=text, content_type="text/plain", lines=lines)
    return Slot(block=TextBlock(text), content=content, reference=_reference(number, len(text)))


def _image(number: int = 0) -> Slot:
    return Slot(block=MediaBlock(b"an image", "image/png"), reference=_reference(number, 8))


def _wide(number: int) -> Slot:
    """Return a slot with a long reference, like those of storages that choose their own."""
    reference = Reference(id=f"tool-{number:016x}-{'x' * 400}", content_type="image/png", size=8)
    return Slot(block=MediaBlock(b"an image", "image/png"), reference=reference)


def _reference(number: int, size: int) -> Reference:
    return Reference(id=f"tool-{number:016x}-0000", content_type="text/plain", size=size)


def _build(
    slots: Sequence[Slot], *, limit: int | None = None, preview_tokens: int = 0, full_list: Reference | None = None
) -> Placeholder | None:
    decision = Offload(limit=limit, preview_tokens=preview_tokens, exact_up_to=10_000)
    return build_placeholder(
        slots,
        decision,
        counter=CountedOnce(COUNTER),
        tokens=TOKENS,
        retrieval_tool="retrieve",
        full_list=full_list,
        max_query_bytes=8_000,
    )


def _built(
    slots: Sequence[Slot], *, limit: int | None = None, preview_tokens: int = 0, full_list: Reference | None = None
) -> Placeholder:
    made = _build(slots, limit=limit, preview_tokens=preview_tokens, full_list=full_list)
    assert made is not None
    assert made.tokens == _cost(made.blocks)
    assert limit is None or made.tokens <= limit
    return made


def _cost(blocks: Sequence[Block]) -> int:
    return sum(COUNTER.count(block.text) for block in blocks if isinstance(block, TextBlock))


def _notice(made: Placeholder) -> str:
    assert isinstance(made.blocks[0], TextBlock)
    return made.blocks[0].text


def _named(made: Placeholder) -> list[int]:
    """Return the numbers of the slots that the notice names."""
    return [int(digits, 16) for digits in re.findall(r"tool-([0-9a-e]{16})-", _notice(made))]


# The limit of the whole placeholder.


@pytest.mark.parametrize(
    ("text", "size", "proposed"),
    [
        ('{"rows": [1, 2]}', 8_000, True),
        ('\ufeff\n [{"a": 1}]', 8_000, True),
        ('{"rows": [1, 2]}', 8_001, False),
        ("[[-1.5e3, null]]", 8_000, True),
        ("[ NaN ]", 8_000, True),
        ("{ }", 8_000, True),
        ("id,name\n1,Ann", 8_000, False),
        ("<html></html>", 8_000, False),
        ("[2026-11-27 03:23:07] job 1: ok", 8_000, False),
        ("[INFO] job 1: ok", 8_000, False),
        ("[{'id': 1}]", 8_000, False),
        ("[Row(id=1)]", 8_000, False),
    ],
    ids=[
        "object",
        "list behind a mark and blanks",
        "too large to query",
        "lists in a list",
        "list of what Python alone writes",
        "empty object",
        "CSV",
        "HTML",
        "log with times",
        "log with levels",
        "str() of dicts",
        "str() of models",
    ],
)
def test_a_query_is_proposed_if_the_text_may_be_json(text: str, size: int, proposed: bool) -> None:
    slot = Slot(block=TextBlock(text), content=Previewed.of(text), reference=_reference(1, size))

    assert ("query" in _notice(_built([slot]))) is proposed


def test_a_query_is_proposed_if_one_of_several_text_blocks_may_be_json() -> None:
    slots = [
        Slot(block=TextBlock(text), content=Previewed.of(text), reference=_reference(number, 100))
        for number, text in enumerate(["a log", "[1, 2]"])
    ]

    assert "(reference, pattern | line_range | query | offset)" in _notice(_built(slots))


def test_previews_shrink_until_the_placeholder_fits_its_limit() -> None:
    made = _built([_text()], limit=1_000, preview_tokens=990)

    assert made.tokens > 950, "the room is not used"
    assert "0 0\n0 1\n" in _notice(made)
    assert _notice(made).endswith("0 3999\n")


def test_several_previews_shrink_over_as_many_rounds_as_needed() -> None:
    # One round may not be enough, because each heading and each gap costs tokens too.
    slots = [_text(number, lines=900 * number) for number in range(1, MAX_LISTED + 1)]
    made = _built(slots, limit=1_500, preview_tokens=1_490)

    assert _notice(made).count("[Preview of") == MAX_LISTED
    assert made.tokens > 1_350


@given(limit=st.integers(512, 3_000), preview_tokens=st.integers(0, 3_000), texts=st.integers(1, MAX_LISTED))
def test_a_placeholder_never_exceeds_its_limit(limit: int, preview_tokens: int, texts: int) -> None:
    slots = [_text(number, lines=500) for number in range(texts)]
    made = _build(slots, limit=limit, preview_tokens=preview_tokens)

    assert made is None or made.tokens == _cost(made.blocks) <= limit


def test_a_limit_that_just_fits_the_notice_leaves_no_preview_and_one_token_less_no_placeholder() -> None:
    slots = [_text(), *(replace(_wide(number), block=TextBlock("x")) for number in range(1, MAX_LISTED))]
    bare = _built(slots).tokens

    assert bare > 512, "smaller limits are not held"
    assert "0 0\n" not in _notice(_built(slots, limit=bare, preview_tokens=500))
    assert _build(slots, limit=bare - 1, preview_tokens=500) is None


def test_without_a_limit_previews_take_their_whole_budget() -> None:
    made = _build([_text()], limit=None, preview_tokens=600)

    assert made is not None
    assert made.tokens > 600


def test_descriptions_of_media_are_left_out_before_references() -> None:
    slots = [*(_wide(number) for number in range(MAX_LISTED)), Slot(block=UNKNOWN)]
    whole = _built(slots)
    tight = _built(slots, limit=whole.tokens - 1)

    assert len(whole.blocks) == 1 + MAX_LISTED + 1
    assert tight.blocks[1:] == (UNKNOWN,), "a block that nobody knows always passes"
    assert _named(tight) == list(range(MAX_LISTED))


# References.


@pytest.mark.parametrize("stored", [1, 2, MAX_LISTED])
def test_few_references_are_all_listed_in_order(stored: int) -> None:
    assert _named(_built([_image(number) for number in range(stored)])) == list(range(stored))


@pytest.mark.parametrize("stored", [MAX_LISTED + 1, 40, 3_000])
def test_only_the_first_and_last_of_many_references_and_the_index_are_listed(stored: int) -> None:
    made = _built([_image(number) for number in range(stored)], full_list=INDEX)

    assert _named(made) == [*range(FIRST_SHOWN), *range(stored - LAST_SHOWN, stored)]
    assert INDEX.id in _notice(made)
    assert f"the {stored - FIRST_SHOWN - LAST_SHOWN:,} not shown" in _notice(made)


def test_when_nothing_else_fits_only_the_index_is_listed() -> None:
    made = _built([_wide(number) for number in range(20)], full_list=INDEX, limit=512)

    assert _named(made) == []
    assert INDEX.id in _notice(made)
    assert "the 20 not shown" in _notice(made)


def test_without_stored_content_there_is_no_placeholder() -> None:
    assert _build([Slot(block=UNKNOWN)]) is None


def test_only_listed_content_is_previewed() -> None:
    slots = [_text(number, lines=20) for number in range(20)]
    previews = re.findall(
        r"\[Preview of tool-([0-9a-e]{16})-", _notice(_built(slots, preview_tokens=2_000, full_list=INDEX))
    )

    assert [int(digits, 16) for digits in previews] == [0, 1, 2, 3, 18, 19]


# Previews.


@pytest.mark.parametrize("sizes", [(4_000, 4_000), (300, 4_000, 4_000), (4_000,) * 8])
def test_several_previews_with_their_headings_stay_within_one_budget(sizes: tuple[int, ...]) -> None:
    offloader = Offloader(token_counter=COUNTER, preview_tokens=900)
    content = [
        TextBlock("".join(f"{number} {line}\n" for line in range(size))) for number, size in enumerate(sizes, start=1)
    ]
    outcome = offloader.offload(content, tool_name="read_the_files_of_a_whole_folder", policy=Always())

    assert isinstance(outcome, Offloaded)
    text = "".join(block.text for block in outcome.blocks if isinstance(block, TextBlock))
    previews = text[text.index("[Preview of") :]
    assert previews.count("[Preview of") == len(sizes)
    assert 800 < COUNTER.count(previews) <= 900


@pytest.mark.parametrize("budget", range(40, 80))
def test_previews_that_cost_more_tokens_below_their_headings_stay_within_the_budget_too(budget: int) -> None:
    paths = [TextBlock("".join(f"/{name}{line}\n" for line in range(2_000))) for name in ("usr/lib/", "opt/lib")]
    outcome = Offloader(preview_tokens=budget, max_result_tokens=1_000).offload(paths, tool_name="t", policy=Always())

    assert isinstance(outcome, Offloaded)
    block, *_ = outcome.blocks
    assert isinstance(block, TextBlock)
    assert TiktokenCounter().count(block.text.partition("\n\n")[2]) <= budget  # "]" and "\n/" take less than "]\n/"


def test_budget_that_a_short_text_does_not_need_goes_to_the_longer_ones() -> None:
    made = _notice(_built([_text(0), _text(1, lines=10), _text(2)], preview_tokens=600))
    parts = re.split(r"\[Preview of [^\n]*\n", made)[1:]

    assert parts[1].strip() == _text(1, lines=10).block.text.strip()  # type: ignore[union-attr]  # a text block
    assert all(COUNTER.count(part) > 250 for part in (parts[0], parts[2]))


@pytest.mark.parametrize(("budget", "shown"), [(300, True), (301, False), (299, False)])
def test_a_ready_preview_is_used_for_its_own_budget_only(budget: int, *, shown: bool) -> None:
    item = _text()
    ready = Slot(
        block=item.block,
        content=item.content,
        reference=item.reference,
        preview=ReadyPreview(300, "made while the content was hashed"),
    )

    assert ("made while the content was hashed" in _notice(_built([ready], preview_tokens=budget))) == shown


# A result that could not be stored.


def _cut(slots: Sequence[Slot], limit: int) -> tuple[Block, ...]:
    return cut_to(slots, limit, counter=CountedOnce(COUNTER), tool_name="read_log", tokens=TOKENS, reason="disk full")


@pytest.mark.parametrize("limit", [200, 1_000, 5_000])
@pytest.mark.parametrize("texts", [1, 3])
def test_a_lost_result_is_cut_to_its_limit_and_uses_most_of_it(limit: int, texts: int) -> None:
    blocks = _cut([_text(number) for number in range(texts)], limit)

    assert isinstance(blocks[0], TextBlock)
    assert limit * 0.85 < _cost(blocks) <= limit
    assert "disk full" in blocks[0].text
    assert "read_log" in blocks[0].text
    assert not re.search(r"tool-[0-9a-f]{16}", blocks[0].text), "it refers to what was not stored"


def test_a_cut_result_keeps_its_unknown_blocks_and_marks_its_media() -> None:
    blocks = _cut([_image(), Slot(block=UNKNOWN), _text(), Slot(block=MediaBlock(b"", "image/png"))], 600)

    assert isinstance(blocks[1], TextBlock)
    assert blocks[1].text.startswith("[image: png, 8 bytes")
    assert "tool-" not in blocks[1].text
    assert blocks[2:] == (UNKNOWN, MediaBlock(b"", "image/png"))
    assert _cost(blocks) <= 600


def test_when_not_even_the_notice_fits_the_notice_stands_alone() -> None:
    (alone,) = _cut([_text()], 1)

    assert isinstance(alone, TextBlock)
    assert "0 0\n" not in alone.text
    assert "disk full" in alone.text
