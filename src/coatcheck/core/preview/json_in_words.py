"""JSON with words before or after it: an outline of the JSON, between a few lines of the words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.embedded import embedded_json
from coatcheck.core.preview.json import RepeatedKeys, outline_json
from coatcheck.core.preview.json_ends import LARGE
from coatcheck.core.preview.source import Previewed, gap_of_lines, moved_by
from coatcheck.core.preview.work import count_parts

if TYPE_CHECKING:
    from coatcheck.core.tokens import TokenCounter

__all__ = ("preview_json_in_words",)

_MIN_SHARE_INSIDE = 0.5
"""The share of the budget that words before and after the JSON must leave for it."""

_FEW_LINES = 8
"""Up to this many lines of words before or after the JSON are shown whole. What a tool writes to stderr may be more."""


def preview_json_in_words(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return a preview of the JSON that makes up most of the text, between the words before and after it."""
    text = content.text
    for start, end in embedded_json(text):
        before, after = _few_lines(content, 0, start), _few_lines(content, end, len(text))
        names_places = start and end - start > LARGE  # gaps in shorter JSON are given in items or keys
        moved = f", {moved_by(text, start)}" if names_places else ""
        heading = f"[JSON inside{moved}; query reads only this:]\n"
        heading = f"{before}\n{heading}" if before else heading
        ending = f"\n{after}" if after else ""
        left = budget - count_parts(counter, heading, ending)
        if left > budget * _MIN_SHARE_INSIDE:
            try:
                shown = outline_json(Previewed.of(text[start:end]), left, counter)
            except RepeatedKeys:
                return None  # the whole is better shown as text: its line numbers are right
            if shown is not None and count_parts(counter, heading, shown, ending) <= budget:
                return f"{heading}{shown}{ending}"
    return None


def _few_lines(content: Previewed, start: int, end: int) -> str:
    """Return the words between two places; of more than a few lines, only the first, the last and a gap."""
    words = content.text[start:end].strip()
    lines = words.split("\n")
    if len(lines) <= _FEW_LINES:
        return words
    first = content.text.count("\n", 0, content.text.index(words, start)) + 1
    return "\n".join((lines[0], gap_of_lines(first + 1, first + len(lines) - 2, content.lines), lines[-1]))
