"""Who an operation is done by and for: the offloader that was passed or is made, the scope, the thread's identity.

Only choosing belongs here. A scope comes from the host or from the framework's configuration, never from a model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, TypeAlias

from coatcheck import InvalidRequest, Offloader
from coatcheck import scope as ambient_scope

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from coatcheck import Storage

__all__ = ("Scope", "Source", "ambient", "checked_scope", "identity_of", "offloader_of", "resolved")

Scope: TypeAlias = str | Callable[[Any], str | None] | None
"""A text, or a callable on the framework's own object; None, also from the callable, leaves it to the next in line."""

Source: TypeAlias = "Offloader | Storage"


def offloader_of(source: Source | None, knobs: dict[str, Any]) -> Offloader:
    """Return the offloader that was passed, or make one around the storage that was.

    Raises:
        InvalidRequest: a ready offloader was passed together with knobs, or an argument is wrong.

    """
    if not isinstance(source, Offloader):
        return Offloader(source, **knobs)
    if knobs:
        msg = (
            f"a ready Offloader has its own {', '.join(knobs)}; pass a storage with these, or set them on the Offloader"
        )
        raise InvalidRequest(msg)
    return source


def checked_scope(scope: Scope) -> Scope:
    """Return ``scope`` if it can be one.

    Raises:
        InvalidRequest: it is neither a non-empty text nor a callable nor None.

    """
    if scope is None or callable(scope) or (isinstance(scope, str) and scope):
        return scope
    msg = f"scope must be a non-empty text, a callable or None, not {scope!r}"
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
