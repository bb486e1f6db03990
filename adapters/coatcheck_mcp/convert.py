"""The two conversions: the result of a tool call into content blocks, and blocks into such a result.

A result is a mapping, as the protocol has it: ``content``, a list of parts; ``structuredContent``; ``isError``;
``_meta``. Structured content that says the same as the texts is no block of its own, so that it is stored once.
Resource links and parts that are not understood pass through, the same object. Where a server hides more than that in
them, the whole result is one JSON value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from coatcheck import Block, JsonBlock, MediaBlock, Offloaded, OpaqueBlock, TextBlock, Truncated
from coatcheck.adapting import MARK, decode_base64, encode_base64, find_copy, references_in

__all__ = (
    "Result",
    "blocks_of",
    "content_of",
    "kept_of",
    "offloaded_references",
    "plain_blocks_of",
    "rewrite",
    "side_size",
    "texts_of",
    "whole_of",
)

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
    return [*texts, *(() if structured is None else (json.dumps(structured),))]


def side_size(result: Result) -> int:
    """Return roughly how many characters a result has in what no block holds: links, annotations, ``_meta``, titles."""
    fields = {key: value for key, value in result.items() if key not in {"content", "structuredContent"}}
    parts = result.get("content") or ()
    return sum(max(0, _size_of(part) - _held_by(part)) for part in parts) + (_size_of(fields) if fields else 0)


def whole_of(result: Result) -> tuple[Block, ...]:
    """Convert a result into one JSON value, as it came: for one that is too large in what no block holds."""
    return (JsonBlock(dict(result)),)


def kept_of(result: Result, *, whole: bool) -> dict[str, Any]:
    """Return what stays of a result next to other content; of one that left ``whole``, whether it is an error."""
    return {key: value for key, value in result.items() if (key == "isError" if whole else key != "structuredContent")}


def content_of(blocks: Sequence[Block]) -> list[Any]:
    """Convert blocks into the content of a result."""
    return [_part_of(block) for block in blocks]


def rewrite(kept: Result, outcome: Offloaded | Truncated) -> dict[str, Any]:
    """Return what ``kept_of`` kept, marked, with the content of ``outcome``."""
    # The mark is for the client's own code. Clients keep `_meta` and show it to no model.
    return {**kept, "content": content_of(outcome.blocks), "_meta": {**(kept.get("_meta") or {}), MARK: outcome.mark}}


def offloaded_references(result: object) -> tuple[str, ...]:
    """For clients: the references in a tool result that was offloaded on its way; empty where nothing was stored.

    Takes a result as a mapping, as the ``mcp`` package has it (``CallToolResult``), or as FastMCP's client has it.
    """
    meta = result.get("_meta") if isinstance(result, Mapping) else getattr(result, "meta", None)
    return references_in(meta.get(MARK)) if isinstance(meta, Mapping) else ()


def _size_of(value: Any) -> int:  # noqa: ANN401 - any JSON value
    """Return roughly how many characters a JSON value has. Numbers and brackets count one each."""
    size, left = 0, [value]
    while left:
        match left.pop():
            case str(text):
                size += len(text)
            case dict(fields):
                size += 1
                left += fields
                left += fields.values()
            case list(items):
                size += 1
                left += items
            case _:
                size += 1
    return size


def _held_by(part: Any) -> int:  # noqa: ANN401 - whatever a server sent
    """Return how many characters of a part a block holds, if the part is understood."""
    match part:
        case {"type": "text", "text": str(held)} | {"type": "resource", "resource": {"text": str(held)}}:
            return len(held)
        case {"type": "image" | "audio", "data": str(held)} | {"type": "resource", "resource": {"blob": str(held)}}:
            return len(held)
        case _:
            return 0


def _block_of(part: Any) -> Block:  # noqa: ANN401 - whatever a server sent
    match part:
        case {"type": "text", "text": str(text)} | {"type": "resource", "resource": {"text": str(text)}}:
            return TextBlock(text)
        case {"type": "image" | "audio", "data": str(data), "mimeType": str(media_type)}:
            return _media_of(data, media_type) or _unreadable(part, data)
        case {"type": "resource", "resource": {"blob": str(data), "uri": str(uri), **rest}}:
            said = rest.get("mimeType")
            name = uri.rpartition("/")[2] or None
            return _media_of(data, said if isinstance(said, str) else _UNKNOWN, name) or _unreadable(part, data)
        case _:
            return OpaqueBlock(part)


def _media_of(encoded: str, media_type: str, name: str | None = None) -> MediaBlock | None:
    data = decode_base64(encoded)
    return MediaBlock(data, media_type, name=name) if data else None


def _unreadable(part: Any, data: str) -> Block:  # noqa: ANN401 - as above
    """Return a medium that nobody can decode. Clients send it on, so it is counted like any other value."""
    return JsonBlock(part) if data else OpaqueBlock(part)


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
