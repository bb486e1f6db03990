"""What a tool result has next to its content, such as MCP's structured content: stored if large, and given back.

Usually it is the same data once more. No model reads it, but it would stay in every session, as large as the result.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from strands.types.tools import ToolResult

from coatcheck import Always, Offloaded
from coatcheck.adapting import MARK, Delivery, is_light, mark_reference, read_marks
from coatcheck_strands.convert import mark_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from strands.hooks import AfterToolCallEvent

    from coatcheck import Content, Scope, Truncated
    from coatcheck.adapting import Arrival, Batch
    from coatcheck_strands.hook import ContextOffloader

__all__ = ("Copies", "disown_marks", "put_back_copies")

NEXT_TO_CONTENT = ("structuredContent", "metadata")
"""What tools of MCP servers add next to the content."""

TAKEN_OUT = "taken_out"
"""In our mark on a result: which of these we took out. A server sets their values, and could write marks of its own,
but it cannot set ours."""

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
        self.plugin: ContextOffloader = plugin
        self.event: AfterToolCallEvent = event
        self.scope: Callable[[], Scope | None] = scope
        self.raw: ToolResult = event.result
        self._policy = Always() if is_stored else None

    @property
    def is_heavy(self) -> bool:
        """Whether there is much to write as JSON."""
        return not is_light(_values_in(self.raw))

    def look(self) -> Sequence[Batch]:
        """Return each as a result of its own, measured by the core: the model gets none of them."""
        arrivals = [
            replace(
                self.plugin.arrival_of(self.event, [{"json": value}], native=key, policy=self._policy),
                measured_tokens=None,
            )
            for key, value in _values_in(self.raw).items()
            if _is_stored(value)
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
        mark = mark_in(self.raw)
        taken_out = {*mark.get(TAKEN_OUT, ()), *stored}  # another offloader may have taken out the other
        return cast("ToolResult", {**self.raw, **stored, MARK: {**mark, TAKEN_OUT: sorted(taken_out)}})


def disown_marks(result: ToolResult) -> ToolResult:
    """Return a tool's result with a note that nothing was taken out, where a value of its own looks like our mark."""
    is_noted = MARK in result or not read_marks(_values_in(result))  # an offloaded result may be an earlier version's
    return result if is_noted else cast("ToolResult", {**result, MARK: {TAKEN_OUT: []}})


def put_back_copies(result: ToolResult, load: Callable[[str], Content]) -> ToolResult:
    """Return a tool result with what ``Copies`` stored of it back in place.

    Where there is no note, every mark is ours: an earlier version wrote no notes, and this one notes foreign marks.
    """
    note, marks = mark_in(result), read_marks(_values_in(result))
    if TAKEN_OUT in note:
        marks = {key: marked for key, marked in marks.items() if key in note[TAKEN_OUT]}
    return cast("ToolResult", {**result, **{key: json.loads(load(marked).data) for key, marked in marks.items()}})


def _values_in(result: ToolResult) -> dict[str, Any]:
    """Return what a tool result has next to its content, by its keys."""
    return {key: value for key, value in result.items() if key in NEXT_TO_CONTENT}


def _is_stored(value: object) -> bool:
    """Return whether a value is large and comes back from JSON unchanged, which int keys and tuples do not.

    There is no upper limit: ``find_copy``, which has one, would leave the largest values in every session.
    """
    try:
        text = json.dumps(value)
        if not isinstance(value, dict | list) or len(text) <= SMALL_CHARACTERS:
            return False
        back = json.loads(text)
        return bool(back == value) or _is_same(back, value)
    except (TypeError, ValueError, RecursionError):
        return False


def _is_same(back: object, value: object) -> bool:
    """Return whether what JSON gave back is what it was given, even where that holds NaN, which equals nothing."""
    if isinstance(back, dict) and isinstance(value, dict):
        return back.keys() == value.keys() and all(_is_same(each, value[key]) for key, each in back.items())
    if isinstance(back, list) and isinstance(value, list):
        return len(back) == len(value) and all(map(_is_same, back, value))
    if isinstance(back, float) and isinstance(value, float) and math.isnan(back):
        return math.isnan(value)
    return back == value
