"""Items of the Model Context Protocol, which many frameworks pass on as they are: into blocks, and blocks into items.

An item is a mapping, with the protocol's own names. Only items belong here. What else a result has, such as structured
content, each adapter treats in its own way.
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
    """The base64 of its medium; None for an item without one."""

    said: Any
    """What else the item says: its type, URI, annotations, ``_meta``. An item that is not understood is here whole."""

    @classmethod
    def parse(cls, item: Any) -> McpItem:  # noqa: ANN401 - whatever a server sent
        """Take an item apart. Links, and what is not understood, have neither a text nor a medium."""
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
    """Convert the items of a result, in order. Those without a text or a medium stay opaque.

    Without ``media``, those with a medium stay opaque too, and no base64 is decoded: for the last resort.

    The last block has what the items say about their texts and media: URIs, types, annotations. It is one value for all
    of them. A heading for each text was rejected, because JSON or a table below a heading is previewed as prose.
    """
    parsed = list(map(McpItem.parse, items))
    blocks = [_block_of(item, parts, media=media) for item, parts in zip(items, parsed, strict=True)]
    known = [(item.said, block) for item, block in zip(parsed, blocks, strict=True) if not _is_whole(block)]
    if all(_without_none(said) in _said_by(block) for said, block in known):
        return blocks
    return [*blocks, JsonBlock([said for said, _ in known])]


def items_of_blocks(blocks: Sequence[Block]) -> list[Any]:
    """Convert blocks into the items of a result."""
    return [_item_of(block) for block in blocks]


def _block_of(item: Any, parsed: McpItem, *, media: bool) -> Block:  # noqa: ANN401 - as above
    if parsed.text is not None:
        return TextBlock(parsed.text)
    if not (media and parsed.encoded):
        return OpaqueBlock(item)
    data = decode_base64(parsed.encoded)
    if not data:  # nobody can decode it, and clients send it on, so it is counted like any other value
        return JsonBlock(item)
    held = parsed.said["resource"] if parsed.said["type"] == "resource" else parsed.said
    media_type, uri = (value if isinstance(value, str) else "" for value in (held.get("mimeType"), held.get("uri")))
    return MediaBlock(data, media_type or _UNKNOWN, name=uri.rpartition("/")[2] or None)


def _is_whole(block: Block) -> bool:
    """Return whether a block holds all of its item."""
    return isinstance(block, JsonBlock | OpaqueBlock)


def _without_none(said: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in said.items() if value is not None}


def _said_by(block: Block) -> list[dict[str, Any]]:
    """Return what else an item may say so that its block still holds all of the item."""
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
            # The protocol asks for a URI. Nobody can read this one: its content is all here.
            blob = {"uri": f"coatcheck:{block.name or 'content'}", "mimeType": block.media_type, "blob": data}
            return {"type": "resource", "resource": blob}
        case OpaqueBlock():
            return block.native
