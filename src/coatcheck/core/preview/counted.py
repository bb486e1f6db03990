"""Names what is odd in a line above a preview that has no room for a table, whose header would otherwise name it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.preview.text import preview_text

if TYPE_CHECKING:
    from coatcheck.core.preview.odd import Odd
    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("counted", "text_below")


def counted(what: str, odd: Odd, budget: int, counter: TokenCounter) -> str:
    """Return a line with as many of the odd kinds as fit half of ``budget``; ``""`` if none fits."""
    for most in range(len(odd.kinds), 0, -1):
        line = f"[{', '.join((what, *odd.kinds[:most]))}]\n"
        if not counter.exceeds(line, budget // 2):
            return line
    return ""


def text_below(what: str, odd: Odd, content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return a line with what is odd above head and tail of the text; None if nothing is odd or nothing fits."""
    line = counted(what, odd, budget, counter)
    if not line:
        return None
    shown = line + preview_text(content, budget - counter.count(line), counter)
    return shown if counter.count(shown) <= budget else None
