"""Previews stay within the budget, say how much of the content they show, and are true to it."""

from __future__ import annotations

import base64
import json
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import ByteCounter, TiktokenCounter, TokenCounter
from coatcheck.core.blocks import JsonValue, json_text, to_valid_unicode
from coatcheck.core.preview import Previewed, preview
from tests.core.strategies import json_values, long_texts

TIKTOKEN = TiktokenCounter()
COUNTERS = [pytest.param(TIKTOKEN, id="tiktoken"), pytest.param(ByteCounter(), id="bytes")]
LOG = "".join(f"2026-01-{number % 28 + 1:02} INFO request {number} served\n" for number in range(1, 5_001))
PROSE = "".join(f"The parcel on shelf {number} has no label.\n" for number in range(1, 5_001))
ORDERS: list[JsonValue] = [
    {"id": number, "customer": f"customer {number}", "total": number / 4, "items": [{"sku": "a"}, {"sku": "b"}]}
    for number in range(2_000)
]


def _preview(text: str, budget: int, *, counter: TokenCounter = TIKTOKEN, content_type: str = "text/plain") -> str:
    return preview(Previewed.of(text, content_type=content_type), counter, budget=budget)


@pytest.mark.parametrize("counter", COUNTERS)
@given(text=long_texts(), budget=st.integers(0, 300))
def test_a_preview_of_text_never_exceeds_its_budget_and_is_valid_unicode(
    counter: TokenCounter, text: str, budget: int
) -> None:
    shown = _preview(text, budget, counter=counter)

    shown.encode("utf-8")
    assert counter.count(shown) <= budget


@given(value=json_values(), repeat=st.integers(1, 200), budget=st.integers(0, 300))
def test_a_preview_of_json_never_exceeds_its_budget_and_is_valid_unicode(
    value: JsonValue, repeat: int, budget: int
) -> None:
    shown = _preview(json_text([value] * repeat), budget, content_type="application/json")

    shown.encode("utf-8")
    assert TIKTOKEN.count(shown) <= budget


@given(text=long_texts(), budget=st.integers(40, 300))
def test_everything_a_preview_of_text_shows_is_in_the_text(text: str, budget: int) -> None:
    shown = _preview(text, budget, content_type="text/markdown")  # shown as text, whatever it looks like
    gap = re.search(r"\n\[… (?:lines|characters) [\d,]+-[\d,]+ of [\d,]+ not shown(?:, in them: (.+))? …\]\n", shown)
    valid = to_valid_unicode(text)

    if gap is None:
        assert valid.startswith(shown)
    else:
        head, tail = shown[: gap.start()], shown[gap.end() :]
        assert valid.startswith(head)
        assert valid.endswith(tail)
        assert all(name in valid[len(head) : len(valid) - len(tail)] for name in (gap[1] or "").split())


def test_text_that_fits_is_shown_whole() -> None:
    assert _preview("short\ntext\n", 100) == "short\ntext\n"


def test_a_preview_of_text_shows_whole_lines_of_head_and_tail_and_names_the_lines_between() -> None:
    shown = _preview(LOG, 500).splitlines()
    gap = next(index for index, line in enumerate(shown) if line.startswith("[…"))
    numbers = re.fullmatch(r"\[… lines ([\d,]+)-([\d,]+) of 5,000 not shown …\]", shown[gap])

    assert numbers is not None
    first, last = (int(number.replace(",", "")) for number in numbers.groups())
    assert shown[:gap] == LOG.splitlines()[: first - 1]
    assert shown[gap + 1 :] == LOG.splitlines()[last:]
    assert gap > 5
    assert len(shown) - gap > 5


@pytest.mark.parametrize("text", [LOG, PROSE], ids=["log", "text"])
@pytest.mark.parametrize("ending", ["", "\n"])
def test_the_gaps_line_numbers_do_not_depend_on_the_last_line_end(text: str, ending: str) -> None:
    shown = _preview(text.rstrip("\n") + ending, 500)

    numbers = re.search(r"lines ([\d,]+)-([\d,]+) of ([\d,]+) not shown", shown)
    assert numbers is not None
    assert numbers.group(3) == "5,000"
    tail = shown[numbers.end() :].split("\n", 1)[1].splitlines()
    assert int(numbers.group(2).replace(",", "")) + len(tail) == 5_000


def test_a_preview_of_one_long_line_shows_both_ends_and_names_the_characters_between() -> None:
    line = "".join(f"<{number}>" for number in range(200_000))
    shown = _preview(line, 300)
    numbers = re.search(r"\n\[… characters ([\d,]+)-([\d,]+) of ([\d,]+) not shown(?:, in them: [\d ]+)? …\]\n", shown)

    assert numbers is not None
    first, last, total = (int(number.replace(",", "")) for number in numbers.groups())
    assert total == len(line)
    assert shown[: numbers.start()] == line[:first]
    assert shown[numbers.end() :] == line[last + 1 :]


def _drawn(rows: int, signs: str, *, is_grid: bool = False) -> str:
    """Return a table drawn with the three ``signs``: a cell separator, a rule, and a crossing."""
    part, rule, cross = tuple(signs)
    widths = (8, 44, 36, 30, 14)
    border = f"{cross}{cross.join(rule * (width + 2) for width in widths)}{cross}"
    cells = [("code", "airport", "city", "country", "latitude")]
    cells += [(f"K{number:03}", f"Field {number}", "Zanesville", "USA", f"39.{number}") for number in range(rows)]
    lines = [
        f"{part} {f' {part} '.join(f'{cell:{width}}' for cell, width in zip(row, widths, strict=True))} {part}"
        for row in cells
    ]
    body = f"\n{border}\n".join(lines[1:]) if is_grid else "\n".join(lines[1:])
    return f"{border}\n{lines[0]}\n{border}\n{body}\n{border}\n"


@pytest.mark.parametrize("is_grid", [False, True], ids=["table", "grid"])
@pytest.mark.parametrize("signs", ["│─┼", "┃━╋", "║═╬", "|-+"])
@pytest.mark.parametrize("budget", [250, 500])
def test_the_rules_of_a_drawn_table_leave_room_for_its_header_and_its_rows(
    signs: str, budget: int, *, is_grid: bool
) -> None:
    text = _drawn(1_000, signs, is_grid=is_grid)
    shown = _preview(text, budget).splitlines()
    gap = next(index for index, line in enumerate(shown) if line.startswith("[…"))
    numbers = re.match(r"\[… lines ([\d,]+)-([\d,]+) of ([\d,]+) not shown", shown[gap])

    assert numbers is not None
    first, last, total = (int(number.replace(",", "")) for number in numbers.groups())
    lines = text.splitlines()
    assert total == len(lines)
    assert first > 2
    assert "Field 999" in shown[-2]
    for line, whole in zip(shown[:gap] + shown[gap + 1 :], lines[: first - 1] + lines[last:], strict=True):
        assert line == (whole if "a" in whole else f"{whole[:8]}…")


def test_a_drawn_table_that_fits_without_its_long_rules_is_shown_with_every_row() -> None:
    text = _drawn(6, "│─┼", is_grid=True)
    shown = _preview(text, 300)

    assert TIKTOKEN.count(text) > 300
    assert shown == re.sub("(?m)^(.{8})[─┼]+$", r"\1…", text)


@pytest.mark.parametrize("rule", ["=" * 80, "─" * 80, "---- " * 16, "| --- " * 9 + "|", "+------+-----+"])
def test_a_rule_that_takes_few_tokens_is_shown_whole(rule: str) -> None:
    assert _preview(f"{rule}\n{PROSE}", 300, content_type="text/markdown").startswith(f"{rule}\n")


def test_places_refer_to_the_whole_text_when_a_line_below_a_rule_is_cut() -> None:
    text = _drawn(1, "│─┼") + "".join(f"<{number}>" for number in range(20_000))
    shown = _preview(text, 500)
    numbers = re.search(r"\n\[… characters ([\d,]+)-([\d,]+) of ([\d,]+) not shown.*…\]\n", shown)

    assert numbers is not None
    first, last, total = (int(number.replace(",", "")) for number in numbers.groups())
    assert total == len(text)
    assert shown[: numbers.start()] == text[:first].removesuffix("\n")
    assert shown[numbers.end() :] == text[last + 1 :]


def test_both_ends_are_shown_even_if_joined_parts_take_more_tokens_than_each_alone() -> None:
    class Joining(TokenCounter):
        def count(self, text: str) -> int:
            return len(text) + len(text) ** 2 // 1_000

    shown = _preview(PROSE, 900, counter=Joining(), content_type="text/markdown")

    assert shown.startswith("The parcel on shelf 1 has no label.\n")
    assert shown.endswith("The parcel on shelf 5000 has no label.\n")
    assert Joining().count(shown) <= 900


def test_the_tail_is_shown_because_errors_come_at_the_end() -> None:
    assert _preview(LOG + "FATAL: disk full\n", 200).rstrip().endswith("FATAL: disk full")


def test_the_names_in_a_gap_are_terms_to_search_for() -> None:
    code = "".join(
        f"    if value == {number}:\n        return convert_to_{7 * number}(value, 'x')\n" for number in range(400)
    )
    shown = _preview(code, 300)
    gap = re.search(r"\n\[… lines ([\d,]+)-([\d,]+) of 800 not shown, in them: (.+) …\]\n", shown)

    assert gap is not None
    first, last = (int(gap[group].replace(",", "")) for group in (1, 2))
    hidden = "\n".join(code.split("\n")[first - 1 : last])
    assert len(gap[3].split()) > 10
    assert all(f"{name}(" in hidden and f"{name}(" not in code[: code.index(hidden)] for name in gap[3].split())


def test_numbered_lines_are_shown_from_the_beginning_and_names_with_their_numbers() -> None:
    lines = [f"{number}:    value_{7 * number} = compute(value_{7 * number - 7})" for number in range(41, 400)]
    head, gap = _preview("\n".join(lines), 300).rsplit("\n", 2)[:2]
    held = re.fullmatch(r"\[… lines [\d,]+-359 of 359 not shown, in them: (.+) …\]", gap)

    assert lines[: head.count("\n") + 1] == head.split("\n")
    assert held is not None
    named = held[1].split()
    numbers = [int(term) for term in named if term.isdecimal()]
    assert [later - number for number, later in pairwise(numbers)] == [4] * (len(numbers) - 1)
    for number, following in pairwise([*(named.index(str(number)) for number in numbers), len(named)]):
        lines_named = [int(name.removeprefix("value_")) // 7 for name in named[number + 1 : following]]
        assert lines_named == list(range(int(named[number]), int(named[number]) + len(lines_named)))


def test_lines_that_begin_with_numbers_in_no_order_are_shown_from_both_ends() -> None:
    lines = [f"{number * 7919 % 997}\t/usr/share/file_{number}" for number in range(400)]
    shown = _preview("\n".join(lines), 300).splitlines()

    assert shown[0] == lines[0]
    assert shown[-1] == lines[-1]


def test_records_that_do_not_fit_are_named_if_all_of_them_can_be() -> None:
    columns = [
        {"name": f"column_{number}", "type": f"varchar({number})", "null": number % 2 == 0} for number in range(30)
    ]
    shown = _preview(json.dumps(columns), 320).splitlines()
    gap = next(line for line in shown if line.startswith("[… items"))
    rows = [line.split("|")[0] for line in shown[1:] if not line.startswith("[…")]
    named = re.fullmatch(r"\[… items (\d+)-(\d+), only name: (.+) …\]", gap)

    assert named is not None
    assert named[3].split("|") == [f"column_{number}" for number in range(int(named[1]), int(named[2]) + 1)]
    assert {*rows, *named[3].split("|")} == {column["name"] for column in columns}


def test_a_list_of_records_is_followed_by_the_names_in_those_not_shown() -> None:
    records = [{"id": number, "city": f"City_{number * 7}", "said": f"{number} words " * 20} for number in range(30)]
    *shown, names = _preview(json.dumps(records), 300).splitlines()

    assert names.startswith("[… more, in it: City_")
    assert len(names.split()) > 10
    assert not any(f"|{name}|" in row for name in names.split() for row in shown)


def test_numbers_that_only_count_rows_are_hardly_among_the_names() -> None:
    records = [{"id": number, "code": number * 7919 % 9000 + 1000} for number in range(100, 900)]
    names = _preview(json.dumps(records), 300).rpartition("in it: ")[2].split()

    assert len(names) > 20
    assert sum(int(name) < 1000 for name in names[:-1]) < len(names) / 5  # half of the numbers are ids


def test_ids_that_only_count_elements_are_hardly_among_the_names() -> None:
    page = "".join(
        f'- link "The section about Topic{chr(65 + number % 26)}{chr(65 + number // 26)}x of it" [ref=f1e{number}]:\n'
        for number in range(3, 600)
    )

    listed = _preview(page, 400).partition("in them:")[2]

    assert len(re.findall(r"f1e\d+", listed.partition("…]")[0])) <= 4
    assert len(re.findall(r"Topic\w+", listed)) > 30


def test_records_that_fit_are_all_shown_without_names() -> None:
    records = [{"id": number, "city": f"City_{number}", "is_open": number % 3 == 0} for number in range(40)]
    shown = _preview(json.dumps(records), 500).splitlines()

    assert [line.partition("|")[0] for line in shown[1:]] == [str(number) for number in range(40)]


def test_a_column_that_repeats_the_key_is_left_out() -> None:
    shown = _preview(json.dumps({f"u{n}": {"id": f"u{n}", "age": n} for n in range(300)}), 150).splitlines()

    assert shown[:2] == ["object with 300 keys, one a line: key = id|age", "u0|0"]


def test_records_are_not_named_by_a_value_that_several_share() -> None:
    rows = [{"kind": f"kind {n % 3}", "name": f"n{n}", "note": f"{n} words that take their room"} for n in range(30)]
    gap = next(line for line in _preview(json.dumps(rows), 200).splitlines() if line.startswith("[…"))

    assert ", only name: n" in gap


def test_a_column_that_repeats_only_some_keys_is_shown() -> None:
    shown = _preview(json.dumps({f"u{n}": {"id": f"u{n // 2}", "age": n} for n in range(300)}), 150).splitlines()

    assert shown[:2] == ["object with 300 keys, one a line: key|id|age", "u0|u0|0"]


def test_a_small_budget_shows_an_object_from_its_beginning_and_its_other_members() -> None:
    order = {"id": 7, "lines": [{"sku": f"s{n}", "at": {"x": n}} for n in range(90)], "note": "n", "paid": True}
    shown = _preview(json.dumps(order), 70)

    assert shown.startswith("id: 7\nlines: [{sku: s0, at: {x: 0}}, ")
    assert shown.endswith("…\nnote: n\npaid: true")


def test_a_small_budget_says_how_many_members_there_are_if_it_cannot_name_them() -> None:
    wide = {f"member {number}": [number] * 90 for number in range(90)}

    assert _preview(json.dumps(wide), 70).endswith("…\n[… of 90 keys]")


@pytest.mark.parametrize("text", ["[(1025, 'John', 12), (1101, 'Haley', 10), (1247, 'Alexis', 11), (1304, 'Jo', 12)]"])
def test_a_value_that_fits_without_quotes_is_shown_whole(text: str) -> None:
    shown = _preview(text, TIKTOKEN.count(text) - 4)

    assert shown == "[[1025, John, 12], [1101, Haley, 10], [1247, Alexis, 11], [1304, Jo, 12]]"


def test_a_budget_of_zero_shows_nothing() -> None:
    assert _preview(LOG, 0) == ""


def test_a_list_of_records_shows_its_fields_once_and_whole_records_from_both_ends() -> None:
    *shown, names = _preview(json.dumps(ORDERS), 1_200).splitlines()
    gap = next(index for index, line in enumerate(shown) if line.startswith("[…"))
    rows = [*range(gap - 1), *range(2_000 - (len(shown) - gap - 1), 2_000)]

    assert shown[0] == "list of 2,000 objects, one a line: id|customer|total|items"
    assert [line for line in shown[1:] if not line.startswith("[…")] == [
        f"{row}|customer {row}|{row / 4}|[{{sku: a}}, {{sku: b}}]" for row in rows
    ]
    assert shown[gap] == f"[… items {gap - 1}-{2_000 - (len(shown) - gap - 1) - 1:,} not shown …]"
    assert gap > 10
    assert shown[-1].startswith("1999|")
    assert names.startswith("[… more, in it: ")


def test_an_object_shows_its_keys_and_the_records_of_its_longest_list() -> None:
    shown = _preview(json.dumps({"page": 1, "total count": 2_000, "results": ORDERS}), 600)

    assert shown.startswith(
        'object with 3 keys\npage: 1\n"total count": 2000\nresults: list of 2,000 objects, one a line: id|'
    )
    assert "\n  0|customer 0|" in shown
    assert "\n  1999|customer 1999|" in shown


def test_a_field_that_some_records_lack_is_an_empty_cell_and_null_is_not() -> None:
    records = [{"id": number, **({"note": None if number % 2 else "x"} if number % 3 else {})} for number in range(500)]
    shown = _preview(json.dumps(records), 200).splitlines()

    assert shown[0].endswith("id|note")
    assert shown[1:4] == ["0|", "1|null", "2|x"]


def test_a_string_that_looks_like_another_type_keeps_its_quotes() -> None:
    records = [{"a": value} for value in ("12", "null", "a|b", "", " x", 'say "x"', "2024-05-01", "O'Neil")] * 40

    assert _preview(json.dumps(records), 300).splitlines()[1:8] == [
        '"12"', '"null"', '"a|b"', '""', '" x"', '"say \\"x\\""', "2024-05-01",
    ]  # fmt: skip


def test_a_value_common_to_all_shown_records_is_shown_once() -> None:
    shown = _preview(json.dumps([{"id": number, "state": "open"} for number in range(500)]), 100).splitlines()

    assert shown[0] == "list of 500 objects, one a line: id (each row shown has state: open)"
    assert shown[1:3] == ["0", "1"]


def test_nested_objects_become_columns_named_by_their_query_path() -> None:
    records = [{"id": number, "price": {"amount": number, "tax": number * 2}} for number in range(500)]
    shown = _preview(json.dumps(records), 100).splitlines()

    assert shown[0] == "list of 500 objects, one a line: id|price.(amount|tax)"
    assert shown[2] == "1|1|2"


def test_lists_of_lists_of_records_show_each_list_on_a_line() -> None:
    legs: JsonValue = [[{"from": f"A{number}", "to": "B"}, {"from": "B", "to": f"C{number}"}] for number in range(300)]
    shown = _preview(json.dumps(legs), 100).splitlines()

    assert shown[0] == "list of 300 lists, one a line: from|to"
    assert shown[1] == "A0|B ; B|C0"


def test_an_object_of_records_shows_them_by_key() -> None:
    shown = _preview(
        json.dumps({f"user_{number}": {"age": number, "city": f"c{number}"} for number in range(300)}), 200
    )

    assert shown.splitlines()[:3] == ["object with 300 keys, one a line: key|age|city", "user_0|0|c0", "user_1|1|c1"]


def test_a_small_member_next_to_a_large_one_is_shown_whole() -> None:
    shown = _preview(json.dumps({"rows": list(range(5_000)), "owner": {"name": "Ada", "id": 7}}), 200)

    rows = re.search(r"\nrows: \[(.*), … ([\d,]+) more items\]", shown)
    assert rows is not None
    assert rows[1].split(", ") == [str(number) for number in range(5_000 - int(rows[2].replace(",", "")))]
    assert "\nowner: {name: Ada, id: 7}\n[… more, in it: " in shown


def test_a_long_string_in_an_object_is_shown_by_its_head_and_its_length() -> None:
    shown = _preview(json.dumps({"status": 200, "body": "word " * 5_000}), 150)

    assert "\nstatus: 200" in f"\n{shown}"
    assert re.search(r'\nbody: "word word .*… \(25,000 characters\)(?:\n|$)', shown)


def test_long_values_of_long_records_are_shown_with_their_size() -> None:
    records: list[JsonValue] = [
        {"id": number, "text": f"{number} word " * 500, "tags": [number] * 900, "owner": {"name": f"{number}" * 700}}
        for number in range(10, 60)
    ]
    shown = _preview(json.dumps(records), 400).splitlines()

    assert shown[0] == "list of 50 objects, one a line: id|text|tags|owner.name"
    assert shown[1].startswith('10|"10 word 10 word')
    assert "… (4,000 characters)|[900 items]|" in shown[1]
    assert shown[1].endswith("… (1,400 characters)")


def test_integers_beyond_64_bits_are_shown_exactly() -> None:
    number = 123_456_789_012_345_678_901_234_567_890

    assert str(number) in _preview(json.dumps([{"id": number}] * 500), 200)


def test_a_wide_object_says_how_many_keys_are_left_out() -> None:
    shown = _preview(json.dumps({f"key_{number}": number for number in range(5_000)}), 200)

    assert shown.startswith("object with 5,000 keys\nkey_0: 0\n")
    left_out = re.search(r"\[… ([\d,]+) more keys …\]\n\[… more, in it: ", shown)
    assert left_out is not None
    assert shown[: left_out.start()].count("key_") + int(left_out.group(1).replace(",", "")) == 5_000


@pytest.mark.parametrize("text", ["[1, 2, 3" * 900 + "]", "{not json}" * 900, "[" * 2_000 + "]" * 1_999])
def test_text_that_only_looks_like_json_is_shown_as_text(text: str) -> None:
    shown = _preview(text, 100)

    assert "not shown …]" in shown


def test_json_too_large_to_parse_is_shown_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coatcheck.core.preview.json.MAX_PARSED_CHARACTERS", 1_000)
    monkeypatch.setattr("coatcheck.core.preview.json.LARGE", 500)
    monkeypatch.setattr("coatcheck.core.preview.python.MAX_PARSED_CHARACTERS", 1_000)

    assert "characters" in _preview(json.dumps({"deep": {"orders": ORDERS}}), 300)


def test_a_preview_of_large_text_is_made_from_its_ends() -> None:
    looked_at = 0

    class Counting(ByteCounter):
        def count(self, text: str) -> int:
            nonlocal looked_at
            looked_at += len(text)
            return super().count(text)

    preview(Previewed(text=LOG * 50, content_type="text/plain", lines=250_000), Counting(), budget=1_000)

    assert looked_at < 200_000


def test_every_item_of_a_list_is_shown_before_one_is_shown_in_full() -> None:
    records = [{"title": f"title {n}", "text": f"{n}: {'many words ' * 90}"} for n in range(10)]
    shown = _preview(json.dumps({"total": 10, "items": records}), 500)

    assert all(f'  title {n}|"{n}: many words' in shown for n in range(10))


def test_a_preview_of_json_counts_the_tokens_of_the_whole_only_a_few_times() -> None:
    class Noting(ByteCounter):
        counts = 0

        def count(self, text: str) -> int:
            self.counts += 1
            return super().count(text)

    counter = Noting()
    value = {f"k{n}": [{"id": m, "tags": [{"name": f"t{k}"} for k in range(4)]} for m in range(5)] for n in range(40)}
    preview(Previewed.of(json.dumps(value)), counter, budget=4_000)

    assert counter.counts <= 10


WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "islet", "jetty", "knoll", "larch")


@pytest.mark.parametrize("end", ["", "\n"])
def test_the_gap_in_text_ends_right_before_the_next_shown_line(end: str) -> None:
    lines = [f"{a} and {b} met {c} by the {d}" for a in WORDS for b in WORDS for c in WORDS[:4] for d in WORDS[:2]]
    shown = _preview("\n".join(lines) + end, 200).split("\n")
    (at,) = (number for number, line in enumerate(shown) if line.startswith("[…"))
    said = re.match(r"\[… lines ([\d,]+)-([\d,]+) of ([\d,]+) not shown", shown[at])

    assert said is not None
    first, last, total = (int(number.replace(",", "")) for number in said.groups())
    assert shown[at - 1] == lines[first - 2]
    assert shown[at + 1] == lines[last]
    assert total == len(lines)


@pytest.mark.parametrize("beginning", ["", "data:audio/wav;base64,"])
@pytest.mark.parametrize("count", [600, 90_000, 300_000])
def test_only_a_few_characters_of_base64_in_an_object_are_shown(beginning: str, count: int) -> None:
    audio = beginning + base64.b64encode((bytes(range(256)) * 1_200)[:count]).decode()
    said = {"type": "text", "text": "the transcript begins at 00:14"}

    shown = _preview(json.dumps([{"type": "audio", "base64": audio}, said, *range(900)]), 500)

    assert audio[:64] in shown
    assert audio[:65] not in shown
    assert f"… ({len(audio):,} characters)" in shown
    assert "the transcript begins at 00:14" in shown


def test_a_long_name_is_not_taken_for_base64() -> None:
    path = "/".join(f"Folder{number}/part_of_a_long_path" for number in range(40))

    assert path[:300] in _preview(json.dumps([path, *range(2_000)]), 500)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Signed in as anna, then the page said: order 4711 was refused, data:image/png;base64,", ""),
        ("![logo](data:image/png;base64,", ")\n# Notes\nThe port is 5433."),
        ("data:image/png;base64,", " is shown. " + "The port is 5433. " * 20),
    ],
)
def test_words_before_and_after_base64_in_a_string_are_not_cut_like_base64(before: str, after: str) -> None:
    written = before + base64.b64encode(bytes(range(256)) * 2).decode() + after

    assert written[:150] in _preview(json.dumps([written, *range(2_000)]), 500)
