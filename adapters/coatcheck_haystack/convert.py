"""Two converters: what a tool result holds becomes content blocks, and an outcome becomes a new message.

Only these belong here, and the mark that a rewritten message carries. Media are taken apart where their bytes are at
hand; what cannot be decoded passes through, the same object. No message, and nothing in one, is ever changed in place.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from haystack.dataclasses import ChatMessage, FileContent, ImageContent, TextContent

from coatcheck import Block, JsonBlock, Kept, MediaBlock, OpaqueBlock, TextBlock
from coatcheck_haystack.meta import without_copies

if TYPE_CHECKING:
    from haystack.dataclasses import ToolCallResult

    from coatcheck import Outcome

__all__ = (
    "MARK",
    "blocks_of",
    "content_of",
    "holds_media",
    "offloaded_references",
    "payload_of",
    "plain_blocks_of",
    "rewritten",
)

MARK = "tool_result_offloaded"
"""Haystack's own key in ``meta``: its hook and its compactors of tool results leave a message with it alone."""

_PIECE = 3 * 2**18
"""Characters or bytes, a multiple of 3 and of 4. Decoding and encoding hold the interpreter's lock, so that a large
medium in one go would stall an event loop, from whatever thread."""

Content = str | Sequence[TextContent | ImageContent | FileContent]


def blocks_of(content: object) -> tuple[Block, ...]:
    """Return the content of a tool result as content blocks, in order."""
    if isinstance(content, str):
        return (TextBlock(content),)
    if isinstance(content, Sequence):
        return tuple(_block_of(native) for native in content)
    return (OpaqueBlock(content),)


def plain_blocks_of(content: object) -> tuple[Block, ...]:
    """Return the content of a tool result with nothing but its texts taken out: for where conversion failed."""
    natives = content if isinstance(content, list | tuple) else [content]
    texts = [native.text if isinstance(native, TextContent) else native for native in natives]
    return tuple(
        TextBlock(text) if isinstance(text, str) else OpaqueBlock(native)
        for native, text in zip(natives, texts, strict=True)
    )


def content_of(blocks: Sequence[Block]) -> Content:
    """Return blocks as the content of a tool result: one ``str`` if they are all text, else a list.

    Several generators take a ``str`` only: those of Ollama, Cohere and Hugging Face serialize the content as it is.
    """
    natives = [_native_of(block) for block in blocks]
    texts = [native.text for native in natives if isinstance(native, TextContent)]
    return "\n".join(texts) if len(texts) == len(natives) else natives


def payload_of(content: object) -> str:
    """Return what Haystack's policies are asked about: all texts and all base64, joined."""
    if isinstance(content, str):
        return content
    return "".join(map(_payload, content)) if isinstance(content, Sequence) else ""


def holds_media(content: object) -> bool:
    """Return whether converting ``content`` may take a while: base64 is decoded."""
    return not isinstance(content, str)


def rewritten(message: ChatMessage, result: ToolCallResult, *, outcome: Outcome, keep_meta: bool) -> ChatMessage:
    """Return the message itself if its result stayed, else a marked copy with another content, and no copy of it."""
    if isinstance(outcome, Kept):
        return message
    blocks = () if keep_meta else blocks_of(result.result)
    return ChatMessage.from_tool(
        tool_result=content_of(outcome.blocks),
        origin=result.origin,
        error=result.error,
        meta={**without_copies(message.meta, blocks, outcome.references), MARK: outcome.mark["references"]},
    )


def offloaded_references(message: ChatMessage) -> tuple[str, ...]:
    """Return the references in a message whose result was offloaded, for user interfaces; else an empty tuple.

    Pass one to ``Offloader.load`` for the whole content, or, where results go to a ``ToolResultStore``, to its
    ``read``. More than eight texts are one content, with ``items``; of more than eight contents there is one reference,
    to the text that lists theirs, one a line.
    """
    references = message.meta.get(MARK)
    return tuple(map(str, references)) if isinstance(references, list | tuple) else ()


def _block_of(native: object) -> Block:
    match native:
        case TextContent():
            return TextBlock(native.text)
        case ImageContent() if data := _decoded(native.base64_image):
            return MediaBlock(data, native.mime_type or "image/unknown")
        case FileContent() if data := _decoded(native.base64_data):
            return MediaBlock(data, native.mime_type or "application/octet-stream", name=native.filename)
        case _:
            return OpaqueBlock(native)


def _native_of(block: Block) -> TextContent | ImageContent | FileContent:
    match block:
        case TextBlock():
            return TextContent(block.text)
        case JsonBlock():  # Haystack has none: its tools return JSON as text
            return TextContent(json.dumps(block.value, ensure_ascii=False))
        case MediaBlock():
            # Checking base64 that we just made would decode it again.
            encoded = _encoded(block.data)
            if block.media_type.startswith("image/"):
                return ImageContent(encoded, mime_type=block.media_type, validation=False)
            return FileContent(encoded, mime_type=block.media_type, filename=block.name, validation=False)
        case OpaqueBlock():
            return block.native  # type: ignore[return-value] # what it was before


def _payload(native: object) -> str:
    match native:
        case TextContent():
            return native.text
        case ImageContent():
            return native.base64_image
        case FileContent():
            return native.base64_data
        case _:
            return ""


def _encoded(data: bytes) -> str:
    pieces = (data[start : start + _PIECE] for start in range(0, len(data), _PIECE))
    return b"".join(base64.b64encode(piece) for piece in pieces).decode("ascii")


def _decoded(encoded: str) -> bytes:
    """Return what base64 text stands for; nothing where it is malformed."""
    pieces = [encoded[start : start + _PIECE] for start in range(0, len(encoded), _PIECE)]
    if any("=" in piece for piece in pieces[:-1]):  # padding is for the end
        return b""
    try:
        return b"".join(base64.b64decode(piece, validate=True) for piece in pieces)
    except ValueError:
        return b""
