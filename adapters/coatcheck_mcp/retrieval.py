"""The retrieval tool as MCP clients get it: its definition, its name, and its answers.

The arguments go to the core as the client sent them, because the core words errors so that a model can act on them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from coatcheck import RETRIEVAL_DESCRIPTION, RETRIEVAL_TOOL, MediaBlock, TextBlock, retrieval_schema
from coatcheck.adapting import Failure, aanswer, items_of_blocks
from coatcheck_mcp.convert import is_media
from coatcheck_mcp.hook import exceeds_hard_limit

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from coatcheck import Block, Offloader, Scope

__all__ = ("CLASH", "answer_call", "definition", "free_name", "is_retrieval_name")

PREFIX = "coatcheck_"

CLASH = "the server already has a tool named %r, so the retrieval tool is named %r"
"""The warning to whoever runs the server."""

_SHOWN_TYPE = 100
"""The most characters of a file's type that a model is told: the server may have written anything there."""


def free_name(taken: Collection[str]) -> str:
    """Return the name of the retrieval tool next to tools of these names, prefixed until none of them has it."""
    name = RETRIEVAL_TOOL
    while name in taken:
        name = PREFIX + name
    return name


def is_retrieval_name(name: str) -> bool:
    """Return whether ``free_name`` may return ``name``."""
    return name.endswith(RETRIEVAL_TOOL) and not name.removesuffix(RETRIEVAL_TOOL).replace(PREFIX, "")


def definition(name: str) -> dict[str, Any]:
    """Return the tool as ``tools/list`` shows it."""
    return {
        "name": name,
        "description": RETRIEVAL_DESCRIPTION,
        "inputSchema": retrieval_schema(),
        # Clients ask their users before they call a tool that changes something.
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
        # Otherwise, Claude Code tells the model only the tool's name, and lets it search for the definition. That would
        # cost one more turn before anything is read.
        "_meta": {"anthropic/alwaysLoad": True},
    }


async def answer_call(
    arguments: object,
    *,
    offloader: Offloader,
    scope: Scope | Exception | None,
    identity: Scope | None,
    name: str,
    native_media: bool,
) -> dict[str, Any]:
    """Return the result of a call to the retrieval tool. Never raises: the model is told what was wrong."""

    def find() -> tuple[Offloader, dict[str, Any]]:
        if isinstance(scope, Exception):
            raise scope
        return offloader, {"scope": scope, "identity": identity}

    convert = partial(_items_of, offloader=offloader)
    found = await aanswer(find, arguments, convert_media=convert, native_media=native_media, retrieval_tool=name)
    if isinstance(found, Failure):
        return {"content": [{"type": "text", "text": found.text}], "isError": True}
    return {"content": [{"type": "text", "text": found}] if isinstance(found, str) else found, "isError": False}


def _items_of(blocks: Sequence[Block], *, offloader: Offloader) -> list[Any]:
    """Return blocks as the parts of a result, without what may not stay in the result of any other tool either."""
    return items_of_blocks([_described_if_too_large(block, offloader) for block in blocks])


def _described_if_too_large(block: Block, offloader: Offloader) -> Block:
    """Describe a file that no model takes as media if its base64, which clients may show as text, is too long."""
    if not isinstance(block, MediaBlock) or is_media(block.media_type):
        return block
    size = len(block.data)
    if not exceeds_hard_limit(-(-size // 3) * 4, offloader):
        return block
    media_type = block.media_type[:_SHOWN_TYPE]
    return TextBlock(f"[{media_type}, {size:,} bytes: too large to be shown here, and no text that can be searched]")
