"""The contract notices when an adapter changes a result in place, whatever the framework's type for results."""

from __future__ import annotations

import sys
from collections import deque
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from coatcheck import MediaBlock
from coatcheck.testing.watching import ResultWatch, ToolWatch

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Message:
    """A message like those of frameworks."""

    parts: list[Any] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    tags: set[str] = field(default_factory=set)
    raw: bytearray = field(default_factory=bytearray)
    queue: deque[Any] = field(default_factory=deque)
    _blocks: list[Any] | None = None

    @property
    def blocks(self) -> list[Any]:
        if self._blocks is None:
            self._blocks = list(self.parts)
        return self._blocks


class Raises:
    """An object that cannot be inspected in any way."""

    __slots__ = ("kept",)

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        raise LookupError

    def __getattr__(self, name: str) -> object:
        raise LookupError(name)

    def __repr__(self) -> str:
        raise LookupError

    def __eq__(self, other: object) -> bool:
        raise LookupError

    def __hash__(self) -> int:
        return 1


class RaisingText(str):
    """A string that cannot be compared."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        raise LookupError

    __hash__ = str.__hash__


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
    "dict['message'].raw": lambda result: result["message"].raw.extend(b"more"),
    "dict['message'].queue[0]": lambda result: result["message"].queue.append("more"),
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


def test_new_attributes_and_equal_values_do_not_count() -> None:
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


def test_a_private_cache_that_is_filled_does_not_count() -> None:
    watch, result = ResultWatch(), made()
    result["message"].parts.append(Message())
    watch.watch(result)

    assert result["message"].blocks
    assert result["message"].parts[-1].blocks == []

    assert not watch.changes()


def test_a_private_cache_that_changes_counts() -> None:
    watch, result = ResultWatch(), made()
    assert result["message"].blocks
    watch.watch(result)

    result["message"].blocks.append("mark")

    assert watch.changes() == {"dict['message']._blocks[3]"}


def test_an_equal_copy_in_place_of_a_part_does_not_count() -> None:
    watch, result = ResultWatch(), made()
    watch.watch(result)

    result["message"] = deepcopy(result["message"])

    assert not watch.changes()


def test_shared_parts_are_inspected_once() -> None:
    looks: list[str] = []

    class Counts:
        __slots__ = ("shared",)

        def __getattribute__(self, name: str) -> object:
            looks.append(name)
            return object.__getattribute__(self, name)

    shared: Any = Counts()
    for _ in range(40):
        shared = [shared, shared]
    watch = ResultWatch()
    watch.watch(shared)

    assert not watch.changes()
    assert looks.count("__dict__") == 2

    shared[1][0][1].append("mark")
    assert watch.changes() == {"list" + "[0]" * 3 + "[2]"}


def test_a_module_is_not_inspected() -> None:
    watch, result = ResultWatch(), {"module": sys.modules[__name__], "size": 1}
    watch.watch(result)

    CHANGES["added"] = CHANGES["dict['size']"]
    try:
        assert not watch.changes()
    finally:
        del CHANGES["added"]
    result["module"] = sys
    assert watch.changes() == {"dict['module']"}


def test_a_huge_object_is_watched_only_near_its_surface() -> None:
    watch, result = ResultWatch(), {"huge": [[number] for number in range(300_000)], "near": [1]}
    watch.watch(result)

    result["huge"].pop()  # type: ignore[attr-defined]
    assert not watch.changes()

    result["near"].append(2)  # type: ignore[attr-defined]
    assert watch.changes() == {"dict['near'][1]"}


def test_values_that_cannot_be_inspected_are_left_out() -> None:
    deep: list[Any] = []
    for _ in range(2_000):
        deep = [deep]
    tags = {Raises()}
    result = {"odd": Raises(), Raises(): 1, "text": RaisingText("some"), "tags": tags, "deep": deep, "size": 1}
    watch = ResultWatch()
    watch.watch(result)
    assert not watch.changes()

    result["text"] = RaisingText("other")
    tags.clear()
    tags.add(Raises())
    result["size"] = 2

    assert watch.changes() == {"dict['size']"}


def test_a_change_is_seen_next_to_a_value_that_cannot_be_inspected() -> None:
    deep: list[Any] = []
    result: list[Any] = [{Raises(): 1, "deep": deep}]
    for _ in range(2_000):
        deep.append([])
        deep = deep[0]
    watch = ResultWatch()
    watch.watch(result)

    deep.append("mark")

    (changed,) = watch.changes()
    assert changed == "list[0]['deep']" + "[0]" * 2_001


def test_a_tool_that_cannot_be_inspected_can_be_watched() -> None:
    watch, tool = ToolWatch(), Raises()

    assert watch.watch(tool) is tool
    assert not watch.changes()
