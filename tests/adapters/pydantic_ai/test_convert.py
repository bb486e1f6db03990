"""Each value that a tool returns becomes blocks, and each block becomes part of a result again."""

# ruff: noqa: ANN401 - a tool may return anything

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import BinaryContent, CachePoint, ImageUrl, ToolReturn
from pydantic_ai.messages import TextContent, ToolReturnPart

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck_pydantic_ai.convert import blocks_of, plain_blocks_of, result_of

DATA = b"some bytes"
PNG = BinaryContent(DATA, media_type="image/png")
IMAGE = MediaBlock(DATA, "image/png")
ELSEWHERE = ImageUrl("https://127.0.0.1/x.png")
POINT = CachePoint()
NOON = datetime(2026, 1, 2, 12, tzinfo=timezone.utc)


class Row(BaseModel):
    number: int
    kind: str = "row"


@dataclass
class Point:
    x: int


VALUES: list[tuple[object, list[Block]]] = [
    ("text", [TextBlock("text")]),
    ({"rows": [1]}, [JsonBlock({"rows": [1]})]),
    ([{"rows": [1]}, "text"], [JsonBlock([{"rows": [1]}, "text"])]),
    ([], [JsonBlock([])]),
    (7, [JsonBlock(7)]),
    (None, [JsonBlock(None)]),
    (Row(number=7), [JsonBlock({"number": 7, "kind": "row"})]),
    ([Row(number=7)], [JsonBlock([{"number": 7, "kind": "row"}])]),
    (Point(7), [JsonBlock({"x": 7})]),
    ({"at": NOON}, [JsonBlock({"at": "2026-01-02T12:00:00Z"})]),
    (NOON, [TextBlock("2026-01-02T12:00:00Z")]),
    (PNG, [IMAGE]),
    (ELSEWHERE, [OpaqueBlock(ELSEWHERE)]),
    (["a", PNG, {"rows": [1]}, ELSEWHERE], [TextBlock("a"), IMAGE, JsonBlock({"rows": [1]}), OpaqueBlock(ELSEWHERE)]),
    (ToolReturn(return_value="a"), [TextBlock("a")]),
    (ToolReturn(return_value={"rows": [1]}, content="b"), [JsonBlock({"rows": [1]}), TextBlock("b")]),
    (
        ToolReturn(return_value="a", content=["b", TextContent(content="c"), POINT, PNG, ELSEWHERE]),
        [TextBlock("a"), TextBlock("b"), TextBlock("c"), OpaqueBlock(POINT), IMAGE, OpaqueBlock(ELSEWHERE)],
    ),
]


@pytest.mark.parametrize(("value", "blocks"), VALUES, ids=repr)
def test_a_value_becomes_blocks(value: object, blocks: list[Block]) -> None:
    assert list(blocks_of(value)) == blocks


@pytest.mark.parametrize(
    "value", [value for value, blocks in VALUES if len(blocks) == 1 and isinstance(blocks[0], JsonBlock)], ids=repr
)
def test_a_json_block_holds_what_the_model_would_get(value: Any) -> None:
    def seen(content: Any) -> str:
        return ToolReturnPart(tool_name="fetch", content=content, tool_call_id="1").model_response_str()

    (block,) = blocks_of(value)

    assert isinstance(block, JsonBlock)
    assert seen(block.value) == seen(value)


@pytest.mark.parametrize(
    ("value", "blocks"),
    [
        ("text", [TextBlock("text")]),
        ([{"rows": [1]}, PNG], [TextBlock('{"rows":[1]}'), OpaqueBlock(PNG)]),
        (Row(number=7), [TextBlock('{"number":7,"kind":"row"}')]),
        (
            ToolReturn(return_value=7, content=[TextContent(content="c"), POINT]),
            [TextBlock("7"), TextBlock("c"), OpaqueBlock(POINT)],
        ),
    ],
    ids=repr,
)
def test_the_plain_conversion_makes_text_blocks(value: object, blocks: list[Block]) -> None:
    assert list(plain_blocks_of(value)) == blocks


@pytest.mark.parametrize(
    ("blocks", "result"),
    [
        ([TextBlock("a")], "a"),
        ([TextBlock("a"), JsonBlock({"größe": 1})], 'a\n{"größe": 1}'),
        ([TextBlock("a"), OpaqueBlock(ELSEWHERE)], ToolReturn(return_value="a", content=[ELSEWHERE])),
        ([IMAGE, TextBlock("a")], ToolReturn(return_value="a", content=[PNG])),
    ],
    ids=repr,
)
def test_blocks_become_a_result(blocks: list[Block], result: object) -> None:
    assert result_of(blocks, "raw") == result


def test_a_file_that_stays_is_the_very_same_object() -> None:
    detailed = BinaryContent(DATA, media_type="image/png", identifier="scan-7", vendor_metadata={"detail": "high"})
    came = [BinaryContent(bytes(bytearray(DATA)), media_type="image/jpeg"), detailed]

    result = result_of([TextBlock("a"), blocks_of(came)[1]], came)

    assert result.content[0] is detailed


def test_the_metadata_of_a_result_stays() -> None:
    raw = ToolReturn(return_value="long", content=["longer"], metadata={"rows": 7})

    assert result_of([TextBlock("a")], raw) == ToolReturn(return_value="a", metadata={"rows": 7})
    assert raw.content == ["longer"]
