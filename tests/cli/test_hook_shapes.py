"""What ``coatcheck hook`` puts in place of offloaded content: no field, number or media item of a response is lost."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import FileStorage, Offloader
from coatcheck.core.copies import find_copy
from coatcheck.hook import shapes
from coatcheck.hook.answer import respond
from coatcheck.hook.options import Options

if TYPE_CHECKING:
    from pathlib import Path

OPENING = "Tool result offloaded. [Offloaded: "
LARGE = "".join(f"{number} INFO the service answered in {number * 7919 % 1000} ms\n" for number in range(1_000))
HUGE = LARGE * 6
BASE64 = "QUJD" * 60_000
ROWS = [{"id": number, "state": "open", "share": number / 7, "tags": ["a", "b"]} for number in range(9_000)]


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(storage=str(tmp_path))


def said(response: object, tool: str = "mcp__a__b") -> bytes:
    """Return what a client sends; a response that is a ``str`` is already JSON."""
    event = {"hook_event_name": "PostToolUse", "session_id": "one", "tool_name": tool, "tool_response": "RESPONSE"}
    own = response if isinstance(response, str) else json.dumps(response)
    return json.dumps(event).replace('"RESPONSE"', own).encode()


def answered(response: object, options: Options, tool: str = "mcp__a__b") -> Any:  # noqa: ANN401 - whatever JSON holds
    found = respond(said(response, tool), options)
    return None if found is None else json.loads(found)["hookSpecificOutput"]["updatedToolOutput"]


def stored(text: str, options: Options) -> str:
    """Return the content behind the first reference in a placeholder."""
    assert text.startswith(OPENING)
    return Offloader(FileStorage(options.folder)).load(text.splitlines()[2].split()[0], scope="one").text


# Text blocks with other fields.


def part(number: int, text: str, **more: object) -> dict[str, Any]:
    return {"type": "text", "text": f"{number} {text}", "_meta": {"id": number}, **more}


def test_a_few_blocks_are_offloaded_separately_and_keep_their_other_fields(options: Options) -> None:
    parts = [part(number, LARGE, annotations={"audience": ["user"]}) for number in range(3)]

    found = answered(parts, options)

    assert [{**each, "text": ""} for each in found] == [{**each, "text": ""} for each in parts]
    assert [stored(each["text"], options) for each in found] == [each["text"] for each in parts]


def test_many_blocks_are_offloaded_together_with_their_other_fields(options: Options) -> None:
    parts = [part(number, LARGE[:100], uri=f"a://{number}") for number in range(500)]

    (found,) = answered({"content": parts, "isError": False}, options)["content"]

    assert found.keys() == {"type", "text"}
    assert json.loads(stored(found["text"], options)) == parts


def test_many_blocks_with_the_same_other_fields_are_offloaded_as_lines(options: Options) -> None:
    parts = [{**part(number, LARGE[:100]), "_meta": {"id": "same"}} for number in range(500)]

    (found,) = answered(parts, options)

    assert found["_meta"] == {"id": "same"}
    assert stored(found["text"], options) == "\n".join(each["text"] for each in parts)


def test_a_list_of_blocks_and_strings_is_offloaded_with_the_fields_of_its_blocks(options: Options) -> None:
    parts = ["x" * 100, part(1, LARGE[:100])] * 200

    (found,) = answered(parts, options)

    assert json.loads(stored(found, options)) == parts


# Media.


@pytest.mark.parametrize(
    "holder",
    [
        pytest.param({"mimeType": "image/png", "data": LARGE}, id="text as data"),
        pytest.param({"kind": "shot", "data": BASE64[:40_000]}, id="data of no type"),
        pytest.param({"mimeType": "image/png", "data": BASE64[:40_000]}, id="data"),
        pytest.param({"base64": LARGE}, id="base64"),
        pytest.param({"blob": LARGE}, id="blob"),
        pytest.param({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BASE64[:40_000]}"}}, id="url"),
        pytest.param({"image_url": f"data:image/png;base64,{BASE64[:40_000]}"}, id="address"),
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_no_placeholder_replaces_a_media_field(options: Options, holder: dict[str, Any], *, is_first: bool) -> None:
    response = {"file": holder, "text": LARGE} if is_first else [{"type": "text", "text": LARGE}, holder]

    found = answered(response, options)

    assert (found["file"] if is_first else found[1]) == holder
    assert OPENING in (found["text"] if is_first else found[0]["text"])


@pytest.mark.parametrize(
    "holder",
    [
        {"base64": HUGE},
        {"data": BASE64},
        {"mimeType": "application/zip", "blob": BASE64},
        {"image_url": {"url": f"data:image/png;base64,{BASE64}"}},
        {"type": "image", "base64": HUGE},
    ],
)
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_above_the_hard_limit_the_object_around_a_media_field_is_offloaded(
    options: Options, holder: dict[str, Any], depth: int
) -> None:
    response: Any = holder
    for _ in range(depth):
        response = {"file": response, "name": "a"}

    found = answered(response, options)

    for _ in range(depth):
        assert found["name"] == "a"
        found = found["file"]
    if "image_url" in holder and "offloaded" not in found:
        found, holder = found["image_url"], holder["image_url"]
    text = found.get("offloaded") or found["text"]
    assert not found.keys() & {"base64", "data", "blob", "url", "image_url"}
    assert json.loads(stored(text, options)) == holder


# Numbers.

NUMBERS = [
    "1e999",
    "-1E+400",
    "1e-999",
    "0.1000000000000000055511151231257827",
    "12345678901234567.5",
    "9.903269621787359",
    "-9.903269621787359",
    "5.1e-324",
    "123456789012345678901234567890",
    "1.50",
    "-0.0",
    "1E5",
    "1e-07",
]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_that_stays_keeps_its_spelling(options: Options, number: str) -> None:
    raw = respond(said(f'{{"stdout": {json.dumps(LARGE)}, "n": [{number}], "m": {number}}}', "Bash"), options)

    found = json.loads(raw or b"", parse_int=str, parse_float=str)["hookSpecificOutput"]["updatedToolOutput"]
    assert (found["n"], found["m"]) == ([number], number)
    assert f'"m": {number}}}'.encode() in (raw or b""), "it is a number"


@pytest.mark.parametrize("number", NUMBERS)
def test_an_offloaded_number_keeps_its_spelling(options: Options, number: str) -> None:
    found = answered(f'{{"rows": {json.dumps(ROWS)[:-1]}, {number}]}}', options)

    assert stored(found["rows"][0]["state"], options).endswith(f",{number}]")


def test_nan_and_infinity_become_text(options: Options) -> None:
    found = answered(f'{{"stdout": {json.dumps(LARGE)}, "n": [NaN, Infinity, -Infinity]}}', options)

    assert found["n"] == ["NaN", "Infinity", "-Infinity"]


@pytest.mark.parametrize(
    ("text", "value", "is_copy"),
    [
        (f'{{"a": {2**64 + 1}}}', {"a": 2**64 + 1}, True),
        (f'{{"a": {2**64 + 1}}}', {"a": float(2**64)}, False),
        ('{"a": 1}', {"a": 1.0}, False),
        ('{"a": 1}', {"a": True}, False),
        ('{"a": 1e999}', {"a": None}, False),
        ('{"a": "\\ud800"}', {"a": "\ud800"}, True),
    ],
)
def test_only_a_value_with_the_same_numbers_counts_as_a_copy(text: str, value: object, *, is_copy: bool) -> None:
    assert (find_copy(value, [text]) is not None) is is_copy


# What is measured.


def test_json_is_written_the_same_without_orjson(monkeypatch: pytest.MonkeyPatch) -> None:
    value = [*ROWS, {"a": "é\u2028\n\x7f", "b": [True, None, 5, -0.5, 2**60]}]
    fast = shapes.as_text(value)

    monkeypatch.setitem(sys.modules, "orjson", None)

    assert shapes.as_text(value) == fast


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        [{"id": number} for number in range(20_000)],
        [number / 7 for number in range(20_000)],
        {str(number): {"id": number} for number in range(20_000)},
        [{"id": number, "text": "x" * 3_000 * (number % 100 == 50)} for number in range(9_000)],
    ],
    ids=["rows", "small objects", "floats", "keys", "few large ones"],
)
def test_many_small_members_are_measured_together(
    options: Options, monkeypatch: pytest.MonkeyPatch, rows: object
) -> None:
    written: list[bytes] = []
    as_json = shapes._json

    def count(value: object) -> bytes:
        written.append(as_json(value))
        return written[-1]

    monkeypatch.setattr(shapes, "_json", count)

    found = answered({"structuredContent": {"rows": rows}}, options)

    (text,) = (
        found["structuredContent"]["rows"].values() if isinstance(rows, dict) else found["structuredContent"]["rows"]
    )
    if isinstance(text, dict):
        text = text.get("state", text.get("text"))
    assert json.loads(stored(text, options)) == rows
    assert len(written) < 2_000, "two looks at each few of them"
    assert sum(map(len, written)) < 12 * len(json.dumps(rows))


def test_text_of_line_ends_is_offloaded_in_linear_time(options: Options) -> None:
    assert answered({"data": "\n" * 200_000 + "!"}, options)["data"].startswith(OPENING)
