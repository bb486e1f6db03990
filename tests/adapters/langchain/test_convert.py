"""Content of tool messages to blocks and back: every shape that LangChain and its providers know, and more."""

# ruff: noqa: ANN401 - what frameworks and users pass is of any type

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, ToolMessage

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck.adapting import MARK, settle
from coatcheck_langchain import offloaded_references
from coatcheck_langchain.convert import blocks_of, content_of
from coatcheck_langchain.hook import Hook, ToolMessages, logger
from coatcheck_langchain.messages import Calls
from tests.adapters.langchain.samples import LONG, OPENING, PNG, PNG_TEXT, make_offloader, text_of

PDF = b"%PDF-1.7 " * 40
PDF_TEXT = base64.b64encode(PDF).decode("ascii")
DATA_URL = f"data:image/png;base64,{PNG_TEXT}"
PDF_URL = f"data:application/pdf;base64,{PDF_TEXT}"

TEXTS = {
    "text": {"type": "text", "text": "words"},
    "text with annotations": {"type": "text", "text": "words", "annotations": [{"type": "citation"}], "id": "b1"},
    "text with a cache mark": {"type": "text", "text": "words", "cache_control": {"type": "ephemeral"}},
    "plain text": {"type": "text-plain", "text": "words", "mime_type": "text/plain", "title": "t"},
    "OpenAI responses": {"type": "input_text", "text": "words"},
    "OpenAI custom tool": {"type": "custom_tool_call_output", "output": "words"},
    "Anthropic text document": {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "words"},
    },
}

MEDIA: dict[str, tuple[dict[str, Any], MediaBlock]] = {
    "image": ({"type": "image", "base64": PNG_TEXT, "mime_type": "image/png"}, MediaBlock(PNG, "image/png")),
    "audio": ({"type": "audio", "base64": PNG_TEXT, "mime_type": "audio/wav"}, MediaBlock(PNG, "audio/wav")),
    "video": ({"type": "video", "base64": PNG_TEXT, "mime_type": "video/mp4"}, MediaBlock(PNG, "video/mp4")),
    "file": (
        {"type": "file", "base64": PDF_TEXT, "mime_type": "application/pdf", "filename": "report.pdf"},
        MediaBlock(PDF, "application/pdf", name="report.pdf"),
    ),
    "plain text as base64": (
        {"type": "text-plain", "base64": PDF_TEXT, "mime_type": "text/plain"},
        MediaBlock(PDF, "text/plain"),
    ),
    "image without a type": ({"type": "image", "base64": PNG_TEXT}, MediaBlock(PNG, "image/unknown")),
    "file without a type": ({"type": "file", "base64": PDF_TEXT}, MediaBlock(PDF, "application/octet-stream")),
    "image as data URL": ({"type": "image", "url": DATA_URL}, MediaBlock(PNG, "image/png")),
    "standard blocks before 1.0": (
        {"type": "image", "source_type": "base64", "data": PNG_TEXT, "mime_type": "image/png"},
        MediaBlock(PNG, "image/png"),
    ),
    "OpenAI image_url": ({"type": "image_url", "image_url": {"url": DATA_URL}}, MediaBlock(PNG, "image/png")),
    "OpenAI image_url, short": ({"type": "image_url", "image_url": DATA_URL}, MediaBlock(PNG, "image/png")),
    "OpenAI input_image": ({"type": "input_image", "image_url": DATA_URL}, MediaBlock(PNG, "image/png")),
    "OpenAI file": (
        {"type": "file", "file": {"file_data": PDF_URL, "filename": "a.pdf"}},
        MediaBlock(PDF, "application/pdf", name="a.pdf"),
    ),
    "OpenAI input_file": (
        {"type": "input_file", "file_data": PDF_URL, "filename": "a.pdf"},
        MediaBlock(PDF, "application/pdf", name="a.pdf"),
    ),
    "OpenAI audio": (
        {"type": "input_audio", "input_audio": {"data": PNG_TEXT, "format": "wav"}},
        MediaBlock(PNG, "audio/wav"),
    ),
    "Anthropic image": (
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG_TEXT}},
        MediaBlock(PNG, "image/png"),
    ),
    "Anthropic document": (
        {
            "type": "document",
            "title": "a.pdf",
            "source": {"type": "base64", "media_type": "application/pdf", "data": PDF_TEXT},
        },
        MediaBlock(PDF, "application/pdf", name="a.pdf"),
    ),
    "Google media": (
        {"type": "media", "data": PDF_TEXT, "mime_type": "application/pdf"},
        MediaBlock(PDF, "application/pdf"),
    ),
}

OPAQUE: dict[str, Any] = {
    "URL": {"type": "image", "url": "https://example.com/a.png"},
    "image_url": {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    "file id": {"type": "file", "file_id": "file-1"},
    "Anthropic URL": {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
    "Anthropic file id": {"type": "document", "source": {"type": "file", "file_id": "file-1"}},
    "non-standard": {"type": "non_standard", "value": {"type": "thing", "data": "x"}},
    "search result": {"type": "search_result", "title": "t", "source": "s", "content": [{"type": "text", "text": "x"}]},
    "malformed base64": {"type": "image", "base64": "not base64!", "mime_type": "image/png"},
    "base64 cut short": {"type": "image", "base64": PNG_TEXT[:-3], "mime_type": "image/png"},
    "base64 beyond ASCII": {"type": "image", "base64": "é" * 8, "mime_type": "image/png"},
    "empty base64": {"type": "image", "base64": "", "mime_type": "image/png"},
    "data URL without base64": {"type": "image_url", "image_url": {"url": "data:image/svg+xml,<svg/>"}},
    "malformed data URL": {"type": "image_url", "image_url": {"url": "data:image/png;base64"}},
    "text that is none": {"type": "text", "text": None},
    "json without a value": {"type": "json"},
    "no type": {"text": "words"},
    "unknown type": {"type": "hologram", "beams": 7},
    "type that is no text": {"type": ["text"], "text": "words"},
    "empty": {},
}


def test_a_str_is_one_block() -> None:
    assert blocks_of("words") == (TextBlock("words"),)


def test_an_empty_list_has_no_blocks() -> None:
    assert blocks_of([]) == ()


@pytest.mark.parametrize("native", TEXTS.values(), ids=TEXTS.keys())
def test_a_block_of_text_becomes_a_text_block(native: dict[str, Any]) -> None:
    assert blocks_of([native]) == (TextBlock("words"),)


@pytest.mark.parametrize(("native", "block"), MEDIA.values(), ids=MEDIA.keys())
def test_inline_media_are_decoded(native: dict[str, Any], block: MediaBlock) -> None:
    assert blocks_of([native]) == (block,)


def test_json_becomes_a_value() -> None:
    assert blocks_of([{"type": "json", "json": {"a": [1, None]}}]) == (JsonBlock({"a": [1, None]}),)


@pytest.mark.parametrize("native", OPAQUE.values(), ids=OPAQUE.keys())
def test_any_other_content_stays_the_very_same_object(native: Any) -> None:
    (block,) = blocks_of([native])

    assert isinstance(block, OpaqueBlock)
    assert block.native is native


BIG = bytes(range(256)) * 9_000
"""More than two pieces of base64."""


@pytest.mark.parametrize("data", [BIG, BIG + b"x", BIG + b"xy"], ids=["no padding", "two", "one"])
def test_a_large_medium_is_decoded_exactly_and_encoded_again(data: bytes) -> None:
    native = {"type": "image", "base64": base64.b64encode(data).decode("ascii"), "mime_type": "image/png"}

    (block,) = blocks_of([native])

    assert block == MediaBlock(data, "image/png")
    assert content_of([block]) == [native]


def test_base64_with_line_breaks_is_read_and_written_back_without_them() -> None:
    native = {"type": "image", "base64": f"{PNG_TEXT[:8]}\n{PNG_TEXT[8:]}", "mime_type": "image/png"}

    assert blocks_of([native]) == (MediaBlock(PNG, "image/png"),)
    assert content_of(blocks_of([native])) == [{**native, "base64": PNG_TEXT}]


@pytest.mark.parametrize("place", [4, 3 * 2**18, 6 * 2**18])
def test_padding_within_a_large_medium_is_malformed(place: int) -> None:
    encoded = base64.b64encode(BIG).decode("ascii")

    (block,) = blocks_of([{"type": "image", "base64": f"{encoded[: place - 2]}=={encoded[place:]}"}])

    assert isinstance(block, OpaqueBlock)


def test_blocks_keep_their_order() -> None:
    opaque = OPAQUE["URL"]

    blocks = blocks_of(["a", opaque, MEDIA["image"][0], {"type": "text", "text": "b"}])

    assert [type(block) for block in blocks] == [TextBlock, OpaqueBlock, MediaBlock, TextBlock]


@pytest.mark.parametrize(
    "block",
    [
        TextBlock("words"),
        JsonBlock({"a": [1, 2.5, "x"]}),
        MediaBlock(PNG, "image/png"),
        MediaBlock(PNG, "audio/wav"),
        MediaBlock(PDF, "application/pdf", name="a.pdf"),
        OpaqueBlock(OPAQUE["URL"]),
    ],
    ids=["text", "json", "image", "audio", "file", "opaque"],
)
def test_a_block_survives_the_round_trip(block: Block) -> None:
    assert blocks_of(content_of([block])) == (block,)


def message_of(content: Any, **fields: Any) -> ToolMessage:
    return ToolMessage(content=content, tool_call_id="call-1", name="search", **fields)


def offloaded(message: ToolMessage) -> ToolMessage:
    hook = Hook(offloader=make_offloader(), scope=None, keep_artifact=True)
    new = settle(ToolMessages(raw=message, hook=hook, find_calls=Calls), logger=logger)
    assert isinstance(new, ToolMessage)
    return new


@pytest.mark.parametrize(
    "content",
    [LONG, [{"type": "text", "text": LONG}], [LONG], [LONG[:50_000], {"type": "text", "text": LONG[50_000:]}]],
    ids=["text", "one block", "bare text in a list", "two blocks"],
)
def test_a_result_of_text_alone_becomes_one_str(content: Any) -> None:
    new = offloaded(message_of(content))

    assert isinstance(new.content, str)
    assert new.content.startswith(OPENING)


def test_media_leave_a_placeholder_and_unknown_blocks_stay_the_same_objects() -> None:
    message = message_of([{"type": "text", "text": LONG}, MEDIA["image"][0], OPAQUE["URL"]])

    new = offloaded(message)

    assert isinstance(new.content, list)
    notice, mark, passed = new.content
    assert isinstance(notice, dict)
    assert notice["text"].startswith(OPENING)
    assert isinstance(mark, dict)
    assert mark["text"].startswith("[image: png, ")
    assert passed is message.content[2]
    assert PNG_TEXT not in str(new.content)


def test_the_answer_of_an_openai_custom_tool_keeps_its_block() -> None:
    new = offloaded(message_of([{"type": "custom_tool_call_output", "output": LONG}]))

    assert isinstance(new.content, list)
    (block,) = new.content
    assert isinstance(block, dict)
    assert block["type"] == "custom_tool_call_output"
    assert block["output"].startswith(OPENING)


def test_only_the_content_and_one_key_change() -> None:
    fields: dict[str, Any] = {
        "artifact": {"rows": [1, 2]},
        "id": "message-1",
        "status": "success",
        "response_metadata": {"took": 3},
        "additional_kwargs": {"theirs": True},
    }
    message = message_of(LONG, **fields)
    before = message.model_copy(deep=True)

    new = offloaded(message)

    assert message == before
    assert message.additional_kwargs == {"theirs": True}
    assert new.artifact is message.artifact
    assert new.additional_kwargs["theirs"] is True
    assert new.model_dump(exclude={"content", "additional_kwargs"}) == message.model_dump(
        exclude={"content", "additional_kwargs"}
    )


def test_a_message_lists_its_references_for_user_interfaces() -> None:
    new = offloaded(message_of(LONG))

    (reference,) = offloaded_references(new)
    assert reference in text_of(new)
    assert new.additional_kwargs[MARK] == {"references": [reference]}


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": f"row {number}"} for number in range(20_000)],
        [{"type": "image", "base64": PNG_TEXT, "mime_type": f"image/png{number}"} for number in range(300)],
    ],
    ids=["texts", "images"],
)
def test_the_mark_of_many_blocks_is_short(content: Any) -> None:
    new = offloaded(message_of(content))

    (reference,) = offloaded_references(new)
    assert reference in text_of(new)
    assert len(json.dumps(new.additional_kwargs)) < 2_000


@pytest.mark.parametrize("mark", [None, "text", {}, {"references": None}, {"references": "text"}, {"references": 3}])
def test_a_mark_of_another_form_has_no_references(mark: Any) -> None:
    assert offloaded_references(message_of("x", additional_kwargs={MARK: mark})) == ()


def test_other_messages_have_no_references() -> None:
    assert offloaded_references(HumanMessage("x")) == ()
