"""Previews text by its kind. Cheap tests of its ends or first lines say which kinds of content it may be.

A test may be wrong. The function that shows a kind then returns None, and the next kind is tried, plain text last. The
same happens if a kind raises, or takes more work than ``work`` allows.

Envelopes and command output are shown here too, since the text inside may be of any kind.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from coatcheck.core.blocks import to_valid_unicode
from coatcheck.core.embedded import MAX_OTHER_LINES, embedded_json
from coatcheck.core.preview.delimited import DELIMITED_TYPES, DELIMITERS, preview_delimited, search_delimited
from coatcheck.core.preview.diff import BEGINS_A_DIFF, preview_diff
from coatcheck.core.preview.envelope import output_in, unwrapped
from coatcheck.core.preview.html import preview_html
from coatcheck.core.preview.json import preview_json
from coatcheck.core.preview.json_ends import search_json
from coatcheck.core.preview.json_in_words import preview_json_in_words
from coatcheck.core.preview.json_lines import are_spread, preview_json_lines, search_json_lines
from coatcheck.core.preview.log import RARE, find_rare_trouble, find_trouble, missing_from, name_trouble, preview_log
from coatcheck.core.preview.matches import are_matches, preview_matches
from coatcheck.core.preview.noise import preview_noise
from coatcheck.core.preview.python import preview_python
from coatcheck.core.preview.repeats import preview_repeats, search_repeats
from coatcheck.core.preview.source import Found, Previewed, Trouble, ends_within, moved_by, plain, sample_of
from coatcheck.core.preview.text import preview_text
from coatcheck.core.preview.work import Metered, TooMuchWork, count_parts
from coatcheck.core.preview.xml import preview_xml
from coatcheck.core.tokens import CountedOnce

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator
    from typing import TypeAlias

    from coatcheck.core.preview.source import Search
    from coatcheck.core.tokens import TokenCounter

    PreviewFunction: TypeAlias = Callable[[Previewed, int, TokenCounter], str | None]

__all__ = ("kinds_of", "preview", "search_for_odd")

_HTML_TYPES = frozenset({"application/html", "application/xhtml+xml", "text/html"})
_LOG_TYPES = frozenset({"text/log", "text/x-log"})
_SHOWN_AS_TEXT = (
    "application/javascript application/md application/sql application/toml application/x-javascript application/x-sh"
    " application/x-toml application/x-yaml application/yaml text/css text/javascript text/markdown text/x-c"
    " text/x-java text/x-markdown text/x-python text/x-rst text/x-yaml text/yaml"
)
_TYPES: dict[PreviewFunction, frozenset[str]] = {
    preview_json: frozenset({"application/json", "text/json"}),
    preview_json_lines: frozenset(
        {"application/jsonl", "application/ndjson", "application/x-jsonlines", "application/x-ndjson"}
    ),
    preview_html: _HTML_TYPES,
    preview_xml: frozenset({"application/xml", "text/xml"}),
    preview_delimited: DELIMITED_TYPES,
    preview_log: _LOG_TYPES,
    preview_diff: frozenset({"text/x-diff", "text/x-patch"}),
    preview_text: frozenset(_SHOWN_AS_TEXT.split()),
}
"""The content types that declare each kind. Content that declares a type of ``preview_text`` is shown by head and tail,
whatever it looks like."""

_DECLARING = frozenset[str]().union(*_TYPES.values())

_AS_LINES = frozenset({preview_log, preview_repeats, preview_text})

_NOISY = frozenset({preview_noise})
"""Nobody reads it, so the rest of an envelope is not cut to show it."""

_SHOW_TROUBLE = frozenset({preview_diff, preview_log, preview_noise})
"""These show rare errors themselves, or have none."""

LITTLE_WORK = frozenset({preview_log, preview_text})
"""These read little more than they show, so no limit of work applies to them."""

SEARCHES: dict[PreviewFunction, Search] = {
    preview_json: search_json,
    preview_json_lines: search_json_lines,
    preview_delimited: search_delimited,
    preview_repeats: search_repeats,
}
"""The functions that search long text for the odd records or lines of a kind, in pieces."""

_INSIDE = "unescaped text inside, with its own line numbers; search with pattern:"

_LONGEST_REST = 200
"""Characters shown of what else an envelope says, above the text inside."""

_FEW_TOKENS = 160
"""Tokens. With a smaller budget, an envelope is shown as it is: the line above the text inside would take too much of
it."""

_CHARACTERS_OF_A_TOKEN = 8
_QUOTE = re.compile(r"(?:^|[\n:=(\[{,])\s*[\"']")
_QUOTED = re.compile(r"(?:^|[\n:=(\[{,])\s*[\"'][\[{<]")
_QUOTED_SIGNS = tuple(f"{quote}{sign}" for quote in "\"'" for sign in "[{<")
_ESCAPE = re.compile(r"\\[\\\"'ntru/]")
_PAIRS = {"[": "]", "{": "}", "(": ")"}
_BEFORE_JSON = ("\n[", "\n{", ": [", ": {")
_PAGE = re.compile(
    r"\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->).)*-->\s*)*(?:<!doctype html\b|<html[\s>])", re.IGNORECASE | re.DOTALL
)
"""In this pattern, a comment cannot contain ``-->``. Otherwise each further comment would double the ways to match, and
all would be tried on text that is not a page."""

_ELEMENT = r"(?:body|div|p|table|ul|ol|h[1-6]|main|nav|span|pre|blockquote)"
_BODY = re.compile(rf"\s*<{_ELEMENT}[\s>]", re.IGNORECASE)
_END_OF_A_BODY = re.compile(rf"(?:</{_ELEMENT}>|<(?:hr|br|p) ?/?>)\s*$", re.IGNORECASE)
"""How the body of a page ends. Tools return bodies without the page, such as a table from pandas or the text of a
wiki."""

_NO_BODY = re.compile(
    r"\{[{%#]|<[%?]|\s(?:[:@#*(\[]|ng-|th:|v-|x-)[\w.-]+[\])]?=\"|<\w[^<>]*\s[\w:.|-]+=\{"  # a template
    r"|^#{1,6} |^```|\]\("  # Markdown
    r"|\A\s*(?i:<table\b[^>]*>\s*<(?!!--|(?:caption|col|colgroup|tbody|td|tfoot|th|thead|tr)\b))",  # XML
    re.MULTILINE,
)
"""What is not a body. In a template and in XML, the markup is what matters, and Markdown may begin with an element."""

_PART_OF_A_PAGE = re.compile(r"\s*<[!?a-zA-Z]")
_XML = re.compile(r"\s*(?:<\?xml\b|<!--|<!DOCTYPE\s+(?!html\b)|<(?!html[\s>])[^\W\d][\w.:-]*[\s>])", re.IGNORECASE)
_STAMPED = re.compile(
    r"\[ *\d+\.\d{6}\] |\W{0,2}(?:\d{4}[-/.]\d\d[-/.]\d\d[T ,]|\d\d[:.]\d\d[:.]\d\d|\d{10}[. ]"
    r"|(?:[A-Z][a-z]{2} ){1,2}[ \d]\d \d\d:\d\d"
    r"|(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b)"
)
_PYTEST = r"^(?:=+ )?(?:\d+ [a-z ]+, )*\d+ {}(?:, \d+ [a-z ]+)* in \d[\d.]*s(?: \([^()\n]+\))?(?: =+)?[ \t]*\r?$"
"""The last line of pytest. All of it must match: prose may begin a line with ``3 failed attempts in 30s``."""

_TERMINAL = {
    "\x1b[": re.compile(r"\x1b\[[0-9;]*[mK]"),
    "\r": re.compile(r"[^\n\r]\r[^\n\r]"),
    "Traceback (": re.compile(r"^Traceback \(most recent call last\):$", re.MULTILINE),
    "\n\tat ": re.compile(r"(?:Exception|Error)\b[^\n]*\n\tat [\w.$/<>]+\("),
    "\n   at ": re.compile(r"(?:Exception|Error)\b[^\n]*\n   at [\w.`<>+\[\]]+\("),
    "FAIL ": re.compile(r"^FAIL \S+\.[cm]?[jt]sx?\b", re.MULTILINE),
    "Tests: ": re.compile(r"^Tests: +\d+ failed, ", re.MULTILINE),
    " failed": re.compile(_PYTEST.format("failed"), re.MULTILINE),
    " error": re.compile(_PYTEST.format("errors?"), re.MULTILINE),
    "FAILED (": re.compile(r"^FAILED \((?:failures|errors|unexpected successes)=\d+", re.MULTILINE),
    "--- FAIL: ": re.compile(r"^ *--- FAIL: \S+ \(\d[\d.]*s\)$", re.MULTILINE),
    "test result: FAILED": re.compile(r"^test result: FAILED\. \d+ passed; ", re.MULTILINE),
    "error: ": re.compile(r"^(?![^\w\n]+ )[^\s:][^:\n]*:\d+(?::\d+)?: (?:fatal )?error: ", re.MULTILINE),
    " --> ": re.compile(r"^error(?:\[[\w-]+\])?: [^\n]+\n +--> [^\n]+:\d+:\d+\r?$", re.MULTILINE),
}
"""What only program output contains: colours, progress, stack traces of Python, Java and .NET, failed tests of Jest
(but not its crosses, which pages have too), pytest, unittest, Go and Cargo, and errors of compilers of C, Java and
Rust, and of ty, which prints them as Rust does. Each pattern is under a literal that its match contains: a search for
that takes a hundredth of the time."""

_NOISE = re.compile(r"[A-Za-z0-9+/_-]{60}")
_AROUND = 62
"""Characters tested on either side of the middle. In noise, this window has at most one line end, with 60 digits before
or after it."""

_MIN_RECORDS = 2
_MIN_LINES_OF_A_LOG = 8
_STAMPED_SHARE = 0.5
_BOM = "\ufeff"
_HEAD, _TAIL = 4_096, 4_096
"""Characters of the head and the tail that the tests read."""


def preview(content: Previewed, counter: TokenCounter, *, budget: int) -> str:
    """Return a preview of ``content`` of at most ``budget`` tokens by ``counter``; ``""`` if nothing useful fits.

    Never raises. Text that fits is shown whole. Otherwise, the kind that the content type declares is tried first. If
    the text does not look like that kind, or its type declares none, it is shown as what it looks like; in doubt, as
    text. A kind that needs too much work is skipped, and so is one that raises, which ``content.failures`` records. If
    even text raises, for example because ``counter`` does, head and tail are shown in as many bytes as ``budget`` has
    tokens.
    """
    if budget <= 0:
        return ""
    once = counter if isinstance(counter, CountedOnce) else CountedOnce(counter)
    metered = Metered(once)
    errors = cache(partial(name_trouble, content, budget, once))
    # A preview is a convenience: no fault in one may cost the result that it shows.
    try:
        if content.more_than < budget and not once.exceeds(content.text, budget):
            return to_valid_unicode(content.text)
        for show in kinds_of(content):
            if show.__name__ in content.failures:
                continue
            try:
                shown = _show_below_errors(show, content, budget, once if show in LITTLE_WORK else metered, errors)
            except TooMuchWork:
                continue
            except Exception as error:  # noqa: BLE001 - MemoryError and RecursionError are among them
                content.failures[show.__name__] = error
                continue
            if shown is not None:
                return to_valid_unicode(shown)
    except Exception as error:  # noqa: BLE001 - as above
        content.failures["kinds_of"] = error
    return to_valid_unicode(ends_within(content.text, budget))


def _show_below_errors(
    show: PreviewFunction, content: Previewed, budget: int, counter: TokenCounter, errors: Callable[[], list[str]]
) -> str | None:
    """Return the preview of one kind, below the rare ``errors`` that it would hide; None if nothing of it fits."""
    shows_trouble = show in _SHOW_TROUBLE or show is preview_command_output  # whose text inside comes by here, too
    named = [] if shows_trouble else errors()
    if not named:
        return show(content, budget, counter)
    left = budget - count_parts(counter, *named)
    shown = show(content, left, counter)
    if shown is None:
        return None
    hidden = missing_from(shown, named)
    if not hidden:  # the room kept for the errors can show more
        try:
            full = show(content, budget, counter)
        except TooMuchWork:
            return shown
        return shown if full is None or missing_from(full, named) else full  # ``full`` may lack other errors
    above = "".join(hidden)
    return f"{above}{shown}" if count_parts(counter, above, shown) <= budget else shown


def search_for_odd(content: Previewed) -> Generator[None, None, Previewed]:
    """Return ``content`` with what is odd in it: lines of trouble in a log, odd records, or odd lines of text.

    Yields after each piece of the search. Never raises: ``content.failures`` has the error of a search that fails.
    """
    try:
        return (yield from _searched(content))
    except Exception as error:  # noqa: BLE001 - as in ``preview``
        content.failures["search_for_odd"] = error
        return content


def _searched(content: Previewed) -> Generator[None, None, Previewed]:
    candidates = list(kinds_of(content))
    if candidates[0] is preview_log:
        trouble = Trouble()
        yield from find_trouble(trouble, content.text)
        return replace(content, trouble=trouble)
    if content.lines >= RARE:
        rare = Trouble()
        yield from find_rare_trouble(rare, content)
        content = replace(content, rare=rare)
    for search in filter(None, map(SEARCHES.get, candidates)):
        found = Found(by=search)
        yield from search(found, content)
        if found.end:
            return replace(content, found=found)
    return content


def kinds_of(content: Previewed) -> Iterator[PreviewFunction]:
    """Yield the functions that may show ``content``, the declared kind first; plain text is always among them.

    The order matters: JSON Lines may look like one list, and the rows of a table may begin with a time. A kind is
    tested only if none before it has shown the content.
    """
    head, tail = content.text[:_HEAD].removeprefix(_BOM), content.text[-_TAIL:]
    first, last = head.lstrip()[:1], tail.rstrip()[-1:]
    lines, declared = [plain(line) for line in sample_of(content)], content.declared
    is_pair = first in _PAIRS and _PAIRS[first] == last
    may_be: dict[PreviewFunction, Callable[[], object]] = {
        preview_command_output: lambda: first == "<" and output_in(content.text),
        preview_diff: lambda: BEGINS_A_DIFF.match(head),
        # An envelope opens a quote, with a bracket or an escape after it.
        preview_envelope: lambda: (
            (any(signs in head for signs in _QUOTED_SIGNS) and _QUOTED.search(head))
            or ("\\" in head and (quote := _QUOTE.search(head)) and _ESCAPE.search(head, quote.end()))
        ),
        preview_json: lambda: is_pair and first != "(",
        preview_json_lines: lambda: (
            sum(line.lstrip()[:1] in {"{", "["} for line in lines)
            >= max(_MIN_RECORDS, (1 - MAX_OTHER_LINES) * len(lines))
            or (first == "{" and are_spread(content.text))
        ),
        preview_json_in_words: lambda: (
            (first in {"[", "{"} or any(signs in head for signs in _BEFORE_JSON)) and any(embedded_json(content.text))
        ),
        preview_python: lambda: is_pair,
        preview_html: lambda: (
            (_PART_OF_A_PAGE if declared in _HTML_TYPES else _PAGE).match(head)
            or (_BODY.match(head) and _END_OF_A_BODY.search(tail) and not any(map(_NO_BODY.search, (head, tail))))
        ),
        preview_xml: lambda: last == ">" and _XML.match(head),
        preview_matches: lambda: lines and not _STAMPED.match(lines[0]) and are_matches(lines),
        preview_delimited: lambda: lines and any(sign in lines[0] for sign in DELIMITERS),
        preview_log: lambda: (
            content.lines >= _MIN_LINES_OF_A_LOG
            and (
                declared in _LOG_TYPES
                or (lines and sum(map(bool, map(_STAMPED.match, lines))) >= _STAMPED_SHARE * len(lines))
                or _is_terminal(head)
                or _is_terminal(tail)
            )
        ),
        preview_noise: lambda: _NOISE.search(head, max(0, len(head) // 2 - _AROUND), len(head) // 2 + _AROUND),
        preview_repeats: lambda: True,
        preview_text: lambda: True,
    }
    # A suffix such as ``+json`` tells; ``application/xhtml+xml`` is known.
    known = declared if declared in _DECLARING else f"application/{declared.rpartition('+')[2]}"
    order = sorted(may_be, key=lambda show: known not in _TYPES.get(show, ()))
    return (show for show in order if may_be[show]())


def _is_terminal(end: str) -> bool:
    """Return whether this end is program output. An issue quotes a stack trace too, but most of its lines are prose."""
    lines = end.count("\n")
    return any(
        held in end and sign.search(end) and (held[0] != "\n" or 2 * end.count(held) >= lines)
        for held, sign in _TERMINAL.items()
    )


def preview_envelope(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return a preview of the text inside an envelope, or None if there is none or nothing of it fits."""
    found = unwrapped(content.text)
    if found is None:
        return None
    if budget < _FEW_TOKENS:
        return preview_text(content, budget, counter)
    text, rest = found
    is_cut = len(rest) > _LONGEST_REST
    around = f"{rest[: _LONGEST_REST - 1]}…" if is_cut else rest
    heading = f"{_INSIDE}\n[{around}]" if rest else _INSIDE
    return _preview_inside(text, heading, budget, counter, unless=_NOISY if is_cut else ())


def preview_command_output(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return a preview of a command's output and its return code, or None if the output is of a kind shown as lines.

    The whole text is then better shown as lines: the return code comes first, and the line numbers are right.
    """
    text, found = content.text, output_in(content.text)
    if found is None:
        return None
    heading = f"[{found.around}, and the output; {moved_by(text, found.start)}]"
    return _preview_inside(text[found.start : found.end], heading, budget, counter, unless=_AS_LINES)


def _preview_inside(
    text: str, heading: str, budget: int, counter: TokenCounter, *, unless: Collection[PreviewFunction] = ()
) -> str | None:
    """Return the heading and a preview of the text inside; None if nothing fits, or a kind in ``unless`` shows it."""
    left = budget - counter.count(heading) - 1
    if left <= 0:
        return None
    inside = Previewed.of(text)
    # Hardly any text has more characters per token, and counting longer text takes as long as previewing it.
    if len(text) <= left * _CHARACTERS_OF_A_TOKEN and not counter.exceeds(text, left):
        return f"{heading}\n{text}"
    errors = cache(partial(name_trouble, inside, left, counter))
    for show in kinds_of(inside):
        if show in unless:
            return None
        shown = _show_below_errors(show, inside, left, counter, errors)
        if shown is not None:
            parts = f"{heading}\n", shown  # the second has been counted already
            return "".join(parts) if count_parts(counter, *parts) <= budget else None
    return None
