"""HTML: its title and its text, without markup, scripts and styles. Without ``selectolax`` it is shown as text.

Read-back works on the stored markup, so the gap is named in characters of the text, and a pattern finds the place.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from coatcheck.forks import loading
from coatcheck.preview.source import shortened

if TYPE_CHECKING:
    from coatcheck.preview.source import Previewed
    from coatcheck.tokens import TokenCounter

__all__ = ("HTML_TYPES", "looks_like_html", "preview_html")

HTML_TYPES = frozenset({"application/html", "application/xhtml+xml", "text/html"})

_MOST_CHARACTERS = 4_000_000
"""A larger page is shown as text: parsing this much takes some 0.1 s."""

_OPENING = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*(?:<!doctype html\b|<html[\s>])", re.IGNORECASE | re.DOTALL
)
"""A comment holds no end of one: else a row of comments could be read in twice as many ways with each, and all are
tried where no page follows."""

_TAG = re.compile(r"\s*<[!?a-zA-Z]")
_NESTING = re.compile(
    r"<(/?)(?!(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr|p|li|d[dt]|t[rdh]|option)\b)[a-z]",
    re.IGNORECASE,
)
"""Tags of elements that must be closed: others end by themselves."""

_DEEPEST = 1_000
"""Elements within each other. The parser looks through all open ones at each tag: 50,000 take it three seconds, in one
piece. Browsers stop nesting at 512."""

_HIDDEN = ["head", "script", "style", "noscript", "template", "svg", "iframe"]
_BLOCKS = (
    "p,div,section,article,header,footer,main,nav,aside,li,dt,dd,tr,h1,h2,h3,h4,h5,h6,pre,blockquote,table,ul,ol,dl"
    ",figure,form,br,hr"
)
_BLANK = re.compile(r"[ \t\r\f\v\xa0]+")
_HEAD_SHARE = 0.85


def looks_like_html(content: Previewed) -> bool:
    """Return whether the text begins as a page of HTML does, or as a part of one that is declared so, not too large."""
    opening = _OPENING if content.declared not in HTML_TYPES else _TAG
    return len(content.text) <= _MOST_CHARACTERS and opening.match(content.text[:4_096]) is not None


def preview_html(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return title and text within ``budget`` tokens, or None if there is no text, or nothing to parse it with."""
    lines = _text(content.text)
    if not lines:
        return None
    what = f"text of an HTML page, {sum(map(len, lines)):,} characters without the markup; search it with pattern:"
    gap = "[… more text, not shown …]"
    left = budget - counter.count(what) - counter.count(gap) - 4
    chosen: dict[int, str] = {}
    head_only = int(left * (1 - _HEAD_SHARE))
    for positions, spared in ((range(len(lines)), head_only), (range(len(lines) - 1, -1, -1), 0)):
        for position in positions:
            if position in chosen:
                break
            line = shortened(lines[position])
            cost = counter.count(line) + 1
            if cost > left - spared:
                break
            chosen[position] = line
            left -= cost
    expected = 0
    shown = [what]
    for position in sorted(chosen):
        shown += [gap] if position > expected else []
        shown.append(chosen[position])
        expected = position + 1
    shown += [gap] if expected < len(lines) else []
    text = "\n".join(shown)
    return text if chosen and counter.count(text) <= budget else None


def _text(markup: str) -> list[str]:
    """Return the lines of text that a reader sees, the title first, none twice in a row."""
    try:
        with loading:
            from selectolax.lexbor import LexborHTMLParser  # noqa: PLC0415 - an extra; loads only for HTML
    except ImportError:
        return []
    if _is_too_deep(markup):
        return []
    page = LexborHTMLParser(markup.encode("utf-8", "replace").decode())
    title = page.css_first("title")
    named = _BLANK.sub(" ", title.text().strip()) if title is not None else ""
    page.strip_tags(_HIDDEN)
    for node in page.css(_BLOCKS):
        node.insert_before("\n")
        node.insert_after("\n")
    for node in page.css("td,th"):
        node.insert_after(" | ")
    body = page.body.text() if page.body is not None else ""
    lines = [named] if named else []
    for line in body.split("\n"):
        clean = _BLANK.sub(" ", line).strip(" |")
        if clean and (not lines or lines[-1] != clean):
            lines.append(clean)
    return lines


def _is_too_deep(markup: str) -> bool:
    depth = 0
    for tag in _NESTING.finditer(markup):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > _DEEPEST:
            return True
    return False
