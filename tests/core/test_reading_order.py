"""Ordering in a query: numbers that JSON holds as strings, as prices often are, and NaN."""

from __future__ import annotations

import json

import pytest

from coatcheck.core.errors import InvalidRequest
from tests.core.reading_driver import stored

PRICES = ["9.33", "47.45", "651.21", "152.58", "1000000.00"]
ORDERS = [{"id": n, "price": price, "zip": f"0{n}", "day": f"2026-01-0{n}"} for n, price in enumerate(PRICES, start=1)]
LINES = "".join(f"{json.dumps(order)}\n" for order in ORDERS)
AS_TEXT = "; numbers written as text were ordered as text ('10' < '9'): use to_number(name)]"


def head(query: str, text: str) -> str:
    return stored(text).ask(query=query).text.partition("\n")[0]


@pytest.mark.parametrize(
    "query",
    [
        "length([?price > '600'])",
        "length([?'600' <= price])",
        "[?price < '100'].id",
        "max_by(@, &price).id",
        "min_by(@, &price).id",
        "sort_by(@, &price)[-1].id",
        "reverse(sort_by(@, &price))[:2].id",
        "max([].price)",
        "min([].price)",
        "sort([].price)[0]",
        'sort_by(@, &max([price, `"5"`]))[0].id',
    ],
)
@pytest.mark.parametrize("text", [json.dumps(ORDERS), LINES], ids=["JSON", "JSON Lines"])
def test_ordering_numbers_held_as_strings_gets_a_note(query: str, text: str) -> None:
    assert head(query, text).endswith(AS_TEXT)


@pytest.mark.parametrize(
    "query",
    [
        "length([?price == '651.21'])",
        "length([?price > '0'])",
        "length([?to_number(price) > `600`])",
        "max_by(@, &to_number(price)).price",
        "sort_by(@, &to_number(price))[-1].price",
        "sort_by(@, &zip)[-1].id",
        "sort_by(@, &day)[-1].id",
        "max_by(@, &id).id",
        "length([?day > '2026-01-02'])",
        "sort([].day)[0]",
        "sort_by(@[:2], &zip)[0].price",
        "sort(`[]`)",
    ],
)
def test_an_order_that_is_the_same_for_numbers_and_strings_gets_no_note(query: str) -> None:
    assert "ordered as text" not in head(query, json.dumps(ORDERS))


def test_comparing_a_number_with_numeric_strings_gets_a_note_about_to_number() -> None:
    note = "; a number was compared with numbers written as text: write to_number(name) > `9`]"

    assert head("length([?price > `600`])", json.dumps(ORDERS)).endswith(note)
    assert head("length([?`600` > price])", LINES).endswith(note)
    assert stored(LINES).ask(query="length([?to_number(price) > `600`])").text.splitlines()[1] == "2"


@pytest.mark.parametrize("query", ["length([?price == `9.33`])", "length([?day > `2025`])"])
def test_comparing_a_number_with_other_strings_gets_a_note_about_quotes(query: str) -> None:
    assert head(query, json.dumps(ORDERS)).endswith("compared with text only: write text in single quotes ('9')]")


@pytest.mark.parametrize("query", ["sum([].price)", "avg([].price)", "abs([0].price)"])
def test_a_numeric_function_given_numeric_strings_says_how_to_convert_them(query: str) -> None:
    with pytest.raises(
        InvalidRequest, match=r"but got numeric string\. First turn text into numbers: \[\]\.to_number\(name\)$"
    ):
        stored(json.dumps(ORDERS)).ask(query=query)
    assert stored(json.dumps(ORDERS)).ask(query="sum([].to_number(price))").text.splitlines()[1] == "1000860.57"


@pytest.mark.parametrize(
    ("query", "result"), [("sum([].to_number(price))", "15"), ("length([?to_number(price) > `9`])", "1")]
)
def test_a_string_that_to_number_cannot_read_is_named_if_it_has_digits(query: str, result: str) -> None:
    prices: list[object] = ["5", "n/a", "1,234.50", "10", "$7", None, ["1"]]

    for text in (json.dumps([{"price": price} for price in prices]), json.dumps([{"price": "7%"}] * 3)):
        assert "; to_number gave null for text such as '" in head(query, text)
    answer = stored(json.dumps([{"price": price} for price in prices])).ask(query=query).text.splitlines()
    assert answer[0].endswith("; to_number gave null for text such as '1,234.50']")
    assert answer[1] == result
    assert "to_number gave" not in head(query, json.dumps([{"price": price} for price in ("5", "n/a", "", None)]))


@pytest.mark.parametrize(
    "query",
    ["sort_by(@, &loss)[0]", "max_by(@, &loss)", "min_by(@, &loss)", "sort([].loss)", "max([].loss)", "min([].loss)"],
)
def test_values_with_nan_are_not_ordered(query: str) -> None:
    content = stored('[{"loss": 3.5}, {"loss": NaN}, {"loss": 1.5}, {"loss": 2.5}]')

    with pytest.raises(InvalidRequest, match=r"NaN has no order\. First leave it out, as in \[\?name == name\]$"):
        content.ask(query=query)
    assert content.ask(query="sort_by([?loss == loss], &loss)[].loss").text.splitlines()[1:-1] == [
        "[",
        "1.5,",
        "2.5,",
        "3.5",
        "]",
    ]
