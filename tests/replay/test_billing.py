"""What a conversation costs: examples that can be checked by hand, and rules that always hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.replay.billing import (
    CACHED,
    CALL_TOKENS,
    DEFINITION,
    OTHER,
    PLAIN,
    BilledDefinition,
    BilledPart,
    BilledReadBack,
    BilledResult,
    BilledTurn,
    BilledWords,
    Price,
    Share,
    bill,
)

CONVERSATION: list[BilledPart] = [
    BilledWords(10),
    BilledTurn(5),  # sent 10
    BilledResult("search", 1_000),
    BilledTurn(7),  # sent 10 + 5 + 1,000
    BilledWords(3),
    BilledTurn(2),  # sent 10 + 5 + 1,000 + 7 + 3
]


def test_every_turn_sends_again_all_that_came_before_it() -> None:
    billed = bill(CONVERSATION)

    assert billed.total.tokens == 10 + 1_015 + 1_025
    assert billed.shares["search"] == Share(2 * 1_000, 1_000)
    assert billed.shares[OTHER] == Share(10 + 15 + 25, 25)


def test_the_last_turn_and_all_that_follows_it_are_never_sent() -> None:
    assert bill([*CONVERSATION, BilledResult("search", 9_999)]).total == bill(CONVERSATION).total


def test_a_conversation_without_a_turn_is_billed_nothing() -> None:
    assert bill([BilledDefinition(5), BilledWords(10)]).total == Share()


def test_the_opening_of_a_conversation_is_sent_with_every_turn() -> None:
    billed = bill([BilledDefinition(200), *CONVERSATION])

    assert billed.total.tokens == bill(CONVERSATION).total.tokens + 3 * 200
    assert billed.shares[DEFINITION] == Share(3 * 200, 200)
    assert billed.total.new_tokens == bill(CONVERSATION).total.new_tokens + 200


def test_a_tool_that_is_offered_late_invalidates_the_cache() -> None:
    parts: list[BilledPart] = [BilledWords(10), BilledTurn(5), BilledDefinition(200), BilledTurn(7), BilledTurn(0)]

    billed = bill(parts)

    assert billed.total.tokens == 10 + (10 + 5 + 200) + (10 + 5 + 200 + 7)
    assert billed.total.new_tokens == 10 + (10 + 5 + 200) + 7
    assert billed.shares[DEFINITION] == Share(400, 200)


def test_a_read_back_is_a_turn_of_its_own_and_stays_in_the_conversation() -> None:
    parts: list[BilledPart] = [
        BilledWords(10),
        BilledTurn(5),
        BilledResult("search", 100),
        BilledReadBack("search", 40),
        BilledTurn(7),
    ]

    billed = bill(parts)

    more = 10 + 5 + 100  # the turn that asks for the read-back
    last = 10 + 5 + 100 + CALL_TOKENS + 40
    assert billed.total.tokens == 10 + more + last
    assert billed.shares["search"].tokens == more + 100 + CALL_TOKENS + 40
    assert billed.shares[OTHER].tokens == 10 + 15


def test_read_backs_follow_each_other_and_each_is_billed_to_its_tool() -> None:
    parts: list[BilledPart] = [
        BilledTurn(0),
        BilledResult("a", 100),
        BilledResult("b", 200),
        BilledReadBack("a", 1),
        BilledReadBack("b", 2),
        BilledTurn(0),
    ]

    billed = bill(parts)

    first, second = 300, 300 + CALL_TOKENS + 1
    last = second + CALL_TOKENS + 2
    assert billed.total.tokens == first + second + last
    assert billed.shares["a"].tokens == first + 100 + CALL_TOKENS + 1
    assert billed.shares["b"].tokens == second + 200 + CALL_TOKENS + 2


def test_a_price_is_the_sum_over_cached_and_new_tokens() -> None:
    share = Share(3_000_000, 1_000_000)

    assert PLAIN.of(share) == pytest.approx(3e6)
    assert CACHED.of(share) == pytest.approx(1.25e6 + 0.2e6)
    assert Price(new=4e-6, cached=0.5e-6).of(share) == pytest.approx(4.0 + 2 * 0.5)


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.floats(0, 1e-3))
def test_without_a_cache_it_does_not_matter_what_is_new(tokens: int, new: int, price: float) -> None:
    flat = Price(new=price, cached=price)

    assert flat.of(Share(tokens, min(new, tokens))) == flat.of(Share(tokens, 0))


TOKENS = st.integers(0, 10_000)
TOOLS = st.sampled_from(["search", "read"])
RECORDED = st.one_of(
    st.builds(BilledWords, TOKENS), st.builds(BilledTurn, TOKENS), st.builds(BilledResult, TOOLS, TOKENS)
)
ADDED = st.one_of(st.builds(BilledReadBack, TOOLS, TOKENS), st.builds(BilledDefinition, TOKENS))


@given(st.lists(RECORDED))
def test_a_bill_is_the_sum_over_turns_of_what_came_before(parts: list[BilledPart]) -> None:
    turns = [position for position, part in enumerate(parts) if isinstance(part, BilledTurn)]

    billed = bill(parts)

    assert billed.total.tokens == sum(part.tokens for turn in turns for part in parts[:turn])
    assert billed.total.new_tokens == sum(part.tokens for part in parts[: max(turns, default=0)])


@given(st.lists(RECORDED | ADDED))
def test_a_read_back_costs_as_much_as_its_call_and_answer_as_parts(parts: list[BilledPart]) -> None:
    """Compare with the conversation that has its read-backs written out as turns and results."""
    written: list[BilledPart] = []
    for part in parts:
        if isinstance(part, BilledReadBack):
            written += [BilledTurn(CALL_TOKENS), BilledResult(part.tool, part.tokens)]
        else:
            written.append(part)

    assert bill(parts).total == bill(written).total


@given(st.lists(RECORDED | ADDED))
def test_no_share_has_more_new_tokens_than_tokens(parts: list[BilledPart]) -> None:
    shares = bill(parts).shares.values()

    assert all(0 <= share.new_tokens <= share.tokens for share in shares)
