"""What a replay measures: the real placeholders; what stays, what is left alone, and that the numbers add up."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import InvalidRequest, MediaBlock
from coatcheck.core.blocks import JsonBlock, OpaqueBlock, TextBlock, ToolResult
from coatcheck.core.notice import RETRIEVAL_TOOL
from coatcheck.core.plan import media_tokens
from coatcheck.core.tokens import TiktokenCounter
from coatcheck.offloader import Offloader
from coatcheck.replay.billing import CACHED, CALL_TOKENS, DEFINITION, OTHER, PLAIN, BilledDefinition, BilledResult
from coatcheck.replay.conversation import Conversation, Part, Result, Turn, Words
from coatcheck.replay.formats import read_messages
from coatcheck.replay.measure import (
    Left,
    conversation_report,
    count_conversation,
    find_left,
    offloaded_parts,
    offloader_for,
    plain_parts,
    reads_by_need,
    reads_of_each,
)
from coatcheck.replay.needs import find_needs
from coatcheck.replay.report import Assumptions, ConversationReport
from tests.replay.samples import ANSWER, BIG, QUESTION, anthropic, openai, strands

if TYPE_CHECKING:
    from collections.abc import Sequence

COUNTER = TiktokenCounter()
BIG_TOKENS = COUNTER.count(BIG)
GIVEN = Assumptions(
    thresholds=(1_000, 2_500, 50_000, 200_000),
    retrievals=0,
    retrieval_tokens=2_500,
    definition_tokens=0,
)


def replayed(messages: list[dict[str, Any]], given: Assumptions = GIVEN) -> ConversationReport:
    return replayed_parts(read_messages(messages)[1], given)


def replayed_parts(parts: Sequence[Part], given: Assumptions = GIVEN) -> ConversationReport:
    conversation = Conversation(name="c", source="file", recorded_as="", parts=tuple(parts))
    return conversation_report(count_conversation(conversation, COUNTER), given, counter=COUNTER)


def placeholder_tokens(threshold: int) -> int:
    outcome = Offloader(max_result_tokens=threshold).offload([TextBlock(BIG)], tool_name="search", scope="replay")
    return sum(COUNTER.count(block.text) for block in outcome.blocks if isinstance(block, TextBlock))


def test_a_big_result_is_billed_as_its_real_placeholder() -> None:
    report = replayed(openai(BIG))

    asked = COUNTER.count(QUESTION) + COUNTER.count('search{"words": "lost umbrella"}')
    assert report.row.without.tokens == COUNTER.count(QUESTION) + asked + BIG_TOKENS
    for amount in report.row.amounts[:2]:
        assert amount.offloaded == 1
        assert amount.billed.tokens == COUNTER.count(QUESTION) + asked + placeholder_tokens(amount.threshold)
    assert report.turns == 2
    assert report.sizes == (BIG_TOKENS,)
    (leaving,) = report.leaving
    assert (leaving.tool, leaving.turn, leaving.tokens) == ("search", 1, BIG_TOKENS)
    assert leaving.placeholder_tokens == {threshold: placeholder_tokens(threshold) for threshold in (1_000, 2_500)}


def test_a_threshold_above_every_result_saves_nothing_and_costs_only_the_tools_definition() -> None:
    nothing = replayed(openai(BIG)).row
    definition = replayed(openai(BIG), replace(GIVEN, definition_tokens=200, retrievals=3)).row

    assert nothing.amounts[-1].offloaded == 0
    assert nothing.amounts[-1].billed == nothing.without
    assert definition.amounts[-1].billed.tokens == nothing.without.tokens + 2 * 200


def test_an_assumed_read_back_costs_a_call_an_answer_and_a_turn() -> None:
    without = replayed(openai(BIG)).row.at(2_500).billed.tokens
    asked = COUNTER.count(QUESTION) + COUNTER.count('search{"words": "lost umbrella"}')

    with_one = replayed(openai(BIG), replace(GIVEN, retrievals=1, retrieval_tokens=300)).row.at(2_500).billed.tokens

    assert with_one - without == asked + placeholder_tokens(2_500) + CALL_TOKENS + 300


def test_an_answer_is_never_longer_than_the_result() -> None:
    _, parts = read_messages(openai(BIG))
    plain = plain_parts(parts, COUNTER)
    offloader = offloader_for(1_000, None, counter=COUNTER, answer_tokens=2_500)

    reads = reads_of_each(find_left(parts, plain, needs={}, offloader=offloader), plain, times=2, tokens=10**9)

    assert [read.tokens for read in reads[3]] == [BIG_TOKENS, BIG_TOKENS]


def left_of(parts: Sequence[Part]) -> dict[int, Left]:
    offloader = offloader_for(1_000, None, counter=COUNTER, answer_tokens=2_500)
    return find_left(parts, plain_parts(parts, COUNTER), needs=find_needs(parts), offloader=offloader)


def needing(answer: str) -> list[dict[str, Any]]:
    """Return a conversation whose last turn says ``answer``, a few turns after the result."""
    return [*openai(BIG), {"role": "user", "content": "and?"}, {"role": "assistant", "content": answer}]


def test_by_need_a_result_is_read_back_just_before_the_turn_that_uses_what_the_preview_lacks() -> None:
    _, parts = read_messages(needing("It is in row 500."))
    plain = plain_parts(parts, COUNTER)
    offloader = offloader_for(1_000, None, counter=COUNTER, answer_tokens=2_500)

    left = find_left(parts, plain, needs=find_needs(parts), offloader=offloader)

    assert list(reads_by_need(left)) == [5]
    (read,) = reads_by_need(left)[5]
    assert read.tool == "search"
    found = offloader.retrieve(
        offloader.offload([TextBlock(BIG)], tool_name="search", scope="replay").references[0],
        pattern="500",
        scope="replay",
    )
    assert read.tokens == COUNTER.count(found.text)
    assert "row 500" in found.text


@pytest.mark.parametrize("answer", ["It is in row 999.", "It is in a coat.", ANSWER])
def test_by_need_a_result_is_not_read_back_for_what_the_preview_shows_or_nobody_used(answer: str) -> None:
    report = replayed(needing(answer), replace(GIVEN, retrievals=None)).row.at(1_000)

    assert report.offloaded == 1
    assert report.read_back == 0
    assert report.billed == report.never_read


def test_the_bounds_are_no_read_back_and_one_per_result_under_any_assumption() -> None:
    row = replayed(needing("It is in row 500."), replace(GIVEN, retrievals=None)).row.at(1_000)

    assert row.read_back == 1
    for times, bound in ((0, row.never_read), (1, row.each_read)):
        assert replayed(needing("It is in row 500."), replace(GIVEN, retrievals=times)).row.at(1_000).billed == bound
    assert row.never_read.tokens < row.billed.tokens < row.each_read.tokens


def test_several_contents_are_searched_until_all_missing_spans_are_found() -> None:
    other = BIG.replace("row", "shelf")
    parts: list[Part] = [
        Turn(()),
        Result(ToolResult(blocks=(TextBlock(BIG), JsonBlock({"a": other.splitlines()})), tool_name="t")),
        Turn((TextBlock("Row 500 and shelf 501, or `shelf 502`."),)),
    ]

    left = left_of(parts)

    assert left[1].search is not None
    first = left_of([*parts[:1], Result(ToolResult(blocks=(TextBlock(BIG),), tool_name="t")), *parts[2:]])
    assert first[1].search is not None
    assert left[1].search.tokens > first[1].search.tokens
    assert left[1].search.turn == 2


def test_a_search_for_many_spans_is_cut_to_the_longest_pattern() -> None:
    said = " ".join(str(number) for number in range(200, 900))

    assert replayed(needing(said), replace(GIVEN, retrievals=None)).row.at(1_000).read_back == 1


def test_the_prefix_and_the_definition_are_sent_with_every_turn() -> None:
    none = replayed(openai(BIG)).row
    report = replayed(openai(BIG), replace(GIVEN, prefix_tokens=1_000, definition_tokens=200))

    assert report.row.without.tokens == none.without.tokens + 2 * 1_000
    assert report.row.at(1_000).billed.tokens == none.at(1_000).billed.tokens + 2 * 1_200
    by_name = {row.name: row for row in report.tools}
    assert by_name[DEFINITION].at(1_000).billed.tokens == 2 * 200


def test_a_tool_offered_on_demand_comes_with_the_first_offloaded_result() -> None:
    _, parts = read_messages(openai(BIG))
    plain = plain_parts(parts, COUNTER)
    left = find_left(parts, plain, needs={}, offloader=offloader_for(1_000, None, counter=COUNTER, answer_tokens=2_500))

    late = offloaded_parts(plain, left, reads={}, definition=200, when_needed=True)
    never = offloaded_parts(plain, {}, reads={}, definition=200, when_needed=True)

    assert late.index(BilledDefinition(200)) == 2
    assert isinstance(late[3], BilledResult)
    assert never == plain


def test_previews_have_the_given_size() -> None:
    small, default = (
        replayed(openai(BIG), replace(GIVEN, preview_tokens=tokens)).row.at(2_500) for tokens in (100, None)
    )

    assert small.billed.tokens < default.billed.tokens - 300
    assert replayed(openai(BIG), replace(GIVEN, preview_tokens=5_000)).row.at(1_000).offloaded == 1


def test_prices_are_relative_to_the_price_of_a_token_or_in_money() -> None:
    assert (GIVEN.plain, GIVEN.cached, GIVEN.deciding) == (PLAIN, CACHED, PLAIN)
    priced = replace(GIVEN, price=4.0)
    assert priced.cached.new == pytest.approx(5e-6)
    assert priced.cached.cached == pytest.approx(0.4e-6)
    assert priced.deciding == priced.plain
    told = replace(priced, cached_price=1.0, written_price=4.0)
    assert (told.cached.new, told.cached.cached) == pytest.approx((4e-6, 1e-6))
    assert told.deciding == told.cached


def test_errors_stay_as_in_an_agent() -> None:
    assert replayed(anthropic(BIG, is_error=True)).row.at(1_000).offloaded == 0
    assert replayed(anthropic(BIG)).row.at(1_000).offloaded == 1


def test_results_of_the_retrieval_tool_stay() -> None:
    messages = openai(BIG, name=RETRIEVAL_TOOL)

    assert replayed(messages).row.at(1_000).offloaded == 0


@pytest.mark.parametrize(
    "result",
    [
        Offloader(max_result_tokens=4_000)
        .offload([TextBlock(BIG)], tool_name="search", scope="another")
        .blocks[0]
        .text,  # type: ignore[union-attr]
        "[Offloaded: 1 blocks, ~12,000 tokens]\n" + BIG,
    ],
    ids=["ours", "Strands' own"],
)
def test_a_result_that_was_recorded_offloaded_is_left_alone(result: str) -> None:
    report = replayed(openai(result), replace(GIVEN, thresholds=(100,)))

    assert report.already_offloaded == 1
    assert report.row.at(100).offloaded == 0
    assert report.row.at(100).billed == report.row.without


def test_a_result_with_an_adapters_mark_is_left_alone() -> None:
    assert replayed(strands(BIG, coatcheck={})).already_offloaded == 1
    assert replayed(strands(BIG, coatcheck={})).row.at(1_000).offloaded == 0


def test_a_result_that_only_mentions_offloading_is_offloaded() -> None:
    report = replayed(openai("Tool result offloaded. [Offloaded: nothing at all]\n" + BIG))

    assert report.already_offloaded == 0
    assert report.row.at(1_000).offloaded == 1


def test_media_cost_by_their_type_and_unknown_blocks_by_their_json() -> None:
    at_an_address = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}
    picture = {"type": "image", "base64": base64.b64encode(b"p" * 9_000).decode(), "mime_type": "image/png"}
    unknown = {"type": "weather", "sun": True}

    (size,) = replayed(anthropic([picture, at_an_address, unknown, {"type": "json", "json": {"a": 1}}])).sizes

    texts = ('{"type":"weather","sun":true}', '{"a":1}')
    assert size == 2 * media_tokens(MediaBlock(b"x", "image/png")) + sum(map(COUNTER.count, texts))


def test_json_that_no_tool_returns_is_reported_with_its_place() -> None:
    nested: Any = None
    for _ in range(100_000):
        nested = [nested]

    with pytest.raises(InvalidRequest, match="file: c: "):
        replayed_parts([Turn(()), Result(ToolResult(blocks=(OpaqueBlock({"a": nested}),), tool_name="t"))])


TEXTS = st.sampled_from(["", "short", BIG[:4_000], BIG[:20_000], BIG])
PARTS = st.lists(
    st.one_of(
        st.builds(lambda text: Words((TextBlock(text),)), TEXTS),
        st.builds(lambda text: Turn((TextBlock(text),)), st.sampled_from(["", ANSWER])),
        st.builds(
            lambda text, tool, error: Result(ToolResult(blocks=(TextBlock(text),), tool_name=tool, is_error=error)),
            TEXTS,
            st.sampled_from(["search", "read"]),
            st.booleans(),
        ),
    ),
    min_size=1,
    max_size=8,
)


@given(PARTS, st.integers(0, 2))
def test_the_rows_of_all_tools_add_up_to_the_conversation(parts: list[Part], retrievals: int) -> None:
    report = replayed_parts(parts, replace(GIVEN, retrievals=retrievals, definition_tokens=200))

    assert sum(row.results for row in report.tools) == report.row.results == len(report.sizes)
    assert sum(row.without.tokens for row in report.tools) == report.row.without.tokens
    assert sum(row.without.new_tokens for row in report.tools) == report.row.without.new_tokens
    for threshold in GIVEN.thresholds:
        amounts = [row.at(threshold) for row in report.tools]
        assert sum(amount.offloaded for amount in amounts) == report.row.at(threshold).offloaded
        assert sum(amount.billed.tokens for amount in amounts) == report.row.at(threshold).billed.tokens
    assert next(row for row in report.tools if row.name == OTHER).results == 0


@given(PARTS)
def test_offloading_without_read_backs_never_costs_more(parts: list[Part]) -> None:
    report = replayed_parts(parts)

    assert all(amount.billed.tokens <= report.row.without.tokens for amount in report.row.amounts)
    assert [amount.offloaded for amount in report.row.amounts] == sorted(
        (amount.offloaded for amount in report.row.amounts), reverse=True
    )
