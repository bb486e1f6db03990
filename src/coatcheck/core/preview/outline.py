"""A JSON value within a budget: whole where it fits, else what is small whole and what is large in part.

Every container says how much it holds. Lists of records become tables. The members of an object get their room in its
order, because what it is about stands first; a large one leaves some to those behind it, and gets what they leave over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.preview.condensed import condensed, condensed_lines
from coatcheck.core.preview.notation import brief, count_of, key_of, named, scalar, size_of
from coatcheck.core.preview.table import Records, ends, gap_of_list, gap_of_object, records_of, table, with_gaps
from coatcheck.core.preview.work import spend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.tokens import TokenCounter

__all__ = ("outline", "what_is")

_ONE_LINE = 300
"""Characters of a container that is written on one line."""

_LEAST_TOKENS = (140, 60)
"""Of a whole value and of a part of one; with less, it is shown from its beginning as far as that goes."""

_MOST_OF_THE_REST = 0.7
"""Of the room that is left, for one member of an object where others follow it."""

_LEAST_TEXT = 160
"""Characters of a text that is shown in part; a shorter one is shown whole, or only its length."""

_SHORT_TEXT = 24
"""Characters of a text that is always shown: its length would take as much room."""
_TOKENS_OF_A_MEMBER = 4
_LEAST_RECORDS = 2
_ROUNDS = 3
_SPARED = 8
"""Of the room for a record that did not fit, the least part taken away: what it holds may be as large as that."""

_DEEPEST = 20

_REVISED = 8
_DEEPEST_REVISED = 2
"""Members that get a second round, and the levels that have one: each such level doubles the work."""

_LONGEST_LINE = 600
_UNITS_OF_A_CONTAINER = 100


def outline(value: JsonValue, budget: int, counter: TokenCounter, *, depth: int = 0) -> list[str]:
    """Return lines that show ``value``, about ``budget`` tokens together; the caller checks the sum."""
    if not isinstance(value, (dict, list)):
        return [_text(value, budget, counter) if isinstance(value, str) else scalar(value, _LEAST_TEXT)]
    spend(counter, _UNITS_OF_A_CONTAINER + len(value))
    line = brief(value, min(_ONE_LINE, budget * 4))
    if not value or depth > _DEEPEST or (line != named(value) and counter.count(line) <= budget):
        return [line]
    rows = _rows(value, budget, counter)
    if rows is not None:
        return rows
    if budget < _LEAST_TOKENS[depth > 0]:
        return _beginning(value, budget, counter, depth=depth)
    if isinstance(value, dict):
        return _members(value, budget, counter, depth=depth)
    return _items(value, budget, counter, depth=depth)


def what_is(value: JsonValue) -> str:
    """Return what a value is: ``list of 2,000 objects``, ``object with 3 keys``."""
    if isinstance(value, dict):
        return f"object with {count_of(len(value), 'key')}"
    if not isinstance(value, list):
        return "text" if isinstance(value, str) else "value"
    return f"list of {records_of(value, len(value))}"


def _beginning(
    value: dict[str, JsonValue] | list[JsonValue], budget: int, counter: TokenCounter, *, depth: int
) -> list[str]:
    if depth:
        return [condensed(value, budget, counter) or named(value)]
    what = what_is(value)
    return [what, *condensed_lines(value, budget - counter.count(what) - 1, counter)]


def _text(value: str, budget: int, counter: TokenCounter) -> str:
    """Return a text as JSON, its head only where it does not fit."""
    whole = scalar(value, budget * 6)
    if counter.count(whole) <= budget:
        return whole
    if len(value) <= _SHORT_TEXT:
        return whole
    if len(value) <= _LEAST_TEXT:
        return f"({count_of(len(value), 'character')})"
    return scalar(value, max(_LEAST_TEXT // 4, len(counter.head(value, max(1, budget - 12))) * 3 // 4))


def _rows(value: dict[str, JsonValue] | list[JsonValue], budget: int, counter: TokenCounter) -> list[str] | None:
    """Return a list of records, or an object whose values are alike, such as a map from ids to records, as a table."""
    items, keys = (list(value.values()), list(value)) if isinstance(value, dict) else (value, None)
    if keys is not None and (len(items) < _LEAST_RECORDS or not all(isinstance(one, dict) and one for one in items)):
        return None
    records = Records(
        what=what_is(value),
        items=_reachable(items),
        total=len(items),
        gap=gap_of_list if keys is None else gap_of_object,
        keys=keys,
    )
    return table(records, budget, counter)


def _members(value: dict[str, JsonValue], budget: int, counter: TokenCounter, *, depth: int) -> list[str]:
    """Return an object key by key, in its order."""
    keys = list(value)[: max(1, budget // _TOKENS_OF_A_MEMBER)]
    left = budget - counter.count(what_is(value)) - 2
    sizes = {key: size_of(value[key], budget * 8, counter) for key in keys}
    largest = sorted(keys, key=sizes.__getitem__)[-_REVISED:] if depth < _DEEPEST_REVISED else []
    lines: dict[str, str] = {}
    costs = dict.fromkeys(keys, 0)
    # What the first round leaves over goes to the large ones in the second.
    for turn in (keys, largest):
        for done, key in enumerate(turn):
            room = costs[key] + max(left // (len(turn) - done), int(left * _MOST_OF_THE_REST))
            text, more = _member(key, value[key], room, counter, depth=depth), 0
            for _ in range(_ROUNDS):
                more = counter.count(text) + 1 - costs[key]
                if more <= left:
                    break
                room -= more - left  # indents and joints cost, too
                text = _member(key, value[key], room, counter, depth=depth)
            if more <= left:
                lines[key] = text
                costs[key] += more
                left -= more
    total = len(value)
    shown = [line for key in keys if key in lines for line in lines[key].split("\n")]
    rest = [f"[… {count_of(total - len(lines), 'more key')} …]"] if len(lines) < total else []
    return [what_is(value), *shown, *rest]


def _member(key: str, value: JsonValue, budget: int, counter: TokenCounter, *, depth: int) -> str:
    name = key_of(key) if len(key) <= _LEAST_TEXT else f"{key_of(key[:_LEAST_TEXT])}…"
    first, *others = outline(value, budget - counter.count(name) - 2, counter, depth=depth + 1)
    return "\n  ".join((f"{name}: {first}", *others))


def _reachable(items: Sequence[JsonValue]) -> dict[int, JsonValue]:
    return {position: items[position] for position in ends(len(items))}


def _items(value: list[JsonValue], budget: int, counter: TokenCounter, *, depth: int) -> list[str]:
    what = what_is(value)
    left = budget - counter.count(what) - counter.count(next(with_gaps({}, len(value), gap_of_list))) - 3
    lines: dict[int, str] = {}
    for position in ends(len(value)):
        # The first of large records is shown as far as it fits, so that its fields are known; the others whole only.
        if lines:
            line = brief(value[position], _LONGEST_LINE)
            cost = counter.count(line) + 1
        else:
            line, cost = _first_item(value[position], left, counter, depth=depth + 1)
        if cost > left:
            break
        lines[position] = line
        left -= cost
    return [f"{what}:", *with_gaps(lines, len(value), gap_of_list)]


def _first_item(value: JsonValue, budget: int, counter: TokenCounter, *, depth: int) -> tuple[str, int]:
    """Return the outline of an item, in ever less room until it fits ``budget``, and what it costs as a line."""
    line, cost, room = "", 0, budget
    for _ in range(_ROUNDS):
        line = "\n  ".join(outline(value, room, counter, depth=depth))
        cost = counter.count(line) + 1
        if cost <= budget:
            break
        room -= max(cost - budget, room // _SPARED)  # indents and joints cost, too
    return line, cost
