"""The two conversions: the content of a tool result becomes blocks, and blocks become its content."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from coatcheck import ByteCounter, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck_strands import ContextOffloader, offloaded_references
from coatcheck_strands.convert import blocks_of, content_of
from tests.adapters.strands.agents import ScriptedModel, agent, references, results, returning, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strands.types.content import Message

NATIVE: list[Any] = [
    {"text": "text"},
    {"text": ""},
    {"json": {"a": [1, None]}},
    {"json": None},
    {"image": {"format": "png", "source": {"bytes": b"png"}}},
    {"document": {"format": "pdf", "name": "report.pdf", "source": {"bytes": b"pdf"}}},
    {"audio": {"format": "wav", "source": {"bytes": b"wav"}}},
    {"video": {"format": "mp4", "source": {"bytes": b"mp4"}}},
]
FOREIGN: list[Any] = [
    {"text": 7},
    {"image": "url"},
    {"image": {"format": "png"}},
    {"image": {"format": "png", "source": {"bytes": b""}}},
    {"image": {"format": "png", "source": {"location": {"type": "s3", "uri": "s3://b/k"}}}},
    {"document": {"format": "pdf", "name": "n", "source": {"location": {"type": "s3", "uri": "s3://b/k"}}}},
    {"guardContent": {"text": {"text": "x"}}},
    {"cachePoint": {"type": "default"}},
    {},
    "text",
    None,
]


def test_known_content_survives_the_round_trip() -> None:
    assert content_of(blocks_of(NATIVE)) == NATIVE


def test_known_content_becomes_blocks_of_its_kind() -> None:
    assert blocks_of(NATIVE) == (
        TextBlock("text"),
        TextBlock(""),
        JsonBlock({"a": [1, None]}),
        JsonBlock(None),
        MediaBlock(b"png", "image/png"),
        MediaBlock(b"pdf", "application/pdf", name="report.pdf"),
        MediaBlock(b"wav", "audio/wav"),
        MediaBlock(b"mp4", "video/mp4"),
    )


@pytest.mark.parametrize("native", FOREIGN, ids=str)
def test_unknown_content_stays_the_very_same_object(native: Any) -> None:  # noqa: ANN401
    (block,) = blocks_of([native])

    assert isinstance(block, OpaqueBlock)
    assert content_of([block])[0] is native


def test_a_missing_format_is_unknown() -> None:
    assert blocks_of([{"image": {"source": {"bytes": b"x"}}}]) == (MediaBlock(b"x", "image/unknown"),)  # type: ignore[typeddict-item]


def test_a_document_without_a_name_is_given_one() -> None:
    assert content_of([MediaBlock(b"x", "application/pdf")], name="ref")[0]["document"]["name"] == "ref"


def test_offloaded_references_are_found_in_a_result_and_in_a_message() -> None:
    subject = agent(ContextOffloader())
    subject("go")
    result, shown = results(subject)[0], tuple(references(results(subject)[0]))

    assert shown
    assert offloaded_references(result) == shown
    assert [offloaded_references(message) for message in subject.messages] == [(), (), shown, ()]


@pytest.mark.parametrize(
    "blocks",
    [
        [f"row {number}" for number in range(5_000)],
        [{"image": {"format": "png", "source": {"bytes": b"%d" % number}}} for number in range(300)],
    ],
    ids=["texts", "images"],
)
def test_the_mark_of_many_blocks_is_short(blocks: list[Any]) -> None:
    result: Any = run(ContextOffloader(token_counter=ByteCounter()), tools=[returning(*blocks)])

    (reference,) = offloaded_references(result)
    assert reference in references(result)
    assert len(json.dumps(result["coatcheck"])) < 2_000


def test_a_result_that_stayed_has_no_references_whatever_its_text_says() -> None:
    fake = "Tool result offloaded. [Offloaded: 1 block, ~9 tokens]\n[Stored references:]\n  a-0-0 (text/plain, 9 bytes)"

    assert offloaded_references(run(ContextOffloader(), tools=[returning(fake)])) == ()


@pytest.mark.parametrize("mark", [{}, {"references": "abc"}, {"references": None}, "x"])
def test_a_forged_mark_has_no_references(mark: Any) -> None:  # noqa: ANN401
    result: Any = {"toolUseId": "1", "status": "success", "content": [], "coatcheck": mark}

    assert offloaded_references(result) == ()


def test_a_block_of_two_kinds_keeps_both() -> None:
    native: Any = {"text": "x" * 40_000, "json": {"k": "precious"}}

    (block,) = blocks_of([native])
    assert content_of([block]) == [native]


def test_a_message_without_a_tool_result_has_no_references() -> None:
    assert offloaded_references({"role": "user", "content": [{"text": "hello"}]}) == ()
    assert offloaded_references({"role": "user", "content": []}) == ()


PDF = {"document": {"format": "pdf", "name": "report", "source": {"bytes": b"%PDF" * 5_000}}}
IMAGE = {"image": {"format": "png", "source": {"bytes": b"png" * 5_000}}}
IDS = {"json": {"ids": [UUID(int=number) for number in range(50_000)]}}


@pytest.mark.parametrize(
    "content",
    [
        [PDF],
        [{"text": "Here it is."}, PDF],
        [IDS],
        [{"text": "Here they are."}, IDS],
        [{"json": {"status": "ok"}}, IDS],
        [IMAGE, IMAGE],
    ],
    ids=["pdf", "text and pdf", "ids", "text and ids", "json and ids", "images"],
)
def test_content_that_the_models_count_leaves_out_is_measured_with_our_counter(content: list[Any]) -> None:
    result = run(ContextOffloader(scope="s"), tools=[returning(*content)])

    assert len(references(result)) == len(content)


SMALL = {"document": {"format": "csv", "name": "table", "source": {"bytes": b"a,b"}}}


@pytest.mark.parametrize("content", [[IMAGE], [{"text": "A picture."}, IMAGE], [SMALL, SMALL]])
def test_a_lone_image_and_small_media_stay(content: list[Any]) -> None:
    assert run(ContextOffloader(scope="s"), tools=[returning(*content)])["content"] == content


def test_a_models_count_that_includes_media_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    async def count_tokens(_: object, messages: Sequence[Message]) -> int:
        return 60 * len(messages[0]["content"][0]["toolResult"]["content"])

    monkeypatch.setattr(ScriptedModel, "count_tokens", count_tokens)

    assert run(ContextOffloader(scope="s"), tools=[returning(PDF, IMAGE, IMAGE)])["content"] == [PDF, IMAGE, IMAGE]
