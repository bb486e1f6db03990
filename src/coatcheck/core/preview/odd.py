"""Finds odd records: those with a field, or with a value of a field, that hardly any other record has."""

from __future__ import annotations

from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from coatcheck.core.preview.notation import key_of, scalar
from coatcheck.core.preview.work import spend

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from coatcheck.core.blocks import JsonValue
    from coatcheck.core.tokens import TokenCounter

__all__ = ("Odd", "columns_of", "find_odd", "may_be_rare")

_LEAST_RECORDS = 20
_RARE = 200
"""Records for each odd one: at most one in 200, or a single one."""

_FEW_VALUES = 8
"""A field with more values in the first records has no rare ones."""

_SAMPLE = 100
_LONGEST_VALUE = 40
_MOST_FIELDS = 200
_MOST_SORTS = 6
_ABSENT, _PRESENT = object(), object()
_CELLS_OF_A_UNIT = 4


class Odd(NamedTuple):
    """What is odd among records."""

    positions: tuple[int, ...]
    what: str
    """``1 with status: failed, 2 with error``; empty where nothing is odd."""


def columns_of(records: Sequence[Mapping[str, JsonValue]]) -> Iterator[tuple[str, Sequence[object]]]:
    """Yield each field with its values in all records."""
    for key in islice(Counter(chain.from_iterable(records)), _MOST_FIELDS):
        yield key, [record.get(key, _ABSENT) for record in records]


def find_odd(columns: Iterable[tuple[str, Sequence[object]]], total: int, counter: TokenCounter) -> Odd:
    """Return the first and the last record of each sort that hardly any record is of."""
    if total < _LEAST_RECORDS:
        return Odd((), "")
    most = max(1, total // _RARE)
    positions: dict[int, None] = {}
    sorts: list[str] = []
    for name, values in columns:
        spend(counter, total // _CELLS_OF_A_UNIT)
        for value, count in _rare(values, most):
            if len(sorts) == _MOST_SORTS:
                break
            if value is _ABSENT:
                sorts.append(f"{count:,} without {key_of(name)}")
                found = [position for position, one in enumerate(values) if one is value]
            elif value is _PRESENT:
                sorts.append(f"{count:,} with {key_of(name)}")
                found = [position for position, one in enumerate(values) if one is not _ABSENT]
            else:
                sorts.append(f"{count:,} with {key_of(name)}: {scalar(value, _LONGEST_VALUE)}")  # type: ignore[arg-type]  # hashable values of JSON are scalars
                found = [position for position, one in enumerate(values) if one == value]
            positions.update(dict.fromkeys((found[0], found[-1])))
    return Odd(tuple(positions), ", ".join(sorts))


def may_be_rare(sample: Sequence[object]) -> bool:
    """Return whether a field with these values may have rare ones: it has few."""
    return not any(isinstance(value, (dict, list)) for value in sample) and len(set(sample)) <= _FEW_VALUES


def _rare(values: Sequence[object], most: int) -> list[tuple[object, int]]:
    """Return the rare values of a field that has few, each with how many records have it."""
    absent = values.count(_ABSENT)
    if len(values) - absent <= most:
        return [(_PRESENT, len(values) - absent)]
    if 0 < absent <= most:
        return [(_ABSENT, absent)]
    if not may_be_rare(values[:_SAMPLE]):
        return []
    try:
        counts = Counter(values)
    except TypeError:
        return []  # a container
    rare = [(value, count) for value, count in counts.items() if count <= most]
    is_few = len(counts) - len(rare) <= _FEW_VALUES and sum(count for _, count in rare) <= 2 * most
    return [one for one in rare if not isinstance(one[0], str) or len(one[0]) <= _LONGEST_VALUE] if is_few else []
