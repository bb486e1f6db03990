"""Content made to stall a preview, or to make it say something untrue."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from coatcheck import ByteCounter, InMemoryStorage, Offloader, TextBlock, TiktokenCounter, TokenCounter
from coatcheck.core.preview import Previewed, preview
from coatcheck.core.preview.html import preview_html
from coatcheck.core.preview.json_ends import _is_one_list, _read
from coatcheck.core.preview.kinds import kinds_of
from coatcheck.core.preview.matches import preview_matches
from coatcheck.core.preview.noise import preview_noise
from coatcheck.core.preview.notation import named
from coatcheck.core.preview.outline import fit_outline
from coatcheck.core.preview.source import Found
from coatcheck.core.tokens import CountedOnce

if TYPE_CHECKING:
    from coatcheck.core.blocks import JsonValue

TIKTOKEN = TiktokenCounter()


def _shown(text: str, budget: int = 500) -> str:
    return preview(Previewed.of(text), TIKTOKEN, budget=budget)


def test_many_comments_are_html_only_if_a_page_follows() -> None:
    comments = "<!---->" * 500

    assert preview_html not in kinds_of(Previewed.of(comments + "no page\n" * 900))
    assert preview_html in kinds_of(Previewed.of(comments + "<html><body>a page"))


def test_a_long_line_among_matches_is_read_in_linear_time() -> None:
    matches = "".join(f"src/part_{number}.py:{number}:some text\n" for number in range(400))

    assert (preview_matches(Previewed.of(matches + "." * 200_000), 500, TIKTOKEN) or "").endswith(
        "[… lines 401-401 of 401 not shown …]"
    )


@pytest.mark.parametrize("line", ["", " ", "/", "\t"])
def test_many_short_lines_that_tokens_span_take_little_memory(line: str) -> None:
    text = "done\n" * 100 + f"{line}\n" * (1_000_000 // (len(line) + 1))
    _shown("warm up\n" * 1_000)
    tracemalloc.start()
    try:
        _shown(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    # Measured: at most 2 MB for any length. If one pattern matched the whole text: 50 to 100 times its length.
    assert peak < 4 * len(text)


def test_a_cut_match_is_marked() -> None:
    shown = _shown("".join(f"src/part_{number}.py:{number}:{'long ' * 200}\n" for number in range(20)), 1_000)

    assert re.search(r"\n  0:(?:long ){120}… \(1,000 characters\)\n", shown)


@pytest.mark.parametrize("digits", ["Zm9vYmFyQmF6MTIz" * 256, "0123456789abcdef" * 256])
def test_words_between_noise_are_not_taken_for_noise(digits: str) -> None:
    assert preview_noise(Previewed.of(f"{digits * 3} \n"), 500, TIKTOKEN) is not None
    assert preview_noise(Previewed.of(f"{digits} the key is under the mat {digits}"), 500, TIKTOKEN) is None


def test_a_list_is_called_one_of_objects_only_if_all_items_are_objects() -> None:
    records: list[JsonValue] = [{"a": number} for number in range(300)]

    assert _shown(json.dumps(records)).startswith("list of 300 objects")
    assert _shown(json.dumps([*records, 1, *records])).startswith("list of 601 items")
    assert named([*records, 1]) == "[301 items]"


def test_no_cells_are_made_for_records_with_more_columns_than_a_table_may_have() -> None:
    lists = [[0] * 20_000] * 50
    text = json.dumps(lists)
    tracemalloc.start()
    shown = fit_outline(lists, 500, TIKTOKEN, text=text, names_of="")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (shown or "").startswith("list of 50 lists")
    assert peak < 20_000_000


def test_json_lines_are_counted_by_line_and_not_by_record() -> None:
    lines = [json.dumps({"id": number, "name": f"name {number}"}) for number in range(900)]

    assert _shown("\n".join((*lines, "", *lines))).startswith("JSON Lines of 1,801 lines, one a line: id|name")
    assert not _shown("\n".join((*lines, *["no record"] * 900, *lines))).startswith("JSON Lines")


@pytest.mark.parametrize(
    ("position", "line"),
    [(0, "Listening on port 80"), (450, "npm WARN old lockfile"), (900, '{"id": 9, "na'), (0, "[INFO] begin")],
)
def test_a_line_among_json_lines_that_is_not_json_is_shown_in_its_place(position: int, line: str) -> None:
    records = [json.dumps({"id": number, "name": f"name {number}"}) for number in range(900)]
    shown = _shown("\n".join((*records[:position], line, *records[position:]))).splitlines()

    assert shown[0] == "JSON Lines of 901 lines, 1 of them not JSON, one a line: id|name"
    assert line in shown
    at = shown.index(line)
    assert position > 0 or at == 1
    assert position < 900 or shown[at + 1].startswith("[… more, in it: ")
    assert position != 450 or "-450 of 901 not shown" in shown[at - 1]
    assert position != 450 or "lines 452-" in shown[at + 1]


def test_keys_of_python_dicts_are_shown_exactly_or_not_parsed() -> None:
    assert "\n0: a\nk0: b" in _shown("{" + ", ".join(f"{number}: 'a', 'k{number}': 'b'" for number in range(900)) + "}")
    assert _shown("{" + ", ".join(f"{n}: 'a', '{n}': 'b'" for n in range(900)) + "}").startswith("{0: 'a', '0': 'b'")
    assert _shown("{" + ", ".join(f"({n}, 2): 'a'" for n in range(900)) + "}").startswith("{(0, 2): 'a'")


def test_a_number_that_is_too_large_is_not_shown_as_infinity() -> None:
    assert "Infinity" not in _shown("[" + ",\n".join(f'{{"id": {n}, "v": 1e400}}' for n in range(60_000)) + "]")


@pytest.mark.parametrize(
    "records", [[[0] * 9_000] * 400, [["x" * 400] * 50] * 50, [dict.fromkeys(map(str, range(1_000)), 1)] * 400]
)
def test_the_first_large_records_are_shown_in_part(records: list[object]) -> None:
    assert TIKTOKEN.count(_shown(json.dumps(records), 1_000)) > 500


def test_an_estimate_is_at_least_the_tokens_counted() -> None:
    size = 400_000
    text = list("\N{SNOWMAN}" * size)
    for number in range(8):
        start = (size - 512) * number // 7
        text[start : start + 512] = " " * 512

    assert CountedOnce(TIKTOKEN).estimate("".join(text), exact_up_to=10_000).tokens >= 10_000


def test_a_counter_never_sees_a_lone_surrogate() -> None:
    class Strict(TokenCounter):
        def count(self, text: str) -> int:
            return len(text.encode()) // 4

    offloader = Offloader(InMemoryStorage(), token_counter=Strict())
    text = "a \ud800 line\n" * 9_000
    outcome = offloader.offload([TextBlock(text), TextBlock(text)], tool_name="read", scope="s")

    assert len(outcome.references) == 2
    assert "\ufffd" in offloader.retrieve(str(outcome.references[0]), scope="s", line_range="1").text


def test_a_code_point_beyond_unicode_becomes_a_replacement_character() -> None:
    number = f"&#{'9' * 5_000};"

    assert "one \ufffd two" in _shown(f"<html><body>{'<p>a line</p>' * 900}<p>one {number} two</p></body></html>")
    assert "one \ufffd two" in _shown(f"<r><a>one {number} two</a>{'<b>a text</b>' * 900}</r>")


def _cpu_seconds(text: str) -> float:
    started = time.process_time()
    preview(Previewed.of(text), ByteCounter(), budget=500)
    return time.process_time() - started


@pytest.mark.parametrize(
    "line",
    ["error " + "a$" * 200, "error " + "a." * 200, "error " + "1" * 400, "make " + "*" * 400],
    ids=["dollars", "dots", "digits", "stars"],
)
def test_the_search_for_trouble_takes_linear_time(line: str) -> None:
    head = "2026-01-01 10:00:00 a line\n" * 20
    plain = min(_cpu_seconds(head + f"error {'a word of it ' * 30}\n" * 600) for _ in range(3))

    # Measured: at most 16 times as long. If a name were read from each of its parts: 275 and 690 times.
    assert _cpu_seconds(head + f"{line}\n" * 600) < 100 * plain


@pytest.mark.parametrize(
    "text",
    [
        "'" + "\\'a" * 53_000 + "'}",  # more escapes than a string may have
        '"' + '\\"a' * 20_000 + "\n}",  # does not end on its line
        "'" + "\\'a" * 20_000 + "\\'}",  # nor does this one: its last quote is escaped
        "'" + "\\'" * 90 + "a" * 600_000 + "\n}",  # nor this one: it has few escapes, but is long
        ("'" + "\\'" * 90 + "a" * 2_000 + "\n") * 300 + "}",  # nor do these
    ],
)
def test_a_string_of_many_escaped_quotes_is_searched_in_linear_time(text: str) -> None:
    # The numbers prevent it from being taken for an envelope.
    hostile = f"{{'ids': {[*range(1_500)]}, 'dump': {text}"
    plain = min(_cpu_seconds("a line of it\n" * (len(hostile) // 13)) for _ in range(3))

    assert _cpu_seconds(hostile) < 100 * plain


def test_closing_brackets_in_a_string_do_not_hold_up_a_preview() -> None:
    text = '{"a": [{"x": 1}, {"x": 2}, "' + "]" * 25_000_000 + '", {"x": 1}, {"x": 2}]}'

    assert "object with 25,0" in _shown(text)
    assert not _is_one_list(text, _read(text, 16_384, Found()))
    mostly = '{"a": [{"x": 1}, {"x": 2}, "' + "] x" * 1_000_000 + '", {"x": 1}, {"x": 2}]}'
    assert _is_one_list(mostly, _read(mostly, 16_384, Found()))


@pytest.mark.parametrize("blanks", [0, 999_990, 1_000_005, 3_000_000])
def test_a_second_list_is_found_wherever_the_search_is_cut(blanks: int) -> None:
    one = '{"a": [{"x": 1}, {"x": 2}, ' + "0, " * 400_000 + '{"x": 3}'
    other = ' , "b": [{"x": 1}, {"x": 2}, {"x": 3}]}'
    text = one + "]" + " " * blanks + other

    assert not _is_one_list(text, _read(text, 16_384, Found()))


MEMORY = """
from pathlib import Path
from coatcheck import ByteCounter
from coatcheck.core.preview import Previewed, preview
texts = [
    "['" + "a" * 990_000 + "', 1]",
    "['" + "\\\\n" * 490_000 + "', 1]",
    "<a " + " ".join(f"a{n}='1'" for n in range(80_000)) + "><b/><c/></a>",
]
def held(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))
preview(Previewed(text="{}", content_type="text/plain", lines=1), ByteCounter(), budget=1)
for text in texts:
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = held("VmRSS")
    preview(Previewed(text=text, content_type="text/plain", lines=1), ByteCounter(), budget=1_000)
    assert held("VmHWM") - before < 40 * 1024, (text[:30], held("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_text_of_many_parts_is_matched_in_bounded_memory() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-2_000:]
