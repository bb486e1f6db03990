"""How much work one preview may take. Work is counted, not timed: the same content looks the same on a busy machine."""

from __future__ import annotations

from dataclasses import dataclass

from coatcheck.core.tokens import CountedOnce, TokenCounter

__all__ = ("Metered", "TooMuchWork", "count_parts", "spend")

MAX_UNITS = 1_500_000
"""About 0.1 s. A unit is what counting one character costs a tokenizer, about 0.07 microseconds."""

_UNITS_OF_A_COUNT = 60
"""What a call of a tokenizer costs on top of its characters."""

_CHARACTERS_OF_A_TOKEN = 16
"""The most characters per token that are read to cut or to compare: a tokenizer stops at the limit."""


class TooMuchWork(Exception):
    """A kind of preview has used up its work; a simpler kind shows the content."""


@dataclass(slots=True)
class Metered(TokenCounter):
    """Counts as the wrapped counter does, and raises ``TooMuchWork`` once that and ``spend`` take too much together.

    Each line is counted once, so counting a preview again after a change costs only what has changed.
    """

    counter: CountedOnce

    left: int = MAX_UNITS
    """Units of work left."""

    @property
    def longest_token(self) -> int | None:
        """As in the wrapped counter."""
        return self.counter.longest_token

    def spend(self, units: int) -> None:
        """Record work.

        Raises:
            TooMuchWork: there was more of it than one preview may take.

        """
        self.left -= units
        if self.left < 0:
            raise TooMuchWork

    def count(self, text: str) -> int:
        """Count, and record the work."""
        self.spend(_UNITS_OF_A_COUNT + len(text))
        return self.counter.count(text)

    def count_parts(self, *parts: str) -> int:
        """Count all parts together, and record the work."""
        self.spend(_UNITS_OF_A_COUNT + sum(map(len, parts)))
        return self.counter.count_parts(*parts)

    def exceeds(self, text: str, limit: int) -> bool:
        """Compare, and record the work."""
        self._spend_up_to(text, limit)
        if len(text) <= max(0, limit) * _CHARACTERS_OF_A_TOKEN:
            return self.counter.count(text, most=limit) > limit
        return self.counter.exceeds(text, limit)

    def head(self, text: str, limit: int) -> str:
        """Cut, and record the work."""
        self._spend_up_to(text, limit)
        return self.counter.head(text, limit)

    def tail(self, text: str, limit: int) -> str:
        """Cut, and record the work."""
        self._spend_up_to(text, limit)
        return self.counter.tail(text, limit)

    def _spend_up_to(self, text: str, limit: int) -> None:
        self.spend(_UNITS_OF_A_COUNT + min(len(text), max(0, limit) * _CHARACTERS_OF_A_TOKEN))


def spend(counter: TokenCounter, units: int) -> None:
    """Record work other than counting, if it is metered; raises ``TooMuchWork``."""
    if isinstance(counter, Metered):
        counter.spend(units)


def count_parts(counter: TokenCounter, *parts: str) -> int:
    """Return the tokens of all parts together; a counter that remembers counts each part once."""
    return counter.count_parts(*parts) if isinstance(counter, CountedOnce | Metered) else counter.count("".join(parts))
