"""The two facts that a notice states: which content was stored, and how many tokens it takes.

Plain values that import nothing, so that ``notice``, whose wording uses them, and everything else may import them.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ("Estimate", "Reference")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A reference to one stored content block. ``str()`` gives what the model sees."""

    id: str
    """The reference as the model reads it and passes it back."""

    content_type: str
    """MIME type of the stored bytes."""

    size: int
    """Bytes stored."""

    items: int | None = None
    """How many blocks were joined into this content; None if it is a single block."""

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number of tokens, and whether it was counted or extrapolated."""

    tokens: int
    """Exact, or extrapolated and rounded to two significant digits."""

    exact: bool
    """Whether every token was counted."""
