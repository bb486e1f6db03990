"""Who may read what: the scope that every save and every read names.

The host chooses the scope: a tenant, a conversation, a user. It is a ``str``, which is never parsed, or a tuple such as
``("tenant-7", "thread-3")``; all tuple scopes that begin with the same parts can be deleted together. It comes from the
host or the framework, never from the model's arguments. Only choosing it belongs here; ``references`` makes it a part
of keys and references.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coatcheck.core.errors import InvalidRequest, describe_value
from coatcheck.core.references import DEFAULT_SCOPE, MAX_SCOPE_PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextvars import Token

    from coatcheck.core.references import Scope

__all__ = (
    "DEFAULT_SCOPE",
    "MAX_SCOPE_LENGTH",
    "choose_scope",
    "hold_scope",
    "require_own_scope",
    "require_scope",
    "require_scope_parts",
    "scope",
)

MAX_SCOPE_LENGTH = 4096
"""Characters, of a ``str`` and of each part of a tuple. A scope is hashed, so the limit only catches mistakes, such as
a whole document passed as a scope."""

_GIVE_ONE = (
    'Pass scope=..., call inside `with coatcheck.scope("..."):`, or give the framework an identity: a thread_id in'
    ' LangGraph, a session manager in Strands, hook_context={"coatcheck_scope": ...} in Haystack, a'
    " group_id in the OpenAI Agents SDK, a session in Google ADK or the Microsoft Agent Framework, a conversation_id in"
    " Pydantic AI"
)

_REQUIRED = f"no scope: require_scope=True refuses the shared default. {_GIVE_ONE}"
_NOT_LISTED = f"no scope: what conversations share in {DEFAULT_SCOPE!r} is listed only by that name. {_GIVE_ONE}"

_SHARED = (
    "no scope was given, so tool results are stored and read in the scope %r. All conversations without a scope"
    " share it, and can read each other's references. %s. To refuse such calls, pass require_scope=True. This is"
    " logged once"
)
_NOT_HELD = (
    "the block `with coatcheck.scope(...)` did not stay in effect until its end, so calls inside it may have had"
    " another scope. That happens if a generator yields inside it, and is run on changing threads, as a sync dependency"
    " or a sync streaming body of FastAPI is, or in turns with another one. Do not yield inside it: pass scope=... to"
    " the adapter"
)
_unwarned = [True]
"""Empty once the warning about the default scope has been logged."""


@dataclass(slots=True, eq=False)
class _Held:
    """The scope of an adapter's block. Tasks that a tool leaves behind inherit it, but must not use it."""

    scope: Scope
    outer: Scope | _Held | None
    ended: bool = False


_ambient: ContextVar[Scope | _Held | None] = ContextVar("coatcheck_scope", default=None)


@contextmanager
def scope(name: Scope) -> Iterator[None]:
    """Make ``name`` the scope of everything inside the ``with`` block, and of the tasks that start there.

    A thread started there, or borrowed from a pool, may not inherit it: its calls then use ``"default"``. Run its work
    with ``contextvars.copy_context().run``, as ``asyncio.to_thread`` does.

    Raises:
        InvalidRequest: ``name`` is neither a ``str`` of 1 to 4,096 characters nor a tuple of 1 to 8 of them. At the end
            of the block: it ended in a different context than it began in, or before a block that began inside it. If
            the block itself ends with an error, this is only logged.

    """
    given = require_scope(name)
    token = _ambient.set(given)
    try:
        yield
    except BaseException as error:  # such as the cancellation of a task, which must not become another error
        if not _end_block(given, token):
            if isinstance(error, GeneratorExit):
                raise InvalidRequest(_NOT_HELD, for_host=True) from None
            _warn(_NOT_HELD)
        raise
    if not _end_block(given, token):
        raise InvalidRequest(_NOT_HELD, for_host=True)


def _end_block(given: Scope, token: Token[Scope | _Held | None]) -> bool:
    """End a block; return whether its scope was still the ambient one."""
    has_held = _ambient.get() == given
    try:
        _ambient.reset(token)
    except ValueError:
        return False
    if not has_held:
        _ambient.set(None)  # the scope before it may have ended, too
    return has_held


@contextmanager
def hold_scope(name: Scope) -> Iterator[None]:
    """Do what ``scope`` does, for an adapter, which must not raise because a tool left a block open.

    The scope ends with the block, even in tasks that began there: a tool may start a worker that later serves others.
    """
    held = _Held(require_scope(name), outer=_in_force(_ambient.get()))
    token = _ambient.set(held)
    try:
        yield
    finally:
        held.ended, held.outer = True, _in_force(held.outer)
        _ambient.reset(token)


def _in_force(ambient: Scope | _Held | None) -> Scope | _Held | None:
    """Return ``ambient``, or what is around it if it has ended.

    No block keeps one that has ended: if each run began in a task of the one before, these would add up.
    """
    while isinstance(ambient, _Held) and ambient.ended:
        ambient = ambient.outer
    return ambient


def choose_scope(argument: Scope | None, identity: Scope | None, *, required: bool, refusal: str = _REQUIRED) -> Scope:
    """Return the scope of a call: the argument, else the ambient one, else the framework's identity, else the default.

    Raises:
        InvalidRequest: the chosen scope is unusable; or none was given and ``required`` is true: the message is then
            ``refusal``.

    """
    ambient = _ambient.get()
    while isinstance(ambient, _Held):
        ambient = ambient.outer if ambient.ended else ambient.scope
    for candidate in (argument, ambient, identity):
        if candidate is not None:
            return require_scope(candidate)
    if required:
        raise InvalidRequest(refusal, for_host=True)
    _warn_once()
    return DEFAULT_SCOPE


def require_own_scope(argument: Scope | None, identity: Scope | None) -> Scope:
    """Return the scope of a call that must not fall back to the shared default.

    Raises:
        InvalidRequest: no scope was given, or it is unusable.

    """
    return choose_scope(argument, identity, required=True, refusal=_NOT_LISTED)


def require_scope(name: object) -> Scope:
    """Return ``name`` if it can be a scope.

    Raises:
        InvalidRequest: it is neither a ``str`` of 1 to 4,096 characters nor a tuple of 1 to 8 of them.

    """
    if isinstance(name, str) and 0 < len(name) <= MAX_SCOPE_LENGTH:
        return name
    if isinstance(name, tuple):
        return require_scope_parts("scope", name)
    accepted = f"a str of 1 to {MAX_SCOPE_LENGTH:,} characters or a tuple of 1 to {MAX_SCOPE_PARTS} of them"
    msg = f"scope must be {accepted}, not {_describe(name)}"
    raise InvalidRequest(msg, for_host=True)


def require_scope_parts(argument: str, parts: object) -> tuple[str, ...]:
    """Return ``parts`` if they can be a tuple scope, or the first parts of one.

    Raises:
        InvalidRequest: ``parts`` is not a tuple of 1 to 8 ``str`` of 1 to 4,096 characters; the message names
            ``argument``.

    """
    if not isinstance(parts, tuple) or not 1 <= len(parts) <= MAX_SCOPE_PARTS:
        accepted = f'a tuple of 1 to {MAX_SCOPE_PARTS} parts, such as ("tenant-7",)'
        msg = f"{argument} must be {accepted}, not {_describe(parts)}"
        raise InvalidRequest(msg, for_host=True)
    for part in parts:
        if not isinstance(part, str) or not 0 < len(part) <= MAX_SCOPE_LENGTH:
            accepted = f"a str of 1 to {MAX_SCOPE_LENGTH:,} characters"
            msg = f"each part of {argument} must be {accepted}, not {_describe(part)}"
            raise InvalidRequest(msg, for_host=True)
    return parts


def _describe(value: object) -> str:
    """Describe a refused scope for a message: a non-empty ``str`` or a tuple by its length, never its content."""
    if isinstance(value, str) and value:
        return f"a str of {len(value):,} characters"
    if isinstance(value, tuple):
        return f"a tuple of {len(value):,} parts"
    return describe_value(value)


def _warn_once() -> None:
    """Warn once per process that conversations are not kept apart: nothing else would show it."""
    try:
        _unwarned.pop()  # atomic, so that only one of several threads warns
    except IndexError:
        return
    _warn(_SHARED, DEFAULT_SCOPE, _GIVE_ONE)


def _warn(message: str, *arguments: object) -> None:
    with suppress(Exception):  # a log that fails must not take the agent down
        logging.getLogger("coatcheck").warning(message, *arguments)
