"""Filters whose functions reject some items of nested lists, and comparisons with a list, an object or odd digits."""

from __future__ import annotations

import json
import warnings

import pytest

from coatcheck import InvalidRequest
from tests.core.reading_driver import body, stored

ORDERS = json.dumps(
    [
        {"id": 1, "items": [{"id": 11, "note": "fragile"}, {"id": 12, "note": None}]},
        {"id": 2, "items": [{"id": 21, "note": None}]},
        {"id": 3, "items": [{"id": 31, "note": "fragile"}]},
    ]
)


@pytest.mark.parametrize(
    ("query", "result"),
    [
        ("[].items[?contains(note, 'frag')].id[]", [11, 31]),
        ("[?items[?contains(note, 'frag')]].id", [1, 3]),
        ("[?length(items[?contains(note, 'frag')]) > 0].id", [1, 3]),
    ],
)
def test_a_list_without_items_a_filter_accepts_does_not_hide_the_other_lists(query: str, result: object) -> None:
    answer = stored(ORDERS).ask(query=query)

    assert json.loads(body(answer)) == result
    assert "; 2 items were left out: function contains() takes array or string, but got null]" in answer.text


@pytest.mark.parametrize(
    "query", ["[].items[?contains(id, 'x')]", "[?contains(id, 'x')] | [0].id | starts_with(@, 'x')"]
)
def test_a_filter_that_accepts_no_item_of_any_list_is_refused(query: str) -> None:
    with pytest.raises(InvalidRequest, match=r"function contains\(\) takes array or string, but got number"):
        stored(ORDERS).ask(query=query)


@pytest.mark.parametrize("literal", ["`[1]`", '`{"a": 1}`'])
def test_a_missing_field_may_be_compared_with_a_list_or_an_object(literal: str) -> None:
    answer = stored(ORDERS).ask(query=f"length([?tags == {literal}])")

    assert "; tags was null in every comparison" in answer.text


def test_a_digit_of_another_script_is_not_a_number_even_if_warnings_are_errors() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidRequest, match="invalid query"):
            stored(ORDERS).ask(query="[?id == 1\u0662]")
