"""What stays in view of a content that left: one function, and one module for each kind of content.

A kind is a cheap and certain test of the content, and a function that shows it within a budget of tokens, or returns
None when the content is not of that kind after all; then the next kind is tried, and at last plain text shows it. To
add a kind, add a module and a line to ``_kinds``. Pure; a preview is valid Unicode and says nothing that is not in the
content.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from coatcheck.blocks import to_valid_unicode
from coatcheck.preview.source import Previewed

if TYPE_CHECKING:
    from collections.abc import Callable

    from coatcheck.tokens import TokenCounter

    Kind: TypeAlias = tuple[Callable[[Previewed], bool], Callable[[Previewed, int, TokenCounter], str | None]]

__all__ = ("Previewed", "preview")


@cache
def _kinds() -> tuple[Kind, ...]:
    """Return the kinds in their order: JSON Lines may look like one list, and a table's rows may begin with a time."""
    # Loaded with the first result that leaves: an agent whose results all stay never needs them.
    from coatcheck.preview import (  # noqa: PLC0415
        delimited,
        html,
        json,
        json_lines,
        log,
        matches,
        noise,
        python,
        text,
    )

    return (
        (json.looks_like_json, json.preview_json),
        (json_lines.looks_like_json_lines, json_lines.preview_json_lines),
        (python.looks_like_python, python.preview_python),
        (html.looks_like_html, html.preview_html),
        (matches.looks_like_matches, matches.preview_matches),
        (delimited.looks_delimited, delimited.preview_delimited),
        (log.looks_like_a_log, log.preview_log),
        (noise.looks_like_noise, noise.preview_noise),
        (lambda _: True, text.preview_text),
    )


def preview(content: Previewed, counter: TokenCounter, *, budget: int) -> str:
    """Return what to show of ``content``, at most ``budget`` tokens by ``counter``; ``""`` where nothing useful fits.

    The content itself decides on its kind; when in doubt, it is text.
    """
    if budget <= 0:
        return ""
    shown = (show(content, budget, counter) for is_kind, show in _kinds() if is_kind(content))
    return to_valid_unicode(next(text for text in shown if text is not None))
