"""Files in results that no model takes as media: none above the hard limit gets through, stored, read back or not."""

# ruff: noqa: ANN401 - what the protocol has is of any type

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import FileStorage, Never, Offloader
from coatcheck_mcp.convert import offloaded_references
from coatcheck_mcp.hook import Call, offload_result
from coatcheck_mcp.retrieval import answer_call

if TYPE_CHECKING:
    from pathlib import Path

BLOB = base64.b64encode(bytes(300_000)).decode()


def result_of(media_type: str | None) -> dict[str, Any]:
    held = {"uri": "file:///a", "blob": BLOB, **({"mimeType": media_type} if media_type else {})}
    return {"content": [{"type": "resource", "resource": held}]}


@pytest.fixture
def broken(tmp_path: Path) -> Offloader:
    (tmp_path / "file").write_bytes(b"")
    return Offloader(FileStorage(tmp_path / "file" / "no-folder"))


def call(**options: Any) -> Call:
    return Call(tool_name="t", scope="s", retrieval_tool="r", **options)


@pytest.mark.parametrize("media_type", [None, "application/octet-stream", "application/zip"])
async def test_a_file_that_cannot_be_stored_is_cut(broken: Offloader, media_type: str | None) -> None:
    sent = await offload_result(result_of(media_type), call(), broken)
    assert BLOB[:2_000] not in str(sent)


@pytest.mark.parametrize("media_type", ["image/png", "application/pdf"])
async def test_media_that_cannot_be_stored_stay(broken: Offloader, media_type: str) -> None:
    result = result_of(media_type)
    assert await offload_result(result, call(), broken) is result


@pytest.mark.parametrize("kind", ["image", "audio"])
async def test_an_image_or_audio_part_that_is_not_media_is_cut_if_it_cannot_be_stored(
    broken: Offloader, kind: str
) -> None:
    part = {"type": kind, "data": BLOB, "mimeType": "application/octet-stream"}
    sent = await offload_result({"content": [part]}, call(), broken)
    assert BLOB[:2_000] not in str(sent)


async def test_a_policy_keeps_no_file_above_the_hard_limit(tmp_path: Path) -> None:
    sent = await offload_result(result_of(None), call(policy=Never()), Offloader(FileStorage(tmp_path)))
    assert sent["_meta"]["coatcheck"]["references"]


async def read_back(result: dict[str, Any], offloader: Offloader) -> Any:
    sent = await offload_result(result, call(), offloader)
    (reference,) = offloaded_references(sent)
    sent = await answer_call(
        {"reference": reference}, offloader=offloader, scope="s", identity=None, name="r", native_media=True
    )
    (part,) = sent["content"]
    return part


async def test_a_file_above_the_hard_limit_is_not_read_back_either(tmp_path: Path) -> None:
    part = await read_back(result_of("application/zip"), Offloader(FileStorage(tmp_path)))
    said = "[application/zip, 300,000 bytes: too large to be shown here, and no text that can be searched]"
    assert part == {"type": "text", "text": said}


async def test_the_type_of_a_file_above_the_hard_limit_is_cut(tmp_path: Path) -> None:
    part = await read_back(result_of("application/" + "x" * 5_000), Offloader(FileStorage(tmp_path)))
    assert part["text"].startswith("[application/xxx")
    assert len(part["text"]) < 200


async def test_a_smaller_file_is_read_back_as_it_was(tmp_path: Path) -> None:
    offloader = Offloader(FileStorage(tmp_path), max_inline_tokens=100_000, max_result_tokens=1)
    part = await read_back(result_of("application/zip"), offloader)
    assert part["resource"]["blob"] == BLOB


async def test_a_document_that_models_take_is_read_back_at_any_size(tmp_path: Path) -> None:
    offloader = Offloader(FileStorage(tmp_path), max_result_tokens=1)
    part = await read_back(result_of("application/pdf"), offloader)
    assert part["resource"]["blob"] == BLOB
