"""The decision: what stays, what leaves, and how much of it may be shown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import (
    Always,
    Block,
    ByteCounter,
    JsonBlock,
    MediaBlock,
    Never,
    OpaqueBlock,
    OverChars,
    OverShare,
    OverTokens,
    Settings,
    TextBlock,
    TiktokenCounter,
)
from coatcheck.core.blocks import fits_bytes
from coatcheck.core.plan import (
    NOTICE_TOKENS,
    REFERENCE_TOKENS,
    Decision,
    Keep,
    Measure,
    Offload,
    decide,
    fit_step,
    media_tokens,
)
from tests.core.strategies import blocks, texts

if TYPE_CHECKING:
    from coatcheck.core.policy import Rule

SETTINGS = Settings()


def _tokens(number: int) -> TextBlock:
    return TextBlock("abcd" * number)


def _decide(
    *content: Block,
    rule: Rule,
    is_error: bool = False,
    measured_tokens: int | None = None,
    settings: Settings = SETTINGS,
) -> Decision:
    measure = Measure(content, ByteCounter(), measured_tokens=measured_tokens)
    return decide(measure, rule, settings=settings, is_error=is_error)


@pytest.mark.parametrize(("size", "leaves"), [(2_499, False), (2_500, False), (2_501, True)])
def test_a_result_at_the_threshold_stays_and_one_above_it_leaves(size: int, leaves: bool) -> None:
    assert isinstance(_decide(_tokens(size), rule=OverTokens(2_500)), Offload) == leaves
    assert isinstance(_decide(_tokens(size), rule=OverShare(0.025, context_window=100_000)), Offload) == leaves
    assert isinstance(_decide(_tokens(size), rule=OverChars(10_000)), Offload) == leaves


def test_blocks_count_together() -> None:
    assert isinstance(_decide(_tokens(1_500), JsonBlock(["abcd" * 1_500]), rule=OverTokens(2_500)), Offload)


def test_media_are_counted_by_type_and_never_by_their_bytes() -> None:
    image = MediaBlock(b"x" * 5_000_000, "image/png")

    assert _decide(image, rule=OverTokens(2_500)) == Keep(reason="within the threshold")
    assert isinstance(_decide(image, image, rule=OverTokens(2_500)), Offload)
    assert isinstance(_decide(MediaBlock(b"x", "application/pdf"), rule=OverTokens(2_500)), Offload)
    video, audio, picture = (media_tokens(MediaBlock(b"x", of)) for of in ("video/mp4", "audio/mpeg", "image/png"))
    assert video > audio > picture


def test_a_text_document_counts_its_text_and_leaves_above_the_hard_limit() -> None:
    table = MediaBlock(b"1;2\n" * 100_000, "text/csv")

    assert media_tokens(table) == 100_000
    assert isinstance(_decide(table, rule=Never()), Offload)
    assert _decide(MediaBlock(table.data, "application/pdf"), rule=Never()) == Keep(reason="policy")
    assert _decide(MediaBlock(b"1;2", "text/csv"), rule=Never()) == Keep(reason="policy")


@pytest.mark.parametrize(
    ("rule", "is_error", "reason"),
    [
        (Never(), False, "policy"),
        (OverTokens(10), True, "error"),
        (OverChars(10_000_000), False, "within the threshold"),
    ],
)
def test_a_result_that_would_stay_leaves_above_max_inline_tokens(rule: Rule, is_error: bool, reason: str) -> None:
    kept = _decide(_tokens(50_000), rule=rule, is_error=is_error)
    left = _decide(_tokens(50_001), rule=rule, is_error=is_error)

    assert kept == Keep(reason=reason)  # type: ignore[arg-type]
    assert isinstance(left, Offload)
    assert left.limit == 50_000


def test_no_policy_threshold_goes_beyond_max_inline_tokens() -> None:
    assert isinstance(_decide(_tokens(50_001), rule=OverTokens(1_000_000)), Offload)


def test_errors_leave_if_the_host_says_so() -> None:
    settings = Settings(offload_errors=True)

    assert isinstance(_decide(_tokens(2_501), rule=OverTokens(2_500), is_error=True, settings=settings), Offload)


@pytest.mark.parametrize("content", [(), (TextBlock(""),), (OpaqueBlock(object()),), (MediaBlock(b"", "image/png"),)])
def test_a_result_without_content_stays_under_every_policy(content: tuple[Block, ...]) -> None:
    assert _decide(*content, rule=Always()) == Keep(reason="nothing to store")


def test_the_frameworks_own_count_decides_if_there_is_one() -> None:
    assert isinstance(_decide(_tokens(10), rule=OverTokens(2_500), measured_tokens=2_501), Offload)
    assert isinstance(_decide(_tokens(9_000), rule=OverTokens(2_500), measured_tokens=2_500), Keep)


@pytest.mark.parametrize(
    ("rule", "preview"),
    [(OverTokens(2_500), 500), (OverTokens(1_000), 400), (OverChars(2_000), 200), (Always(), 500)],
)
def test_a_preview_takes_at_most_two_fifths_of_the_threshold_that_fired(rule: Rule, preview: int) -> None:
    decision = _decide(_tokens(5_000), rule=rule)

    assert isinstance(decision, Offload)
    assert decision.preview_tokens == preview


@pytest.mark.parametrize(("threshold", "limit"), [(511, None), (512, 512), (2_500, 2_500)])
def test_a_threshold_limits_the_placeholder_only_from_512_tokens(threshold: int, limit: int | None) -> None:
    decision = _decide(_tokens(5_000), rule=OverTokens(threshold))

    assert isinstance(decision, Offload)
    assert decision.limit == limit


def test_media_of_exactly_the_threshold_stay() -> None:
    image = MediaBlock(b"image", "image/png")

    assert isinstance(_decide(image, rule=OverTokens(media_tokens(image))), Keep)
    assert isinstance(_decide(image, rule=OverTokens(media_tokens(image) - 1)), Offload)


@given(content=st.lists(blocks(), max_size=5), limit=st.integers(0, 5_000))
def test_text_that_fits_a_limit_in_bytes_fits_it_in_tokens(content: list[Block], limit: int) -> None:
    if fits_bytes(content, limit):
        assert not Measure(content, TiktokenCounter()).exceeds(limit)


@given(content=st.lists(st.builds(TextBlock, texts(pieces=4)), max_size=4), limit=st.integers(0, 200))
def test_text_fits_a_limit_if_it_has_no_more_bytes(content: list[Block], limit: int) -> None:
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in Measure(content, ByteCounter()).texts if text)

    assert fits_bytes(content, limit) == (size <= limit)


@given(content=st.lists(blocks(), max_size=5), limit=st.integers(0, 5_000))
def test_exceeds_agrees_with_counting_everything(content: list[Block], limit: int) -> None:
    counter = ByteCounter()
    measure = Measure(content, counter)
    total = measure.media + sum(counter.count(text) for text in measure.texts if text)

    assert measure.exceeds(limit) == (total > limit)


@given(
    sizes=st.lists(st.integers(1, 6_000), max_size=8),
    exempt=st.sets(st.integers(0, 7)),
    budget=st.integers(1, 9_000),
)
def test_a_step_offloads_its_largest_results_and_no_more_than_it_must(
    sizes: list[int], exempt: set[int], budget: int
) -> None:
    rules = [Never() if index in exempt else OverTokens(2_500) for index in range(len(sizes))]
    measures = [Measure((_tokens(size),), ByteCounter()) for size in sizes]
    alone = [
        decide(measure, rule, settings=SETTINGS, is_error=False) for measure, rule in zip(measures, rules, strict=True)
    ]
    together = fit_step(list(zip(measures, alone, strict=True)), budget, settings=SETTINGS)
    moved = [
        size for size, before, after in zip(sizes, alone, together, strict=True) if type(before) is not type(after)
    ]
    movable = [
        size
        for index, (size, after) in enumerate(zip(sizes, together, strict=True))
        if isinstance(after, Keep) and index not in exempt and size > 512
    ]
    previews = [decision.preview_tokens for decision in together if isinstance(decision, Offload)]
    kept = sum(size for size, decision in zip(sizes, together, strict=True) if isinstance(decision, Keep))

    assert not any(isinstance(together[index], Offload) for index in exempt if index < len(sizes))
    assert max(movable, default=0) <= min(moved, default=math.inf)
    if movable:
        assert kept + sum(previews) <= budget, "something could still leave"
    if moved:
        assert kept + max(moved) + sum(previews) > budget - len(previews) * NOTICE_TOKENS, "nothing had to leave"
    if max(previews, default=0) < 400:
        assert len({preview for preview in previews if preview < 400}) <= 2, "small previews are alike but for rounding"


def test_the_largest_previews_of_a_step_shrink_to_equal_sizes_before_a_smaller_one_loses_any() -> None:
    measures = [Measure((_tokens(size),), ByteCounter()) for size in (6_000, 600, 6_000)]
    alone = [decide(measure, OverTokens(2_500), settings=SETTINGS, is_error=False) for measure in measures]
    together = fit_step(list(zip(measures, alone, strict=True)), 840 + 3 * NOTICE_TOKENS, settings=SETTINGS)

    assert [decision.preview_tokens for decision in together if isinstance(decision, Offload)] == [300, 239, 301]


def test_a_result_of_several_blocks_leaves_the_previews_of_a_step_less_room() -> None:
    measure = Measure((*[_tokens(1_500)] * 3, OpaqueBlock(None)), ByteCounter())
    alone = decide(measure, OverTokens(2_500), settings=SETTINGS, is_error=False)
    budget = 2 * (200 + NOTICE_TOKENS + 3 * REFERENCE_TOKENS)
    together = fit_step([(measure, alone)] * 2, budget, settings=SETTINGS)

    assert [decision.preview_tokens for decision in together if isinstance(decision, Offload)] == [200, 200]


def test_a_step_that_fits_is_left_as_it_is() -> None:
    measure = Measure((_tokens(2_000),), ByteCounter())
    kept = decide(measure, OverTokens(2_500), settings=SETTINGS, is_error=False)

    assert fit_step([(measure, kept)] * 3, 6_000, settings=SETTINGS) == [kept] * 3
