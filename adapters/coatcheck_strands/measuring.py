"""Count a tool result's tokens with the agent's own model, and check whether the count covers all of the result.

The core decides what follows from a count.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from coatcheck import Block, JsonBlock, MediaBlock
from coatcheck_strands.convert import blocks_of, texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strands.models import Model
    from strands.types.tools import ToolResult

__all__ = ("measure",)

_LARGE_BYTES = 10_000
"""Bytes of media. A result with less stays, as with Strands' own offloader."""


async def measure(content: Any, result: ToolResult, model: Model, *, limit: int) -> int | None:  # noqa: ANN401 - what a tool returned
    """Return the tokens of ``content`` in a result by the model's count; None if the count ignores much of it.

    Most models' counts ignore media, and JSON that ``json.dumps`` refuses, at any size. A second count, without these
    parts, detects that. It is made only for a result that would stay, because it has at most ``limit`` tokens.
    """
    tokens = await _count(content, result, model)
    if tokens > limit or not isinstance(content, list) or texts_of(content) is not None:
        return tokens
    unsure = await asyncio.to_thread(_bytes_unsure, content)
    if sum(unsure) < _LARGE_BYTES:
        return tokens
    sure = [part for part, size in zip(content, unsure, strict=True) if not size]
    return None if await _count(sure, result, model) == tokens else tokens


async def _count(content: Any, result: ToolResult, model: Model) -> int:  # noqa: ANN401 - as above
    measured: Any = {"toolUseId": result["toolUseId"], "status": result["status"], "content": content}
    return await model.count_tokens([{"role": "user", "content": [{"toolResult": measured}]}])


def _bytes_unsure(content: Sequence[Any]) -> list[int]:
    """Return how many bytes of each part the count may have ignored; 0 for a part that it certainly counted."""
    return [_bytes_of(block) for block in blocks_of(content)]


def _bytes_of(block: Block) -> int:
    if isinstance(block, MediaBlock):
        return len(block.data)
    if isinstance(block, JsonBlock):
        try:
            json.dumps(block.value)
        except (TypeError, ValueError):
            return _LARGE_BYTES  # a lower bound, because its length is unknown
    return 0
