"""Give a host's ``custom_data_extractor`` what the tool or server returned, not the placeholder in its place.

What the extractor returns goes to the host alone; the SDK sends none of it to a model.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from agents.tool_context import ToolContext

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("CustomData",)


class CustomData:
    """Holds the fields of results that left the conversation until their extractor is called."""

    def __init__(self) -> None:
        self._left: WeakKeyDictionary[ToolContext[Any], tuple[object, dict[str, Any]]] = WeakKeyDictionary()

    def note(self, context: object, shown: object, **left: object) -> None:
        """Note that ``shown`` replaced the result of this call, and which of its fields the extractor gets."""
        if isinstance(context, ToolContext):  # a host's own call has no extractor
            self._left[context] = shown, left

    async def extract(self, extractor: Callable[[Any], Any], context: Any) -> Any:  # noqa: ANN401 - one for each kind of tool
        """Call an extractor with the fields that left, unless the output was replaced since; return its result."""
        call = context.tool_context if hasattr(context, "tool_context") else context.run_context
        shown, left = self._left.pop(call, (None, {}))
        is_replaced = getattr(context, "output", shown) is not shown  # such as by a guardrail
        data = extractor(context if is_replaced else replace(context, **left))
        return await data if inspect.isawaitable(data) else data
