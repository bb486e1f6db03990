"""What the contract watches besides the conversation: the user's own tool objects, and the warnings in the log.

Only looking belongs here; what must be seen is checked in ``trial``.
"""

from __future__ import annotations

import functools
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("ToolWatch", "warnings_logged")

Tool = TypeVar("Tool")


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


def _is(one: object, other: object) -> bool:
    return one is other
