"""Writes JSON values in few tokens: as JSON, without the quotes and braces that say nothing.

A string is bare if nobody can take it for another type or for two values; otherwise it is written as in JSON. A value
is written whole or shown by its size, never cut silently.
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring
from typing import TYPE_CHECKING

from coatcheck.core.preview.encoded import SHOWN, is_base64_string

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck.core.blocks import JsonValue

__all__ = ("MIN_CUT", "Verbatim", "brief", "count_of", "key_of", "named", "parts_of", "scalar")

_BARE = re.compile(
    r"(?!-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$)(?!(?:true|false|null|NaN|-?Infinity)$)"
    r"[^\x00-\x20\"'\[\]{}|,;](?:[^\x00-\x1f\"\[\]{}|,;\\]*[^\s\"\[\]{}|,;\\])?"
)
"""Strings that need no quotes: not a number, not a word of JSON, and without anything that separates values."""

MIN_CUT = 40
"""Characters. Cutting fewer saves nothing: the note about the missing ones takes about 30 itself."""

_DEEPEST = 12
"""Levels of nesting that are written out. Deeper containers are shown by their size."""


_FIRST_LINE = 60
"""Characters of the first line that are shown of a list of lines."""

_WORDS: dict[JsonValue, str] = {None: "null", True: "true", False: "false"}


class Verbatim(str):
    """A value in another notation than JSON, shown as it is written: ``None``, ``Decimal('1.5')``."""

    __slots__ = ()


def key_of(key: str) -> str:
    """Return a field name as a query writes it: bare if it is an identifier, otherwise in double quotes."""
    bare = isinstance(key, Verbatim) or (key.isascii() and key.isidentifier())
    return key if bare else encode_basestring(key)


def count_of(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 key``, ``2,000 keys``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def scalar(value: JsonValue, longest: int) -> str:
    """Format a string, number, boolean or null. Cut a string longer than ``longest`` characters, and add its length.

    Base64 is always cut short.
    """
    if type(value) is Verbatim and len(value) <= longest:
        return value
    if isinstance(value, str):
        if len(value) > SHOWN + MIN_CUT and longest > SHOWN and is_base64_string(value):
            longest = SHOWN
        if len(value) > longest + MIN_CUT:
            return f"{encode_basestring(value[:longest])}… ({len(value):,} characters)"
        return value if isinstance(value, Verbatim) or _BARE.fullmatch(value) else encode_basestring(value)
    if type(value) is int:
        return str(value)
    return _WORDS[value] if value is None or isinstance(value, bool) else json.dumps(value)


def named(value: dict[str, JsonValue] | list[JsonValue]) -> str:
    """Return the size of a container: ``[12 objects]``, ``{3 keys}``, ``[9 lines: "# Results"]``."""
    if isinstance(value, dict):
        return "{" + count_of(len(value), "key") + "}"
    first = value[0] if value else None
    if isinstance(first, str) and first.endswith("\n") and all(map(_is_line, value)):  # as notebooks store text
        return f"[{count_of(len(value), 'line')}: {scalar(first[:-1], _FIRST_LINE)}]"
    noun = "object" if set(map(type, value)) == {dict} else "item"
    return f"[{count_of(len(value), noun)}]"


def _is_line(value: JsonValue) -> bool:
    return isinstance(value, str) and "\n" not in value[:-1]


def brief(value: JsonValue, longest: int) -> str:
    """Format a value on one line. A container that takes more than ``longest`` characters is shown by its size."""
    if not isinstance(value, (dict, list)):
        return scalar(value, longest)
    parts: list[str] = []
    length = 0
    for part in parts_of(value, 0, longest):
        parts.append(part)
        length += len(part)
        if length > longest:
            return named(value)
    return "".join(parts)


def parts_of(value: JsonValue, depth: int, longest: int) -> Iterator[str]:
    """Yield the pieces of a value on one line. A container that is nested too deep is shown by its size.

    A string longer than ``longest`` characters is cut.
    """
    if isinstance(value, (dict, list)) and depth > _DEEPEST:
        yield named(value)
    elif isinstance(value, dict):
        opening = "{"
        for key, child in value.items():
            yield f"{opening}{key_of(key)}: "
            yield from parts_of(child, depth + 1, longest)
            opening = ", "
        yield "}" if value else "{}"
    elif isinstance(value, list):
        opening = "["
        for child in value:
            yield opening
            yield from parts_of(child, depth + 1, longest)
            opening = ", "
        yield "]" if value else "[]"
    else:
        yield scalar(value, longest)
