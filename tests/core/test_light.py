"""Which values may be walked on the event loop, and which need a thread; and what becomes of iterators in them."""

from __future__ import annotations

import pytest

from coatcheck.adapting import is_light, without_iterators

MANY = range(1_000)


@pytest.mark.parametrize(
    "value",
    [None, "a text", [1, 2], (1, 2), {"a": [{"b": ("c",)}]}, list(range(400)), {str(each): 1 for each in range(400)}],
)
def test_a_small_value_is_light(value: object) -> None:
    assert is_light(value)


@pytest.mark.parametrize(
    "value",
    [
        list(MANY),
        tuple(MANY),
        {"a": tuple(MANY)},
        [[each] for each in MANY],
        {str(each): 1 for each in MANY},
        "x" * 100_000,
        {"x" * 100_000: 1},
        [{"x" * 60_000: 1}, {"x" * 60_000: 1}],
    ],
    ids=["list", "tuple", "tuple in a dict", "lists", "dict", "text", "key", "keys"],
)
def test_a_value_with_many_parts_or_long_strings_or_keys_is_not_light(value: object) -> None:
    assert not is_light(value)


async def test_a_value_without_iterators_stays_the_same_object() -> None:
    value = {"rows": [1, (2, "three")]}

    assert await without_iterators(value) is value
    assert await without_iterators({"rows": iter([1, 2])}) == {"rows": [1, 2]}
