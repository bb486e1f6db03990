"""The two facts that a notice states: which content was stored, and how many tokens it takes.

Plain values that import nothing: the words in ``notice`` are made of them, and everything else may use both.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ("Estimate", "Reference")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One stored content block. ``str()`` is what the model sees."""

    id: str
    """The reference as the model reads it and gives it back."""

    content_type: str
    """MIME type of the stored bytes."""

    size: int
    """Bytes stored."""

    items: int | None = None
    """How many texts were joined into this content; None where it is one block."""

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number of tokens, and whether it was counted or extrapolated."""

    tokens: int
    """Exact, or extrapolated and rounded to two digits."""

    exact: bool
    """Whether every token was counted."""
