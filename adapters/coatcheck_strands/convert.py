"""Convert the content of a tool result into content blocks, and blocks into such content.

Only these two conversions and the marks on a rewritten result belong here. A part of the content is a dictionary with
one key, its kind. Text, JSON, and the bytes of images, documents, audio and video are converted. Every other part, such
as one that names a location instead of bytes, passes through as the same object.
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
"""Maps the kind of a part to the first half of its MIME type. The second half is the part's format."""


def blocks_of(content: Sequence[ToolResultContent]) -> tuple[Block, ...]:
    """Convert the content of a tool result into blocks, in order."""
    return tuple([_block_of(part) for part in content])


def plain_blocks_of(content: object) -> tuple[Block, ...]:
    """Convert only the text of a tool result; every other part stays opaque."""
    return plain_blocks(content, lambda part: part.get("text") if isinstance(part, dict) and len(part) == 1 else None)


def texts_of(content: Sequence[ToolResultContent]) -> list[str] | None:
    """Return the strings of a tool result that holds only text, as most do; None for any other."""
    texts = [part.get("text") if isinstance(part, dict) else None for part in content]
    return texts if all(isinstance(text, str) for text in texts) else None  # type: ignore[return-value]


def content_of(blocks: Sequence[Block], *, name: str = "document") -> list[ToolResultContent]:
    """Convert blocks into content. A document without a name gets ``name``, because Strands requires one."""
    return [_part_of(block, name=name) for block in blocks]


def rewrite(result: ToolResult, outcome: Offloaded | Truncated) -> ToolResult:
    """Return a marked copy of a tool result, with the content of ``outcome``."""
    # Sessions keep the mark; Strands' models send content, id and status only.
    mark = {**mark_in(result), **outcome.mark}
    return cast("ToolResult", {**result, "content": content_of(outcome.blocks), MARK: mark})


def mark_in(result: ToolResult) -> Mapping[str, Any]:
    """Return our mark on a tool result: its references, and what ``copies`` took out. Empty if there is none."""
    mark = cast("dict[str, Any]", result).get(MARK)
    return mark if isinstance(mark, Mapping) else {}


def offloaded_references(message: Message | ToolResult) -> tuple[str, ...]:
    """Return the references in a message or one tool result, for user interfaces. Empty if nothing was stored.

    Pass one to ``ContextOffloader.offloader_of(agent).load`` for the whole content. More than eight text blocks are
    stored as one content, with ``items``. More than eight contents share one reference, to text that lists theirs, one
    per line.
    """
    blocks = cast("Sequence[Any]", message.get("content") or ())
    marks = [message.get(MARK), *(block["toolResult"].get(MARK) for block in blocks if "toolResult" in block)]
    return tuple(reference for mark in marks for reference in references_in(mark))


def _block_of(part: Any) -> Block:  # noqa: ANN401 - Strands types four kinds, and passes on others
    if isinstance(part, dict) and len(part) != 1:  # a part with more keys than its kind would lose the rest
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


def _part_of(block: Block, *, name: str) -> Any:  # noqa: ANN401 - unknown parts can be anything
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
