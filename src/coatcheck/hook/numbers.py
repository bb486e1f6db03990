"""Numbers that Python would change: it would write another number, or something that is not JSON.

``1e999`` is JSON. Python reads it as infinity, and writes ``Infinity``, which is not. ``decimal`` was rejected: it
writes other characters than it read.
"""

from __future__ import annotations

import os
import re
import sys
from math import inf

__all__ = ("Number", "read_float", "read_integer", "unmarked")

_MARK = os.urandom(16).hex()
"""Begins the string that is written for a number. It is random, so no text of a tool begins with it."""

_MARKED = re.compile(rf'"{_MARK}([^"]*)"'.encode())

_MOST_CHARACTERS = 16
"""Without a sign. A float keeps 15 digits; the other is a point."""

_LEAST_FLOAT = 1e-300
"""A smaller float keeps fewer digits."""

_MOST_DIGITS = getattr(sys, "get_int_max_str_digits", int)() or 4_300
"""Python reads no integer with more: the time is quadratic. The environment may set it, except in the first 3.10."""


class Number:
    """A number as it was written. No dataclass, of which orjson would write the fields."""

    __slots__ = ("raw",)

    def __init__(self, raw: str) -> None:
        """Keep the number."""
        self.raw = raw

    def __len__(self) -> int:
        """Return how many characters it has."""
        return len(self.raw)

    @staticmethod
    def marked(value: object) -> str:
        """Return the string that is written for a number; ``unmarked`` replaces it with the number."""
        if not isinstance(value, Number):
            msg = f"{type(value).__name__} is not JSON"
            raise TypeError(msg)
        return _MARK + value.raw


def unmarked(data: bytes) -> bytes:
    """Return JSON with the numbers themselves where ``marked`` wrote strings."""
    return _MARKED.sub(rb"\1", data) if _MARK.encode() in data else data


def read_float(raw: str) -> float | Number:
    """Return a number with a point or an exponent: a float if that is the same number, else what was written."""
    value = float(raw)
    is_short = len(raw) <= _MOST_CHARACTERS + raw.startswith("-") and _LEAST_FLOAT < abs(value) < inf
    # JavaScript writes 1e-7, Python 1e-07.
    return value if is_short or raw in {written := repr(value), written.replace("e-0", "e-")} else Number(raw)


def read_integer(raw: str) -> int | Number:
    """Return an integer, or what was written if Python refuses to read it."""
    return int(raw) if len(raw) <= _MOST_DIGITS else Number(raw)
