"""Large JSON: the records at both ends of its list, and the odd ones between them.

The JSON is a list of records, or an object with one such list among small members. The gap is given in characters, so
that ``offset`` can read on from there. Up to 8 MB, all records are searched for odd ones, which also counts them. The
number of records in a larger list is estimated, and the preview says so. If an object may have a second list, the
records at its end may belong to that list, so only those at its head are shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from coatcheck.core.preview.counted import text_below
from coatcheck.core.preview.json_list import (
    NotRead,
    items_in,
    members_after,
    opened,
    parting_of,
    read_list,
    split_list,
)
from coatcheck.core.preview.names import ESCAPE, next_to_names, without_notation
from coatcheck.core.preview.notation import brief
from coatcheck.core.preview.pieces import found_in, search_pieces
from coatcheck.core.preview.table import Records, Rows, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.preview.json_list import Item
    from coatcheck.core.preview.source import Found, Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("LARGE", "preview_json_ends", "search_json")

LARGE = 1_000_000
"""Characters. In longer JSON, only the ends of a list of records are shown, and the list is searched in pieces."""

_MIN_WINDOW = 16 * 1024
"""The fewest characters read at each end."""

_READ_FOR_A_TOKEN = 16
"""Characters read at each end per token of the preview. A table shows at most a quarter of them."""

_MAX_TRIES = 8
_MIN_RECORDS = 2
_LONGEST_MEMBER = 300
_MAX_SEARCHED = 30_000_000
"""Characters between the ends of an object that are searched for another member. A million takes 1 to 3 ms."""

_MAX_CLOSED = 4_000_000
"""The most ``]`` among them: each costs as much as ten other characters."""

_STEP = 1_000_000
"""Characters searched at a time. Other threads get the interpreter in between."""

_ANOTHER_MEMBER = re.compile(r'\][ \t\r\n]*,[ \t\r\n]*"')
_ANOTHER_AROUND = re.compile(r'\][ \t\r\n}]*,[ \t\r\n]*"')
"""Both match the end of a list before another member, even inside a record or a string. The second also matches if
objects end between the two, as they do if the list is in a nested object."""


@dataclass(frozen=True, slots=True)
class _Ends:
    """What was read at both ends: members before the list, first and last records, members after it.

    ``first`` and ``last`` belong to one list, unless the object has several: see ``_is_one_list``.
    """

    path: tuple[str, ...]
    before: dict[str, JsonValue]
    first: list[Item]
    last: list[Item]
    after: dict[str, JsonValue]


def search_json(found: Found, content: Previewed) -> Iterator[None]:
    """Search the list of large JSON for odd records; yield after each piece."""
    text = content.text
    if len(text) > LARGE:
        yield from search_pieces(found, text, partial(read_list, text), partial(split_list, text))


def preview_json_ends(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return records from both ends within ``budget`` tokens; None if the text is not such JSON or too little fits."""
    text = content.text
    found = found_in(content, search_json)
    try:
        ends = _read(text, min(max(_MIN_WINDOW, budget * _READ_FOR_A_TOKEN), len(text) // 2), found)
    except NotRead:
        return None
    if _is_one_of_several(text):
        return None
    rows = Rows.of(_records(text, ends, found), counter)
    if rows is None:
        return None
    name = ".".join(ends.path)
    head = [f"object with {len(text):,} characters", *_members(ends.before)] if name else []
    tail = _members(ends.after)

    def within(lines: list[str]) -> str:
        below = [f"{name}: {lines[0]}", *(f"  {line}" for line in lines[1:])] if name else lines
        return "\n".join((*head, *below, *tail))

    fit = partial(table, rows, counter=counter, within=within)
    shown = next_to_names(fit, without_notation(text, ESCAPE), budget, counter, may_fit=False, or_alone=True)
    searched = f"{name}{': ' if name else ''}list of {found.total:,} searched records"
    return shown or text_below(searched, found.odd, content, budget, counter)


def _records(text: str, ends: _Ends, found: Found) -> Records:
    """Return the known records: those at both ends and the odd ones, each at its position."""
    is_whole = _is_whole(text, found)
    is_one_list = found.end > ends.last[-1][1] if is_whole else _is_one_list(text, ends)
    searched = max(found.total, len(ends.first))
    known = dict(enumerate(ends.first))
    known.update((position, _item(text, *place)) for position, place in found.places.items())
    last = [item for item in ends.last if is_whole or item[0] >= found.end] if is_one_list else []
    # If the count is incomplete or another list follows, assume one more record, so that no known record is the last.
    total = searched if is_whole and is_one_list else searched + 1 + len(last)
    known.update(enumerate(last, total - len(last)))

    def gap(first: int, last: int) -> str:
        start = known[first - 1][1] if first else ends.first[0][0]
        end = known[last + 1][0] if last + 1 in known else ends.last[-1][1]
        return f"characters {start:,}-{end - 1:,} of {len(text):,}"

    values = {position: item[2] for position, item in sorted(known.items())}
    noun = "objects" if all(isinstance(value, dict) for value in values.values()) else "items"
    what = f"list of {noun}"
    if is_whole:
        what = f"list of {searched:,} {noun}"
    elif is_one_list:
        read = len(ends.first) + len(ends.last)
        what = f"list of about {_estimate(ends):,} {noun}, estimated from {read:,} at its ends"
    unseen = ""
    are_records = any(isinstance(value, dict) for value in values.values())
    if are_records and found.end <= ends.last[-1][1]:
        unseen = f"characters {found.end:,}-{len(text) - 1:,} not searched for odd ones"
    what = ", ".join(filter(None, (what, found.odd.what, unseen)))
    return Records(what=what, items=values, total=total, gap=gap, odd=found.odd.positions)


def _is_one_of_several(text: str) -> bool:
    """Return whether the text is several values, one after the other, such as JSON Lines with records of many KB.

    Within one value, a comma separates two objects or lists, and a line end in a string is escaped.
    """
    if "\n" not in text:  # quick, and true of most large JSON
        return False
    partings = ("}\n{", "]\n[", *(("}\r\n{", "]\r\n[") if "\r" in text else ()))
    starts = range(0, min(len(text), _MAX_SEARCHED), _STEP)
    return any(text.find(parting, start, start + _STEP + 4) >= 0 for start in starts for parting in partings)


def _item(text: str, start: int, end: int) -> Item:
    """Return the record from ``start`` to ``end``."""
    return start, end, items_in(f"{text[start:end]}]", 0)[0][0][2]


def _is_one_list(text: str, ends: _Ends) -> bool:
    """Return whether the last records are certainly in the same list as the first ones."""
    start, end = ends.first[-1][1], ends.last[0][0]
    if not ends.path:
        return True
    if end - start > _MAX_SEARCHED or text.count("]", start, end) > _MAX_CLOSED:
        return False
    another = _ANOTHER_MEMBER if len(ends.path) == 1 else _ANOTHER_AROUND
    while start < end:
        stop = text.find('"', start + _STEP, end) + 1 or end  # after a quote, so that no match is cut
        if another.search(text, start, stop):
            return False
        start = stop
    return True


def _estimate(ends: _Ends) -> int:
    """Estimate the number of records to two digits, as if all were as long as those at the ends."""
    # Counting separators instead takes 10 ms for 10 MB, and nested lists and strings contain them too.
    mean = sum((items[-1][1] - items[0][0]) / len(items) for items in (ends.first, ends.last)) / 2
    return int(float(f"{(ends.last[-1][1] - ends.first[0][0]) / mean:.2g}"))


def _members(members: dict[str, JsonValue]) -> list[str]:
    return [f"{path}: {brief(value, _LONGEST_MEMBER)}" for path, value in members.items()]


def _read(text: str, window: int, found: Found) -> _Ends:
    """Return both ends of the list in ``text``, as far as they are within ``window`` characters.

    Raises:
        NotRead: it is not such JSON.

    """
    start_of_list, path, before = opened(text)
    head = text[: start_of_list + window]
    first, at = items_in(head, start_of_list)
    if len(first) < _MIN_RECORDS or head[at - 1] == "]":  # a list that ends here is not the large one
        raise NotRead
    if _is_whole(text, found) and len(text) - found.end < window:
        try:
            after = members_after(text[found.end :], 0, path)
        except NotRead:
            pass  # there is another list
        else:
            base = max(found.tail, first[-1][1] + 1)
            last = _moved(items_in(text[base : found.end], 0)[0], base)
            return _Ends(path, before, first, [item for item in last if item[0] > found.end - window] or last, after)
    base = len(text) - window
    tail = text[base:]
    # The characters between the first two records, including white space, may also separate records at the end.
    parting = parting_of(head, first)
    start = -1
    for _ in range(_MAX_TRIES):
        start = tail.find(parting, start + 1)
        if start < 0:
            break
        # If everything from here to the very end can be read, this is not inside a string or a nested list: the quotes
        # and brackets would not balance.
        try:
            last, end = items_in(tail, start + len(parting) - 1)
            after = members_after(tail, end, path)
        except NotRead:
            continue
        return _Ends(path, before, first, _moved(last, base), after)
    raise NotRead


def _moved(items: list[Item], base: int) -> list[Item]:
    return [(base + start, base + end, value) for start, end, value in items]


def _is_whole(text: str, found: Found) -> bool:
    """Return whether the search has reached the end of the list."""
    return text[found.end - 1 : found.end] == "]"
