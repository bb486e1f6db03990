"""The guard around what an adapter does with a result: no error of ours ends an agent, and each is logged once.

Conversion, offloading and putting back happen inside ``settle``. If one of them fails, the raw result goes on; if that
is far too large, what the core's last resort makes of it. Do not run tools or the framework's control flow inside:
their exceptions must pass through. The guard on the way back is in ``answers``.

Providers and hosts may mark a single call: code made it, or its result must stay. Each framework keeps these marks in
a place of its own, but the values are the same everywhere, so this module interprets them for all adapters.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from coatcheck.adapting.content import MARK, holds_iterator, is_light, plain_blocks, with_lists
from coatcheck.core.blocks import Kept, OpaqueBlock, TextBlock, ToolResult, require_result
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.forks import ForkSafeLock, loading
from coatcheck.core.notice import RETRIEVAL_TOOL
from coatcheck.engine.failures import log_failure, write

if TYPE_CHECKING:
    from collections import OrderedDict
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from coatcheck.core.blocks import Block, Offloaded, Outcome, Truncated
    from coatcheck.core.policy import Policy
    from coatcheck.core.references import Scope
    from coatcheck.offloader import Offloader
    from coatcheck.storage.protocol import MaybeAwaitable

__all__ = (
    "FAILED",
    "Arrival",
    "Batch",
    "Delivery",
    "ForkSafeLock",
    "OneResult",
    "RetrievalName",
    "WarnOnce",
    "asettle",
    "asks_to_keep",
    "call_off_loop",
    "is_called_by_code",
    "is_for_code_only",
    "remember_latest",
    "settle",
    "without_iterators",
)

FAILED = "coatcheck could not offload a tool result; it is kept or, above max_inline_tokens, stored as it is or cut"
"""The warning for a failure of coatcheck's own, for ``coatcheck.log_failure``."""

UNLIMITED = "coatcheck could not cut a tool result either; it is kept, whatever its size"
"""The warning for a failure of the last resort."""

_CODE_EXECUTION = "code_execution"
"""Anthropic's name for code as a caller, without the date suffix."""

_CODE = frozenset({"program", "programmatic"})
"""OpenAI's names for code: as a caller, and in ``allowed_callers``."""

Raw = TypeVar("Raw")
Answer = TypeVar("Answer")
Key = TypeVar("Key")
Value = TypeVar("Value")
Lazy: TypeAlias = "Scope | Callable[[], Scope | None] | None"
Changed: TypeAlias = "tuple[Arrival, Offloaded | Truncated]"


MAX_LIGHT_PARTS = 500
"""Parts of a result, at most, that are converted on the event loop: more take milliseconds, whatever they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One tool result on its way into the conversation. Fields without a docstring are as for ``Offloader.offload``."""

    content: Any
    """The result's content, in the framework's own types."""

    convert: Callable[[Any], Sequence[Block]]
    """Converts the content to blocks, in order; what it does not understand becomes an ``OpaqueBlock``."""

    convert_plainly: Callable[[Any], Sequence[Block]] | None = None
    """Converts the content in the simplest way, for the last resort, after ``convert`` may have failed: text to a
    ``TextBlock``, everything else to an ``OpaqueBlock``. ``plain_blocks`` helps to write one.

    None: text is what ``convert`` finds. If that fails, or does not make one block of each part, only a part that is a
    ``str`` is text, and any other part that is too large is stored as JSON.
    """

    tool_name: str

    native: Any = None
    """The adapter's own handle for the result, such as the framework's message. ``put_back`` uses it."""

    tool_args: Mapping[str, object] = field(default_factory=dict)

    is_error: bool = False

    is_heavy: bool = False
    """Whether conversion may be slow, such as decoding base64. If so, ``asettle`` runs it on a thread, as it does for
    any list of more than 500 parts."""

    policy: Policy | None = None

    measured_tokens: Callable[[], MaybeAwaitable[int | None]] | None = None

    confirm: Callable[[int], MaybeAwaitable[bool]] | None = None

    def plainly_converted(self) -> tuple[Block, ...]:
        """Return the content for the last resort: all text that can be found, and everything else opaque.

        Raises:
            Exception: whatever ``convert_plainly`` raised. What ``convert`` raises does not matter here.

        """
        if self.convert_plainly is not None:
            return tuple(self.convert_plainly(self.content))
        parts = self.content if isinstance(self.content, list | tuple) else [self.content]
        try:
            pairs = list(zip(parts, require_result(self.convert(self.content), self.tool_name), strict=True))
        except Exception:  # noqa: BLE001 - the guard has logged what failed, which may be this
            return plain_blocks(self.content)
        # Media and values stay as they came, in case the conversion back failed on them.
        return tuple(block if isinstance(block, TextBlock) else OpaqueBlock(part) for part, block in pairs)


def _has_many_parts(content: object) -> bool:
    return isinstance(content, list | tuple) and len(content) > MAX_LIGHT_PARTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Results that share an offloader, a scope and a retrieval tool."""

    arrivals: Sequence[Arrival]
    """The results, in the order of the conversation."""

    offloader: Offloader

    scope: Lazy | Exception = None
    """As for ``Offloader.offload``, or a callable that returns it, called inside the guard. Or the exception that kept
    the adapter from finding the scope; the last resort then stores nothing."""

    identity: Lazy = None
    """As for ``Offloader.offload``, or a callable that returns it."""

    retrieval_tool: str | None = RETRIEVAL_TOOL
    """The name of the agent's retrieval tool, or None if it has none."""

    together: bool = False
    """Whether these are all results of one step, to be decided together, so that ``max_step_tokens`` holds. If so, none
    may have ``measured_tokens`` or ``confirm``: the guard treats that as a failed conversion."""

    @property
    def is_heavy(self) -> bool:
        """Whether converting any of the results may be slow."""
        return any(arrival.is_heavy or _has_many_parts(arrival.content) for arrival in self.arrivals)

    def common_arguments(self) -> dict[str, Any]:
        """Return the arguments that all calls of the offloader share: scope, identity and retrieval tool.

        Raises:
            Exception: ``scope``, if it is an exception, or whatever a callable raised.

        """
        if isinstance(self.scope, Exception):
            raise self.scope
        return {
            "scope": self.scope() if callable(self.scope) else self.scope,
            "identity": self.identity() if callable(self.identity) else self.identity,
            "retrieval_tool": self.retrieval_tool,
        }

    def convert(self) -> list[dict[str, Any]]:
        """Convert the content of each result; return the arguments for ``Offloader.offload`` for each."""
        calls = []
        for arrival in self.arrivals:
            blocks, measured_tokens = tuple(arrival.convert(arrival.content)), arrival.measured_tokens
            if OpaqueBlock in map(type, blocks):
                known = self._without_huge_unknown(blocks)
                measured_tokens = measured_tokens if known == blocks else None  # frameworks may not count such a block
                blocks = known
            call = {
                "blocks": blocks,
                "tool_name": arrival.tool_name,
                "tool_args": arrival.tool_args,
                "is_error": arrival.is_error,
                "measured_tokens": measured_tokens,
                "confirm": arrival.confirm,
                "policy": arrival.policy,
            }
            calls.append(call)
        return calls

    def _without_huge_unknown(self, blocks: Sequence[Block]) -> tuple[Block, ...]:
        with loading:
            from coatcheck.engine.last_resort import with_opaque_as_json  # noqa: PLC0415 - few results have such a block
        return with_opaque_as_json(blocks, max_inline_tokens=self.offloader.settings.max_inline_tokens)

    def last_resorts(self) -> list[dict[str, Any]]:
        """Return the last resort's arguments for each result; if the scope cannot be found, the last resort cuts."""
        common = {"scope": self.last_scope, "identity": self.identity, "retrieval_tool": self.retrieval_tool}
        return [
            {
                "blocks": self._last_blocks(arrival),
                "tool_name": arrival.tool_name,
                **common,
            }
            for arrival in self.arrivals
        ]

    def _last_blocks(self, arrival: Arrival) -> tuple[Block, ...]:
        """Return the content for the last resort, which cuts a huge opaque block that cannot be written as JSON."""
        blocks = arrival.plainly_converted()
        with suppress(Exception):  # such as for a value that is nested too deeply
            return self._without_huge_unknown(blocks)
        return blocks

    def last_scope(self) -> Scope | None:
        """Return the scope; raise whatever keeps it from being found."""
        scope: Scope | None = self.common_arguments()["scope"]
        return scope


class Delivery(ABC, Generic[Raw]):
    """What a tool, or a step of several calls, returned, as an adapter describes it to ``settle``. Subclass it."""

    raw: Raw
    """What the framework goes on with if nothing changes."""

    @property
    def is_heavy(self) -> bool:
        """Whether ``look`` takes longer than an event loop should wait, so that it needs a thread."""
        return False

    @abstractmethod
    def look(self) -> Sequence[Batch]:
        """Return the results that may be offloaded, or none. ``asettle`` calls it on a thread if ``is_heavy``.

        It is called again after a failure, unless ``look_again`` is overridden.
        """

    @abstractmethod
    def put_back(self, changed: Sequence[Changed]) -> Raw:
        """Return what the framework goes on with, given the changed results. Change copies, never the originals."""

    def look_again(self) -> Sequence[Batch]:
        """Do what ``look`` does, for the last resort after a failure. Override it if ``look`` itself may fail."""
        return self.look()


class OneResult(Delivery[Raw]):
    """A delivery of one result, for frameworks that show one call at a time."""

    restore: Callable[[Sequence[Block]], Raw]
    """Converts blocks to what the framework goes on with."""

    def put_back(self, changed: Sequence[Changed]) -> Raw:
        """Return what ``restore`` makes of the blocks that the model is to see."""
        ((_, outcome),) = changed
        return self.restore(outcome.blocks)


def settle(delivery: Delivery[Raw], *, logger: logging.Logger) -> Raw:
    """Offload what is too large in a delivery, and return what the framework goes on with. Never raises.

    If ``look`` and ``look_again`` both fail, the result stays, whatever its size, and only two warnings say so: there
    is no known offloader that could count the failure or tell the host.
    """
    try:
        offloaded = [
            (arrival, outcome)
            for batch in delivery.look()
            for arrival, outcome in zip(batch.arrivals, _offload(batch), strict=True)
            if not isinstance(outcome, Kept)
        ]
        return delivery.put_back(offloaded) if offloaded else delivery.raw
    except Exception as error:  # noqa: BLE001 - whatever goes wrong here must not end the agent
        log_failure(logger, FAILED, error=error)
        return _limit(delivery, error, logger=logger)


def _limit(delivery: Delivery[Raw], failed: Exception, *, logger: logging.Logger) -> Raw:
    """Store or cut what is above the hard limit, after offloading raised ``failed``."""
    try:
        batches = delivery.look_again()
        for offloader, arguments in _telling(batches, failed):
            offloader.last_resort((), **arguments)
        cut = [
            (arrival, outcome)
            for batch in batches
            for arrival, arguments in zip(batch.arrivals, batch.last_resorts(), strict=True)
            if (outcome := batch.offloader.last_resort(**arguments)) is not None
        ]
        return delivery.put_back(cut) if cut else delivery.raw
    except Exception as error:  # noqa: BLE001 - as above
        log_failure(logger, UNLIMITED, error=error)
        return delivery.raw


async def asettle(delivery: Delivery[Raw], *, logger: logging.Logger) -> Raw:
    """Do what ``settle`` does, without blocking the event loop."""
    try:
        batches = await call_off_loop(delivery.is_heavy, delivery.look)
        offloaded = [
            (arrival, outcome)
            for batch in batches
            for arrival, outcome in zip(batch.arrivals, await _aoffload(batch), strict=True)
            if not isinstance(outcome, Kept)
        ]
        heavy = any(batch.is_heavy for batch in batches)
        return await call_off_loop(heavy, delivery.put_back, offloaded) if offloaded else delivery.raw
    except Exception as error:  # noqa: BLE001 - as in settle
        log_failure(logger, FAILED, error=error)
        return await _alimit(delivery, error, logger=logger)


async def _alimit(delivery: Delivery[Raw], failed: Exception, *, logger: logging.Logger) -> Raw:
    """Do what ``_limit`` does, without blocking the event loop."""
    try:
        batches = await call_off_loop(delivery.is_heavy, delivery.look_again)
        for offloader, arguments in _telling(batches, failed):
            await offloader.alast_resort((), **arguments)
        cut = [
            (arrival, outcome)
            for batch in batches
            for arrival, arguments in zip(
                batch.arrivals, await call_off_loop(batch.is_heavy, batch.last_resorts), strict=True
            )
            if (outcome := await batch.offloader.alast_resort(**arguments)) is not None
        ]
        heavy = any(batch.is_heavy for batch in batches)
        return await call_off_loop(heavy, delivery.put_back, cut) if cut else delivery.raw
    except Exception as error:  # noqa: BLE001 - as in settle
        log_failure(logger, UNLIMITED, error=error)
        return delivery.raw


def _telling(batches: Sequence[Batch], failed: Exception) -> Iterator[tuple[Offloader, dict[str, Any]]]:
    """Yield the arguments of a last resort without content, which only counts what ``failed`` and tells the host.

    They name the tool if there was only one result.
    """
    named = [(batch, arrival.tool_name) for batch in batches for arrival in batch.arrivals]
    for batch, name in named[:1]:
        yield (
            batch.offloader,
            {
                "tool_name": name if len(named) == 1 else "",
                "scope": batch.last_scope,
                "identity": batch.identity,
                "retrieval_tool": None,  # so that a failure of the retrieval tool's result counts too
                "error": failed,
            },
        )


async def call_off_loop(heavy: bool, function: Callable[..., Answer], *arguments: Any) -> Answer:  # noqa: FBT001, ANN401 - `heavy` reads like `if heavy`
    """Call ``function``; if it is ``heavy``, call it on a thread, if there is one, to keep the event loop free.

    The event loop's own threads are not used: the host may keep them busy.
    """
    if not heavy:
        return function(*arguments)
    with loading:
        from coatcheck.engine.execution import on_thread  # noqa: PLC0415 - loaded with the offloader

    return await on_thread(partial(function, *arguments))


async def without_iterators(result: Any) -> Any:  # noqa: ANN401 - any result
    """Return a result with lists in place of iterators, such as generators; the same object if it holds none.

    For frameworks that write an iterator as a list. Conversion would exhaust it, and a result that then stays would
    reach the model empty. Call it outside the guard: what an iterator raises is the tool's own error.
    """
    if isinstance(result, str) or not await call_off_loop(not is_light(result), holds_iterator, result):
        return result
    return with_lists(result)


def _step_of(calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the arguments for ``Offloader.offload_step`` for all results.

    Raises:
        InvalidRequest: a result has ``measured_tokens`` or ``confirm``, which a decision about a step would ignore.

    """
    if any(call["measured_tokens"] or call["confirm"] for call in calls):
        msg = "measured_tokens and confirm are about one result: leave them out, or decide without together=True"
        raise InvalidRequest(msg)
    names = [field.name for field in fields(ToolResult)]
    results = [ToolResult(**{name: call[name] for name in names}) for call in calls]
    return {"results": results, "policies": [call["policy"] for call in calls]}


def _offload(batch: Batch) -> Sequence[Outcome]:
    if not batch.arrivals:
        return []
    common, calls = batch.common_arguments(), batch.convert()
    if batch.together:
        return batch.offloader.offload_step(**_step_of(calls), **common)
    return [batch.offloader.offload(**call, **common) for call in calls]


async def _aoffload(batch: Batch) -> Sequence[Outcome]:
    if not batch.arrivals:
        return []
    common, calls = batch.common_arguments(), await call_off_loop(batch.is_heavy, batch.convert)
    if batch.together:
        return await batch.offloader.aoffload_step(**_step_of(calls), **common)
    return [await batch.offloader.aoffload(**call, **common) for call in calls]


def remember_latest(known: OrderedDict[Key, Value], key: Key, *, value: Value, most: int) -> None:
    """Set an entry, and drop the one that was set longest ago if there are more than ``most``.

    For what an adapter keeps by agent, by scope or by key: a process may see any number of them.
    """
    known[key] = value
    known.move_to_end(key)
    if len(known) > most:
        known.popitem(last=False)


class WarnOnce:
    """Logs the first warning and ignores all others. For conditions that hold for a whole conversation."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._warned = False

    def __call__(self, message: str, *arguments: object) -> None:
        """Log a warning, unless one was logged before."""
        if not self._warned:
            self._warned = True
            write(self._log, logging.WARNING, message, *arguments)


class RetrievalName:
    """Finds the name under which the model has the retrieval tool. Warns once if the model lacks the tool."""

    def __init__(
        self,
        expected: str | None,
        *,
        warn: WarnOnce,
        is_ours: Callable[[Any], bool],
        how_to_add: str = "Add it",
    ) -> None:
        """Configure.

        Args:
            expected: the name that the user gave the tool; None if the user did not include it.
            warn: logs the warning.
            is_ours: returns whether a tool of the framework is a retrieval tool that can read what was offloaded.
            how_to_add: what the warning tells the user to do: give the agent the tool, or say that it has none.

        """
        self._expected = expected
        self._warn = warn
        self._is_ours = is_ours
        self._how_to_add = how_to_add

    def find(self, tools: Mapping[str, object]) -> str | None:
        """Return the name for placeholders: the expected one, or that of a renamed retrieval tool.

        If ``tools`` is empty, they are unknown, and the answer is the expected name. If the retrieval tool is not among
        them, the answer is None, after a warning.
        """
        if self._expected is not None and (not tools or self._is_ours(tools.get(self._expected))):
            return self._expected
        renamed = next((name for name, tool in tools.items() if self._is_ours(tool)), None)  # such as with a prefix
        if renamed is not None or self._expected is None:
            return renamed
        if self._expected in tools:
            self._warn(
                "The name %r is taken by another tool, so the agent cannot read offloaded content back, and results of"
                " that tool are treated like any other. Rename that tool, or share one Offloader",
                self._expected,
            )
        else:
            self._warn(
                "The agent has no retrieval tool %r, so placeholders do not name one. %s",
                self._expected,
                self._how_to_add,
            )
        return None

    def find_in(self, tools: Iterable[Any] | None) -> str | None:
        """Do what ``find`` does with tools that have a ``name``; ``tools`` is None if the agent's are not known.

        Of two tools with the same name, only the last counts.
        """
        if tools is None:
            return self.find({})
        return self.find({"": None, **{getattr(tool, "name", ""): tool for tool in tools}})


def is_called_by_code(caller: object) -> bool:
    """Return whether a call's ``caller`` is code in a provider's container. Its result never enters the context."""
    return _is_code(caller.get("type") if isinstance(caller, Mapping) else None)


def is_for_code_only(allowed_callers: object) -> bool:
    """Return whether a tool's ``allowed_callers`` allow code only."""
    if isinstance(allowed_callers, str) or not isinstance(allowed_callers, Collection):
        return False
    return bool(allowed_callers) and all(map(_is_code, allowed_callers))


def asks_to_keep(holder: object) -> bool:
    """Return whether ``holder``, such as a message's metadata, holds ``"coatcheck": "keep"``.

    It does not count next to the annotations of an MCP server's tool, which ``langchain-mcp-adapters`` puts into a
    tool's metadata: the server may add any key to these. They are recognized by a hint of the protocol that is always
    there.
    """
    return isinstance(holder, Mapping) and holder.get(MARK) == "keep" and "readOnlyHint" not in holder


def _is_code(name: object) -> bool:
    return isinstance(name, str) and (name in _CODE or name.startswith(_CODE_EXECUTION))
