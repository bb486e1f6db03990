"""Parse JSON for queries, and render values as text for the answer.

Integers of any length and NaN are preserved; other numbers become the nearest double: infinity for ``1e400``. Content
may also be JSON Lines: one value per line, or multi-line objects one after the other. A few lines may be something
else, as in a preview: what a program prints before it logs, or a line that was cut off. Nothing here knows about
queries.
"""

from __future__ import annotations

import json
import re
from itertools import chain
from typing import TYPE_CHECKING

import orjson

from coatcheck.core.embedded import MAX_OTHER_LINES
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.reading import wording
from coatcheck.core.reading.index import decode
from coatcheck.core.reading.pattern import Matcher

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ("EMPTY", "OTHER", "parse_json", "parse_records", "render", "render_records", "split_objects")

_LONG_NUMBER = Matcher("[0-9]{19}")
"""An integer beyond 64 bits has at least 19 digits, and orjson would silently make it a float. Any other run of that
many digits only costs time."""

_LINES_AT_ONCE = 10_000
"""Lines parsed at once: some milliseconds, after which other threads can run."""

EMPTY = object()
"""Stands for the value of a blank line."""

OTHER = object()
"""Stands for the value of a line that is not JSON."""

_BETWEEN_OBJECTS = re.compile(
    rb"\n(?=[^\s,}\]])"
    rb"(?:(?<=\}\n)|(?<=\}\r\n)"
    rb"|(?=\{)(?:(?<=[^\s\[,:]\n)|(?<=[^\s\[,:]\r\n)|(?<=[^\s\":]:\n)|(?<=[^\s\":]:\r\n)))"
)
"""The line end between two objects, or between words and an object. JSON has none like it elsewhere: a line end in a
string is escaped, a comma separates members, and a quote precedes a colon. The pattern begins with a plain byte, which
is found ten times as fast as by looking back from each byte."""

_SPLIT_AT_ONCE = 262_144
"""Bytes searched at once for the ends of objects. A search holds the interpreter's lock for at most about 15
milliseconds."""

_BOM = "\ufeff"


def parse_json(data: bytes) -> object:
    """Parse ``data`` as JSON.

    Raises:
        InvalidRequest: it holds a number of more digits than Python accepts.
        JSONDecodeError: it is not JSON.
        RecursionError: it is nested too deeply.

    """
    return _parser(data)(data)


def parse_records(data: bytes, pieces: Sequence[bytes], *, by_lines: bool = False) -> list[object] | None:
    """Return the value of each of the ``pieces`` of ``data``: ``EMPTY`` if it is blank, ``OTHER`` if it is not JSON.

    Return None if too many are not JSON, or if fewer than two hold a value. ``by_lines`` gives ``OTHER`` for each line
    of a piece that is not an object or list: a single one may be most of ``data``, and a bare number may be the status
    of a request.

    Raises:
        InvalidRequest: a value holds a number of more digits than Python accepts.
        RecursionError: a value is nested too deeply.

    """
    parse = _parser(data)
    records: list[object] = []
    others, most = 0, MAX_OTHER_LINES * (1 + data.count(b"\n") if by_lines else len(pieces))
    for start in range(0, len(pieces), _LINES_AT_ONCE):
        some = pieces[start : start + _LINES_AT_ONCE]
        found = _parse_some(some, parse)
        if by_lines:
            lines = (
                [value] if isinstance(value, dict | list) else [OTHER] * (1 + piece.count(b"\n"))
                for piece, value in zip(some, found, strict=True)
            )
            found = list(chain.from_iterable(lines))
        others += found.count(OTHER)
        if others > most:
            return None
        records += found
    return records if len(records) - records.count(EMPTY) - records.count(OTHER) > 1 else None


def split_objects(data: bytes) -> list[bytes]:
    """Split multi-line objects that follow one another, as ``jq`` prints them."""
    data, pieces, at = data.removesuffix(b"\n"), list[bytes](), 0
    for start in range(0, len(data), _SPLIT_AT_ONCE):
        stop = min(len(data), start + _SPLIT_AT_ONCE + 1)  # the last byte is only looked at: a match ends before it
        for end in _BETWEEN_OBJECTS.finditer(data, start, stop):
            pieces.append(data[at : end.start()])
            at = end.end()
    return [*pieces, data[at:]]


def _parse_some(pieces: Sequence[bytes], parse: Callable[[bytes], object]) -> list[object]:
    """Parse pieces: ordinary ones in one step, which takes a third of the time of a call for each."""
    if parse is _parse:
        try:
            return list(map(orjson.loads, pieces))
        except ValueError:
            pass
    return [_parse_one(piece, parse) for piece in pieces]


def _parse_one(piece: bytes, parse: Callable[[bytes], object]) -> object:
    if not piece.strip():
        return EMPTY
    try:
        return parse(piece)
    except json.JSONDecodeError:
        return OTHER


def render(value: object) -> str:
    """Format a value for the model: a string as it is, anything else as JSON.

    Each list item and each key of an object has a line of its own.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(map(_dumps, value)) + "\n]"
    if isinstance(value, dict) and value:
        return "{\n" + ",\n".join(f"{_dumps(key)}: {_dumps(item)}" for key, item in value.items()) + "\n}"
    return _dumps(value)


def render_records(results: list[tuple[int, object]]) -> str:
    """Format values as JSON, one per line, each after the number of its line or item."""
    return "\n".join(f"{number}| {_dumps(value)}" for number, value in results)


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _parser(data: bytes) -> Callable[[bytes], object]:
    """Return the fastest parser that gives the values of ``data`` exactly."""
    return _parse_standard if _LONG_NUMBER.find(data, 0, len(data)) else _parse


def _parse(data: bytes) -> object:
    try:
        return orjson.loads(data)
    except ValueError:
        return _parse_standard(data)  # it accepts NaN, infinity and lone surrogates


def _parse_standard(data: bytes) -> object:
    try:
        return json.loads(decode(data).removeprefix(_BOM))
    except json.JSONDecodeError:
        raise
    except ValueError:  # from int(), which accepts 4,300 digits unless the host set another limit
        raise InvalidRequest(wording.NUMBER_TOO_LONG) from None
