"""What stays in view of a content that left: one function, and one module for each kind of content.

A kind has the types that declare it, a cheap and certain test of the content, and a function that shows, within a
budget of tokens, what exceeds it, or returns None when the content is not of that kind after all; then the next kind is
tried, and at last plain text shows it. So it is where a kind raises, or takes more work than ``work`` allows. To add a
kind, add a module and a line to ``_kinds``. Pure; a preview is valid Unicode and says nothing that the content does
not.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from coatcheck.core.blocks import to_valid_unicode
from coatcheck.core.forks import loading
from coatcheck.core.preview.source import Previewed, ends_within
from coatcheck.core.preview.work import Metered, TooMuchWork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from coatcheck.core.tokens import TokenCounter

    Show: TypeAlias = Callable[[Previewed, int, TokenCounter], str | None]
    Kind: TypeAlias = tuple[frozenset[str], Callable[[Previewed], bool], Show]

__all__ = ("Previewed", "preview")

_JSON_TYPES = frozenset({"application/json", "text/json"})
_JSON_LINES_TYPES = frozenset(
    {"application/jsonl", "application/ndjson", "application/x-jsonlines", "application/x-ndjson"}
)
_XML_TYPES = frozenset({"application/xml", "text/xml"})
_TEXT_TYPES = frozenset(
    (
        *("application/javascript", "application/md", "application/sql", "application/toml"),
        *("application/x-javascript", "application/x-sh", "application/x-toml", "application/x-yaml"),
        *("application/yaml", "text/css", "text/javascript", "text/markdown", "text/x-c", "text/x-diff", "text/x-java"),
        *("text/x-markdown", "text/x-patch", "text/x-python", "text/x-rst", "text/x-yaml", "text/yaml"),
    )
)
"""Declared, they are shown by head and tail, whatever they look like."""


@cache
def _kinds() -> tuple[Kind, ...]:
    """Return the kinds in their order: JSON Lines may look like one list, and a table's rows may begin with a time."""
    # Loaded with the first result that leaves: an agent whose results all stay never needs them.
    with loading:
        from coatcheck.core.preview import (  # noqa: PLC0415
            delimited,
            html,
            json,
            json_lines,
            log,
            matches,
            noise,
            python,
            text,
            xml,
        )

    return (
        (_JSON_TYPES, json.looks_like_json, json.preview_json),
        (_JSON_LINES_TYPES, json_lines.looks_like_json_lines, json_lines.preview_json_lines),
        (frozenset(), python.looks_like_python, python.preview_python),
        (html.HTML_TYPES, html.looks_like_html, html.preview_html),
        (_XML_TYPES, xml.looks_like_xml, xml.preview_xml),
        (frozenset(), matches.looks_like_matches, matches.preview_matches),
        (delimited.DELIMITED_TYPES, delimited.looks_delimited, delimited.preview_delimited),
        (log.LOG_TYPES, log.looks_like_a_log, log.preview_log),
        (frozenset(), noise.looks_like_noise, noise.preview_noise),
        (_TEXT_TYPES, _is_text, text.preview_text),
    )


def preview(content: Previewed, counter: TokenCounter, *, budget: int) -> str:
    """Return what to show of ``content``, at most ``budget`` tokens by ``counter``; ``""`` where nothing useful fits.

    Never raises. A text that fits is shown whole. Of any other, the kind that the content type declares is tried first.
    What does not look like it, or is declared as nothing but text, decides on its kind itself; when in doubt, it is
    text. A kind that needs too much work is left out, and so is one that raises; ``content.failures`` has those.
    Where even text raises, as with a counter that does, head and tail are shown in as many bytes as ``budget`` has
    tokens.
    """
    if budget <= 0:
        return ""
    metered = Metered(counter)
    for is_kind, show in ((_is_text, _whole), *kinds_of(content)):
        if show.__name__ in content.failures:
            continue
        unbounded = is_kind is _is_text  # text is the last resort of all kinds, and looks at little more than it shows
        # A preview is a convenience: no fault in one may cost the result that it is made of.
        try:
            shown = show(content, budget, counter if unbounded else metered) if is_kind(content) else None
        except TooMuchWork:
            continue
        except Exception as error:  # noqa: BLE001 - MemoryError and RecursionError are among them
            content.failures[show.__name__] = error
            continue
        if shown is not None:
            return to_valid_unicode(shown)
    return to_valid_unicode(ends_within(content.text, budget))


def _is_text(_: Previewed) -> bool:
    return True


def _whole(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    if content.exceeds >= budget or counter.exceeds(content.text, budget):
        return None
    return content.text


def kinds_of(content: Previewed) -> Iterator[tuple[Callable[[Previewed], bool], Show]]:
    """Yield the kinds that ``content`` may be, the declared one first, text the last at the latest."""
    declared = content.declared
    suffix = declared.rpartition("+")[2]
    declared = (
        f"application/{suffix}" if suffix in {"json", "xml"} and declared != "application/xhtml+xml" else declared
    )
    for _, is_kind, show in sorted(_kinds(), key=lambda kind: declared not in kind[0]):
        yield is_kind, show
