"""Each tool output becomes blocks, and each block becomes a part of an output again."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timezone
from typing import Any

import pytest
from agents import ToolOutputFileContent, ToolOutputImage, ToolOutputText
from pydantic import BaseModel

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck_openai.convert import blocks_of, has_media_as_text, output_of, plain_blocks_of

DATA = b"some bytes"
ENCODED = base64.b64encode(DATA).decode()
PNG, PDF = f"data:image/png;base64,{ENCODED}", f"data:application/pdf;base64,{ENCODED}"
ELSEWHERE = ToolOutputImage(image_url="https://127.0.0.1/x.png")
UPLOADED = {"type": "file", "file_id": "file-1"}
NOON = datetime(2026, 1, 2, 12, tzinfo=timezone.utc)


class Row(BaseModel):
    number: int


@pytest.mark.parametrize(
    ("output", "blocks"),
    [
        ("text", [TextBlock("text")]),
        (ToolOutputText(text="text"), [TextBlock("text")]),
        ({"type": "text", "text": "text"}, [TextBlock("text")]),
        (({"type": "text", "text": "a"}, "b"), [TextBlock("a"), TextBlock("b")]),
        (ToolOutputImage(image_url=PNG), [MediaBlock(DATA, "image/png")]),
        ({"type": "image", "image_url": PNG}, [MediaBlock(DATA, "image/png")]),
        ({"type": "image", "image_url": f"data:;base64,{ENCODED}"}, [MediaBlock(DATA, "image/unknown")]),
        (ToolOutputFileContent(file_data=PDF), [MediaBlock(DATA, "application/pdf")]),
        (
            ToolOutputFileContent(file_data=ENCODED, filename="a.pdf"),
            [MediaBlock(DATA, "application/pdf", name="a.pdf")],
        ),
        ({"type": "file", "file_data": ENCODED}, [MediaBlock(DATA, "application/octet-stream")]),
        (ELSEWHERE, [OpaqueBlock(ELSEWHERE)]),
        (UPLOADED, [OpaqueBlock(UPLOADED)]),
        ([ELSEWHERE, {"rows": [1]}], [OpaqueBlock(ELSEWHERE), JsonBlock({"rows": [1]})]),
        ({"rows": [1]}, [JsonBlock({"rows": [1]})]),
        ([{"rows": [1]}, "text"], [JsonBlock([{"rows": [1]}, "text"])]),
        ({"type": "text", "text": 7}, [JsonBlock({"type": "text", "text": 7})]),
        ({"type": "image"}, [JsonBlock({"type": "image"})]),
        ({"at": NOON}, [TextBlock(str({"at": NOON}))]),
        (Row(number=7), [TextBlock("number=7")]),
        (None, [TextBlock("None")]),
        (7, [TextBlock("7")]),
    ],
    ids=repr,
)
def test_an_output_becomes_blocks(output: object, blocks: list[Block]) -> None:
    assert list(blocks_of(output)) == blocks


@pytest.mark.parametrize(
    ("output", "blocks"),
    [
        ("text", [TextBlock("text")]),
        ([ToolOutputText(text="a"), ELSEWHERE, 7], [TextBlock("a"), OpaqueBlock(ELSEWHERE), TextBlock("7")]),
        ([{"rows": [1]}], [TextBlock("[{'rows': [1]}]")]),
        (Row(number=7), [TextBlock("number=7")]),
    ],
    ids=repr,
)
def test_the_plain_conversion_makes_text_blocks(output: object, blocks: list[Block]) -> None:
    assert list(plain_blocks_of(output)) == blocks


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (TextBlock("a"), ToolOutputText(text="a")),
        (JsonBlock({"größe": 1}), ToolOutputText(text='{"größe": 1}')),
        (MediaBlock(DATA, "image/png"), ToolOutputImage(image_url=PNG)),
        (
            MediaBlock(DATA, "application/pdf", name="a.pdf"),
            ToolOutputFileContent(file_data=PDF, filename="a.pdf"),
        ),
        (OpaqueBlock(UPLOADED), UPLOADED),
    ],
    ids=repr,
)
def test_a_block_becomes_a_part(block: Block, part: Any) -> None:  # noqa: ANN401 - as the SDK has it
    assert output_of([TextBlock("first"), block])[1] == part


def test_one_text_block_becomes_a_str() -> None:
    assert output_of([TextBlock("text")]) == "text"


def test_a_list_without_media_is_not_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ToolOutputText, "model_validate", None)

    assert not has_media_as_text([{"type": "text", "text": "a"}, {"rows": 1}, "b"])


def test_a_long_list_goes_to_the_encoder_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    def noting(value: list[object]) -> str:
        lengths.append(len(value))
        return str(dumps(value))

    lengths, dumps, rows = list[int](), json.dumps, [{"id": number} for number in range(2_500)]
    monkeypatch.setattr("coatcheck_openai.convert.json.dumps", noting)

    assert blocks_of(rows) == (JsonBlock(rows),)
    assert sum(lengths) == len(rows)
    assert max(lengths) <= 1_000


def test_a_list_is_json_only_if_all_its_rows_are() -> None:
    rows = [*range(2_500), {"a set"}]

    assert blocks_of(rows) == (TextBlock(str(rows)),)
