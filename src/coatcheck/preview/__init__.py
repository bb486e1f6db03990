"""What stays in view of a content that left: one function, and one module for each kind of content.

A kind is a cheap and certain test of the content, and a function that shows it within a budget of tokens, or returns
None when the content is not of that kind after all; then the next kind is tried, and at last plain text shows it. To
add a kind, add a module and a line to ``_KINDS``. Pure; a preview is valid Unicode and says nothing that is not in the
content.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from coatcheck.blocks import to_valid_unicode
from coatcheck.preview.delimited import looks_delimited, preview_delimited
from coatcheck.preview.html import looks_like_html, preview_html
from coatcheck.preview.json import looks_like_json, preview_json
from coatcheck.preview.json_lines import looks_like_json_lines, preview_json_lines
from coatcheck.preview.log import looks_like_a_log, preview_log
from coatcheck.preview.matches import looks_like_matches, preview_matches
from coatcheck.preview.noise import looks_like_noise, preview_noise
from coatcheck.preview.python import looks_like_python, preview_python
from coatcheck.preview.source import Previewed
from coatcheck.preview.text import preview_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from coatcheck.tokens import TokenCounter

    Kind: TypeAlias = tuple[Callable[[Previewed], bool], Callable[[Previewed, int, TokenCounter], str | None]]

__all__ = ("Previewed", "preview")

_KINDS: tuple[Kind, ...] = (
    (looks_like_json, preview_json),
    (looks_like_json_lines, preview_json_lines),
    (looks_like_python, preview_python),
    (looks_like_html, preview_html),
    (looks_like_matches, preview_matches),
    (looks_delimited, preview_delimited),
    (looks_like_a_log, preview_log),
    (looks_like_noise, preview_noise),
)
"""In this order: JSON Lines may look like one list, and rows of a table may begin with a time, as a log does."""


def preview(content: Previewed, counter: TokenCounter, *, budget: int) -> str:
    """Return what to show of ``content``, at most ``budget`` tokens by ``counter``; ``""`` where nothing useful fits.

    The content itself decides on its kind; when in doubt, it is text.
    """
    if budget <= 0:
        return ""
    for is_kind, show in _KINDS:
        if is_kind(content):
            shown = show(content, budget, counter)
            if shown is not None:
                return to_valid_unicode(shown)
    return to_valid_unicode(preview_text(content, budget, counter))
