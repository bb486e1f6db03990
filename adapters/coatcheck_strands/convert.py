"""The two conversions: the content of a tool result into content blocks, and blocks into such content.

Only these belong here, and the marks on a rewritten result. A part of the content is a dictionary with one key, its
kind. Text, JSON, images, documents, audio and video are converted if the part holds their bytes; every other part, and
one that names a location instead of bytes, passes through, the same object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck.adapting import MARK, plain_blocks, references_in

if TYPE_CHECKING:
    from strands.types.content import Message
    from strands.types.tools import ToolResult, ToolResultContent

    from coatcheck import Offloaded, Truncated

__all__ = (
    "blocks_of",
    "content_of",
    "mark_in",
    "offloaded_references",
    "plain_blocks_of",
    "rewrite",
    "texts_of",
)

_TYPES = {"image": "image", "document": "application", "audio": "audio", "video": "video"}
"""Kind of block to the first half of the MIME type; the second half is its format."""


def blocks_of(content: Sequence[ToolResultContent]) -> tuple[Block, ...]:
    """Convert the content of a tool result, in order."""
    return tuple([_block_of(part) for part in content])


def plain_blocks_of(content: object) -> tuple[Block, ...]:
    """Convert nothing but the texts of a tool result."""
    return plain_blocks(content, lambda part: part.get("text") if isinstance(part, dict) and len(part) == 1 else None)


def texts_of(content: Sequence[ToolResultContent]) -> list[str] | None:
    """Return the texts of a tool result that is nothing but texts, as most are; None for any other."""
    texts = [part.get("text") if isinstance(part, dict) else None for part in content]
    return texts if all(isinstance(text, str) for text in texts) else None  # type: ignore[return-value]


def content_of(blocks: Sequence[Block], *, name: str = "document") -> list[ToolResultContent]:
    """Convert blocks into content; ``name`` is for documents that have none, because Strands demands one."""
    return [_part_of(block, name=name) for block in blocks]


def rewrite(result: ToolResult, outcome: Offloaded | Truncated) -> ToolResult:
    """Return a marked tool result with the content of ``outcome``, and with all else that the old one has."""
    # Sessions keep the mark; Strands' models send content, id and status only.
    mark = {**mark_in(result), **outcome.mark}
    return cast("ToolResult", {**result, "content": content_of(outcome.blocks), MARK: mark})


def mark_in(result: ToolResult) -> Mapping[str, Any]:
    """Return our mark of a tool result: its references, and what ``copies`` took out; empty where there is none."""
    mark = cast("dict[str, Any]", result).get(MARK)
    return mark if isinstance(mark, Mapping) else {}


def offloaded_references(message: Message | ToolResult) -> tuple[str, ...]:
    """Return the references in a message, or in one tool result, for user interfaces; empty where nothing was stored.

    Pass one to ``ContextOffloader.offloader_of(agent).load`` for the whole content. More than eight texts are one
    content, with ``items``; more than eight contents have one reference, to a text that lists theirs, one per line.
    """
    blocks = cast("Sequence[Any]", message.get("content") or ())
    marks = [message.get(MARK), *(block["toolResult"].get(MARK) for block in blocks if "toolResult" in block)]
    return tuple(reference for mark in marks for reference in references_in(mark))


def _block_of(part: Any) -> Block:  # noqa: ANN401 - Strands types four kinds and passes on more
    if isinstance(part, dict) and len(part) != 1:  # a part that has more than its kind would lose the rest
        return OpaqueBlock(part)
    match part:
        case {"text": str(text)}:
            return TextBlock(text)
        case {"json": value}:
            return JsonBlock(value)
        case {"image": dict(media)} | {"document": dict(media)} | {"audio": dict(media)} | {"video": dict(media)}:
            return _media_of(next(kind for kind in _TYPES if kind in part), media) or OpaqueBlock(part)
        case _:
            return OpaqueBlock(part)


def _media_of(kind: str, media: Mapping[str, Any]) -> MediaBlock | None:
    source = media.get("source")
    data = source.get("bytes") if isinstance(source, Mapping) else None
    if not isinstance(data, bytes | bytearray) or not data:
        return None
    name = media.get("name")
    media_type = f"{_TYPES[kind]}/{media.get('format') or 'unknown'}"
    return MediaBlock(bytes(data), media_type, name=name if isinstance(name, str) else None)


def _part_of(block: Block, *, name: str) -> Any:  # noqa: ANN401 - unknown parts are what they are
    match block:
        case TextBlock():
            return {"text": block.text}
        case JsonBlock():
            return {"json": block.value}
        case MediaBlock():
            first, _, form = block.media_type.partition("/")
            kind = first if first in _TYPES else "document"
            named = {"name": block.name or name} if kind == "document" else {}
            return {kind: {"format": form, **named, "source": {"bytes": block.data}}}
        case OpaqueBlock():
            return block.native
