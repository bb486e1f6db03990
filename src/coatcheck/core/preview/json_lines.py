"""JSON Lines: the records as a table; the gap is named in lines, which ``line_range`` reads on from."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import orjson

from coatcheck.core.preview.notation import count_of
from coatcheck.core.preview.odd import columns_of, find_odd
from coatcheck.core.preview.source import lines_of
from coatcheck.core.preview.table import Records, ends, table
from coatcheck.core.preview.work import spend

if TYPE_CHECKING:
    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("preview_json_lines",)

MOST_CHARACTERS = 8_000_000
"""Of a longer text, the lines at both ends are looked at."""


def preview_json_lines(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return records of both ends within ``budget`` tokens, or None if they have nothing in common or none fits."""
    is_whole = len(content.text) <= MOST_CHARACTERS
    lines = dict(enumerate(content.text.split("\n"), 1)) if is_whole else lines_of(content)
    values: dict[int, JsonValue] = {}
    for number, line in lines.items():
        value = _parsed(line)
        if value is None and line.strip():
            return None
        if value is not None:
            values[number - 1] = value
    spend(counter, sum(map(len, lines.values())) // 16)
    objects = [value for value in values.values() if isinstance(value, dict)]
    odd = find_odd(columns_of(objects) if len(objects) == len(values) else (), len(values), counter)
    places = list(values)
    odd = odd._replace(positions=tuple(places[position] for position in odd.positions))
    items = {position: values[position] for position in (*odd.positions, *ends(content.lines)) if position in values}
    room = budget
    for _ in range(4):
        records = Records(
            # Some lines may be blank, or not looked at.
            what=", ".join(filter(None, (f"JSON Lines of {count_of(content.lines, 'line')}", odd.what))),
            items=items,
            total=content.lines,
            odd=odd.positions,
            gap=partial(_gap, content.lines),
        )
        made = table(records, room, counter)
        if made is None:
            return None
        shown = "\n".join(made)
        over = counter.count(shown) - budget
        if over <= 0:
            return shown
        room -= over
    return None


def _parsed(line: str) -> JsonValue:
    if line.strip()[:1] not in ("{", "["):
        return None
    try:
        value: JsonValue = orjson.loads(line)
    except ValueError:
        return None
    return value


def _gap(total: int, first: int, last: int) -> str:
    return f"lines {first + 1:,}-{last + 1:,} of {total:,}"
