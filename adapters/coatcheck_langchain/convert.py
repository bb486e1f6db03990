"""Convert the content of a tool message into content blocks, and blocks into content.

A part of the content is converted if it holds text or bytes, in one of LangChain's standard shapes or a provider's.
Every other part passes through as the same object. What a text part holds besides its text (annotations, cache marks)
describes that text, and is dropped with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck.adapting import MARK, decode_base64, decode_data_url, encode_base64, plain_blocks, references_in

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

__all__ = ("blocks_of", "content_of", "is_media_held", "offloaded_references", "plain_blocks_of")

_CARRIER = "custom_tool_call_output"
"""The type of a part that answers an OpenAI custom tool. The answer must stay in such a part, or the call has none."""

_TEXT_UNDER = {"text": "text", "text-plain": "text", "input_text": "text", "output_text": "text", _CARRIER: "output"}

_UNNAMED = {
    "image": "image/unknown",
    "image_url": "image/unknown",
    "input_image": "image/unknown",
    "audio": "audio/unknown",
    "input_audio": "audio/unknown",
    "video": "video/unknown",
}
"""MIME types of parts that do not state one."""


def blocks_of(content: object) -> tuple[Block, ...]:
    """Convert the content of a tool message into blocks, in order."""
    if isinstance(content, str):
        return (TextBlock(content),)
    if isinstance(content, Sequence):
        return tuple(_block_of(part) for part in content)
    return (OpaqueBlock(content),)


def plain_blocks_of(content: object) -> tuple[Block, ...]:
    """Convert only the text of a tool message; every other part stays opaque."""
    return plain_blocks(content, lambda part: part.get("text") if isinstance(part, dict) else None)


def content_of(blocks: Sequence[Block], *, like: object = "") -> str | list[str | dict[str, Any]]:
    """Convert blocks into content. A single text becomes a ``str`` unless ``like``, the old content, held media."""
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    for part in like if isinstance(like, list) else ():
        if isinstance(part, dict) and part.get("type") == _CARRIER:
            rest = [_part_of(block) for block in blocks if not isinstance(block, TextBlock)]
            return [{**part, "output": "\n\n".join(texts)}, *rest]
    if len(blocks) == len(texts) == 1 and not is_media_held(like):
        return texts[0]
    return [_part_of(block) for block in blocks]


def offloaded_references(message: BaseMessage) -> tuple[str, ...]:
    """Return the references of an offloaded result for user interfaces; an empty tuple for any other message.

    Pass one to ``Offloader.load`` for the whole content. More than eight text blocks are stored as one content, with
    ``items``. More than eight contents share one reference, to text that lists theirs, one per line. ``offload_tool``
    does not return a message, so LangChain's message around its result carries no references.
    """
    return references_in(message.additional_kwargs.get(MARK))


def is_media_held(content: object) -> bool:
    """Return whether converting content may be slow, because anything but text may need decoding or encoding."""
    return isinstance(content, list) and any(
        not isinstance(part, str) and (not isinstance(part, dict) or str(part.get("type")) not in _TEXT_UNDER)
        for part in content
    )


def _block_of(part: object) -> Block:
    match part:
        case {"type": str(kind), **rest} if isinstance(text := rest.get(_TEXT_UNDER.get(kind, "")), str):
            return TextBlock(text)
        case str(text) | {"source": {"type": "text", "data": str(text)}}:
            return TextBlock(text)
        case {"type": "json", "json": value}:
            return JsonBlock(value)
        case dict():
            return _media_of(part) or OpaqueBlock(part)
        case _:
            return OpaqueBlock(part)


def _media_of(part: dict[str, Any]) -> MediaBlock | None:
    data, media_type, name = _decode(part)
    if not data:
        return None
    if not isinstance(media_type, str) or not media_type:
        media_type = _UNNAMED.get(str(part.get("type")), "application/octet-stream")
    return MediaBlock(data, media_type, name=name if isinstance(name, str) else None)


def _decode(part: dict[str, Any]) -> tuple[bytes, object, object]:
    """Return the bytes, the MIME type and the name in a part. The bytes are empty if the part only points to them."""
    name = part.get("filename") or part.get("title")
    match part:
        case (
            {"base64": str(data)} | {"source_type": "base64", "data": str(data)} | {"type": "media", "data": str(data)}
        ):
            return decode_base64(data), part.get("mime_type"), name
        case {"source": {"type": "base64", "data": str(data), **source}}:
            return decode_base64(data), source.get("media_type"), name
        case {"input_audio": {"data": str(data), "format": str(kind)}}:
            return decode_base64(data), f"audio/{kind}", name
        case {"file": {"file_data": str(url), **file}}:
            return (*decode_data_url(url), file.get("filename"))
        case {"image_url": {"url": str(url)}} | {"image_url": str(url)} | {"file_data": str(url)} | {"url": str(url)}:
            return (*decode_data_url(url), name)
        case _:
            return b"", None, None


def _part_of(block: Block) -> Any:  # noqa: ANN401 - LangChain types parts as str or dict; unknown ones can be anything
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case JsonBlock():
            return {"type": "json", "json": block.value}
        case MediaBlock():
            # From a tool, LangChain accepts "image" and "file". Any other kind makes it turn the list into one string.
            kind = "image" if block.media_type.startswith("image/") else "file"
            name = {"filename": block.name} if block.name is not None else {}
            return {"type": kind, "base64": encode_base64(block.data), "mime_type": block.media_type, **name}
        case OpaqueBlock():
            return block.native
