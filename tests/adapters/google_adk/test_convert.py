"""Each tool result becomes blocks, and each block becomes an entry of a result again."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timezone
from typing import Any

import pytest
from google.genai.types import Blob, FileData, Part
from pydantic import BaseModel

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck_adk.convert import blocks_of, is_error, media_tokens, plain_blocks_of, result_of, small_text_of

DATA = b"some bytes"
ENCODED = base64.b64encode(DATA).decode()
PNG = Part(inline_data=Blob(data=DATA, mime_type="image/png"))
PDF = Part(inline_data=Blob(data=DATA, mime_type="application/pdf", display_name="a.pdf"))
ELSEWHERE = Part(file_data=FileData(file_uri="https://127.0.0.1/x.png", mime_type="image/png"))
EMPTY = Part(inline_data=Blob(data=b"", mime_type="image/png"))
IMAGE, DOCUMENT = MediaBlock(DATA, "image/png"), MediaBlock(DATA, "application/pdf", name="a.pdf")
NOON = datetime(2026, 1, 2, 12, tzinfo=timezone.utc)
LINK = {"type": "resource_link", "uri": "file:///x", "name": "x"}
LONG_LINK: dict[str, Any] = {**LINK, "description": "x" * 10_000}
RESOURCE: dict[str, Any] = {"type": "resource", "resource": {"uri": "file:///x", "text": "a"}}
PICTURE: dict[str, Any] = {"type": "image", "data": ENCODED, "mimeType": "image/png"}
ABOUT: dict[str, Any] = {"annotations": {"priority": 1}, "_meta": {"id": 7}}


class Row(BaseModel):
    number: int


class Odd:
    def __repr__(self) -> str:
        return "odd"


def of_mcp(*items: dict[str, Any], **more: object) -> dict[str, Any]:
    return {"content": list(items), "isError": False, **more}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


@pytest.mark.parametrize(
    ("result", "blocks"),
    [
        ("text", [TextBlock("text")]),
        ({"result": "text"}, [TextBlock("text")]),
        ({"error": "text"}, [TextBlock("text")]),
        ({"result": "text", "more": 1}, [JsonBlock({"result": "text", "more": 1})]),
        ({"rows": [1]}, [JsonBlock({"rows": [1]})]),
        (["a", "b"], [JsonBlock(["a", "b"])]),
        (None, [JsonBlock(None)]),
        (7, [JsonBlock(7)]),
        (PNG, [IMAGE]),
        (PDF, [DOCUMENT]),
        (Part(text="text"), [TextBlock("text")]),
        (ELSEWHERE, [OpaqueBlock(ELSEWHERE)]),
        (EMPTY, [OpaqueBlock(EMPTY)]),
        (Part(inline_data=Blob(data=DATA)), [MediaBlock(DATA, "application/octet-stream")]),
        ([Part(text="a"), PNG, {"page": 1}], [TextBlock("a"), IMAGE, JsonBlock({"page": 1})]),
        ({"result": ["a", PNG]}, [TextBlock("a"), IMAGE]),
        ({"caption": "a", "image": PNG}, [JsonBlock({"caption": "a"}), IMAGE]),
        ({"image": PNG}, [IMAGE]),
        (
            {"caption": "a", "pages": [PNG, 7, PDF], "last": {"page": PNG}},
            [JsonBlock({"caption": "a", "pages": [7], "last": {}}), IMAGE, DOCUMENT, IMAGE],
        ),
        ([{"caption": "a", "image": PNG}, "b"], [JsonBlock({"caption": "a"}), IMAGE, TextBlock("b")]),
        ({"at": NOON, "of": Row(number=7)}, [JsonBlock({"at": "2026-01-02T12:00:00Z", "of": {"number": 7}})]),
        (Row(number=7), [JsonBlock({"number": 7})]),
        ({"raw": DATA}, [JsonBlock({"raw": ENCODED})]),
        ({"odd": Odd()}, [JsonBlock({"odd": "odd"})]),
    ],
    ids=repr,
)
def test_a_result_becomes_blocks(result: object, blocks: list[Block]) -> None:
    assert list(blocks_of(result)) == blocks


@pytest.mark.parametrize(
    ("result", "blocks"),
    [
        (of_mcp(text("a"), text("b")), [TextBlock("a"), TextBlock("b")]),
        (of_mcp({"type": "image", "data": ENCODED, "mimeType": "image/png"}), [IMAGE]),
        (
            of_mcp({"type": "audio", "data": ENCODED}),
            [MediaBlock(DATA, "application/octet-stream"), JsonBlock([{"type": "audio"}])],
        ),
        (of_mcp(RESOURCE), [TextBlock("a"), JsonBlock([{"type": "resource", "resource": {"uri": "file:///x"}}])]),
        (
            of_mcp({**text("a"), **ABOUT}, text("b")),
            [TextBlock("a"), TextBlock("b"), JsonBlock([{"type": "text", **ABOUT}, {"type": "text"}])],
        ),
        (
            of_mcp({"type": "image", "data": ENCODED, "mimeType": "image/png", **ABOUT}),
            [IMAGE, JsonBlock([{"type": "image", "mimeType": "image/png", **ABOUT}])],
        ),
        (
            of_mcp({"type": "resource", "resource": {"uri": "data:///x", "blob": ENCODED, "mimeType": "image/png"}}),
            [
                MediaBlock(DATA, "image/png", name="x"),
                JsonBlock([{"type": "resource", "resource": {"uri": "data:///x", "mimeType": "image/png"}}]),
            ],
        ),
        (
            of_mcp({"type": "image", "data": "no base64!", **ABOUT}),
            [JsonBlock({"type": "image", "data": "no base64!", **ABOUT})],
        ),
        (
            of_mcp({**text("a"), "_meta": {"at": NOON}}),
            [TextBlock("a"), JsonBlock([{"type": "text", "_meta": {"at": "2026-01-02T12:00:00Z"}}])],
        ),
        (of_mcp(LINK), [OpaqueBlock(LINK)]),
        (of_mcp(LONG_LINK), [JsonBlock(LONG_LINK)]),
        (
            of_mcp(text("[1]"), text("[2]"), structuredContent={"result": [[1], [2]]}),
            [TextBlock("[1]"), TextBlock("[2]")],
        ),
        (of_mcp(text('{"a": 1}'), structuredContent={"a": 1}), [TextBlock('{"a": 1}')]),
        (
            of_mcp(text("a"), structuredContent={"b": 1}, _meta={"c": 2}),
            [TextBlock("a"), JsonBlock({"structuredContent": {"b": 1}, "_meta": {"c": 2}})],
        ),
        ({"content": [], "isError": False}, []),
        ({"content": ["a"], "title": "b"}, [JsonBlock({"content": ["a"], "title": "b"})]),
    ],
    ids=repr,
)
def test_a_result_of_an_mcp_server_becomes_blocks(result: object, blocks: list[Block]) -> None:
    assert list(blocks_of(result)) == blocks


@pytest.mark.parametrize(
    "item", [{**text("a"), "url": "b"}, {"type": "paragraph", "body": "a"}, {"type": "x", "resource": "a"}], ids=repr
)
def test_a_document_of_typed_items_becomes_json_and_loses_nothing(item: dict[str, object]) -> None:
    document: dict[str, Any] = {"type": "doc", "content": [item]}
    assert list(blocks_of(document)) == [JsonBlock(document)]
    assert media_tokens(document) is None


@pytest.mark.parametrize(
    ("result", "blocks"),
    [
        ("text", [TextBlock("text")]),
        (["a", PNG, {"b": NOON}], [TextBlock("a"), IMAGE, TextBlock(f'{{"b": "{NOON}"}}')]),
        (["a", "b"], [TextBlock('["a", "b"]')]),
        ({"rows": [1]}, [TextBlock('{"rows": [1]}')]),
        (of_mcp(text("a"), LINK), [TextBlock("a"), OpaqueBlock(LINK)]),
        (of_mcp(PICTURE), [OpaqueBlock(PICTURE)]),
        (of_mcp(RESOURCE), [TextBlock(json.dumps(RESOURCE))]),
        (of_mcp({**text("a"), **ABOUT}), [TextBlock(json.dumps({**text("a"), **ABOUT}))]),
    ],
    ids=repr,
)
def test_the_plain_conversion_makes_text_blocks(result: object, blocks: list[Block]) -> None:
    assert list(plain_blocks_of(result)) == blocks


@pytest.mark.parametrize(
    ("block", "entry"),
    [
        (TextBlock("a"), "a"),
        (JsonBlock({"b": 1}), {"b": 1}),
        (IMAGE, PNG),
        (DOCUMENT, PDF),
        (OpaqueBlock(ELSEWHERE), ELSEWHERE),
    ],
    ids=repr,
)
def test_a_block_becomes_an_entry(block: Block, entry: object) -> None:
    assert result_of([TextBlock("first"), block]) == {"result": ["first", entry]}


@pytest.mark.parametrize(
    ("result", "wrapper"),
    [
        ("a", "result"),
        ({"result": "a"}, "result"),
        ({"error": "a"}, "error"),
        ({"error": "a", "code": 3}, "error"),
        ({"status": "error", "error_message": "a"}, "error"),
        ({**of_mcp(text("a")), "isError": True}, "error"),
        ({"error": None, "rows": ["a"]}, "result"),
    ],
    ids=repr,
)
def test_one_text_block_becomes_a_result_or_an_error_like_the_original(result: object, wrapper: str) -> None:
    assert result_of([TextBlock("text")], result) == {wrapper: "text"}


@pytest.mark.parametrize(
    ("result", "error"),
    [
        ({"error": "a"}, True),
        ({"error": None, "rows": []}, False),
        ({"status": "error", "error_message": "a"}, True),
        ({"status": "success"}, False),
        (of_mcp(text("a")), False),
        ({**of_mcp(text("a")), "isError": True}, True),
        ("error", False),
        (["error"], False),
    ],
    ids=repr,
)
def test_errors_are_recognised_by_convention(result: object, error: bool) -> None:
    assert is_error(result) is error


def itself() -> list[object]:
    holder: list[object] = []
    holder.append(holder)
    return holder


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ("text", "text"),
        ({"a": [1, None, True, 0.5, {"b": "c"}]}, '{"a":[1,null,true,0.5,{"b":"c"}]}'),
        ({"result": "text"}, "text"),
        ([0] * 200, None),
        (["x" * 10_001], None),
        (["half \ud800"], None),
        ({"a": {1}}, None),
        (itself(), None),
        (Row(number=7), None),
        (PNG, None),
    ],
    ids=ascii,
)
def test_only_a_small_plain_result_gets_its_text_without_a_conversion(result: object, words: str | None) -> None:
    assert small_text_of(result) == words


def test_media_from_an_mcp_server_cost_as_much_as_their_base64() -> None:
    image = {"type": "image", "data": "a" * 1_000, "mimeType": "image/png"}

    assert media_tokens(of_mcp(image)) in range(500, 530)
    assert media_tokens(of_mcp(text("b" * 400), image)) in range(600, 630)
    assert media_tokens(of_mcp(text("b" * 400))) is None
    assert media_tokens({"image": PNG}) is None


@pytest.mark.parametrize(
    "result",
    [
        of_mcp({**PICTURE, "_meta": {"a": "b" * 4_000}}),
        of_mcp(PICTURE, {**text("a"), "_meta": {"a": "b" * 4_000}}),
        of_mcp(PICTURE, structuredContent={"a": "b" * 4_000}),
    ],
    ids=["of the image", "of a text", "structured"],
)
def test_text_and_metadata_next_to_media_count_too(result: object) -> None:
    assert (media_tokens(result) or 0) >= 1_000


@pytest.mark.parametrize("odd", [None, NOON], ids=["JSON", "with an object of Python's"])
def test_a_long_list_goes_to_the_encoder_in_pieces(monkeypatch: pytest.MonkeyPatch, odd: object) -> None:
    def noting(value: Any) -> str:  # noqa: ANN401 - any value
        lengths.append(max(map(len, value.values())) if isinstance(value, dict) else len(value))
        return str(dumps(value))

    lengths, dumps, rows = list[int](), json.dumps, [*({"id": number} for number in range(2_500)), {"odd": odd}]
    expected: Any = [*rows[:-1], {"odd": odd and "2026-01-02T12:00:00Z"}]
    monkeypatch.setattr("coatcheck_adk.convert.json.dumps", noting)

    assert blocks_of(rows) == (JsonBlock(expected),)
    assert blocks_of({"status": "ok", "rows": rows}) == (JsonBlock({"status": "ok", "rows": expected}),)
    assert max(lengths) <= 1_000
