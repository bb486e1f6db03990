"""Record what a query compares, so that the answer can say why a comparison was never true.

A model that writes wrong quotes, or a wrong name, gets an empty result, or every item that lacks the field. Nothing
here evaluates: ``interpreter`` reports both sides of each comparison, and what filters left out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from coatcheck.core.checks import is_number
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.reading import wording

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ("Compared", "Mismatch", "MismatchedType", "is_number_as_text", "kind_of")

Mismatch: TypeAlias = "tuple[str, tuple[str, ...], str]"
"""A function, the types that it accepts, and the type that it got."""

_NUMBER_AS_TEXT = re.compile(r"[+-]?[0-9]{1,40}(?:\.[0-9]{1,40})?")
"""A number in a JSON string."""

_DIGIT = re.compile("[0-9]")


class MismatchedType(InvalidRequest):
    """A function got a value of a type that it does not accept. On JSON Lines, this may apply to only some records."""


@dataclass(slots=True)
class _Asked:
    """What became of a filter's items in one search, over all lists that it got."""

    items: int = 0
    refused: Counter[Mismatch] = field(default_factory=Counter)


@dataclass(slots=True)
class Compared:
    """What a query compared. ``kinds`` holds, by node, the pairs of kinds that the two sides had."""

    kinds: dict[int, tuple[Any, set[tuple[str, str]]]] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)
    """The field names that are taken as text, by node."""

    present: set[int] = field(default_factory=set)
    """The nodes of fields that were there, though null."""

    filtered: dict[int, set[type]] = field(default_factory=dict)
    """The types that each filter got, by node."""

    asked: defaultdict[int, _Asked] = field(default_factory=lambda: defaultdict(_Asked))
    """What became of each filter's items in this search, by node."""

    left_out: Counter[Mismatch] = field(default_factory=Counter)
    """How many items filters left out because a function does not accept their type."""

    numbers: set[int] = field(default_factory=set)
    """The nodes that gave a number written as text where the other side gave a number."""

    misordered: bool = False
    """Whether numbers written as text were ordered differently than as numbers."""

    unread: str | None = None
    """A string with digits that ``to_number`` could not read."""

    def see(self, node: Any, kinds: tuple[str, str]) -> None:  # noqa: ANN401 - a node of the parsed query
        """Record the kinds of value that the two sides of a comparison had."""
        seen = self.kinds.get(id(node))
        if seen is None:
            seen = self.kinds[id(node)] = (node, set())
        seen[1].add(kinds)

    def refusal(self) -> Mismatch | None:
        """Return why a filter left out every item of all its lists, or None if no filter did."""
        total = (each for each in self.asked.values() if 0 < each.items == each.refused.total())
        return next((mismatch for each in total for mismatch in each.refused), None)

    def count_left_out(self) -> None:
        """Record what filters left out in this search.

        Raises:
            MismatchedType: a filter left out every item.

        """
        refusal = self.refusal()
        if refusal is not None:
            raise MismatchedType(wording.mismatched(*refusal))
        for each in self.asked.values():
            self.left_out += each.refused

    def see_order(self, values: Iterable[object], part: slice) -> None:
        """Record whether the numbers written as text in ``values`` have another order as numbers, within ``part``."""
        if not self.misordered:
            texts = sorted(value for value in values if is_number_as_text(value))
            numbers = [float(text) for text in texts]
            self.misordered = numbers[part] != sorted(numbers)[part]

    def see_unread(self, value: object) -> None:
        """Record a string with digits for which ``to_number`` gave null."""
        if self.unread is None and isinstance(value, str) and _DIGIT.search(value) is not None:
            self.unread = value

    def see_numbers(self, first: Any, second: Any, left: object, right: object) -> None:  # noqa: ANN401 - nodes
        """Record an ordering comparison in which a number is written as text."""
        if isinstance(right, str):
            if isinstance(left, str):
                if not self.misordered and is_number_as_text(right):  # most strings are not; this runs for each item
                    self.see_order((left, right), slice(None))
            elif is_number(left) and is_number_as_text(right):
                self.numbers.add(id(second))
        elif is_number(right) and is_number_as_text(left):
            self.numbers.add(id(first))

    def take_as_text(self) -> bool:
        """Take as text each right-hand field that was never there, unless the left side is a literal.

        Return whether there was any.
        """
        found = {
            id(right): right["value"]
            for (left, _), (right, kinds) in self._sides()
            if right["type"] == "field" and kinds == {"null"} and left["type"] != "literal" and not _names_null(right)
            if id(right) not in self.present
        }
        if found:
            self.texts.update(found)
            self.kinds.clear()
        return bool(found)

    def notes(self) -> Iterator[str]:
        """Yield what the model should know about the comparisons."""
        yield from map(wording.taken_as_text, dict.fromkeys(self.texts.values()))
        for mismatch, count in self.left_out.items():
            yield wording.left_out(count, *mismatch)
        if any(dict in types and list not in types for types in self.filtered.values()):
            yield wording.FILTERS_LISTS
        if self.misordered:
            yield wording.MISORDERED
        if self.unread is not None:
            yield wording.not_a_number(self.unread)
        for left, right in self._sides():
            for (node, kinds), (other, others) in ((left, right), (right, left)):
                name = _name(node)
                if name is not None and kinds == {"null"} and not _names_null(other):
                    yield wording.always_null(name)
                elif node["type"] == "literal" or id(node) in self.texts:
                    as_text = id(other) in self.numbers
                    hints = _of_another_kind(node["value"], other, others - {"null"})
                    yield from (wording.NUMBERS_AS_TEXT,) if as_text else hints

    def _sides(self) -> Iterator[tuple[tuple[Any, set[str]], tuple[Any, set[str]]]]:
        for node, pairs in self.kinds.values():
            left, right = node["children"]
            yield (left, {kind for kind, _ in pairs}), (right, {kind for _, kind in pairs})


def _of_another_kind(value: object, other: Any, others: set[str]) -> Iterator[str]:  # noqa: ANN401
    """Yield what to write if a literal never had the kind of value that it was compared with."""
    kind = kind_of(value)
    if kind in {"text", "number", "boolean"} and others == {"list"}:
        yield wording.NO_LISTS
    if kind == "text" and others and others <= {"number", "boolean"}:
        yield wording.text_is_no_field(str(value)) if other["type"] == "literal" else wording.NO_TEXTS
    elif kind == "number" and others == {"text"} and other["type"] != "literal":
        yield wording.ONLY_TEXTS


def is_number_as_text(value: object) -> TypeGuard[str]:
    """Return whether ``value`` is a number written as text."""
    return isinstance(value, str) and _NUMBER_AS_TEXT.fullmatch(value) is not None


def _names_null(node: Any) -> bool:  # noqa: ANN401 - a node of the parsed query
    value = node.get("value", "")  # may be a list or an object, too
    return value is None or value == "null"


def _name(node: Any) -> str | None:  # noqa: ANN401
    """Return ``node`` as a dotted path, or None if it is anything else."""
    if node["type"] == "field":
        return None if _names_null(node) else str(node["value"])
    names = [_name(child) for child in node["children"]] if node["type"] == "subexpression" else []
    return ".".join(name for name in names if name) or None


def kind_of(value: object) -> str:
    """Return the kind of a value, in the words of ``notes``."""
    if isinstance(value, str):  # first, because this runs for each item
        return "text"
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    return "number" if is_number(value) else "list" if isinstance(value, list) else "other"
