"""HTML: its title and its text, without markup, scripts and styles.

The page is read tag by tag, without building a tree. A parser that builds one as browsers do makes millions of elements
from a few kilobytes of unclosed tags, and its time grows with the square of the number of attributes of a tag. The
preview shows lines of text, which need no tree. ``tests/core/test_preview_html.py`` compares them with those of a real
parser.

Read-back works on the stored markup, where a gap in the text has no position. A pattern finds the place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from coatcheck.core.preview.characters import unescaped
from coatcheck.core.preview.names import ENOUGH, next_to_names, with_names
from coatcheck.core.preview.source import shortened
from coatcheck.core.preview.work import count_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("preview_html",)

_MAX_CHARACTERS = 1_000_000
_MAX_TAGS = 60_000
"""How much of a page is read, from its beginning. 60,000 tags take about 0.1 s."""

_MAX_OF = {b"&": 15_000, b"\n": 100_000}
"""The most character references and line ends that are read. A reference takes up to 8 microseconds, a line takes 1."""

_TOKEN = re.compile(
    rb"<!--(?:-?>|.*?--!?>|.*)"  # a comment, which the end of the page ends too
    rb"|<(/?)(?=([a-z][^\s/>]*))\2(?=((?:[^>\"'=]+|=\s*(?:\"[^\"]*\"|'[^']*')?|[\"']){0,5000}))\3>"  # a tag
    rb"|<[!?/][^>]*>"  # a doctype, a processing instruction, an end tag without a name
    rb"|<[!?/a-z].*",  # a tag that does not end
    re.IGNORECASE | re.DOTALL,
)
"""Follows https://html.spec.whatwg.org/multipage/parsing.html#tokenization: a quoted value may contain a ``>``.

The pattern takes linear time. A name or attributes found by a lookahead are never matched in another way, and a tag or
comment that does not end ends the page. RE2 guarantees linear time without such care, but reading its matches from
Python takes ten times as long."""

_RAW = frozenset({b"script", b"style", b"textarea", b"title", b"iframe", b"noembed", b"noframes", b"xmp"})
"""Elements whose content is text up to their own end tag, whatever it looks like."""

_END_OF = {name: re.compile(b"</" + name + rb"[\s/>]", re.IGNORECASE) for name in _RAW}

_UNSEEN = frozenset({b"script", b"style", b"iframe", b"noembed", b"noframes", b"noscript", b"template", b"svg"})
_BLOCKS = frozenset(
    b"p div section article header footer main nav aside li dt dd tr h1 h2 h3 h4 h5 h6 pre blockquote table ul ol dl"
    b" figure form br hr body address caption center details dialog fieldset figcaption legend summary".split()
)
_CELLS = frozenset({b"td", b"th", b"option"})
_ENDS_A_ROW = frozenset({b"tr", b"table", b"pre"})
"""Tags that end a table row, which is joined into one line. Text inside, such as code in a cell, keeps its lines."""

_BLANK = re.compile(r"[ \t\r\f\v\xa0]+")
_HEAD_SHARE = 0.85

_GAP = "[… more text, not shown …]"
_MARKUP = "[the markup, from its start:]"


@dataclass(slots=True)
class _Page:
    """What has been read of a page so far."""

    read: int | None
    """Characters read before reading stopped; None if all was read."""

    title: bytes = b""
    parts: list[bytes] = field(default_factory=list)
    """Text with its character references, line ends around blocks, and bars between cells and between options."""

    unseen: bytes = b""
    """The name of the open element that hides its content; empty if there is none."""

    depth: int = 0
    """How many elements of that name are open."""

    in_row: bool = False
    """Whether a table row is open. It becomes one line, however many lines its cells take in the markup."""

    def add(self, text: bytes) -> None:
        """Add text, unless it is in an element that is not shown."""
        if not self.unseen:
            self.parts.append(text.replace(b"\n", b" ") if self.in_row else text)

    def add_raw(self, name: bytes, text: bytes) -> None:
        """Add the content of an element that holds nothing but text."""
        if name == b"title":
            self.title = self.title or text
        elif name not in _UNSEEN:
            self.add(text)

    def add_tag(self, name: bytes, *, closes: bool) -> None:
        """Process a tag of any other element."""
        if name == self.unseen:
            self.depth += -1 if closes else 1
            self.unseen = name if self.depth else b""
        elif not closes and name in (_BLOCKS if self.unseen == b"svg" else () if self.unseen else _UNSEEN):
            # A drawing contains no block, so a drawing that is still open here was never closed.
            self.unseen, self.depth = (b"", 0) if self.unseen else (name, 1)
        if name in _ENDS_A_ROW:
            self.in_row = name == b"tr" and not closes
        if name in _BLOCKS and not self.unseen:
            self.parts.append(b"\n")
        elif name in _CELLS and not closes:
            self.add(b" | ")


def preview_html(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return title and text within ``budget`` tokens, then names and the head of the markup if there is room.

    Return None if the page has no text, or nothing of it fits.
    """
    page = _read(content.text)
    lines = list(_lines(page))
    if not lines:
        return None

    def fit(most: int) -> tuple[str | None, bool]:
        shown = _show(page, lines, most, counter)
        return shown, shown is not None and _GAP not in shown

    text = "\n".join(lines)
    shown = next_to_names(fit, text, budget, counter, may_fit=not counter.exceeds(text, budget), or_alone=True)
    if shown is None or _GAP in shown:
        return shown
    return _with_markup(with_names(shown, content.text, budget, counter), content.text, budget, counter)


def _with_markup(shown: str, text: str, budget: int, counter: TokenCounter) -> str:
    """Return ``shown``, followed by the head of the markup if there is room: a page may be all scripts."""
    parts = (f"{shown}\n", f"{_MARKUP}\n")
    left = budget - count_parts(counter, *parts)
    if left < budget * (1 - ENOUGH):
        return shown
    full = "".join((*parts, counter.head(text, left)))
    return full if counter.count(full) <= budget else shown


def _show(page: _Page, lines: list[str], budget: int, counter: TokenCounter) -> str | None:
    part = "" if page.read is None else f"the first {page.read:,} characters of "
    size = sum(map(len, lines))
    what = f"text of {part}an HTML page, {size:,} characters without the markup; pattern searches it with the markup:"
    left = budget - counter.count(what) - counter.count(_GAP) - 4
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
        shown += [_GAP] if position > expected else []
        shown.append(chosen[position])
        expected = position + 1
    shown += [_GAP] if expected < len(lines) or page.read is not None else []
    text = "\n".join(shown)
    return text if chosen and counter.count(text) <= budget else None


def _lines(page: _Page) -> Iterator[str]:
    """Yield the visible lines of text, the title first, and no line twice in a row."""
    last = _BLANK.sub(" ", _text(page.title).strip())
    if last:
        yield last
    for line in _text(b"".join(page.parts)).split("\n"):
        clean = _BLANK.sub(" ", line).strip(" |")
        if clean and clean != last:
            yield clean
            last = clean


def _read(markup: str) -> _Page:
    """Read a page tag by tag."""
    whole = markup[:_MAX_CHARACTERS].encode("utf-8", "replace")
    data = whole
    while any(data.count(sign) > most for sign, most in _MAX_OF.items()):
        data = data[: len(data) * 3 // 4]
    is_part = len(data) < len(whole) or len(markup) > _MAX_CHARACTERS
    page = _Page(read=len(data.decode("utf-8", "ignore")) if is_part else None)
    at = 0
    for _ in range(_MAX_TAGS):
        found = _TOKEN.search(data, at)
        page.add(data[at : len(data) if found is None else found.start()])
        if found is None:
            return page
        at = found.end()
        closes, name = bool(found[1]), (found[2] or b"").lower()
        if name in _RAW and not closes:
            end = _END_OF[name].search(data, at)
            held = data[at : len(data) if end is None else end.start()]
            page.add_raw(name, held)
            at += len(held)
        elif name:
            page.add_tag(name, closes=closes)
    page.read = len(data[:at].decode("utf-8", "ignore"))
    return page


def _text(written: bytes) -> str:
    return unescaped(written.decode("utf-8", "replace"))
