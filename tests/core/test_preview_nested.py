"""The inner parts of a JSON value are opened where one line for each of its outer parts would say almost nothing."""

from __future__ import annotations

import json
import re

import pytest

from coatcheck.core.preview import Previewed
from tests.core.previewing import TIKTOKEN, checked_preview

NAMES = [f"group-{number}" for number in range(12)]


def orders(count: int, *, of: str = "") -> list[dict[str, object]]:
    return [{"id": f"ord{of}_{number * 7919 % 100_003}", "total": number * 3} for number in range(count)]


def _shown(value: object, budget: int = 1_000) -> str:
    return checked_preview(Previewed.of(json.dumps(value)), budget)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({"header": {"status": 0, "ms": 3}, "response": {"found": 400, "docs": orders(400)}}, id="answer"),
        pytest.param({"data": {"orders": orders(400)}, "meta": {"total": 400}}, id="data and meta"),
        pytest.param({"a": {"x": orders(200)}, "b": {"y": orders(200)}}, id="two of a kind"),
    ],
)
def test_two_objects_with_nothing_in_common_are_not_records(value: object) -> None:
    shown = _shown(value)

    assert "objects, one a line: id|total" in shown
    assert "ord_7919|3" in shown


@pytest.mark.parametrize("groups", [2, 3, 5, 6])
def test_each_of_a_few_groups_is_opened(groups: int) -> None:
    shown = _shown([{"name": name, "orders": orders(400 // groups, of=name)} for name in NAMES[:groups]])

    for name in NAMES[:groups]:
        assert f"name: {name}\n" in shown
        assert f"ord{name}_0|0" in shown
    assert TIKTOKEN.count(shown) > 900


@pytest.mark.parametrize("groups", [8, 12])
def test_each_of_more_groups_is_named(groups: int) -> None:
    shown = _shown([{"name": name, "orders": orders(30)} for name in NAMES[:groups]])

    assert all(re.search(rf"(\n|name: ){name}\b", shown) for name in NAMES[:groups])


def test_the_series_of_each_of_a_few_sources_is_opened() -> None:
    result = [
        {"metric": {"host": f"h{host}"}, "values": [[1_700_000_000 + 15 * n, str(n)] for n in range(200)]}
        for host in range(3)
    ]
    shown = _shown({"status": "success", "data": {"type": "matrix", "result": result}})

    for host in range(3):
        assert f"metric: {{host: h{host}}}" in shown
    assert shown.count('1700000000|"0"') == 3


def test_records_with_a_list_each_are_rows_if_all_of_them_can_be_named() -> None:
    shown = _shown(
        [{"name": f"item {n}", "price": n * 3, "tags": [f"tag {n} {m}" for m in range(9)]} for n in range(300)]
    )

    assert shown.startswith("list of 300 objects, one a line: name|price|tags\n")


@pytest.mark.parametrize("budget", [60, 100, 250])
def test_every_member_is_named_even_if_the_first_takes_all_the_room(budget: int) -> None:
    lines = {"executed": [*range(9)], "summary": {"covered": 1.5, "missing": 2, "functions": {"f": {"lines": [1, 2]}}}}
    report = {"meta": {"format": 3, "version": "7.1"}, "files": {f"src/module_{n}.py": lines for n in range(30)}}

    shown = _shown({**report, "totals": {"covered": 30.8, "statements": 659}, "ok": False}, budget)

    assert re.search(r"^totals: \{.*\}$", shown, re.MULTILINE)
    assert re.search(r"^ok: false$", shown, re.MULTILINE)


@pytest.mark.parametrize("words", range(0, 16, 3))
def test_no_member_between_the_first_and_last_ones_shown_is_left_out_silently(words: int) -> None:
    begun = {**{f"first_{n}": [1, 2] if n % 3 else n for n in range(4)}, "text": "word " * words}
    value = {**begun, **{f"later_{n}": {"a": n} for n in range(4)}, "last": ["word " * 900]}

    for budget in range(55, 80):
        shown = _shown(value, budget)
        if re.search(r"^last: ", shown, re.MULTILINE) and f"[… of {len(value)} keys]" not in shown:
            assert re.findall(r"^\w+(?=: )", shown, re.MULTILINE) == [*value]


def test_a_long_map_leaves_room_to_open_the_members_after_it() -> None:
    times = {f"{n // 50}.{n % 50}.0": f"2026-01-{n % 28 + 1:02}T00:37:52.468000+00:00" for n in range(290)}
    after = {"dependencies": {f"part{n}": f"^{n}.2.0" for n in range(9)}, "engines": {"node": ">= 18"}}
    shown = _shown({"name": "express", "time": times, "license": "MIT", **after})

    assert "part8: ^8.2.0" in shown
    assert "engines: {node: >= 18}" in shown
    assert re.search(r"time: object with 290 keys\n( {2}\"\d+\.\d+\.0\": 2026-.*\n){8,}", shown)


def test_each_field_of_a_long_record_is_shown_before_the_contents_of_another() -> None:
    fields = {f"field_{n}": n if n % 2 else f"value {n}" for n in range(40)}
    parts = {f"part_{n}": {"state": "open", "held": {"a": n, "b": "words of no interest"}} for n in range(9)}
    shown = _shown({"order": fields, **parts}, 520)

    assert all(f"field_{n}: " in shown for n in range(40))


def test_text_stored_as_a_list_of_lines_is_shown_by_its_first_line() -> None:
    cells = [{"cell_type": "code", "source": [f"# Step {n}\n", *["run(n)\n"] * 40, "done()"]} for n in range(60)]
    shown = _shown({"cells": cells, "nbformat": 4}, 300)

    assert "\n  [42 lines: # Step 0]" in shown
    assert "\n  [42 lines: # Step 59]" in shown


@pytest.mark.parametrize(
    "items", [["one\n", "two\nand three\n"], ["one\ntwo\n", "three"], ["one\n", 2], ["one\n", {"two": 3}]]
)
def test_items_are_not_called_lines_if_any_of_them_is_not_a_line(items: list[object]) -> None:
    shown = _shown({"found": [{"held": items * 40, "id": n} for n in range(60)]}, 300)

    assert "[80 items]" in shown
    assert "80 lines" not in shown


@pytest.mark.parametrize("budget", [75, 300])
def test_a_cut_name_is_marked(budget: int) -> None:
    assert re.search(r"(?m)^k{100,}…: ", _shown({"k" * 300: "x " * 3_000, "other": 1}, budget))


@pytest.mark.parametrize("budget", [70, 300])
@pytest.mark.parametrize("lines", [2_000, 6_000])
def test_lines_of_a_long_string_are_not_shown_as_members(lines: int, budget: int) -> None:
    text = "total: 7\nowner: Ada\n" * lines
    shown = _shown({"out": text, "err": text, "total": 1, "owner": "Grace"}, budget)

    assert shown.startswith((r'out: "total: 7\nowner: Ada\n', "object with 4 keys\n" + r'out: "total: 7\nowner: Ada\n'))
    assert "\nowner: Ada" not in shown


def test_records_that_wrap_one_wide_object_have_its_members_as_columns() -> None:
    """Reddit lists posts in this form. With the members of their media, there would be too many columns."""
    media = {f"size_{number}": {"width": number, "height": number} for number in range(30)}
    posts = [
        {"kind": "post", "data": {**{f"field_{c}": n * c for c in range(40)}, "title": f"Post {n}", "media": media}}
        for n in range(1, 26)
    ]
    shown = _shown({"kind": "list", "data": {"children": posts, "after": None}}, 1_000)

    assert "Post 1|" in shown
    assert "Post 25|" in shown
    assert "{42 keys}" not in shown
