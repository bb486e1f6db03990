"""A counter that remembers: its sums equal the tokenizer's counts, and it looks at each part of a preview once."""

from __future__ import annotations

import csv
import io
import json
import re
import time
import tracemalloc
from math import inf
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import ByteCounter, InMemoryStorage, Offloaded, Offloader, TextBlock, TiktokenCounter, TokenCounter
from coatcheck.core.preview import Previewed, preview
from coatcheck.core.preview.delimited import preview_delimited
from coatcheck.core.tokens import CountedOnce

if TYPE_CHECKING:
    from collections.abc import Callable

TIKTOKEN = TiktokenCounter()
PIECES = [*"\n\r/ aZ9.,'\t", "\n\n", "  ", "]\n", "\u0301", "é", "工", "👍🏽", "word "]
LINES = st.lists(st.sampled_from(PIECES), max_size=120).map("".join)


@pytest.fixture
def given_to_tokenizer(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collect everything the tokenizer is given from now on."""
    given: list[str] = []
    encode = TiktokenCounter._encode

    def note(counter: TiktokenCounter, window: str) -> list[int]:
        given.append(window)
        return encode(counter, window)

    monkeypatch.setattr(TiktokenCounter, "_encode", note)
    return given


class Words(TokenCounter):
    """A host's counter, whose counts do not add up at line ends."""

    def count(self, text: str) -> int:
        return len(text.split()) + ("\n" in text)


@given(text=LINES)
def test_lines_add_up_to_what_the_tokenizer_counts(text: str) -> None:
    assert CountedOnce(TIKTOKEN).count(text) == TIKTOKEN.count(text)


@given(text=LINES)
def test_parts_of_long_lines_add_up_to_what_the_tokenizer_counts(text: str) -> None:
    long = text * 40

    assert CountedOnce(TIKTOKEN).count(long) == TIKTOKEN.count(long)


@given(parts=st.lists(LINES, max_size=4))
def test_parts_are_counted_as_one_string(parts: list[str]) -> None:
    assert CountedOnce(TIKTOKEN).count_parts(*parts) == TIKTOKEN.count("".join(parts))


@given(text=LINES, limit=st.integers(0, 60))
def test_a_cut_at_a_line_or_a_word_never_exceeds_its_limit(text: str, limit: int) -> None:
    for counter in (TIKTOKEN, CountedOnce(TIKTOKEN)):
        for whole in (text, text * 40):
            head, tail = counter.head(whole, limit), counter.tail(whole, limit)

            assert whole.startswith(head)
            assert whole.endswith(tail)
            assert max(TIKTOKEN.count(head), TIKTOKEN.count(tail)) <= limit


@pytest.mark.parametrize("joined", ["a\u0301", "\r\n", "\U0001f469\u200d\U0001f467"])
@pytest.mark.parametrize("shift", range(4))
def test_a_cut_splits_no_joined_characters_when_most_of_the_text_fits(joined: str, shift: int) -> None:
    text = "a" * (396 + shift) + joined * 100
    head = CountedOnce(ByteCounter()).head(text, 100)  # takes at most 400 characters

    assert head == ByteCounter().head(text, 100)
    assert len(head) >= 396


def test_a_hosts_counter_is_asked_for_the_whole_text() -> None:
    assert CountedOnce(Words()).count("one\ntwo\nthree") == 4
    assert CountedOnce(Words()).count_parts("one\n", "two") == 3


RECORDS = [
    {"id": number, "name": f"Person {number}", "note": f"said {number * 7919} words in London", "tags": ["a", "b"]}
    for number in range(400)
]
TABLE = io.StringIO()
csv.writer(TABLE, lineterminator="\n").writerows(
    [["id", "name", "note"], *([r["id"], r["name"], r["note"]] for r in RECORDS)]
)
KINDS = {
    "json": json.dumps(RECORDS),
    "nested json": json.dumps({f"part {number}": {"about": RECORDS[number], "more": [1, 2]} for number in range(80)}),
    "python": repr([tuple(map(str, record.values())) for record in RECORDS]),
    "csv": TABLE.getvalue().rstrip("\n"),
    "text": "\n".join(f"Chapter {number} tells of Paris and file_{number}.txt at length." for number in range(900)),
    "envelope": json.dumps({"type": "text", "text": "\n".join(f"Line {n} of note_{n}." for n in range(2_000))}),
    "log": "\n".join(f"2024-01-01 10:00:{n % 60:02} INFO request {n} took {n * 7} ms" for n in range(900)),
}


@pytest.mark.parametrize("text", KINDS.values(), ids=KINDS.keys())
def test_a_preview_gives_the_tokenizer_little_more_than_it_shows(text: str, given_to_tokenizer: list[str]) -> None:
    content = Previewed(text=text, content_type="text/plain", lines=text.count("\n") + 1, more_than=2_500)
    counted = CountedOnce(TIKTOKEN)
    assert counted.exceeds(text, 2_500)
    given_to_tokenizer.clear()  # the decision has already been counted
    shown = preview(content, counted, budget=1_000)

    assert sum(map(len, given_to_tokenizer)) < 2.1 * len(shown)
    assert 700 < TIKTOKEN.count(shown) <= 1_000


@pytest.mark.no_cover
@pytest.mark.parametrize("text", ["!AAA" * 5_000_000, "\u6c49\u5b57" * 5_000_000], ids=["base64", "Chinese"])
def test_the_head_of_a_line_without_spaces_costs_less_than_ten_passes_over_it(text: str) -> None:
    def seconds(work: Callable[[], object]) -> float:
        started = time.process_time()
        work()
        return time.process_time() - started

    counted = CountedOnce(TIKTOKEN)
    least = min(seconds(lambda: re.compile("[^\n]*").match(text)) for _ in range(3))

    assert min(seconds(lambda: counted.head(text, 500)) for _ in range(3)) < 10 * least


@pytest.mark.no_cover
def test_the_head_of_a_long_line_of_words_is_cut_without_copying_the_line() -> None:
    text = "1 served request; 2 served request; " * 100_000
    counted = CountedOnce(TIKTOKEN)
    TIKTOKEN.warm_up()
    tracemalloc.start()
    try:
        assert text.startswith(counted.head(text, 500))
        assert tracemalloc.get_traced_memory()[1] < len(text) / 10
    finally:
        tracemalloc.stop()


PARCELS = json.dumps(
    {
        "page": 1,
        "parcels": [
            {"id": number, "name": f"parcel {number}", "weight": number / 2, "labels": ["fragile"][: number % 3 == 0]}
            for number in range(40)
        ],
    },
    indent=1,
)


@pytest.mark.parametrize("text", [PARCELS, *(text[:4_000] for text in KINDS.values())], ids=["parcels", *KINDS])
@pytest.mark.parametrize("budget", [60, 120, 250, 333, 500])
def test_a_preview_does_not_depend_on_what_was_counted_before(text: str, budget: int) -> None:
    content = Previewed(text=text, content_type="text/plain", lines=text.count("\n") + 1)
    counted = CountedOnce(TIKTOKEN)
    counted.begin(text, inf)
    preview(content, counted, budget=500)

    assert preview(content, counted, budget=budget) == preview(content, TIKTOKEN, budget=budget)


@pytest.mark.parametrize("size", [12_000, 24_000])
def test_an_offload_counts_the_result_once(size: int, given_to_tokenizer: list[str]) -> None:
    text = KINDS["text"][:size]
    offloader = Offloader(InMemoryStorage(), max_result_tokens=2_000, preview_tokens=500, token_counter=TIKTOKEN)
    outcome = offloader.offload([TextBlock(text)], tool_name="search", scope="s")

    assert isinstance(outcome, Offloaded)
    (block,) = outcome.blocks
    assert isinstance(block, TextBlock)
    assert sum(map(len, given_to_tokenizer)) < len(text) + 2 * len(block.text)
    assert outcome.tokens.tokens == pytest.approx(TIKTOKEN.count(text), rel=0.02)


def test_a_table_with_rows_of_other_lengths_is_not_searched_for_odd_ones() -> None:
    rows = ["id,state,note", *(f"{number},open,plain" for number in range(400))]
    even = "\n".join([*rows[:200], "200,open", "201,open,plain,more", *rows[202:]])
    shown = preview_delimited(Previewed(text=even, content_type="text/csv", lines=401), 200, TIKTOKEN)

    assert shown is not None
    assert shown.split("\n")[0].endswith("the header is line 1; lines 1-401 not searched for odd ones")


def test_an_odd_row_is_found_among_quoted_rows() -> None:
    rows = [f'{number},"Doe, {number}",open' for number in range(400)]
    text = "\n".join(["id,name,state", *rows[:200], '200,"Roe, Jo",closed', "201,Poe,open", *rows[202:]])
    shown = preview_delimited(Previewed(text=text, content_type="text/csv", lines=401), 300, TIKTOKEN)

    assert shown is not None
    assert "1 with state: closed" in shown
    assert '200,"Roe, Jo",closed' in shown
