"""JSON Lines: the records as a table; the gap is named in lines, which ``line_range`` reads on from."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import orjson

from coatcheck.core.preview.notation import count_of
from coatcheck.core.preview.source import lines_of
from coatcheck.core.preview.table import Records, ends, table

if TYPE_CHECKING:
    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.preview.source import Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("preview_json_lines",)


def preview_json_lines(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return records of both ends within ``budget`` tokens, or None if they have nothing in common or none fits."""
    lines = lines_of(content)
    items: dict[int, JsonValue] = {}
    wanted = set(ends(content.lines))
    for number, line in lines.items():
        value = _parsed(line)
        if value is None and line.strip():
            return None
        if value is not None and number - 1 in wanted:
            items[number - 1] = value
    room = budget
    for _ in range(4):
        records = Records(
            what=f"JSON Lines of {count_of(content.lines, 'line')}",  # some may be blank, or not looked at
            items=items,
            total=content.lines,
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
