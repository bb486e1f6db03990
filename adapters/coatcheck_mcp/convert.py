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
    """Convert a result, in order; structured content that the texts do not say comes last.

    Before it comes what the parts say about their texts and media: URIs, types, annotations. It is one value for all of
    them. A heading for each text was rejected, because JSON and tables below one are previewed as prose.
    """
    parts = result.get("content") or ()
    blocks = [_block_of(part) for part in parts]
    structured = result.get("structuredContent")
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    blocks += map(JsonBlock, _said_about(parts, blocks))
    if structured is not None and find_copy(structured, texts) is None:
        blocks.append(JsonBlock(structured))
    return tuple(blocks)


def plain_blocks_of(result: Result) -> tuple[Block, ...]:
    """Convert nothing but texts, what is said about them, and structured content into text; for the last resort."""
    parts = result.get("content") or ()
    blocks = [_text_of(part) or OpaqueBlock(part) for part in parts]
    about = map(json.dumps, _said_about(parts, blocks))
    structured = result.get("structuredContent")
    return (*blocks, *map(TextBlock, about), *(() if structured is None else (TextBlock(json.dumps(structured)),)))


def texts_of(result: Result) -> list[str] | None:
    """Return what a result without media says, structured content as JSON; None for any other result."""
    texts = [part.get("text") if part.get("type") == "text" else None for part in result.get("content") or ()]
    if not all(isinstance(text, str) for text in texts):
        return None
    structured = result.get("structuredContent")
    return [*texts, *(() if structured is None else (json.dumps(structured),))]


def side_size(result: Result) -> int:
    """Return how long the JSON is of what is no text, medium or structured content: links, annotations, ``_meta``."""
    fields = {key: value for key, value in result.items() if key not in {"content", "structuredContent"}}
    beside = [fields, *map(_without_content, result.get("content") or ())]
    return len(json.dumps(beside, ensure_ascii=False, default=str))


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


def _without_content(part: Any) -> Any:  # noqa: ANN401 - whatever a server sent
    """Return a part without the text or the medium that a block holds; one that is not understood, whole."""
    match part:
        case {"type": "text", "text": str(), **rest}:
            return {"type": "text", **rest}
        case {"type": "resource", "resource": {"text": str(), **said}, **rest}:
            return {"type": "resource", "resource": said, **rest}
        case {"type": "image" | "audio" as kind, "data": str(), **rest}:
            return {"type": kind, **rest}
        case {"type": "resource", "resource": {"blob": str(), **said}, **rest}:
            return {"type": "resource", "resource": said, **rest}
        case _:
            return part


def _said_about(parts: Sequence[Any], blocks: Sequence[Block]) -> list[list[Any]]:
    """Return what the parts say about the content of their blocks, as one value; nothing if the blocks say it all."""
    about, says_more = [], False
    for part, block in zip(parts, blocks, strict=True):
        if isinstance(block, TextBlock | MediaBlock):
            said = _without_content(part)
            says_more |= {key: value for key, value in said.items() if value is not None} not in _said_by(block)
            about.append(said)
    return [about] if says_more else []


def _said_by(block: TextBlock | MediaBlock) -> list[dict[str, Any]]:
    """Return the parts, without their content, of which a block keeps all."""
    if isinstance(block, TextBlock):
        return [{"type": "text"}]
    kind, file = block.media_type.partition("/")[0], {"uri": f"file:///{block.name or ''}"}
    return [
        {"type": kind, "mimeType": block.media_type},
        {"type": "resource", "resource": {**file, "mimeType": block.media_type}},
    ]


def _text_of(part: Any) -> TextBlock | None:  # noqa: ANN401 - whatever a server sent
    match part:
        case {"type": "text", "text": str(text)} | {"type": "resource", "resource": {"text": str(text)}}:
            return TextBlock(text)
        case _:
            return None


def _block_of(part: Any) -> Block:  # noqa: ANN401 - as above
    match part:
        case {"type": "text" | "resource"} if (text := _text_of(part)) is not None:
            return text
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
