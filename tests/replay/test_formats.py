"""The formats of recordings: each reads as the same conversation, and nothing else is mistaken for one."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coatcheck.core.blocks import JsonBlock, MediaBlock, OpaqueBlock, TextBlock, ToolResult
from coatcheck.replay.conversation import Call, Result, Turn, Words, blocks_of
from coatcheck.replay.formats import FORMATS, Misfit, read_messages
from tests.replay.samples import (
    ANSWER,
    ARGUMENTS,
    QUESTION,
    RECORDERS,
    TOOL,
    anthropic,
    haystack,
    langchain,
    openai,
    responses,
    strands,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from coatcheck.core.blocks import Block

PICTURE = base64.b64encode(b"picture").decode()


def result_in(messages: list[dict[str, Any]]) -> Result:
    _, parts = read_messages(messages)
    return next(part for part in parts if isinstance(part, Result))


def test_every_format_has_a_sample() -> None:
    assert set(RECORDERS) == set(FORMATS)


@pytest.mark.parametrize(
    ("name", "record"), [(name, record) for name, records in RECORDERS.items() for record in records]
)
def test_the_same_conversation_reads_the_same_in_every_format(name: str, record: Callable[[str], Any]) -> None:
    recorded_as, parts = read_messages(record("found it"))

    assert recorded_as == name
    assert parts == (
        Words((TextBlock(QUESTION),)),
        Turn((), (Call(TOOL, json.dumps(ARGUMENTS)),)),
        Result(ToolResult(blocks=(TextBlock("found it"),), tool_name=TOOL)),
        Turn((TextBlock(ANSWER),)),
    )


@pytest.mark.parametrize(
    ("content", "block"),
    [
        ([{"type": "weird", "x": 1}], OpaqueBlock({"type": "weird", "x": 1})),
        ([{"type": "text", "text": "found"}], TextBlock("found")),
        ({"found": [1, 2]}, JsonBlock({"found": [1, 2]})),
        ({"type": "text", "text": "found"}, TextBlock("found")),
    ],
)
def test_a_result_may_hold_content_of_no_known_format(content: object, block: Block) -> None:
    *call, result, answer = openai("x")

    assert result_in([*call, {**result, "content": content}, answer]).result.blocks == (block,)


@pytest.mark.parametrize(
    "messages",
    [
        anthropic("no", is_error=True),
        langchain("no", status="error"),
        strands("no", status="error"),
        haystack("no", error=True),
    ],
)
def test_results_marked_as_errors_are_errors(messages: list[dict[str, Any]]) -> None:
    assert result_in(messages).result.is_error


@pytest.mark.parametrize(
    "messages",
    [
        langchain("short", additional_kwargs={"coatcheck": {"references": []}}),
        strands("short", coatcheck={"references": []}),
        haystack("short", meta={"tool_result_offloaded": []}),
    ],
)
def test_results_marked_as_offloaded_count_as_offloaded(messages: list[dict[str, Any]]) -> None:
    assert result_in(messages).offloaded


@pytest.mark.parametrize(
    ("native", "media_type"),
    [
        ({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}, "image/png"),
        ({"type": "input_image", "image_url": f"data:image/gif;base64,{PICTURE}"}, "image/gif"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": PICTURE}}, "image/jpeg"),
        ({"type": "image", "base64": PICTURE, "mime_type": "image/webp"}, "image/webp"),
        ({"type": "file", "file": {"file_data": f"data:application/pdf;base64,{PICTURE}"}}, "application/pdf"),
        ({"type": "input_audio", "input_audio": {"data": PICTURE, "format": "wav"}}, "audio/wav"),
        (
            {"image": {"format": "png", "source": {"bytes": {"__bytes_encoded__": True, "data": PICTURE}}}},
            "image/png",
        ),
        ({"document": {"name": "d", "source": {"bytes": {"data": PICTURE}}}}, "application/unknown"),
        ({"image": {"base64_image": PICTURE, "mime_type": "image/png", "meta": {}}}, "image/png"),
        ({"file": {"base64_data": PICTURE, "mime_type": "application/pdf"}}, "application/pdf"),
    ],
)
def test_media_are_recognised_in_every_shape(native: dict[str, Any], media_type: str) -> None:
    assert blocks_of([native]) == (MediaBlock(b"picture", media_type),)


@pytest.mark.parametrize(
    ("content", "blocks"),
    [
        (None, ()),
        ("", ()),
        ("text", (TextBlock("text"),)),
        (["text", {"type": "text", "text": "more"}], (TextBlock("text"), TextBlock("more"))),
        ([{"type": "thinking", "thinking": "hm", "signature": "x"}], (TextBlock("hm"),)),
        ([{"reasoning": {"reasoning_text": "hm", "extra": {}}}], (TextBlock("hm"),)),
        ([{"type": "document", "source": {"type": "text", "data": "long"}}], (TextBlock("long"),)),
        ([{"json": {"a": 1}}, 7], (JsonBlock({"a": 1}), JsonBlock(7))),
        ({"rows": [1]}, (JsonBlock({"rows": [1]}),)),
        ([{"rows": [1]}], (OpaqueBlock({"rows": [1]}),)),
        (
            [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}],
            (MediaBlock(b"", "image/unknown"),),
        ),
    ],
)
def test_content_becomes_blocks(content: object, blocks: tuple[Any, ...]) -> None:
    assert blocks_of(content) == blocks


def test_older_and_custom_openai_calls_are_calls() -> None:
    messages = [
        {"role": "developer", "content": "be brief"},
        {"role": "assistant", "content": None, "function_call": {"name": "old", "arguments": "{}"}},
        {"role": "function", "name": "old", "content": "1"},
        {"role": "assistant", "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "new", "input": "x"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "2"},
    ]

    _, parts = read_messages(messages)

    assert [part.result.tool_name for part in parts if isinstance(part, Result)] == ["old", "new"]
    assert [part.blocks for part in parts if isinstance(part, Turn)] == [(TextBlock("old{}"),), (TextBlock("newx"),)]


def test_consecutive_items_from_the_model_are_one_turn() -> None:
    question, call, result, answer = responses("x")
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
    said = {"role": "assistant", "content": [{"type": "output_text", "text": "so"}]}
    other = {"type": "custom_tool_call", "call_id": "c2", "name": "exec", "input": "ls"}
    listed = {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "a.txt"}]}

    _, parts = read_messages([question, thought, said, call, other, result, listed, answer])

    assert parts[1] == Turn((TextBlock("hm"), TextBlock("so")), (Call(TOOL, json.dumps(ARGUMENTS)), Call("exec", "ls")))
    assert parts[2:] == (
        Result(ToolResult(blocks=(TextBlock("x"),), tool_name=TOOL)),
        Result(ToolResult(blocks=(TextBlock("a.txt"),), tool_name="exec")),
        Turn((TextBlock(ANSWER),)),
    )


def test_a_tool_that_the_provider_ran_is_a_call_with_its_whole_item() -> None:
    ran = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "umbrella"}}
    tools = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "a", "tools": []}

    _, parts = read_messages([{"role": "user", "content": QUESTION}, tools, ran, responses("x")[-1]])

    assert parts[1:] == (
        Words((OpaqueBlock(tools),)),
        Turn((TextBlock(ANSWER),), (Call("web_search", json.dumps(ran)),)),
    )


@pytest.mark.parametrize(
    "item",
    [
        {"type": "tool_search_output", "call_id": "c9", "execution": "client", "tools": [{"name": "get_weather"}]},
        {"type": "additional_tools", "role": "developer", "tools": [{"name": "get_time"}]},
        {"type": "configuration_update", "reasoning": {"effort": "high"}},
    ],
)
def test_an_item_that_adds_tools_or_settings_counts_as_words_to_the_model(item: dict[str, object]) -> None:
    sought = {"type": "tool_search_call", "call_id": "c9", "execution": "client", "arguments": {"goal": "weather"}}

    name, parts = read_messages([{"role": "user", "content": QUESTION}, sought, item, *responses("x")[1:]])

    assert name == "OpenAI Responses items"
    assert parts[2] == Words((OpaqueBlock(item),))
    assert result_in(responses("x")) in parts


def test_a_result_whose_call_is_missing_has_no_tool_name() -> None:
    assert result_in(openai("x")[2:]).result.tool_name == "(unnamed tool)"


def test_calls_that_langchain_repeats_in_content_count_once() -> None:
    messages = langchain("x")
    messages[1]["content"] = [{"type": "text", "text": "so"}, {"type": "tool_use", "id": "c1", "name": TOOL}]

    _, parts = read_messages(messages)

    assert parts[1] == Turn((TextBlock("so"),), (Call(TOOL, json.dumps(ARGUMENTS)),))


def test_text_next_to_results_is_from_the_user() -> None:
    for messages in (anthropic("x"), strands("x")):
        messages[2]["content"].append(
            {"type": "text", "text": "go on"} if "type" in messages[2]["content"][0] else {"text": "go on"}
        )

        _, parts = read_messages(messages)

        assert parts[3] == Words((TextBlock("go on"),))


@pytest.mark.parametrize(
    ("messages", "recorded_as", "position", "reason"),
    [
        ([*openai("x"), {"role": "robot", "content": "x"}], "OpenAI messages", 4, "'robot'"),
        ([*openai("x"), {"role": "tool"}], "OpenAI messages", 4, "has the role 'tool' and no content"),
        ([{"role": "user", "parts": [{"text": "x"}]}], "OpenAI messages", 0, "has the role 'user' and no content"),
        ([*openai("x"), 7], "OpenAI messages", 4, "is a number, not an object"),
        (
            [*openai("x")[:1], {"role": "assistant", "tool_calls": [{"id": "1"}]}],
            "OpenAI messages",
            1,
            "without the name",
        ),
        ([*openai("x")[:1], {"role": "assistant", "tool_calls": "no"}], "OpenAI messages", 1, "no list of objects"),
        ([*openai("x"), {"role": "user", "content": [{"type": "tool_result"}]}], "OpenAI messages", 4, "'tool_result'"),
        ([*anthropic("x"), {"role": "tool", "content": ""}], "Anthropic messages", 4, "the role 'tool'"),
        ([*anthropic("x"), {"role": "user", "content": [{"text": ""}]}], "Anthropic messages", 4, "without a type"),
        ([*anthropic("x"), openai("x")[1]], "Anthropic messages", 4, "tool_calls next to"),
        ([*langchain("x"), {"type": "remove", "content": ""}], "LangChain messages", 4, "of type 'remove'"),
        ([*langchain("x"), {"content": ""}], "LangChain messages", 4, "is neither"),
        ([*langchain("x"), {"type": "ai", "data": None}], "LangChain messages", 4, "is neither"),
        (
            [*langchain("x"), {"type": "ai", "content": "", "tool_calls": [{}]}],
            "LangChain messages",
            4,
            "without a name",
        ),
        ([*strands("x"), {"role": "tool", "content": []}], "Strands messages", 4, "the role 'tool'"),
        ([*strands("x"), {"role": "user", "content": "x"}], "Strands messages", 4, "list of blocks"),
        ([*haystack("x"), {"role": "user", "content": []}], "Haystack messages", 4, "lacks meta"),
        ([*haystack("x"), {"role": "a", "meta": {}, "content": []}], "Haystack messages", 4, "the role 'a'"),
        ([*responses("x"), {"type": "weird"}], "OpenAI Responses items", 4, "an item of type 'weird'"),
        ([*responses("x"), {"role": "tool", "content": ""}], "OpenAI Responses items", 4, "the role 'tool'"),
        ([*responses("x"), {"type": "function_call"}], "OpenAI Responses items", 4, "without a name"),
        ([*responses("x"), {"type": "message"}], "OpenAI Responses items", 4, "neither a message nor an item"),
        ([{"type": "phone_call", "x": 1}], "OpenAI messages", 0, "has no role"),
        ([{"role": "user", "content": ""}, {"type": "api_output", "output": "y"}], "OpenAI messages", 1, "has no role"),
        (["x"], "OpenAI messages", 0, "is a string, not an object"),
        ([[]], "OpenAI messages", 0, "is a list, not an object"),
        ([{}], "OpenAI messages", 0, "has no role"),
    ],
)
def test_a_misfit_is_named_with_its_place(messages: list[Any], recorded_as: str, position: int, reason: str) -> None:
    with pytest.raises(Misfit) as raised:
        read_messages(messages)

    assert (raised.value.recorded_as, raised.value.position) == (recorded_as, position)
    assert reason in str(raised.value)


KEYS = st.sampled_from(
    [
        "role",
        "content",
        "type",
        "text",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "id",
        "data",
        "kwargs",
        "lc",
        "meta",
        "toolUse",
        "toolResult",
        "tool_call",
        "tool_call_result",
        "origin",
        "image",
        "source",
        "tool_call_id",
        "status",
        "additional_kwargs",
        "result",
        "input",
        "reasoning",
        "json",
        "call_id",
        "output",
        "summary",
    ]
)
WORDS = st.sampled_from(
    [
        "user",
        "assistant",
        "tool",
        "system",
        "ai",
        "human",
        "text",
        "tool_use",
        "tool_result",
        "image",
        "x",
        "message",
        "reasoning",
        "function_call",
        "a_call",
        "an_output",
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)
SAMPLES = [message for records in RECORDERS.values() for record in records for message in record("x")]


@st.composite
def damaged_messages(draw: st.DrawFn) -> dict[str, Any]:
    """Draw a message of one of the formats, with one value replaced by another."""
    message: Any = json.loads(json.dumps(draw(st.sampled_from(SAMPLES))))
    place = message
    while True:
        key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not place[key] or not isinstance(place[key], dict | list) or draw(st.booleans()):
            place[key] = draw(VALUES)
            return message  # type: ignore[no-any-return]
        place = place[key]


@given(st.lists(damaged_messages() | st.dictionaries(KEYS, VALUES) | VALUES, max_size=4))
def test_any_json_is_read_or_named_as_a_misfit(messages: list[Any]) -> None:
    with suppress(Misfit):
        assert read_messages(messages)[0] in FORMATS
