"""Reads a list of records in JSON piece by piece: where each record begins and ends, and what is around the list."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import orjson

from coatcheck.core.preview.notation import key_of
from coatcheck.core.preview.pieces import PIECE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.preview.odd import OddSearch

__all__ = (
    "Item",
    "NotRead",
    "Opened",
    "finite",
    "items_in",
    "members_after",
    "opened",
    "parting_of",
    "read_list",
    "split_list",
)

Item: TypeAlias = "tuple[int, int, JsonValue]"
"""A record: where it begins and ends, and its value."""

_MAX_MEMBERS = 40
_MAX_LEVELS = 4
_MAX_TRIES = 3

_BLANKS = " \t\r\n"
_BLANK = re.compile(f"[{_BLANKS}]*")


class NotRead(Exception):
    """The text ends here, or does not continue as expected."""


def finite(digits: str) -> float:
    """Parse a number; raise ``ValueError`` for one such as 1e400, which would be shown as infinity."""
    number = float(digits)
    if math.isinf(number):
        raise ValueError(digits)
    return number


_DECODER = json.JSONDecoder(parse_float=finite)


class Opened(NamedTuple):
    """What comes before the first record of a list."""

    at: int
    """Where the first record begins."""

    path: tuple[str, ...]
    """The names of the members that lead to the list, as a query writes them."""

    before: dict[str, JsonValue]
    """The members before it, by path."""


def opened(text: str) -> Opened:
    """Return where the list in ``text`` begins, if ``text`` is a list or little more than one.

    Raises:
        NotRead: there is no such list.

    """
    head = text[:PIECE]
    before: dict[str, JsonValue] = {}
    path: tuple[str, ...] = ()
    at = _skip(head, 0)
    while head[at : at + 1] == "{" and len(path) < _MAX_LEVELS:
        name, at = _members_before(head, at + 1, before, path)
        path = (*path, name)
    if head[at : at + 1] != "[":
        raise NotRead
    return Opened(_skip(head, at + 1), path, before)


def parting_of(window: str, items: list[Item]) -> str:
    """Return the characters between the first two records of a list, with the adjacent character of each record."""
    return window[items[0][1] - 1 : items[1][0] + 1]


def read_list(text: str, search: OddSearch) -> Iterator[tuple[int, int]]:
    """Add the records of the first list of ``text`` to ``search``; yield where each piece of it begins and ends.

    Stop where the list ends, if too many of the items are not objects, and at an item longer than a piece.
    """
    try:
        at = opened(text).at
    except NotRead:
        return
    parting = ""
    while True:
        window = text[at : at + PIECE]
        records, end = _quickly(window, parting) if parting else ([], 0)
        is_last = False
        if not records:
            items, end = items_in(window, 0)
            records = [item[2] for item in items]
            parting = parting_of(window, items) if len(items) > 1 else parting
            is_last = bool(items) and window[end - 1] == "]"
        if not records or not search.add(records):
            return
        yield at, at + end
        at += end
        if is_last:
            return


def split_list(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return where each record of a piece of ``read_list`` begins and ends."""
    items, _ = items_in(f"{text[start:end]}]", 0)
    return [(start + begins, start + ends) for begins, ends, _ in items]


def _quickly(window: str, parting: str) -> tuple[list[JsonValue], int]:
    """Return the records up to the last usable ``parting``, and where the next record begins; no records without one.

    ``window`` begins with a record. If its text before a ``parting`` is valid JSON when put in brackets, that text does
    not end inside a string or a record.
    """
    stop = len(window)
    for _ in range(_MAX_TRIES):
        stop = window.rfind(parting, 0, stop)
        if stop < 0:
            break
        try:
            records: list[JsonValue] = orjson.loads(f"[{window[: stop + 1]}]")
        except ValueError:
            continue
        return records, stop + len(parting) - 1
    return [], 0


def items_in(window: str, at: int) -> tuple[list[Item], int]:
    """Return the complete values from ``at`` on, each with its place, and where they end."""
    items: list[Item] = []
    at = _skip(window, at)
    while True:
        try:
            value, end = _value(window, at)
        except NotRead:
            return items, at
        behind = _skip(window, end)
        if window[behind : behind + 1] == "]":
            return [*items, (at, end, value)], behind + 1
        if window[behind : behind + 1] != ",":
            return items, at
        items.append((at, end, value))
        at = _skip(window, behind + 1)


def _members_before(head: str, at: int, members: dict[str, JsonValue], path: tuple[str, ...]) -> tuple[str, int]:
    """Read members up to one that does not end in this window; return its name and where its value begins."""
    while len(members) < _MAX_MEMBERS:
        name, at = _name(head, at)
        written = key_of(name)
        try:
            value, end = _value(head, at)
        except NotRead:
            return written, at
        end = _skip(head, end)
        if head[end : end + 1] != ",":
            return written, at
        members[".".join((*path, written))] = value
        at = end + 1
    raise NotRead


def members_after(tail: str, at: int, path: tuple[str, ...]) -> dict[str, JsonValue]:
    """Return the members after the list that ``path`` leads to, by path.

    Raises:
        NotRead: the text does not end after them.

    """
    members: dict[str, JsonValue] = {}
    at = _skip(tail, at)
    for depth in range(len(path) - 1, -1, -1):
        while tail[at : at + 1] == "," and len(members) < _MAX_MEMBERS:
            name, at = _name(tail, at + 1)
            members[".".join((*path[:depth], key_of(name)))], at = _value(tail, at)
            at = _skip(tail, at)
        if tail[at : at + 1] != "}":
            raise NotRead
        at = _skip(tail, at + 1)
    if at < len(tail):
        raise NotRead
    return members


def _name(window: str, at: int) -> tuple[str, int]:
    name, at = _value(window, _skip(window, at))
    at = _skip(window, at)
    if not isinstance(name, str) or window[at : at + 1] != ":":
        raise NotRead
    return name, _skip(window, at + 1)


def _value(window: str, at: int) -> tuple[JsonValue, int]:
    try:
        value: tuple[JsonValue, int] = _DECODER.raw_decode(window, at)
    except (ValueError, RecursionError):
        raise NotRead from None
    return value


def _skip(window: str, at: int) -> int:
    if window[at : at + 1] not in _BLANKS:
        return at  # nearly always so, and a tenth of the time of a match
    found = _BLANK.match(window, at)
    return found.end() if found else at
