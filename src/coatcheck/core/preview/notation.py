"""How JSON values are written in few tokens: as JSON, without the quotes and braces that say nothing.

A string is bare if nobody can take it for another type or for two values; else it is written as in JSON. A value is
written whole or named by its size, never cut silently.
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
"""Texts that need no quotes: not a number, not a word of JSON, and without anything that separates values."""

MIN_CUT = 40
"""The fewest characters worth leaving out of a text: saying that there are more takes as much room as some 30."""

_DEEPEST = 12
"""Levels that are written out. Deeper values are named by their size."""


_FIRST_LINE = 60
"""Characters of the first line of a text in lines."""

_WORDS: dict[JsonValue, str] = {None: "null", True: "true", False: "false"}


class Verbatim(str):
    """A value of another notation than JSON, shown as it is written: ``None``, ``Decimal('1.5')``."""

    __slots__ = ()


def key_of(key: str) -> str:
    """Return a field name as a query writes it: bare where it is a word, else in double quotes."""
    bare = isinstance(key, Verbatim) or (key.isascii() and key.isidentifier())
    return key if bare else encode_basestring(key)


def count_of(number: int, noun: str) -> str:
    """Return ``1 key``, ``2,000 keys``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def scalar(value: JsonValue, longest: int) -> str:
    """Return a text, number, truth value or null; of a text beyond ``longest`` characters its head, and its length.

    Of base64 the head is always short.
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
    """Return a container by its size: ``[12 objects]``, ``{3 keys}``, ``[9 lines: "# Results"]``."""
    if isinstance(value, dict):
        return "{" + count_of(len(value), "key") + "}"
    first = value[0] if value else None
    if isinstance(first, str) and first.endswith("\n") and all(map(_is_line, value)):  # as notebooks have a text
        return f"[{count_of(len(value), 'line')}: {scalar(first[:-1], _FIRST_LINE)}]"
    noun = "object" if set(map(type, value)) == {dict} else "item"
    return f"[{count_of(len(value), noun)}]"


def _is_line(value: JsonValue) -> bool:
    return isinstance(value, str) and "\n" not in value[:-1]


def brief(value: JsonValue, longest: int) -> str:
    """Return a value on one line; a container that takes more than ``longest`` characters is named by its size."""
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
    """Yield a value in pieces, as it is written on one line; what is nested too deep is named by its size.

    Of a text beyond ``longest`` characters comes the head.
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
