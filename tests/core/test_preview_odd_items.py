"""Odd records that others might hide: long values, items that are not objects, rows without room."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from coatcheck.core.preview import Previewed, json_list, odd, pieces, search_for_odd
from tests.core.previewing import checked_preview

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ERROR = "ConnectionError: " + "no route to host, " * 12


def _shown(text: str, budget: int = 700) -> str:
    searched: list[Previewed] = []

    def search() -> Iterator[None]:
        searched.append((yield from search_for_odd(Previewed.of(text))))

    for _ in search():
        pass
    return checked_preview(searched[0], budget)


def _json_lines(items: list[object]) -> str:
    return "\n".join(map(json.dumps, items))


def _csv(items: list[dict[str, object]]) -> str:
    return "\n".join([",".join(items[0]), *(",".join(f'"{value}"' for value in one.values()) for one in items)])


KINDS: dict[str, Callable[[list[object]], str]] = {
    "JSON": json.dumps,
    "JSON in an object": lambda items: json.dumps({"page": 1, "data": {"items": items}, "next": None}),
    "JSON Lines": _json_lines,
    "CSV": _csv,  # type: ignore[dict-item]  # takes only records
}
OF_JSON = [kind for kind in KINDS if kind != "CSV"]
COUNTS = [300, 3_000, 30_000]
"""Records: few enough to search whole, in pieces, and so many that only the ends of JSON are read."""


def _records(count: int) -> list[dict[str, object]]:
    return [{"id": n, "url": f"u{n}", "note": "a note of some length here", "error": ""} for n in range(count)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", COUNTS)
def test_a_rare_value_is_counted_and_shown_however_long(kind: str, count: int) -> None:
    records = _records(count)
    records[count // 2]["error"] = ERROR
    shown = _shown(KINDS[kind](records))  # type: ignore[arg-type]

    assert f'1 with error: "{ERROR[:40]}"… ({len(ERROR)} characters)' in shown
    assert f"u{count // 2}" in shown
    assert shown.count("ConnectionError") > 1


def test_a_row_too_long_to_show_is_counted_above_the_others() -> None:
    records = _records(300)
    records[150]["error"] = ERROR * 20
    shown = _shown(_csv(records))

    assert shown.startswith("table of 301 lines by 4 columns, the header is line 1; 1 with error: ")
    assert '\n"0","u0",' in shown


@pytest.mark.parametrize("kind", KINDS)
def test_a_field_of_free_text_has_no_rare_values(kind: str) -> None:
    records = [{"id": n, "text": f"{n} says {ERROR}" if n % 4 else ""} for n in range(1_000)]

    assert "with text" not in _shown(KINDS[kind](records))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("usual", "one", "noun"),
    [
        (lambda _: None, {"code": 28, "text": "no space"}, "object"),
        (lambda _: None, ["no space"], "list"),
        (lambda _: [], ["no space"], "list"),
        (lambda _: [], [{"code": 28}], "list"),
        (lambda _: {}, {"code": 28}, "object"),
        ("x {}".format, None, "null"),
        ("x {}".format, "", "empty string"),
        ("x {}".format, 28, "number"),
        ((1.5).__add__, "n/a", "string"),
        ((1.5).__add__, None, "null"),
    ],
)
@pytest.mark.parametrize("kind", OF_JSON)
@pytest.mark.parametrize("count", COUNTS)
def test_a_value_of_an_unusual_kind_is_counted_and_shown(
    usual: Callable[[int], object], one: object, noun: str, kind: str, count: int
) -> None:
    records = _records(count)
    for n, record in enumerate(records):
        record["x"] = usual(n)
    records[count // 2]["x"] = one
    shown = _shown(KINDS[kind](list(records)))

    assert f" 1 with x: {noun}" in shown
    assert f"u{count // 2}" in shown


def test_values_of_an_unusual_kind_in_many_records_are_not_odd() -> None:
    records = _records(1_000)
    for n, record in enumerate(records):
        record["x"] = f"x {n}" if n % 100 else None

    assert "with x" not in _shown(json.dumps(records))


def test_many_rare_values_of_one_field_hide_no_other_field() -> None:
    records = _records(3_000)
    for place in range(100, 1_100, 100):
        records[place]["error"] = f"{place} {ERROR}"
    records[2_000]["note"] = "lost"

    assert ", 1 with note: lost, 1 with error: " in _shown(json.dumps(records))


@pytest.mark.parametrize("other", [None, "quota: rate limited", 17, True, ["a", 1], 0.5])
@pytest.mark.parametrize("kind", OF_JSON)
@pytest.mark.parametrize("count", COUNTS)
def test_an_item_that_is_not_an_object_is_counted_and_shown_and_hides_no_odd_record(
    other: object, kind: str, count: int
) -> None:
    noun = {type(None): "null", str: "string", bool: "boolean", list: "list"}.get(type(other), "number")
    for place in (0, count // 2, count - 1):
        items: list[object] = [*_records(count)]
        items[place] = other
        items[count // 3] = {"error": "no space"}
        shown = _shown(KINDS[kind](items))

        assert f", 1 {noun}, 1 with error: no space" in shown or f", 1 {noun}, 1 without id" in shown
        assert "not an object: " in shown
        assert "no space" in shown


def test_a_piece_with_only_one_non_object_does_not_end_the_search() -> None:
    records = [{**one, "note": "n" * (pieces.PIECE - 100)} for one in _records(30)]
    search = odd.OddSearch()
    read = list(json_list.read_list(json.dumps([None, *records]), search))

    assert (len(read), search.total) == (30, 31)

    search = odd.OddSearch()
    search.add([None])
    search.add([*_records(30)])  # type: ignore[list-item]  # JSON values all of them
    assert search.found() == odd.Odd((0,), ("1 null",))


def test_a_long_item_that_is_not_an_object_is_cut_like_a_long_value() -> None:
    items: list[object] = [*_records(3_000)]
    items[1_500] = ERROR * 100

    assert "not an object: " + json.dumps(ERROR)[:40] in _shown(json.dumps(items))


def test_a_value_that_is_not_an_object_in_a_map_of_records_is_counted_and_shown() -> None:
    named: dict[str, object] = {f"job-{one['id']}": one for one in _records(300)}
    named["job-150"] = None
    shown = _shown(json.dumps(named))

    assert shown.startswith("object with 300 keys, 1 null, one a line: ")
    assert '"job-150"|not an object: null' in shown


def test_the_other_records_are_named_if_an_item_is_not_an_object() -> None:
    items: list[object] = [{"id": f"r-{n}", "text": f"{n} {ERROR}"} for n in range(60)]
    items[30] = None
    shown = _shown(json.dumps(items))

    assert shown.startswith("list of 60 items, 1 null, one a line: id|text\n")
    assert "|r-29 …]\nnot an object: null\n[… items 31-56, only id: r-31|" in shown


def test_a_line_that_is_not_json_does_not_end_the_search() -> None:
    lines = _json_lines([*_records(5_000)]).split("\n")
    lines[0], lines[2_000] = "Exporting 5,000 records", json.dumps({**_records(1)[0], "error": "no space"})
    shown = _shown("\n".join(lines))

    assert shown.startswith("JSON Lines of 5,000 lines, 1 non-JSON value, 1 with error: no space, one a line: ")
    assert "not an object: Exporting 5,000 records" in shown


def test_a_list_with_many_items_that_are_not_objects_is_not_a_list_of_records() -> None:
    items = [{"id": n} if n % 3 else n for n in range(300)]

    assert _shown(json.dumps(items)).startswith("list of 300 items:\n")


# Odd records whose rows have no room.


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [1, 5, 60])
@pytest.mark.parametrize("count", [100, 600, 2_000])
def test_an_odd_record_without_room_in_any_budget_is_counted(kind: str, columns: int, count: int) -> None:
    def words(at: int) -> str:
        return " ".join(f"city river {one % 30} stone" for one in range(at, at + 30 // columns + 1))

    records = [{"id": n, "region": "earth", **{f"c{c}": words(n + c) for c in range(columns)}} for n in range(count)]
    records[count // 2]["region"] = "mars"
    text = KINDS[kind](records)  # type: ignore[arg-type]

    assert [budget for budget in (100, 150, 200, 250, 400) if "1 with region: mars" not in _shown(text, budget)] == []


def test_as_many_odd_kinds_are_counted_as_fit_half_the_budget() -> None:
    records = _records(600)
    for name in "abcd":
        records[300][f"{name} long name of a field"] = ERROR
    shown = _shown(json.dumps([{**one, "text": ERROR * 3} for one in records]), 100)

    assert shown.startswith('[list of 600 objects, 1 with "a long name of a field", 1 with "b')


def test_the_path_to_odd_records_without_room_is_a_valid_query() -> None:
    fields = [{"name": f"field {n} of the table", "type": "int" if n == 30 else "str", "is": [n]} for n in range(60)]
    tables = [{"name": name, "rows": fields[:size], "a: b": {"of": fields}} for name, size in (("a", 3), ("b", 60))]
    of_a_list, of_an_object = _shown(json.dumps(tables), 150), _shown(json.dumps({"data": {"tables": tables}}), 150)

    assert "[[1].rows: list of 60 objects, 1 with type: int]\n" in of_a_list
    assert '[[0]."a: b".of: list of 60 objects, 1 with type: int]\n' in of_a_list
    assert "[data.tables[1].rows: list of 60 objects, 1 with type: int]\n" in of_an_object


def test_odd_records_with_more_fields_than_a_table_has_columns_are_counted_and_shown() -> None:
    records = [{"id": n, "status": "ok", **{f"field {c}": c for c in range(100)}} for n in range(300)]
    records[150]["status"] = "lost"
    shown = _shown(json.dumps(records))

    assert shown.startswith("list of 300 objects, 1 with status: lost:\n")
    assert "  id: 150\n  status: lost\n" in shown


# Field names that are data.


def test_if_records_share_hardly_any_field_none_is_odd() -> None:
    alike = [{f"k{n}_{one}": 1 for one in range(5)} for n in range(1_000)]
    typed = [{"type": "x", f"k{n}": 1} for n in range(1_000)]

    for records in (alike, typed):
        search = odd.OddSearch()
        search.add(records)  # type: ignore[arg-type]  # JSON values all of them
        assert search.found() == odd.NOTHING_ODD


def test_rare_fields_in_a_few_records_are_odd_even_if_most_fields_are_rare() -> None:
    records: list[dict[str, object]] = [{"id": n} for n in range(1_000)]
    records[500] |= {f"field_{n}": 1 for n in range(30)}

    assert "1 with field_0, 1 with field_1" in _shown(json.dumps(records))


def test_unique_fields_of_many_records_next_to_shared_ones_are_not_odd() -> None:
    shared = [f"shared_{n}" for n in range(40)]
    definitions: dict[str, object] = {
        f"Thing{n}": {
            "type": "object",
            "has": {**dict.fromkeys(shared[n % 36 :][:5], 1), **({f"own_{n}": 1} if n % 3 else {})},
        }
        for n in range(140)
    }

    for definitions_as in (definitions, [*definitions.values()]):
        assert "1 with has.own_" not in _shown(json.dumps({"version": 1, "schemas": definitions_as}))


def test_unique_fields_of_a_few_of_many_records_are_odd_and_count_once_per_record() -> None:
    records: list[dict[str, object]] = [{"id": n, "more": {}} for n in range(3_000)]
    for n in range(10):
        records[n * 290 + 5]["more"] = {f"{name}_{n}": 1 for name in ("code", "text", "line", "of")}

    assert "1 with more.code_0" in _shown(json.dumps(records))


def test_differences_among_the_few_records_that_have_a_field_are_not_odd() -> None:
    records: list[dict[str, object]] = [{"id": n, "is": {"done": n % 2 == 0}} for n in range(60)]
    records[20]["is"] = {"done": True, "said": {"by": "Ann", "as": "a remark"}}
    records[40]["is"] = {"done": True, "said": {"by": "Ben", "at": "noon"}}
    shown = _shown(json.dumps(records))

    assert "is.said.by" not in shown.split("\n")[0]
    assert "1 with is.said.as" not in shown


def test_an_odd_value_in_the_first_object_of_a_list_is_named_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    records: list[dict[str, object]] = [
        {"id": n, "of": {"parts": [{"state": "up"}, {"state": "down" if n % 2 else "up"}]}} for n in range(60)
    ]
    records[30]["of"] = {"parts": [{"state": "down"}, {"state": "up"}]}
    monkeypatch.setattr(odd, "_ADDED_AT_ONCE", 25)

    assert "1 with of.parts[0].state: down" in _shown(json.dumps(records))


def test_an_empty_list_in_place_of_an_object_is_not_a_list_of_objects() -> None:  # PHP writes an empty array like this
    records = [{"id": n, "of": {"state": "up"} if n % 2 else []} for n in range(60)]
    records[31]["of"] = {"state": "down"}

    assert "1 with of.state: down" in _shown(json.dumps(records))


def test_only_as_many_data_like_field_names_are_searched_as_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[str] = []
    columns = odd._columns

    def counted(*given: object) -> Iterator[object]:
        for column in columns(*given):  # type: ignore[arg-type]
            looked_at.append(column[0])
            yield column

    monkeypatch.setattr(odd, "_columns", counted)
    search = odd.OddSearch()
    search.add([{f"k{n}_{one}": 1 for one in range(5)} for n in range(1_000)])

    assert len(looked_at) == 200
