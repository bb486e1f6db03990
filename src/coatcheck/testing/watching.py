"""What the contract watches besides the conversation: the user's tool objects, what they return, and logged warnings.

This module only watches; ``trial`` checks what it saw.
"""

from __future__ import annotations

import functools
import logging
import operator
from collections import deque
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("ResultWatch", "ToolWatch", "warnings_logged")

Tool = TypeVar("Tool")
Result = TypeVar("Result")

Way: TypeAlias = "tuple[str, ...]"

_PLAIN = (str, bytes, bytearray, int, float, set, frozenset, type(None), type)
"""Types compared by value; they hold nothing that could change by itself."""

_CLOSED = (*_PLAIN, ModuleType)
"""Types that are not looked into."""

_LISTS = (list, tuple, deque)

_MAX_PARTS = 100_000
"""The most parts of one result to watch: a result that holds a client may hold half of the program."""


class ToolWatch:
    """Remembers what tool objects hold, and reports what changed since."""

    def __init__(self) -> None:
        self._watched: list[tuple[object, dict[str, object]]] = []

    @property
    def saw_any(self) -> bool:
        """Whether a tool was passed through it."""
        return bool(self._watched)

    def watch(self, tool: Tool) -> Tool:
        """Remember what ``tool`` holds; return the same object."""
        self._watched.append((tool, _state_of(tool)))
        return tool

    def changes(self) -> set[str]:
        """Return the attributes that changed, as ``type.name``. What a class caches in its instances does not count."""
        return {
            f"{type(tool).__name__}.{name}" for tool, before in self._watched for name in _changed(tool, before=before)
        }


class _Part:
    """What was seen of one object in a result. It keeps the object alive, so that no other gets its id."""

    __slots__ = ("_value", "held", "seen")

    def __init__(self, seen: object) -> None:
        self.seen = seen
        self.held: dict[str, _Part] | None = None
        """The parts it holds, by the path to each. None: not looked into."""
        self._value = _value(seen)

    def is_still(self, now: object) -> bool:
        """Return whether an object is unchanged, apart from what it holds."""
        if now is not self.seen and type(now) is not type(self.seen):
            return False
        if issubclass(type(now), _PLAIN):
            return _is_equal(self._value, _value(now))
        return now is self.seen or self.held is None or bool(self.held) or issubclass(type(now), (dict, *_LISTS))


class ResultWatch:
    """Remembers everything that results hold, however deep, and reports what changed since.

    It leaves out what cannot be read. A private attribute that is None may be set later: it is a cache.
    """

    def __init__(self) -> None:
        self._watched: list[tuple[object, _Part]] = []

    @property
    def saw_any(self) -> bool:
        """Whether a result was passed through it."""
        return bool(self._watched)

    def watch(self, result: Result) -> Result:
        """Remember what ``result`` holds; return the same object."""
        self._watched.append((result, _first_part(result)))
        return result

    def changes(self) -> set[str]:
        """Return the paths at which results changed, as ``dict['content'][0]``."""
        return {
            "".join((type(result).__name__, *way))
            for result, first in self._watched
            for way in _changed_parts(first, result)
        }


@contextmanager
def warnings_logged() -> Iterator[list[logging.LogRecord]]:
    """Collect what any logger logs at WARNING or above inside the ``with`` block."""
    records: list[logging.LogRecord] = []

    class Keeping(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record)

    handler = Keeping(logging.WARNING)
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield records
    finally:
        root.removeHandler(handler)


def _changed(tool: object, *, before: dict[str, object]) -> Iterator[str]:
    after = _state_of(tool)
    yield from (name for name in before if name not in after or not _is_same(before[name], after[name]))
    # A new attribute that shadows a method or field of the class is a patch; any other changes no behaviour.
    yield from (name for name in after.keys() - before.keys() if _is_hidden_by(tool, name))


def _is_hidden_by(tool: object, name: str) -> bool:
    of_the_class = getattr(type(tool), name, None)
    return of_the_class is not None and not isinstance(of_the_class, functools.cached_property)


def _first_part(result: object) -> _Part:
    """Return what a result is and holds now. Look at each object in it once, breadth first."""
    first = _Part(result)
    known = {id(result): first}
    waiting = deque([first])
    while waiting:
        part = waiting.popleft()
        held = _held(part.seen)
        if len(known) + len(held) > _MAX_PARTS:
            continue
        waiting += (known.setdefault(id(one), _Part(one)) for one in held.values() if id(one) not in known)
        part.held = {name: known[id(one)] for name, one in held.items()}
    return first


def _changed_parts(first: _Part, result: object) -> Iterator[Way]:
    compared: dict[tuple[int, int], object] = {}
    waiting: deque[tuple[Way, _Part, object]] = deque([((), first, result)])
    while waiting:
        way, part, now = waiting.popleft()
        pair = (id(part), id(now))
        if pair in compared:  # shared, or a cycle
            continue
        compared[pair] = now  # kept alive, so that its id is not reused
        if not part.is_still(now):
            yield way
            continue
        if part.held is None:
            continue
        held = _held(now)
        yield from ((*way, name) for name in part.held if name not in held)
        # As above, a new attribute changes no behaviour. A new key is content.
        yield from ((*way, name) for name in held if name not in part.held and name.endswith("]"))
        waiting += (
            ((*way, name), before, held[name])
            for name, before in part.held.items()
            if name in held and not (before.seen is None and name.startswith("._"))  # a cache may be filled
        )


def _held(value: object) -> dict[str, object]:
    """Return what a part of a result holds, by the path to it. Leave out what cannot be read."""
    held: dict[str, object] = {}
    with suppress(Exception):
        if isinstance(value, dict):
            for key, part in value.items():
                with suppress(Exception):
                    held[f"[{key!r}]"] = part
        elif isinstance(value, _LISTS):
            held |= {f"[{index}]": part for index, part in enumerate(value)}
        elif not isinstance(value, _CLOSED):
            held |= {f".{name}": part for name, part in _attributes(value).items()}
    return held


def _state_of(tool: object) -> dict[str, object]:
    """Return what an object holds, and what the collections in it hold, one level deep."""
    if isinstance(tool, list | tuple):
        return {"items": list(tool)}
    held = _attributes(tool)
    for name in ("__code__", "__defaults__"):
        with suppress(Exception):
            held[name] = getattr(tool, name)
    return {name: _copied(value) for name, value in held.items()}


def _attributes(owner: object) -> dict[str, object]:
    """Return the attributes of an object, except those that raise when they are read."""
    held: dict[str, object] = {}
    with suppress(Exception):
        held |= owner.__dict__
    for base in type(owner).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            with suppress(Exception):
                if not name.startswith("__"):
                    held[name] = getattr(owner, name)
    return held


def _copied(value: object) -> object:
    return value.copy() if type(value) in {dict, list, set} else value  # type: ignore[attr-defined] # all three can


def _is_same(one: object, other: object) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(one[key] is other[key] for key in one)
    if type(one) is list and isinstance(other, list):
        return len(one) == len(other) and all(map(operator.is_, one, other))
    return one == other if isinstance(one, set) else one is other


def _value(part: object) -> object:
    """Return a part of a result, copied if it may change in place and holds nothing that is looked into."""
    with suppress(Exception):
        if isinstance(part, set):
            return frozenset(part)
        if isinstance(part, bytearray):
            return bytes(part)
    return part


def _is_equal(one: object, other: object) -> bool:
    with suppress(Exception):
        return one is other or bool(one == other)
    return True  # what cannot be compared counts as equal
