"""Answers that fit: one budget, counted on the whole text that the model gets.

A tokenizer's counts do not add up exactly, so each answer is counted as a whole and cut until it fits. Only fitting
belongs here; the words come from ``wording``, the content from the modes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coatcheck.core.blocks import to_valid_unicode
from coatcheck.core.reading import wording

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from coatcheck.core.tokens import TokenCounter

__all__ = ("Writer",)

_SLACK = 4
"""Tokens kept free at first: about what joining a text at two places adds to the tokens of its pieces."""

_CALL_SHARE = 4
"""A next call that would take more than a quarter of the budget is described instead of written out."""

_SELECTOR_SHARE = 8
"""A pattern or query in a header takes at most an eighth of the budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """What every answer to one request is written with."""

    counter: TokenCounter
    budget: int
    tool_name: str
    reference: str

    def overflows(self, text: str) -> bool:
        """Return whether ``text`` is more than any answer can hold; a cheap, early no."""
        return self.counter.exceeds(to_valid_unicode(text), self.budget)

    def selector(self, text: str) -> str:
        """Return a pattern or query in a form short enough for a header."""
        shown = wording.one_line(to_valid_unicode(text))
        while self.counter.count(shown) > self.budget // _SELECTOR_SHARE:
            shown = wording.one_line(shown[: len(shown) // 2] + "…")
        return shown

    def more(self, arguments: Mapping[str, object], *, changed: str = "offset") -> str:
        """Return the line with the literal next call, or one that describes it where it would take too much."""
        line = to_valid_unicode(wording.more(self.tool_name, self.reference, arguments))
        if self.counter.count(line) * _CALL_SHARE <= self.budget:
            return line
        return wording.more_in_short(changed, arguments[changed])

    def page(self, text: str, compose: Callable[[str], str]) -> str:
        """Return the longest beginning of ``text`` (one character at least) that fits when ``compose`` frames it."""
        room = max(1, self.budget - self.counter.count(compose("")) - _SLACK)
        shown = self.counter.head(text, room) or text[:1]
        while len(shown) > 1:
            cost = self.counter.count(compose(shown))
            if cost <= self.budget:
                break
            shown = shown[: max(1, min(len(shown) - 1, len(shown) * self.budget // cost))]
        return shown

    def whole_rows(self, rows: Sequence[str], compose: Callable[[int], str]) -> int:
        """Return how many of ``rows`` fit as wholes when ``compose`` frames that many: possibly none."""
        joined = "\n".join(rows)
        room = max(1, self.budget - self.counter.count(compose(0)))
        head = self.counter.head(joined, room)
        count = len(rows) if len(head) == len(joined) else head.count("\n")
        while count:
            cost = self.counter.count(compose(count))
            if cost <= self.budget:
                break
            count = min(count - 1, count * self.budget // cost)
        return count
