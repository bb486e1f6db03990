"""Negation in a query covers the whole path after the ``!``. JMESPath's library negates only the first name."""

from __future__ import annotations

import pytest

from coatcheck.core.reading.interpreter import Evaluator

PACKAGES = [
    {"id": 1, "of": {"licence": "MIT", "tags": [{"name": "a"}]}},
    {"id": 2, "of": {"licence": None, "tags": []}},
    {"id": 3, "of": {"tags": [{"name": "b"}]}},
]


@pytest.mark.parametrize(
    ("query", "result"),
    [
        ("[?!of.licence].id", [2, 3]),
        ("[? ! of . licence].id", [2, 3]),
        ("[?!of.tags[?name == 'a']].id", [2, 3]),
        ("[?!of.tags[].name].id", [2]),
        ("[?!of.tags[0].name].id", [2]),
        ("[?!of.*].id", []),
        ("[?!!of.licence].id", [1]),
        ("[?!of.licence && id > 2].id", [3]),
        ("[?id > 2 || !of.licence].id", [2, 3]),
        ("[?!of.licence == `true`].id", [2, 3]),
        ("[?!(of.licence)].id", [2, 3]),
        ("[?!contains(of.tags[].name, 'a')].id", [2, 3]),
        ("[*].[!of.licence][]", [False, True, True]),
        ("(!@).id", None),
    ],
)
def test_a_path_is_negated_as_a_whole(query: str, result: object) -> None:
    assert Evaluator(query).search(PACKAGES) == result
