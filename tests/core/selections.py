"""Arguments a model may give the retrieval tool: a value for each, and every set of them that goes together.

Everything follows from the table of arguments and ``GIVEN``, so a new argument only needs a value in ``GIVEN``.
Arguments a model should not give are here too: refused values, and arbitrary sets of arguments.
"""

from __future__ import annotations

from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from coatcheck.core.arguments import OPTIONS, parse_request
from coatcheck.core.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ("GIVEN", "ODD", "TOGETHER", "go_together", "odd_selections", "selections")

GIVEN: Mapping[str, Any] = {
    "pattern": "x",
    "line_range": "2-4000",
    "context_lines": 2,
    "query": "[0]",
    "offset": 9,
}
"""A value that is not the default, for every option."""

_DRAWN: Mapping[str, st.SearchStrategy[object]] = {
    "pattern": st.sampled_from(
        ["a", "ERROR", ".*", "^", "$", "x+", "[^q]*", "(", "\\d+", "\ud800", "汉" * 300, "the " * 200]
    ),
    "line_range": st.tuples(st.integers(1, 5), st.integers(5, 500)),
    "context_lines": st.integers(0, 9),
    "query": st.sampled_from(["@", "[0]", "a", "length(@)", "[*]", "['" + "汉" * 400 + "',@]"]),
}
"""What a property test draws for an option. For other options it draws numbers, or the value in ``GIVEN``."""

_WRONG: Sequence[object] = (None, "", True, [1], {"a": 1}, "ten", "2.5", 2.5, "0-5", "9-5", "x" * 1_001, 10**20)
"""Values that the parser of some option refuses, and two ways to give nothing."""

_UNFIT: Mapping[str, Sequence[object]] = {
    "pattern": ("(?=a)", "(a)\\1", "a{9999}", "a.{0,900}b.{0,900}c"),
    "line_range": ("3-", "9000-", (2, 10**9)),
    "query": ("[", "nope(@)", "length(`1`)", "$.a", "&a", "!" * 900 + "@"),
    "offset": (2, 10**9),
}
"""Values that the parser accepts, but reading refuses for at least some content."""

ODD: Mapping[str, Sequence[object]] = {name: (*_UNFIT.get(name, ()), *_WRONG) for name in OPTIONS}
"""For every option, values for which a request may be refused."""

_NUMBERS = st.one_of(st.integers(-50, 50), st.integers(-50, 3_000))


def go_together(names: Iterable[str]) -> bool:
    """Return whether a request may have all these options."""
    assert GIVEN.keys() == OPTIONS.keys(), "add a value to GIVEN in tests/core/selections.py"
    try:
        parse_request(**{name: GIVEN[name] for name in names})
    except InvalidRequest:
        return False
    return True


TOGETHER = [
    names
    for names in chain.from_iterable(combinations(OPTIONS, count) for count in range(len(OPTIONS) + 1))
    if go_together(names)
]
"""Every set of options that one request may have, the empty one first."""


def selections() -> st.SearchStrategy[dict[str, object]]:
    """Draw options for one request."""
    return st.sampled_from(TOGETHER).flatmap(
        lambda names: st.fixed_dictionaries({name: _values(name) for name in names})
    )


def odd_selections() -> st.SearchStrategy[dict[str, object]]:
    """Draw options for one request that may well be refused: any set, up to two of them with a value from ``ODD``."""
    right = st.fixed_dictionaries({}, optional={name: _values(name) for name in OPTIONS})
    odd = st.lists(st.sampled_from([(name, value) for name, values in ODD.items() for value in values]), max_size=2)
    return st.builds(lambda most, rest: {**most, **dict(rest)}, right, odd)


def _values(name: str) -> st.SearchStrategy[object]:
    by_type = _NUMBERS if OPTIONS[name].json_type == "integer" else st.just(GIVEN[name])
    return _DRAWN.get(name, by_type)
