"""Nothing odd is hidden: trouble in logs, and odd records, are found wherever they are, counted and shown."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from coatcheck import Always, ByteCounter, InMemoryStorage, Offloader, TextBlock, TiktokenCounter
from coatcheck.core.preview import LARGE_CHARACTERS, Previewed, log, preview, search_for_odd
from coatcheck.core.preview.table import Records, Rows, gap_of_list, table
from tests.core.previewing import checked_preview

if TYPE_CHECKING:
    from collections.abc import Callable

PLACES = 20
LARGE = 7_000
"""Lines. They make a log of more than 256 KiB, of which a preview shows only the ends."""


def _shown(text: str, budget: int = 500) -> str:
    return checked_preview(Previewed.of(text), budget)


def _log(count: int, needle: int, line: str = "ERROR worker failed: no route to host") -> str:
    lines = [
        f"2026-03-01 12:{n // 60 % 60:02}:{n % 60:02} {'WARN disk is slow' if n % 5 == 0 else 'INFO took job'} {n}\n"
        for n in range(count)
    ]
    lines[needle] = f"2026-03-01 12:50:00 {line}\n"
    return "".join(lines)


def _records(count: int, needle: int) -> list[dict[str, object]]:
    records: list[dict[str, object]] = [{"id": n, "name": f"name {n}", "status": "ok"} for n in range(count)]
    records[needle]["status"] = "lost"
    return records


def _csv(count: int, needle: int) -> str:
    rows = (f"{one['id']},{one['name']},{one['status']}\n" for one in _records(count, needle))
    return "id,name,status\n" + "".join(rows)


def _json_lines(count: int, needle: int) -> str:
    return "".join(f"{json.dumps(one)}\n" for one in _records(count, needle))


KINDS: dict[str, tuple[Callable[[int, int], str], str]] = {
    "log": (_log, "ERROR worker failed: no route to host"),
    "JSON": (lambda count, needle: json.dumps(_records(count, needle)), "|lost"),
    "JSON in an object": (lambda count, needle: json.dumps({"n": 1, "items": _records(count, needle)}), "|lost"),
    "JSON Lines": (_json_lines, "|lost"),
    "JSON objects": (
        lambda count, needle: "\n".join(json.dumps(one, indent=2) for one in _records(count, needle)),
        "|lost",
    ),
    "CSV": (_csv, ",lost"),
}


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [300, LARGE])
def test_the_odd_line_or_record_is_shown_wherever_it_is(kind: str, count: int) -> None:
    make, expected = KINDS[kind]
    needles = [place * (count - 1) // (PLACES - 1) for place in range(PLACES)]
    missing = [needle for needle in needles if expected not in _shown(make(count, needle))]

    assert not missing


def _nested(count: int, needle: int, change: dict[str, object]) -> list[dict[str, object]]:
    records = [
        {"id": n, "at": {"path": f"/jobs/{n}"}, "log": {"level": "info", "line": n, "of": [{"is": {"done": True}}]}}
        for n in range(count)
    ]
    records[needle]["log"] |= change  # type: ignore[operator]  # an object
    return records


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "change",
    [{"level": "lost"}, {"reason": {"code": "lost"}}, {"of": [{"is": {"done": "lost"}}]}],
    ids=["value", "field", "list"],
)
@pytest.mark.parametrize("kind", ["JSON", "JSON in an object", "JSON Lines", "objects by id"])
@pytest.mark.parametrize(("count", "places"), [(300, PLACES), (2_500, 7)], ids=["at once", "in pieces"])
def test_a_record_is_shown_if_only_an_object_inside_it_is_odd(
    kind: str, change: dict[str, object], count: int, places: int
) -> None:
    def written(needle: int) -> str:
        records = _nested(count, needle, change)
        if kind == "JSON Lines":
            return "".join(f"{json.dumps(one)}\n" for one in records)
        named = {f"job-{n}": one for n, one in enumerate(records)}
        return json.dumps({"JSON": records, "JSON in an object": {"n": 1, "items": records}}.get(kind, named))

    assert (len(written(0)) > LARGE_CHARACTERS) == (places < PLACES)
    for needle in (place * (count - 1) // (places - 1) for place in range(places)):
        shown = _shown(written(needle))
        assert "1 with log." in shown
        assert re.search(rf"/jobs/{needle}\b", shown)


def test_trouble_is_counted_and_the_worst_comes_first() -> None:
    text = _log(LARGE, LARGE // 2)
    shown = _shown(text, 160)

    assert shown.startswith("[1 ERROR, 1,399 WARN lines]\n")
    assert "ERROR worker failed" in shown


def test_the_first_and_last_lines_of_a_level_are_shown() -> None:
    lines = _log(LARGE, 4_000, "ERROR first").splitlines(keepends=True)
    for number in range(4_001, 4_400):
        lines[number] = f"2026-03-01 12:50:00 ERROR again {number}\n"
    lines[6_000] = "2026-03-01 12:50:00 ERROR last\n"
    shown = _shown("".join(lines))

    assert "ERROR first" in shown
    assert "ERROR last" in shown
    assert shown.startswith("[401 ERROR, ")


def test_a_level_is_found_after_more_lines_of_a_lower_level_than_are_counted() -> None:
    count = log.MAX_COUNTED * 4
    lines = ["2026-03-01 12:00:00 WARN disk is slow\n"] * count
    lines[count * 3 // 4] = "2026-03-01 12:50:00 FATAL out of memory\n"
    shown = _shown("".join(lines))

    assert shown.startswith("[1 FATAL, 10,000+ WARN lines]\n")
    assert "FATAL out of memory" in shown


def test_the_preview_says_what_was_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MAX_SEARCHED", 100_000)
    text = _log(LARGE, LARGE // 2)
    searched = text.count("\n", 0, 100_000)

    assert f"; lines {searched + 1:,}-{LARGE:,} not searched for trouble]\n" in _shown(text)


def test_a_long_log_is_searched_in_pieces_with_the_same_outcome() -> None:
    content = Previewed.of(_log(LARGE * 2, LARGE))
    work = search_for_odd(content)
    pieces = 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            searched = end.value
            break
        pieces += 1

    assert pieces > 2
    assert searched.trouble is not None
    assert preview(searched, ByteCounter(), budget=900) == preview(content, ByteCounter(), budget=900)


def test_an_offload_shows_the_trouble_in_the_middle_of_a_long_log() -> None:
    outcome = Offloader(InMemoryStorage()).offload([TextBlock(_log(LARGE * 2, LARGE))], tool_name="t", policy=Always())
    block = outcome.blocks[0]

    assert isinstance(block, TextBlock)
    assert "ERROR worker failed: no route to host" in block.text


def test_records_with_a_rare_field_are_counted_and_shown() -> None:
    records = _records(1_000, 10)
    records[600]["error"] = "timed out"

    assert _shown(json.dumps(records)).startswith(
        "list of 1,000 objects, 1 with status: lost, 1 with error, one a line:"
    )
    assert "timed out" in _shown(json.dumps(records))


def test_a_record_that_lacks_a_field_is_counted_and_shown() -> None:
    records = [{"id": n, "name": f"name {n}"} for n in range(1_000)]
    del records[600]["name"]

    assert _shown(json.dumps(records)).startswith("list of 1,000 objects, 1 without name, one a line:")


def test_a_field_of_an_inner_object_is_named_by_its_path() -> None:
    shown = _shown(json.dumps(_nested(1_000, 600, {"level": "lost", "reason": "disk full"})))

    assert shown.startswith("list of 1,000 objects, 1 with log.level: lost, 1 with log.reason, one a line:")


def test_the_fields_of_a_missing_or_rare_object_are_not_counted_separately() -> None:
    records = _nested(1_000, 600, {})
    del records[600]["log"]
    records[7]["failed"] = {"code": 7, "why": {"cause": "disk full"}}

    assert _shown(json.dumps(records)).startswith("list of 1,000 objects, 1 without log, 1 with failed, one a line:")


def test_objects_with_many_fields_do_not_hide_an_odd_value_of_the_record() -> None:
    records = [{"meta": {f"field {n}": n % 3 for n in range(300)}, **one} for one in _records(100, 50)]

    assert _shown(json.dumps(records), 2_000).startswith("list of 100 objects, 1 with status: lost, one a line:")


def test_fields_with_many_values_have_no_odd_values() -> None:
    assert _shown(json.dumps([{"id": n, "name": f"name {n}"} for n in range(1_000)])).startswith(
        "list of 1,000 objects, one a line: id|name\n"
    )


def test_rows_get_the_room_that_gaps_around_unshown_odd_records_do_not_need() -> None:
    counter, odd = TiktokenCounter(), range(20, 600, 40)
    wide = {n: {f"column {k}": f"a value {n * k}" for k in range(10)} for n in range(600)}
    records = Records(what="list of 600 objects", items=wide, total=600, gap=gap_of_list, odd=odd)
    rows = Rows.of(records, counter)
    assert rows is not None

    shown, _ = table(rows, 500, counter)

    assert shown is not None
    assert 400 < counter.count(shown) <= 500
