"""What a tool result has next to its content, as MCP's structured content: stored where it is large, and given back.

As a rule it is the same data once more. No model reads it, but it would stay in every session, as large as the result.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from strands.types.tools import ToolResult

from coatcheck import Always, Offloaded
from coatcheck.adapting import Delivery, mark_reference, read_marks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from strands.hooks import AfterToolCallEvent

    from coatcheck import Content, Scope, Truncated
    from coatcheck.adapting import Arrival, Batch
    from coatcheck_strands.hook import ContextOffloader

__all__ = ("Copies", "put_back_copies")

NEXT_TO_CONTENT = ("structuredContent", "metadata")
"""What tools of MCP servers add next to the content."""

SMALL_CHARACTERS = 1_000
"""Of JSON. A shorter value is not worth an entry of its own."""


class Copies(Delivery[ToolResult]):
    """The large values next to the content of one tool result; they stay where storing them fails."""

    def __init__(
        self,
        plugin: ContextOffloader,
        event: AfterToolCallEvent,
        scope: Callable[[], Scope | None],
        *,
        is_stored: bool,
    ) -> None:
        """Take the result of ``event``; ``is_stored`` says whether its content was stored: then these are too."""
        self.plugin, self.event, self.scope, self.raw = plugin, event, scope, event.result
        self._details = {"policy": Always()} if is_stored else {}

    def look(self) -> Sequence[Batch]:
        """Return each as a result of its own."""
        held = cast("dict[str, Any]", self.raw)
        copies = {key: value for key, value in held.items() if key in NEXT_TO_CONTENT and _is_large(value)}
        arrivals = [
            self.plugin.arrival_of(self.event, [{"json": value}], native=key, **self._details)
            for key, value in copies.items()
        ]
        return (self.plugin.batch_of(self.event, arrivals, scope=self.scope),) if arrivals else ()

    def look_again(self) -> Sequence[Batch]:
        """Return nothing: no model reads them, so they need no limit."""
        return ()

    def put_back(self, changed: Sequence[tuple[Arrival, Offloaded | Truncated]]) -> ToolResult:
        """Return another result, with marks in place of what was stored."""
        stored = {
            arrival.native: mark_reference(outcome.references[0].id, bytes=outcome.references[0].size)
            for arrival, outcome in changed
            if isinstance(outcome, Offloaded)
        }
        if stored:
            self.plugin.note_scope(self.event)
        return cast("ToolResult", {**self.raw, **stored})


def put_back_copies(result: ToolResult, load: Callable[[str], Content]) -> ToolResult:
    """Return a tool result with what ``Copies`` stored of it back in place."""
    held = cast("dict[str, Any]", result)
    marks = read_marks({key: held.get(key) for key in NEXT_TO_CONTENT})
    return cast("ToolResult", {**result, **{key: json.loads(load(marked).data) for key, marked in marks.items()}})


def _is_large(value: object) -> bool:
    try:
        return isinstance(value, dict | list) and len(json.dumps(value)) > SMALL_CHARACTERS
    except (TypeError, ValueError, RecursionError):
        return False
