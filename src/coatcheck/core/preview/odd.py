"""Finds odd records: those with a field or a field value that few others have, and items that are not objects.

If a field has many values, only their types count: number, string, null, empty string and so on.
"""

from __future__ import annotations

from collections import Counter
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from coatcheck.core.preview.notation import count_of, key_of, scalar
from coatcheck.core.preview.work import spend

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.tokens import TokenCounter

__all__ = ("MAX_OTHERS", "NOTHING_ODD", "Odd", "OddSearch", "find_odd", "most_odd")

_MIN_RECORDS = 20
_RARE = 200
"""Records for each odd one: at most one in 200 may be odd, or a single one."""

_FEW_VALUES = 8
"""If a field has more distinct values than this in the first records, only their types are counted."""

_MAX_VALUES = 1_000
"""The most distinct values of a field that are counted one by one."""

_SAMPLE = 100
_LONGEST_NAMED = 40
"""The longest value, in characters, that is shown whole."""

_MAX_FIELDS = 200
"""The most fields, of all levels together. Others are not looked at."""

_MAX_LEVELS = 5
"""Levels of fields: those of records, those of objects in records, and so on."""

_MAX_KINDS = 6
_CELLS_OF_A_UNIT = 4
_SPARSE = 8
"""If fewer than one record in this many has a field, only the records that have it are looked at."""

MAX_OTHERS = 0.2
"""The share of the items that may be something other than objects."""

_MAX_ODD = 0.2
"""Of the records with a field or an object, the share that may have a rare value or a rare field in it. If more do, the
values or the names are data, and none is odd."""

_FEW_NAMES = 12
"""The most rare fields of an object. Those in the same records count once. If there are more, the names are data."""

_ADDED_AT_ONCE = 4_096
"""Records added at a time. Other threads get the interpreter in between."""

_NOUNS: Final = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "string", list: "list"}
_OBJECT: Final = "object"
_MAY_BE_EMPTY: Final = frozenset({str, list, dict})
_NUMBERS: Final = frozenset({int, float})
_ABSENT: Final = object()
_PRESENT: Final = object()
_NO_OBJECT: Final[dict[str, JsonValue]] = {}


_Kind: TypeAlias = tuple[int, int, str]
"""The first and the last record of a rare kind, and what it is."""

_Level: TypeAlias = "tuple[dict[str, _Field], Sequence[int], Sequence[Mapping[str, JsonValue]], _Field | None]"


class Odd(NamedTuple):
    """What is odd among records."""

    positions: tuple[int, ...]
    kinds: tuple[str, ...]
    """``1 with status: failed``, ``2 with error``."""

    @property
    def what(self) -> str:
        """All kinds, joined; empty if nothing is odd."""
        return ", ".join(self.kinds)


NOTHING_ODD: Final = Odd((), ())


def most_odd(total: int) -> int:
    """Return how many of ``total`` records may be odd: none if there are few."""
    return max(1, total // _RARE) if total >= _MIN_RECORDS else 0


def find_odd(items: Sequence[JsonValue], counter: TokenCounter) -> Odd:
    """Return the first and the last of each rare kind of item; nothing if too many items are not objects."""
    if not most_odd(len(items)):
        return NOTHING_ODD
    search = OddSearch(counter)
    starts = range(0, len(items), _ADDED_AT_ONCE)
    return search.found() if all(search.add(items[one : one + _ADDED_AT_ONCE]) for one in starts) else NOTHING_ODD


class OddSearch:
    """Counts the values of each field in records that come in pieces, and of the fields of nested objects."""

    def __init__(self, counter: TokenCounter | None = None) -> None:
        self._counter = counter
        self._fields: dict[str, _Field] = {}
        self._room = _MAX_FIELDS
        self._types = _Tally()
        """The items by type: objects, and others."""
        self.total: int = 0
        """Items so far."""
        self.cells: int = 0
        """Values counted so far."""

    @property
    def may_find(self) -> bool:
        """Whether any field has few values so far."""
        return any(field.has_few for field in self._fields.values())

    def add(self, items: Sequence[JsonValue]) -> bool:
        """Count the values of more records, level by level. If there are too many fields, inner ones are left out.

        Return whether most items so far are objects. If not, the new ones are not counted.
        """
        records = [item for item in items if isinstance(item, dict)]
        end = self.total + len(items)
        here: Sequence[int] = range(self.total, end)
        if len(records) < len(items):
            if end - self._types.counts.get(_OBJECT, 0) - len(records) > max(1, MAX_OTHERS * end):
                return False
            for place, item in zip(here, items, strict=True):
                if not isinstance(item, dict):
                    self._types.note(_NOUNS.get(type(item), "non-JSON value"), 1, place, place)
            here = [place for place, item in zip(here, items, strict=True) if isinstance(item, dict)]
        level: list[_Level] = [(self._fields, here, records, None)]
        for _ in range(_MAX_LEVELS):
            level = [deeper for one in level for deeper in self._add(here, *one)]
        if records:
            self._types.note(_OBJECT, len(records), here[0], here[-1])
        self.total = end
        return True

    def _add(
        self,
        here: Sequence[int],
        fields: dict[str, _Field],
        places: Sequence[int],
        records: Sequence[Mapping[str, JsonValue]],
        outer: _Field | None,
    ) -> Iterator[_Level]:
        """Count the values of ``fields`` and of new ones, in records or in the objects that some have in ``outer``.

        ``here`` holds the positions of all records of this piece, ``places`` those of ``records``. Yield what is
        counted next: the objects that records have in each of these fields.
        """
        for name, at, values in _columns(fields, self._room, places, records):
            field = self._field(fields, name, outer=outer)
            if values:
                self._count(field, at, values)
            field.add_absent(here, at)
            if field.has_objects and (field.fields or self._room):
                objects = field.objects(values)
                having = [place for place, found in zip(at, objects, strict=True) if found]
                yield field.fields, having, [found for found in objects if found], field

    def add_cells(self, names: Sequence[str], cells: Sequence[str]) -> None:
        """Count the cells of more records, one record after the other. Every record has every field."""
        here = range(self.total, self.total + len(cells) // len(names))
        for column, name in enumerate(names[:_MAX_FIELDS]):
            field = self._field(self._fields, name)
            if field.has_few:
                self._count(field, here, cells[column :: len(names)])
            elif here:
                field.note(_PRESENT, len(here), here[0], here[-1])
        self.total = here.stop

    def found(self) -> Odd:
        """Return the first and the last record of each rare kind of record."""
        most = most_odd(self.total)
        if not most:
            return NOTHING_ODD
        types = self._types
        others = ((types.first[noun], types.last[noun], count_of(count, str(noun)))
                  for noun, count in types.counts.items() if noun != _OBJECT)  # fmt: skip
        groups = (others, *_rare([(self.total, self._fields.values())], most))
        ranked = [one for group in groups for one in enumerate(islice(group, _MAX_KINDS))]
        # The first kind of each field comes first: a field with many rare values hides no other.
        places = sorted(range(len(ranked)), key=lambda place: ranked[place][0])[:_MAX_KINDS]
        kinds = [ranked[place][1] for place in sorted(places)]
        positions = dict.fromkeys(chain.from_iterable((first, last) for first, last, _ in kinds))
        return Odd(tuple(positions), tuple(what for _, _, what in kinds))

    def _field(self, fields: dict[str, _Field], name: str, *, outer: _Field | None = None) -> _Field:
        """Return the field with this name; create it if it is new."""
        if name not in fields:
            self._room -= 1
            fields[name] = _Field(name, self._types, outer=outer)
        return fields[name]

    def _count(self, field: _Field, places: Sequence[int], values: Sequence[object]) -> None:
        self.cells += len(values)
        if self._counter is not None:
            spend(self._counter, len(values) // _CELLS_OF_A_UNIT)
        field.add(places, values)


class _Tally:
    """How many items have each value, with the positions of the first and the last of them."""

    def __init__(self) -> None:
        self.counts: dict[object, int] = {}
        self.first: dict[object, int] = {}
        self.last: dict[object, int] = {}

    def note(self, value: object, count: int, first: int, last: int) -> None:
        """Add ``count`` to the count of a value."""
        self.counts[value] = self.counts.get(value, 0) + count
        self.first[value] = min(self.first.get(value, first), first)
        self.last[value] = max(self.last.get(value, last), last)


class _Field(_Tally):
    """The values of one field."""

    def __init__(self, name: str, types: _Tally, *, outer: _Field | None) -> None:
        super().__init__()
        self._key: str = key_of(name)
        self._outer = outer
        """The field whose objects contain this one."""
        self.has_lists = False
        """Whether any of its objects is the first item of a list."""
        self.fields: dict[str, _Field] = {}
        """The fields of its objects."""
        self.has_objects = False
        self.has_few = True
        """Whether each distinct value is counted, not just its type."""
        self._is_new = True
        if _OBJECT in types.counts:  # all earlier objects lack the field
            self.note(_ABSENT, types.counts[_OBJECT], types.first[_OBJECT], types.last[_OBJECT])

    @property
    def name(self) -> str:
        """Its path, as a query writes it: ``spec.containers[0].image``. Only the first item of a list is looked at."""
        return self._key if self._outer is None else f"{self._outer.name}{'[0]' * self._outer.has_lists}.{self._key}"

    def add(self, places: Sequence[int], values: Sequence[object]) -> None:
        """Count the values of the records at ``places``, which are in order."""
        if self._is_new:
            self._is_new = False
            self.has_objects = any(map(_object_in, values[:_SAMPLE]))
            if not _has_few(values[:_SAMPLE]):
                self._give_up()
        if self.has_few:
            try:
                self._note_each(places, values)
            except TypeError:  # a container
                self._give_up()
            else:
                if len(self.counts) > _MAX_VALUES:
                    self._give_up()
                return
        noun = _noun_of_all(values)
        if noun is None:
            self._note_each(places, list(map(_noun, values)))
        else:
            self.note(noun, len(values), places[0], places[-1])

    def _note_each(self, places: Sequence[int], values: Sequence[object]) -> None:
        counts = Counter(values)
        if len(counts) > _FEW_VALUES:  # searching for each value takes longer than noting all positions
            last = dict(zip(values, places, strict=True))
            first = dict(zip(reversed(values), reversed(places), strict=True))
            for value, count in counts.items():
                self.note(value, count, first[value], last[value])
        else:
            backwards = values[::-1]
            for value, count in counts.items():
                self.note(value, count, places[values.index(value)], places[-1 - backwards.index(value)])

    def objects(self, values: Sequence[object]) -> list[Mapping[str, JsonValue]]:
        """Return the object in each value, which is the value or its first item; an empty object if neither is one."""
        objects = list(map(_object_in, values))
        pairs = zip(objects, values, strict=True)
        self.has_lists = self.has_lists or any(found and found is not value for found, value in pairs)
        return objects

    def add_absent(self, here: Sequence[int], places: Sequence[int]) -> None:
        """Count the records ``here`` that are not at ``places``: they lack the field or the object it would be in."""
        count = len(here) - len(places)
        if count:
            first = next((one for one, place in zip(here, places, strict=False) if one != place), here[len(places)])
            backwards = zip(reversed(here), reversed(places), strict=False)
            last = next((one for one, place in backwards if one != place), here[count - 1])
            self.note(_ABSENT, count, first, last)

    @property
    def present(self) -> int:
        """How many records have it."""
        return sum(self.counts.values()) - self.absent

    @property
    def absent(self) -> int:
        """How many records lack it."""
        return self.counts.get(_ABSENT, 0)

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last record that has it."""
        having = [value for value in self.counts if value is not _ABSENT]
        return min(map(self.first.__getitem__, having)), max(map(self.last.__getitem__, having))

    def rare(self, most: int) -> Iterator[_Kind]:
        """Yield the first and the last record of each kind that at most ``most`` records have, and what the kind is."""
        if self.present <= most:
            yield *self.span, f"{self.present:,} with {self.name}"
        elif 0 < self.absent <= most and not (self._outer and self._outer.absent):  # else the object is missing
            yield self.first[_ABSENT], self.last[_ABSENT], f"{self.absent:,} without {self.name}"
        elif self.has_few or not (self.has_objects or _PRESENT in self.counts):
            rare = [value for value, count in self.counts.items() if count <= most and value is not _ABSENT]
            seldom = sum(map(self.counts.__getitem__, rare))
            if len(self.counts) - len(rare) > _FEW_VALUES or seldom > min(2 * most, _MAX_ODD * self.present):
                return
            for value in rare:
                written = scalar(value, _LONGEST_NAMED) if self.has_few else value  # type: ignore[arg-type]  # a scalar
                yield self.first[value], self.last[value], f"{self.counts[value]:,} with {self.name}: {written}"

    def _give_up(self) -> None:
        """Keep only the types of the values."""
        self.has_few = False
        seen = [value for value in self.counts if value is not _ABSENT]
        noted = [(value, self.counts.pop(value), self.first.pop(value), self.last.pop(value)) for value in seen]
        for value, count, first, last in noted:
            self.note(_noun(value), count, first, last)


def _rare(level: Sequence[tuple[int, Collection[_Field]]], most: int) -> Iterator[Iterator[_Kind]]:
    """Yield what ``_Field.rare`` yields for each field, then for the fields in their objects, level by level.

    ``level`` holds the fields of each object, and how many records have that object.
    """
    while level:
        for having, fields in level:
            # Fields of the same records count once: an error comes with a code and a message.
            seldom = {(field.present, field.span) for field in fields if field.present <= most}
            rare = sum(present for present, _ in seldom)
            are_data = len(seldom) > _FEW_NAMES or rare > _MAX_ODD * having
            yield from (field.rare(most) for field in fields if not (are_data and field.present <= most))
        above = (field for _, fields in level for field in fields if field.present > most)
        level = [(field.present, field.fields.values()) for field in above]


def _object_in(value: object) -> Mapping[str, JsonValue]:
    """Return ``value`` or its first item, whichever is an object; if neither is, an empty object."""
    first = value[0] if isinstance(value, list) and value else value
    return first if isinstance(first, dict) else _NO_OBJECT


def _columns(
    known: Mapping[str, _Field], room: int, places: Sequence[int], records: Sequence[Mapping[str, JsonValue]]
) -> Iterator[tuple[str, Sequence[int], Sequence[object]]]:
    """Yield each field that is ``known`` or that records have, the places of those records, and their values.

    New fields are yielded only while there is ``room`` for them: if names are data, there may be as many as values.

    If a record lacks the field, its value is ``_ABSENT``; if most do, those records are left out.
    """
    present = Counter(chain.from_iterable(records))
    names = [*known, *islice((name for name in present if name not in known), room)]
    few = {name for name in names if 0 < present[name] * _SPARSE < len(records)}
    found: dict[str, tuple[list[int], list[object]]] = {name: ([], []) for name in few}
    for place, record in zip(places, records, strict=True) if few else ():
        for name in few & record.keys():
            found[name][0].append(place)
            found[name][1].append(record[name])
    for name in names:
        if name not in present:
            yield name, (), ()
        elif name in few:
            yield name, *found[name]
        elif present[name] == len(records):
            yield name, places, list(map(itemgetter(name), records))
        else:
            yield name, places, [record.get(name, _ABSENT) for record in records]


def _noun(value: object) -> object:
    """Return the type of a value: ``number``, ``empty string``; ``_ABSENT`` and ``_PRESENT`` stay as they are."""
    if value is _ABSENT or value is _PRESENT:
        return value
    noun = _NOUNS.get(type(value), _OBJECT)
    return noun if value or type(value) not in _MAY_BE_EMPTY else f"empty {noun}"


def _noun_of_all(values: Sequence[object]) -> object:
    """Return the type of all values; None if a quick look does not tell."""
    types = set(map(type, values))
    if len(types) > 1:
        return _NOUNS[int] if types <= _NUMBERS else None
    (one,) = types
    return None if one in _MAY_BE_EMPTY and not all(values) else _noun(values[0])


def _has_few(sample: Sequence[object]) -> bool:
    try:
        return len(set(sample)) <= _FEW_VALUES
    except TypeError:  # a container
        return False
