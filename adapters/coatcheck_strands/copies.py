"""Store large values that a tool result has next to its content, such as MCP's structured content, and restore them.

Usually they repeat the content. No model reads them, but they would stay in every session, as large as the result.
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
"""The keys that tools of MCP servers add next to the content."""

TAKEN_OUT = "taken_out"
"""Key in our mark on a result: which of these values we took out. A server sets the values, so it could write marks of
its own there, but it cannot set ours."""

SMALL_CHARACTERS = 1_000
"""Characters of JSON. A value of at most this length is not worth its own entry."""


class Copies(Delivery[ToolResult]):
    """The large values next to the content of one tool result. They stay if storing them fails."""

    def __init__(
        self,
        plugin: ContextOffloader,
        event: AfterToolCallEvent,
        scope: Callable[[], Scope | None],
        *,
        is_stored: bool,
    ) -> None:
        """Take the result of ``event``. If ``is_stored``, its content was stored, and these values are too."""
        self.plugin: ContextOffloader = plugin
        self.event: AfterToolCallEvent = event
        self.scope: Callable[[], Scope | None] = scope
        self.raw: ToolResult = event.result
        self._policy = Always() if is_stored else None

    @property
    def is_heavy(self) -> bool:
        """Whether there is much to serialize as JSON."""
        return not is_light(_values_in(self.raw))

    def look(self) -> Sequence[Batch]:
        """Return each value as its own result. The core measures them, because the model sees none of them."""
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
        """Return nothing. No model reads these values, so they need no limit."""
        return ()

    def put_back(self, changed: Sequence[tuple[Arrival, Offloaded | Truncated]]) -> ToolResult:
        """Return a new result, with marks in place of the stored values."""
        stored = {
            arrival.native: mark_reference(outcome.references[0].id, bytes=outcome.references[0].size)
            for arrival, outcome in changed
            if isinstance(outcome, Offloaded)
        }
        if stored:
            self.plugin.note_scope(self.event)
        mark = mark_in(self.raw)
        taken_out = {*mark.get(TAKEN_OUT, ()), *stored}  # another offloader may have taken out the other value
        return cast("ToolResult", {**self.raw, **stored, MARK: {**mark, TAKEN_OUT: sorted(taken_out)}})


def disown_marks(result: ToolResult) -> ToolResult:
    """Return a result. If one of its own values looks like our mark, add a note that nothing was taken out."""
    is_noted = MARK in result or not read_marks(_values_in(result))  # an earlier version may have offloaded it
    return result if is_noted else cast("ToolResult", {**result, MARK: {TAKEN_OUT: []}})


def put_back_copies(result: ToolResult, load: Callable[[str], Content]) -> ToolResult:
    """Return a tool result with the values that ``Copies`` stored back in place.

    Without a note, every mark is ours: an earlier version wrote no notes, and this one notes foreign marks.
    """
    note, marks = mark_in(result), read_marks(_values_in(result))
    if TAKEN_OUT in note:
        marks = {key: marked for key, marked in marks.items() if key in note[TAKEN_OUT]}
    return cast("ToolResult", {**result, **{key: json.loads(load(marked).data) for key, marked in marks.items()}})


def _values_in(result: ToolResult) -> dict[str, Any]:
    """Return the values that a tool result has next to its content, by key."""
    return {key: value for key, value in result.items() if key in NEXT_TO_CONTENT}


def _is_stored(value: object) -> bool:
    """Return whether a value is large and survives JSON unchanged, as int keys and tuples do not.

    There is no upper limit. ``find_copy`` has one, so it would leave the largest values in every session.
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
    """Return whether JSON gave back what it was given, even if that holds NaN, which equals nothing."""
    if isinstance(back, dict) and isinstance(value, dict):
        return back.keys() == value.keys() and all(_is_same(each, value[key]) for key, each in back.items())
    if isinstance(back, list) and isinstance(value, list):
        return len(back) == len(value) and all(map(_is_same, back, value))
    if isinstance(back, float) and isinstance(value, float) and math.isnan(back):
        return math.isnan(value)
    return back == value
