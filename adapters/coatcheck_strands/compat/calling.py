"""The scope of the current tool call, so that a storage lets a tool read exactly what its agent may read.

Only recording and looking up the scope belong here. The hooks before and after a tool call are separate functions, so a
``with`` block cannot span both. Strands calls no hook after a call that was interrupted or moved to the background.
Such a call is forgotten before the agent's next tool or model call, and at the end of its run.

A task that a tool leaves behind keeps the scope of its call. It keeps nothing of the calls around that one: if each
agent began in a task that the one before left behind, none of them could be garbage-collected.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import ref

from coatcheck import InvalidRequest, choose_scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from weakref import ReferenceType

    from coatcheck import Scope

__all__ = ("begin_call", "calling", "end_call", "end_calls", "scope_at_hand")


@dataclass(slots=True, kw_only=True, eq=False)
class _Running:
    agent: object
    choose: Callable[[], Scope]
    outer: _Running | None
    task: ReferenceType[asyncio.Task[Any]] | None = None
    """The task that it began in."""

    ended: bool = False
    """Whether the tool has returned. Only tasks that it left behind still have this call, and they keep it."""


_running: ContextVar[_Running | None] = ContextVar("coatcheck_strands_running", default=None)


def _current_task() -> ReferenceType[asyncio.Task[Any]] | None:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return None
    return None if task is None else ref(task)


def begin_call(agent: object, choose: Callable[[], Scope]) -> None:
    """Record that ``agent`` is about to run a tool. ``choose`` returns the scope; it is called only when needed."""
    end_calls(agent)  # in one context, an agent runs one tool at a time
    _running.set(_Running(agent=agent, choose=choose, outer=_running.get(), task=_current_task()))


def end_call(agent: object) -> None:
    """Record that the tool of ``agent`` has returned.

    If it ran in the background, the task that began the call may still have it, and needs to know what is around it.
    """
    over, here = _running.get(), _current_task()
    end_calls(agent)
    while over is not None and over is not _running.get() and over.task == here:
        over.ended, over.outer, over = True, None, over.outer


def end_calls(agent: object) -> None:
    """Record that ``agent`` no longer runs a tool in this context. The call of an agent around it continues."""
    running = _running.get()
    while running is not None and running.agent is agent and not running.ended:
        running = running.outer
    if running is not _running.get():
        _running.set(running)


@contextmanager
def calling(agent: object, choose: Callable[[], Scope]) -> Iterator[None]:
    """Make the scope returned by ``choose`` the current one inside the block."""
    running = _Running(agent=agent, choose=choose, outer=_running.get())
    token = _running.set(running)
    try:
        yield
    finally:
        running.ended, running.outer = True, None
        _running.reset(token)


def scope_at_hand() -> Scope | None:
    """Return the scope of the current tool call, else the ambient one, else None."""
    running = _running.get()
    if running is not None:
        return running.choose()
    try:
        return choose_scope(None, None, required=True)
    except InvalidRequest:
        return None
