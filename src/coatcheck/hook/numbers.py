"""Reads and writes JSON without changing numbers that Python would rewrite, or could not write as JSON.

``1e999`` is JSON. Python reads it as infinity and writes ``Infinity``, which is not JSON. So a number with a point or
an exponent is never parsed: orjson keeps its characters in a ``Fragment`` and writes them again. That takes less time
than making a ``float``. ``decimal`` was rejected: it does not write the characters that it read.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING, Any

from coatcheck.core.forks import loading

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("marked", "read", "unmarked")

_MARK = os.urandom(16).hex()
"""Begins the string that Python writes in place of a number. It is random, so no string of a tool begins with it."""

_MARKED = re.compile(rf'"{_MARK}([^"]*)"'.encode())

_MAX_DIGITS = getattr(sys, "get_int_max_str_digits", int)() or 4_300
"""Python parses no integer with more digits: that takes quadratic time. The environment may set the limit, except in
early 3.10."""

_MAX_SLOWLY = 100_000
"""Bytes. Up to this size, a result is read without orjson, which is slow to load, unless there is a number to keep."""


def read(raw: bytes, *, is_odd: bool = False) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Parse JSON, with a ``Fragment`` for each number that has a point or an exponent.

    Args:
        raw: the JSON. ``NaN``, which is not JSON, becomes a string of three letters.
        is_odd: whether it may have integers that Python refuses to parse. They become a ``Fragment`` too.

    Raises:
        ValueError: it is not JSON, or has an integer that is too long.
        RecursionError: it is too deep.

    """
    kept: Callable[[str], object] = _kept
    if len(raw) > _MAX_SLOWLY:
        with loading:
            from orjson import Fragment as kept  # noqa: PLC0415, N813 - as fast as a `float`
    return json.loads(raw, parse_float=kept, parse_int=_integer if is_odd else None, parse_constant=str)


def _kept(written: str) -> object:
    with loading:
        from orjson import Fragment  # noqa: PLC0415 - slow to load, and few small results have such a number

    return Fragment(written)


def _integer(written: str) -> object:
    return int(written) if len(written) <= _MAX_DIGITS else _kept(written)


def marked(value: object) -> str:
    """Return the string that Python writes in place of a number; ``unmarked`` replaces it with the number."""
    with loading:
        from orjson import Fragment, dumps  # noqa: PLC0415 - loaded by now

    if not isinstance(value, Fragment):
        msg = f"{type(value).__name__} is not JSON"
        raise TypeError(msg)
    return _MARK + dumps(value).decode()


def unmarked(data: bytes) -> bytes:
    """Return JSON with the numbers themselves in place of the strings that ``marked`` wrote."""
    return _MARKED.sub(rb"\1", data) if _MARK.encode() in data else data
