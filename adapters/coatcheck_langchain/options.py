"""What users pass to every entry point, checked: the offloader or a storage, the scope, names; and what they stand for.

Only checking and choosing belong here. A scope comes from the host or from the framework's configuration, never from a
model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias

from coatcheck import InvalidRequest, Offloader
from coatcheck import scope as ambient_scope

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from coatcheck import NamesReferences, Storage

__all__ = (
    "Scope",
    "StorageOrOffloader",
    "ambient",
    "checked_exempt",
    "checked_name",
    "checked_scope",
    "identity_of",
    "offloader_of",
    "resolved",
)

Scope: TypeAlias = str | Callable[[Any], str | None] | None
"""A text, or a callable on the framework's own object; None, also from the callable, leaves it to the next in line."""

StorageOrOffloader: TypeAlias = "Offloader | Storage | NamesReferences"


def offloader_of(storage: StorageOrOffloader, knobs: dict[str, Any], *, of_a_step: bool = False) -> Offloader:
    """Return the offloader that was passed, or make one around the storage that was.

    Raises:
        InvalidRequest: a ready offloader was passed together with knobs, an argument is wrong, or a budget for a step
            was passed to what sees no step.

    """
    if knobs.get("max_step_tokens") is not None and not of_a_step:
        msg = (
            "max_step_tokens would do nothing here, where each call is seen alone: leave it out, or use"
            " offload_tool_node"
        )
        raise InvalidRequest(msg)
    if storage is None:
        # A storage of its own for each part would make every read-back a miss.
        msg = "pass the Offloader or the storage that all parts share: wrappers and retrieval tool must use the same"
        raise InvalidRequest(msg)
    if not isinstance(storage, Offloader):
        return Offloader(storage, **knobs)
    if knobs:
        msg = (
            f"a ready Offloader has its own {', '.join(knobs)}; pass a storage with these, or set them on the Offloader"
        )
        raise InvalidRequest(msg)
    return storage


def checked_scope(scope: Scope) -> Scope:
    """Return ``scope`` if it can be one.

    Raises:
        InvalidRequest: it is neither a non-empty text nor a callable nor None.

    """
    if scope is None or callable(scope) or (isinstance(scope, str) and scope):
        return scope
    msg = f"scope must be a non-empty text, a callable or None, not {scope!r}"
    raise InvalidRequest(msg)


def checked_name(what: str, name: str | None) -> str | None:
    """Return ``name`` if it can be one, or None.

    Raises:
        InvalidRequest: it is neither a non-empty text nor None.

    """
    if name is None or (isinstance(name, str) and name):
        return name
    msg = f"{what} must be a non-empty text or None, not {name!r}"
    raise InvalidRequest(msg)


def checked_exempt(names: Collection[str]) -> frozenset[str]:
    """Return the names of exempt tools as a set.

    Raises:
        InvalidRequest: it is one text, or holds something that is no text.

    """
    if isinstance(names, Collection) and not isinstance(names, str) and all(isinstance(name, str) for name in names):
        return frozenset(names)
    msg = f"exempt must be a collection of tool names, such as ['read_file', 'grep'], not {names!r}"
    raise InvalidRequest(msg)


def resolved(scope: Scope, context: object) -> str | None:
    """Return the scope for a call, asking a callable with the framework's object."""
    return scope(context) if callable(scope) else scope


def ambient(scope: str | None) -> AbstractContextManager[None]:
    """Return a context in which ``scope`` is the ambient one; with None, one that changes nothing."""
    return nullcontext() if scope is None else ambient_scope(scope)


def identity_of(config: object) -> str | None:
    """Return the thread that a ``RunnableConfig`` names: LangGraph's stable identity of a conversation."""
    configurable = config.get("configurable") if isinstance(config, Mapping) else None
    thread_id = configurable.get("thread_id") if isinstance(configurable, Mapping) else None
    return None if thread_id is None or thread_id == "" else str(thread_id)
