"""JSON that Python's own parser refuses although it is JSON: numbers of thousands of digits, thousands of levels.

Such a value is read as a ``str``: the text that it is. So it can leave as any other text does. orjson was rejected: it
reads no more levels, and makes a float of a long number.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ("read_odd",)

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[][{}]|-?\d[-+.\deE]*', re.DOTALL)

_MOST_LEVELS = 100
"""More than ``shapes`` looks at."""

_MOST_DIGITS = 4_300
"""Python reads no integer with more (``sys.int_info.default_max_str_digits``): the time is quadratic."""


def read_odd(raw: bytes) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return what JSON holds, with a ``str`` for each number that is too long, and for each value that is too deep.

    Raises:
        ValueError: it is not JSON.

    """
    pieces: list[bytes] = []
    end = level = start = 0
    for token in _TOKEN.finditer(raw):
        level += token[0] in {b"[", b"{"}
        if level == _MOST_LEVELS and token[0] in {b"[", b"{"}:
            start = token.start()
        is_deep = level == _MOST_LEVELS and token[0] in {b"]", b"}"}
        if is_deep or (level < _MOST_LEVELS and _is_long(token[0])):
            start = start if is_deep else token.start()
            text = raw[start : token.end()].decode("utf-8", "replace")
            pieces += raw[end:start], json.dumps(text).encode()
            end = token.end()
        level -= token[0] in {b"]", b"}"}
    return json.loads(b"".join([*pieces, raw[end:]]))


def _is_long(token: bytes) -> bool:
    return len(token) > _MOST_DIGITS and token.lstrip(b"-").isdigit()
