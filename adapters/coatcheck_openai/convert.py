"""Convert the output of a function tool into content blocks, and blocks into such an output.

Also find the references in what the SDK keeps of an output. An output is a ``str``, one of the SDK's parts (text,
image, file; an object or a dictionary), a list of parts, or any other value, which the SDK shows to the model as
``str(value)``. A part that holds a location instead of bytes passes through as the same object.
"""

from __future__ import annotations

import json
import mimetypes
from typing import TYPE_CHECKING, Any

from agents import ToolOutputFileContent, ToolOutputImage, ToolOutputText

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck.adapting import (
    decode_base64,
    decode_data_url,
    encode_base64,
    json_value,
    plain_blocks,
    references_of_results,
    text_tokens,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ("blocks_of", "has_media_as_text", "offloaded_references", "output_of", "plain_blocks_of", "tokens_as_text")

_KINDS: dict[str, Any] = {
    "text": ToolOutputText,
    "image": ToolOutputImage,
    "file": ToolOutputFileContent,
}
_UNKNOWN_FILE = "application/octet-stream"


def blocks_of(output: object) -> tuple[Block, ...]:
    """Convert the output of a tool into blocks, in order. A list without any of the SDK's parts is one JSON value."""
    return tuple(map(_block_of, _parts_of(output)))


def plain_blocks_of(output: object) -> tuple[Block, ...]:
    """Convert only text. A value that is not one of the SDK's parts becomes the ``str`` that the model would get."""
    return plain_blocks(_parts_of(output), lambda part: _fields_of(part).get("text") if _is_part(part) else str(part))


def output_of(blocks: Sequence[Block]) -> Any:  # noqa: ANN401 - a tool may return anything
    """Convert blocks into an output. A single text block becomes a ``str``."""
    match blocks:
        case [TextBlock(text)]:
            return text
        case _:
            return [_part_of(block) for block in blocks]


def offloaded_references(item: object) -> tuple[str, ...]:
    """Return the references in one offloaded result, for user interfaces; empty if nothing was stored.

    Pass one to ``ToolOffloader.offloader.load`` to get the whole content. With more than eight contents, the
    placeholder names only some of them, and a stored text that lists them all, one per line.

    Args:
        item: a ``ToolCallOutputItem`` of a run, or the dictionary that a session keeps of it.

    """
    raw = getattr(item, "raw_item", item)
    return references_of_results([raw])


def has_media_as_text(output: object) -> bool:
    """Return whether a list mixes media with values that are not parts: the SDK then shows the whole list as text."""
    if not isinstance(output, list | tuple) or not any(map(_may_be_media, output)):
        return False  # a cheap test first: validating each part takes seconds for a million rows
    kinds = [_fields_of(part).get("type") for part in output]
    return None in kinds and not {"image", "file"}.isdisjoint(kinds)


def tokens_as_text(output: object) -> int:
    """Estimate the tokens of an output whose base64 the SDK shows as text: half as many as it has characters."""
    return text_tokens(0, encoded=len(str(output)))


def _parts_of(output: object) -> Sequence[object]:
    """Return the items of a list that has at least one part; any other output is the only item."""
    return output if isinstance(output, list | tuple) and any(map(_is_part, output)) else [output]


def _is_part(value: object) -> bool:
    return bool(_fields_of(value))


def _may_be_media(part: object) -> bool:
    if isinstance(part, dict):  # first, because a negative ``isinstance`` with the SDK's classes is slow
        kind = part.get("type")
        return isinstance(kind, str) and kind in {"image", "file"}
    return isinstance(part, (ToolOutputImage, ToolOutputFileContent))


def _fields_of(part: object) -> Mapping[str, Any]:
    """Return the fields of one of the SDK's parts; none for what the SDK treats as a plain value."""
    if isinstance(part, tuple(_KINDS.values())):
        return vars(part)
    kind = part.get("type") if isinstance(part, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        return {}
    try:
        fields: Mapping[str, Any] = vars(_KINDS[kind].model_validate(part))
    except ValueError:  # not a valid part
        return {}
    return fields


def _block_of(part: object) -> Block:
    match _fields_of(part):
        case {"type": "text", "text": text}:
            return TextBlock(text)
        case {"type": "image" | "file"} as fields:
            return _media_of(fields) or OpaqueBlock(part)
        case _ if isinstance(part, dict | list | tuple) and _is_json(part):
            return JsonBlock(part)
        case _:
            return TextBlock(str(part))


def _media_of(fields: Mapping[str, Any]) -> MediaBlock | None:
    data, media_type = decode_data_url(fields.get("image_url") or fields.get("file_data") or "")
    name = fields.get("filename")
    if not data and fields.get("file_data"):
        data = decode_base64(fields["file_data"])
    if not data:
        return None
    unknown = "image/unknown" if fields["type"] == "image" else mimetypes.guess_type(name or "")[0] or _UNKNOWN_FILE
    return MediaBlock(data, media_type or unknown, name=name)


def _is_json(value: object) -> bool:
    try:
        json_value(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _part_of(block: Block) -> Any:  # noqa: ANN401 - unknown parts stay as they are
    match block:
        case TextBlock():
            return ToolOutputText(text=block.text)
        case JsonBlock():
            return ToolOutputText(text=json.dumps(block.value, ensure_ascii=False))
        case MediaBlock():
            url = f"data:{block.media_type};base64,{encode_base64(block.data)}"
            if block.media_type.startswith("image/"):
                return ToolOutputImage(image_url=url)
            return ToolOutputFileContent(file_data=url, filename=block.name)
        case OpaqueBlock():
            return block.native
