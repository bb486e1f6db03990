"""Reads JSON that Python's own parser refuses: numbers of thousands of digits, thousands of levels.

A value that is too deep becomes a ``str`` with its JSON, so it can leave like any other string. orjson was rejected: it
reads no more levels, and makes a float of a long number.
"""

from __future__ import annotations

import json
import re
from typing import Any

from coatcheck.hook.numbers import read

__all__ = ("read_odd",)

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[][{}]', re.DOTALL)
"""A string may lack its end, which the parser reports. Looking for other tokens in it would take quadratic time."""

_MAX_LEVELS = 100
"""More levels than ``shapes`` looks at."""


def read_odd(raw: bytes) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Parse JSON, with a ``Fragment`` where a number is too long, and a ``str`` where a value is too deep.

    Raises:
        ValueError: it is not JSON.

    """
    pieces: list[bytes] = []
    end = level = start = 0
    for token in _TOKEN.finditer(raw):
        if token[0] in {b"[", b"{"}:
            level += 1
            if level == _MAX_LEVELS:
                start = token.start()
        elif token[0] in {b"]", b"}"}:
            if level == _MAX_LEVELS:
                text = raw[start : token.end()].decode("utf-8", "replace")
                pieces += raw[end:start], json.dumps(text).encode()
                end = token.end()
            level -= 1
    whole = b"".join([*pieces, raw[end:]])
    return read(whole, is_odd=True)
