"""Large JSON: the records at both ends of its list, read without reading what is between them.

For a list of records, or an object with one such list among small members. The gap is named in characters, which
``offset`` reads on from. How many records there are is estimated, and called that: a count needs all of them read.
Where an object may have a second list, the records at its end may be that one's: only those at its head are shown.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from coatcheck.core.preview.notation import brief, key_of
from coatcheck.core.preview.table import Records, table

if TYPE_CHECKING:
    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

    Item: TypeAlias = tuple[int, int, JsonValue]

__all__ = ("preview_json_ends",)

_LEAST_WINDOW = 16 * 1024
"""Characters that are read at each end at least."""

_READ_FOR_A_TOKEN = 16
"""Characters that are read there for each token of the preview, of which a table shows a quarter at most."""

_MOST_TRIES = 8
_LEAST_RECORDS = 2
_MOST_MEMBERS = 40
_LONGEST_MEMBER = 300
_MOST_SEARCHED = 30_000_000
"""Characters between both ends of an object that are searched for another member, 1 to 3 ms for each million."""

_MOST_CLOSED = 4_000_000
"""Lists that end there: each costs as much as ten other characters."""

_STEP = 1_000_000
"""Characters that are searched at once: other threads get the interpreter in between."""

_ANOTHER_MEMBER = re.compile(r'\][ \t\r\n]*,[ \t\r\n]*"')
"""Stands where a list ends and another member follows: outside the list, inside a record or in a text."""

_BLANKS = " \t\r\n"
_BLANK = re.compile(f"[{_BLANKS}]*")


@dataclass(frozen=True, slots=True)
class _Ends:
    """The members before the list, its first records, and of the last list in the text the last ones, and what follows.

    Both lists are one, unless an object has several: see ``_is_one_list``.
    """

    before: dict[str, JsonValue] = field(default_factory=dict)
    name: str | None = None
    first: list[Item] = field(default_factory=list)
    last: list[Item] = field(default_factory=list)
    after: dict[str, JsonValue] = field(default_factory=dict)


class _NotRead(Exception):
    """The text ends here, or goes on in another way."""


def _finite(written: str) -> float:
    """Return a number; raises ``ValueError`` for one such as 1e400, which would be shown as infinity."""
    number = float(written)
    if math.isinf(number):
        raise ValueError
    return number


_DECODER = json.JSONDecoder(parse_float=_finite)


def preview_json_ends(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return records of both ends within ``budget`` tokens, or None if the text is not such JSON or too little fits."""
    text = content.text
    try:
        ends = _read(text, min(max(_LEAST_WINDOW, budget * _READ_FOR_A_TOKEN), len(text) // 2))
    except _NotRead:
        return None
    is_one_list = _is_one_list(text, ends)
    items = [*ends.first, *ends.last] if is_one_list else ends.first
    total = len(items) + 1 if is_one_list else len(text)  # more than there are: none is at the end
    known = {position + (position >= len(ends.first)): item for position, item in enumerate(items)}

    def gap(first: int, last: int) -> str:
        start = known[first - 1][1] if first else items[0][0]
        end = known[last + 1][0] if last + 1 in known else ends.last[-1][1]
        return f"characters {start:,}-{end - 1:,} of {len(text):,}"

    noun = "objects" if all(isinstance(item[2], dict) for item in items) else "items"
    what = f"list of {noun}"
    if is_one_list:
        what = f"list of about {_estimate(ends):,} {noun}, estimated from {len(items):,} at its ends"
    values = {position: item[2] for position, item in known.items()}
    records = Records(what=what, items=values, total=total, gap=gap)
    head = [f"object with {len(text):,} characters", *_members(ends.before)] if ends.name is not None else []
    tail = _members(ends.after)
    room = budget - counter.count("\n".join((*head, ends.name or "", *tail)))
    for _ in range(4):
        rows = table(records, room, counter) if room > 0 else None
        if rows is None:
            return None
        if ends.name is not None:
            rows = [f"{key_of(ends.name)}: {rows[0]}", *(f"  {row}" for row in rows[1:])]
        shown = "\n".join((*head, *rows, *tail))
        cost = counter.count(shown)
        if cost <= budget:
            return shown
        room = room * budget // cost  # indents cost, too
    return None


def _is_one_list(text: str, ends: _Ends) -> bool:
    """Return whether the last records certainly stand in the list of the first ones."""
    start, end = ends.first[-1][1], ends.last[0][0]
    if ends.name is None:
        return True
    if end - start > _MOST_SEARCHED or text.count("]", start, end) > _MOST_CLOSED:
        return False
    while start < end:
        stop = text.find('"', start + _STEP, end) + 1 or end  # behind a quote, where no match is cut
        if _ANOTHER_MEMBER.search(text, start, stop):
            return False
        start = stop
    return True


def _estimate(ends: _Ends) -> int:
    """Return how many records the list holds if those not read are as long as those at its ends, in two digits."""
    # Not a count of what parts two records: it takes 10 ms for 10 MB, and nested lists and texts hold the same.
    mean = sum((items[-1][1] - items[0][0]) / len(items) for items in (ends.first, ends.last)) / 2
    return int(float(f"{(ends.last[-1][1] - ends.first[0][0]) / mean:.2g}"))


def _members(members: dict[str, JsonValue]) -> list[str]:
    return [f"{key_of(key)}: {brief(value, _LONGEST_MEMBER)}" for key, value in members.items()]


def _read(text: str, window: int) -> _Ends:
    """Return both ends of the list in ``text``, as far as ``window`` characters show them.

    Raises:
        _NotRead: it is no such JSON.

    """
    head, base = text[:window], len(text) - window
    at = _skip(head, 0)
    before: dict[str, JsonValue] = {}
    name = None
    if head[at : at + 1] == "{":
        name, at = _members_before(head, at + 1, before)
    if head[at : at + 1] != "[":
        raise _NotRead
    first, at = _items(head, at + 1)
    if len(first) < _LEAST_RECORDS or head[at - 1] == "]":  # a list that ends here is not the large one
        raise _NotRead
    tail = text[base:]
    # The characters between the first two records, blanks and all, may also part records at the end.
    parting = head[first[0][1] - 1 : first[1][0] + 1]
    start = -1
    for _ in range(_MOST_TRIES):
        start = tail.find(parting, start + 1)
        if start < 0:
            break
        # Whatever is read without a fault from here to the very end was no part of a text or of a nested list: the
        # quotes and the brackets would not come out even.
        try:
            last, end = _items(tail, start + len(parting) - 1)
            after = _members_after(tail, end, is_object=name is not None)
        except _NotRead:
            continue
        return _Ends(before, name, first, [(base + begins, base + ends, value) for begins, ends, value in last], after)
    raise _NotRead


def _items(window: str, at: int) -> tuple[list[Item], int]:
    """Return the values that stand whole from ``at`` on, each with its place, and where they end."""
    items: list[Item] = []
    at = _skip(window, at)
    while True:
        try:
            value, end = _value(window, at)
        except _NotRead:
            return items, at
        behind = _skip(window, end)
        if window[behind : behind + 1] == "]":
            return [*items, (at, end, value)], behind + 1
        if window[behind : behind + 1] != ",":
            return items, at
        items.append((at, end, value))
        at = _skip(window, behind + 1)


def _members_before(head: str, at: int, members: dict[str, JsonValue]) -> tuple[str, int]:
    """Read members up to one that does not end in this window; return its name and where it begins."""
    while len(members) < _MOST_MEMBERS:
        name, at = _name(head, at)
        try:
            members[name], end = _value(head, at)
        except _NotRead:
            return name, at
        end = _skip(head, end)
        if head[end : end + 1] != ",":
            members.pop(name)
            return name, at
        at = end + 1
    raise _NotRead


def _members_after(tail: str, at: int, *, is_object: bool) -> dict[str, JsonValue]:
    """Return the members behind the list; raise unless the text ends there."""
    members: dict[str, JsonValue] = {}
    at = _skip(tail, at)
    while is_object and tail[at : at + 1] == "," and len(members) < _MOST_MEMBERS:
        name, at = _name(tail, at + 1)
        members[name], at = _value(tail, at)
        at = _skip(tail, at)
    if is_object:
        if tail[at : at + 1] != "}":
            raise _NotRead
        at = _skip(tail, at + 1)
    if at < len(tail):
        raise _NotRead
    return members


def _name(window: str, at: int) -> tuple[str, int]:
    name, at = _value(window, _skip(window, at))
    at = _skip(window, at)
    if not isinstance(name, str) or window[at : at + 1] != ":":
        raise _NotRead
    return name, _skip(window, at + 1)


def _value(window: str, at: int) -> tuple[JsonValue, int]:
    try:
        value: tuple[JsonValue, int] = _DECODER.raw_decode(window, at)
    except (ValueError, RecursionError):
        raise _NotRead from None
    return value


def _skip(window: str, at: int) -> int:
    if window[at : at + 1] not in _BLANKS:
        return at  # nearly always, and a tenth of the time that a match takes
    found = _BLANK.match(window, at)
    return found.end() if found else at
