"""JSON Lines: the records as a table. The gap is given in lines, so that ``line_range`` can read on from there.

A few lines may be something else, such as what a program prints before it logs, or a last line that was cut off. They
are shown as they are, among the rows.

A sequence of objects that take several lines each is shown in the same way: the items of an MCP server, or the output
of ``jq``. All must be objects, and the text no longer than what is searched for odd records.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from coatcheck.core.embedded import MAX_OTHER_LINES
from coatcheck.core.preview.counted import text_below
from coatcheck.core.preview.json import parse_json
from coatcheck.core.preview.names import ESCAPE, next_to_names, without_notation
from coatcheck.core.preview.notation import Verbatim, count_of
from coatcheck.core.preview.odd import find_odd
from coatcheck.core.preview.pieces import PIECE, found_in, line_pieces, search_pieces, split_lines, unsearched_lines
from coatcheck.core.preview.source import LARGE_CHARACTERS, lines_of, shortened
from coatcheck.core.preview.table import Records, Rows, ends, table
from coatcheck.core.preview.work import spend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.preview.odd import Odd, OddSearch
    from coatcheck.core.preview.source import Found, Previewed
    from coatcheck.core.tokens import TokenCounter

__all__ = ("are_spread", "preview_json_lines", "search_json_lines")

_MAX_CHARACTERS_OF_A_TOKEN = 8
"""The most characters of text per token of the budget if all its rows may fit: a row is shorter than its line."""

_SHARE_OF_OTHERS = 0.25
"""The share of the budget for lines that are not JSON."""

_PARTING = "}\n{"
"""Separates two objects. JSON has it nowhere else: a line end in a string is escaped, and commas separate values."""


def are_spread(text: str) -> bool:
    """Return whether ``text`` may be a sequence of objects that take several lines each."""
    return text.startswith("{\n") and text.find(f"\n{_PARTING}\n", 0, PIECE) >= 0


def search_json_lines(found: Found, content: Previewed) -> Iterator[None]:
    """Search the records for odd ones, if they take several lines each or the text is long; yield after each piece."""
    text = content.text
    if are_spread(text):
        yield from search_pieces(found, text, partial(_read_objects, text), partial(_split_objects, text))
        if found.end < len(text):  # not all are objects: the text is shown, and searched, as another kind
            found.end = 0
    elif len(text) > LARGE_CHARACTERS:
        yield from search_pieces(found, text, partial(_read, text), partial(split_lines, text))


def preview_json_lines(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Return records from both ends within ``budget`` tokens, or None if they have nothing in common or none fits."""
    if are_spread(content.text):
        return _preview_objects(content, budget, counter)
    lines = lines_of(content)
    spend(counter, sum(map(len, lines.values())) // 16)
    values: dict[int, JsonValue] = {}
    others: dict[int, str] = {}
    for number, line in lines.items():
        if not line.strip():
            continue
        value = _parsed(line)
        if not isinstance(value, Verbatim):
            values[number - 1] = value
        else:
            others[number - 1] = line
            if len(others) > MAX_OTHER_LINES * len(lines):
                return None
    odd, unseen = _odd_lines(content, values, counter)
    others = {position: line for position, line in others.items() if position not in values}  # odd ones moved there
    are = "is" if len(others) == 1 else "are"
    seen = f"those read {are}" if len(content.text) > LARGE_CHARACTERS else "them"
    not_json = f"{len(others):,} of {seen} not JSON" if others else ""
    as_they_are = _first_of(others, int(budget * _SHARE_OF_OTHERS), counter)
    items = {position: values[position] for position in (*odd.positions, *ends(content.lines)) if position in values}
    count = f"JSON Lines of {count_of(content.lines, 'line')}"
    records = Records(
        what=", ".join(filter(None, (count, not_json, odd.what, unseen))),
        items=items,
        total=content.lines,  # some lines may be blank or not read
        odd=odd.positions,
        gap=partial(_gap, content.lines),
        as_they_are=as_they_are,
    )
    shown = _next_to_names(records, content, budget, counter, or_alone=bool(odd.positions or unseen))
    return shown or text_below(count, odd, content, budget, counter)


def _preview_objects(content: Previewed, budget: int, counter: TokenCounter) -> str | None:
    """Do what ``preview_json_lines`` does for objects that take several lines each."""
    text, found = content.text, found_in(content, search_json_lines)
    if not found.end:
        return None
    head, tail = _split_objects(text, 0, _end_of_piece(text, 0)), _split_objects(text, found.tail, len(text))
    places = dict(enumerate(head)) | found.places | dict(enumerate(tail, found.total - len(tail)))
    lines: dict[int, tuple[int, int]] = {}
    first = at = 0
    for position, (start, end) in sorted(places.items()):
        first += text.count("\n", at, start)
        lines[position] = first, first + text.count("\n", start, end - 1)  # the last may end with a line end
        at = start

    def gap(first: int, last: int) -> str:
        start = lines[first][0] if first in lines else lines[first - 1][1] + 1
        end = lines[last][1] if last in lines else lines[last + 1][0] - 1
        return _gap(content.lines, start, end)

    wanted = [position for position in (*found.odd.positions, *ends(found.total)) if position in places]
    count = count_of(found.total, "JSON object")
    records = Records(
        what=", ".join(filter(None, (count, found.odd.what))),
        items={position: parse_json(text[slice(*places[position])]) for position in wanted},
        total=found.total,
        odd=found.odd.positions,
        gap=gap,
    )
    shown = _next_to_names(records, content, budget, counter, or_alone=bool(found.odd.positions))
    return shown or text_below(count, found.odd, content, budget, counter)


def _next_to_names(
    records: Records, content: Previewed, budget: int, counter: TokenCounter, *, or_alone: bool
) -> str | None:
    """Return the records as rows, with names of what is not shown; None if they are not a table or none fits."""
    rows = Rows.of(records, counter)
    if rows is None:
        return None
    return next_to_names(
        partial(table, rows, counter=counter),
        without_notation(content.text, ESCAPE),
        budget,
        counter,
        may_fit=len(content.text) <= budget * _MAX_CHARACTERS_OF_A_TOKEN,
        or_alone=or_alone,
    )


def _odd_lines(content: Previewed, values: dict[int, JsonValue], counter: TokenCounter) -> tuple[Odd, str]:
    """Return the odd lines, and which lines were not searched; add the odd ones to ``values``."""
    text = content.text
    if len(text) <= LARGE_CHARACTERS:
        places, odd = list(values), find_odd(list(values.values()), counter)
        return odd._replace(positions=tuple(places[position] for position in odd.positions)), ""
    found = found_in(content, search_json_lines)
    lines = {text.count("\n", 0, start): _read_line(text[start:end]) for start, end in found.places.values()}
    values.update(lines)
    return found.odd._replace(positions=tuple(lines)), unsearched_lines(found, content)


def _first_of(others: dict[int, str], budget: int, counter: TokenCounter) -> dict[int, str]:
    """Return the first lines that are not JSON, as many as fit, by position."""
    shown: dict[int, str] = {}
    for position, line in others.items():
        text = shortened(line)
        budget -= counter.count(f"{text}\n")
        if budget < 0:
            break
        shown[position] = text
    return shown


def _read(text: str, search: OddSearch) -> Iterator[tuple[int, int]]:
    """Add the lines of each piece to ``search``; yield where it begins and ends. Stop if too many are not objects."""
    for start, end in line_pieces(text, 0):
        lines = [line for line in text[start:end].split("\n") if line and not line.isspace()]
        try:
            items = list(map(parse_json, lines))
        except (RecursionError, ValueError):
            items = list(map(_read_line, lines))
        if not search.add(items):
            return
        yield start, end


def _read_objects(text: str, search: OddSearch) -> Iterator[tuple[int, int]]:
    """Add the objects of each piece to ``search``; yield where it begins and ends. Stop at anything else."""
    start = 0
    while start < len(text):
        end = _end_of_piece(text, start)
        try:
            items = parse_json(f"[{text[start:end].replace(_PARTING, '},{')}]")
        except (RecursionError, ValueError):
            return
        if not isinstance(items, list) or len(items) != text.count(_PARTING, start, end) + 1 or not search.add(items):
            return
        yield start, end
        start = end


def _end_of_piece(text: str, start: int) -> int:
    """Return where a piece of whole objects ends; ``start`` if the first object is too long for a piece."""
    if len(text) - start <= PIECE:
        return len(text)
    return max(start, text.rfind(_PARTING, start, start + PIECE) + len(_PARTING) - 1)


def _split_objects(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return where each object of a piece begins and ends."""
    places: list[tuple[int, int]] = []
    while start < end:
        stop = text.find(_PARTING, start, end) + 1 or end
        places.append((start, stop))
        start = stop + 1
    return places


def _read_line(line: str) -> JsonValue:
    """Return the value of the line, or the line itself if it is not JSON."""
    try:
        return parse_json(line)
    except (RecursionError, ValueError):
        return Verbatim(line)


def _parsed(line: str) -> JsonValue:
    """Return what ``_read_line`` returns, in less time if a bracket is not closed."""
    stripped = line.strip()
    if stripped[0] in "{[" and stripped[0] + stripped[-1] not in {"{}", "[]"}:  # such as a line of a list
        return Verbatim(line)
    return _read_line(line)


def _gap(total: int, first: int, last: int) -> str:
    return f"lines {first + 1:,}-{last + 1:,} of {total:,}"
