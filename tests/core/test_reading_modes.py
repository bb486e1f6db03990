"""Slices by character and by line, and what is said about content that is empty or binary."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coatcheck.core.blocks import is_text
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.settings import MIN_BUDGET
from coatcheck.core.tokens import ByteCounter, TiktokenCounter, TokenCounter
from tests.core.reading_driver import REFERENCE, Stored, attempt, body, foreign, shown, split_lines, stored
from tests.core.selections import selections
from tests.core.strategies import long_texts, texts

if TYPE_CHECKING:
    from collections.abc import Mapping


class CharacterCounter(TokenCounter):
    """The most expensive counter that a host could write: each character is a token."""

    def count(self, text: str) -> int:
        return len(text)


COUNTERS: list[TokenCounter] = [ByteCounter(), CharacterCounter()]


def pages(content: Stored, *, budget: int, counter: TokenCounter) -> list[str]:
    """Read everything by following each literal next call, and return the pages."""
    found, arguments = list[str](), dict[str, object]()
    while True:
        answer = content.follow(arguments, budget=budget, counter=counter)
        assert counter.count(answer.text) <= budget
        found.append(body(answer))
        if answer.next_call is None:
            assert answer.text.endswith("\n[End of content]")
            return found
        arguments = dict(answer.next_call)
        call = f'retrieve_offloaded_content(reference="{REFERENCE}", offset={arguments["offset"]})'
        described = f"the same call with offset={arguments['offset']}"
        assert answer.text.endswith((f"\n[More: {call}]", f"\n[More: {described}]"))


@given(text=long_texts(), budget=st.integers(MIN_BUDGET, 3_000), counter=st.sampled_from(COUNTERS))
def test_joined_pages_are_the_original(text: str, budget: int, counter: TokenCounter) -> None:
    text = text[:20_000]
    if text:
        assert "".join(pages(stored(text), budget=budget, counter=counter)) == shown(text)


@pytest.mark.parametrize(
    "text", ["汉字" * 2_000, "👩‍👩‍👧" * 500, " " * 50_000, "e\u0301\u0301" * 2_000, "\r\n\0\u2028" * 900]
)
def test_joined_pages_are_the_original_in_real_tokens(text: str) -> None:
    assert "".join(pages(stored(text), budget=MIN_BUDGET, counter=TiktokenCounter())) == text


def test_a_page_says_what_it_shows() -> None:
    answer = stored("x" * 41_234).ask(budget=1_000)
    stop = len(body(answer))

    assert answer.text.startswith(f"[Characters 0-{stop - 1:,} of 41,234]\nxxx")
    assert answer.next_call == {"offset": stop}
    assert 900 < ByteCounter().count(answer.text) <= 1_000


def test_small_content_is_shown_whole() -> None:
    assert stored("héllo\n").ask().text == "[Characters 0-5 of 6]\nhéllo\n\n[End of content]"


@pytest.mark.parametrize(("offset", "expected"), [(-3, "789"), ("-2", "89"), (-1, "9"), (-99, "0123456789"), (9, "9")])
def test_a_negative_offset_counts_from_the_end(offset: object, expected: str) -> None:
    assert body(stored("0123456789").ask(offset=offset)) == expected


@pytest.mark.parametrize("offset", [10, 11, 10**14])
def test_an_offset_past_the_end_is_refused_with_the_length(offset: int) -> None:
    with pytest.raises(InvalidRequest, match=r"beyond the content \(10 characters\): the last character is 9"):
        stored("0123456789").ask(offset=offset)


@pytest.mark.parametrize("selectors", [{}, {"offset": 0}, {"line_range": "1-2"}, {"pattern": "x"}, {"query": "a"}])
def test_empty_content_says_so(selectors: dict[str, object]) -> None:
    assert stored("").follow(selectors).text == "Content is empty (0 lines)."


def test_lines_are_numbered() -> None:
    answer = stored("".join(f"line {n}\r\n" for n in range(1, 51))).ask(line_range={"start": 8, "end": 11})

    assert answer.text == "[Lines 8-11 of 50]\n\n   8| line 8\n   9| line 9\n  10| line 10\n  11| line 11"
    assert answer.next_call is None


def test_the_end_of_a_line_range_is_clipped() -> None:
    assert stored("a\nb\nc").ask(line_range="2-99").text == "[Lines 2-3 of 3]\n\n  2| b\n  3| c"


def test_a_carriage_return_without_a_line_feed_is_content() -> None:
    assert stored("a\rb\nc\r").ask(line_range="1-").text == "[Lines 1-2 of 2]\n\n  1| a\rb\n  2| c\r"


@pytest.mark.parametrize(
    ("text", "length"), [("a\nb\nc\n", r"\(3 lines\)\.$"), ("a", r"\(1 line\): read it by offset, or JSON by query$")]
)
def test_a_line_range_past_the_end_is_refused(text: str, length: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"line_range.start \(9\) is beyond content length {length}"):
        stored(text).ask(line_range={"start": 9, "end": 12})


def test_lines_over_budget_stop_at_a_whole_line() -> None:
    text = "".join(f"line {n} {'x' * 40}\n" for n in range(1, 1_001))
    answer = stored(text).ask(line_range="1-1000", budget=400)
    *rows, truncated, more = answer.text.split("\n")
    last = len(rows) - 2

    assert rows[0] == f"[Lines 1-{last} of 1000]"
    assert rows[-1] == f"  {last}| line {last} {'x' * 40}"
    assert truncated == "[output truncated, narrow your range]"
    assert more == (f'[More: retrieve_offloaded_content(reference="{REFERENCE}", line_range="{last + 1}-1000")]')
    assert answer.next_call == {"line_range": f"{last + 1}-1000"}
    assert 370 < ByteCounter().count(answer.text) <= 400


def test_a_line_that_does_not_fit_continues_by_character() -> None:
    text = "first\n" + "0123456789" * 1_000 + "\nlast\n"
    whole = stored(text).ask(line_range="1-3", budget=300)
    assert whole.text.startswith("[Lines 1-1 of 3]\n\n  1| first\n[output truncated")
    assert whole.next_call == {"line_range": "2-3"}

    part = stored(text).follow(whole.next_call, budget=300)
    assert part.next_call is not None
    stop = int(str(part.next_call["offset"]))
    assert part.text.startswith(f"[Line 2 of 3, cut: characters 6-{stop - 1:,} of the content]\n\n  2| 0123456789")
    assert part.text.split("\n")[2] == f"  2| {text[6:stop]}…"

    assert body(stored(text).follow(part.next_call, budget=300)).startswith(text[stop : stop + 50])


@given(text=long_texts(), start=st.integers(1, 60), count=st.integers(1, 60), budget=st.integers(MIN_BUDGET, 2_000))
def test_following_the_next_call_shows_every_line(text: str, start: int, count: int, budget: int) -> None:
    text, counter = text[:20_000], ByteCounter()
    lines = [shown(line) for line in split_lines(text)]
    if start > len(lines):
        return
    content, seen = stored(text), list[str]()
    arguments: dict[str, object] = {"line_range": [start, start + count - 1]}
    while arguments:
        answer = content.follow(arguments, budget=budget, counter=counter)
        assert counter.count(answer.text) <= budget
        if "offset" in (answer.next_call or {}):
            break  # a line longer than the budget: reading continues by character
        rows = answer.text.split("\n")[2:]
        seen += [row.partition("| ")[2] for row in (rows[:-2] if answer.next_call else rows)]
        arguments = dict(answer.next_call or {})

    assert seen == lines[start - 1 :][: len(seen)]
    assert "offset" in (answer.next_call or {}) or len(seen) == min(count, len(lines) - start + 1)


@pytest.mark.parametrize("selectors", [{"pattern": "x"}, {"line_range": "1-2"}, {"query": "a"}, {"offset": 5}])
def test_binary_content_cannot_be_searched_and_the_advice_is_not_refused_too(
    selectors: dict[str, object],
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        foreign(b"\x89PNG" * 26, "image/png").follow(selectors)

    assert str(refused.value) == (
        "cannot search binary content (image/png), which this tool does not show: call the tool that returned it again"
        " if it can return text"
    )


def test_binary_content_is_described() -> None:
    answer = foreign(b"\x89PNG" * 26, "image/png").ask()

    assert answer.text == (
        "[image/png, 104 bytes of binary content, which this tool does not show: call the tool that returned it again"
        " if it can return text]"
    )
    assert answer.next_call is None


def test_a_content_type_of_any_length_fits() -> None:
    assert ByteCounter().count(foreign(b"x", "x" * 100_000).ask(budget=256).text) <= 256


@pytest.mark.parametrize(
    ("content_type", "text"),
    [
        ("text/plain", True),
        ("TEXT/HTML; charset=utf-8", True),
        ("application/json", True),
        ("application/vnd.api+json", True),
        ("application/x-ndjson", True),
        ("application/atom+xml", True),
        ("image/svg+xml", True),
        ("application/md", True),
        ("application/pdf", False),
        ("application/octet-stream", False),
        ("image/png", False),
        ("", False),
    ],
)
def test_text_is_recognised_by_its_content_type(content_type: str, text: bool) -> None:
    assert is_text(content_type) is text


_CONTENTS = st.one_of(long_texts(), texts(), texts().map(json.dumps), texts().map(lambda text: json.dumps([text] * 90)))


@given(text=_CONTENTS, selectors=selections(), budget=st.integers(MIN_BUDGET, 1_200), counter=st.sampled_from(COUNTERS))
def test_no_answer_exceeds_its_budget(
    text: str, selectors: dict[str, object], budget: int, counter: TokenCounter
) -> None:
    content = stored(text[:30_000])
    content.reference = "a" * 32 + "-4f9c1e7a20b3d8e1-07ac-longer"
    answer = attempt(lambda: content.follow(selectors, budget=budget, counter=counter))
    if isinstance(answer, InvalidRequest):
        return
    assert counter.count(answer.text) <= budget
    answer.text.encode("utf-8")
    if answer.next_call is not None:
        assert answer.text.split("\n")[-1].startswith("[More: ")


@given(text=_CONTENTS, selectors=selections(), budget=st.integers(MIN_BUDGET, 700))
def test_no_answer_exceeds_its_budget_in_real_tokens(text: str, selectors: dict[str, object], budget: int) -> None:
    counter = TiktokenCounter()
    answer = attempt(lambda: stored(text[:30_000]).follow(selectors, budget=budget, counter=counter))
    if isinstance(answer, InvalidRequest):
        return
    assert counter.count(answer.text) <= budget


def _start_of(call: Mapping[str, object]) -> tuple[str, int] | None:
    """Return where a call begins, by character or by line, or None if it names neither or counts from the end."""
    if "offset" in call:
        offset = int(str(call["offset"]))
        return None if offset < 0 else ("offset", offset)
    if isinstance(call.get("line_range"), str):
        return "line", int(str(call["line_range"]).partition("-")[0])
    return None


_AROUND = f"{'the ' * 200}\n" * 5


@example(text=f"{_AROUND}ERROR\n{_AROUND}", selectors={"pattern": "ERROR", "context_lines": 5}, budget=300)
@given(text=_CONTENTS, selectors=selections(), budget=st.integers(MIN_BUDGET, 700))
def test_each_next_call_goes_further_than_the_last(text: str, selectors: dict[str, object], budget: int) -> None:
    content, call = stored(text[:10_000]), dict(selectors)
    for _ in range(20):
        answer = attempt(partial(content.follow, call, budget=budget))
        if isinstance(answer, InvalidRequest) or answer.next_call is None:
            return
        before, after = _start_of(call), _start_of(answer.next_call)
        assert after is not None
        assert before is None or before[0] != after[0] or before[1] < after[1], f"{call} leads to {answer.next_call}"
        call = dict(answer.next_call)


def test_a_next_call_that_is_too_long_is_described_instead() -> None:
    long_pattern = "x" + "y?" * 400
    answer = stored("x\n" * 5_000).ask(pattern=long_pattern, budget=MIN_BUDGET)
    assert answer.next_call is not None

    assert answer.text.endswith(f"[More: the same call with offset={answer.next_call['offset']}]")
    assert answer.next_call["pattern"] == long_pattern
