"""Large JSON: whole records from both ends, without reading what is between them, and a gap that ``offset`` reads."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from coatcheck import ByteCounter, TiktokenCounter
from coatcheck.core.preview import Previewed, pieces, preview
from coatcheck.core.preview.json_ends import _MIN_WINDOW, _read
from coatcheck.core.preview.json_lines import preview_json_lines
from coatcheck.core.preview.json_list import NotRead
from coatcheck.core.preview.source import Found
from tests.core.strategies import json_values

if TYPE_CHECKING:
    from coatcheck.core.blocks import JsonValue

TIKTOKEN = TiktokenCounter()
COUNT = 14_000
"""Records. They take more than a million characters; JSON with fewer is read whole."""

RECORDS: list[JsonValue] = [
    {"id": number, "note": f'}}, {{"id": {number}, ]', "tags": [{"a": [1, {"b": "},{"}]}, {"a": number}]}
    for number in range(COUNT)
]


def _row(number: int) -> str:
    return f'{number}|"}}, {{\\"id\\": {number}, ]"|[{{a: [1, {{b: "}},{{"}}]}}, {{a: {number}}}]'


@pytest.mark.no_cover
@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize("wrap", [None, "orders"])
def test_both_ends_of_a_large_list_are_whole_records_around_a_gap_in_characters(
    indent: int | None, wrap: str | None
) -> None:
    value: JsonValue = RECORDS if wrap is None else {"page": {"no": 1}, wrap: RECORDS, "next": None}
    text = json.dumps(value, indent=indent)
    shown = preview(Previewed.of(text), TIKTOKEN, budget=500)
    lines = [line.removeprefix("  ") for line in shown.splitlines() if not line.startswith("[… more, in it: ")]
    gap = re.search(r"\[… characters ([\d,]+)-([\d,]+) of ([\d,]+) not shown …\]", shown)

    assert gap is not None
    first, last, total = (int(number.replace(",", "")) for number in gap.groups())
    rows = [line for line in lines if "|" in line and "one a line" not in line]
    head = next(index for index, row in enumerate(rows) if row != _row(index))
    assert head > 3
    assert rows[head:] == [_row(number) for number in range(COUNT - len(rows) + head, COUNT)]
    assert total == len(text)
    assert text[first - 1] == "}"
    assert text[last + 1] == "{"
    if wrap is not None:
        assert lines[:2] == [f"object with {len(text):,} characters", "page: {no: 1}"]
        assert lines[-1] == "next: null"


def test_large_json_is_read_without_parsing_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(RECORDS)
    monkeypatch.setattr("coatcheck.core.preview.json.orjson", None)

    assert preview(Previewed.of(text), TIKTOKEN, budget=500).startswith("list of 14,000 objects, one a line: ")


@pytest.mark.parametrize("wrap", [None, "orders"])
def test_the_record_count_of_an_unsearched_list_is_estimated_from_the_lengths_at_both_ends(
    wrap: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "MAX_SEARCHED", 1_000_000)
    # Half are short and half are long: from one end alone, the estimate would be half the number, or four times.
    records: list[JsonValue] = [
        {"id": number, "note": "x" * length} for length in (50, 500) for number in range(6_000, 9_456)
    ]
    text = json.dumps(records if wrap is None else {"page": 1, wrap: records})
    header = re.search(
        r"list of (.+), estimated from (\d+) at its ends", preview(Previewed.of(text), TIKTOKEN, budget=300)
    )

    assert header is not None
    assert header[1] == "about 6,900 objects"  # there are 6,912
    ends = _read(text, _MIN_WINDOW, Found())
    assert int(header[2]) == len(ends.first) + len(ends.last)


@pytest.mark.parametrize(
    "value", [{"a": {"b": RECORDS}}, {"a": RECORDS, "b": RECORDS}, [RECORDS, RECORDS], list(range(400_000))]
)
def test_large_json_of_other_shapes_is_still_shown_within_the_budget(value: JsonValue) -> None:
    text = json.dumps(value)
    shown = preview(Previewed.of(text), TIKTOKEN, budget=300)

    assert TIKTOKEN.count(shown) <= 300
    assert "not shown" in shown


@pytest.mark.parametrize("damage", ["]", "}", ',"x"]', "]]", '"', "],"])
def test_large_text_that_does_not_end_as_json_is_not_a_list_of_records(damage: str) -> None:
    text = json.dumps(RECORDS) + damage

    assert not preview(Previewed.of(text), ByteCounter(), budget=300).startswith("list of")


@given(
    value=json_values(),
    strings=st.lists(st.text('[]{}",:\\ a1\n', max_size=12), min_size=1, max_size=5),
    name=st.booleans(),
)
def test_the_records_read_at_the_end_of_a_list_are_its_last_ones(
    value: JsonValue, strings: list[str], name: bool
) -> None:
    items: list[JsonValue] = [{"n": number, "v": value, "s": [*strings, {"k": strings[0]}]} for number in range(3_000)]
    text = json.dumps({"list": items, "end": strings} if name else items, ensure_ascii=False)
    assume(len(text) > 70_000)
    try:
        ends = _read(text, _MIN_WINDOW, Found())
    except NotRead:
        return  # shown in another way

    # Compared as strings, because NaN is not equal to itself.
    assert repr([item[2] for item in ends.first]) == repr(items[: len(ends.first)])
    assert repr([item[2] for item in ends.last]) == repr(items[len(items) - len(ends.last) :])
    for start, end, record in (*ends.first, *ends.last):
        assert repr(json.loads(text[start:end])) == repr(record)
    assert ends.after == ({"end": strings} if name else {})


def test_an_unclosed_object_around_a_large_list_is_not_read() -> None:
    with pytest.raises(NotRead):
        _read(json.dumps({"orders": RECORDS})[:-1] + "]", _MIN_WINDOW, Found())


def test_a_number_too_large_for_a_float_is_not_read_as_infinity() -> None:
    with pytest.raises(NotRead):
        _read('[{"id": 1e400}, ' + json.dumps(RECORDS)[1:], _MIN_WINDOW, Found())


def test_two_lists_one_after_the_other_are_not_read_as_one() -> None:
    with pytest.raises(NotRead):
        _read(f"{json.dumps(RECORDS[:50])}\n{json.dumps(RECORDS)}", _MIN_WINDOW, Found())


@pytest.mark.parametrize("budget", [1_000, 4_000])
def test_a_larger_budget_is_filled_with_records(budget: int) -> None:
    text = json.dumps([{f"a_rather_long_field_name_{name}": number for name in range(8)} for number in range(20_000)])

    assert budget * 0.9 < TIKTOKEN.count(preview(Previewed.of(text), TIKTOKEN, budget=budget)) <= budget


def test_a_budget_for_more_than_half_of_the_text_reads_no_record_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "MAX_SEARCHED", 1_000_000)
    text = json.dumps([{"id": number, "note": "x" * 200} for number in range(6_000)])
    shown = preview(Previewed.of(text), ByteCounter(), budget=len(text) * 3 // 64)
    said = re.search(r"list of about [\d,]+ objects, estimated from ([\d,]+) at its ends", shown)

    assert said is not None
    assert int(said[1].replace(",", "")) <= 6_000


def test_a_list_after_a_smaller_one_is_shown_too() -> None:
    facets = [{"name": f"facet {number}", "count": number} for number in range(240)]
    text = json.dumps({"facets": facets, "total": COUNT, "orders": RECORDS})

    assert re.search(
        r"^orders: list of 14,000 objects", preview(Previewed.of(text), TIKTOKEN, budget=500), re.MULTILINE
    )


def _two_lists() -> str:
    opened: list[JsonValue] = [{"id": number, "state": "open for business"} for number in range(20_000)]
    closed: list[JsonValue] = [{"id": number, "state": "closed"} for number in range(20_000)]
    return json.dumps({"open": opened, "count": 2, "closed": closed, "next": None})


def test_the_records_of_two_unsearched_lists_are_not_estimated_as_one_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pieces, "MAX_SEARCHED", 1_000_000)
    shown = preview(Previewed.of(_two_lists().ljust(1_000_001)), TIKTOKEN, budget=300)

    assert "open: list of objects" in shown
    assert "closed" not in shown
    assert "estimated" not in shown


def test_the_last_records_of_another_list_are_not_shown_as_part_of_the_first() -> None:
    text = _two_lists()
    shown = preview(Previewed.of(text.ljust(1_000_001)), TIKTOKEN, budget=300)
    gap = re.search(r"\[… characters ([\d,]+)-([\d,]+) of", shown)

    assert gap is not None
    first, last = (int(number.replace(",", "")) for number in gap.groups())
    assert "closed" not in shown
    unseen = f"characters {text.index(']') + 1:,}-1,557,827 not searched for odd ones"
    assert f"open: list of 20,000 objects, {unseen}, one a line: " in shown
    assert "open for business" not in text[last:]
    assert text[first - 1] == "}"
    assert text[last + 1] == "]"
    assert "\nnext: null\n[… more, in it: " in shown


def test_lines_with_a_list_each_are_not_one_large_list() -> None:
    text = "".join(f"{json.dumps(['x' * 2_000, 'y' * 2_000, number])}\n" for number in range(300))
    shown = preview(Previewed.of(text[:-1]), TIKTOKEN, budget=300)

    assert shown.startswith("JSON Lines of 300 lines")


def test_the_lines_of_a_list_are_not_parsed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f'{{"id": {number}, "note": "ends in a comma"}},' for number in range(5_000)]
    parsed: list[str] = []
    monkeypatch.setattr("coatcheck.core.preview.json_lines.parse_json", parsed.append)

    assert preview_json_lines(Previewed.of("\n".join(lines)), 300, TIKTOKEN) is None
    assert not parsed


def test_json_lines_stop_being_parsed_after_too_many_invalid_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def parse(line: str) -> None:
        parsed.append(line)
        raise ValueError(line)

    monkeypatch.setattr("coatcheck.core.preview.json_lines.parse_json", parse)

    assert preview_json_lines(Previewed.of("{not json}\n" * 5_000), 300, TIKTOKEN) is None
    assert len(parsed) == 1_001


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("wrap", [True, False], ids=["objects", "lists"])
def test_json_lines_with_records_of_many_kilobytes_are_not_one_value(line_end: str, *, wrap: bool) -> None:
    messages = [{"role": "user", "content": f"question {number}"} for number in range(900)]
    text = line_end.join(json.dumps({"id": f"c-{n}", "messages": messages} if wrap else messages) for n in range(40))
    shown = preview(Previewed.of(text), TIKTOKEN, budget=500)

    assert len(text) > 1_000_000
    assert not shown.startswith(("object with", "list of"))
