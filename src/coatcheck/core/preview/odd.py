"""Finds odd records: those with a field, or with a value of a field, that hardly any other record has."""

from __future__ import annotations

from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from coatcheck.core.preview.notation import key_of, scalar
from coatcheck.core.preview.work import spend

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.tokens import TokenCounter

__all__ = ("NOTHING_ODD", "Odd", "OddSearch", "find_odd")

_LEAST_RECORDS = 20
_RARE = 200
"""Records for each odd one: at most one in 200, or a single one."""

_FEW_VALUES = 8
"""A field with more values in the first records has no rare ones."""

_MOST_VALUES = 1_000
"""Values of a field that are counted: a field with more has many."""

_SAMPLE = 100
_LONGEST_VALUE = 40
_MOST_FIELDS = 200
"""Of all levels together; more are not looked at."""

_MOST_LEVELS = 5
"""Levels of fields: those of records, those of objects in records, and so on."""

_MOST_KINDS = 6
_CELLS_OF_A_UNIT = 4
_SPARSE = 8
"""Of a field that less than one record in so many has, only the records that have it are looked at."""

_ABSENT: Final = object()
_PRESENT: Final = object()
_NO_OBJECT: Final[dict[str, JsonValue]] = {}


_Level: TypeAlias = "tuple[dict[str, _Field], Sequence[int], Sequence[Mapping[str, JsonValue]], _Field | None]"


class Odd(NamedTuple):
    """What is odd among records."""

    positions: tuple[int, ...]
    what: str
    """``1 with status: failed, 2 with error``; empty where nothing is odd."""


NOTHING_ODD: Final = Odd((), "")


def find_odd(records: Sequence[Mapping[str, JsonValue]], counter: TokenCounter) -> Odd:
    """Return the first and the last record of each rare kind of record."""
    if len(records) < _LEAST_RECORDS:
        return NOTHING_ODD
    search = OddSearch(counter)
    search.add(records)
    return search.found()


class OddSearch:
    """Counts the values of each field in records that come in pieces, and of the fields of objects in them."""

    def __init__(self, counter: TokenCounter | None = None) -> None:
        self._counter = counter
        self._fields: dict[str, _Field] = {}
        self._room = _MOST_FIELDS
        self.total = 0
        """Records so far."""
        self.cells = 0
        """Values that were looked at so far."""

    @property
    def may_find(self) -> bool:
        """Whether any field has few values so far."""
        return any(field.has_few for field in self._fields.values())

    def add(self, records: Sequence[Mapping[str, JsonValue]]) -> None:
        """Count the values of further records, level by level: of what is too much, the inner fields are left out."""
        here = range(self.total, self.total + len(records))
        level: list[_Level] = [(self._fields, here, records, None)]
        for _ in range(_MOST_LEVELS):
            level = [deeper for one in level for deeper in self._add(here, *one)]
        self.total += len(records)

    def _add(
        self,
        here: range,
        fields: dict[str, _Field],
        places: Sequence[int],
        records: Sequence[Mapping[str, JsonValue]],
        outer: _Field | None,
    ) -> Iterator[_Level]:
        """Count the values of ``fields`` and of new ones, in records or in the objects that some have in ``outer``.

        ``here`` has the positions of all records of this piece, ``places`` those of these. Yields what is counted next:
        the objects that records have in each of these fields.
        """
        for name, at, values in _columns(fields, places, records):
            field = self._field(fields, name, outer=outer)
            if field is None:  # and so are all that follow
                break
            if values:
                self._count(field, at, values)
            else:
                field.add_present(at)
            field.add_absent(here, at)
            if field.has_objects and (field.fields or self._room):
                objects = list(map(_object_in, values))
                having = [place for place, found in zip(at, objects, strict=True) if found]
                yield field.fields, having, [found for found in objects if found], field

    def add_cells(self, names: Sequence[str], cells: Sequence[str]) -> None:
        """Count the cells of further records that have every field, one record after the other."""
        here = range(self.total, self.total + len(cells) // len(names))
        for column, name in enumerate(names):
            field = self._field(self._fields, name)
            if field is None:
                break
            if field.has_few:
                self._count(field, here, cells[column :: len(names)])
            else:
                field.add_present(here)
        self.total = here.stop

    def found(self) -> Odd:
        """Return the first and the last record of each rare kind of record."""
        if self.total < _LEAST_RECORDS:
            return NOTHING_ODD
        kinds = list(islice(_rare(list(self._fields.values()), max(1, self.total // _RARE)), _MOST_KINDS))
        positions = dict.fromkeys(chain.from_iterable((first, last) for first, last, _ in kinds))
        return Odd(tuple(positions), ", ".join(what for _, _, what in kinds))

    def _field(self, fields: dict[str, _Field], name: str, *, outer: _Field | None = None) -> _Field | None:
        """Return the field of this name; None where it is new and there are too many."""
        if name not in fields:
            if not self._room:
                return None
            self._room -= 1
            fields[name] = _Field(name, self.total, outer=outer)
        return fields[name]

    def _count(self, field: _Field, places: Sequence[int], values: Sequence[object]) -> None:
        self.cells += len(values)
        if self._counter is not None:
            spend(self._counter, len(values) // _CELLS_OF_A_UNIT)
        field.add(places, values)


class _Field:
    """The values of one field: how many records have each, and which are the first and the last of them."""

    def __init__(self, name: str, missed: int, *, outer: _Field | None) -> None:
        self.name: str = key_of(name) if outer is None else f"{outer.name}.{key_of(name)}"
        self._outer = outer
        """The field whose objects it is in."""
        self.fields: dict[str, _Field] = {}
        """Those of its objects."""
        self.has_objects = False
        self.has_few = True
        """Whether the values are counted one by one, and not only how many records have any."""
        self._counts: dict[object, int] = {}
        self._first: dict[object, int] = {}
        self._last: dict[object, int] = {}
        self._is_new = True
        if missed:
            self._note(_ABSENT, missed, 0, missed - 1)

    @property
    def is_looked_at(self) -> bool:
        """Whether more than its presence matters: its values, or the objects in them."""
        return self.has_few or self.has_objects

    def add(self, places: Sequence[int], values: Sequence[object]) -> None:
        """Count the values of the records at ``places``, which are in order."""
        if self._is_new:
            self._is_new = False
            self.has_objects = any(map(_object_in, values[:_SAMPLE]))
            if not _has_few(values[:_SAMPLE]):
                self._give_up()
        if not self.has_few and _ABSENT not in values:
            self.add_present(places)
            return
        try:
            counts = Counter(values if self.has_few else map(_presence, values))
        except TypeError:  # a container
            self._give_up()
            counts = Counter(map(_presence, values))
        if not self.has_few:
            values = list(map(_presence, values))
        if len(counts) > _FEW_VALUES:  # to look for each of them takes longer than to note where each record's is
            last = dict(zip(values, places, strict=True))
            first = dict(zip(reversed(values), reversed(places), strict=True))
            for value, count in counts.items():
                self._note(value, count, first[value], last[value])
        else:
            backwards = values[::-1]
            for value, count in counts.items():
                self._note(value, count, places[values.index(value)], places[-1 - backwards.index(value)])
        if len(self._counts) > _MOST_VALUES:
            self._give_up()

    def add_present(self, places: Sequence[int]) -> None:
        """Count the records at ``places``, which all have the field."""
        if places:
            self._note(_PRESENT, len(places), places[0], places[-1])

    def add_absent(self, here: range, places: Sequence[int]) -> None:
        """Count the records that are ``here`` but not at ``places``: they lack the object that the field is in."""
        count = len(here) - len(places)
        if count:
            first = next((one for one, place in zip(here, places, strict=False) if one != place), here[len(places)])
            backwards = zip(reversed(here), reversed(places), strict=False)
            last = next((one for one, place in backwards if one != place), here[count - 1])
            self._note(_ABSENT, count, first, last)

    @property
    def present(self) -> int:
        """How many records have it."""
        return sum(self._counts.values()) - self.absent

    @property
    def absent(self) -> int:
        """How many records have it not."""
        return self._counts.get(_ABSENT, 0)

    def rare(self, most: int) -> Iterator[tuple[int, int, str]]:
        """Yield the first and the last record of each kind that at most ``most`` are of, and what it is."""
        having = [value for value in self._counts if value is not _ABSENT]
        if self.present <= most:
            first, last = min(map(self._first.__getitem__, having)), max(map(self._last.__getitem__, having))
            yield first, last, f"{self.present:,} with {self.name}"
        elif 0 < self.absent <= most and not (self._outer and self._outer.absent):  # else the object is missing
            yield self._first[_ABSENT], self._last[_ABSENT], f"{self.absent:,} without {self.name}"
        elif self.has_few:
            rare = [value for value in having if self._counts[value] <= most]
            seldom = sum(map(self._counts.__getitem__, rare))
            if len(self._counts) - len(rare) > _FEW_VALUES or seldom > 2 * most:
                return
            for value in rare:
                if not isinstance(value, str) or len(value) <= _LONGEST_VALUE:
                    written = scalar(value, _LONGEST_VALUE)  # type: ignore[arg-type]  # hashable values of JSON are scalars
                    what = f"{self._counts[value]:,} with {self.name}: {written}"
                    yield self._first[value], self._last[value], what

    def _note(self, value: object, count: int, first: int, last: int) -> None:
        self._counts[value] = self._counts.get(value, 0) + count
        self._first[value] = min(self._first.get(value, first), first)
        self._last[value] = max(self._last.get(value, last), last)

    def _give_up(self) -> None:
        """Keep only how many records have the field."""
        self.has_few = False
        having = [value for value in self._counts if value is not _ABSENT]
        if having:
            first, last = min(map(self._first.__getitem__, having)), max(map(self._last.__getitem__, having))
            count = sum(map(self._counts.pop, having))
            self._note(_PRESENT, count, first, last)


def _rare(fields: Sequence[_Field], most: int) -> Iterator[tuple[int, int, str]]:
    """Yield what ``_Field.rare`` does of each field, then of the fields in their objects, level by level."""
    while fields:
        for field in fields:
            yield from field.rare(most)
        fields = [inner for field in fields if field.present > most for inner in field.fields.values()]


def _object_in(value: object) -> Mapping[str, JsonValue]:
    """Return an object, the first one of a list, or one without fields."""
    first = value[0] if isinstance(value, list) and value else value
    return first if isinstance(first, dict) else _NO_OBJECT


def _columns(
    known: Mapping[str, _Field], places: Sequence[int], records: Sequence[Mapping[str, JsonValue]]
) -> Iterator[tuple[str, Sequence[int], Sequence[object]]]:
    """Yield each field that is ``known`` or that records have, the places of those records, and their values.

    Where a record lacks the field, its value is ``_ABSENT``; where most do, they are left out. Values that nobody looks
    at are left out too.
    """
    present = Counter(chain.from_iterable(records))
    few = {name for name, count in present.items() if count * _SPARSE < len(records)}
    found: dict[str, tuple[list[int], list[object]]] = {name: ([], []) for name in few}
    for place, record in zip(places, records, strict=True) if few else ():
        for name in few & record.keys():
            found[name][0].append(place)
            found[name][1].append(record[name])
    for name in dict.fromkeys(chain(known, present)):
        if name not in present:
            yield name, (), ()
        elif name in few:
            yield name, *found[name]
        elif present[name] == len(records) and name in known and not known[name].is_looked_at:
            yield name, places, ()
        else:
            yield name, places, [record.get(name, _ABSENT) for record in records]


def _presence(value: object) -> object:
    return _ABSENT if value is _ABSENT else _PRESENT


def _has_few(sample: Sequence[object]) -> bool:
    try:
        return len(set(sample)) <= _FEW_VALUES
    except TypeError:  # a container
        return False
