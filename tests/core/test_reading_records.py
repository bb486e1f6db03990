"""Queries of content that is more than JSON: a few other lines or words, and objects that follow one another."""

from __future__ import annotations

import json

import pytest

from coatcheck.core.errors import InvalidRequest
from tests.core.reading_driver import body, stored

ORDERS = [{"id": n, "who": f"customer {n}", "tags": ["a", "b"]} for n in range(9)]


@pytest.mark.parametrize(
    ("text", "query", "header", "result"),
    [
        ('fetching\n{"a": 1}\n{"a": 2}\n{"a": 1}\n{"a": 1}\n', "[?a == `1`] | length(@)", "number", "3"),
        ('{"a": 1}\n' * 3 + '{"a": 2}\n{"a": 4', "a", "each line queried by itself, 4 of 4", "1| 1\n2| 1\n3| 1\n4| 2"),
    ],
)
def test_a_few_lines_may_be_something_else(text: str, query: str, header: str, result: str) -> None:
    answer = stored(text).ask(query=query)

    assert answer.text.startswith(f"[Result of query '{query}': {header}")
    assert answer.text.partition("\n")[0].endswith(" characters; 1 line is not JSON]")
    assert body(answer) == result


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_objects_of_many_lines_one_after_the_other_are_queried_like_lines(end: str) -> None:
    text = "\n".join(json.dumps(order, indent=2) for order in ORDERS).replace("\n", end) + end

    assert body(stored(text).ask(query="[?id > `6`].who | [0]")) == "customer 7"
    assert "each object queried by itself, 9 of 9 gave a result" in stored(text).ask(query="id").text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Found 900 rows:\n", ""),
        ("Rows: ", "\n"),
        ("```json\n", "\n```\n\n[1] [2] [next]"),
        ("[INFO] asked\n", "\nEnd"),
        ("Result: ", " done"),
        ("Result:\n", " (900 rows)\nEnd\n"),
        ("", "; see {id}"),
    ],
)
def test_json_between_a_few_words_is_queried(before: str, after: str) -> None:
    rows = [{"id": number, "name": f"caf\xe9 {number}"} for number in range(900)]
    content = stored(f"{before}{json.dumps(rows, ensure_ascii=False)}{after}")

    answer = content.ask(query="[?id > 897].name")
    assert body(answer) == '[\n"caf\xe9 898",\n"caf\xe9 899"\n]'
    assert "; the words before and after the JSON are left out]" in answer.text
    assert "nothing" in content.ask(query="[0].price").text
    with pytest.raises(InvalidRequest, match="neither JSON nor JSON Lines"):
        stored(f"{before}{json.dumps(rows)[:-2]}{after}").ask(query="[0]")
