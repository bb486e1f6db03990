"""What a conversation costs as it is billed: examples that can be checked by hand, and rules that always hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.replay.billing import (
    CALL_TOKENS,
    DEFINITION,
    OTHER,
    BilledPart,
    BilledResult,
    BilledTurn,
    BilledWords,
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


def test_every_turn_sends_all_that_stands_before_it_again() -> None:
    billed = bill(CONVERSATION)

    assert billed.total.tokens == 10 + 1_015 + 1_025
    assert billed.shares["search"] == Share(2 * 1_000, 1_000)
    assert billed.shares[OTHER] == Share(10 + 15 + 25, 25)


def test_what_the_last_turn_wrote_and_what_follows_it_is_sent_to_nobody() -> None:
    assert bill([*CONVERSATION, BilledResult("search", 9_999)]).total == bill(CONVERSATION).total


def test_a_conversation_without_a_turn_is_billed_nothing() -> None:
    assert bill([BilledWords(10)], opening_tokens=5, retrievals=3).total == Share()


def test_what_opens_a_conversation_is_sent_with_every_turn() -> None:
    billed = bill(CONVERSATION, opening_tokens=200)

    assert billed.total.tokens == bill(CONVERSATION).total.tokens + 3 * 200
    assert billed.shares[DEFINITION] == Share(3 * 200, 200)
    assert billed.total.new_tokens == bill(CONVERSATION).total.new_tokens + 200


def test_a_read_back_is_a_turn_of_its_own_and_stays_in_the_conversation() -> None:
    parts: list[BilledPart] = [
        BilledWords(10),
        BilledTurn(5),
        BilledResult("search", 100, read_back_tokens=40),
        BilledTurn(7),
    ]

    billed = bill(parts, retrievals=1)

    more = 10 + 5 + 100  # the turn that asks for the read-back
    last = 10 + 5 + 100 + CALL_TOKENS + 40
    assert billed.total.tokens == 10 + more + last
    assert billed.shares["search"].tokens == more + 100 + CALL_TOKENS + 40
    assert billed.shares[OTHER].tokens == 10 + 15


def test_read_backs_of_one_step_follow_each_other_after_all_of_its_results() -> None:
    parts: list[BilledPart] = [
        BilledTurn(0),
        BilledResult("a", 100, read_back_tokens=1),
        BilledResult("b", 200, read_back_tokens=2),
        BilledTurn(0),
    ]

    billed = bill(parts, retrievals=2)

    first = 300
    step = CALL_TOKENS
    sent = [first, first + step + 1, first + 2 * (step + 1), first + 2 * (step + 1) + step + 2]
    last = first + 2 * (step + 1) + 2 * (step + 2)
    assert billed.total.tokens == sum(sent) + last
    assert billed.shares["a"].tokens == sent[0] + sent[1] + 100 + 2 * (step + 1)
    assert billed.shares["b"].tokens == sent[2] + sent[3] + 200 + 2 * (step + 2)


def test_a_result_that_stayed_or_that_no_turn_follows_is_not_read_back() -> None:
    stayed: list[BilledPart] = [BilledTurn(1), BilledResult("search", 100), BilledTurn(1)]
    unread: list[BilledPart] = [BilledTurn(1), BilledResult("search", 100, read_back_tokens=9)]

    assert bill(stayed, retrievals=3) == bill(stayed)
    assert bill(unread, retrievals=3) == bill(unread)


def test_a_price_for_cached_tokens_holds_for_what_was_sent_before() -> None:
    share = Share(3_000_000, 1_000_000)

    assert share.cost(4.0) == pytest.approx(12.0)
    assert share.cost(4.0, 0.5) == pytest.approx(4.0 + 2 * 0.5)


TOKENS = st.integers(0, 10_000)
RESULTS = st.builds(
    BilledResult, st.sampled_from(["search", "read"]), TOKENS, read_back_tokens=st.none() | st.integers(0, 3_000)
)
PARTS = st.lists(st.one_of(st.builds(BilledWords, TOKENS), st.builds(BilledTurn, TOKENS), RESULTS))


@given(PARTS)
def test_without_read_backs_the_bill_is_the_sum_over_turns_of_what_stands_before(parts: list[BilledPart]) -> None:
    turns = [position for position, part in enumerate(parts) if isinstance(part, BilledTurn)]

    billed = bill(parts)

    assert billed.total.tokens == sum(part.tokens for turn in turns for part in parts[:turn])
    assert billed.total.new_tokens == sum(part.tokens for part in parts[: max(turns, default=0)])


@given(PARTS, st.integers(0, 3), st.integers(0, 500))
def test_a_bill_is_what_its_turns_are_billed_one_by_one(parts: list[BilledPart], retrievals: int, opening: int) -> None:
    """The same by another way: the conversation with its read-backs written out as turns and results."""
    written: list[BilledPart] = [BilledWords(opening)]
    waiting: list[BilledPart] = []
    for part in parts:
        if isinstance(part, BilledTurn):
            written += waiting
            waiting = []
        written.append(BilledResult(part.tool, part.tokens) if isinstance(part, BilledResult) else part)
        if isinstance(part, BilledResult) and part.read_back_tokens is not None:
            waiting += [BilledTurn(CALL_TOKENS), BilledWords(part.read_back_tokens)] * retrievals

    assert bill(parts, opening_tokens=opening, retrievals=retrievals).total == bill(written).total


@given(PARTS, st.integers(0, 3))
def test_no_share_has_more_new_tokens_than_tokens(parts: list[BilledPart], retrievals: int) -> None:
    shares = bill(parts, retrievals=retrievals).shares.values()

    assert all(0 <= share.new_tokens <= share.tokens for share in shares)
