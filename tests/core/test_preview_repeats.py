"""Lines of plain text that differ only in numbers collapse: each sort is shown with its count."""

from __future__ import annotations

import re

import pytest

from coatcheck import TiktokenCounter
from coatcheck.core.preview import Previewed, preview, repeats

TIKTOKEN = TiktokenCounter()


def _shown(lines: list[str], budget: int = 250) -> list[str]:
    text = "\n".join(lines)
    content = Previewed(text=text, content_type="text/plain", lines=len(lines))
    shown = preview(content, TIKTOKEN, budget=budget)

    assert not content.failures
    assert TIKTOKEN.count(shown) <= budget
    return shown.split("\n")


def _chunks(count: int) -> list[str]:
    return [
        f"verified block {number:,} in {number % 7}.{number % 9} ms"
        if number % 3
        else f"downloading chunk {number} of {count:,}"
        for number in range(1, count + 1)
    ]


def test_each_sort_is_counted_once_and_shown_unchanged() -> None:
    lines = _chunks(3_000)
    heading, *shown = _shown(lines)

    assert heading == "[lines alike but for their numbers: 2,000 like line 1, 1,000 like line 3]"
    assert shown[:3] == lines[:3]


@pytest.mark.parametrize("place", range(30, 2_990, 197))
def test_a_line_unlike_all_others_is_shown_wherever_it_is(place: int) -> None:
    lines = _chunks(3_000)
    lines[place] = "skipped a chunk: its checksum differs"
    shown = _shown(lines)
    at = shown.index("skipped a chunk: its checksum differs")

    assert shown[at - 1].endswith(f"-{place:,} of 3,000 not shown …]")
    assert shown[at + 1].startswith(f"[… lines {place + 2:,}-")


def test_totals_at_the_end_are_shown_before_one_line_of_each_of_many_groups() -> None:
    rules = [f"{chr(97 + number % 26) * 3}-{chr(97 + number // 26) * 3}" for number in range(90)]
    found = [f"  {at}:{at % 7} error in a line that breaks the rule {rule}" for rule in rules for at in range(9)]
    shown = _shown([*found, "", "✖ 810 problems in all", "  90 of them can be mended", "", ""])

    assert shown[0].startswith("[lines alike but for their numbers: 9 like line 1, ")
    assert "✖ 810 problems in all" in shown
    assert "  90 of them can be mended" in shown


@pytest.mark.parametrize("place", [30, 33_333, 89_990])
def test_a_line_unlike_all_others_in_8_mb_is_shown(place: int) -> None:
    lines = [f"{line}, and so on and on and on for a while until all is done" for line in _chunks(90_000)]
    lines.insert(place, "skipped a chunk: its checksum differs")
    shown = _shown(lines)

    assert "skipped a chunk: its checksum differs" in shown
    assert "60,000 like line 1" in shown[0]
    assert len("\n".join(lines)) > 7_500_000


def test_text_over_8_mb_is_not_searched_so_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "MAX_SEARCHED", 50_000)

    assert not any("alike" in line for line in _shown(_chunks(3_000)))


def test_lines_named_in_the_heading_are_shown_before_other_sorts() -> None:
    words = ["amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty"]
    sorts = [f"{one} is next to {other} in row {{}}" for one in words for other in words]
    lines = [sorts[place].format(number) for place in range(100) for number in range(4 + place // 10)]

    heading, *shown = _shown(lines, 250)

    named = re.findall(r"like line ([\d,]+)", heading)
    assert len(named) == 4
    assert {lines[int(number.replace(",", "")) - 1] for number in named} <= {*shown}


def test_budget_that_the_sorts_leave_goes_to_both_ends() -> None:
    lines = _chunks(3_000)
    shown = _shown(lines, 400)

    assert shown[5] == lines[4]
    assert shown[-5:] == lines[-5:]
    assert TIKTOKEN.count("\n".join(shown)) > 350


def test_numbers_in_lines_of_a_rare_sort_are_named() -> None:
    lines = _chunks(3_000)
    for place in range(50, 3_000, 150):
        lines[place] = f"the checksum of a chunk is {place * 7_919}"
    *_, names = _shown(lines, 310)

    assert names == f"[… more, in it: {' '.join(str(place * 7_919) for place in range(200, 3_000, 150))} …]"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("rw-r--r-- 1 root root {0} Sep 5 report_{0}.txt", id="names with numbers"),
        pytest.param("/srv/data/part/{0}/in the archive", id="paths"),
        pytest.param("{0} {0}.5 {0} {0}.25 in total", id="mostly figures"),
        pytest.param('  "total": {0},', id="one word"),
    ],
)
def test_lines_whose_numbers_carry_meaning_do_not_collapse(line: str) -> None:
    assert not any("alike" in shown for shown in _shown([line.format(number) for number in range(1_000, 1_900)]))


def test_text_does_not_collapse_if_less_than_two_thirds_of_its_lines_are_alike() -> None:
    said = [f"{''.join(chr(97 + int(digit)) for digit in str(number))} is what was said" for number in range(200)]
    alike = [f"line {number} of what was said" for number in range(390)]

    assert not any("alike" in line for line in _shown([*alike, *said], 120))
    assert any("alike" in line for line in _shown([*alike, *alike, *said], 120))


def test_no_gap_note_takes_more_tokens_than_the_lines_it_replaces() -> None:
    blanks = [""] * 3
    parts = (
        (f"Room {number} of {'abcdefgh'[number % 8]} wing is let", "Ask the porter for a key") for number in range(150)
    )
    lines = [line for first, second in parts for line in (*blanks, first, *blanks, second)]
    shown = _shown(lines, 500)
    gaps = [match for line in shown if (match := re.match(r"\[… lines ([\d,]+)-([\d,]+) of", line))]

    assert gaps
    for gap in gaps:
        first, last = (int(number.replace(",", "")) for number in gap.groups())
        assert TIKTOKEN.count("\n".join(lines[first - 1 : last])) > TIKTOKEN.count(gap.string)
