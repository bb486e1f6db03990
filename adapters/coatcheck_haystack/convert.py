"""Convert the content of a tool result into content blocks, and an outcome into a new message.

Only these two conversions and the mark on a rewritten message belong here. Media are converted if the part holds their
bytes. What cannot be decoded passes through as the same object. No message is ever changed in place, nor anything in
it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from haystack.dataclasses import ChatMessage, FileContent, ImageContent, TextContent

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck.adapting import decode_base64, encode_base64, plain_blocks, references_in
from coatcheck_haystack.meta import take_out_copies

if TYPE_CHECKING:
    from coatcheck import Offloaded, Truncated

__all__ = ("MARK", "blocks_of", "content_of", "offloaded_references", "plain_blocks_of", "rewrite")

MARK = "tool_result_offloaded"
"""Haystack's own key in ``meta``. Its hook and its compactors of tool results skip a message that has it."""

Content = str | Sequence[TextContent | ImageContent | FileContent]


def blocks_of(content: object) -> tuple[Block, ...]:
    """Convert the content of a tool result into blocks, in order."""
    if isinstance(content, str):
        return (TextBlock(content),)
    return tuple(map(_block_of, content if isinstance(content, Sequence) else [content]))


def plain_blocks_of(content: object) -> tuple[Block, ...]:
    """Convert only the text of a tool result; every other part stays opaque."""
    return plain_blocks(content, lambda part: part.text if isinstance(part, TextContent) else None)


def content_of(blocks: Sequence[Block]) -> Content:
    """Convert blocks into the content of a tool result: one ``str`` if they are all text, else a list.

    Several generators accept only a ``str``: those of Ollama, Cohere and Hugging Face serialize the content as it is.
    """
    parts = [_part_of(block) for block in blocks]
    texts = [part.text for part in parts if isinstance(part, TextContent)]
    return "\n".join(texts) if len(texts) == len(parts) else parts


def rewrite(message: ChatMessage, outcome: Offloaded | Truncated, *, keep_meta: bool) -> ChatMessage:
    """Return a copy of a message with new content and a mark. Unless ``keep_meta``, drop copies of the old content."""
    result = message.tool_call_results[0]
    blocks = () if keep_meta else plain_blocks_of(result.result)
    meta = take_out_copies(message.meta, blocks, outcome.references)
    return ChatMessage.from_tool(
        tool_result=content_of(outcome.blocks),
        origin=result.origin,
        error=result.error,
        meta={**meta, MARK: outcome.mark["references"]},
    )


def offloaded_references(message: ChatMessage) -> tuple[str, ...]:
    """Return the references of an offloaded result for user interfaces; an empty tuple for any other message.

    Pass one to ``Offloader.load`` for the whole content or, if results go to a ``ToolResultStore``, to its ``read``.
    More than eight text blocks are stored as one content, with ``items``. More than eight contents share one reference,
    to text that lists theirs, one per line.
    """
    return references_in(message.meta.get(MARK))


def _block_of(part: object) -> Block:
    match part:
        case TextContent():
            return TextBlock(part.text)
        case ImageContent() if data := decode_base64(part.base64_image):
            return MediaBlock(data, part.mime_type or "image/unknown")
        case FileContent() if data := decode_base64(part.base64_data):
            return MediaBlock(data, part.mime_type or "application/octet-stream", name=part.filename)
        case _:
            return OpaqueBlock(part)


def _part_of(block: Block) -> TextContent | ImageContent | FileContent:
    match block:
        case TextBlock():
            return TextContent(block.text)
        case JsonBlock():  # Haystack has no JSON part: its tools return JSON as text
            return TextContent(json.dumps(block.value, ensure_ascii=False))
        case MediaBlock():
            # Validating base64 that we just encoded would decode it again.
            encoded = encode_base64(block.data)
            if block.media_type.startswith("image/"):
                return ImageContent(encoded, mime_type=block.media_type, validation=False)
            return FileContent(encoded, mime_type=block.media_type, filename=block.name, validation=False)
        case OpaqueBlock():
            return block.native  # type: ignore[return-value] # what it was before
