"""The declared type of content chooses its preview first, a wrong one does no harm, and tool output is recognised."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck import Always, ByteCounter, JsonBlock, MediaBlock, Offloader, TextBlock, TiktokenCounter
from coatcheck.core.preview import Previewed, preview
from coatcheck.core.preview.kinds import _TYPES, kinds_of
from tests.core.preview_samples import SAMPLES

TIKTOKEN = TiktokenCounter()
MANY = 500


def _content(text: str, content_type: str = "text/plain") -> Previewed:
    return Previewed.of(text, content_type)


def _shown(text: str, content_type: str = "text/plain", *, budget: int = 200) -> str:
    return preview(_content(text, content_type), TIKTOKEN, budget=budget)


def _kind_of(text: str, content_type: str) -> str:
    content = _content(text, content_type)
    shows = (show for show in kinds_of(content) if show(content, 300, TIKTOKEN) is not None)
    return next(shows).__name__.removeprefix("preview_")


def _sample(name: str) -> str:
    return SAMPLES[name][1](MANY)


DECLARED = {
    "application/json": "json",
    "application/problem+json; charset=utf-8": "json",
    "application/x-ndjson": "json_lines",
    "application/jsonl": "json_lines",
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/xml": "xml",
    "application/atom+xml": "xml",
    "TEXT/CSV; header=present": "delimited",
    "text/tab-separated-values": "delimited",
    "text/x-log": "log",
    "text/markdown": "text",
    "text/x-python": "text",
    "application/yaml": "text",
    "application/vnd.oai.openapi+yaml": "text",
    "text/json": "json",
    "application/ndjson": "json_lines",
    "application/x-jsonlines": "json_lines",
    "application/html": "html",
    "text/xml": "xml",
    "application/csv": "delimited",
    "text/tsv": "delimited",
    "text/log": "log",
    "application/javascript": "text",
    "application/md": "text",
    "application/sql": "text",
    "application/toml": "text",
    "application/x-javascript": "text",
    "application/x-sh": "text",
    "application/x-toml": "text",
    "application/x-yaml": "text",
    "text/css": "text",
    "text/javascript": "text",
    "text/x-c": "text",
    "text/x-diff": "diff",
    "text/x-java": "text",
    "text/x-markdown": "text",
    "text/x-patch": "diff",
    "text/x-rst": "text",
    "text/x-yaml": "text",
    "text/yaml": "text",
}
"""Maps a content type to the kind that it declares."""

TYPES_OF = {kind: [one for one in DECLARED if DECLARED[one] == kind] for kind in {*DECLARED.values()}}
DECLARED_WRONGLY = sorted(
    one for kind, types in TYPES_OF.items() if kind not in {"text", "html", "log"} for one in types[:2]
)
"""Two types of each structured kind: few enough to try on every sample."""

ONLY_DECLARED = {
    "text/html": ("<b>one</b>\n" * MANY, "html"),
    "text/csv": ("name, note\n" + "".join(f"{n}, about {n}\n" for n in range(MANY)), "delimited"),
    "text/x-log": ("".join(f"step {n} done\n" for n in range(MANY)), "log"),
    "text/markdown": ("".join(f"2026-01-01 12:00:{n % 60:02} entry\n" for n in range(MANY)), "text"),
    "text/x-python": ("[" + "1, 2,\n" * MANY + "]", "text"),
}
"""Maps a content type to content whose kind only the type reveals, and to that kind."""


DOUBTFUL = ("[1]\n[2]", '<?xml version="1.0"?><html></html>', "2026-01-01 12:00:00,message\n" * 9)
"""Text that may be of two or more kinds."""


@pytest.mark.parametrize("content_type", DECLARED)
def test_the_declared_kind_is_tried_first(content_type: str) -> None:
    for text in DOUBTFUL:
        kinds = [show.__name__.removeprefix("preview_") for show in kinds_of(_content(text, content_type))]

        assert len(kinds) > 2
        assert DECLARED[content_type] == kinds[0] or DECLARED[content_type] not in kinds


def test_every_type_that_declares_a_kind_is_tested() -> None:
    tried = {content_type.partition(";")[0].lower() for content_type in DECLARED}

    assert not frozenset[str]().union(*_TYPES.values()) - tried, "DECLARED"


@pytest.mark.parametrize("content_type", ONLY_DECLARED)
def test_content_without_clues_to_its_kind_is_shown_as_the_declared_kind(content_type: str) -> None:
    text, kind = ONLY_DECLARED[content_type]

    assert _kind_of(text, content_type) == kind
    assert _kind_of(text, "text/plain") != kind


@pytest.mark.no_cover
@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("content_type", DECLARED_WRONGLY)
def test_a_wrong_declaration_changes_nothing(name: str, content_type: str) -> None:
    assert _kind_of(_sample(name), content_type) == SAMPLES[name][0]


@given(
    name=st.sampled_from(sorted(SAMPLES)),
    content_type=st.one_of(st.sampled_from(sorted(DECLARED)), st.text(max_size=30)),
    count=st.integers(1, 200),
    budget=st.integers(0, 600),
)
def test_no_declaration_breaks_a_preview(name: str, content_type: str, count: int, budget: int) -> None:
    shown = _shown(SAMPLES[name][1](count), content_type, budget=budget)

    shown.encode("utf-8")
    assert TIKTOKEN.count(shown) <= budget


def test_a_log_declared_as_a_table_is_shown_as_a_log() -> None:
    shown = _shown(_sample("log with a comma in each line"), "text/csv").splitlines()

    assert shown[0] == "2026-01-01 12:00:00,123 request 0"
    assert shown[-1] == "2026-01-01 12:08:19,123 request 499"


def test_a_text_document_has_the_preview_of_its_type() -> None:
    offloader = Offloader(token_counter=ByteCounter(), preview_tokens=200)
    document = MediaBlock(ONLY_DECLARED["text/csv"][0].encode(), "text/csv", name="numbers.csv")
    outcome = offloader.offload([document], tool_name="export", policy=Always())

    first = outcome.blocks[0]
    assert isinstance(first, TextBlock)
    assert f"table of {MANY + 1} lines by 2 columns, the header is line 1\nname, note\n0, about 0\n" in first.text


@pytest.mark.parametrize(("data", "media_type"), [(b"\xff\xfe" * 900, "text/csv"), (b"a,b\n" * 900, "image/png")])
def test_a_document_that_is_not_text_has_no_preview(data: bytes, media_type: str) -> None:
    outcome = Offloader(token_counter=ByteCounter()).offload(
        [MediaBlock(data, media_type)], tool_name="export", policy=Always()
    )

    first = outcome.blocks[0]
    assert isinstance(first, TextBlock)
    assert first.text.endswith(")")  # the last reference line


def test_a_json_value_is_declared_as_json() -> None:
    value = [{"id": number} for number in range(3_000)]
    outcome = Offloader().offload([JsonBlock(value)], tool_name="search")

    first = outcome.blocks[0]
    assert isinstance(first, TextBlock)
    assert "list of 3,000 objects, one a line: id\n0\n1\n" in first.text


# XML.


def test_xml_elements_become_rows_and_attributes_become_fields() -> None:
    shown = _shown(_sample("feed"), "application/rss+xml", budget=300).splitlines()

    assert shown[:3] == [
        "XML, its elements as fields (@ for attributes); search it with pattern:",
        "object with 1 key",
        "rss: object with 2 keys",
    ]
    assert "    item: list of 500 objects, one a line: @id|title|link" in shown
    assert "      0|Story 0 & more|https://a.example/0" in shown
    assert "      499|Story 499 & more|https://a.example/499" in shown[-2:]


@pytest.mark.parametrize(
    "text",
    [
        f"<r>{'<a><b></a></b>' * MANY}</r>",
        "<a>" * MANY + "</a>" * MANY,
        "<a>" + "<b>1</b>" * MANY,
        "<a>1</a>" * MANY,
        "<a b='1>" + "x" * 3_000 + "</a>",
        "<a>&" + "b & c < d " * MANY + "</a>",
        "<" * 3_000 + ">",
        "<![CDATA[" * MANY + ">",
    ],
)
def test_text_that_only_looks_like_xml_is_shown_as_text(text: str) -> None:
    assert _kind_of(text, "application/xml") == "text"


def test_entities_that_a_document_defines_are_not_resolved() -> None:
    lines = "".join(f'<!ENTITY a{n} "&a{n - 1};&a{n - 1};&a{n - 1};">\n' for n in range(1, 60))
    bomb = f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a0 "ha">{lines}]><r>{"<i>&a59;</i>" * MANY}</r>'

    assert '"&a59;", "&a59;"' in _shown(bomb, "text/xml")


def _waypoints(count: int) -> str:
    points = "".join(
        f'<point at="{n}"><name>a place on the way</name>\n <kind>halt for a night</kind></point>\n'
        for n in range(count)
    )
    return f"<way>\n{points}</way>"


def test_xml_of_many_elements_is_shown_as_xml() -> None:
    text = _waypoints(2_500)

    assert len(text) > 180_000
    assert preview(_content(text), TIKTOKEN, budget=200).startswith("XML, its elements as fields")


def test_xml_of_too_many_elements_is_left_to_a_simpler_kind() -> None:
    assert preview(_content(_waypoints(8_000)), TIKTOKEN, budget=200).startswith("[lines alike but for their numbers: ")


# Output of command-line tools.


def _lines(template: str, count: int = MANY) -> str:
    return "".join(template.format(n=n, even=n // 2 * 2) for n in range(count))


PRINTED = {
    "ls -la": ("total 96\n" + _lines("-rw-r--r--  1 ada staff  {n}24 Jan  1 12:00 report_{n}.txt\n"), "text"),
    "ls -R": (_lines("./part_{n}:\nindex.html\nstyle.css\n\n"), "text"),
    "find": (_lines("./src/part_{n}/module.py\n"), "text"),
    "tree": (".\n" + _lines("├── part_{n}\n│   └── module.py\n") + "\n500 directories, 500 files\n", "text"),
    "du": (_lines("{n}4\t./part_{n}\n"), "text"),
    "grep -n in one file": (_lines("{n}:    value = {n}\n"), "text"),
    "grep -rn": (_lines("src/module_{even}.py:{n}:    value = {n}\n"), "matches"),
    "grep -rn with a colon": (_lines("src/module_{even}.py:{n}:  at 12:00: {n}\n"), "matches"),
    "rg with headings": (_lines("src/module_{n}.py\n12:    value = {n}\n\n"), "text"),
    "rg coloured": (_lines("\x1b[35msrc/m_{even}.py\x1b[0m:\x1b[32m{n}\x1b[0m:value {n}\n"), "matches"),
    "pip install": (
        "Collecting a\n" + _lines("\r  {n}%|###   | {n}/500 [00:01<00:02]") + "\nSuccessfully installed a\n" * 80,
        "log",
    ),
    "pytest": (
        "===== test session starts =====\ncollected 500 items\n\n"
        + _lines("tests/test_part_{n}.py \x1b[32m.\x1b[0m [ {n}%]\n")
        + "E       AssertionError: assert 1 == 2\n\ntests/test_part_9.py:12: AssertionError\n"
        + "FAILED tests/test_part_9.py::test_sum - assert 1 == 2\n===== 1 failed, 499 passed in 3.21s =====\n",
        "log",
    ),
    "Java stack trace": (
        _lines("2026-01-01 12:00:00 INFO request {n}\n")
        + 'Exception in thread "main" java.lang.IllegalStateException: no connection\n'
        + _lines("\tat com.example.Pool.take(Pool.java:{n})\n", 30),
        "log",
    ),
    "docker build": (_lines("#{n} [build {n}/500] RUN make step-{n}\n#{n} DONE 0.1s\n"), "text"),
}
"""Maps a command to its output, and to the kind that shows it."""


@pytest.mark.parametrize("command", PRINTED)
def test_command_output_is_shown_as_its_kind_with_what_is_missing(command: str) -> None:
    text, kind = PRINTED[command]
    shown = _shown(text, budget=250)

    assert _kind_of(text, "text/plain") == kind
    assert TIKTOKEN.count(shown) <= 250
    assert re.search(r"\[… lines [\d,]+-[\d,]+ of [\d,]+ not shown|\d matches shown, the rest are not", shown)
    assert "\x1b" not in shown or kind == "text"
    assert "\r" not in shown


def test_a_test_run_shows_what_failed_and_the_summary() -> None:
    shown = _shown(PRINTED["pytest"][0]).splitlines()

    assert shown[:2] == ["[3 ERROR lines]", "===== test session starts ====="]
    assert "E       AssertionError: assert 1 == 2" in shown
    assert "FAILED tests/test_part_9.py::test_sum - assert 1 == 2" in shown
    assert shown[-1] == "===== 1 failed, 499 passed in 3.21s ====="


def test_a_stack_trace_below_a_log_shows_the_exception() -> None:
    assert "IllegalStateException: no connection" in _shown(PRINTED["Java stack trace"][0])


def test_a_progress_bar_is_shown_in_its_final_state() -> None:
    shown = _shown(PRINTED["pip install"][0]).splitlines()

    assert shown[1] == "  499%|###   | 499/500 [00:01<00:02]"


def test_matches_are_shown_with_the_number_in_each_file() -> None:
    shown = _shown(PRINTED["grep -rn"][0])

    assert re.match(r"250 files, \d+ of 500 matches shown, the rest are not:\nsrc/module_0.py \(2\)\n  0:", shown)


def test_large_values_are_not_taken_for_another_kind_by_their_first_line() -> None:
    text = json.dumps({"a": 1}) + "\n" + _lines("and then {n} lines of prose\n")

    assert _kind_of(text, "application/json") == "repeats"


def test_a_tag_around_lines_does_not_make_them_xml() -> None:
    text = "<output>\n" + "".join(f"step {number} done\n" for number in range(900)) + "total: 900\n</output>"
    shown = _shown(text)

    assert shown.startswith("[lines alike but for their numbers: 900 like line 2]\n<output>\nstep 0 done\n")
    assert shown.endswith("\ntotal: 900\n</output>")
