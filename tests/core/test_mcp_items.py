"""How each item of an MCP result becomes blocks, and which of its fields are kept next to its content."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck.adapting import McpItem, blocks_of_items, items_of_blocks

DATA = b"some bytes"
ENCODED = base64.b64encode(DATA).decode()
LINK = {"type": "resource_link", "uri": "file:///x", "name": "x"}
PICTURE = {"type": "image", "data": ENCODED, "mimeType": "image/png"}
BLOB = {"uri": "file:///a.pdf", "mimeType": "application/pdf", "blob": ENCODED}


def resource(**held: Any) -> dict[str, Any]:  # noqa: ANN401 - any field
    return {"type": "resource", "resource": held}


@pytest.mark.parametrize(
    ("item", "blocks"),
    [
        ({"type": "text", "text": "a"}, [TextBlock("a")]),
        ({"type": "text", "text": "a", "annotations": None}, [TextBlock("a")]),
        (
            {"type": "text", "text": "a", "_meta": {"b": 1}},
            [TextBlock("a"), JsonBlock([{"type": "text", "_meta": {"b": 1}}])],
        ),
        (resource(uri="file:///a", text="b"), [TextBlock("b"), JsonBlock([resource(uri="file:///a")])]),
        (PICTURE, [MediaBlock(DATA, "image/png")]),
        (resource(**BLOB), [MediaBlock(DATA, "application/pdf", name="a.pdf")]),
        (
            resource(uri="store:///a", blob=ENCODED),
            [MediaBlock(DATA, "application/octet-stream", name="a"), JsonBlock([resource(uri="store:///a")])],
        ),
        ({**PICTURE, "data": "no base64!"}, [JsonBlock({**PICTURE, "data": "no base64!"})]),
        ({**PICTURE, "data": ""}, [OpaqueBlock({**PICTURE, "data": ""})]),
        (LINK, [OpaqueBlock(LINK)]),
        ({"type": "resource", "resource": None}, [OpaqueBlock({"type": "resource", "resource": None})]),
        (7, [OpaqueBlock(7)]),
    ],
    ids=repr,
)
def test_an_item_becomes_its_content_and_a_block_of_its_other_fields(item: object, blocks: list[Block]) -> None:
    assert blocks_of_items([item]) == blocks


def test_one_block_holds_the_other_fields_of_all_understood_items_in_order() -> None:
    items = [{"type": "text", "text": "a"}, LINK, resource(uri="file:///b", text="c")]

    *_, said = blocks_of_items(items)

    assert said == JsonBlock([{"type": "text"}, resource(uri="file:///b")])


@pytest.mark.parametrize(
    ("block", "item"),
    [
        (TextBlock("a"), {"type": "text", "text": "a"}),
        (JsonBlock({"a": 1}), {"type": "text", "text": '{"a": 1}'}),
        (MediaBlock(DATA, "image/png"), PICTURE),
        (MediaBlock(DATA, "application/pdf", name="a.pdf"), resource(**{**BLOB, "uri": "coatcheck:a.pdf"})),
        (OpaqueBlock(LINK), LINK),
    ],
    ids=repr,
)
def test_a_block_becomes_an_item(block: Block, item: object) -> None:
    assert items_of_blocks([block]) == [item]


def test_an_item_that_is_not_understood_is_kept_whole() -> None:
    assert McpItem.parse(LINK) == (None, None, LINK)
