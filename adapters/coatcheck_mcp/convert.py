"""Convert the result of a tool call into content blocks, and blocks into such a result.

A result is a mapping, as in the protocol: ``content``, a list of parts; ``structuredContent``; ``isError``; ``_meta``.
Structured content that repeats the content is not a block of its own, so that it is stored once. Resource links and
unknown parts pass through as the same objects. If too much of a result is in no block, the whole result becomes one
JSON value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, TypeAlias

from coatcheck import Block, JsonBlock, Offloaded, TextBlock, Truncated
from coatcheck.adapting import MARK, McpItem, blocks_of_items, find_copy, items_of_blocks, references_in

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = (
    "Result",
    "blocks_of",
    "file_size",
    "is_large",
    "is_media",
    "kept_of",
    "offloaded_references",
    "plain_blocks_of",
    "rewrite",
    "side_size",
    "texts_of",
    "whole_of",
)

Result: TypeAlias = Mapping[str, Any]
"""The result of ``tools/call``, as the protocol defines it."""

_CONTENT = frozenset({"content", "structuredContent"})
_TEXT_ONLY = {"type", "text"}
_MANY_PARTS = 1_000
_MUCH_JSON = 50_000
"""Characters. Writing or measuring this much JSON takes about half a millisecond."""

_MEDIA = ("image/", "audio/", "video/", "application/pdf")
"""Media types that models take as they are, at a price that does not depend on the length of the base64."""


def blocks_of(result: Result) -> tuple[Block, ...]:
    """Convert a result into blocks, in order. Structured content comes last, unless it repeats the content."""
    blocks = blocks_of_items(result.get("content") or ())
    structured = result.get("structuredContent")
    if structured is not None and not (_repeats_parts(result) or _repeats_texts(structured, blocks)):
        blocks.append(JsonBlock(structured))
    return tuple(blocks)


def plain_blocks_of(result: Result) -> tuple[Block, ...]:
    """Convert only text, what is said about it, and structured content, all into text blocks: the last resort."""
    blocks = blocks_of_items(result.get("content") or (), media=False)
    structured, is_repeated = result.get("structuredContent"), False
    with suppress(Exception):  # this may be what failed in ``blocks_of``
        is_repeated = structured is not None and _repeats_texts(structured, blocks)
    if structured is not None and not is_repeated:
        blocks.append(JsonBlock(structured))
    return tuple(TextBlock(json.dumps(block.value)) if isinstance(block, JsonBlock) else block for block in blocks)


def _repeats_texts(structured: object, blocks: Sequence[Block]) -> bool:
    """Return whether structured content repeats the text blocks, and so would count twice."""
    return find_copy(structured, [block.text for block in blocks if isinstance(block, TextBlock)]) is not None


def _repeats_parts(result: Result) -> bool:
    """Return whether the structured content is the list of parts, as it is or as the only value of an object."""
    parts, structured = result.get("content"), result.get("structuredContent")
    if isinstance(structured, Mapping) and len(structured) == 1:
        (structured,) = structured.values()
    try:
        return bool(parts) and _equals(parts, structured)
    except RecursionError:
        return False


def _equals(one: object, other: object) -> bool:
    """Return whether two JSON values are the same. For Python, 1, 1.0 and True are equal; here, they are not.

    No JSON is written for this, because that would hold the interpreter lock for as long as the base64 in it takes.
    """
    match one, other:
        case Mapping(), Mapping():
            return one.keys() == other.keys() and all(_equals(value, other[key]) for key, value in one.items())
        case list(), list():
            return len(one) == len(other) and all(map(_equals, one, other))
        case _:
            return type(one) is type(other) and one == other


def is_large(result: Result) -> bool:
    """Return whether inspecting a result may block the event loop for too long."""
    structured = result.get("structuredContent")
    is_long = len(result.get("content") or ()) > _MANY_PARTS
    return is_long or (structured is not None and _size_of(structured, up_to=_MUCH_JSON) > _MUCH_JSON)


def texts_of(result: Result) -> list[str] | None:
    """Return the texts of a text-only result, structured content as JSON; None for any other, or a large one."""
    texts = [part.get("text") if part.get("type") == "text" else None for part in result.get("content") or ()]
    if is_large(result) or not all(isinstance(text, str) for text in texts):
        return None
    structured = result.get("structuredContent")
    return [*texts, *(() if structured is None else (json.dumps(structured),))]


def side_size(result: Result, *, up_to: int) -> int:
    """Estimate the JSON length of all but text, media and structured content; stop counting above ``up_to``.

    That is links, annotations and ``_meta``. The JSON itself is not written: no other thread could run meanwhile.
    """
    size = _size_of([{key: value for key, value in result.items() if key not in _CONTENT}], up_to=up_to)
    for part in result.get("content") or ():
        if size > up_to:
            break
        if part.keys() != _TEXT_ONLY:  # most parts have only these
            size += _size_of(McpItem.parse(part).said, up_to=up_to - size)
    return size


def _size_of(value: object, *, up_to: int) -> int:
    """Estimate the characters of a value as JSON; stop counting above ``up_to``."""
    size, left = 0, [value]
    while left and size <= up_to:
        one = left.pop()
        match one:
            case str():
                size += len(one) if len(one) > up_to else len(encode_basestring(one))
            case Mapping():
                size += 2 + 4 * len(one)
                left += [*one, *one.values()]
            case list() | tuple():
                size += 2 + 2 * len(one)
                left += one
            case bool() | None:
                size += 5
            case int():
                size += 1 + one.bit_length() * 3 // 10
            case _:  # a float
                size += 18
    return size


def file_size(result: Result) -> int:
    """Return the length of the base64 that a client may show as text, because no model takes it as media.

    That is any file of a type not in ``_MEDIA``, and any file that the structured content repeats.
    """
    size, is_repeated = 0, _repeats_parts(result)
    for part in result.get("content") or ():
        item = McpItem.parse(part)
        if item.encoded is not None:
            held = item.said["resource"] if item.said["type"] == "resource" else item.said
            size += 0 if is_media(str(held.get("mimeType"))) and not is_repeated else len(item.encoded)
    return size


def is_media(media_type: str) -> bool:
    """Return whether models take files of this type as they are."""
    return media_type.startswith(_MEDIA)


def whole_of(result: Result) -> tuple[Block, ...]:
    """Convert a whole result into one JSON value, because too much of it would be in no block."""
    return (JsonBlock(dict(result)),)


def kept_of(result: Result, *, whole: bool) -> dict[str, Any]:
    """Return what stays of a result next to its new content; if it left ``whole``, only whether it is an error."""
    return {key: value for key, value in result.items() if (key == "isError" if whole else key != "structuredContent")}


def rewrite(kept: Result, outcome: Offloaded | Truncated) -> dict[str, Any]:
    """Return what ``kept_of`` kept, with the content and the mark of ``outcome``."""
    # The mark is for the client's own code. Clients keep ``_meta``, and do not show it to a model.
    return {
        **kept,
        "content": items_of_blocks(outcome.blocks),
        "_meta": {**(kept.get("_meta") or {}), MARK: outcome.mark},
    }


def offloaded_references(result: object) -> tuple[str, ...]:
    """Return the references in an offloaded tool result, for use in clients; empty if nothing was stored.

    Takes a mapping, the ``mcp`` package's ``CallToolResult``, or the result of a call with FastMCP's client.
    """
    meta = result.get("_meta") if isinstance(result, Mapping) else getattr(result, "meta", None)
    return references_in(meta.get(MARK)) if isinstance(meta, Mapping) else ()
