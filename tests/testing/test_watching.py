"""What the contract sees of a result that an adapter changed in place, in whatever form a framework has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import MediaBlock
from coatcheck.testing.watching import ResultWatch

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Message:
    """A message as frameworks have it."""

    parts: list[Any] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    tags: set[str] = field(default_factory=set)


def made() -> dict[str, Any]:
    picture = MediaBlock(b"data", "image/png")
    return {"message": Message([{"text": "some"}, "more", picture], {"n": 1}, {"new"}), "size": 1, "unknown": object()}


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "dict['message'].parts[0]['text']": lambda result: result["message"].parts[0].update(text="other"),
    "dict['message'].parts[1]": lambda result: result["message"].parts.__setitem__(1, ["more"]),
    "dict['message'].parts[2].data": lambda result: object.__setattr__(result["message"].parts[2], "data", b""),
    "dict['message'].parts[3]": lambda result: result["message"].parts.append("mark"),
    "dict['message'].meta['n']": lambda result: result["message"].meta.clear(),
    "dict['message'].meta['mark']": lambda result: result["message"].meta.update(mark={"deep": ["er"]}),
    "dict['message'].tags": lambda result: result["message"].tags.add("mark"),
    "dict['size']": lambda result: result.update(size=True),
    "dict['unknown']": lambda result: result.update(unknown=object()),
}


@pytest.mark.parametrize("way", CHANGES)
def test_a_change_is_seen_where_it_was_made(way: str) -> None:
    watch, result = ResultWatch(), made()
    assert watch.watch(result) is result
    assert not watch.changes()

    CHANGES[way](result)

    assert way in watch.changes()
    assert all(changed.startswith(way) for changed in watch.changes())


def test_what_nobody_reads_does_not_count() -> None:
    watch, result = ResultWatch(), made()
    watch.watch(result)

    result["message"].noted = {"by": "a framework"}
    result["message"].parts[1] = b"more".decode()

    assert not watch.changes()


def test_a_result_that_holds_itself_can_be_watched() -> None:
    watch, result = ResultWatch(), made()
    result["itself"] = result
    watch.watch(result)

    result["itself"]["size"] = 2

    assert watch.changes() == {"dict['size']"}
