"""The hard limit of ``coatcheck hook``: no result above it stays whole, whatever it holds, and its shape stays."""

from __future__ import annotations

import json
import os
import re
import sys
from bisect import bisect_left
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import FileStorage, Offloader
from coatcheck.core.items import MAX_APART
from coatcheck.core.notice import ALL_LOST
from coatcheck.hook import answer, shapes
from coatcheck.hook.answer import respond
from coatcheck.hook.options import Options
from coatcheck.storage import folder

if TYPE_CHECKING:
    from pathlib import Path

SESSION = "50b10772-851d-4a10-b80a-0bca2ab05479"
OPENING = "Tool result offloaded. [Offloaded: "
LARGE = "".join(f"{number} INFO the service answered in {number * 7919 % 1000} ms\n" for number in range(6_000))
BASE64 = "QUJD" * 60_000
SMALL = "all is well"
ROWS = [{"id": number, "state": "open"} for number in range(10_000)]
IMAGE = {"type": "image", "data": BASE64, "mimeType": "image/png"}
HARD = Options().hard_limit


def said(response: object, **changes: object) -> bytes:
    """Return what a client sends; a response that is a ``str`` is already JSON."""
    event = {
        "hook_event_name": "PostToolUse",
        "session_id": SESSION,
        "tool_name": "mcp__a__b",
        "tool_response": "RESPONSE",
        **changes,
    }
    own = response if isinstance(response, str) else json.dumps(response)
    return json.dumps(event).replace('"RESPONSE"', own).encode()


def answered(raw: bytes, options: Options) -> Any:  # noqa: ANN401 - whatever JSON holds
    found = respond(raw, options)
    return None if found is None else json.loads(found)["hookSpecificOutput"]["updatedToolOutput"]


def is_too_deep(levels: int) -> bool:
    """Return whether Python refuses to read lists nested this deep."""
    try:
        json.loads("[" * levels + "]" * levels)
    except RecursionError:
        return True
    return False


def stored(text: str, folder: Path) -> str:
    """Return the content behind the first reference in a placeholder."""
    assert text.startswith(OPENING)
    return Offloader(FileStorage(folder)).load(text.splitlines()[2].split()[0], scope=SESSION).text


@pytest.fixture
def options(tmp_path: Path) -> Options:
    return Options(storage=str(tmp_path))


# JSON that Python's parser refuses.


@pytest.mark.parametrize("digits", ["7" * 5_000, "-" + "7" * 5_000], ids=["positive", "negative"])
def test_a_long_number_does_not_keep_other_text_from_being_offloaded(
    options: Options, tmp_path: Path, digits: str
) -> None:
    half = f"1.{digits[1:3_000]}"
    raw = respond(said(f'{{"text": {json.dumps(LARGE)}, "number": {digits}, "half": {half}}}'), options)

    found = json.loads(raw or b"", parse_int=str, parse_float=str)["hookSpecificOutput"]["updatedToolOutput"]
    assert stored(found["text"], tmp_path) == LARGE
    assert (found["number"], found["half"]) == (digits, half)
    assert f'"number": {digits}'.encode() in (raw or b""), "it is a number"


def test_a_number_of_a_million_digits_is_offloaded_as_text(options: Options, tmp_path: Path) -> None:
    digits = "7" * 1_000_000
    found = answered(said(f'{{"number": {digits}, "small": 5}}'), options)

    assert stored(found["number"], tmp_path) == digits
    assert found["small"] == 5


@pytest.mark.parametrize("levels", [70, 900, 100_000])
def test_a_deeply_nested_value_is_offloaded_with_its_text(options: Options, tmp_path: Path, levels: int) -> None:
    deep = f"{'[' * levels}{json.dumps(']} ' + LARGE)}{']' * levels}"
    found = answered(said(f'{{"text": {json.dumps(LARGE)}, "deep": {deep}, "small": 5}}'), options)

    assert stored(found["text"], tmp_path) == LARGE
    assert found["small"] == 5
    inner = re.sub(r"[][]", "", json.dumps(found["deep"]).partition('"')[2])
    assert len(inner) < HARD
    assert "Offloaded: 1 block" in inner


def test_a_deeply_nested_request_changes_nothing(options: Options, tmp_path: Path) -> None:
    raw = said([{"type": "text", "text": LARGE}], tool_input="INPUT").replace(
        b'"INPUT"', b'{"a":' * 50_000 + b"1" + b"}" * 50_000
    )

    (part,) = answered(raw, options)

    assert stored(part["text"], tmp_path) == LARGE


@pytest.mark.parametrize("levels", range(12))
def test_what_python_reads_but_cannot_write_is_offloaded(options: Options, tmp_path: Path, levels: int) -> None:
    levels = bisect_left(range(500_000), True, key=is_too_deep) - levels
    found = answered(said(f'{{"deep": {"[" * levels}{json.dumps(LARGE)}{"]" * levels}}}'), options)

    assert len(json.dumps(found)) < HARD
    assert len(list(tmp_path.iterdir())) > 0


# Values that are not strings.


@pytest.mark.parametrize("kind", [["text"], {"a": 1}], ids=["a list", "an object"])
def test_the_type_of_an_object_may_be_any_json(options: Options, tmp_path: Path, kind: object) -> None:
    found = answered(said({"schema": {"type": kind, "text": LARGE}}), options)

    assert stored(found["schema"]["text"], tmp_path) == LARGE
    assert found["schema"]["type"] == kind


@pytest.mark.parametrize(
    ("response", "path", "fields"),
    [
        pytest.param(
            {"content": [{"type": "text", "text": SMALL}], "structuredContent": {"rows": ROWS}},
            ("structuredContent", "rows"),
            {"id": 0},
            id="rows",
        ),
        pytest.param({"stdout": SMALL, "numbers": list(range(90_000))}, ("numbers",), None, id="numbers"),
        pytest.param(ROWS, (), {"id": 0}, id="only rows"),
    ],
)
def test_a_list_above_the_hard_limit_becomes_a_list_of_one(
    options: Options,
    tmp_path: Path,
    response: Any,  # noqa: ANN401 - JSON
    path: tuple[str, ...],
    fields: dict[str, int] | None,
) -> None:
    found, value = answered(said(response), options), response
    rest = shapes.replaced(found, {path: ""})
    for key in path:
        found, value = found[key], value[key]

    (one,) = found
    placeholder = one if fields is None else one.pop("state")
    assert fields in (None, one)
    assert json.loads(stored(placeholder, tmp_path)) == value
    assert rest == shapes.replaced(response, {path: ""})


IMAGE_DATA = {"image_data": BASE64, "media_type": "image/png"}
"""An image in a notebook, as Claude Code sends it."""


def cell(number: int, source: str, *outputs: dict[str, Any]) -> dict[str, Any]:
    rest = {"outputs": [*outputs]} if outputs else {}
    return {"cellType": "code", "source": source, "language": "python", "cell_id": f"cell-{number}", **rest}


def of_records(tool: str, records: list[dict[str, Any]]) -> dict[str, Any]:
    if tool == "Read":
        return {"type": "notebook", "file": {"filePath": "/a.ipynb", "cells": records}}
    return {"query": "q", "results": ["found", {"tool_use_id": "t", "content": records}], "durationSeconds": 1}


@pytest.mark.parametrize(
    ("tool", "records", "field"),
    [
        ("Read", [cell(number, LARGE[:900]) for number in range(300)], "source"),
        ("Read", [cell(number, LARGE[:30_000]) for number in range(40)], "source"),
        ("Read", [cell(0, "print(rows)", {"output_type": "stream", "text": LARGE[:3_000]})] * 200, "source"),
        (
            "Read",
            [
                cell(
                    0,
                    "plot()",
                    {"output_type": "display_data", "text": "", "image": {**IMAGE_DATA, "image_data": BASE64[:4_000]}},
                )
            ]
            * 2_000,
            "source",
        ),
        ("WebSearch", [{"title": f"page {number}", "url": f"https://a/{number}"} for number in range(9_000)], "url"),
    ],
    ids=["small cells", "large cells", "outputs", "images", "search"],
)
def test_a_list_of_records_becomes_one_record_that_the_client_can_draw(
    options: Options, tmp_path: Path, tool: str, records: list[dict[str, Any]], field: str
) -> None:
    found = answered(said(of_records(tool, records), tool_name=tool), options)

    one = found["file"]["cells"] if tool == "Read" else found["results"][1]["content"]
    assert found == of_records(tool, one)
    assert json.loads(stored(one[0][field], tmp_path)) == records
    assert one == [{**records[0], field: one[0][field], **({"outputs": []} if "outputs" in records[0] else {})}]


def test_the_text_of_a_notebook_is_offloaded_like_any_other_and_its_images_stay(
    options: Options, tmp_path: Path
) -> None:
    image = {"output_type": "display_data", "text": "", "image": IMAGE_DATA}
    cells = [cell(0, LARGE[:30_000]), cell(1, SMALL, {"output_type": "stream", "text": LARGE[:9_000]}, image)]

    found = answered(said(of_records("Read", cells), tool_name="Read"), options)

    new = found["file"]["cells"]
    assert stored(new[0]["source"], tmp_path) == LARGE[:30_000]
    assert found == of_records("Read", [{**cells[0], "source": new[0]["source"]}, cells[1]])


def test_an_object_of_many_keys_becomes_an_object_of_one_key(options: Options, tmp_path: Path) -> None:
    many = {f"key {number}": number for number in range(20_000)}

    found = answered(said({"text": SMALL, "many": many}), options)

    assert found["text"] == SMALL
    assert json.loads(stored(found["many"]["offloaded"], tmp_path)) == many


def test_many_parts_that_are_not_text_become_one_text_part(options: Options, tmp_path: Path) -> None:
    links = [{"type": "resource_link", "uri": f"file:///{number}", "name": str(number)} for number in range(5_000)]

    found = answered(said({"content": links, "isError": False}), options)

    (part,) = found["content"]
    assert part.keys() == {"type", "text"}
    assert json.loads(stored(part["text"], tmp_path)) == links


def test_many_large_parts_are_offloaded_together(options: Options, tmp_path: Path) -> None:
    parts = [{"type": "odd", "text": f"{number} {LARGE[:30_000]}"} for number in range(2 * MAX_APART)]

    (part,) = answered(said(parts), options)

    assert json.loads(stored(part["text"], tmp_path)) == parts


@pytest.mark.parametrize(
    ("part", "path"),
    [
        pytest.param(
            {"type": "resource_link", "uri": "a://b", "name": "n", "description": LARGE},
            ("description",),
            id="description",
        ),
        pytest.param({"type": "resource_link", "uri": f"a://{LARGE}", "name": "n"}, ("uri",), id="uri"),
        pytest.param(
            {"type": "text", "text": SMALL, "annotations": {"x": LARGE}}, ("annotations", "x"), id="annotations"
        ),
        pytest.param({"type": "text", "text": SMALL, "_meta": {"x": LARGE}}, ("_meta", "x"), id="_meta"),
        pytest.param({**IMAGE, "_meta": {"x": LARGE}}, ("_meta", "x"), id="_meta of an image"),
    ],
)
def test_a_large_field_next_to_the_text_of_a_part_is_offloaded_too(
    options: Options, tmp_path: Path, part: dict[str, Any], path: tuple[str, ...]
) -> None:
    found = answered(said([{"type": "text", "text": SMALL}, part]), options)
    rest = shapes.replaced(found, {(1, *path): ""})
    for key in (1, *path):
        found = found[key]

    value: Any = part
    for key in path:
        value = value[key]
    assert stored(found, tmp_path) == value
    assert rest == shapes.replaced([{"type": "text", "text": SMALL}, part], {(1, *path): ""})


# Media.


@pytest.mark.parametrize(
    ("tool", "response"),
    [
        ("Read", {"type": "image", "file": {"base64": BASE64, "type": "image/png", "originalSize": 5}}),
        ("Read", {"type": "pdf", "file": {"base64": BASE64, "filePath": "/a.pdf"}}),
        ("mcp__a__b", [IMAGE]),
        ("mcp__a__b", [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": BASE64}}]),
        ("mcp__a__b", {"content": [{"type": "audio", "data": BASE64, "mimeType": "audio/wav"}]}),
        ("mcp__a__b", [{"type": "resource", "resource": {"uri": "a://b", "mimeType": "image/png", "blob": BASE64}}]),
    ],
)
def test_media_stay_at_any_size_because_they_are_billed_by_the_piece(
    options: Options, tool: str, response: object
) -> None:
    assert answered(said(response, tool_name=tool), options) is None


@pytest.mark.parametrize(
    "part",
    [
        pytest.param({"type": "image", "data": f"{BASE64}!", "mimeType": "image/png"}, id="an image that is none"),
        pytest.param(
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": LARGE}}, id="text"
        ),
        pytest.param(
            {"type": "resource", "resource": {"uri": "a://b", "mimeType": "application/zip", "blob": BASE64}},
            id="binary",
        ),
    ],
)
def test_a_part_with_data_that_nobody_can_show_becomes_text(
    options: Options, tmp_path: Path, part: dict[str, Any]
) -> None:
    found = answered(said({"content": [{"type": "text", "text": SMALL}, part]}), options)

    first, second = found["content"]
    assert first == {"type": "text", "text": SMALL}
    assert second.keys() == {"type", "text"}
    assert json.loads(stored(second["text"], tmp_path)) == part


@pytest.mark.parametrize("structured", [IMAGE, {"items": [IMAGE]}], ids=["alone", "in a list"])
def test_what_looks_like_media_in_structured_content_is_offloaded(options: Options, structured: object) -> None:
    content = [{"type": "text", "text": SMALL}]

    found = answered(said({"content": content, "structuredContent": structured}), options)

    assert found["content"] == content
    assert OPENING in json.dumps(found["structuredContent"])
    assert len(json.dumps(found)) < HARD


# After an internal error.


@pytest.fixture
def defect(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError

    monkeypatch.setattr(answer, "large_texts", fail)


@pytest.mark.usefixtures("defect")
@pytest.mark.parametrize(
    ("response", "path", "text"),
    [
        pytest.param(json.dumps(LARGE), (), LARGE, id="text"),
        pytest.param({"text": LARGE}, ("text",), shapes.as_text({"text": LARGE}), id="object"),
        pytest.param({"x": [LARGE]}, ("offloaded",), shapes.as_text({"x": [LARGE]}), id="object without a text"),
        pytest.param([7, LARGE], (0,), shapes.as_text([7, LARGE]), id="list"),
    ],
)
def test_after_an_internal_error_a_result_above_the_hard_limit_is_offloaded_whole(
    options: Options, tmp_path: Path, response: object, path: tuple[str | int, ...], text: str
) -> None:
    found = answered(said(response), options)
    for key in path:
        found = found[key]

    assert stored(found, tmp_path) == text


@pytest.mark.usefixtures("defect")
def test_after_an_internal_error_what_cannot_be_stored_is_lost(
    options: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "coatcheck.offloader", None)
    monkeypatch.delitem(sys.modules, "coatcheck.hook.storing", raising=False)

    assert answered(said(json.dumps(LARGE)), options) == ALL_LOST


@pytest.mark.usefixtures("defect")
@pytest.mark.parametrize(
    ("tool", "response"), [("Bash", {"stdout": LARGE[: HARD // 2]}), ("Write", {"content": LARGE})]
)
def test_after_an_internal_error_a_result_that_may_stay_stays(options: Options, tool: str, response: object) -> None:
    assert answered(said(response, tool_name=tool), options) is None


# When nothing can be stored.


def test_strings_that_cannot_be_stored_are_cut_to_fit_the_limit_together(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    texts = {str(number): LARGE[: HARD // 2] for number in range(4)}

    found = answered(said(texts), Options(storage=str(tmp_path / "file")))

    assert len(json.dumps(found)) <= HARD
    assert all(text.startswith("Tool result cut. ") for text in found.values())


def test_many_strings_next_to_numbers_fit_the_limit_with_their_placeholders(options: Options) -> None:
    texts = {f"text {number}": f"{number}" + LARGE[:4_150] for number in range(45)}

    found = answered(said({"numbers": list(range(10_000, 41_500)), **texts}), options)

    assert len(json.dumps(found, separators=(",", ":"))) <= HARD


def test_the_hook_waits_only_once_for_a_folder_that_another_process_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock = pytest.importorskip("fcntl").flock
    options, tried = Options(storage=str(tmp_path)), list[str]()
    answered(said({"text": LARGE}), options)  # makes the folders
    monkeypatch.setattr(folder, "LOCK_SECONDS", 0.01)
    save = FileStorage.save

    def count(self: FileStorage, key: str, content: bytes, **rest: Any) -> None:  # noqa: ANN401
        tried.append(key)
        save(self, key, content, **rest)

    monkeypatch.setattr(FileStorage, "save", count)
    with ExitStack() as held:
        for path in (path for path in tmp_path.rglob("*") if path.is_dir()):
            descriptor = os.open(path, os.O_RDONLY)
            held.callback(os.close, descriptor)
            flock(descriptor, 2)  # LOCK_EX

        found = answered(said({str(number): f"{number}" + LARGE for number in range(8)}), options)

    assert len(tried) == 1
    assert all(text.startswith("Tool result cut. ") for text in found.values())


def test_without_the_read_back_command_only_what_is_above_the_hard_limit_is_offloaded(
    options: Options, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)

    assert answered(said({"text": LARGE[: HARD // 2]}), options) is None
    assert "a model reads back with `coatcheck get`, which needs its extra: " in capfd.readouterr().err
    assert answered(said({"text": LARGE}), options)["text"].startswith(OPENING)
    assert "a model reads back with `coatcheck get`, which needs its extra: " in capfd.readouterr().err
    named = replace(options, retrieval_tool="mcp__a__retrieve_offloaded_content")
    assert answered(said({"text": LARGE[: HARD // 2]}), named)["text"].startswith(OPENING)


@pytest.mark.parametrize("missing", ["session_id", "tool_name"])
def test_without_a_session_a_result_above_the_hard_limit_keeps_head_and_tail(
    options: Options, tmp_path: Path, capfd: pytest.CaptureFixture[str], missing: str
) -> None:
    (part,) = answered(said([{"type": "text", "text": LARGE}], **{missing: None}), options)

    assert part["text"].startswith("Tool result cut. [Of ~")
    assert LARGE[:100] in part["text"]
    assert LARGE[-100:] in part["text"]
    assert HARD // 2 < len(part["text"]) <= HARD
    assert "call None" not in part["text"]
    assert "InvalidRequest" not in (told := capfd.readouterr().err)
    assert "session_id is missing, so nothing can be stored" in told
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("missing", ["session_id", "tool_name"])
def test_without_a_session_a_result_within_the_hard_limit_stays(options: Options, missing: str) -> None:
    assert answered(said({"text": LARGE[: HARD // 2]}, **{missing: None}), options) is None


def test_no_listing_command_is_printed_if_nothing_could_be_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()

    found = answered(said({"text": LARGE}), Options(storage=str(tmp_path / "file")))

    assert found["text"].startswith("Tool result cut. [Of ~")
    assert "characters became" in (told := capfd.readouterr().err)
    assert "to list what this session stored" not in told
    assert "(HookStorage) failed: NotADirectoryError" in caplog.text


@pytest.mark.parametrize("storage", [Options().storage, "~no-such-user/kept", "s3://bucket"])
def test_without_a_home_no_folder_is_created_where_the_client_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], storage: str
) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)  # as for a user id without an account, which clusters assign
    monkeypatch.chdir(tmp_path)

    found = answered(said({"text": LARGE}), Options(storage=storage))

    assert found["text"].startswith("Tool result cut. [Of ~")
    assert answered(said({"text": LARGE[: HARD // 2]}), Options(storage=storage)) is None
    assert "the hook's folder is in an unknown home directory: set HOME, or name" in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


def test_without_a_home_and_in_a_deleted_folder_a_part_of_a_large_result_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", {}.__getitem__)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    assert answered(said({"text": LARGE}), Options(storage="kept"))["text"].startswith("Tool result cut. [Of ~")


@pytest.mark.parametrize("mark", [{"persistedOutputPath": "/a"}, {"isImage": True}])
def test_a_server_cannot_set_the_clients_own_marks(options: Options, mark: dict[str, object]) -> None:
    assert answered(said({"text": LARGE, **mark}), options) is not None
    assert answered(said({"stdout": LARGE, **mark}, tool_name="Bash"), options) is None


def test_a_foreign_tool_named_like_the_retrieval_tool_obeys_the_hard_limit(options: Options) -> None:
    tool = "mcp__evil__retrieve_offloaded_content"

    assert answered(said({"text": LARGE}, tool_name=tool), options) is not None
    assert answered(said({"text": LARGE[: HARD // 2]}, tool_name=tool), options) is None


@pytest.mark.parametrize("rest", ["", " | xargs cat"])
def test_shell_output_made_from_a_read_back_obeys_the_hard_limit(options: Options, rest: str) -> None:
    changes = {"tool_name": "Bash", "tool_input": {"command": f"coatcheck get r{rest}"}}

    assert answered(said({"stdout": LARGE}, **changes), options) is not None
    assert answered(said({"stdout": LARGE[: HARD // 2]}, **changes), options) is None
