"""Two converters: what a tool result of Strands holds becomes content blocks, and blocks become its content.

Only these belong here, and the mark that a rewritten result carries. A block is a dictionary with one key, its kind.
Text, JSON, images, documents, audio and video are taken apart where their bytes are at hand; every other block, and one
whose source is a location, passes through, the same object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from coatcheck import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock

if TYPE_CHECKING:
    from strands.types.content import Message
    from strands.types.tools import ToolResult, ToolResultContent

    from coatcheck import Offloaded, Reference, Truncated

__all__ = (
    "blocks_of",
    "content_of",
    "large_beside",
    "offloaded_references",
    "plain_blocks_of",
    "rewritten",
    "set_apart",
    "set_apart_in",
    "texts_of",
)

MARK = "coatcheck"
"""The key in a rewritten tool result. Sessions keep it; Strands' models send content, id and status only."""

BESIDE = ("structuredContent", "metadata")
"""What tools of MCP servers add beside the content, as a rule the same data once more. No model reads it."""

SMALL_CHARACTERS = 1_000
"""Of JSON. What is no longer than this is not worth an entry of its own."""

_TYPES = {"image": "image", "document": "application", "audio": "audio", "video": "video"}
"""Kind of block to the first half of the MIME type; the second half is its format."""


def blocks_of(content: Sequence[ToolResultContent]) -> tuple[Block, ...]:
    """Return the content of a tool result as content blocks, in order."""
    return tuple([_block_of(native) for native in content])


def plain_blocks_of(content: object) -> tuple[Block, ...]:
    """Return the content of a tool result with nothing but its texts taken out: for where conversion failed."""
    natives = content if isinstance(content, list | tuple) else [content]
    texts = [native.get("text") if isinstance(native, dict) and len(native) == 1 else None for native in natives]
    return tuple(
        TextBlock(text) if isinstance(text, str) else OpaqueBlock(native)
        for native, text in zip(natives, texts, strict=True)
    )


def texts_of(content: Sequence[ToolResultContent]) -> list[str] | None:
    """Return the texts of a tool result that is nothing but texts, as most are; None for any other."""
    texts = [native.get("text") if isinstance(native, dict) else None for native in content]
    return texts if all(isinstance(text, str) for text in texts) else None  # type: ignore[return-value]


def content_of(blocks: Sequence[Block], *, name: str = "document") -> list[ToolResultContent]:
    """Return blocks as content of a tool result; ``name`` is for documents that have none, which Strands demands."""
    return [_native_of(block, name=name) for block in blocks]


def rewritten(result: ToolResult, outcome: Offloaded | Truncated) -> ToolResult:
    """Return a marked tool result with the content of ``outcome``, and with all else that the old one has."""
    return cast("ToolResult", {**result, "content": content_of(outcome.blocks), MARK: outcome.mark})


def large_beside(result: ToolResult) -> dict[str, Any]:
    """Return what a tool result has beside its content that is JSON, so that it comes back as it was, and large."""
    return {key: value for key, value in cast("dict[str, Any]", result).items() if key in BESIDE and _is_large(value)}


def set_apart(result: ToolResult, key: str, *, reference: Reference) -> ToolResult:
    """Return a tool result with a mark in the place of what it has under ``key``."""
    return cast("ToolResult", {**result, key: {MARK: {"reference": reference.id, "bytes": reference.size}}})


def set_apart_in(result: ToolResult) -> dict[str, str]:
    """Return the keys of a tool result that hold a mark, with the reference in each."""
    found = {key: cast("dict[str, Any]", result).get(key) for key in BESIDE}
    marks = {key: value.get(MARK) for key, value in found.items() if isinstance(value, Mapping)}
    return {key: str(mark["reference"]) for key, mark in marks.items() if isinstance(mark, Mapping)}


def offloaded_references(message: Message | ToolResult) -> tuple[str, ...]:
    """Return the references in a message, or in one tool result, for user interfaces; empty where nothing left.

    Pass one to ``ContextOffloader.offloader_of(agent).load`` for the whole content. More than eight texts are one
    content, with ``items``; of more than eight contents there is one reference, to the text that lists theirs, one a
    line.
    """
    blocks = cast("Sequence[Any]", message.get("content") or ())
    marks = [message.get(MARK), *(block["toolResult"].get(MARK) for block in blocks if "toolResult" in block)]
    named = [mark.get("references") for mark in marks if isinstance(mark, Mapping)]
    return tuple(str(reference) for references in named if isinstance(references, list) for reference in references)


def _block_of(native: Any) -> Block:  # noqa: ANN401 - Strands types four kinds of blocks and passes on more
    if isinstance(native, dict) and len(native) != 1:  # what has more than a kind would lose it
        return OpaqueBlock(native)
    match native:
        case {"text": str(text)}:
            return TextBlock(text)
        case {"json": value}:
            return JsonBlock(value)
        case {"image": dict(media)} | {"document": dict(media)} | {"audio": dict(media)} | {"video": dict(media)}:
            return _media_of(next(kind for kind in _TYPES if kind in native), media) or OpaqueBlock(native)
        case _:
            return OpaqueBlock(native)


def _media_of(kind: str, media: Mapping[str, Any]) -> MediaBlock | None:
    source = media.get("source")
    data = source.get("bytes") if isinstance(source, Mapping) else None
    if not isinstance(data, bytes | bytearray) or not data:
        return None
    name = media.get("name")
    media_type = f"{_TYPES[kind]}/{media.get('format') or 'unknown'}"
    return MediaBlock(bytes(data), media_type, name=name if isinstance(name, str) else None)


def _native_of(block: Block, *, name: str) -> Any:  # noqa: ANN401 - unknown blocks are what they are
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


def _is_large(value: object) -> bool:
    try:
        return isinstance(value, dict | list) and len(json.dumps(value)) > SMALL_CHARACTERS
    except (TypeError, ValueError, RecursionError):
        return False
