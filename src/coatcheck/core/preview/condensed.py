"""A JSON value in its own order, as far as it fits: what a small budget shows where an outline would only name parts.

What is left out is counted where it would stand, so that every bracket is closed and no value is broken off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.preview.notation import count_of, key_of, named, scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.tokens import TokenCounter

__all__ = ("condensed", "condensed_lines")

_LONGEST_TEXT = 160
_DEEPEST = 12
_TOKENS_OF_A_SCALAR = 6
"""With its name; where the search for how many fit begins."""

_ROUNDS = 8
"""Of that search, which corrects its guess by what the last one took."""


def condensed(value: JsonValue, budget: int, counter: TokenCounter) -> str | None:
    """Return ``value`` on one line within ``budget`` tokens, or None if not one scalar of it fits."""
    lines = _fitted(value, budget, counter, separate=False)
    return lines[0] if lines else None


def condensed_lines(value: dict[str, JsonValue] | list[JsonValue], budget: int, counter: TokenCounter) -> list[str]:
    """Return the members of ``value``, one a line, within ``budget`` tokens; empty if not one scalar of it fits."""
    return _fitted(value, budget, counter, separate=True)


def _fitted(value: JsonValue, budget: int, counter: TokenCounter, *, separate: bool) -> list[str]:
    """Return the value with about as many scalars as fit; each takes a token at least."""
    fits, most = 0, budget
    best: list[str] = []
    tried = max(1, budget // _TOKENS_OF_A_SCALAR)
    for _ in range(_ROUNDS):
        if not fits < tried <= most:
            break
        writing = _Writing(tried)
        lines = list(writing.parts(value, 0)) if separate else [writing.one(value, 0)]
        cost = counter.count("\n".join(lines))
        if cost > budget:
            most = tried - 1
        else:
            fits, best = tried, lines
            if writing.left > 0:
                break
        tried = min(max(fits + 1, tried * budget // max(1, cost)), most)
    return best


class _Writing:
    """Writes values until a number of scalars stands there."""

    def __init__(self, scalars: int) -> None:
        self.left = scalars

    def one(self, value: JsonValue, depth: int) -> str:
        if isinstance(value, (dict, list)) and value and depth <= _DEEPEST:
            opening, closing = "{}" if isinstance(value, dict) else "[]"
            return f"{opening}{', '.join(self.parts(value, depth + 1))}{closing}"
        self.left -= 1
        return named(value) if isinstance(value, (dict, list)) and value else scalar(value, _LONGEST_TEXT)

    def parts(self, value: JsonValue, depth: int) -> Iterator[str]:
        """Yield members of an object or items of a list, and how many are missing."""
        written = 0
        if isinstance(value, dict):
            for key, child in value.items():
                if self.left <= 0:
                    break
                written += 1
                yield f"{key_of(key)}: {self.one(child, depth)}"
        elif isinstance(value, list):
            for child in value:
                if self.left <= 0:
                    break
                written += 1
                yield self.one(child, depth)
        if isinstance(value, (dict, list)) and written < len(value):
            noun = "more key" if isinstance(value, dict) else "more item"
            missing = count_of(len(value) - written, noun)
            yield f"[… {missing} …]" if depth == 0 else f"… {missing}"
