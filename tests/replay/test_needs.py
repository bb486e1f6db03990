"""What counts as needed from a tool result: spans that it was the first to contain and that a later turn repeats."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from coatcheck.core.blocks import JsonBlock, OpaqueBlock, TextBlock, ToolResult
from coatcheck.replay.conversation import Call, Part, Result, Turn, Words
from coatcheck.replay.needs import Need, find_needs, holds


def returned(text: str) -> Result:
    return Result(ToolResult(blocks=(TextBlock(text),), tool_name="t"))


def said(text: str) -> Turn:
    return Turn((TextBlock(text),))


def called(arguments: Any) -> Turn:  # noqa: ANN401 - any JSON value
    return Turn((), (Call("t", json.dumps(arguments)),))


def test_a_span_is_needed_by_the_first_later_turn_that_repeats_it() -> None:
    parts: list[Part] = [
        Words((TextBlock("find it"),)),
        said("on it"),
        returned("order A-1001 of 777"),
        said("A-1001."),
        said("A-1001"),
    ]

    assert find_needs(parts) == {2: (Need("A-1001", 3),)}


@pytest.mark.parametrize(
    "parts",
    [
        [Words((TextBlock("A-1001?"),)), returned("A-1001"), said("A-1001")],
        [said("A-1001?"), returned("A-1001"), said("A-1001")],
        [called({"id": "A-1001"}), returned("A-1001"), said("A-1001")],
        [returned("A-10012"), said("A-1001")],
        [said("A-1001"), returned("A-1001")],
        [returned("42 and so there. The Its"), said("42 and so There. The Its")],
        [returned("A-1001"), Words((TextBlock("A-1001"),)), said("fine")],
    ],
    ids=["the user's", "the model's own", "in an own call", "part of a word", "said before", "too common", "not said"],
)
def test_a_span_that_came_from_elsewhere_or_was_not_used_is_not_needed(parts: list[Part]) -> None:
    assert find_needs(parts) == {}


def test_the_first_of_two_results_with_the_same_span_supplied_it() -> None:
    parts: list[Part] = [returned("A-1001"), returned("A-1001 B-2002"), called({"ids": ["A-1001", "B-2002"]})]

    assert find_needs(parts) == {0: (Need("A-1001", 2),), 1: (Need("B-2002", 2),)}


def test_escapes_in_arguments_do_not_hide_their_values() -> None:
    parts: list[Part] = [
        returned("계좌 서울-1234 in /tmp/a.txt"),
        Turn((), (Call("t", '{"a": "\\uc11c\\uc6b8 /tmp/a.txt"}'),)),
    ]

    assert find_needs(parts) == {0: (Need("/tmp/a.txt", 1),)}  # noqa: S108 - only a name in some text


def test_a_number_is_found_with_and_without_its_separators() -> None:
    assert find_needs([returned("sum: 12345"), said("It is 12,345.")]) == {0: (Need("12345", 1),)}


@pytest.mark.parametrize(
    "identifier",
    [
        "7adae958f8",
        "550e8400-e29b-41d4-a716-446655440000",
        "2026-11-28T02:00:00Z",
        "10.0.0.1",
        "1.5.2-rc1",
        "12_ab",
    ],
)
def test_an_identifier_that_begins_with_a_digit_is_needed_whole(identifier: str) -> None:
    parts: list[Part] = [returned(f"a row {identifier} of many"), said(f"It is {identifier}.")]

    assert find_needs(parts) == {0: (Need(identifier, 1),)}


def test_a_number_may_have_a_unit_or_decimals_and_a_time_of_day_is_no_span() -> None:
    parts: list[Part] = [returned("took 100 ms of 3.14 at 9:30"), said("100ms, 3.14s, 9:30, 24/7")]

    assert find_needs(parts) == {0: (Need("100", 1), Need("3.14", 1))}


def test_blocks_of_all_kinds_are_searched_and_odd_ones_do_no_harm() -> None:
    odd = ToolResult(blocks=(OpaqueBlock(object()), JsonBlock({"id": "A-1001"})), tool_name="t")
    parts: list[Part] = [Result(odd), Turn((), (Call("t", "A-1001 no JSON"), Call("t", "[" * 100_000)))]

    assert find_needs(parts) == {0: (Need("A-1001", 1),)}


def test_a_span_is_found_only_as_a_whole_word() -> None:
    assert holds("(A-1001)", "A-1001")
    assert not holds("A-10011 xA-1001", "A-1001")


def test_a_long_run_is_read_in_linear_time_and_hides_nothing_next_to_it() -> None:
    started = time.process_time()
    needs = find_needs([returned("order A-1001"), said(f"Orders {'.' * 5_000} A-1001 {'ACGT' * 20_000}")])

    assert needs == {0: (Need("A-1001", 1),)}
    assert time.process_time() - started < 2


def test_a_table_of_contents_is_read_in_linear_time() -> None:
    started = time.process_time()
    needs = find_needs([returned("order A-1001"), said(f"{'.' * 190} 3\n" * 500 + "A-1001")])

    assert needs == {0: (Need("A-1001", 1),)}
    assert time.process_time() - started < 2


@pytest.mark.parametrize("run", ["1a" * 95, "1." * 90, "1-" * 90, "1.1." * 45, f"1{'a' * 190}", "1," * 95 + "a"])
def test_long_runs_that_begin_with_a_digit_are_read_in_linear_time(run: str) -> None:
    started = time.process_time()
    needs = find_needs([returned("order A-1001"), said(f"{run} \n" * 200 + "A-1001")])

    assert needs == {0: (Need("A-1001", 1),)}
    assert time.process_time() - started < 2


def test_a_session_of_many_words_and_results_is_read_in_linear_time() -> None:
    results = range(400)
    started = time.process_time()
    pairs = [
        (
            returned(" ".join(f"row_{number}_{row}" for row in range(2_000))),
            said(" ".join(f"new_{number}_{word}" for word in range(100)) + f" row_{number}_7"),
        )
        for number in results
    ]
    needs = find_needs([part for pair in pairs for part in pair])

    assert needs == {2 * number: (Need(f"row_{number}_7", 2 * number + 1),) for number in results}
    assert time.process_time() - started < 10
