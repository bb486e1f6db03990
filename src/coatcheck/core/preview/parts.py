"""The parts of a JSON value in its outline: scalars, containers, and the rows of tables.

Each part has levels of detail. It estimates how many characters a level takes, says which parts may follow once it is
shown, with their ranks, and writes itself at the level that it has reached. ``outline`` decides how far each part gets.
"""

from __future__ import annotations

from itertools import chain, islice
from math import log2
from typing import TYPE_CHECKING

from coatcheck.core.preview.notation import MIN_CUT, Verbatim, count_of, key_of, named, scalar
from coatcheck.core.preview.odd import NOTHING_ODD, Odd, find_odd, most_odd
from coatcheck.core.preview.table import Records, Rows, ends, gap_of_list, gap_of_object, with_gaps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.tokens import TokenCounter

    Step: TypeAlias = tuple[float, "Part", int]

__all__ = ("DENSITY", "ONE_LINE", "SHARE_OF_STUBS", "SHOWN", "Container", "Part", "before_value")

_CUTS = (60, 160, 400, 520, 650, 1_000, 1_600, 3_000, 6_000, 100_000)
"""Lengths, in characters, at which a long string may be cut."""

_RANK_OF_A_LEVEL = 1.0
_RANK_OF_A_CUT = 3.0
"""Added to the rank for each longer cut. An item's place in its list adds its binary logarithm: 1 for the second, 2 for
the fourth."""

_RANK_OF_A_NAME = 1.0
_KEYS_OF_A_MAP, _FIRST_OF_A_MAP = 24, 8
"""An object with this many members may be a map from ids to values. After the first ones, its members rank as list
items do, so that a long map does not take the room of all that comes after it."""

ONE_LINE = 300
"""The longest container, in characters, that is written on one line."""

_LONGEST_KEY = 160
_DEEPEST = 12
_MIN_RECORDS = 2
_FEW_CELLS = 24
_TOKENS_OF_A_CELL = 2
"""The fewest tokens of a cell: itself, and what separates it from the next one."""

_MAX_NAMES = 200
_NAMED, _STUB, SHOWN = 1, 1, 2
"""Levels of detail: a row shown by its name only, a container by its size only, and the first that shows content."""

DENSITY = 2.6
"""Characters per token, where the real value is unknown."""

_FEW_RECORDS, SHARE_OF_STUBS = 8, 0.3
"""Up to this many records are opened one by one, not as a table, if a table that gives only their sizes takes a smaller
share of the budget than this."""


class Part:
    """A part of the value: a scalar, a container, or a row of a table. There are hundreds in one preview."""

    cells = 0
    """How many cells are written for each further level of it."""
    level = 0
    """How much of it is shown; 0 is nothing."""
    name = ""
    """What is written before it: the name of a member."""
    is_out = False
    """Whether it did not fit. Then nothing that depends on it is shown."""
    of: Part
    """The container that it is part of; the root is part of itself."""

    def cost(self, level: int) -> int:
        """Estimate how many more characters are shown at ``level`` than before it."""
        raise NotImplementedError

    def follow(self, rank: float, level: int) -> Iterable[Step]:
        """Return what may be shown after this part is shown at ``level``."""
        raise NotImplementedError

    def lines(self, depth: int) -> list[str]:
        """Return what is shown of it."""
        raise NotImplementedError


class _Scalar(Part):
    def __init__(self, value: JsonValue) -> None:
        self._value = value

    def cost(self, level: int) -> int:
        if not isinstance(self._value, str):
            return len(self.name) + 4
        before = len(self.name) + 2 if level == 1 else -_CUTS[level - 2]
        return before + min(len(self._value), _CUTS[level - 1])

    def follow(self, rank: float, level: int) -> Iterable[Step]:
        is_cut = isinstance(self._value, str) and len(self._value) > _CUTS[level - 1] + MIN_CUT
        return ((rank + _RANK_OF_A_CUT, self, level + 1),) if is_cut and level < len(_CUTS) else ()

    def lines(self, depth: int) -> list[str]:  # noqa: ARG002 - one line at any depth
        return [f"{self.name}{scalar(self._value, _CUTS[self.level - 1])}"]


class Container(Part):
    """A non-empty object or list, shown as a line for each member or item, or as a table."""

    def __init__(
        self, value: dict[str, JsonValue] | list[JsonValue], depth: int, budget: int, counter: TokenCounter
    ) -> None:
        self.of: Part = self
        self._value = value
        self._depth = depth
        self._made = (depth + 1, budget, counter)
        self._parts: dict[int, Part] = {}
        """By position in the value; made when the container is opened."""
        self._odd = NOTHING_ODD
        self._rows: _Table | None = None

    @property
    def is_table(self) -> bool:
        """Whether it is shown as rows."""
        return self._rows is not None

    def open(self) -> None:
        """Create the parts of its content."""
        _, most, counter = self._made
        self._odd, rows = _rows(self._value, most, counter)
        if rows is not None:
            self._rows = _Table(rows)
        elif isinstance(self._value, dict):
            for position, (key, child) in enumerate(islice(self._value.items(), most)):
                part = self._parts[position] = _part(child, *self._made)
                part.name = before_value(key)
        else:
            # Nested scalars are written on one line, so they are taken from the first on.
            is_line = self._depth and not isinstance(self._value[0], (dict, list))
            order = range(len(self._value)) if is_line else ends(len(self._value))
            wanted = dict.fromkeys(chain(self._odd.positions, islice(order, most)))
            self._parts = {one: _part(self._value[one], *self._made) for one in wanted}
        for part in self._rows.parts.values() if self._rows else self._parts.values():
            part.of = self

    def odd(self, path: str = "") -> Iterator[tuple[str, Odd]]:
        """Yield what this is and what is odd in it, and the same for each container in it that was opened.

        ``path`` is its path, as a query writes it.
        """
        if self._odd.kinds:
            yield f"{path}{': ' if path else ''}{_what_is(self._value)}", self._odd
        parting = "." if path else ""
        for position, part in self._parts.items():
            if isinstance(part, Container):
                name = part.name.removesuffix(": ")
                yield from part.odd(f"{path}{parting}{name}" if name else f"{path}[{position}]")

    def cost(self, level: int) -> int:
        """Estimate how many characters its own line takes; its content costs extra."""
        return len(self.name) + 10 if level == _STUB else 20

    def follow(self, rank: float, level: int) -> Iterator[Step]:
        """Yield itself at the next level if it is a stub, otherwise its content: rows, members or items."""
        if level == _STUB:
            yield rank + _RANK_OF_A_LEVEL, self, SHOWN
            return
        if not self._parts and self._rows is None:
            self.open()
        if self._rows is not None:
            yield from self._rows.follow(rank)
        elif isinstance(self._value, dict):
            is_long = self._depth and _is_map(self._value)
            for place, part in enumerate(self._parts.values(), 1):
                further = log2(place / _FIRST_OF_A_MAP) if is_long and place > _FIRST_OF_A_MAP else 0.0
                yield rank + further, part, _STUB
        else:
            for place, part in enumerate(self._parts.values(), 1):
                is_scalar = isinstance(part, _Scalar)
                yield rank + log2(place) + (0 if is_scalar else _RANK_OF_A_LEVEL), part, _STUB if is_scalar else SHOWN

    def lines(self, depth: int) -> list[str]:
        """Return what is shown of it: on one line if that is short, and indented if it is nested."""
        if self.level == SHOWN and self._rows is not None:
            first, *rows = self._rows.lines() or [named(self._value)]
            return [f"{self.name}{first}", *(f"  {row}" if depth else row for row in rows)]
        parts = {position: part.lines(depth + 1) for position, part in sorted(self._parts.items()) if part.level}
        if self.level == _STUB or not parts:
            return [f"{self.name}{named(self._value)}"]
        total, missing = len(self._value), len(self._value) - len(parts)
        is_object = isinstance(self._value, dict)
        rest = [f"… {count_of(missing, 'more key' if is_object else 'more item')}"] if missing else []
        if depth and self._is_one_line(parts):
            opening, closing = "{}" if is_object else "[]"
            return [f"{self.name}{opening}{', '.join((*(lines[0] for lines in parts.values()), *rest))}{closing}"]
        texts = {position: "\n".join(lines) for position, lines in parts.items()}
        gaps = [f"[{one} …]" for one in rest]
        texts_and_gaps = [*texts.values(), *gaps] if is_object else with_gaps(texts, total, gap_of_list)
        indent = "  " if depth else ""
        body = (f"{indent}{line}" for line in "\n".join(texts_and_gaps).split("\n"))
        return [f"{self.name}{_what(self._value, self._odd)}{'' if is_object else ':'}", *body]

    def _is_one_line(self, parts: Mapping[int, Sequence[str]]) -> bool:
        if any(len(lines) > 1 for lines in parts.values()):
            return False
        if isinstance(self._value, list) and max(parts) >= len(parts):
            return False  # gaps are named, on lines of their own
        are_scalars = isinstance(self._value, list) and all(isinstance(self._parts[one], _Scalar) for one in parts)
        return are_scalars or sum(len(lines[0]) for lines in parts.values()) <= ONE_LINE


class _Table:
    """The rows of a container that is a list of records."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._column, self._names = rows.names() if rows.records.total <= _MAX_NAMES else ("", {})
        self.parts = {one: _Row(rows, one, len(self._names.get(one, ""))) for one in rows.positions}

    def follow(self, rank: float) -> Iterator[Step]:
        """Yield each row, and its name, which ranks before most rows."""
        for place, row in enumerate(self.parts.values(), 1):
            if self._names:
                yield rank + _RANK_OF_A_NAME + log2(place) / 2, row, _NAMED
            yield rank + log2(place), row, SHOWN

    def lines(self) -> list[str]:
        """Return the header, the rows that are shown, and the gaps between them; nothing without rows."""
        rows = {position: row.line(row.level) for position, row in self.parts.items() if row.level >= SHOWN}
        if not rows:
            return []
        names = {position: self._names[position] for position, row in self.parts.items() if row.level == _NAMED}
        records = self._rows.records
        gaps = with_gaps(rows, records.total, records.gap, name=self._column, names=names)
        return [self._rows.header(_CUTS[1]), *gaps]


class _Row(Part):
    def __init__(self, rows: Rows, position: int, name: int) -> None:
        self.cells = len(rows.columns)
        self._rows = rows
        self._position = position
        self._name = name
        self._widest = 0
        self._written: tuple[str, ...] = ()
        """The row at each level, from the first one that shows content up to the highest one asked for."""

    def cost(self, level: int) -> int:
        if level == _NAMED:
            return self._name
        row = len(self.line(level))
        return row if level == SHOWN else row - len(self.line(level - 1))

    def follow(self, rank: float, level: int) -> Iterable[Step]:
        if level == _NAMED:
            return ()
        cut = level - SHOWN
        if level == SHOWN:
            if self._rows.is_plain and len(self._written[0]) <= _CUTS[0]:
                return ()  # where no value is cut
            self._widest = self._rows.widest(self._position)
        is_cut = self._widest > _CUTS[cut] + MIN_CUT and cut + 1 < len(_CUTS)
        return ((rank + _RANK_OF_A_CUT, self, level + 1),) if is_cut else ()

    def line(self, level: int) -> str:
        """Return the row at a level."""
        while len(self._written) <= level - SHOWN:
            self._written += (self._rows.row(self._position, _CUTS[len(self._written)]),)
        return self._written[level - SHOWN]


def _part(value: JsonValue, depth: int, budget: int, counter: TokenCounter) -> Part:
    if not isinstance(value, (dict, list)) or not value:
        return _Scalar(value)
    if depth > _DEEPEST:
        return _Scalar(Verbatim(named(value)))
    return Container(value, depth, budget, counter)


def _rows(value: dict[str, JsonValue] | list[JsonValue], budget: int, counter: TokenCounter) -> tuple[Odd, Rows | None]:
    """Return what is odd in a list of records, or in an object with similar values, and the records as rows.

    Such an object is a map from ids to records.
    """
    items, keys = (list(value.values()), list(value)) if isinstance(value, dict) else (value, None)
    first = next((one for one in items[:_MIN_RECORDS] if one and isinstance(one, (dict, list))), None)
    if len(items) < _MIN_RECORDS or not first:
        return NOTHING_ODD, None
    if keys is not None and sum(not isinstance(one, dict) or not one for one in items) > most_odd(len(items)):
        return NOTHING_ODD, None
    most = max(_FEW_CELLS, budget // (_TOKENS_OF_A_CELL * len(first)))
    are_objects = any(isinstance(one, dict) for one in items[:_MIN_RECORDS])
    odd = find_odd(items, counter) if are_objects else NOTHING_ODD
    records = Records(
        what=_what(value, odd),
        items={position: items[position] for position in chain(odd.positions, islice(ends(len(items)), most))},
        total=len(items),
        odd=odd.positions,
        gap=gap_of_list if keys is None else gap_of_object,
        keys=keys,
    )
    rows = Rows.of(records, counter)
    if rows is None:
        return odd if keys is None else NOTHING_ODD, None  # members with little in common are not records
    if _hides_most(rows, budget):
        return odd, None
    # Leaving out a cell without a name means numbering all of them, which saves no room in few rows.
    is_few = rows.are_cells and len(rows.same) * len(rows.positions) < _FEW_CELLS
    return odd, rows.in_full() if is_few else rows


def _hides_most(rows: Rows, budget: int) -> bool:
    """Return whether a table of a few records takes little of the budget because it gives only sizes."""
    if rows.is_plain or rows.records.total > _FEW_RECORDS:
        return False
    room = budget * DENSITY * SHARE_OF_STUBS
    return sum(len(rows.row(position, _CUTS[0])) for position in rows.positions) < room and any(
        rows.holds_much(position, _CUTS[0]) for position in rows.positions
    )


def _is_map(value: dict[str, JsonValue]) -> bool:
    """Return whether an object has many members, the first ones all of one type, unlike a record."""
    return len(value) >= _KEYS_OF_A_MAP and len({type(one) for one in islice(value.values(), _KEYS_OF_A_MAP)}) == 1


def _what_is(value: dict[str, JsonValue] | list[JsonValue]) -> str:
    """Return what a value is: ``list of 2,000 objects``, ``object with 3 keys``."""
    if isinstance(value, dict):
        return f"object with {count_of(len(value), 'key')}"
    kinds = set(map(type, value))
    noun = "object" if kinds == {dict} else "list" if kinds == {list} else "item"
    return f"list of {count_of(len(value), noun)}"


def _what(value: dict[str, JsonValue] | list[JsonValue], odd: Odd) -> str:
    """Return what a value is, and what is odd in it."""
    return ", ".join(filter(None, (_what_is(value), odd.what)))


def before_value(key: str) -> str:
    """Return the name of a member as it is written before its value. A long name is cut."""
    return f"{key_of(key)}: " if len(key) <= _LONGEST_KEY else f"{key_of(key[:_LONGEST_KEY])}…: "
