"""The model's arguments: any form with a clear meaning is accepted; any other is refused with the accepted forms."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.arguments import LAST_LINE, MAX_CONTEXT_LINES, OPTIONS, Request, parse_request
from coatcheck.core.errors import InvalidRequest
from tests.core.reading_driver import attempt


@pytest.mark.parametrize("nothing", [None, ""])
def test_an_empty_argument_counts_as_not_given(nothing: str | None) -> None:
    request = parse_request(**dict.fromkeys(OPTIONS, nothing))

    assert request == Request()
    assert request.selects_nothing


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ({"start": 5, "end": 10}, (5, 10)),
        ({"start": "5", "end": " 10 "}, (5, 10)),
        ({"start": 5}, (5, LAST_LINE)),
        ({"start": 5, "end": None}, (5, LAST_LINE)),
        ({"start": 5, "end": ""}, (5, LAST_LINE)),
        ({"end": 10}, (1, 10)),
        ({}, None),
        ({"start": None, "end": None}, None),
        ([5, 10], (5, 10)),
        ((5, None), (5, LAST_LINE)),
        ((None, 10.0), (1, 10)),
        ("5-10", (5, 10)),
        ("5:10", (5, 10)),
        (" 5 - 10 ", (5, 10)),
        ("995-1,234", (995, 1_234)),
        ("1,236 - 12,997", (1_236, 12_997)),
        ("1,234,567-", (1_234_567, LAST_LINE)),
        ("5", (5, 5)),
        (5, (5, 5)),
        ("6-", (6, LAST_LINE)),
        (7, (7, 7)),
        (":10", (1, 10)),
        ('{"start": 5, "end": 10}', (5, 10)),
        ("[5, 10]", (5, 10)),
        ("  ", None),
    ],
)
def test_a_line_range_may_take_many_forms(given: object, meant: tuple[int, int] | None) -> None:
    assert parse_request(line_range=given).line_range == meant


@pytest.mark.parametrize(
    "given",
    [
        "ten",
        "1,234",
        "5,10",
        "5,10-20",
        "1-2,34",
        "-20",
        "1-2-3",
        "5.0",
        5.5,
        {"from": 1, "to": 2},
        [1],
        [1, 2, 3],
        b"12",
        "{broken",
        "\u0665",
    ],
)
def test_a_malformed_line_range_is_refused_with_the_accepted_forms(given: object) -> None:
    with pytest.raises(InvalidRequest, match='line_range must look like "10-20", "10-" or "10", not '):
        parse_request(line_range=given)


def test_a_long_line_range_is_refused_in_linear_time() -> None:
    started = time.process_time()
    with pytest.raises(InvalidRequest, match="line_range must look like"):
        parse_request(line_range=f"1{',000' * 50_000}")

    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"line_range": {"start": 0, "end": 5}}, r"line_range.start \(0\) must be >= 1"),
        ({"line_range": {"start": -3}}, r"line_range.start \(-3\) must be >= 1"),
        ({"line_range": {"start": 9, "end": 5}}, r"line_range.start \(9\) must be <= line_range.end \(5\)"),
        ({"line_range": {"end": 0}}, r"line_range.start \(1\) must be <= line_range.end \(0\)"),
        ({"line_range": "3-1"}, r"the first line of line_range \(3\) must be <= the last \(1\)"),
        ({"line_range": "0-5"}, r"the first line of line_range \(0\) must be >= 1"),
        ({"line_range": {"start": "x"}}, "line_range.start must be a whole number, not 'x'"),
        ({"line_range": {"end": True}}, "line_range.end must be a whole number, not True"),
        ({"context_lines": True}, "context_lines must be a whole number, not True"),
        ({"context_lines": "10.0"}, "context_lines must be a whole number, not '10.0'"),
        ({"context_lines": 2.5}, "context_lines must be a whole number, not 2.5"),
        ({"context_lines": [1]}, "context_lines must be a whole number, not list"),
        ({"offset": "ten"}, "offset must be a whole number, not 'ten'"),
        ({"offset": float("nan")}, "offset must be a whole number, not nan"),
        ({"offset": float("inf")}, "offset must be a whole number, not inf"),
        ({"offset": 10**5_000}, "offset must be a whole number, not a number of more than 15 digits"),
        ({"offset": "9" * 5_000}, "offset must be a whole number, not '9999"),
        ({"pattern": [5]}, "pattern must be a string, not list"),
        ({"pattern": ["a"]}, "pattern must be a string, not list"),
        ({"pattern": "x" * 1_001}, "pattern has 1,001 characters; at most 1,000 are accepted"),
        ({"query": "x" * 1_001}, "query has 1,001 characters; at most 1,000 are accepted"),
        ({"query": {"a": 1}}, "query must be a string, not dict"),
        ({"query": "a", "pattern": "b"}, "query cannot be combined with pattern: give either query or pattern$"),
        ({"query": "a", "line_range": "1-2"}, "query cannot be combined with line_range: give either "),
        (
            {"query": "a", "line_range": "1-2", "pattern": "b"},
            "query cannot be combined with pattern and line_range: give either query or pattern and line_range$",
        ),
        ({"offset": 5, "line_range": "1-2"}, "offset counts characters and line_range counts lines"),
    ],
)
def test_a_wrong_argument_is_named_with_what_is_accepted(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        parse_request(**arguments)


@pytest.mark.parametrize(("given", "meant"), [(10, 10), ("11", 11), (" 12", 12), (13.0, 13), ("-5", -5), (0, 0)])
def test_a_number_may_be_a_string(given: object, meant: int) -> None:
    assert parse_request(offset=given).offset == meant


def test_a_pattern_may_be_a_number() -> None:
    assert parse_request(pattern=404).pattern == "404"


def test_context_is_clamped() -> None:
    assert parse_request(context_lines=10**9).context_lines == MAX_CONTEXT_LINES
    assert parse_request(context_lines="3").context_lines == 3
    assert parse_request(context_lines=-3).context_lines == 0


def test_a_pattern_may_be_combined_with_a_range_and_an_offset() -> None:
    request = parse_request(pattern="x", line_range="2-3", offset=7)

    assert (request.pattern, request.line_range, request.offset) == ("x", (2, 3), 7)
    assert not request.selects_nothing


def test_offset_zero_counts_as_no_offset() -> None:
    assert parse_request(line_range="2-3", offset=0).line_range == (2, 3)
    assert parse_request(offset="0").selects_nothing


_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=3)
_ENDS = st.sampled_from(["start", "end", "x"])
_ANYTHING = _LEAVES | st.lists(_LEAVES, max_size=3) | st.dictionaries(_ENDS, _LEAVES, max_size=2)


@given(**dict.fromkeys(OPTIONS, _ANYTHING))
def test_any_arguments_are_a_request_or_refused(**arguments: object) -> None:
    request = attempt(lambda: parse_request(**arguments))
    if isinstance(request, InvalidRequest):
        assert len(str(request)) < 300
    else:
        assert request.line_range is None or 1 <= request.line_range[0] <= request.line_range[1]
        assert 0 <= request.context_lines <= MAX_CONTEXT_LINES


def test_a_number_to_search_for_needs_no_quotes() -> None:
    assert parse_request(pattern=404).pattern == "404"
