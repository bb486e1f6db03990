"""JSON: an outline with the real field names, so that a query can use them. Only the ends of a large list are read.

JSON in which an object has a key twice is shown as text: the parsed value would hold only the last of the two.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import TYPE_CHECKING

import orjson

from coatcheck.core.preview.json_ends import LARGE, preview_json_ends, search_json
from coatcheck.core.preview.json_list import finite
from coatcheck.core.preview.names import ESCAPE, without_notation
from coatcheck.core.preview.outline import fit_outline
from coatcheck.core.preview.text import preview_text

if TYPE_CHECKING:
    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("RepeatedKeys", "outline_json", "parse_json", "preview_json")

MAX_PARSED_CHARACTERS = 8_000_000
"""Characters. Parsing holds the interpreter's lock, 0.1 to 0.3 s for 8 MB of records: an exception to staying off the
event loop."""

_MAX_VALUES = 500_000
"""The most commas in JSON that is parsed: 8 MB of nothing but small values would become millions of objects."""

_MAYBE_ROUNDED = re.compile(r"\de\+\d")
"""A float that may be rounded: orjson parses an integer beyond 64 bits as a float. If the preview shows one, the text
is parsed again by the standard ``json``, which is exact."""


class RepeatedKeys(Exception):
    """An object has a key twice."""


def preview_json(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return an outline within ``budget`` tokens, or None if the text is not JSON or nothing useful fits."""
    try:
        return outline_json(content, budget, counter)
    except RepeatedKeys:
        return preview_text(content, budget, counter)


def outline_json(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Do what ``preview_json`` does, but raise if a key is repeated.

    Raises:
        RepeatedKeys: an object has a key twice, so the parsed value lacks one of the two values.

    """
    if len(content.text) > LARGE:
        shown = preview_json_ends(content, budget, counter)
        if shown is not None or not _is_parsed(content):
            return shown
    try:
        value = parse_json(content.text)
    except (RecursionError, ValueError):
        return None
    if _has_repeated_keys(content.text, value):
        raise RepeatedKeys
    fit = partial(fit_outline, text=content.text, names_of=without_notation(content.text, ESCAPE))
    shown = fit(value, budget, counter)
    if shown is not None and _MAYBE_ROUNDED.search(shown):
        try:
            return fit(json.loads(content.text), budget, counter)
        except (RecursionError, ValueError):
            return None  # nested deeper than the standard parser goes, or a number with more digits than Python reads
    return shown


def parse_json(text: str) -> JsonValue:
    """Parse JSON ``text``, which may contain what only Python writes: NaN, infinity and lone surrogates.

    Raises:
        RecursionError: it is nested deeper than either parser goes.
        ValueError: it is not JSON, or has a number that is too large for a float and would become infinity.

    """
    try:
        value: JsonValue = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        if error.pos == len(text):  # it breaks off, so the other parser cannot read it either
            raise
        value = json.loads(text.removeprefix("\ufeff"), parse_float=finite)
    return value


def _has_repeated_keys(text: str, value: JsonValue) -> bool:
    """Return whether an object in ``text`` has a key twice, so that ``value`` lacks the first of its values.

    If so, ``text`` has more quotes than ``value`` written as JSON. A quote inside a string counts once in both.
    """
    try:
        written = orjson.dumps(value)
    except TypeError:  # nested deeper than orjson writes
        return False
    return text.count('"') + text.count("\\u0022") > written.count(b'"')


def _is_parsed(content: Previewed) -> bool:
    """Return whether to parse large text in full: not if it is too large, or if the search found another kind."""
    is_other = content.found is not None and content.found.by is not search_json
    return not is_other and len(content.text) <= MAX_PARSED_CHARACTERS and content.text.count(",") <= _MAX_VALUES
