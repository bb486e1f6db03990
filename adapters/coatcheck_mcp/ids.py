"""The id in a line that is too long or too broken to be parsed, so that whoever waits for it is told.

Only the names on the top level of the line count, since a text within may say anything. They are looked for in both
ends of the line, in the last one backwards.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("EDGE", "id_in")

EDGE = 4096
"""Bytes of each end that are looked at."""

_OTHER = rb"|[{}\[\],:]|[^\s{}\[\],:\"]+)\s*"
_TOKEN = re.compile(rb'\s*("[^"\\]*(?:\\.[^"\\]*)*"' + _OTHER, re.DOTALL)
_ESCAPED = rb"\\(?:\\\\)*(?!\\)"
"""An odd number of backslashes: what they follow, read backwards, is no end of a text."""

_TOKEN_BACKWARDS = re.compile(
    rb'\s*("[^"]*(?:"(?=' + _ESCAPED + rb')[^"]*)*"(?!' + _ESCAPED + rb")" + _OTHER, re.DOTALL
)

_WITHIN = b"[]"
"""Stands for a list or an object on the top level."""

_ID = re.compile(rb'-?\d{1,18}|".*"', re.DOTALL)


def id_in(line: bytes, *, asks: bool = False) -> int | str | None:
    """Return the id of the request that a line answers, or that it is if it ``asks``.

    None if no id is to be seen, or not that the line is such a one.
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
    """Yield what JSON consists of, up to the first byte that belongs to none."""
    found = pattern.match(text)
    while found is not None:
        yield found[1]
        found = pattern.match(text, found.end())


def _top_level(tokens: Iterator[bytes], *, opening: bytes, closing: bytes) -> list[bytes]:
    """Return the tokens of an object; each list or object within is one."""
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
    """Yield the names of an object of which a part is there, each with its value; that is empty where it is not."""
    for at, token in enumerate(tokens):
        if token == b":" and at > 1 and tokens[at - 2] in b"{,":
            is_whole = len(tokens) > at + 2 and tokens[at + 2] in b",}"
            yield tokens[at - 1], tokens[at + 1] if is_whole else b""
