"""The names in what is not shown: identifiers, paths, capitalised words and numbers, as terms to search for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coatcheck.core.tokens import TokenCounter

__all__ = ("names_in", "with_names")

_LOOKED_AT = 20_000
"""Characters; no budget holds the names of more."""

_SHORTEST, _LONGEST = 3, 60
_LONGEST_TOKEN = 6
"""Average characters in a token of a name. Each name takes at least one token."""

_DENSE = 0.6
"""Share of the characters. Text with a larger share of names gets hardly shorter without the rest."""

_LEAST_ROOM = 8
"""Tokens."""

_NAME = r"(?<![\w./~@:+-])(?:[A-Za-z_./~][A-Za-z~+]*[\d_./@:-][\w./~@:+-]*\w|[A-Z]\w*[^\W\d_])"
"""The part before the first sign that words lack holds no such sign: so there is one way to match, in linear time."""

_IN_THE_REST = "[… more, in it: {} …]"
_GOES_ON = re.compile(r"[\w./~@:+-]", re.ASCII)
_NUMBER = r"^[ \t]*(\d+)(?=[:|\t])"
_FIGURE = r"(?<![\w./~@:+-])\d+(?:,\d+)*(?:\.\d+)?(?![\w./~@:+-])"
_NAMES = re.compile(f"{_NAME}|{_FIGURE}", re.ASCII)
_NUMBERS_AND_NAMES = re.compile(f"{_NUMBER}|{_NAME}", re.ASCII | re.MULTILINE)
_BEGINNINGS = (
    "All Also And Any Are Been But Can Did Does Each For From Had Has Have Here How Into Its May More Most Not Now One"
    " Our She Some Such Than That The Their Then There These They This Those Was Were What When Where Which While Who"
    " Why Will With You Your"
)
_BEGINS_A_SENTENCE = frozenset(_BEGINNINGS.split())


def with_names(shown: str, text: str, budget: int, counter: TokenCounter) -> str:
    """Return ``shown``, followed by names of ``text`` that it lacks if they fit; at most ``budget`` tokens in all."""
    room = budget - counter.count(f"{shown}\n{_IN_THE_REST.format('')}") - 1
    if room < _LEAST_ROOM:
        return shown
    names = names_in(text, counter, start=0, end=len(text), shown=shown, budget=room, numbered=False)
    named = f"{shown}\n{_IN_THE_REST.format(names)}"
    return named if names and not counter.exceeds(named, budget) else shown


def names_in(text: str, counter: TokenCounter, *, start: int, end: int, shown: str, budget: int, numbered: bool) -> str:
    """Return names of ``text`` between ``start`` and ``end`` that ``shown`` lacks, in order, within ``budget`` tokens.

    If the lines are ``numbered``, the number of a line comes before its names. If the lines hold hardly anything but
    names, such as paths, it returns nothing: more lines say the same.
    """
    if budget <= 0:
        return ""
    found: list[str] = []
    known: set[str] = set()
    number: str | None = None
    last, length = start, 0
    stop = min(end, start + _LOOKED_AT)
    for match in (_NUMBERS_AND_NAMES if numbered else _NAMES).finditer(text, start, stop):
        if match.end() == stop and _GOES_ON.match(text, stop):
            break  # the beginning of a longer one
        if numbered and match[1]:
            number = match[1]
            continue
        name = match[0]
        if name in known or not _SHORTEST <= len(name) <= _LONGEST or name in _BEGINS_A_SENTENCE or name in shown:
            continue
        known.add(name)
        found += [name] if number is None else [number, name]
        number = None
        last = match.end()
        length += len(name)
        if len(found) > budget or length > budget * _LONGEST_TOKEN:
            break
    names = " ".join(found)
    if len(names) > (last - start) * _DENSE:
        return ""
    kept = counter.head(names, budget)
    kept = kept if kept == names else kept.rpartition(" ")[0]
    before, _, last_shown = kept.rpartition(" ")
    return (
        before if numbered and last_shown.isdecimal() else kept
    )  # the number of a line without its names, which no longer fit
