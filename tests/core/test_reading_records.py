"""Queries of content that is not only JSON: a few other lines or words, and objects that follow one another."""

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
def test_a_few_lines_may_be_other_than_json(text: str, query: str, header: str, result: str) -> None:
    answer = stored(text).ask(query=query)

    assert answer.text.startswith(f"[Result of query '{query}': {header}")
    assert answer.text.partition("\n")[0].endswith(" characters; 1 line is not JSON]")
    assert body(answer) == result


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_consecutive_objects_over_many_lines_are_queried_like_lines(end: str) -> None:
    text = "\n".join(json.dumps(order, indent=2) for order in ORDERS).replace("\n", end) + end

    assert body(stored(text).ask(query="[?id > `6`].who | [0]")) == "customer 7"
    assert "each object queried by itself, 9 of 9 gave a result" in stored(text).ask(query="id").text


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", [0, 2])
@pytest.mark.parametrize("words", ["ok", "Next:", "[INFO] asked\ntwice", '["x"]\nits end'])
def test_words_between_objects_over_many_lines_hide_no_object(words: str, indent: int, end: str) -> None:
    rows = [{"id": number, "of": [{"a": {"b": 1}}, {}], "last": {"c": {}}} for number in range(100)]
    shown = [json.dumps(row, indent=indent) for row in rows]
    text = "\n".join((*shown[:50], words, *shown[50:], words)).replace("\n", end) + end

    answer = stored(text).ask(query="id")

    header, said = answer.text.partition("\n")[0], 2 * (1 + words.count("\n"))
    assert "each object queried by itself, 100 of 100 gave a result, " in header
    assert header.endswith(f" characters; {said} lines are not JSON]")
    assert body(answer).split("\n")[49:51] == ["50| 49", "51| 50"]
    assert body(stored(text).ask(query="[50].id")) == "50"


def test_a_number_below_a_single_object_is_left_out() -> None:
    answer = stored(json.dumps({"orders": ORDERS}, indent=2) + "\n200").ask(query="orders[8].who")

    assert body(answer) == "customer 8"
    assert "; the words before and after the JSON are left out]" in answer.text


def test_the_lines_of_a_cut_off_object_are_counted_as_not_json() -> None:
    shown = [json.dumps({"id": number, "of": {}}, indent=2) for number in range(20)]
    cut = shown[7].removesuffix("\n}")

    answer = stored("\n".join((*shown[:7], cut, *shown[8:]))).ask(query="id")

    assert "19 of 19 gave a result, " in answer.text
    assert " characters; 3 lines are not JSON]" in answer.text
    assert body(answer).split("\n")[7] == "8| 8"


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
def test_json_among_a_few_words_is_queried(before: str, after: str) -> None:
    rows = [{"id": number, "name": f"caf\xe9 {number}"} for number in range(900)]
    content = stored(f"{before}{json.dumps(rows, ensure_ascii=False)}{after}")

    answer = content.ask(query="[?id > 897].name")
    assert body(answer) == '[\n"caf\xe9 898",\n"caf\xe9 899"\n]'
    assert "; the words before and after the JSON are left out]" in answer.text
    assert "nothing" in content.ask(query="[0].price").text
    with pytest.raises(InvalidRequest, match="neither JSON nor JSON Lines"):
        stored(f"{before}{json.dumps(rows)[:-2]}{after}").ask(query="[0]")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("shift", range(8))
def test_the_end_of_an_object_is_found_at_the_border_of_two_searches(end: str, shift: int) -> None:
    first = "{" + end + f'"id": "{"x" * 262_127}'  # the first search ends near the end of this object
    text = end.join((f'{first}{"y" * shift}"', "}", *("{", '"id": 2', "}") * 2))

    assert (
        "each object queried by itself, 3 of 3 gave a result, "
        in stored(text).ask(query="id | length(to_string(@))").text
    )
