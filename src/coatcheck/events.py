"""What an offloader tells its host: one frozen event for each decision, and the sum of them.

Names, sizes and times only, never content. ``Recorder`` is where the engine reports; it counts, calls the host's
callback and writes the log, and none of the three can disturb the agent.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal, TypeAlias

from coatcheck.errors import InvalidRequest
from coatcheck.forks import ForkSafeLock

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("Event", "EventKind", "Recorder", "Stats")

logger = logging.getLogger("coatcheck")

EventKind: TypeAlias = Literal["offloaded", "kept", "truncated", "retrieved", "missed", "expired", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One decision of an offloader. Passed to ``on_event`` on the thread that made the decision."""

    kind: EventKind
    """What happened: a result was offloaded, kept or truncated; a reference was read, unknown or expired; or something
    failed and the agent went on without it."""

    scope: str
    """The scope of the call."""

    tool_name: str | None = None
    """The tool whose result it was; None for reads."""

    references: tuple[str, ...] = ()
    """The references written, or the one that was asked for."""

    size: int | None = None
    """Bytes stored; None where nothing was."""

    tokens: int | None = None
    """Tokens of the result before, as far as they were counted; of the answer, for reads."""

    tokens_saved: int = 0
    """Tokens that the conversation did not get."""

    milliseconds: float = 0.0
    """Time spent, from call to answer."""

    reason: str = ""
    """Why a result was kept or truncated, or what failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Counts since the offloader was made."""

    results: int = 0
    """Tool results seen."""

    offloaded: int = 0
    """Results that left the conversation."""

    truncated: int = 0
    """Results cut without being stored, because the storage failed and they were above ``max_inline_tokens``."""

    bytes_stored: int = 0
    """Bytes of the offloaded results."""

    tokens_saved: int = 0
    """Tokens that the conversation did not get, as estimated."""

    retrieved: int = 0
    """Reads that were answered."""

    missed: int = 0
    """Reads of a reference that the scope never had."""

    expired: int = 0
    """Reads of a reference whose content is gone."""

    failed: int = 0
    """Times that a storage, a policy or a callback failed."""


class Recorder:
    """Counts what happens and tells the host."""

    def __init__(self, on_event: Callable[[Event], object] | None) -> None:
        """Take the callback, if there is one.

        Raises:
            InvalidRequest: it cannot be called.

        """
        if on_event is not None and not callable(on_event):
            msg = f"on_event must be callable, not {on_event!r}"
            raise InvalidRequest(msg)
        self._on_event = on_event
        self._lock = ForkSafeLock()  # an addition reads and writes; two threads must not do that at once
        self._counts = dict.fromkeys((field.name for field in fields(Stats)), 0)

    @property
    def stats(self) -> Stats:
        """The counts so far."""
        with self._lock:
            return Stats(**self._counts)

    @property
    def listening(self) -> bool:
        """Whether anybody wants the events themselves."""
        return self._on_event is not None

    def count(self, **added: int) -> None:
        """Add to the named counts."""
        with self._lock:
            for name, number in added.items():
                self._counts[name] += number

    def count_kept(self) -> None:
        """Count a result that stays."""
        with self._lock:
            self._counts["results"] += 1

    def emit(self, event: Event) -> None:
        """Tell the host; a callback that raises is logged and counted, and nothing else happens."""
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:
            logger.exception("on_event raised; the event was dropped: %s", event)
            self.count(failed=1)

    def failure(self, event: Event, error: BaseException) -> None:
        """Log, count and tell the host that something failed and the agent goes on without it."""
        logger.warning("%s", event.reason, exc_info=error)
        self.count(failed=1)
        self.emit(event)
