"""Who may read what: the scope that every save and every read names.

A scope is a text that the host chooses: a tenant, a conversation, a user. It comes from the host or the framework,
never from the model's arguments. Only choosing it belongs here; how it enters keys and references is in ``references``.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from coatcheck.core.errors import InvalidRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("DEFAULT_SCOPE", "MAX_SCOPE_LENGTH", "choose_scope", "scope")

DEFAULT_SCOPE = "default"
"""Where content goes when nobody named a scope. ``Offloader(require_scope=True)`` refuses it."""

MAX_SCOPE_LENGTH = 4096
"""Characters. A scope is hashed, so this bounds only mistakes such as a whole document passed as a scope."""

_GIVE_ONE = (
    'Pass scope=..., call inside `with coatcheck.scope("..."):`, or give the framework an identity: a thread_id in'
    ' LangGraph, a session manager in Strands, hook_context={"coatcheck_scope": ...} in Haystack'
)

_unwarned = [True]
"""Empty once the warning about the default scope was logged."""

_ambient: ContextVar[str | None] = ContextVar("coatcheck_scope", default=None)


@contextmanager
def scope(name: str) -> Iterator[None]:
    """Make ``name`` the scope of everything inside the ``with`` block, in this thread or task and those it starts.

    Raises:
        InvalidRequest: ``name`` is no text, empty, or longer than 4,096 characters.

    """
    token = _ambient.set(_checked(name))
    try:
        yield
    finally:
        _ambient.reset(token)


def choose_scope(argument: str | None, identity: str | None, *, required: bool) -> str:
    """Return the scope of a call: the argument, else the ambient one, else the framework's identity, else the default.

    Raises:
        InvalidRequest: the chosen scope is unusable, or none was given and ``required`` is true.

    """
    for candidate in (argument, _ambient.get(), identity):
        if candidate is not None:
            return _checked(candidate)
    if required:
        msg = f"no scope: require_scope=True refuses the shared default. {_GIVE_ONE}"
        raise InvalidRequest(msg)
    _warn_once()
    return DEFAULT_SCOPE


def _warn_once() -> None:
    """Say once in a process that conversations are not kept apart: nothing else would show it."""
    try:
        _unwarned.pop()  # atomic, so that of several threads one says it
    except IndexError:
        return
    logging.getLogger("coatcheck").warning(
        "no scope was given, so this tool result is stored and read in the scope %r. All conversations without a scope"
        " share it, and can read each other's references. %s. To refuse such calls, pass require_scope=True. This is"
        " logged once",
        DEFAULT_SCOPE,
        _GIVE_ONE,
    )


def _checked(name: object) -> str:
    if not isinstance(name, str) or not name or len(name) > MAX_SCOPE_LENGTH:
        shown = f"a text of {len(name):,} characters" if isinstance(name, str) and name else repr(name)
        msg = f"scope must be a text of 1 to {MAX_SCOPE_LENGTH:,} characters, not {shown}"
        raise InvalidRequest(msg)
    return name
