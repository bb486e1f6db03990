"""Converts items of the Model Context Protocol, which many frameworks pass on unchanged, to blocks and back.

An item is a mapping, with the protocol's own names. Only items belong here. Each adapter handles the rest of a result,
such as structured content, in its own way.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from coatcheck.adapting.content import decode_base64, encode_base64
from coatcheck.core.blocks import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ("McpItem", "blocks_of_items", "items_of_blocks")

_UNKNOWN = "application/octet-stream"


class McpItem(NamedTuple):
    """An item of the ``content`` of an MCP result, taken apart."""

    text: str | None
    """Its text; None for an item without one."""

    encoded: str | None
    """Its media data in base64; None for an item without any."""

    said: Any
    """All else in the item: its type, URI, annotations, ``_meta``. An item that is not understood is here whole."""

    @classmethod
    def parse(cls, item: Any) -> McpItem:  # noqa: ANN401 - whatever a server sent
        """Take an item apart. Links, and items that are not understood, have neither text nor media."""
        match item:
            case {"type": "text", "text": str(text), **said}:
                return cls(text, None, {"type": "text", **said})
            case {"type": "image" | "audio" as kind, "data": str(encoded), **said}:
                return cls(None, encoded, {"type": kind, **said})
            case {"type": "resource", "resource": {"text": str(text), **held}, **said}:
                return cls(text, None, {"type": "resource", "resource": held, **said})
            case {"type": "resource", "resource": {"blob": str(encoded), **held}, **said}:
                return cls(None, encoded, {"type": "resource", "resource": held, **said})
            case _:
                return cls(None, None, item)


def blocks_of_items(items: Sequence[Any], *, media: bool = True) -> list[Block]:
    """Convert the items of a result to blocks, in order. Items without text or media stay opaque.

    Without ``media``, which is for the last resort, media stay opaque too, and no base64 is decoded.

    If the items say more about their text and media, such as URIs, types and annotations, a last block holds all of it
    as one value. A heading above each text was rejected, because JSON or a table below a heading is previewed as prose.
    """
    parsed = list(map(McpItem.parse, items))
    blocks = [_block_of(item, parts, media=media) for item, parts in zip(items, parsed, strict=True)]
    known = [(item.said, block) for item, block in zip(parsed, blocks, strict=True) if not _is_whole(block)]
    if all(_without_none(said) in _said_by(block) for said, block in known):
        return blocks
    return [*blocks, JsonBlock([said for said, _ in known])]


def items_of_blocks(blocks: Sequence[Block]) -> list[Any]:
    """Convert blocks to the items of a result."""
    return [_item_of(block) for block in blocks]


def _block_of(item: Any, parsed: McpItem, *, media: bool) -> Block:  # noqa: ANN401 - as above
    if parsed.text is not None:
        return TextBlock(parsed.text)
    if not (media and parsed.encoded):
        return OpaqueBlock(item)
    data = decode_base64(parsed.encoded)
    if not data:  # nobody can decode it, but clients send it on, so it is counted like any other value
        return JsonBlock(item)
    held = parsed.said["resource"] if parsed.said["type"] == "resource" else parsed.said
    media_type, uri = (value if isinstance(value, str) else "" for value in (held.get("mimeType"), held.get("uri")))
    return MediaBlock(data, media_type or _UNKNOWN, name=uri.rpartition("/")[2] or None)


def _is_whole(block: Block) -> bool:
    """Return whether a block holds its whole item."""
    return isinstance(block, JsonBlock | OpaqueBlock)


def _without_none(said: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in said.items() if value is not None}


def _said_by(block: Block) -> list[dict[str, Any]]:
    """Return what else an item may say if its block still holds the whole item."""
    if not isinstance(block, MediaBlock):
        return [{"type": "text"}]
    kind, file = block.media_type.partition("/")[0], {"uri": f"file:///{block.name or ''}"}
    return [
        {"type": kind, "mimeType": block.media_type},
        {"type": "resource", "resource": {**file, "mimeType": block.media_type}},
    ]


def _item_of(block: Block) -> Any:  # noqa: ANN401 - what is not understood is what it is
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case JsonBlock():
            return {"type": "text", "text": json.dumps(block.value)}
        case MediaBlock():
            kind, data = block.media_type.partition("/")[0], encode_base64(block.data)
            if kind in {"image", "audio"}:
                return {"type": kind, "data": data, "mimeType": block.media_type}
            # The protocol requires a URI. Nothing can be read from this one: all its content is here.
            blob = {"uri": f"coatcheck:{block.name or 'content'}", "mimeType": block.media_type, "blob": data}
            return {"type": "resource", "resource": blob}
        case OpaqueBlock():
            return block.native
