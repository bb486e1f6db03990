"""The two guards around an adapter's own work: nothing of ours ends an agent, and every failure ends in one warning.

``settle`` is on the way into the conversation: conversion, offloading and putting back happen inside it. Where one of
them fails, the raw result goes on, or, where it is far too large, what the core's last resort makes of it. ``answer``
is on the way back. No tool and no control flow of the framework may run inside either: its exceptions must pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from coatcheck.adapting.content import plain_blocks
from coatcheck.core.blocks import MediaBlock, ToolResult
from coatcheck.core.notice import RETRIEVAL_TOOL
from coatcheck.core.outcomes import Kept
from coatcheck.engine.events import log_failure
from coatcheck.retrieval import failure_for_model, retrieval_arguments

if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Mapping, Sequence

    from coatcheck.core.blocks import Block
    from coatcheck.core.outcomes import Offloaded, Outcome, Retrieved, Truncated
    from coatcheck.core.policy import MaybeAwaitable, Policy
    from coatcheck.core.references import Scope
    from coatcheck.offloader import Offloader

__all__ = (
    "FAILED",
    "UNLIMITED",
    "Arrival",
    "Batch",
    "Delivery",
    "Failure",
    "aanswer",
    "answer",
    "asettle",
    "call_off_loop",
    "settle",
)

FAILED = "coatcheck could not offload a tool result; it stays as it is"
"""The warning for a failure of coatcheck's own, for ``coatcheck.log_failure``."""

UNLIMITED = "coatcheck could not cut a tool result either; it stays as it is, whatever its size"
"""The warning for a failure of the last resort."""

Raw = TypeVar("Raw")
Answer = TypeVar("Answer")
Lazy: TypeAlias = "Scope | Callable[[], Scope | None] | None"
Changed: TypeAlias = "tuple[Arrival, Offloaded | Truncated]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One tool result on its way into the conversation. What is not explained here is as for ``Offloader.offload``."""

    content: Any
    """What the result holds, as the framework has it."""

    convert: Callable[[Any], Sequence[Block]]
    """Converts the content: every block, in order, and what is not understood as an ``OpaqueBlock``."""

    convert_plainly: Callable[[Any], Sequence[Block]] = plain_blocks
    """Converts the content in the simplest way, for the last resort, after ``convert`` may have failed."""

    tool_name: str

    native: Any = None
    """By what the adapter finds the result again when it is put back, such as the framework's message."""

    tool_args: Mapping[str, object] = field(default_factory=dict)

    is_error: bool = False

    is_heavy: bool = False
    """Whether a conversion may take a while, such as decoding base64. ``asettle`` makes it on a thread then."""

    policy: Policy | None = None

    measured_tokens: Callable[[], MaybeAwaitable[int]] | None = None

    confirm: Callable[[int], MaybeAwaitable[bool]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Results that have an offloader, a scope and a retrieval tool in common."""

    arrivals: Sequence[Arrival]
    """In the order of the conversation."""

    offloader: Offloader

    scope: Lazy | Exception = None
    """As for ``Offloader.offload``, or a callable that returns it, called inside the guard. An exception where nobody
    can know it: the last resort stores nothing then."""

    identity: Lazy = None
    """As for ``Offloader.offload``, or a callable that returns it."""

    retrieval_tool: str | None = RETRIEVAL_TOOL
    """The name under which the agent has the retrieval tool, or None."""

    together: bool = False
    """Whether these are all results of one step, to be decided about together, so that ``max_step_tokens`` holds."""

    @property
    def is_heavy(self) -> bool:
        """Whether converting any of the results may take a while."""
        return any(arrival.is_heavy for arrival in self.arrivals)

    def custody(self) -> dict[str, Any]:
        """Return the arguments that all calls of the offloader have in common."""
        whose = {"scope": _resolve(self.scope), "identity": _resolve(self.identity)}
        return {**whose, "retrieval_tool": self.retrieval_tool}

    def convert(self) -> list[ToolResult]:
        """Return the results as the core has them."""
        return [
            ToolResult(
                blocks=tuple(arrival.convert(arrival.content)),
                tool_name=arrival.tool_name,
                tool_args=arrival.tool_args,
                is_error=arrival.is_error,
            )
            for arrival in self.arrivals
        ]


class Delivery(ABC, Generic[Raw]):
    """What a tool, or a step of tools, returned: what an adapter tells ``settle`` about it. Subclass it."""

    raw: Raw
    """What the framework goes on with where nothing changes."""

    @abstractmethod
    def look(self) -> Sequence[Batch]:
        """Return the results that may leave; none is the quick way out. Called once, on the caller's thread."""

    @abstractmethod
    def put_back(self, changed: Sequence[Changed]) -> Raw:
        """Return what the framework goes on with, where these results changed. Change copies, never what came."""

    def look_again(self) -> Sequence[Batch]:
        """Do what ``look`` does, for the last resort, after whatever failed: with less care, if ``look`` may fail."""
        return self.look()


def settle(delivery: Delivery[Raw], *, logger: logging.Logger) -> Raw:
    """Offload what is too large of a delivery, and return what the framework goes on with. Never raises."""
    try:
        return _put_back(delivery, [pair for batch in delivery.look() for pair in _offload(batch)])
    except Exception as error:  # noqa: BLE001 - whatever goes wrong here must not end the agent
        log_failure(logger, FAILED, error=error)
    try:
        return _put_back(
            delivery,
            [
                (arrival, batch.offloader.last_resort(**arguments))
                for batch in delivery.look_again()
                for arrival, arguments in _last_resorts(batch)
            ],
        )
    except Exception as error:  # noqa: BLE001 - as above
        log_failure(logger, UNLIMITED, error=error)
        return delivery.raw


async def asettle(delivery: Delivery[Raw], *, logger: logging.Logger) -> Raw:
    """Do what ``settle`` does, without blocking the event loop."""
    try:
        batches = delivery.look()
        settled = [pair for batch in batches for pair in await _aoffload(batch)]
        return await call_off_loop(any(batch.is_heavy for batch in batches), _put_back, delivery, settled)
    except Exception as error:  # noqa: BLE001 - as in settle
        log_failure(logger, FAILED, error=error)
    try:
        return _put_back(
            delivery,
            [
                (arrival, await batch.offloader.alast_resort(**arguments))
                for batch in delivery.look_again()
                for arrival, arguments in _last_resorts(batch)
            ],
        )
    except Exception as error:  # noqa: BLE001 - as in settle
        log_failure(logger, UNLIMITED, error=error)
        return delivery.raw


async def call_off_loop(heavy: bool, function: Callable[..., Answer], *arguments: Any) -> Answer:  # noqa: FBT001, ANN401 - a verb
    """Call ``function``: on a thread where it is ``heavy``, so that it does not block the event loop."""
    if not heavy:
        return function(*arguments)
    import asyncio  # noqa: PLC0415 - whoever awaits this has loaded it

    return await asyncio.to_thread(function, *arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a read-back has no answer."""

    text: str
    """What the model reads; the framework's result should be marked as an error where it can be."""

    error: Exception
    """What was raised."""


def answer(
    find: Callable[[], tuple[Offloader, Mapping[str, Any]]],
    sent: object,
    *,
    convert_media: Callable[[Sequence[Block]], Answer],
    **options: Any,  # noqa: ANN401 - those of retrieve
) -> Answer | str | Failure:
    """Answer a call of the retrieval tool. Never raises: the model is told what was wrong.

    Args:
        find: returns the offloader, and ``scope`` and ``identity`` for it: whose content may be read. It may raise.
        sent: the arguments as the model sent them; a framework must not validate them, because the core words what is
            wrong so that a model can act on it.
        convert_media: makes the framework's content of an answer with a medium in it. Any other answer is a ``str``.
        **options: ``native_media`` and ``retrieval_tool`` of ``Offloader.retrieve``.

    """
    try:
        offloader, whose = find()
        return _convert(offloader.retrieve(**retrieval_arguments(sent), **whose, **options), convert_media)
    except Exception as error:  # noqa: BLE001 - the model reads what went wrong, and the agent goes on
        return Failure(text=failure_for_model(error), error=error)


async def aanswer(
    find: Callable[[], tuple[Offloader, Mapping[str, Any]]],
    sent: object,
    *,
    convert_media: Callable[[Sequence[Block]], Answer],
    **options: Any,  # noqa: ANN401 - those of retrieve
) -> Answer | str | Failure:
    """Do what ``answer`` does, without blocking the event loop; with ``native_media`` it converts on a thread."""
    try:
        offloader, whose = find()
        found = await offloader.aretrieve(**retrieval_arguments(sent), **whose, **options)
        return await call_off_loop(bool(options.get("native_media")), _convert, found, convert_media)
    except Exception as error:  # noqa: BLE001 - as in answer
        return Failure(text=failure_for_model(error), error=error)


def _convert(found: Retrieved, convert_media: Callable[[Sequence[Block]], Answer]) -> Answer | str:
    has_media = any(isinstance(block, MediaBlock) for block in found.blocks)
    return convert_media(found.blocks) if has_media else found.text


def _offload(batch: Batch) -> list[tuple[Arrival, Outcome]]:
    if not batch.arrivals:
        return []
    custody = batch.custody()
    results = batch.convert()
    if batch.together:
        policies = [arrival.policy for arrival in batch.arrivals]
        outcomes: Sequence[Outcome] = batch.offloader.offload_step(results, policies=policies, **custody)
    else:
        outcomes = [
            batch.offloader.offload(result.blocks, **_details(arrival), **custody)
            for arrival, result in zip(batch.arrivals, results, strict=True)
        ]
    return list(zip(batch.arrivals, outcomes, strict=True))


async def _aoffload(batch: Batch) -> list[tuple[Arrival, Outcome]]:
    if not batch.arrivals:
        return []
    custody = batch.custody()
    results = await call_off_loop(batch.is_heavy, batch.convert)
    if batch.together:
        policies = [arrival.policy for arrival in batch.arrivals]
        outcomes: Sequence[Outcome] = await batch.offloader.aoffload_step(results, policies=policies, **custody)
    else:
        outcomes = [
            await batch.offloader.aoffload(result.blocks, **_details(arrival), **custody)
            for arrival, result in zip(batch.arrivals, results, strict=True)
        ]
    return list(zip(batch.arrivals, outcomes, strict=True))


def _details(arrival: Arrival) -> dict[str, Any]:
    return {
        "tool_name": arrival.tool_name,
        "tool_args": arrival.tool_args,
        "is_error": arrival.is_error,
        "policy": arrival.policy,
        "measured_tokens": arrival.measured_tokens,
        "confirm": arrival.confirm,
    }


def _last_resorts(batch: Batch) -> list[tuple[Arrival, dict[str, Any]]]:
    """Return what the core's last resort is told of each result."""
    scope = partial(_resolve, batch.scope)
    whose = {"scope": scope, "identity": batch.identity, "retrieval_tool": batch.retrieval_tool}
    return [
        (arrival, {"blocks": arrival.convert_plainly(arrival.content), "tool_name": arrival.tool_name, **whose})
        for arrival in batch.arrivals
    ]


def _put_back(delivery: Delivery[Raw], settled: Sequence[tuple[Arrival, Outcome | None]]) -> Raw:
    changed = [(arrival, outcome) for arrival, outcome in settled if not isinstance(outcome, Kept | None)]
    return delivery.put_back(changed) if changed else delivery.raw


def _resolve(value: Lazy | Exception) -> Scope | None:
    if isinstance(value, Exception):
        raise value
    return value() if callable(value) else value
