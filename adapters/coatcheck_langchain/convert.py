"""Two converters: what a tool message holds becomes content blocks, and an outcome becomes a copy of the message.

Only these belong here, and the mark that a rewritten message carries. A block is taken apart where its text or its
bytes are at hand, in the standard shapes of LangChain or those of a provider; every other block passes through, the
same object. What a text block carries beside its text (annotations, cache marks) describes that text, and leaves with
it.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coatcheck import Block, JsonBlock, Kept, MediaBlock, OpaqueBlock, TextBlock

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage, ToolMessage

    from coatcheck import Outcome

__all__ = (
    "MARK",
    "blocks_of",
    "content_of",
    "holds_media",
    "is_marked",
    "offloaded_references",
    "plain_blocks_of",
    "rewritten",
)

MARK = "coatcheck"
"""The key in ``additional_kwargs``, which survives checkpoints and is sent to no model."""

_CARRIER = "custom_tool_call_output"
"""OpenAI's custom tools: the answer must stay in a block of this type, or the model's call has none."""

_PIECE = 3 * 2**18
"""Characters or bytes, a multiple of 3 and of 4. Decoding and encoding hold the interpreter's lock, so that a large
medium in one go would stall an event loop, from whatever thread."""

_TEXT_UNDER = {"text": "text", "text-plain": "text", "input_text": "text", "output_text": "text", _CARRIER: "output"}

_UNNAMED = {
    "image": "image/unknown",
    "image_url": "image/unknown",
    "input_image": "image/unknown",
    "audio": "audio/unknown",
    "input_audio": "audio/unknown",
    "video": "video/unknown",
}
"""MIME types for blocks that do not name theirs."""


def blocks_of(content: object) -> tuple[Block, ...]:
    """Return the content of a tool message as content blocks, in order."""
    if isinstance(content, str):
        return (TextBlock(content),)
    if isinstance(content, Sequence):
        return tuple(_block_of(native) for native in content)
    return (OpaqueBlock(content),)


def plain_blocks_of(content: object) -> tuple[Block, ...]:
    """Return the content of a tool message with nothing but its texts taken out: for where conversion failed."""
    natives = content if isinstance(content, list | tuple) else [content]
    return tuple(
        TextBlock(text) if (text := _plain_text(native)) is not None else OpaqueBlock(native) for native in natives
    )


def content_of(blocks: Sequence[Block], *, like: object = "") -> str | list[str | dict[str, Any]]:
    """Return blocks as content of a tool message; a single text stands alone unless ``like`` it held more than text."""
    carrier = next((native for native in _natives(like) if _type_of(native) == _CARRIER), None)
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    if isinstance(carrier, dict):
        rest = [_native_of(block) for block in blocks if not isinstance(block, TextBlock)]
        return [{**carrier, "output": "\n\n".join(texts)}, *rest]
    if len(blocks) == len(texts) == 1 and not holds_media(like):
        return texts[0]
    return [_native_of(block) for block in blocks]


def rewritten(message: ToolMessage, outcome: Outcome, *, artifact: object) -> ToolMessage:
    """Return the message itself if its result stayed, else a marked copy with another content and this artifact."""
    if isinstance(outcome, Kept):
        return message
    content = content_of(outcome.blocks, like=message.content)
    return message.model_copy(
        update={
            "content": content,
            "artifact": artifact,
            "additional_kwargs": {**message.additional_kwargs, MARK: outcome.mark},
        }
    )


def is_marked(message: BaseMessage) -> bool:
    """Return whether a message was rewritten already."""
    return isinstance(message.additional_kwargs.get(MARK), Mapping)


def offloaded_references(message: BaseMessage) -> tuple[str, ...]:
    """Return the references in a message whose result was offloaded, for user interfaces; else an empty tuple.

    Pass one to ``Offloader.load`` for the whole content. More than eight texts are one content, with ``items``; of more
    than eight contents there is one reference, to the text that lists theirs, one a line. What ``offload_tool`` returns
    is no message, so LangChain's message around it carries no references.
    """
    mark = message.additional_kwargs.get(MARK)
    references = mark.get("references") if isinstance(mark, Mapping) else None
    return tuple(map(str, references)) if isinstance(references, Sequence) and not isinstance(references, str) else ()


def holds_media(content: object) -> bool:
    """Return whether converting ``content`` may take a while: anything but text may need decoding or encoding."""
    return not isinstance(content, str) and any(_type_of(native) not in _TEXT_UNDER for native in _natives(content))


def _block_of(native: object) -> Block:
    if isinstance(native, str):
        return TextBlock(native)
    if isinstance(native, dict):
        if (text := _text_of(native)) is not None:
            return TextBlock(text)
        if native.get("type") == "json" and "json" in native:
            return JsonBlock(native["json"])
        if (media := _media_of(native)) is not None:
            return media
    return OpaqueBlock(native)


def _plain_text(native: object) -> str | None:
    text = native.get("text") if isinstance(native, dict) else native
    return text if isinstance(text, str) else None


def _text_of(native: dict[str, Any]) -> str | None:
    match native:
        case {"type": str(kind)} if kind in _TEXT_UNDER and isinstance(native.get(_TEXT_UNDER[kind]), str):
            return str(native[_TEXT_UNDER[kind]])
        case {"source": {"type": "text", "data": str(text)}}:
            return text
        case _:
            return None


def _media_of(native: dict[str, Any]) -> MediaBlock | None:
    encoded, media_type, name = _encoded_of(native)
    data = _decoded(encoded)
    if not data:
        return None
    if not isinstance(media_type, str) or not media_type:
        media_type = _UNNAMED.get(str(native.get("type")), "application/octet-stream")
    return MediaBlock(data, media_type, name=name if isinstance(name, str) else None)


def _encoded_of(native: dict[str, Any]) -> tuple[str, object, object]:
    """Return the base64 text, the MIME type and the name that a block carries; empty where the bytes are elsewhere."""
    name = native.get("filename") or native.get("title")
    match native:
        case (
            {"base64": str(data)} | {"source_type": "base64", "data": str(data)} | {"type": "media", "data": str(data)}
        ):
            return data, native.get("mime_type"), name
        case {"source": {"type": "base64", "data": str(data), **source}}:
            return data, source.get("media_type"), name
        case {"input_audio": {"data": str(data), "format": str(kind)}}:
            return data, f"audio/{kind}", name
        case {"file": {"file_data": str(url), **file}}:
            return (*_data_url(url), file.get("filename"))
        case {"image_url": {"url": str(url)}} | {"image_url": str(url)} | {"file_data": str(url)} | {"url": str(url)}:
            return (*_data_url(url), name)
        case _:
            return "", None, None


def _data_url(url: str) -> tuple[str, str]:
    head, _, data = url.partition(",")
    if not head.startswith("data:") or not head.endswith(";base64"):
        return "", ""
    return data, head.removeprefix("data:").partition(";")[0]


def _decoded(encoded: str) -> bytes:
    """Return what base64 text stands for; nothing where it is malformed."""
    pieces = [encoded[start : start + _PIECE] for start in range(0, len(encoded), _PIECE)]
    if any("=" in piece for piece in pieces[:-1]):  # padding is for the end
        return b""
    try:
        return b"".join(base64.b64decode(piece, validate=True) for piece in pieces)
    except ValueError:
        return b""


def _native_of(block: Block) -> Any:  # noqa: ANN401 - LangChain types blocks as str or dict; unknown ones are what they are
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case JsonBlock():
            return {"type": "json", "json": block.value}
        case MediaBlock():
            # LangChain accepts "image" and "file" from a tool, and turns a list with any other medium into one text.
            kind = "image" if block.media_type.startswith("image/") else "file"
            pieces = (block.data[start : start + _PIECE] for start in range(0, len(block.data), _PIECE))
            encoded = b"".join(base64.b64encode(piece) for piece in pieces).decode("ascii")
            name = {"filename": block.name} if block.name is not None else {}
            return {"type": kind, "base64": encoded, "mime_type": block.media_type, **name}
        case OpaqueBlock():
            return block.native


def _natives(content: object) -> Sequence[object]:
    return content if isinstance(content, Sequence) and not isinstance(content, str) else ()


def _type_of(native: object) -> str:
    if isinstance(native, Mapping):
        return str(native.get("type"))
    return "text" if isinstance(native, str) else ""
