"""Records as rows: the field names once, then one line for each record, as many as fit, most of them from the head.

Nested objects become columns, named by the path that a query uses. What is the same in every row shown is said once. A
record is shown whole, or with its long values shortened and their sizes given.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING

from coatcheck.core.preview.notation import Verbatim, brief, count_of, key_of, named
from coatcheck.core.preview.odd import MAX_OTHERS
from coatcheck.core.preview.work import spend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.tokens import TokenCounter

    Record = dict[str, JsonValue]

__all__ = ("Records", "Rows", "ends", "gap_of_list", "gap_of_object", "table", "with_gaps")

_HEAD_ROWS, _TAIL_ROWS = 400, 80
"""The most records looked at from each end."""

_TAIL_EVERY = 6
"""The second row shown is the last record. After it, every sixth row is from the end."""

_DETAILS = (100_000, 600, 160, 60)
"""The longest value, in characters, that is written whole. The first length that shows enough rows is used."""

_TRIES = 4
"""How many tables are tried, each smaller than the one before it."""

_ENOUGH_ROWS = 3
_MIN_ROWS = 2
_DEPTHS = (3, 1, 0)
"""Levels of nested objects that become columns. The first depth that does not make too many columns is used."""

_MAX_COLUMNS = 80
_MIN_FILLED = 0.4
"""The share of the cells that must be filled, apart from one in each column, which always is. Records with less in
common are not a table."""

_UNITS_OF_A_CELL = 24
"""Units of work to take a cell from its record, and again to write it."""

_UNITS_OF_A_RECORD = 12
"""Units of work to find out what kind of record it is."""

_CONTAINER = 1_000
"""Characters that a nested container counts as, since it is not written to measure it."""

_LONGEST_NAME = 40
_NAMING_COLUMNS = 8
"""The first columns, which may name a record: a name comes first."""

_CHARACTERS_OF_A_TOKEN = 8
"""The most characters per token of names. Names that are longer in all cannot fit, and are not counted."""

_LINE_END_AND_DIGITS = 2
"""Tokens that a gap may take on top of one that begins at the first record."""

_SHARE_OF_NAMES = 0.5
"""The share of the room for rows that names may take. If all records can be named in it, those without a row are."""

_OTHER = "not an object: "
_MIN_FOR_SAME = 3
_PART = " ; "
_CELLS = [Verbatim(f"[{index}]") for index in range(_MAX_COLUMNS + 1)]
"""Names for cells that have none."""

_NO_CELL = Verbatim("")
"""Shown where a record lacks a field."""

_ARE_CONTAINERS = frozenset({dict, list})


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Records, each with a name: position in a list, key of an object, number of a line."""

    what: str
    """``list of 2,000 objects``."""

    items: Mapping[int, JsonValue]
    """By position, the records that ``ends`` asks for: objects, lists of objects, or lists of scalars. A few among
    objects may be anything else."""

    total: int
    gap: Callable[[int, int], str]
    """Names the records from one position to another: ``items 5-1,998``."""

    odd: Sequence[int]
    """Positions that are worth showing right after the first one."""

    keys: Sequence[str] | None = None
    """The names of the records, if they have any: shown as the first column."""

    as_they_are: Mapping[int, str] = field(default_factory=dict)
    """Lines among the rows that are not records, by position."""


def table(
    rows: Rows, budget: int, counter: TokenCounter, *, within: Callable[[list[str]], str] = "\n".join
) -> tuple[str | None, bool]:
    """Return rows with what ``within`` puts around them, in ``budget`` tokens, and whether those are all.

    Return None instead of the rows if fewer than two would fit.
    """
    room = budget - counter.count(within([""]))
    for _ in range(_TRIES):
        lines, is_whole = _table(rows, room, counter)
        if lines is None:
            break
        shown = within(lines)
        cost = counter.count(shown)
        if cost <= budget:
            return shown, is_whole
        # What is put around each line costs, too. With less room than these lines take, the next table has fewer.
        room = min(room * budget // cost, counter.count("\n".join(lines)) - 1)
    return None, False


def _table(shown: Rows, budget: int, counter: TokenCounter) -> tuple[list[str] | None, bool]:
    """Return header and rows within ``budget`` tokens, and whether they are all; None if fewer than two would fit."""
    total = shown.records.total
    best: list[str] | None = None
    most = 0
    # Leaving out a cell without a name means numbering all of them, which does not always save room.
    ways = (shown, shown.in_full()) if shown.same and shown.are_cells else (shown,)
    spend(counter, _UNITS_OF_A_CELL * shown.size * len(ways))
    named = [(way, way.names()) for way in ways]
    for longest in _DETAILS:
        made = (_filled(way, names, longest, budget, counter) for way, names in named)
        _, rows, lines = max(made, key=itemgetter(0, 1))
        if rows > most and rows >= min(_MIN_ROWS, total):
            best, most = lines, rows
        if rows >= min(_ENOUGH_ROWS, total):
            break
    return best, most + len(shown.records.as_they_are) == total


def ends(total: int) -> Iterator[int]:
    """Yield positions in the order in which they are worth showing: the first, the last, then mostly from the head."""
    head, tail = 0, total - 1
    for step in range(min(total, _HEAD_ROWS)):
        if step % _TAIL_EVERY == 1 and total - 1 - tail < _TAIL_ROWS:
            yield tail
            tail -= 1
        else:
            yield head
            head += 1


def with_gaps(
    lines: Mapping[int, str],
    total: int,
    gap: Callable[[int, int], str],
    *,
    name: str = "",
    names: Mapping[int, str] | None = None,
) -> Iterator[str]:
    """Yield lines in order, with a note for missing positions: what ``gap`` calls them, and their ``names``, if any."""
    expected = 0
    for position in (*sorted(lines), total):
        if position > expected:
            for is_named, group in groupby(range(expected, position), key=names.__contains__) if names else ():
                run = list(group)
                listed = f", only {name}: {'|'.join(names[one] for one in run)}" if names and is_named else " not shown"
                yield f"[… {gap(run[0], run[-1])}{listed} …]"
            if not names:
                yield f"[… {gap(expected, position - 1)} not shown …]"
        if position < total:
            yield lines[position]
        expected = position + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The records that may be shown, their columns, and what is the same in all of them."""

    records: Records
    positions: list[int]
    columns: list[str]
    same: dict[str, JsonValue]
    cells: dict[int, list[Record]]
    key: str | None
    """The column that repeats the record's name."""

    is_plain: bool
    """Whether a row shows every value of its record, and none of them is a list or an object."""

    @classmethod
    def of(cls, records: Records, counter: TokenCounter) -> Rows | None:
        """Return the records as rows, or None if they have too little in common."""
        order = dict.fromkeys(chain(islice(ends(records.total), 1), records.odd, ends(records.total)))
        positions = [position for position in order if position in records.items]
        if not positions:
            return None
        spend(counter, _UNITS_OF_A_RECORD * len(positions))
        items = {position: records.items[position] for position in positions}
        lists = _lists_of_scalars(items)
        objects = lists or _rows_of(items, records.odd)
        if objects is None:
            return None
        names_of = _Names()
        for deepest in _DEPTHS:
            cells = lists or _flattened(objects, deepest, names_of)
            spend(counter, _UNITS_OF_A_CELL * sum(map(len, chain.from_iterable(cells.values()))))
            columns = Counter(chain.from_iterable(chain.from_iterable(cells.values())))
            rows = sum(map(len, cells.values()))
            filled = sum(columns.values()) - len(columns)
            if len(columns) <= _MAX_COLUMNS and filled >= _MIN_FILLED * len(columns) * (rows - 1):
                same = _same(cells, columns, rows)
                key = _key(cells, columns, records.keys)
                names = [column for column in columns if column not in same and column != key]
                if not names:
                    names, same, key = list(columns), {}, None
                values = chain.from_iterable(map(dict.values, chain.from_iterable(cells.values())))
                is_plain = len(names) == len(columns) and _ARE_CONTAINERS.isdisjoint(map(type, values))
                return cls(
                    records=records,
                    positions=positions,
                    columns=names,
                    same=same,
                    cells=cells,
                    key=key,
                    is_plain=is_plain,
                )
        return None

    @property
    def are_cells(self) -> bool:
        """Whether the records are lists of scalars, with cells that have no names."""
        return _CELLS[0] in self.columns or _CELLS[0] in self.same

    def widest(self, position: int) -> int:
        """Return the length of a record's longest string; a container counts as a long one."""
        widest = 0
        for flat in self.cells[position] or [{"": self.records.items[position]}]:
            for value in flat.values():
                if isinstance(value, str):
                    widest = max(widest, len(value))
                elif value and isinstance(value, (dict, list)):
                    widest = max(widest, _CONTAINER)
        return widest

    def holds_much(self, position: int, longest: int) -> bool:
        """Return whether a record holds a list or an object that takes more than ``longest`` characters."""
        values = chain.from_iterable(map(dict.values, self.cells[position]))
        held = (value for value in values if value and isinstance(value, (dict, list)))
        return any(brief(value, longest) == named(value) for value in held)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.columns) * sum(map(len, self.cells.values()))

    def names(self) -> tuple[str, dict[int, str]]:
        """Return the first column that tells the records apart, and its value for each; both empty if there is none."""
        if len(self.positions) < self.records.total or len(self.columns) < 2:  # noqa: PLR2004 - one is the name itself
            return "", {}
        if self.records.keys is not None:
            return "key", {position: key_of(self.records.keys[position]) for position in self.positions}
        if any(len(flat) > 1 for flat in self.cells.values()):
            return "", {}
        items = self.records.items
        for column in self.columns[:_NAMING_COLUMNS]:
            values = {place: flat[0].get(column, []) if flat else items[place] for place, flat in self.cells.items()}
            if any(isinstance(value, (dict, list)) for value in values.values()):
                continue
            names = {position: brief(value, _LONGEST_NAME) for position, value in values.items()}
            if len(set(names.values())) == len(names):
                return column, names
        return "", {}

    def in_full(self) -> Rows:
        """Return the same rows, with the columns that are the same in all of them."""
        return replace(self, columns=[*next(iter(self.cells.values()))[0]], same={})

    def header(self, longest: int) -> str:
        """Return the line above the rows: what they are, the columns, and what is the same in all."""
        names = "|".join(_grouped(self.columns))
        key = "" if self.records.keys is None else f"key = {self.key}|" if self.key else "key|"
        same = ", ".join(f"{name}: {brief(value, longest)}" for name, value in self.same.items())
        if not same and self.columns[:1] == [_CELLS[0]]:
            names = "cells separated by |"
        return f"{self.records.what}, one a line: {key}{names}" + (f" (each row shown has {same})" if same else "")

    def row(self, position: int, longest: int) -> str:
        """Return the line of a record; a value of more than ``longest`` characters is shortened."""
        parts = ["|".join([brief(row.get(name, _NO_CELL), longest) for name in self.columns])
                 for row in self.cells[position]]  # fmt: skip
        key = "" if self.records.keys is None else f"{key_of(self.records.keys[position])}|"
        return key + (_PART.join(parts) or f"{_OTHER}{brief(self.records.items[position], longest)}")


def _filled(
    shown: Rows, named: tuple[str, dict[int, str]], longest: int, budget: int, counter: TokenCounter
) -> tuple[bool, int, list[str]]:
    """Return whether every record is at least named, how many are shown whole (as many as fit), and the table."""
    header = shown.header(longest)
    total = shown.records.total
    room = budget - counter.count(header) - 1
    of_a_gap = counter.count(next(with_gaps({}, total, shown.records.gap))) + _LINE_END_AND_DIGITS
    column, names, costs = _named(*named, room, counter)
    lines: dict[int, str] = {}
    gaps = 1
    for position, line in shown.records.as_they_are.items():
        gaps += _new_gaps(position, lines, total)
        lines[position] = line
    left = room - sum(costs.values()) - sum(counter.count(f"{line}\n") for line in lines.values())
    for position in shown.positions:
        spend(counter, _UNITS_OF_A_CELL * len(shown.columns) * len(shown.cells[position]))
        line = shown.row(position, longest)
        spend(counter, len(line) // 4)
        if len(line) > budget * 40:
            break
        cost = counter.count(line) + 1 - costs.get(position, 0)
        gaps += _new_gaps(position, lines, total)
        if cost > left - gaps * of_a_gap:
            break
        lines[position] = line
        left -= cost
    made = [header, *with_gaps(lines, total, shown.records.gap, name=column, names=names)]
    return bool(names) or len(lines) == total, len(lines) - len(shown.records.as_they_are), made


def _new_gaps(position: int, lines: Mapping[int, str], total: int) -> int:
    """Return how many more gaps there are once this position is shown: 1, 0 or -1."""
    return sum(0 <= next_to < total and next_to not in lines for next_to in (position - 1, position + 1)) - 1


def _named(
    column: str, names: dict[int, str], room: int, counter: TokenCounter
) -> tuple[str, dict[int, str], dict[int, int]]:
    """Return the column and the names of the records, and what each name costs, if all fit in half the room."""
    if sum(map(len, names.values())) <= room * _CHARACTERS_OF_A_TOKEN:
        costs = {position: counter.count(f"|{name}") for position, name in names.items()}
        if sum(costs.values()) <= room * _SHARE_OF_NAMES:
            return column, names, costs
    return "", {}, {}


def _lists_of_scalars(items: Mapping[int, JsonValue]) -> dict[int, list[Record]] | None:
    """Do what ``_rows_of`` does, in a third of the time, if all items are such lists, as those of tuples from SQL are.

    Otherwise return None.
    """
    lists = [item for item in items.values() if isinstance(item, list) and len(item) <= _MAX_COLUMNS]
    if len(lists) < len(items) or not _ARE_CONTAINERS.isdisjoint(map(type, chain.from_iterable(lists))):
        return None
    return {position: [dict(zip(_CELLS, item, strict=False))] for position, item in zip(items, lists, strict=True)}


def _rows_of(items: Mapping[int, JsonValue], odd: Sequence[int]) -> dict[int, list[Record]] | None:
    """Return the rows of each record, or None if the items are not records.

    Among objects, the few items that are not objects have no rows.
    """
    usual = [item for position, item in items.items() if position not in odd] or list(items.values())
    if sum(isinstance(item, dict) for item in usual) > (1 - MAX_OTHERS) * len(usual):
        return {position: [item] if isinstance(item, dict) else [] for position, item in items.items()}
    rows = {position: _objects(item) for position, item in items.items()}
    return rows if all(rows.values()) else None


def _objects(item: JsonValue) -> list[Record]:
    """Return the rows of a record: itself, the objects of a list, or a list of scalars with its positions as names."""
    if isinstance(item, dict):
        return [item]
    if not isinstance(item, list):
        return []
    # A list of more scalars than a table may have columns is not a row: there may be a million.
    if _ARE_CONTAINERS.isdisjoint(map(type, item[: _MAX_COLUMNS + 1])):
        is_row = len(item) <= _MAX_COLUMNS
        return [dict(zip(_CELLS, item, strict=False))] if is_row else []
    objects = [one for one in item if isinstance(one, dict)]
    return objects if len(objects) == len(item) else []


class _Names(dict[str, str]):
    """Maps each field name to its column. Cached, since all records of a table have much the same fields."""

    def __missing__(self, key: str) -> str:
        self[key] = name = key_of(key)
        return name


def _flattened(objects: dict[int, list[Record]], deepest: int, names: _Names) -> dict[int, list[Record]]:
    """Return the records with nested objects as columns: the first ones only, if there are too many columns."""
    cells: dict[int, list[Record]] = {}
    seen: set[str] = set()
    for position, rows_of in objects.items():
        cells[position] = flat = [_flat(one, deepest, names) for one in rows_of]
        seen.update(*flat)
        if len(seen) > _MAX_COLUMNS:
            break
    return cells


def _flat(record: Record, deepest: int, names: _Names) -> Record:
    """Return the record with nested objects as columns: ``price.amount``."""
    if next(iter(record), None) is _CELLS[0]:
        return record
    flat: Record = {}
    left = [("", record, deepest)]
    for prefix, one, depth in left:
        if len(flat) > _MAX_COLUMNS:
            break  # more than a table may have, and each further key adds at least one
        for key, child in islice(one.items(), _MAX_COLUMNS + 1):
            name = f"{prefix}{key if isinstance(key, Verbatim) else names[key]}"
            if depth and child and isinstance(child, dict):
                left.append((f"{name}.", child, depth - 1))
            else:
                flat[name] = child
    return flat


def _grouped(columns: Sequence[str]) -> Iterator[str]:
    """Yield column names; neighbours in one nested object are grouped as ``price.(amount|currency)``."""
    for prefix, group in groupby(columns, key=lambda name: name.rpartition(".")[0]):
        names = list(group)
        if prefix and len(names) > 1:
            yield f"{prefix}.({'|'.join(name.rpartition('.')[2] for name in names)})"
        else:
            yield from names


def _same(cells: dict[int, list[Record]], columns: dict[str, int], rows: int) -> Record:
    """Return the columns that have one value in every row."""
    if rows < _MIN_FOR_SAME:
        return {}
    first = next(filter(None, cells.values()))[0]
    return {
        name: first[name]
        for name, present in columns.items()
        if present == rows
        and not isinstance(first[name], (dict, list))
        and all(
            row[name] == first[name] and type(row[name]) is type(first[name]) for flat in cells.values() for row in flat
        )
    }


def _key(cells: dict[int, list[Record]], columns: dict[str, int], keys: Sequence[str] | None) -> str | None:
    """Return the column that holds the key of the record in every row, if there is one."""
    if keys is None:
        return None
    for column in columns:
        if all(flat[0].get(column) == keys[position] for position, flat in cells.items() if flat):
            return column
    return None


def gap_of_list(first: int, last: int) -> str:
    """Return what items of a list are called in a gap."""
    return f"items {first:,}-{last:,}" if last > first else f"item {first:,}"


def gap_of_object(first: int, last: int) -> str:
    """Return how many more keys an object has."""
    return count_of(last - first + 1, "more key")
