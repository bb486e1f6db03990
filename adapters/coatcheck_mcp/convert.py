"""The two conversions: the result of a tool call into content blocks, and blocks into such a result.

A result is a mapping, as the protocol has it: ``content``, a list of parts; ``structuredContent``; ``isError``;
``_meta``. Structured content that says the same as the texts is not a block of its own, so that it is stored once.
Resource links and parts that are not understood pass through, the same object. Where a server hides more than that in
them, the whole result is one JSON value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from coatcheck import Block, JsonBlock, Offloaded, TextBlock, Truncated
from coatcheck.adapting import MARK, McpItem, blocks_of_items, find_copy, items_of_blocks, references_in

__all__ = (
    "Result",
    "blocks_of",
    "file_size",
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

_MEDIA = ("image/", "audio/", "video/", "application/pdf")
"""Types that models take as they are, at a price that does not depend on the length of the base64."""


def blocks_of(result: Result) -> tuple[Block, ...]:
    """Convert a result, in order; structured content that the texts do not say comes last."""
    blocks = blocks_of_items(result.get("content") or ())
    structured = result.get("structuredContent")
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    if structured is not None and find_copy(structured, texts) is None:
        blocks.append(JsonBlock(structured))
    return tuple(blocks)


def plain_blocks_of(result: Result) -> tuple[Block, ...]:
    """Convert nothing but texts, what is said about them, and structured content into text; for the last resort."""
    blocks = blocks_of_items(result.get("content") or (), media=False)
    structured = result.get("structuredContent")
    if structured is not None:
        blocks.append(JsonBlock(structured))
    return tuple(TextBlock(json.dumps(block.value)) if isinstance(block, JsonBlock) else block for block in blocks)


def texts_of(result: Result) -> list[str] | None:
    """Return what a result without media says, structured content as JSON; None for any other result."""
    texts = [part.get("text") if part.get("type") == "text" else None for part in result.get("content") or ()]
    if not all(isinstance(text, str) for text in texts):
        return None
    structured = result.get("structuredContent")
    return [*texts, *(() if structured is None else (json.dumps(structured),))]


def side_size(result: Result) -> int:
    """Return how long the JSON is of what is not text, medium or structured content: links, annotations, ``_meta``."""
    fields = {key: value for key, value in result.items() if key not in {"content", "structuredContent"}}
    sides = [fields, *(McpItem.parse(part).said for part in result.get("content") or ())]
    return len(json.dumps(sides, ensure_ascii=False, default=str))


def file_size(result: Result) -> int:
    """Return how long the base64 is of files that no model takes as a medium: a client has only their text to show."""
    resources = [part.get("resource") for part in result.get("content") or () if part.get("type") == "resource"]
    return sum(
        len(held["blob"])
        for held in resources
        if isinstance(held, Mapping)
        and isinstance(held.get("blob"), str)
        and not str(held.get("mimeType")).startswith(_MEDIA)
    )


def whole_of(result: Result) -> tuple[Block, ...]:
    """Convert a result into one JSON value, as it came: for one that is too large in what no block holds."""
    return (JsonBlock(dict(result)),)


def kept_of(result: Result, *, whole: bool) -> dict[str, Any]:
    """Return what stays of a result next to other content; of one that left ``whole``, whether it is an error."""
    return {key: value for key, value in result.items() if (key == "isError" if whole else key != "structuredContent")}


def rewrite(kept: Result, outcome: Offloaded | Truncated) -> dict[str, Any]:
    """Return what ``kept_of`` kept, marked, with the content of ``outcome``."""
    # The mark is for the client's own code. Clients keep `_meta` and show it to no model.
    return {
        **kept,
        "content": items_of_blocks(outcome.blocks),
        "_meta": {**(kept.get("_meta") or {}), MARK: outcome.mark},
    }


def offloaded_references(result: object) -> tuple[str, ...]:
    """For clients: the references in a tool result that was offloaded on its way; empty where nothing was stored.

    Takes a result as a mapping, as the ``mcp`` package has it (``CallToolResult``), or as FastMCP's client has it.
    """
    meta = result.get("_meta") if isinstance(result, Mapping) else getattr(result, "meta", None)
    return references_in(meta.get(MARK)) if isinstance(meta, Mapping) else ()
