"""How many tokens a tool result takes, by the agent's own model, and whether its count has seen all of the result.

What a count decides belongs to the core.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from coatcheck_strands.convert import texts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strands.models import Model
    from strands.types.tools import ToolResult

__all__ = ("measure",)

_MEDIA = frozenset({"image", "document", "audio", "video"})


async def measure(content: Any, result: ToolResult, model: Model, *, limit: int) -> int | None:  # noqa: ANN401 - what a tool returned
    """Return the tokens of ``content`` in a result by the model's count; None if that passes over some of it.

    Most models' count passes over media, and over JSON that ``json.dumps`` refuses, at any size. That is found out by a
    second count, and only of what stays, because it has at most ``limit`` tokens.
    """
    tokens = await _count(content, result, model)
    if tokens > limit or not isinstance(content, list) or texts_of(content) is not None:
        return tokens
    seen = await asyncio.to_thread(_surely_seen, content)
    return None if len(seen) < len(content) and await _count(seen, result, model) == tokens else tokens


async def _count(content: Any, result: ToolResult, model: Model) -> int:  # noqa: ANN401 - as above
    measured: Any = {"toolUseId": result["toolUseId"], "status": result["status"], "content": content}
    return await model.count_tokens([{"role": "user", "content": [{"toolResult": measured}]}])


def _surely_seen(content: Sequence[Any]) -> list[Any]:
    return [part for part in content if isinstance(part, dict) and _MEDIA.isdisjoint(part) and _is_json(part)]


def _is_json(part: dict[str, Any]) -> bool:
    try:
        json.dumps(part.get("json"))
    except (TypeError, ValueError):
        return False
    return True
