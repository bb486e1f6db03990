"""What an offloader tells its host: one frozen event for each decision, and totals.

Events hold names, sizes and times, never content. The engine reports to ``Recorder``, which counts, calls the host's
listeners and writes the log. A listener or log handler that raises does not disturb the agent. The telemetry names of
an event's fields are here too, so that spans, metrics and log records share one vocabulary.
"""

from __future__ import annotations

import inspect
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from coatcheck.core.blocks import Kept, Offloaded, Truncated
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.forks import ForkSafeLock
from coatcheck.core.references import is_known_form
from coatcheck.engine.execution import queued_milliseconds
from coatcheck.engine.failures import class_of, log_place, logger, write

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack

    from coatcheck.core.blocks import Outcome
    from coatcheck.core.errors import CoatcheckError
    from coatcheck.core.references import Scope

__all__ = (
    "About",
    "Attribute",
    "Details",
    "Event",
    "EventKind",
    "Listener",
    "Recorder",
    "Stats",
)

EventKind: TypeAlias = Literal["offloaded", "kept", "truncated", "retrieved", "missed", "expired", "failed"]
Attribute: TypeAlias = str | int | float | tuple[str, ...]
"""A value that OpenTelemetry accepts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One decision of an offloader.

    Listeners are called in the context of the call that the event is about: on the caller's thread or, from the async
    methods, on a thread of ours, so that the event loop never waits for them.
    """

    kind: EventKind
    """What happened: a result was offloaded, kept or truncated; a reference was read, unknown or expired; or something
    failed and the agent went on without it."""

    scope: Scope | None
    """The scope of the call; None if none could be chosen."""

    tool_name: str | None = None
    """The tool that returned the result; empty for a failure about all results of a step; None for reads."""

    references: tuple[str, ...] = ()
    """The references written, or the one requested, without what a model wrote around it."""

    size: int | None = None
    """Bytes stored; None if nothing was."""

    tokens: int | None = None
    """Tokens of the original result, as far as they were counted; for reads, tokens of the answer."""

    tokens_saved: int = 0
    """Tokens that the conversation did not get."""

    milliseconds: float = 0.0
    """Time from call to answer."""

    queued_milliseconds: float = 0.0
    """How much of that time storage calls waited for one of the offloader's ``network_threads``; 0 if they need none:
    in the sync methods, and with a storage that is async or on this machine."""

    reason: str = ""
    """Why a result was kept or truncated, or what failed; never what a model wrote."""

    error_type: str = ""
    """The class of the error behind ``failed`` and ``truncated``: the backend's or the policy's own if there is one.
    Empty otherwise."""

    @property
    def attributes(self) -> dict[str, Attribute]:
        """The event's fields for telemetry, named by OpenTelemetry's conventions, without those that do not apply.

        They contain neither the scope, which may name a user, nor anybody else's words: no error message, and no
        reference that the scope never had, which is whatever a model wrote. ``docs/observability.md`` lists them.
        """
        found: dict[str, Attribute | None] = {
            "coatcheck.outcome": self.kind,
            "gen_ai.tool.name": self.tool_name or None,
            "coatcheck.reason": self.reason if self.kind == "kept" else None,
            "error.type": self.error_type or None,
            "coatcheck.references": (self.references or None) if self._names_what_was_stored else None,
            "coatcheck.stored.size": self.size,
            "coatcheck.token.count": self.tokens,
            "coatcheck.token.savings": self.tokens_saved or None,
        }
        return {name: value for name, value in found.items() if value is not None}

    @property
    def _names_what_was_stored(self) -> bool:
        """Whether these are certainly references, and not other words that a model wrote in their place."""
        if self.kind not in {"missed", "expired", "failed"}:
            return True
        return self.kind != "missed" and all(is_known_form(reference, self.scope) for reference in self.references)


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """What all events of one call have in common: fields of ``Event``, and when the call began.

    The fields have no defaults here, so that a type checker finds each place that lacks a new one.
    """

    scope: Scope | None
    tool_name: str | None
    references: tuple[str, ...]

    started: float = field(default_factory=time.perf_counter)
    """When the call began, in seconds of ``time.perf_counter``."""


class Details(TypedDict, total=False):
    """The fields of ``Event`` that the engine fills in, other than those of ``About``."""

    size: int | None
    tokens: int | None
    tokens_saved: int
    reason: str
    error_type: str


Listener: TypeAlias = Callable[[Event], object]
"""What may be passed as ``on_event``; its return value is ignored."""


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
    """Estimated tokens kept out of the conversation."""

    retrieved: int = 0
    """Reads that were answered."""

    missed: int = 0
    """Reads of a reference that the scope never had."""

    expired: int = 0
    """Reads of a reference to content that is gone."""

    failed: int = 0
    """Times that a storage, a policy, a callback or an adapter failed, or that a result lacked a required scope."""


class Recorder:
    """Counts what happens, logs it, and tells the host."""

    def __init__(self, on_event: Listener | Sequence[Listener] | None) -> None:
        """Take the listener or listeners, if there are any.

        Raises:
            InvalidRequest: a listener is not callable, is a class, or is async: nobody would await it.

        """
        listeners = on_event if isinstance(on_event, Sequence) else () if on_event is None else (on_event,)
        for listener in listeners:
            if not callable(listener):
                msg = f"on_event must be a callable or a sequence of callables, not {on_event!r}"
                raise InvalidRequest(msg)
            if isinstance(listener, type):  # calling it would only create an object for each event
                msg = f"on_event must be a function or an object, but {listener!r} is a class: pass an instance"
                raise InvalidRequest(msg)
            if inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(type(listener).__call__):
                msg = f"on_event must not be async, since nobody awaits it, but {listener!r} is: hand events to a queue"
                raise InvalidRequest(msg)
        self._listeners = tuple(listeners)
        self._lock = ForkSafeLock()  # an addition is a read and a write, which two threads must not interleave
        self._counts = dict.fromkeys((each.name for each in fields(Stats)), 0)

    @property
    def stats(self) -> Stats:
        """The counts so far."""
        return Stats(**self._counts)  # no lock: a signal handler may call this while its own thread holds the lock

    @property
    def listening(self) -> bool:
        """Whether there is anybody to receive events."""
        return bool(self._listeners) or logger.isEnabledFor(logging.DEBUG)

    def count_kept(self) -> None:
        """Count a result that stays."""
        with self._lock.held:
            self._counts["results"] += 1

    def record_outcome(self, outcome: Outcome, about: About, *, tokens: int | None, tokens_saved: int = 0) -> None:
        """Record the outcome of a result. All events about outcomes are made here.

        Args:
            outcome: determines the counts, and the fields of the event that the other arguments do not give.
            about: what the call is about; the references are those of ``outcome``.
            tokens: tokens of the result, as far as they were counted; None if they were not.
            tokens_saved: tokens that the conversation did not get, if a result was offloaded and they were counted.

        """
        match outcome:
            case Kept():
                self._record("kept", about, {"results": 1}, tokens=tokens, reason=outcome.reason)
            case Offloaded():
                size = sum(reference.size for reference in outcome.references)
                self._record(
                    "offloaded",
                    replace(about, references=tuple(reference.id for reference in outcome.references)),
                    {"results": 1, "offloaded": 1, "bytes_stored": size, "tokens_saved": tokens_saved},
                    size=size,
                    tokens=tokens,
                    tokens_saved=tokens_saved,
                )
            case Truncated():
                error = outcome.error
                counts = {"results": 1, "truncated": 1}
                self._record("truncated", about, counts, tokens=tokens, reason=str(error), error_type=class_of(error))

    def record_read(
        self,
        kind: Literal["retrieved", "missed", "expired", "failed"],
        about: About,
        **details: Unpack[Details],
    ) -> None:
        """Record how a read ended: with an answer, whose size is ``tokens``, or without one, for a ``reason``."""
        self._record(kind, about, {kind: 1}, **details)

    def _record(self, kind: EventKind, about: About, counts: Mapping[str, int], **details: Unpack[Details]) -> None:
        """Add to the counts, log an event and tell every listener.

        It is logged at DEBUG, or at ERROR if content was lost. If nobody would receive the event, it is not created.
        """
        with self._lock.held:  # all counts change together for whoever reads them meanwhile
            self._counts = self._counts | {name: self._counts[name] + number for name, number in counts.items()}
        logs = logger.isEnabledFor(logging.DEBUG)
        if not (logs or self._listeners or kind == "truncated"):
            return
        event = _event(kind, about, details)
        if kind == "truncated":
            words = "lost part of a result of %s with about %s tokens: %s"
            tokens = f"{event.tokens or 0:,}"
            write(logger, logging.ERROR, words, event.tool_name, tokens, event.reason, extra=_fields(event))
        elif logs:
            write(logger, logging.DEBUG, "%s %s", kind, event.tool_name or "a reference", extra=_fields(event))
        for listener in self._listeners:
            self._tell(listener, event)

    def record_failure(
        self, error: CoatcheckError, about: About, *, logged: str | None, **details: Unpack[Details]
    ) -> None:
        """Log, count and tell the host that something failed and the agent goes on without it.

        ``logged`` is the message to log; None if an adapter has logged the failure already.
        """
        event = _event("failed", about, {"reason": str(error), "error_type": class_of(error), **details})
        if logged is not None:
            write(logger, logging.WARNING, "%s", logged, extra=_fields(event))
            log_place(logger, error)
        with self._lock.held:
            self._counts["failed"] += 1
        for listener in self._listeners:
            self._tell(listener, event)

    def _tell(self, listener: Listener, event: Event) -> None:
        """Call a listener; if it raises, log and count that, and do nothing else."""
        try:
            listener(event)
        except Exception as error:  # noqa: BLE001 - logged, and the agent goes on
            # Hide the exception that was being handled: its message may quote the model.
            error.__suppress_context__ = True
            # Not `write`, which logs no traceback: a listener never sees content, and its author needs the message.
            with suppress(Exception):
                logger.exception("a listener of on_event raised, and missed this event", extra=_fields(event))
            with self._lock.held:
                self._counts["failed"] += 1


def _event(kind: EventKind, about: About, details: Details) -> Event:
    told: dict[str, Any] = {field.name: getattr(about, field.name) for field in fields(about)} | {**details}
    milliseconds = (time.perf_counter() - told.pop("started")) * 1e3
    return Event(kind=kind, milliseconds=milliseconds, queued_milliseconds=queued_milliseconds(), **told)


def _fields(event: Event) -> dict[str, Attribute]:
    return {**event.attributes, "coatcheck.operation.duration": event.milliseconds / 1e3}
