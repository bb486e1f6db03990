"""What the contract watches besides the conversation: the user's tool objects, what they return, and logged warnings.

Only looking belongs here; what must be seen is checked in ``trial``.
"""

from __future__ import annotations

import functools
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("ResultWatch", "ToolWatch", "warnings_logged")

Tool = TypeVar("Tool")
Result = TypeVar("Result")

Way: TypeAlias = "tuple[str, ...]"

_PLAIN = (str, bytes, int, float, set, frozenset, type(None), type)
"""What is compared by its value; it holds nothing that could change by itself."""


class ToolWatch:
    """Remembers what tool objects hold, and tells what changed since."""

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
        """Return the attributes that changed, as ``type.name``. What a class caches in its objects does not count."""
        return {
            f"{type(tool).__name__}.{name}" for tool, before in self._watched for name in _changed(tool, before=before)
        }


class ResultWatch:
    """Remembers all that results hold, however deep, and tells what changed since."""

    def __init__(self) -> None:
        self._watched: list[tuple[object, dict[Way, object]]] = []

    @property
    def saw_any(self) -> bool:
        """Whether a result was passed through it."""
        return bool(self._watched)

    def watch(self, result: Result) -> Result:
        """Remember what ``result`` holds; return the same object."""
        self._watched.append((result, dict(_parts_of(result))))
        return result

    def changes(self) -> set[str]:
        """Return where results changed, as ``dict['content'][0]``."""
        return {
            "".join((type(result).__name__, *way))
            for result, before in self._watched
            for way in _changed_parts(before, dict(_parts_of(result)))
        }


@contextmanager
def warnings_logged() -> Iterator[list[logging.LogRecord]]:
    """Collect what any logger says at WARNING or above inside the ``with`` block."""
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
    # A new attribute that hides a method or a field of the class is a patch; any other is a note that changes nothing.
    yield from (name for name in after.keys() - before.keys() if _is_hidden_by(tool, name))


def _is_hidden_by(tool: object, name: str) -> bool:
    of_the_class = getattr(type(tool), name, None)
    return of_the_class is not None and not isinstance(of_the_class, functools.cached_property)


def _parts_of(value: object, way: Way = (), within: tuple[int, ...] = ()) -> Iterator[tuple[Way, object]]:
    """Yield each part of a value with the way to it: of a part that holds others, only its type."""
    if id(value) in within:  # a part that holds the whole
        return
    if isinstance(value, dict):
        held = {f"[{name!r}]": part for name, part in value.items()}
    elif isinstance(value, list | tuple):
        held = {f"[{index}]": part for index, part in enumerate(value)}
    else:
        held = {} if isinstance(value, _PLAIN) else {f".{name}": part for name, part in _state_of(value).items()}
    yield way, type(value) if held or isinstance(value, dict | list | tuple) else _copied(value)
    for name, part in held.items():
        yield from _parts_of(part, (*way, name), (*within, id(value)))


def _changed_parts(before: dict[Way, object], after: dict[Way, object]) -> Iterator[Way]:
    yield from (way for way in before if way not in after or not _is_equal(before[way], after[way]))
    # As above, a new attribute is a note that changes nothing. A new key is content.
    yield from (way for way in after.keys() - before.keys() if way[-1].endswith("]") and way[:-1] in before)


def _state_of(tool: object) -> dict[str, object]:
    """Return what an object holds, and what the collections in it hold, one level deep."""
    if isinstance(tool, list | tuple):
        return {"items": list(tool)}
    held = dict(getattr(tool, "__dict__", {}))
    for owner in type(tool).__mro__:
        slots = owner.__dict__.get("__slots__", ())
        held |= {
            name: getattr(tool, name)
            for name in ((slots,) if isinstance(slots, str) else slots)
            if not name.startswith("__") and hasattr(tool, name)
        }
    held |= {name: getattr(tool, name) for name in ("__code__", "__defaults__") if hasattr(tool, name)}
    return {name: _copied(value) for name, value in held.items()}


def _copied(value: object) -> object:
    return value.copy() if type(value) in {dict, list, set} else value  # type: ignore[attr-defined] # all three can


def _is_same(one: object, other: object) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(one[key] is other[key] for key in one)
    if type(one) is list and isinstance(other, list):
        return len(one) == len(other) and all(map(_is, one, other))
    return one == other if isinstance(one, set) else one is other


def _is_equal(one: object, other: object) -> bool:
    return one is other or (type(one) is type(other) and isinstance(one, _PLAIN) and one == other)


def _is(one: object, other: object) -> bool:
    return one is other
