"""The two conversions: the result of a tool call into content blocks, and blocks into such a result.

A result is a mapping, as the protocol has it: ``content``, a list of parts; ``structuredContent``; ``isError``;
``_meta``. Structured content that says the same as the texts is no block of its own, so that it is stored once.
Resource links and parts that are not understood pass through, the same object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from coatcheck import Block, JsonBlock, MediaBlock, Offloaded, OpaqueBlock, TextBlock, Truncated
from coatcheck.adapting import MARK, decode_base64, encode_base64, find_copy, references_in

__all__ = ("Result", "blocks_of", "content_of", "offloaded_references", "plain_blocks_of", "rewrite", "texts_of")

Result: TypeAlias = Mapping[str, Any]
"""The result of ``tools/call``, as the protocol has it."""

_UNKNOWN = "application/octet-stream"


def blocks_of(result: Result) -> tuple[Block, ...]:
    """Convert a result, in order; structured content that the texts do not say comes last."""
    blocks = [_block_of(part) for part in result.get("content") or ()]
    structured = result.get("structuredContent")
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    if structured is not None and find_copy(structured, texts) is None:
        blocks.append(JsonBlock(structured))
    return tuple(blocks)


def plain_blocks_of(result: Result) -> tuple[Block, ...]:
    """Convert nothing but texts, and structured content into text; for the last resort."""
    blocks = [
        TextBlock(part["text"])
        if isinstance(part, Mapping) and isinstance(part.get("text"), str)
        else OpaqueBlock(part)
        for part in result.get("content") or ()
    ]
    structured = result.get("structuredContent")
    return (*blocks, *(() if structured is None else (TextBlock(json.dumps(structured)),)))


def texts_of(result: Result) -> list[str] | None:
    """Return what a result without media says, structured content as JSON; None for any other result."""
    texts = [part.get("text") if part.get("type") == "text" else None for part in result.get("content") or ()]
    if not all(isinstance(text, str) for text in texts):
        return None
    structured = result.get("structuredContent")
    return [*texts, *(() if structured is None else (json.dumps(structured),))]  # type: ignore[list-item]


def content_of(blocks: Sequence[Block]) -> list[Any]:
    """Convert blocks into the content of a result."""
    return [_part_of(block) for block in blocks]


def rewrite(result: Result, outcome: Offloaded | Truncated) -> dict[str, Any]:
    """Return a marked result with the content of ``outcome``; without structured content, and else as it came."""
    kept = {key: value for key, value in result.items() if key != "structuredContent"}
    # The mark is for the client's own code. Clients keep `_meta` and show it to no model.
    return {**kept, "content": content_of(outcome.blocks), "_meta": {**(result.get("_meta") or {}), MARK: outcome.mark}}


def offloaded_references(result: object) -> tuple[str, ...]:
    """For clients: the references in a tool result that was offloaded on its way; empty where nothing was stored.

    Takes a result as a mapping, as the ``mcp`` package has it (``CallToolResult``), or as FastMCP's client has it.
    """
    meta = result.get("_meta") if isinstance(result, Mapping) else getattr(result, "meta", None)
    return references_in(meta.get(MARK)) if isinstance(meta, Mapping) else ()


def _block_of(part: Any) -> Block:  # noqa: ANN401 - whatever a server sent
    match part:
        case {"type": "text", "text": str(text)} | {"type": "resource", "resource": {"text": str(text)}}:
            return TextBlock(text)
        case {"type": "image" | "audio", "data": str(data), "mimeType": str(media_type)}:
            return _media_of(data, media_type) or OpaqueBlock(part)
        case {"type": "resource", "resource": {"blob": str(data), "uri": str(uri), **rest}}:
            media_type = rest.get("mimeType")
            name = uri.rpartition("/")[2] or None
            return _media_of(data, media_type if isinstance(media_type, str) else _UNKNOWN, name) or OpaqueBlock(part)
        case _:
            return OpaqueBlock(part)


def _media_of(encoded: str, media_type: str, name: str | None = None) -> MediaBlock | None:
    data = decode_base64(encoded)
    return MediaBlock(data, media_type, name=name) if data else None


def _part_of(block: Block) -> Any:  # noqa: ANN401 - unknown parts are what they are
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case JsonBlock():
            return {"type": "text", "text": json.dumps(block.value)}
        case MediaBlock():
            kind, data = block.media_type.partition("/")[0], encode_base64(block.data)
            if kind in {"image", "audio"}:
                return {"type": kind, "data": data, "mimeType": block.media_type}
            # The protocol asks for a URI. Nobody can read this one: its content is all here.
            blob = {"uri": f"coatcheck:{block.name or 'content'}", "mimeType": block.media_type, "blob": data}
            return {"type": "resource", "resource": blob}
        case OpaqueBlock():
            return block.native
