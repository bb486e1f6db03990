"""Each tool result becomes blocks, and each block becomes content again."""

from __future__ import annotations

import base64
from datetime import datetime, timezone
from typing import Any

import pytest
from agent_framework import Content

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck_agent_framework.convert import blocks_of, contents_of, plain_blocks_of

DATA = b"some bytes"
PNG = f"data:image/png;base64,{base64.b64encode(DATA).decode()}"
ELSEWHERE = Content.from_uri("https://127.0.0.1/x.png", media_type="image/png")
UPLOADED = Content.from_hosted_file("file-1")
MALFORMED = Content("data", uri="data:image/png;base64,?", media_type="image/png")
COMMAND = Content.from_shell_command_output(stdout="out", stderr="err", exit_code=3, timed_out=False)
NOON = datetime(2026, 1, 2, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("result", "blocks"),
    [
        ([Content.from_text("a"), Content.from_text("")], [TextBlock("a"), TextBlock("")]),
        ([Content.from_data(DATA, "image/png")], [MediaBlock(DATA, "image/png")]),
        ([Content("data", uri=PNG)], [MediaBlock(DATA, "image/png")]),
        (Content("data", uri=PNG), [MediaBlock(DATA, "image/png")]),
        (
            [Content.from_data(DATA, "application/pdf", additional_properties={"filename": "a.pdf"})],
            [MediaBlock(DATA, "application/pdf", name="a.pdf")],
        ),
        ([ELSEWHERE, UPLOADED, MALFORMED], [OpaqueBlock(ELSEWHERE), OpaqueBlock(UPLOADED), OpaqueBlock(MALFORMED)]),
        ([COMMAND], [JsonBlock({"stdout": "out", "stderr": "err", "exit_code": 3, "timed_out": False})]),
        (COMMAND, [JsonBlock({"stdout": "out", "stderr": "err", "exit_code": 3, "timed_out": False})]),
        ("text", [TextBlock("text")]),
        ({"at": NOON}, [TextBlock('{"at": "2026-01-02 12:00:00+00:00"}')]),
        ([{"rows": 1}], [TextBlock("[{'rows': 1}]")]),
        (7, [TextBlock("7")]),
        (None, [TextBlock("")]),
    ],
    ids=[
        "texts",
        "image",
        "image by its URL",
        "image alone",
        "document",
        "unknown",
        "output of a command",
        "output of a command alone",
        "str",
        "dict",
        "list",
        "int",
        "None",
    ],
)
def test_a_result_becomes_blocks(result: object, blocks: list[Block]) -> None:
    assert list(blocks_of(result)) == blocks


def test_the_plain_conversion_makes_text_blocks() -> None:
    assert list(plain_blocks_of([Content.from_text("a"), ELSEWHERE])) == [TextBlock("a"), OpaqueBlock(ELSEWHERE)]
    assert list(plain_blocks_of({"rows": 1})) == [TextBlock('{"rows": 1}')]


@pytest.mark.parametrize(
    ("block", "content"),
    [
        (TextBlock("a"), Content.from_text("a")),
        (JsonBlock({"größe": 1}), Content.from_text('{"größe": 1}')),
        (MediaBlock(DATA, "image/png"), Content.from_data(DATA, "image/png")),
        (
            MediaBlock(DATA, "application/pdf", name="a.pdf"),
            Content.from_data(DATA, "application/pdf", additional_properties={"filename": "a.pdf"}),
        ),
    ],
    ids=["text", "JSON", "image", "document"],
)
def test_a_block_becomes_content(block: Block, content: Content) -> None:
    assert contents_of([block])[0].to_dict() == content.to_dict()


def test_an_opaque_block_becomes_the_very_same_object() -> None:
    assert contents_of([OpaqueBlock(UPLOADED)])[0] is UPLOADED


def test_text_keeps_the_properties_that_all_items_share() -> None:
    def item(**properties: Any) -> Content:  # noqa: ANN401 - any property
        return Content.from_text("a", additional_properties=properties)

    result = [item(trust="none", place="x"), item(trust="none", place="y"), item(trust="none")]

    assert contents_of([TextBlock("b")], like=result)[0].additional_properties == {"trust": "none"}
    assert contents_of([TextBlock("b")], like={"rows": 1})[0].additional_properties == {}


ENDED = {"exit_code": 3, "truncated": False, "timed_out": False}
"""What the framework's shell tools return next to the text, apart from the command's output."""


@pytest.mark.parametrize(
    "item",
    [
        Content.from_text("out err", additional_properties={"stdout": "out", "stderr": "err", **ENDED}),
        Content.from_shell_command_output(stdout="out", stderr="err", exit_code=3),
    ],
    ids=["text", "output"],
)
def test_the_output_of_a_command_is_replaced_wherever_a_client_may_look(item: Content) -> None:
    (shown,) = contents_of([TextBlock("a placeholder")], like=[item])

    assert shown.text == "a placeholder"
    assert shown.additional_properties == {"stdout": "a placeholder", "stderr": "", **ENDED}


def test_the_output_of_several_commands_is_replaced_in_the_properties_that_they_share() -> None:
    outputs = [Content.from_shell_command_output(stdout=out, stderr="err", exit_code=3) for out in ("one", "two")]

    (shown,) = contents_of([TextBlock("a placeholder")], like=outputs)

    assert shown.additional_properties == {"stdout": "a placeholder", "stderr": "", **ENDED}
