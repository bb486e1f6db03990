"""Counting, estimating and cutting: exact where it must be, stopping early where it can, on any input."""

from __future__ import annotations

import base64
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import ByteCounter, InvalidRequest, TiktokenCounter, TokenCounter
from coatcheck.core.blocks import utf8_length
from coatcheck.core.facts import Estimate
from coatcheck.core.tokens import WINDOW_CHARACTERS, CountedOnce
from tests.core.strategies import texts

TIKTOKEN = TiktokenCounter()
MEGABYTE = 1_000_000


class WordCounter(TokenCounter):
    """A user's counter that implements only ``count``."""

    def count(self, text: str) -> int:
        return len(text.split())


COUNTERS = [pytest.param(TIKTOKEN, id="tiktoken"), pytest.param(ByteCounter(), id="bytes")]

HOSTILE = {
    "blanks": " " * 10 * MEGABYTE,
    "tabs": "\t" * 10 * MEGABYTE,
    "newlines": "\n" * 10 * MEGABYTE,
    "one letter": "a" * 10 * MEGABYTE,
    "base64": base64.b64encode(random.Random(7).randbytes(3 * MEGABYTE // 4)).decode(),  # noqa: S311 - test data
    "Chinese": "工具返回的结果太大了。" * 100_000,
    "emoji sequences": "👨‍👩‍👧‍👦🏳️‍🌈👍🏽" * 20_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_input_kills_or_stalls_the_tokenizer(text: str) -> None:
    assert TIKTOKEN.exceeds(text, 2_500)
    assert TIKTOKEN.count(TIKTOKEN.head(text, 500)) <= 500
    assert TIKTOKEN.count(TIKTOKEN.tail(text, 500)) <= 500
    assert CountedOnce(TIKTOKEN).estimate(text, exact_up_to=10_000).tokens > 2_500


@pytest.mark.parametrize("counter", COUNTERS)
@given(text=texts(), limit=st.integers(0, 60))
def test_head_and_tail_are_parts_of_the_text_within_their_limit(counter: TokenCounter, text: str, limit: int) -> None:
    head, tail = counter.head(text, limit), counter.tail(text, limit)

    assert text.startswith(head)
    assert text.endswith(tail)
    assert counter.count(head) <= limit
    assert counter.count(tail) <= limit


@pytest.mark.parametrize("counter", COUNTERS)
@given(text=texts(), limit=st.integers(0, 60))
def test_exceeds_agrees_with_count(counter: TokenCounter, text: str, limit: int) -> None:
    assert counter.exceeds(text, limit) == (counter.count(text) > limit)


@given(
    piece=st.sampled_from([" ", "\t", "\n", "a", "A", "=", "\u5de5", "\U0001f469\u200d", "ab ", "0"]) | texts(),
    size=st.integers(8_000, 40_000),
    near=st.integers(-12, 12),
)
def test_exceeds_agrees_with_count_near_the_limit_of_long_text(piece: str, size: int, near: int) -> None:
    text = (piece * size)[:size]
    tokens = TIKTOKEN.count(text)

    assert TIKTOKEN.exceeds(text, max(0, tokens + near)) == (tokens > max(0, tokens + near))


def test_exceeds_counts_the_whole_text_if_its_pieces_take_more_tokens() -> None:
    text = ("=" * 77 + "\n") * 200
    tokens = TIKTOKEN.count(text)
    assert sum(TIKTOKEN.count(text[start : start + 2_048]) for start in range(0, len(text), 2_048)) > tokens

    assert not TIKTOKEN.exceeds(text, tokens)
    assert TIKTOKEN.exceeds(text, tokens - 1)


@given(text=texts(), limit=st.integers(0, 20))
def test_a_counter_that_only_counts_inherits_the_other_methods(text: str, limit: int) -> None:
    counter = WordCounter()

    assert counter.exceeds(text, limit) == (counter.count(text) > limit)
    assert counter.count(counter.head(text, limit)) <= limit
    assert counter.count(counter.tail(text, limit)) <= limit


@pytest.mark.parametrize("counter", COUNTERS)
def test_head_and_tail_use_most_of_their_budget(counter: TokenCounter) -> None:
    text = "".join(f"2026-01-{day % 28 + 1:02} INFO request {day} served\n" for day in range(5_000))

    assert counter.count(counter.head(text, 500)) > 490
    assert counter.count(counter.tail(text, 500)) > 490


def test_a_slice_that_takes_more_tokens_alone_than_in_context_still_fits() -> None:
    accented = "these\u0301"  # "these" is one token, but the accent belongs to its last letter
    assert TIKTOKEN.count(accented[:4]) == 2
    assert 0 < len(TIKTOKEN.head(accented, 1)) < 4
    assert TIKTOKEN.count("'sthe") == 3  # "a's" and "the" are two
    assert 0 < len(TIKTOKEN.tail("a'sthe", 2)) < len("'sthe")
    for text in (accented, "a'sthe"):
        for limit in (1, 2):
            assert TIKTOKEN.count(TIKTOKEN.head(text, limit)) <= limit
            assert TIKTOKEN.count(TIKTOKEN.tail(text, limit)) <= limit


@pytest.mark.parametrize("cluster", ["e\u0301", "👍🏽", "👩‍👩‍👧", "☂️", "\r\n", "ก็"])
@pytest.mark.parametrize("counter", COUNTERS)
def test_a_cut_never_separates_a_character_from_its_marks(counter: TokenCounter, cluster: str) -> None:
    text = cluster * 300

    for limit in range(1, 40):
        assert len(counter.head(text, limit)) % len(cluster) == 0
        assert len(counter.tail(text, limit)) % len(cluster) == 0


def test_a_cut_gives_up_on_a_character_with_endless_marks() -> None:
    text = "e" + "\u0301" * 10_000

    assert 0 < len(TIKTOKEN.head(text, 50)) < len(text)


@given(text=texts())
def test_the_byte_counter_counts_bytes_not_characters(text: str) -> None:
    assert ByteCounter().count(text) == -(-utf8_length(text) // 4)


@given(text=texts(), exact_up_to=st.integers(1, 200))
def test_an_estimate_is_exact_up_to_its_limit(text: str, exact_up_to: int) -> None:
    estimate = CountedOnce(TIKTOKEN).estimate(text, exact_up_to=exact_up_to)
    counted = TIKTOKEN.count(text)

    assert estimate.exact or counted > exact_up_to
    if estimate.exact:
        assert estimate.tokens == counted


def test_an_estimate_beyond_its_limit_has_two_significant_digits_and_is_close() -> None:
    text = "".join(f"2026-01-{day % 28 + 1:02} INFO request {day} served in {day % 97} ms\n" for day in range(50_000))
    estimate = CountedOnce(TIKTOKEN).estimate(text, exact_up_to=10_000)

    assert not estimate.exact
    assert set(str(estimate.tokens)[2:]) == {"0"}
    assert estimate.tokens == pytest.approx(TIKTOKEN.count(text), rel=0.1)


@pytest.mark.parametrize("length", [2_048, 4_096, 16_384, 18_432, 32_768, 40_960])
def test_text_that_ends_exactly_at_a_part_is_counted_to_its_end(length: int) -> None:
    text = "x" * length  # for a counter whose counts of parts may not add up to the count of the whole
    once = CountedOnce(ByteCounter())

    assert once.begin(text, math.inf) == (length, ByteCounter().count(text))
    assert once.count(text) == ByteCounter().count(text)
    if length <= WINDOW_CHARACTERS:
        assert once.estimate(text, exact_up_to=1) == Estimate(ByteCounter().count(text), exact=True)


def test_an_estimate_adds_the_counted_part_to_the_extrapolated_rest() -> None:
    text = "served in 97 ms, and again\n" * 1_000
    estimate = CountedOnce(TIKTOKEN).estimate(text, exact_up_to=5_000)

    assert not estimate.exact
    assert estimate.tokens == pytest.approx(TIKTOKEN.count(text), rel=0.1)


def test_an_estimate_is_at_least_the_tokens_counted_even_if_its_windows_miss_dense_parts() -> None:
    text = "\u5de5\u5177 7," * 3_000 + " " * 40_000

    estimate = CountedOnce(TIKTOKEN).estimate(text, exact_up_to=5_000)

    assert TIKTOKEN.count(text[:WINDOW_CHARACTERS]) > 5_000
    assert not estimate.exact
    assert estimate.tokens >= 5_000


def test_an_estimate_of_huge_text_looks_only_at_small_windows() -> None:
    looked_at = 0

    class Counting(ByteCounter):
        def count(self, text: str) -> int:
            nonlocal looked_at
            looked_at += len(text)
            return super().count(text)

    CountedOnce(Counting()).estimate("x" * 10 * MEGABYTE, exact_up_to=10_000)

    assert looked_at <= 3 * WINDOW_CHARACTERS


def test_exceeds_stops_as_soon_as_the_answer_is_certain() -> None:
    looked_at = 0

    class Counting(WordCounter):
        def count(self, text: str) -> int:
            nonlocal looked_at
            looked_at += len(text)
            return super().count(text)

    assert Counting().exceeds("word " * MEGABYTE, 100)
    assert looked_at <= WINDOW_CHARACTERS


def test_special_tokens_in_content_are_ordinary_text() -> None:
    assert TIKTOKEN.count("<|endoftext|>") > 1


def test_an_unknown_encoding_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidRequest, match="o200k_base"):
        TiktokenCounter("gpt-nonsense")


@pytest.mark.parametrize("wrong", [None, b"o200k_base", 200_000])
def test_a_value_that_is_not_an_encoding_is_refused_too(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidRequest, match=r"^encoding must be one of .*, or a ready tiktoken\.Encoding, not "):
        TiktokenCounter(wrong)


def test_an_encoding_that_is_not_on_this_machine_is_not_downloaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path_factory.mktemp("empty")))

    with pytest.raises(InvalidRequest, match=r"TiktokenCounter\.download\('cl100k_base'\)"):
        TiktokenCounter("cl100k_base")


def test_a_ready_encoding_is_used_unchanged() -> None:
    import tiktoken  # noqa: PLC0415 - only this test needs the module itself

    letters = {bytes([value]): value for value in range(256)}
    encoding = tiktoken.Encoding("letters", pat_str=r"(?s).", mergeable_ranks=letters, special_tokens={})
    counter = TiktokenCounter(encoding)

    assert counter.count("abc") == 3
    assert counter.longest_token == 1
    assert "letters" in repr(counter)


def test_a_slice_of_a_long_rule_is_found_in_few_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = "z" + "-" * 50_000
    counted: list[int] = []
    exceeds = TiktokenCounter.exceeds

    def counting(counter: TiktokenCounter, text: str, limit: int) -> bool:
        counted.append(len(text))
        return exceeds(counter, text, limit)

    monkeypatch.setattr(TiktokenCounter, "exceeds", counting)
    slices = [TIKTOKEN.head(rule, 130), TIKTOKEN.tail(rule[::-1], 130)]

    assert all(128 <= TIKTOKEN.count(part) <= 130 for part in slices)
    assert len(counted) < 100  # 156 if the slices lost one character at a time
