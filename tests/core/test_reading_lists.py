"""Queries that compare a list with a single value: a list never equals one of its items, and always differs from it."""

from __future__ import annotations

import json

import pytest

from tests.core.reading_driver import stored

CHANGES = [{"id": n, "actions": ["no-op"], "of": {"ports": [80]}, "kind": "a" if n % 2 else ["a"]} for n in range(3)]
CHANGES[1]["actions"] = ["delete", "create"]
HINT = "; a list was compared with a single value: write contains(name, 'a'), or for objects name[?key == 'a']"


@pytest.mark.parametrize(
    "query",
    [
        "length([?actions != 'no-op'])",
        'length([?actions != "no-op"])',
        "length([?'no-op' != actions])",
        "[?actions == 'delete'].id",
        "[?of.ports == `80`].id",
        "[?actions[?@ == 'no-op'] == `true`]",
    ],
)
@pytest.mark.parametrize("text", [json.dumps(CHANGES), "".join(f"{json.dumps(one)}\n" for one in CHANGES)])
def test_comparing_a_list_with_an_item_gets_a_note(query: str, text: str) -> None:
    assert HINT in stored(text).ask(query=query).text.partition("\n")[0]


@pytest.mark.parametrize(
    "query",
    [
        "[?actions != ['no-op']].id",
        '[?actions == `["no-op"]`].id',
        "[?contains(actions, 'no-op')].id",
        "[?actions == null]",
        "[?actions != `null`].id",
        "[?kind == 'a'].id",
        "[?actions[0] == 'no-op'].id",
    ],
)
def test_comparing_a_list_with_a_list_or_searching_it_gets_no_note(query: str) -> None:
    assert HINT not in stored(json.dumps(CHANGES)).ask(query=query).text
