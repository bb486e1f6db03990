"""Find the id in a line that is too long or too broken to parse, so that the caller that waits for it is told.

Only top-level keys count, since nested text may say anything. Both ends of the line are searched; the last one is read
backwards.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("EDGE", "id_in")

EDGE = 4096
"""Bytes. How much of each end is searched."""

_OTHER = rb"|[{}\[\],:]|[^\s{}\[\],:\"]+)\s*"
_TOKEN = re.compile(rb'\s*("[^"\\]*(?:\\.[^"\\]*)*"' + _OTHER, re.DOTALL)
_ESCAPED = rb"\\(?:\\\\)*(?!\\)"
"""An odd number of backslashes. Read backwards, they follow an escaped quote, which does not end the string."""

_TOKEN_BACKWARDS = re.compile(
    rb'\s*("[^"]*(?:"(?=' + _ESCAPED + rb')[^"]*)*"(?!' + _ESCAPED + rb")" + _OTHER, re.DOTALL
)

_WITHIN = b"[]"
"""Stands for a list or an object inside the top-level one."""

_ID = re.compile(rb'-?\d{1,18}|".*"', re.DOTALL)


def id_in(line: bytes, *, asks: bool = False) -> int | str | None:
    """Return the id of the request that a line answers or, with ``asks``, is.

    None if the ends of the line show no id, or do not show that it is an answer (with ``asks``: a request).
    """
    first = _top_level(_tokens(line[:EDGE], _TOKEN), opening=b"{[", closing=b"}]")
    last = _top_level(_tokens(line[-EDGE:][::-1], _TOKEN_BACKWARDS), opening=b"}]", closing=b"{[")
    members = [*_members(first), *_members([token[::-1] for token in reversed(last)])]
    names = {name for name, _ in members}
    values = {value for name, value in members if name == b'"id"' and value}
    is_request, is_answer = b'"method"' in names, not names.isdisjoint({b'"result"', b'"error"'})
    if is_request != asks or is_answer == asks or len(values) != 1:
        return None
    (value,) = values
    try:
        identifier: int | str | None = json.loads(value.decode()) if _ID.fullmatch(value) else None
    except ValueError:
        return None
    return identifier


def _tokens(text: bytes, pattern: re.Pattern[bytes]) -> Iterator[bytes]:
    """Yield the JSON tokens, up to the first byte that belongs to none."""
    found = pattern.match(text)
    while found is not None:
        yield found[1]
        found = pattern.match(text, found.end())


def _top_level(tokens: Iterator[bytes], *, opening: bytes, closing: bytes) -> list[bytes]:
    """Return the tokens of an object; each list or object within it counts as one."""
    found: list[bytes] = []
    depth = 0
    for token in tokens:
        depth -= token in closing
        if depth == 1 and token in closing:
            found.append(_WITHIN)
        elif depth == 0 or (depth == 1 and token not in opening):
            found.append(token)
        depth += token in opening
        if depth == 0:
            break
    return found


def _members(tokens: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the keys of a partial object, each with its value; a missing or cut value is empty."""
    for at, token in enumerate(tokens):
        if token == b":" and at > 1 and tokens[at - 2] in b"{,":
            is_whole = len(tokens) > at + 2 and tokens[at + 2] in b",}"
            yield tokens[at - 1], tokens[at + 1] if is_whole else b""
