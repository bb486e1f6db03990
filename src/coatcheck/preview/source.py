"""What a preview is made from: a text with what is known of it, and how numbers and gaps are written in every kind."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ("Previewed",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Previewed:
    """One text to be previewed."""

    text: str
    """The whole text, as it is stored."""

    content_type: str
    """MIME type, as declared; ``text/plain`` says nothing about the kind."""

    lines: int
    """Lines in the text: ``\\n`` ends one, and the last needs none."""
