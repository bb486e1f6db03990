"""How many tokens a tool result takes by the count of the agent's own model, and whether that has seen all of it.

What a count decides belongs to the core.
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
"""Of media. A result of smaller ones stays, as with Strands' own offloader."""


async def measure(content: Any, result: ToolResult, model: Model, *, limit: int) -> int | None:  # noqa: ANN401 - what a tool returned
    """Return the tokens of ``content`` in a result by the model's count; None if that passes over much of it.

    Most models' counts pass over media, and over JSON that ``json.dumps`` refuses, at any size. A second count finds
    that out. It is made only for a result that would stay, because it has at most ``limit`` tokens.
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
    """Return how many bytes of each part the count may have passed over; 0 where it surely has seen the part."""
    return [_bytes_of(block) for block in blocks_of(content)]


def _bytes_of(block: Block) -> int:
    if isinstance(block, MediaBlock):
        return len(block.data)
    if isinstance(block, JsonBlock):
        try:
            json.dumps(block.value)
        except (TypeError, ValueError):
            return _LARGE_BYTES  # or more: nothing says how long it is
    return 0
