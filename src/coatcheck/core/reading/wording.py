"""Everything that reading says to the model: headers, footers, errors.

Each message has its own small function or constant, so that all can be read, compared and improved in one place. Facts
come in as arguments; nothing is decided here. A refusal says what is wrong and, after a colon or a full stop, what to
do instead. Only there may it name an argument that was not given.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from coatcheck.core import notice
from coatcheck.core.arguments import OPTIONS, PROPOSED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from coatcheck.core.retrieved import ListedContent

__all__ = (
    "ASCII_ONLY",
    "AS_IN_GREP",
    "BETWEEN_GROUPS",
    "COLOURS",
    "DELIMITERS",
    "EMPTY",
    "EMPTY_NEXT_TO_BAR",
    "END_OF_CONTENT",
    "END_OF_RESULT",
    "FILTERS_LISTS",
    "FOUND_ESCAPED",
    "FOUND_NUMBER",
    "LISTED",
    "LISTED_IN_PART",
    "LITERALS",
    "MATCHES_EVERY_LINE",
    "MATCHES_NO_LINE",
    "MATCHES_ONE_OF",
    "MISORDERED",
    "MORE_STORED",
    "NOTHING_STORED",
    "NOT_DESCRIBED",
    "NOT_JSON",
    "NOT_ORDERED",
    "NO_ITEMS",
    "NO_LISTS",
    "NO_TEXTS",
    "NUMBERS_AS_TEXT",
    "NUMBER_TOO_LONG",
    "NUMERIC_STRING",
    "ONLY_TEXTS",
    "OPERATORS",
    "QUOTES",
    "RANGE_TRUNCATED",
    "SEARCH_TRUNCATED",
    "TOO_DEEP",
    "TOO_MUCH_WORK",
    "WORDS_LEFT_OUT",
    "always_null",
    "binary",
    "binary_refused",
    "characters_header",
    "constant_key",
    "invalid_query",
    "left_out",
    "less_context",
    "line_ends_not_searched",
    "lines_header",
    "list_kind",
    "listed",
    "long_line_header",
    "matches_header",
    "mismatched",
    "more",
    "more_in_short",
    "no_matches",
    "none_behind",
    "not_a_number",
    "not_json",
    "nothing_selected",
    "numbered",
    "numbered_window",
    "object_kind",
    "offset_beyond",
    "one_line",
    "records_kind",
    "result_header",
    "searched_literally",
    "start_beyond",
    "taken_as_text",
    "text_is_no_field",
    "too_complex",
    "too_large_to_query",
    "unknown_function",
    "unsupported",
)

_OF_STRANDS = ("pattern", "line_range", "context_lines")
"""The selectors that Strands' own tool has."""

_SHOWN_SELECTOR = 50
"""Characters of a pattern or query in a header: enough to recognize it."""

EMPTY = "Content is empty (0 lines)."
END_OF_CONTENT = "[End of content]"
END_OF_RESULT = "[End of result]"
RANGE_TRUNCATED = "[output truncated, narrow your range]"
SEARCH_TRUNCATED = "[output truncated, narrow your search]"
BETWEEN_GROUPS = "---"


def one_line(text: str) -> str:
    """Return ``text`` on one line, cut to what a header shows."""
    line = " ".join(text.split()) if "\n" in text or "\r" in text else text
    return line if len(line) <= _SHOWN_SELECTOR else line[: _SHOWN_SELECTOR - 1] + "…"


# -- the list of what a scope holds


LISTED = "Stored results, newest first:"
LISTED_IN_PART = "Some of the stored results:"
NOTHING_STORED = "Nothing is stored."
MORE_STORED = "[More is stored than this list can show.]"
NOT_DESCRIBED = "[For results without a tool, the list shows only reference and size.]"


def listed(content: ListedContent) -> str:
    """Return the line for one stored content. Names that others chose are cut to one short line."""
    known = (content.tool_name, content.content_type, f"{content.size:,} bytes")
    shown = ", ".join(notice.one_line(each) for each in known if each)
    arguments = "" if content.arguments is None else f" {notice.one_line(content.arguments, longest=200)}"
    return f"{content.reference} ({shown}){arguments}"


# -- the next call


def more(tool_name: str, reference: str, arguments: Mapping[str, object]) -> str:
    """Write out the call that reads on."""
    given = {"reference": reference, **arguments}
    listed = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in given.items())
    return f"[More: {tool_name}({listed})]"


def more_in_short(name: str, value: object) -> str:
    """Say which call reads on, if the whole call is too long to repeat."""
    return f"[More: the same call with {name}={json.dumps(value)}]"


# -- characters


def characters_header(start: int, stop: int, total: int) -> str:
    """Return the header of a slice by character; ``stop`` is the first character that is not shown."""
    return f"[Characters {start:,}-{stop - 1:,} of {total:,}]"


def binary(content_type: str, size: int) -> str:
    """Describe content that is not text."""
    return f"[{content_type}, {size:,} bytes of binary content, which this tool does not show: {notice.FOR_TEXT}]"


def binary_refused(content_type: str, *, given: Iterable[str], shown_whole: bool) -> str:
    """Return the error for options on content that is not text.

    If a call without options shows it, the error says so in the words of Strands' own tool, for those options that it
    has.
    """
    refused = f"cannot search binary content ({content_type})"
    if not shown_whole:
        return f"{refused}, which this tool does not show: {notice.FOR_TEXT}"
    options = _OF_STRANDS if set(given) <= set(_OF_STRANDS) else OPTIONS
    return f"{refused}. Omit {'/'.join(options)} to retrieve the full content."


def offset_beyond(offset: int, total: int, what: str) -> str:
    """Return the error for an offset after the end."""
    return f"offset ({offset:,}) is beyond the {what} ({total:,} characters): the last character is {total - 1:,}"


# -- lines


def lines_header(first: int, last: int, total: int) -> str:
    """Return the header of a run of lines, as Strands' own tool writes it: hosts that switched may read the numbers."""
    return f"[Lines {first}-{last} of {total}]"


def long_line_header(line: int, lines: int, start: int, stop: int) -> str:
    """Return the header for the beginning of a line that does not fit as a whole."""
    return f"[Line {line} of {lines}, cut: characters {start:,}-{stop - 1:,} of the content]"


def start_beyond(start: int, lines: int) -> str:
    """Return the error for a line range after the last line, with the numbers of Strands' own tool."""
    if lines == 1:
        return f"line_range.start ({start}) is beyond content length (1 line): read it by offset, or JSON by query"
    return f"line_range.start ({start}) is beyond content length ({lines} lines)."


def numbered(line: int, text: str, *, width: int, marked: bool = False, item: int | None = None) -> str:
    """Return one line of content with its number. A match is marked, with its item if blocks were joined."""
    return f"{'> ' if marked else '  '}{line:>{width}}{'' if item is None else f' [item {item}]'}| {text}"


def numbered_window(line: int, text: str, *, width: int, start: int, stop: int, item: int | None) -> str:
    """Return a window into a long line around a match, with the characters of the content that it shows."""
    which = "" if item is None else f"item {item}, "
    return f"> {line:>{width}} [{which}characters {start:,}-{stop - 1:,}]| {text}"


# -- matches


def matches_header(
    count: str, pattern: str, *, lines: tuple[int, int] | None, shown: tuple[int, int] | int | None
) -> str:
    """Return the header of search results. Up to the lines, it is that of Strands' tool, so the count has no commas.

    ``shown`` is given if not all matches are shown: the numbers of the first and the last one or, past the last match
    that is counted, the character that the search started from.
    """
    matches = f"{count} match" if count == "1" else f"{count} matches"
    where = f" in lines {lines[0]}-{lines[1]}" if lines else ""
    match shown:
        case (first, last):
            which = f"; {first:,}-{last:,} shown"
        case int(character):
            which = f"; shown from character {character:,} on"
        case _:
            which = ""
    return f"[{matches} for /{pattern}/{where}{which}]"


def less_context(lines: int) -> str:
    """Say that fewer lines around a match fit than the model asked for."""
    return f"[context_lines: at most {lines} fit]"


def none_behind(offset: int) -> str:
    """Say that all matches are before the offset."""
    return f"[No match at or after offset {offset:,}: call without offset to see them]"


def searched_literally(reason: str) -> str:
    """Say that a pattern was searched as plain text."""
    return f"[not a valid regular expression ({reason}): searched as literal text]"


MATCHES_NO_LINE = "[as a regular expression it matches no line: searched as literal text]"
"""Says that a pattern was searched as plain text, since only that is in the content."""

MATCHES_EVERY_LINE = (
    "[as a regular expression it matches every line (one side of | is empty): searched as literal text]"
)
"""Says that a pattern that begins or ends with ``|`` was searched as plain text."""

EMPTY_NEXT_TO_BAR = r"[it matches every line (one side of | is empty): write \| for that character]"
"""Says why such a pattern matches every line, if the content does not contain it as text."""

MATCHES_ONE_OF = "[as a regular expression [...] matches any one of its characters: searched as literal text]"
"""Says that a word in brackets was searched as plain text."""

AS_IN_GREP = r"[found only as in grep: \| read as |, and \< and \> as \b]"
"""Says that the pattern matches only as grep reads it, not as RE2 does."""

FOUND_NUMBER = (
    "[found only in another form: numbers with or without an exponent (1e-05, 0.00001), spaces, tags, escapes]"
)
"""Says that a pattern with a number that has many forms was found only in another form."""

FOUND_ESCAPED = (
    r"[found only in another form: other spaces, quotes, dashes or accents, tags, colour codes, or escapes such as"
    r" \" \n \u00e9 &amp;]"
)
"""Says that the content has the pattern only in another form with the same meaning."""


def no_matches(
    pattern: str, lines: tuple[int, int] | None, searched: int, *, literal: str | None, reasons: Iterable[str] = ()
) -> str:
    """Say that nothing was found, in the words and numbers of Strands' own tool, and how to go on.

    ``reasons`` say what in this pattern may be the cause.
    """
    where = f" in lines {lines[0]}-{lines[1]}" if lines else ""
    lines_searched = f"{searched} line{'' if searched == 1 else 's'}"
    found = f"No matches found for pattern '{pattern}'{where} (searched {lines_searched})."
    taken = f"\n{literal}" if literal else ""
    general = "A match lies within one line and case counts. Try (?i), a shorter pattern, or line_range."
    return "\n".join((f"{found}{taken}", " ".join((*reasons, general))))


ASCII_ONLY = r"\b, \w and \W know ASCII letters only: leave out \b, and write \pL for a letter."
"""A reason why a pattern in another alphabet found nothing."""

COLOURS = r"Lines here hold colour codes (\x1b[1m), even next to words: leave out \b, and search for one word."
"""A reason why a pattern found nothing in what a terminal shows in colours."""

DELIMITERS = "Slashes around a pattern are searched too: leave them out, and write (?i) for /i."
"""A reason why a pattern written as in JavaScript or sed found nothing."""

QUOTES = "Quotes around a pattern are searched too: leave them out."
"""A reason why a quoted pattern found nothing."""

OPERATORS = "OR and AND are searched as text: write a|b for either, and a.*b|b.*a for both in one line."
"""A reason why a pattern written for a search engine found nothing."""


def line_ends_not_searched(*, crlf: bool) -> str:
    r"""Say why a pattern with ``\r`` found nothing, and whether a searched line ends with ``\r\n``."""
    if crlf:
        return r"Line ends are not searched. Some or all here are \r\n: leave out \r, and use $ for the end of a line."
    return r"Line ends are not searched. None here is \r\n."


def unsupported(construct: str, advice: str) -> str:
    """Return the error for a pattern that the linear-time engine cannot run."""
    return f"pattern uses {construct}, which the search engine (RE2) does not support: {advice}"


def too_complex(size: int) -> str:
    """Return the error for a pattern whose repeats make it too large for this much content."""
    return (
        f"pattern is too complex for content of {size:,} bytes: "
        "use * or + instead of counted repeats such as {0,200}, or search a line_range"
    )


# -- queries


_OTHERS = [name for name in PROPOSED if name != "query"]
_NOT_BY_QUERY = f"use {', '.join(_OTHERS[:-1])} or {_OTHERS[-1]}"
"""What to use if a query is refused: the end of such errors."""

LITERALS = "In JMESPath write text in single quotes ('paid') and numbers in backticks (`9`)"


def result_header(query: str, kind: str, total: int, shown: tuple[int, int] | None, *, hint: str) -> str:
    """Return the header of a query result; ``shown`` is given if only some of its characters are shown."""
    which = f"; {shown[0]:,}-{shown[1] - 1:,} shown" if shown else ""
    return f"[Result of query '{query}': {kind}, {total:,} characters{which}{hint}]"


NO_ITEMS = f"; nothing matched, or the list is empty or all nulls: check the field names. {LITERALS}"
"""Ends the header of an empty list: names the most frequent mistakes, though the list may rightly be empty."""


def taken_as_text(name: str) -> str:
    """Say that a name was taken as text, because no field has it."""
    return f"; '{one_line(name)}' taken as text: no field has that name"


def left_out(count: int, function: str, accepted: Sequence[str], actual: str) -> str:
    """Say that a filter left out items for which its condition raised an error."""
    items = "1 item was" if count == 1 else f"{count:,} items were"
    return f"; {items} left out: {_refuses(function, accepted, actual)}"


def always_null(name: str) -> str:
    """Say that a field that a query compared was never there."""
    return f"; {one_line(name)} was null in every comparison: check the field names"


def text_is_no_field(text: str) -> str:
    """Say that a query compared two constants."""
    return f"; '{one_line(text)}' is text: name a field in double quotes"


NO_TEXTS = "; text was compared with numbers or booleans: write these in backticks (`9`, `true`)"
"""Ends the header of a result that compared text with other kinds of value, which are never equal."""

ONLY_TEXTS = "; a number was compared with text only: write text in single quotes ('9')"
"""Ends the header of a result that compared a number with text only."""

NO_LISTS = "; a list was compared with a single value: write contains(name, 'a'), or for objects name[?key == 'a']"
"""Ends the header of a result that compared a list with a single value, which it never equals."""

NUMBERS_AS_TEXT = "; a number was compared with numbers written as text: write to_number(name) > `9`"
"""Ends the header of a result that compared numbers with numbers written as text, which have another order as text."""

MISORDERED = "; numbers written as text were ordered as text ('10' < '9'): use to_number(name)"
"""Ends the header of a result that depends on the order of numbers that are text."""


def not_a_number(text: str) -> str:
    """Say that ``to_number`` gave null for a string with digits, which no projection or filter shows."""
    return f"; to_number gave null for text such as '{one_line(text)}'"


NOT_ORDERED = "NaN has no order. First leave it out, as in [?name == name]"
"""The error for ordering values that include NaN."""

FILTERS_LISTS = "; [?...] filters a list, but got an object: filter its values, as in values(x)[?...]"
"""Ends the header of a result that filtered nothing, since only lists are filtered."""


def constant_key(function: str, text: str) -> str:
    """Return the error for ordering items by text that is the same for each."""
    return f"invalid query: {function}() orders by the constant '{one_line(text)}': name a field in double quotes"


def nothing_selected(query: str, *, hint: str) -> str:
    """Say that a query gave null."""
    why = hint or ": check the field names; query 'keys(@)' lists them for an object, 'keys([0])' for a list"
    return f"[Query '{query}' matched nothing (null){why}]"


def records_kind(results: int, records: int, what: str) -> str:
    """Describe what a query gave on each line of JSON Lines, or on each joined block; ``what`` names them."""
    return f"each {what} queried by itself, {results:,} of {records:,} gave a result"


def not_json(others: int, what: str) -> str:
    """Say that some lines or items were not queried."""
    return f"; {others:,} {what}{' is' if others == 1 else 's are'} not JSON"


def list_kind(items: int) -> str:
    """Describe a list."""
    return f"list of {items:,} item{'' if items == 1 else 's'}"


def object_kind(keys: int) -> str:
    """Describe an object."""
    return f"object of {keys:,} key{'' if keys == 1 else 's'}"


def too_large_to_query(size: int, limit: int) -> str:
    """Return the error for a query on more JSON than is parsed at once."""
    return f"content of {size:,} bytes is too large for a query (limit {limit:,}): {_NOT_BY_QUERY}"


WORDS_LEFT_OUT = "; the words before and after the JSON are left out"
"""Ends the header of a result if the content is more than JSON."""

NOT_JSON = f"content is neither JSON nor JSON Lines, so query cannot be used: {_NOT_BY_QUERY}"
"""The error for a query on text that does not parse."""

NUMBER_TOO_LONG = f"content holds a number of thousands of digits, which query cannot read: {_NOT_BY_QUERY}"
"""The error for a query on content with a number that cannot be read."""

TOO_MUCH_WORK = "the query needs too much work: put [0:10000] | before it to look at a part, or use pattern"
"""The error for a query that exceeds its budget."""

TOO_DEEP = f"the query or the content is nested too deeply: select a part, or {_NOT_BY_QUERY}"
"""The error for a query or content that is nested too deeply."""


def invalid_query(reason: str) -> str:
    """Return the error for an invalid query, with the engine's message.

    Its last line, a caret below the expression, is omitted: the message names what the caret points at.
    """
    named = " ".join(line for line in reason.splitlines() if line.strip() != "^")
    names = 'names such as a-b in double quotes (x."a-b")'
    return f"invalid query: {named}. {LITERALS}, {names}, == && || ! as operators, and no $ or dot first"


def unknown_function(reason: str, known: Iterable[str]) -> str:
    """Return the error for a function that JMESPath does not have."""
    return f"invalid query: {reason}. JMESPath has only {', '.join(known)}"


NUMERIC_STRING = "numeric string"
"""The type that a function got if it is a number written as text."""


def mismatched(function: str, accepted: Sequence[str], actual: str) -> str:
    """Return the error for a function that got a value of a type that it does not accept."""
    wanted = accepted[accepted[0] == "array" and len(accepted) > 1].removeprefix("array-")
    leave_out = f"leave other values out, as in [?type(name) == '{wanted}']"
    if actual == NUMERIC_STRING and wanted == "number":
        advice = "turn text into numbers: [].to_number(name)"
    else:
        advice = "select an item, such as [0]" if actual == "array" else leave_out
    return f"invalid query: {_refuses(function, accepted, actual)}. First {advice}"


def _refuses(function: str, accepted: Sequence[str], actual: str) -> str:
    return f"function {function}() takes {' or '.join(accepted)}, but got {actual}"
