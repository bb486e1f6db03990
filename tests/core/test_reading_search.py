"""Search finds what a naive search by line finds, in windows of any size, and shows it within the budget."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.errors import InvalidRequest
from coatcheck.core.reading import ByteRange, scan, search
from coatcheck.core.reading.pattern import Matcher
from coatcheck.core.settings import MIN_BUDGET
from coatcheck.core.tokens import ByteCounter
from tests.core.reading_driver import REFERENCE, Stored, foreign, shown, split_lines, stored

if TYPE_CHECKING:
    from collections.abc import Iterator

PATTERNS = [
    *["ERROR", "a", "[0-9]+", "^a", "b$", r"\bx", r"x\b", "a|b", "xx"],
    *["[^a]b", "é", r"\.", "^a.b$", "汉", "(?i)error", "ab?c"],
]
"""Patterns that ``re`` and RE2 read alike. None matches the empty string."""


@contextmanager
def tiny(window: int = 80) -> Iterator[None]:
    """Make every size in the search small, so that short text crosses every border.

    A line longer than a quarter of a window counts as long, so a line that exceeds a window always does.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan, "WINDOW", window)
        patch.setattr(scan, "LOOK_FIRST", 16)
        patch.setattr(scan, "MAX_LOOK", 64)
        for module in (scan, search):
            patch.setattr(module, "LONG_LINE", window // 4)
            patch.setattr(module, "MARGIN", window + 16)
        patch.setattr(scan, "MAX_KEPT", 10 * window)
        yield


def naive(pattern: str, lines: list[str], *, long_line: int) -> list[tuple[int, int]]:
    """Return the line number and the position in its line of each match, found by Python's ``re``."""
    compiled, found = re.compile(pattern, re.ASCII), []
    for number, line in enumerate(lines, start=1):
        matches = [(number, match.start()) for match in compiled.finditer(line)]
        found += matches if len(line) > long_line else matches[:1]
    return found


_PIECES = st.sampled_from(
    [
        "a",
        "b",
        "ab",
        "x",
        "xx",
        "ERROR",
        "error",
        "12345",
        " ",
        ".",
        "é",
        "汉字",
        "👍🏽",
        "ö",
        "abc",
        "\n",
        "\r\n",
        "\n\n",
        "\r",
        "\u2028",
        "\x00",
        "�",
    ]
)
_TEXTS = st.lists(_PIECES, min_size=1, max_size=120).map("".join)
_LONG = st.lists(st.sampled_from(["a", "b", "x", "ERROR", "12", " ", "é", "汉"]), min_size=20, max_size=300).map(
    "".join
)
_MIXED = st.lists(st.one_of(_TEXTS, _LONG), min_size=1, max_size=4).map("\n".join)


@given(text=_MIXED, pattern=st.sampled_from(PATTERNS), window=st.sampled_from([16, 80, 200]))
def test_all_matches_are_counted(text: str, pattern: str, window: int) -> None:
    expected = naive(pattern, split_lines(text), long_line=window // 4)
    with tiny(window):
        for content in (stored(text, spacing=17), stored(text), foreign(text.encode("utf-8", "surrogatepass"))):
            assert content.ask(pattern=pattern, budget=MIN_BUDGET).matches == len(expected)


@given(text=_MIXED, pattern=st.sampled_from(PATTERNS), first=st.integers(1, 20), count=st.integers(1, 20))
def test_a_line_range_restricts_the_search(text: str, pattern: str, first: int, count: int) -> None:
    lines = split_lines(text)
    if first > len(lines):
        return
    expected = naive(pattern, lines[first - 1 : first - 1 + count], long_line=20)
    with tiny():
        answer = stored(text, spacing=17).ask(pattern=pattern, line_range=[first, first + count - 1], context_lines=2)

    assert answer.matches == len(expected)
    numbers = [
        int(row[2:].partition("|")[0].split()[0])
        for row in answer.text.split("\n")[2:]
        if row[:1] in "> " and "|" in row
    ]
    assert all(first <= number < first + count for number in numbers)


_ROW = re.compile(r"(> |  ) *([0-9]+)(?: \[characters ([0-9,]+)-([0-9,]+)\])?\| (.*)", re.DOTALL)


@given(text=_TEXTS, pattern=st.sampled_from(PATTERNS), context=st.integers(0, 3), window=st.sampled_from([16, 64]))
def test_rows_are_the_lines_around_the_matches(text: str, pattern: str, context: int, window: int) -> None:
    lines = split_lines(text)
    matching = {number for number, _ in naive(pattern, lines, long_line=10**9)}
    around = {n for number in matching for n in range(number - context, number + context + 1) if 1 <= n <= len(lines)}
    with pytest.MonkeyPatch.context() as patch:
        longest = max(len(line.encode("utf-8", "surrogatepass")) for line in text.split("\n"))
        patch.setattr(scan, "WINDOW", max(window, longest))  # a line longer than this is searched by occurrence
        answer = stored(text, spacing=9).ask(pattern=pattern, context_lines=context, budget=100_000)
    if not matching:
        assert answer.text.startswith(f"No matches found for pattern '{pattern}' (searched {len(lines)} line")
        return
    header, blank, *rest = answer.text.split("\n")
    assert header == f"[{len(matching)} match{'' if len(matching) == 1 else 'es'} for /{pattern}/]"
    assert blank == ""
    found = [_ROW.fullmatch(row) for row in rest if row != "---"]
    assert [(int(row[2]), row[1], row[5]) for row in found if row] == [
        (n, "> " if n in matching else "  ", shown(lines[n - 1])) for n in sorted(around)
    ]
    gaps = sum(after - before > 1 for before, after in zip(sorted(around), sorted(around)[1:], strict=False))
    assert rest.count("---") == (gaps if context else 0)


@given(text=_MIXED, pattern=st.sampled_from(PATTERNS), context=st.integers(0, 2), offset=st.integers(0, 300))
def test_following_the_next_call_shows_every_match(text: str, pattern: str, context: int, offset: int) -> None:
    lines = split_lines(text)
    expected = naive(pattern, lines, long_line=20)
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    content, counter = stored(text, spacing=17), ByteCounter()
    offset = offset % len(text)
    arguments: dict[str, object] = {"pattern": pattern, "context_lines": context, "offset": offset}
    covered: list[tuple[int, int]] = []
    with tiny():
        for _ in range(len(expected) + 1):
            answer = content.follow(arguments, budget=MIN_BUDGET, counter=counter)
            assert counter.count(answer.text) <= MIN_BUDGET
            assert answer.matches == len(expected)
            for row in map(_ROW.fullmatch, answer.text.split("\n")):
                if row is None or row[1] != "> ":
                    continue
                number, start = int(row[2]), starts[int(row[2]) - 1]
                if row[3]:
                    begin, end = int(row[3].replace(",", "")), int(row[4].replace(",", ""))
                    assert row[5].strip("…") in (shown(text[begin : end + 1]), shown(text[begin : end + 1]).strip("…"))
                    covered += [(number, at) for at in range(begin - start, end + 1 - start)]
                else:
                    covered += [(number, at) for at in range(len(lines[number - 1]) + 1)]
            if answer.next_call is None:
                break
            assert int(str(answer.next_call["offset"])) > int(str(arguments["offset"]))
            arguments = dict(answer.next_call)

    assert answer.next_call is None
    wanted = {(number, at) for number, at in expected if starts[number - 1] + at >= offset}
    assert wanted <= set(covered)


def test_groups_are_separated_and_overlapping_contexts_merged() -> None:
    text = "".join(f"line {n}{' ERROR' if n in {4, 6, 15} else ''}\n" for n in range(1, 21))

    assert stored(text).ask(pattern="ERROR", context_lines=2).text == (
        "[3 matches for /ERROR/]\n\n"
        "   2| line 2\n   3| line 3\n>  4| line 4 ERROR\n   5| line 5\n>  6| line 6 ERROR\n   7| line 7\n   8| line 8\n"
        "---\n"
        "  13| line 13\n  14| line 14\n> 15| line 15 ERROR\n  16| line 16\n  17| line 17"
    )


def test_a_match_that_is_not_shown_shows_no_context_either() -> None:
    content = stored("".join(f"{'ERROR' if number % 20 == 0 else 'line'} {number}\n" for number in range(1, 2_001)))
    last_lines = set()
    for budget in range(MIN_BUDGET, MIN_BUDGET + 40):
        rows = content.ask(pattern="ERROR", context_lines=3, budget=budget).text.split("\n")
        numbers = [int(row[2:].partition("|")[0]) for row in rows if re.match(r"[> ] +\d+\| ", row)]
        matching = [int(row[2:].partition("|")[0]) for row in rows if row.startswith("> ")]
        assert numbers[-1] <= matching[-1] + 3, budget
        last_lines.add(numbers[-1])

    assert len(last_lines) > 1, "the budgets cut at different rows"


def test_separate_lines_are_separated_even_without_context() -> None:
    text = "a\nb\na\nb\na\n"

    assert (
        stored(text).ask(pattern="a", context_lines=0).text == "[3 matches for /a/]\n\n> 1| a\n---\n> 3| a\n---\n> 5| a"
    )


def test_a_truncated_search_says_which_matches_it_shows_and_how_to_go_on() -> None:
    text = "".join(f"ERROR number {n}\nfine\n" for n in range(1, 313))
    content = stored(text)
    first = content.ask(pattern="ERROR", context_lines=0, budget=400)
    *_, last, truncated, more = first.text.split("\n")
    count = int(last.partition("ERROR number ")[2])

    assert first.text.startswith(f"[312 matches for /ERROR/; 1-{count} shown]\n\n>   1| ERROR number 1\n")
    assert truncated == "[output truncated, narrow your search]"
    offset = text.index(f"ERROR number {count + 1}\n")
    call = f'reference="{REFERENCE}", pattern="ERROR", context_lines=0, offset={offset}'
    assert more == f"[More: retrieve_offloaded_content({call})]"
    assert first.next_call == {"pattern": "ERROR", "context_lines": 0, "offset": offset}

    second = content.follow(first.next_call, budget=400)
    assert second.text.startswith(f"[312 matches for /ERROR/; {count + 1}-")
    assert f"| ERROR number {count + 1}\n" in second.text
    assert second.matches == 312


def test_the_next_call_keeps_the_line_range() -> None:
    answer = stored("x\n" * 5_000).ask(pattern="x", line_range="10-4000", budget=300)

    assert answer.next_call is not None
    assert answer.next_call["line_range"] == "10-4000"
    assert answer.text.startswith("[3991 matches for /x/ in lines 10-4000; 1-")


@pytest.mark.parametrize("shift", range(4))
def test_an_occurrence_is_one_match_even_if_a_look_ends_within_a_character(shift: int) -> None:
    first, run = "\N{WINE GLASS}", "\N{WINE GLASS}" * 2_000  # four bytes each: longer than the first look

    assert stored(f"{first}{'-' * shift} {run} and no more").ask(pattern="\N{WINE GLASS}+").matches == 2


def test_each_occurrence_in_a_long_line_is_a_match_with_a_window() -> None:
    line = "".join(f'{{"id": {n}, "name": "{"x" * 500}"}}, ' for n in range(20_000))
    content = stored(f"first\n{line}\nlast\n")
    answer = content.ask(pattern='"id": 1999[0-9],', context_lines=1)
    start = 6 + line.index('"id": 19990,')

    assert answer.matches == 10
    assert answer.text.startswith('[10 matches for /"id": 1999[0-9],/]\n\n> 2 [characters ')
    assert f"> 2 [characters {start - 100:,}-{start + 111:,}]| …" in answer.text
    assert answer.text.endswith("\n  3| last")
    assert content.ask(offset=start).text.split("\n")[1].startswith('"id": 19990,')


def test_occurrences_close_together_share_a_window() -> None:
    text = "x" * 2_000 + "ERROR 1 ERROR 2 ERROR 3" + "y" * 2_000
    answer = stored(text).ask(pattern="ERROR")

    assert answer.text == (f"[3 matches for /ERROR/]\n\n> 1 [characters 1,900-2,104]| …{text[1_900:2_105]}…")


def test_greedy_surroundings_do_not_hide_the_place_of_an_occurrence() -> None:
    answer = stored("x" * 9_000 + "ERROR" + "y" * 9_000).ask(pattern=".*ERROR.*")

    assert answer.text.startswith("[1 match for /.*ERROR.*/]\n\n> 1 [characters 8,900-9,104]| …xxx")


def test_a_match_longer_than_any_look_is_still_found() -> None:
    answer = stored("{" + "x" * 300_000 + "}\n").ask(pattern=r"^\{.*\}$")

    assert answer.matches == 1
    assert answer.text.startswith("[1 match for /^\\{.*\\}$/]\n\n> 1 [characters 0-199]| {xxx")


def test_a_match_of_64_kib_is_found_in_a_line_longer_than_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "WINDOW", 300_000)
    for before in (0, 60_000, 131_000, 299_990, 400_000):
        text = "x" * before + "<" + "y" * 65_000 + ">" + "x" * 500_000
        assert stored(text).ask(pattern="<y+>").matches == 1


def test_the_first_match_is_shown_even_if_its_line_does_not_fit() -> None:
    text = "short\n" + "汉" * 900 + "ERROR" + "字" * 90 + "\nshort ERROR\n"
    answer = stored(text).ask(pattern="ERROR", budget=MIN_BUDGET)

    assert ByteCounter().count(answer.text) <= MIN_BUDGET
    assert "> 2 [characters 906-" in answer.text
    assert "]| …ERROR字" in answer.text
    assert answer.next_call is not None
    assert answer.next_call["offset"] == text.index("short ERROR")


def test_long_context_is_shown_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "WINDOW", 50_000)
    text = f"{'a' * 200_000}\nERROR\n{'b' * 200_000}\n"
    answer = stored(text).ask(pattern="ERROR")

    assert answer.text == f"[1 match for /ERROR/]\n\n  1| …{'a' * 200}\n> 2| ERROR\n  3| {'b' * 200}…"


def test_windows_line_ends_are_line_ends() -> None:
    content = stored("ERROR\r\nERROR x\r\n\r\n ERROR\r\n")

    assert (
        content.ask(pattern="ERROR$", context_lines=0).text
        == "[2 matches for /ERROR$/]\n\n> 1| ERROR\n---\n> 4|  ERROR"
    )
    assert content.ask(pattern="^$", context_lines=0).text == "[1 match for /^$/]\n\n> 3| "
    assert content.ask(pattern="^").matches == 4
    assert stored("ERROR\n\r").ask(pattern="ERROR").text.endswith("\n  2| \r")
    assert content.ask(pattern=r"ERROR\z").matches == 1


@pytest.mark.parametrize(
    ("pattern", "matches"), [("^", 3), ("$", 3), ("^$", 1), (r"\A", 1), (r"\z", 1), (r"\Aa", 1), (r"b\z", 1)]
)
@pytest.mark.parametrize("text", ["a\n\nb", "a\n\nb\n", "a\r\n\r\nb\r\n"])
@pytest.mark.parametrize("window", [1, 2, 3, 100])
def test_anchors_match_at_lines_and_content_but_not_at_windows(
    pattern: str, matches: int, text: str, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "WINDOW", window)

    assert stored(text).ask(pattern=pattern).matches == matches


def test_content_anchors_do_not_match_at_the_ends_of_a_line_range() -> None:
    content = stored("a\nb\na\nb\n")

    assert content.ask(pattern=r"\A", line_range="2-3").matches == 0
    assert content.ask(pattern=r"\z", line_range="2-3").matches == 0
    assert content.ask(pattern="^", line_range="2-3").matches == 2
    assert content.ask(pattern=r"b\z", line_range="3-4").matches == 1


def test_a_word_boundary_sees_across_looks() -> None:
    with tiny(32):
        assert stored("a" * 500).ask(pattern=r"\ba").matches == 1
        assert stored("a" * 500).ask(pattern=r"a\b").matches == 1
        assert stored("a" * 500).ask(pattern="a$").matches == 1


_ERRORS: dict[str, object] = {"pattern": "ERROR", "context_lines": 0}


def test_counting_stops_but_paging_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "MAX_HITS", 50)
    text = "".join(f"ERROR {n}\n" for n in range(1, 301))
    content, seen, arguments = stored(text), list[int](), _ERRORS
    while arguments:
        answer = content.follow(arguments, budget=300)
        assert (answer.matches, answer.text[:26]) == (50, "[50+ matches for /ERROR/; ")
        seen += [int(row) for row in re.findall(r"\| ERROR ([0-9]+)", answer.text)]
        arguments = dict(answer.next_call or {})

    assert seen == list(range(1, 301))
    assert "; shown from character " in answer.text


@pytest.mark.parametrize("line", ["ERROR ", "x" * 90_000 + "ERROR "])
def test_counting_stops_in_a_long_line_but_paging_does_not(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "MAX_HITS", 5)
    text = line * 30 + "y" * 2_000
    content, offsets, arguments = stored(text), list[int](), _ERRORS
    while arguments:
        answer = content.follow(arguments, budget=300)
        assert answer.matches == 5
        offsets += [int(row.replace(",", "")) for row in re.findall(r"\[characters ([0-9,]+)-", answer.text)]
        arguments = dict(answer.next_call or {})

    assert offsets == sorted(offsets)
    assert text.rindex("ERROR") - offsets[-1] <= 200


def test_the_answer_says_that_no_match_follows_the_offset() -> None:
    answer = stored("ERROR\nfine\n").ask(pattern="ERROR", offset=7)

    assert answer.text == "[1 match for /ERROR/]\n[No match at or after offset 7: call without offset to see them]"
    assert (answer.matches, answer.next_call) == (1, None)


def test_an_answer_without_matches_says_how_to_go_on() -> None:
    answer = stored("a\nb\nc\n").ask(pattern="error", line_range="2-3")

    assert answer.text.startswith("No matches found for pattern 'error' in lines 2-3 (searched 2 lines).\n")
    assert "(?i)" in answer.text
    assert (answer.matches, answer.next_call) == (0, None)


def test_a_shown_pattern_is_one_short_line() -> None:
    answer = stored("a").ask(pattern="a\n" + "b" * 100)

    assert f"'a {'b' * 47}…'" in answer.text


def test_a_negative_offset_searches_the_end() -> None:
    answer = stored("ERROR 1\nERROR 2\nERROR 3\n").ask(pattern="ERROR", offset=-10, context_lines=0)

    assert answer.text == "[3 matches for /ERROR/; 3-3 shown]\n\n> 3| ERROR 3"


def test_a_huge_pattern_on_huge_content_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    content = stored("x\n" * 1_000)
    assert content.ask(pattern="a[xy]{999}z").matches == 0

    monkeypatch.setattr(search, "MAX_WORK", 1_000_000)
    with pytest.raises(InvalidRequest, match="pattern is too complex for content of 2,000 bytes"):
        content.ask(pattern="a[xy]{999}z")
    assert content.ask(pattern="a[xy]{999}z", line_range="1-100").matches == 0


def test_a_search_reads_everything_once_and_shows_matches_from_memory() -> None:
    text = "".join(f"line {n} {'x' * 90}{'ERROR' if n % 9_000 == 8_999 else ''}\n" for n in range(100_000))
    content = stored(text)
    answer = content.ask(pattern="ERROR")

    assert answer.matches == 11
    assert content.read_bytes() == len(text)
    assert max(part.length for part in content.parts) <= 4_194_304


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "pattern", ["(a|a)*$b", "(a+)+$b", "a.*b|a", "(?:a?){300}b", "x*", r"[^\n]*b|a", "a.*b|a.*c|a"]
)
@pytest.mark.parametrize("text", ["a" * 1_000_000, "a\n" * 300_000, "a\r\n" * 200_000], ids=["line", "lines", "crlf"])
def test_hostile_patterns_take_linear_time(pattern: str, text: str) -> None:
    # No clock here: quadratic or exponential work would hit the time limit of the whole test run.
    assert Stored(data=text.encode(), characters=len(text), lines=1).ask(pattern=pattern).matches is not None


@pytest.mark.no_cover
def test_many_occurrences_in_a_long_line_are_found_in_short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0
    find = Matcher.find

    def counting(matcher: Matcher, data: bytes, start: int, stop: int) -> tuple[int, int] | None:
        nonlocal looked
        looked += stop - start
        return find(matcher, data, start, stop)

    monkeypatch.setattr(Matcher, "find", counting)
    answer = stored("a" * 1_000_000).ask(pattern="a.*b|a")

    assert answer.matches == scan.MAX_HITS
    assert looked < 64_000_000  # looks as long as a match may be would add up to 1.3 GB


def test_the_memory_for_showing_matches_is_bounded() -> None:
    kept = scan.Excerpts(0)
    for number in range(10_000):
        kept.add(number * 10_000, b"x" * 4_096)

    with pytest.raises(StopIteration) as first:
        next(kept.get(0, 4_096))
    assert first.value.value == b"x" * 4_096
    assert next(kept.get(4_000 * 10_000, 4_000 * 10_000 + 4_096)) == ByteRange(4_000 * 10_000, 4_096)


def test_the_match_is_shown_even_if_less_context_fits_than_requested() -> None:
    text = "".join(f"line {number} {'of a long log ' * 10}\n" for number in range(500))
    answer = stored(text).ask(pattern="line 250 ", context_lines=80).text
    head, fewer, blank, *lines = answer.split("\n")

    assert (head, blank) == ("[1 match for /line 250 /]", "")
    numbers = [int(line[2:].partition("|")[0]) for line in lines]
    assert fewer == "[context_lines: at most 40 fit]"
    assert numbers == list(range(211, 211 + len(numbers)))
    assert 251 < numbers[-1] <= 291
