"""What holds for every kind of content: the right kind, within the budget, whole records, all of it reachable."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import ByteCounter, TiktokenCounter, TokenCounter
from coatcheck.core.preview import Previewed, kinds, preview
from coatcheck.core.preview.kinds import kinds_of
from tests.core.preview_samples import SAMPLES, TEXT
from tests.core.previewing import checked_preview
from tests.core.strategies import texts
from tests.core.test_preview_guard import KINDS

TIKTOKEN = TiktokenCounter()
COUNTERS = st.sampled_from([TIKTOKEN, ByteCounter()])
NAMES = st.sampled_from(sorted(SAMPLES))
MANY = 2_000


def _made(name: str, count: int = MANY) -> str:
    return SAMPLES[name][1](count)


def _shown(name: str, budget: int) -> list[str]:
    return preview(Previewed.of(_made(name)), TIKTOKEN, budget=budget).splitlines()


def _kind_of(text: str) -> str:
    """Return the kind that shows ``text``, by the name of its function."""
    content = Previewed.of(text)
    shows = (show for show in kinds_of(content) if show(content, 300, TIKTOKEN) is not None)
    return next(shows).__name__.removeprefix("preview_")


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("count", [60, MANY])
def test_every_sample_is_shown_as_its_own_kind_and_as_no_other(name: str, count: int) -> None:
    assert _kind_of(_made(name, count)) == SAMPLES[name][0]


def test_every_kind_has_a_sample_and_text_to_fail_on() -> None:
    every = {name for name in vars(kinds) if name.startswith("preview_")}

    assert {f"preview_{kind}" for kind, _ in SAMPLES.values()} == every, "add a row to SAMPLES in preview_samples.py"
    assert KINDS.keys() == every, "add a row to KINDS in test_preview_guard.py"


def test_no_content_type_declares_two_kinds() -> None:
    counts = Counter(content_type for types in kinds._TYPES.values() for content_type in types)

    assert [content_type for content_type, count in counts.items() if count > 1] == []


@pytest.mark.no_cover
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("budget", [100, 250, 1_000])
def test_a_preview_uses_its_budget_and_says_that_something_is_missing(name: str, budget: int) -> None:
    shown = "\n".join(_shown(name, budget))

    assert TIKTOKEN.count(shown) <= budget
    assert "…" in shown or "the rest are not" in shown
    if SAMPLES[name][0] != "noise":
        assert TIKTOKEN.count(shown) > budget * 0.6


@given(name=NAMES, count=st.integers(1, 400), budget=st.integers(0, 1_500), counter=COUNTERS, data=st.data())
def test_damaged_content_of_any_kind_has_one_preview_within_the_budget(
    name: str, count: int, budget: int, counter: TokenCounter, data: st.DataObject
) -> None:
    text = _made(name, count)
    start, end = sorted(data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    damaged = text[:start] + data.draw(texts(pieces=4)) + text[start:end]
    shown = preview(Previewed.of(damaged), counter, budget=budget)

    shown.encode("utf-8")
    assert counter.count(shown) <= budget
    assert preview(Previewed.of(damaged), counter, budget=budget) == shown


@given(name=NAMES, count=st.integers(1, 300), budget=st.integers(400, 500))
def test_content_that_fits_is_shown_unchanged(name: str, count: int, budget: int) -> None:
    text = _made(name, count)
    if not TIKTOKEN.exceeds(text, budget):
        assert preview(Previewed.of(text), TIKTOKEN, budget=budget) == text


# Whole records: every line shown is one record of the content, checked by its own syntax.


def _rows_after_the_header(shown: list[str]) -> list[str]:
    return [line for line in shown[1:] if not line.startswith("[…")]


@pytest.mark.parametrize("budget", [240, 333, 1_000])
def test_rows_of_a_csv_preview_are_lines_of_the_content(budget: int) -> None:
    *shown, names = _shown("CSV", budget)

    assert names.startswith("[… more, in it: ")
    assert shown[:2] == ["table of 2,001 lines by 4 columns, the header is line 1", "id,name,city,score"]
    assert set(_rows_after_the_header(shown)) <= set(_made("CSV").splitlines())
    assert shown[-1] == "1999,name 1999,city 1999,249.875"


def test_rows_that_span_lines_are_not_shown_as_a_table() -> None:
    text = "id,note,x,y\n" + "".join(f'{number},"first\nsecond",1,2\n' for number in range(500))

    assert _kind_of(text) == TEXT


def test_a_hidden_row_that_spans_lines_makes_no_count_wrong() -> None:
    rows = "".join(f"{number},a note,1,2\n" for number in range(400))
    shown = preview(Previewed.of(f'id,note,x,y\n{rows}400,"first\nsecond",1,2\n{rows}'), TIKTOKEN, budget=200)

    what = "table of 803 lines by 4 columns, the header is line 1; lines 1-803 not searched for odd ones"
    assert shown.startswith(f"{what}\nid,note,x,y\n")


@pytest.mark.parametrize("budget", [240, 333, 1_000])
def test_records_of_json_lines_are_whole(budget: int) -> None:
    *shown, names = _shown("JSON Lines", budget)
    records = [json.loads(line) for line in _made("JSON Lines").splitlines()]
    expected = {f"{one['id']}|{one['customer']}|{json.dumps(one['paid'])}|{one['total']}" for one in records}

    assert names.startswith("[… more, in it: ")
    assert shown[0] == "JSON Lines of 2,000 lines, one a line: id|customer|paid|total"
    assert set(_rows_after_the_header(shown)) <= expected
    assert "1999|customer 1999|false|499.75" in shown


def _spread(objects: list[object], ending: str = "") -> str:
    """Return each object on several lines, as MCP servers send the items of a list."""
    return "\n".join(json.dumps(one, indent=2) for one in objects) + ending


@pytest.mark.parametrize("ending", ["", "\n", "\n\n"])
@pytest.mark.parametrize("budget", [150, 333, 1_000])
def test_objects_on_several_lines_become_rows_and_gaps_name_their_lines(budget: int, ending: str) -> None:
    objects = [{"id": n, "name": f"customer {n}", "at": {"city": "Oslo"}, "tags": [n, "}{"]} for n in range(2_000)]
    text = _spread([*objects], ending)
    lines = text.splitlines()
    shown = preview(Previewed.of(text), TIKTOKEN, budget=budget).splitlines()
    [gap] = (index for index, line in enumerate(shown) if line.startswith("[… lines"))
    numbers = re.fullmatch(r"\[… lines ([\d,]+)-([\d,]+) of ([\d,]+) not shown …\]", shown[gap])

    assert shown[0] == "2,000 JSON objects, one a line: id|name|tags (each row shown has at.city: Oslo)"
    assert numbers is not None
    first, last, total = (int(number.replace(",", "")) for number in numbers.groups())
    assert total == len(lines)
    rows = [f'{n}|customer {n}|[{n}, "}}{{"]' for n in range(2_000)]
    assert shown[1:gap] == rows[: gap - 1]
    assert lines[first - 1 : first + 1] == ["{", f'  "id": {gap - 1},']
    after = [line for line in shown[gap + 1 :] if not line.startswith("[… more")]
    assert after == rows[2_000 - len(after) :]
    assert lines[last : last + 2] == ["{", f'  "id": {2_000 - len(after)},']


@pytest.mark.parametrize("other", ["3", '"a"', "[]", "{", '{"id": 1}, {"id": 2}', "]", "words"])
def test_objects_on_several_lines_mixed_with_anything_else_are_text(other: str) -> None:
    objects = _spread([{"id": n, "name": f"customer {n}"} for n in range(400)])

    assert "JSON objects" not in preview(Previewed.of(f"{objects}\n{other}\n{objects}"), TIKTOKEN, budget=300)


def test_braces_in_code_are_not_taken_for_objects() -> None:
    code = "".join(f"{{\n  int step{n} = {n};\n}}\n" for n in range(400))

    assert preview(Previewed.of(code), TIKTOKEN, budget=300).startswith("{\n  int step0")


@pytest.mark.parametrize("budget", [120, 333, 1_000])
def test_rows_of_a_python_literal_are_whole(budget: int) -> None:
    shown = _shown("rows", budget)
    expected = {f"{a}|{b}|{d}" for a, b, _, d in ast.literal_eval(_made("rows"))}

    assert shown[0] == "list of 2,000 lists, one a line: [0]|[1]|[3] (each row shown has [2]: None)"
    assert set(_rows_after_the_header(shown)) <= expected


def test_values_that_only_python_writes_are_shown_unchanged() -> None:
    assert "datetime.date(2024, 5, 1)|Decimal('0.50')" in _shown("rows with dates", 200)


@pytest.mark.parametrize("name", ["log", "counted lines", "prose", "paths", "listing"])
def test_lines_are_whole_and_gaps_say_which_are_missing(name: str) -> None:
    lines = _made(name).splitlines()
    number = 0
    heading = name in {"log", "counted lines", "prose"}  # it counts the trouble, or the lines that are alike
    for line in _shown(name, 400)[heading:]:
        gap = re.fullmatch(r"\[… lines ([\d,]+)-([\d,]+) of ([\d,]+) not shown(?:, in them: .*)? …\]", line)
        if gap is None:
            number += 1
            assert re.sub(r" \([\d,]+ alike\)$", "", line) == lines[number - 1]
        else:
            first, last, total = (int(group.replace(",", "")) for group in gap.groups())
            assert (first, total) == (number + 1, len(lines))
            number = last
    assert number == len(lines)


def test_a_log_shows_the_error_in_its_middle_with_the_lines_around_it_counted() -> None:
    shown = _shown("log", 250)
    at = shown.index("2026-01-01 12:00:00 ERROR disk /dev/sda1 is full")

    assert shown[at - 1].endswith("-1,000 of 2,000 not shown …]")
    assert shown[at + 1].startswith("[… lines 1,002-")


def test_three_lines_of_trouble_that_differ_only_in_digits_are_shown_and_all_are_counted() -> None:
    alike = [f"2026-01-01 12:00:00 ERROR worker {number} of 64 lost its lease\n" for number in range(400)]
    other = ["2026-01-01 12:00:00 ERROR no space left on the disk\n"]
    between = [f"2026-01-01 12:00:00 INFO job {number} done\n" for number in range(40)]
    shown = preview(
        Previewed.of("".join((*between, *alike[:200], *other, *alike[200:], *between))), TIKTOKEN, budget=600
    )

    assert shown.count("lost its lease") == 3
    assert "ERROR worker 0 of 64 lost its lease (400 alike)\n" in shown
    assert "no space left on the disk\n" in shown


def test_a_failure_shows_where_it_began_and_what_it_was() -> None:
    shown = _shown("failure", 150)

    assert "Traceback (most recent call last):" in shown
    assert shown[-1] == "ValueError: bad value 42"


def test_a_progress_bar_is_shown_by_its_end_without_colours() -> None:
    shown = _shown("progress", 150)

    assert shown[:3] == ["installing", "100%", "ok step 0"]
    assert shown[-1] == "finished"


def test_matches_are_grouped_by_file_and_every_file_is_shown_first() -> None:
    shown = _shown("matches", 300)

    assert shown[0] == "7 files, 14 of 2,000 matches shown, the rest are not:"
    assert sum(line.endswith(")") and "module.py (" in line for line in shown) == 7
    assert "  1:def function_0(value: int) -> int:" in shown


def test_matches_beyond_those_read_are_not_counted() -> None:
    text = "".join(f"src/file.py:{number}: some match {number}\n" for number in range(1, 30_001))
    content = Previewed(text=text, content_type="text/plain", lines=30_000)
    shown = preview(content, ByteCounter(), budget=300).split("\n")

    assert re.fullmatch(r"1 file, \d+ of the first [\d,]+ matches shown, the rest are not:", shown[0])
    assert re.fullmatch(r"\[… lines [\d,]+-30,000 of 30,000 not shown …\]", shown[-1])


@pytest.mark.parametrize(
    "end", ["Found 1071 errors in 27 files", "\nFound 225 errors.\n[*] 5 fixable with --fix", "\n"]
)
def test_a_checkers_summary_below_its_matches_is_shown(end: str) -> None:
    matches = "".join(f"src/part_{number % 9}.py:{number}: error: no such name\n" for number in range(900))
    shown = checked_preview(Previewed.of(f"{matches}{end}\n"), 300)

    assert re.match(r"9 files, \d+ of 900 matches shown, the rest are not:\n", shown)
    assert shown.endswith(f"\n{end}")


def test_a_match_at_the_end_is_not_taken_for_a_checkers_summary() -> None:
    matches = "".join(f"src/part_{number % 9}.py:{number}: error: no such name\n" for number in range(900))
    shown = checked_preview(Previewed.of(f"{matches}2 hosts skipped\nsrc/other.py:1: error: other\n"), 300)

    assert re.match(r"9 files, \d+ of the first 900 matches shown, the rest are not:\n", shown)
    assert shown.endswith("\n[… lines 901-902 of 902 not shown …]")


def test_a_match_in_a_file_without_a_dot_or_slash_is_a_match() -> None:
    code = [f"src/part_{number % 9}.py:{number}:    needle({number})" for number in range(1, 400)]
    text = "\n".join(["Makefile:12:\tneedle --all", "LICENSE:84:of any needle", *code])
    shown = checked_preview(Previewed.of(text), 300).split("\n")

    assert shown[0].startswith("11 files, ")
    assert shown[1:3] == ["Makefile (1)", "  12:\tneedle --all"]
    names = "\n".join(f"Alice:{number}:needle {number}" for number in range(400))
    assert "matches shown" not in checked_preview(Previewed.of(names), 300)


def test_context_lines_of_matches_are_neither_shown_nor_counted() -> None:
    groups = [
        f"{name}-{at - 1}-before\n{name}:{at}:needle({at})\n{name}-{at + 1}-    behind: 1-2-3"
        for at in range(10, 900, 10)
        for name in (f"src/part-{at % 7}.py", "Makefile")
    ]
    shown = checked_preview(Previewed.of("\n--\n".join(groups)), 300).split("\n")

    assert re.fullmatch(r"8 files, \d+ of 178 matches shown, the lines around them and the rest are not:", shown[0])
    assert "Makefile (89)" in shown
    assert not any("before" in line or "behind" in line for line in shown)


@pytest.mark.parametrize(
    "body",
    [
        f"<table border='1'>\n{'<tr><td>1</td><td>Ada</td></tr>' * 400}\n</table>\n",
        f"<h2>Steps</h2>{'<p>Restart <b>it</b>,<br>then <ac:link ac:name=2>look</ac:link>.' * 400}</p><p />",
    ],
)
def test_the_body_of_a_page_alone_is_shown_as_html(body: str) -> None:
    assert _kind_of(body) == "html"


@pytest.mark.parametrize(
    ("begin", "line", "end"),
    [
        ('<p align="center">logo</p>\n\n# Title\n', "Some text, and more of it.\n", "<p>end</p>\n"),
        ("<div>\n", '<app-row [item]="a" (click)="go()">words</app-row>\n', "</div>\n"),
        ("<div>\n", '<row :item="a">words</row>\n', "</div>\n"),
        ("<div>\n", '<button class="b" (click)="go()">words</button>\n', "</div>\n"),
        ("<div>\n", "<Row onClick={() => go()} price={item.price}>words</Row>\n", "</div>\n"),
        ("<ul>\n", "{#each items as item}<li>{item}</li>{/each}\n", "</ul>\n"),
        ("<div>\n", '<span th:text="${user.name}">words</span>\n', "</div>\n"),
        ("<table>\n", '<row id="1"><name first="Ada">words</name></row>\n', "</table>\n"),
        ("<ul>\n", "<li>{{ name }}</li>\n", "</ul>\n"),
        ("<p>", "Words without an end. ", ""),
    ],
)
def test_markdown_and_templates_that_begin_with_an_element_are_not_html(begin: str, line: str, end: str) -> None:
    assert _kind_of(f"{begin}{line * 400}{end}") != "html"


@pytest.mark.parametrize("stamp", ["[{:12.6f}]", "[Thu Jan  1 10:00:{:02.0f} 2026]"])
def test_kernel_messages_are_a_log(stamp: str) -> None:
    lines = [f"{stamp.format(number * 0.066)} pci 0000:00:{number % 99:02}.0: found" for number in range(900)]

    assert _kind_of("\n".join(lines)) == "log"


def test_noise_is_named_instead_of_shown() -> None:
    shown = _shown("base64", 1_000)

    assert shown[0] == "base64 data, 32,000 characters, beginning with:"
    assert len(shown) == 3
    picture = "data:image/png;base64,iVBORw0KGgo" + _made("base64")
    assert preview(Previewed.of(picture), TIKTOKEN, budget=200).startswith("base64 data, a PNG image, 32,0")


def test_a_page_is_shown_as_its_title_and_text_without_scripts() -> None:
    shown = _shown("page", 200)

    assert shown[1:5] == ["Things", "Part 0", "All about thing 0.", "Part 1"]
    assert "go(" not in "".join(shown)


def test_a_page_that_nests_without_text_is_shown_as_markup() -> None:
    text = "<html>" + "<div>" * 600_000

    assert preview(Previewed.of(text), ByteCounter(), budget=300).startswith("<html><div>")


# What a preview costs, and special cases.


@pytest.mark.parametrize(
    "name", [name for name, (kind, _) in SAMPLES.items() if kind not in {"json", "python", "html", "xml"}]
)
def test_what_is_counted_does_not_grow_with_the_content(name: str) -> None:
    looked_at = [_work(_made(name, count)) for count in (4_000, 40_000)]

    assert looked_at[1] <= looked_at[0] * 1.5 + 2_000


def _work(text: str) -> int:
    total = 0

    class Counting(ByteCounter):
        def count(self, text: str) -> int:
            nonlocal total
            total += len(text)
            return super().count(text)

    preview(Previewed.of(text), Counting(), budget=500)
    return total


def test_json_with_a_repeated_key_is_shown_as_text_and_hides_no_value() -> None:
    items = ", ".join(f'{{"id": {number}, "name": "n {number}"}}' for number in range(200))
    once = f'{{"items": [{items}], "owner": "Grace", "said": "\\"yes\\" \\u0022no\\u0022"}}'
    twice = once.replace('"owner"', '"owner": "Ada", "owner"')

    assert preview(Previewed.of(once), TIKTOKEN, budget=200).startswith("object with 3 keys")
    assert '"owner": "Ada", "owner": "Grace"' in preview(Previewed.of(twice), TIKTOKEN, budget=200)


def test_json_too_deep_to_serialize_is_outlined() -> None:
    deep = f'{{"a": {"[" * 300}"{"word " * 400}"{"]" * 300}}}'

    assert preview(Previewed.of(deep), TIKTOKEN, budget=200).startswith("{a: [[[")


def test_blank_lines_of_a_log_are_shown_as_blank_lines() -> None:
    lines = [f"2026-01-01 12:00:{number % 60:02} INFO worker {number} is up" for number in range(200)]
    shown = checked_preview(Previewed.of("\n\n".join(lines)), 400)
    head, tail = shown.split("[… ")

    assert len(head.split("\n\n")) > 5
    assert shown.endswith(f"\n\n{lines[-1]}")
    assert "not shown …]" in tail


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("count", [500, 40_000])
def test_json_is_shown_as_json_even_with_values_that_only_python_writes(value: str, count: int) -> None:
    rows = [f'{{"step": {step}, "loss": {value if step == 7 else step}}}' for step in range(count)]
    as_list, as_lines = (checked_preview(Previewed.of(text), 200) for text in (f"[{','.join(rows)}]", "\n".join(rows)))

    assert re.match(rf"list of (about )?{count:,} objects", as_list)
    assert as_lines.startswith(f"JSON Lines of {count:,} lines")
    assert f"\n7|{value}\n" in as_list
    assert f"\n7|{value}\n" in as_lines


@pytest.mark.parametrize("before", ["\ufeff", "\ufeff\n"])
def test_a_byte_order_mark_hides_no_json(before: str) -> None:
    rows = [{"id": number, "name": f"name {number}"} for number in range(500)]

    assert checked_preview(Previewed.of(before + json.dumps(rows)), 200).startswith("list of 500 objects")


@pytest.mark.parametrize(("file", "place"), [("src/(app)/part_{}.ts", "({},5)"), ("C:\\app\\Part{}.cs", "({})")])
def test_errors_of_the_typescript_and_net_compilers_are_grouped_by_file(file: str, place: str) -> None:
    errors = "".join(f"{file.format(n % 9)}{place.format(n)}: error X1: no such name 'n{n}'.\n" for n in range(900))
    shown = checked_preview(Previewed.of(errors), 500)

    assert re.match(r"9 files, \d+ of 900 matches shown, the rest are not:\n", shown)
    assert all(f"\n{file.format(part)} (100)\n" in shown for part in range(9))
