"""Filters whose functions refuse some items, in lists within lists, and comparisons with a list."""

from __future__ import annotations

import json

import pytest

from tests.core.reading_driver import stored

ORDERS = json.dumps(
    [
        {"id": 1, "items": [{"id": 11, "note": "fragile"}, {"id": 12, "note": None}]},
        {"id": 2, "items": [{"id": 21, "note": None}]},
        {"id": 3, "items": [{"id": 31, "note": "fragile"}]},
    ]
)


@pytest.mark.parametrize("literal", ["`[1]`", '`{"a": 1}`'])
def test_a_name_that_is_never_there_may_be_compared_with_a_list_or_an_object(literal: str) -> None:
    answer = stored(ORDERS).ask(query=f"length([?tags == {literal}])")

    assert "; tags was null in every comparison" in answer.text
