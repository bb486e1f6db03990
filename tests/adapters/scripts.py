"""The script of the model in an adapter's tests, turn by turn, for any framework."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, TypeAlias

from coatcheck import RETRIEVAL_TOOL
from coatcheck.testing import ModelCall
from coatcheck.testing.samples import numbered_lines
from coatcheck.testing.scripting import shown_references

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coatcheck.testing import Received

__all__ = ("BIG", "MIDDLE", "Script", "Turn", "call", "reading")

BIG = numbered_lines(2_000)
MIDDLE = "line 1,000 of 2,000"

Turn: TypeAlias = "Sequence[tuple[str, dict[str, Any]]] | Callable[[Sequence[Received]], Sequence[tuple[str, Any]]]"
"""The calls of one turn, each by name and arguments, or a function that returns them once it sees the results."""


_ids = itertools.count()


class Script:
    """Plays one turn after another, then answers. Keeps the results that it was shown."""

    def __init__(self, *turns: Turn) -> None:
        self.turns = list(turns)
        self.shown: list[list[str]] = []

    def __call__(self, received: Sequence[Received]) -> Sequence[ModelCall]:
        self.shown.append([one.text for one in received])
        turn = self.turns.pop(0) if self.turns else ()
        calls = turn(received) if callable(turn) else turn
        # New ids in each run: some frameworks drop all but the last of the calls in a session that share an id.
        return [ModelCall(tool=name, arguments=arguments, call_id=f"call_{next(_ids)}") for name, arguments in calls]


def call(name: str = "fetch", **arguments: object) -> list[tuple[str, dict[str, Any]]]:
    """Return a turn with one call."""
    return [(name, arguments)]


def reading(result: int = 0, **selectors: object) -> Callable[[Sequence[Received]], list[tuple[str, Any]]]:
    """Return a turn that reads back the first reference of a result."""

    def turn(received: Sequence[Received]) -> list[tuple[str, Any]]:
        return [(RETRIEVAL_TOOL, {"reference": shown_references(received[result].text)[0], **selectors})]

    return turn
