"""Text inside an envelope is shown as the kind it is."""

from __future__ import annotations

import base64
import json
import re
import time
from typing import TYPE_CHECKING

import pytest

from coatcheck import ByteCounter, TiktokenCounter
from coatcheck.core.preview import Previewed, preview
from coatcheck.core.preview.envelope import output_in, unescaped_text, unwrapped
from tests.core.previewing import checked_preview

if TYPE_CHECKING:
    from collections.abc import Callable

LINES = "".join(f'step {number} said "done"\n' for number in range(900))
RECORDS = json.dumps([{"id": number, "name": f"name {number}"} for number in range(900)])
CSV = "id,name,city,score\n" + "".join(f"{n},name {n},city {n},{n / 8}\n" for n in range(900))
INSIDE = "unescaped text inside, with its own line numbers; search with pattern:"


def _shown(text: str, budget: int = 300) -> str:
    return checked_preview(Previewed.of(text), budget)


@pytest.mark.parametrize(
    "envelope",
    [
        json.dumps({"type": "text", "text": RECORDS}),
        json.dumps({"content": [{"type": "text", "text": RECORDS}], "isError": False}),
        json.dumps(json.dumps({"text": RECORDS})),
        f"meta=None content=[TextContent(type='text', text={RECORDS!r})]",
    ],
)
def test_an_envelope_is_shown_as_the_kind_of_the_text_inside(envelope: str) -> None:
    assert _shown(envelope).startswith(f"{INSIDE}\nlist of 900 objects, one a line: id|name\n0|name 0\n")


def test_a_table_inside_an_envelope_is_shown_as_a_table() -> None:
    assert _shown(json.dumps({"text": CSV})).startswith(f"{INSIDE}\ntable of 901 lines by 4 columns")


def test_text_that_is_cut_off_inside_is_unwrapped_as_far_as_it_goes() -> None:
    assert _shown(json.dumps({"type": "text", "text": LINES})[:9_000]).startswith(
        f'{INSIDE}\n[lines alike but for their numbers: 378 like line 1]\nstep 0 said "done"\nstep 1 said "done"\n'
    )


def test_quoted_text_on_its_own_line_is_unwrapped() -> None:
    """Playwright's server returns the text of a page in this form."""
    shown = _shown(f"### Result\n{json.dumps(LINES)}\n### Ran code")

    assert shown.startswith(f'{INSIDE}\n[### Result\n"…"\n### Ran code]\n[lines alike but for their numbers: ')
    assert '\nstep 899 said "done"' in shown


def test_the_rest_of_an_envelope_is_shown() -> None:
    shown = _shown(json.dumps({"status": "failed", "text": LINES}))

    assert shown.startswith(
        f'{INSIDE}\n[{{"status": "failed", "text": "…"}}]\n[lines alike but for their numbers: 900 like line 1]\n'
    )


def test_an_image_does_not_hide_the_text_around_it() -> None:
    image = base64.encodebytes(bytes(range(256)) * 120).decode()
    cells: list[object] = [{"source": [f"plot_{number}()"], "outputs": []} for number in range(9)]
    cells.append({"outputs": [{"data": {"image/png": image}}]})

    shown = _shown(json.dumps({"cells": cells, "metadata": {"language": "python"}}), 500)

    assert "plot_8()" in shown
    assert "metadata: {language: python}" in shown


def test_short_text_around_an_image_is_shown_with_it() -> None:
    text = json.dumps(
        {"path": "a.png", "data": base64.encodebytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 90).decode()}
    )

    assert _shown(text).startswith(
        f'{INSIDE}\n[{{"path": "a.png", "data": "…"}}]\nbase64 data, a PNG image, 31,137 characters'
    )


def test_a_cut_in_the_rest_of_an_envelope_is_marked() -> None:
    text = json.dumps({"command": "x" * 300, "text": LINES})

    assert f"\n[{text[:199]}…]\n" in _shown(text, 500)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"text": "plain words " * 900}),
        json.dumps({"a": LINES, "b": LINES}),
        "it's a \\n and \\t and \\r of prose " * 300,
        RECORDS,
        LINES,
    ],
)
def test_text_that_is_not_an_envelope_is_not_unwrapped(text: str) -> None:
    assert unwrapped(text) is None


@pytest.mark.parametrize(
    "text", ['a "b"\n\tc\\d/e\r', "\N{SNOWMAN} \U0001f600", "\\\\n \\", "\x01\x7f", 'C:\\new\\"table"\\']
)
def test_json_escapes_are_resolved(text: str) -> None:
    assert unescaped_text(json.dumps(text)[1:-1]) == text
    assert unescaped_text(json.dumps(text, ensure_ascii=False)[1:-1]) == text


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    assert unescaped_text("a \\ud83d b\u00e9") == "a \ufffd b\u00e9"


@pytest.mark.no_cover
def test_a_preview_of_an_envelope_counted_in_bytes_stays_within_its_budget() -> None:
    text = json.dumps({"type": "text", "text": RECORDS})
    for budget in range(1, 400, 7):
        content = Previewed(text=text, content_type="text/plain", lines=1)
        assert ByteCounter().count(preview(content, ByteCounter(), budget=budget)) <= budget


OUTPUTS = {
    "on lines of its own": ("<returncode>0</returncode>\n<output>\n", "\n</output>", 2),
    "on one line": ("<returncode>0</returncode><output>", "</output>", 0),
    "return code behind it": ("<output>\n", "\n</output>\n<returncode>0</returncode>\n", 1),
    "a warning before it": (
        "<returncode>0</returncode>\n<warning>\nIt took long.\n</warning>\n<output>\n",
        "</output>",
        5,
    ),
    "stdout": ("<exit_code>0</exit_code>\n<stdout>", "</stdout>\n<stderr></stderr>", 1),
    "cut off": ("<returncode>0</returncode>\n<output>\n", "", 2),
}
"""The text before and after the output of a command, and the number of lines before its first one."""


@pytest.mark.parametrize("form", OUTPUTS)
def test_command_output_is_shown_as_its_own_kind_with_the_return_code(form: str) -> None:
    before, behind, _ = OUTPUTS[form]
    heading, *shown = _shown(f"{before}{RECORDS}{behind}").split("\n")

    assert shown[:2] == ["list of 900 objects, one a line: id|name", "0|name 0"]
    assert re.search(r"<(returncode|exit_code)>0</\1>", heading)


@pytest.mark.parametrize("form", OUTPUTS)
def test_line_and_character_numbers_in_an_output_lead_to_places_in_the_whole(form: str) -> None:
    before, behind, lines = OUTPUTS[form]
    text = f"{before}{CSV}{behind}"
    shown = _shown(text)
    gap = re.search(r"\[… lines ([\d,]+)-([\d,]+) of [\d,]+ not shown …\]\n(.*)", shown)

    assert f"line numbers are {lines} and characters {len(before)} higher in the whole]\n" in shown
    assert gap is not None
    assert text.split("\n")[int(gap[2].replace(",", "")) + lines] == gap[3]


@pytest.mark.parametrize("code", ["0", "-11", "137"])
def test_an_output_of_lines_is_shown_with_the_line_numbers_of_the_whole_and_the_return_code(code: str) -> None:
    text = f"<returncode>{code}</returncode>\n<output>\n{LINES}</output>"
    shown = _shown(text)

    assert shown.split("\n")[:2] == [
        "[lines alike but for their numbers: 900 like line 3]",
        f"<returncode>{code}</returncode>",
    ]
    assert shown.endswith("\n</output>")
    assert "of 903 not shown" in shown


def test_an_envelope_in_a_commands_output_is_unwrapped_twice() -> None:
    text = f"<returncode>1</returncode>\n<output>\n{json.dumps({'type': 'text', 'text': RECORDS})}\n</output>"
    shown = _shown(text)

    assert "<returncode>1</returncode>" in shown
    assert "\nlist of 900 objects, one a line: id|name\n0|name 0\n" in shown


@pytest.mark.parametrize("text", [f"<output>{RECORDS}</output>", f"<returncode>0</returncode>\n{RECORDS}"])
def test_tags_without_a_return_code_or_an_output_are_not_an_envelope(text: str) -> None:
    assert output_in(text) is None


@pytest.mark.parametrize("quote", ["'", '"'])
@pytest.mark.parametrize(
    ("end", "kept"),
    [
        ("\\\\{quote} and more", "\\"),
        ("\\", ""),
        ("\\\\", "\\"),
        ("\\{quote} said{quote}", "{quote} said"),
        ("\\\n{quote}", "\\\n"),
        ("\n{quote}", ""),
    ],
)
def test_the_text_inside_ends_before_the_first_unescaped_quote_or_line_end(quote: str, end: str, kept: str) -> None:
    text = quote + "\\\\n [x] " * 200 + end.format(quote=quote)

    found = unwrapped(text)

    assert found is not None
    assert found[0] == "\\n [x] " * 200 + kept.format(quote=quote)


def test_an_escaped_nul_differs_from_an_escaped_backslash() -> None:
    assert unescaped_text("a\\\\b\\u0000c") == "a\\b\x00c"


def test_text_with_too_many_escapes_is_not_an_envelope() -> None:
    assert unwrapped('"' + "\\x41" * 100_000 + '"') == ("A" * 100_000, "")
    assert unwrapped('"' + "\\x41" * 100_001 + '"') is None


def test_escapes_that_need_no_match_each_are_not_too_many() -> None:
    inside = json.dumps([{"path": "C:\\new", "n": number} for number in range(9_000)], indent=1)
    written = json.dumps([{"type": "text", "text": inside}])

    assert written.count("\\") > 100_000
    assert unwrapped(written) == (inside, "")


def test_the_tokens_of_the_text_inside_are_not_counted_again_with_its_heading() -> None:
    counted: list[str] = []

    class Watched(TiktokenCounter):
        def count(self, text: str) -> int:
            counted.append(text)
            return super().count(text)

    words = " ".join(f"Word{number % 89} and Other{number % 97}, or {number}" for number in range(2_000))
    content = Previewed(text=json.dumps({"text": f"[{words}]\n{words}"}), content_type="text/plain", lines=1)

    shown = preview(content, Watched(), budget=1_000)

    assert shown.startswith(INSIDE)
    assert sum(map(len, counted)) < 3.6 * len(shown)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Found 900 results:\n\n", ""),
        ("", "\n\n[900 of 900 shown]"),
        ("Rows, as asked: ", "\nEnd"),
        ("Here they are:\n```json\n", "\n```\nPages: [1] 2 3 [next]"),
        ("[INFO] asked twice\n[INFO] 900 rows\n", "\n"),
        ("Result: ", " done in 3 s"),
        ("", " (900 rows)\nEnd"),
    ],
)
def test_json_among_a_few_words_is_shown_as_json_between_them(before: str, after: str, end: str) -> None:
    shown = _shown((before + RECORDS + after).replace("\n", end)).split("\n")
    above = [line.strip() for line in before.splitlines() if line.strip()]

    assert [line.strip() for line in shown if line.strip()][: len(above)] == above
    assert "[JSON inside; query reads only this:]" in shown
    assert "list of 900 objects, one a line: id|name" in shown
    assert "0|name 0" in shown
    assert "899|name 899" in shown
    assert "\n".join(shown).endswith(after.strip().replace("\n", end))


@pytest.mark.parametrize(
    "text",
    [
        f"{LINES}\n{RECORDS}",  # too many words
        f"Found:\n{RECORDS[:-2]}",  # cut off
        f"Found:\n{RECORDS}, and more]",
        f"[1]\n[2]\n[3]\n{RECORDS}",
        "".join(f"[{number}] job done\n" for number in range(900)),
    ],
)
def test_other_text_with_json_in_it_is_shown_as_text(text: str) -> None:
    assert "[JSON inside" not in _shown(text)


def test_places_in_large_json_below_words_lead_to_places_in_the_whole() -> None:
    text = f"Found these:\n\n{json.dumps([{'id': number, 'text': 'words ' * 20} for number in range(9_000)])}"
    shown = _shown(text)
    moved, last, first = re.findall(
        r"(?s)line numbers are 2 and characters (\d+) higher in the whole; .*\n(\d+)\n\[… characters ([\d,]+)-", shown
    )[0]

    assert text[int(moved) + int(first.replace(",", "")) :].startswith(f', {{"id": {int(last) + 1}, ')


def test_json_with_a_repeated_key_below_words_has_the_line_numbers_of_the_whole() -> None:
    members = ",\n".join(f'"key_{number % 300}": "value {number}"' for number in range(400))
    text = f"Found this:\n\n{{\n{members}\n}}"
    above, first, last, below = re.findall(r"(?s)(.*)\n\[… lines (\d+)-(\d+) of 404 .*…\]\n(.*)", _shown(text))[0]

    assert text.split("\n")[: int(first) - 1] == above.split("\n")
    assert text.split("\n")[int(last) :] == below.split("\n")


def test_the_odd_record_in_json_below_words_is_shown() -> None:
    records = [{"id": number, "state": "done"} for number in range(900)]
    records[450]["state"] = "lost"

    assert "450|lost" in _shown(f"Found 900 results:\n{json.dumps(records)}")


def test_with_little_room_an_envelope_is_shown_unchanged() -> None:
    envelope = json.dumps({"type": "text", "text": RECORDS})

    assert _shown(envelope, 150).startswith('{"type": "text", "text": "[{')
    assert _shown(envelope, 170).startswith(INSIDE)


@pytest.mark.no_cover
@pytest.mark.parametrize("cell", ["", 'a"b', "a\\"], ids=["empty", "escaped", "backslash"])
def test_many_quoted_strings_are_told_from_an_envelope_in_a_few_passes(cell: str) -> None:
    text = json.dumps([*[cell] * 10, "[a]", *[cell] * 300_000])

    def seconds(work: Callable[[], object]) -> float:
        started = time.process_time()
        work()
        return time.process_time() - started

    # Measured: a quarter of this time; with a copy of the text for each quote, 90 to 600 times as long. A search for
    # a single character is no yardstick: its speed, relative to other work, differs tenfold between processors.
    as_json = min(seconds(lambda: json.loads(text)) for _ in range(3))

    assert min(seconds(lambda: unwrapped(text)) for _ in range(3)) < 10 * as_json


def test_many_lines_before_json_leave_room_for_it() -> None:
    problems = "".join(f"npm error missing: part-{n}@^{n}.0.0, required by all@11.0.0\n" for n in range(16))
    value = json.dumps({"name": "all", "version": "11.0.0", "parts": [{"id": n} for n in range(900)]}, indent=2)
    text = f"\nnpm error code MISSING\n{problems}{value}\nnpm error A log is in: /srv/log.txt\n"
    shown = _shown(text, 400)
    lines = text.split("\n")
    gap = re.search(r"\[… lines (\d+)-(\d+) of ([\d,]+) not shown …\]\n(.*)", shown)

    assert gap is not None
    assert lines[int(gap[1]) - 2] == "npm error code MISSING"
    assert lines[int(gap[2])] == gap[4] == "npm error missing: part-15@^15.0.0, required by all@11.0.0"
    assert int(gap[3].replace(",", "")) == len(lines) - 1
    assert "[JSON inside; query reads only this:]\nobject with 3 keys\nname: all\n" in shown
    assert shown.endswith("\nnpm error A log is in: /srv/log.txt")
