"""What scenarios are made of: frozen values for what tools return, the offloader's settings, and what must follow.

A scenario names no framework. It is data: to add one, add a value to one of the lists in ``scenarios``. Behaviour
belongs in ``trial``, which runs it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from coatcheck.core.blocks import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck.core.notice import RETRIEVAL_TOOL
from coatcheck.core.tokens import ByteCounter
from coatcheck.testing.samples import numbered_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = (
    "BIG",
    "CAPABILITIES",
    "IDENTITY",
    "KNOBS",
    "MIDDLE",
    "PARTS",
    "SCOPE",
    "SCOPE_NAMES",
    "SMALL",
    "Becomes",
    "Between",
    "Call",
    "Capability",
    "Fault",
    "Read",
    "Scenario",
    "ScopeFrom",
)

SCOPE = "conversation-1"
"""The scope of every scenario's first conversation."""

PARTS = ("tenant-7", "conversation-1")
"""The scope of a scenario whose scope has several parts."""

IDENTITY = "thread-1"
"""The framework's own identity of the first conversation, if a scenario gives it one."""

SCOPE_NAMES = ("scope", "identity", "conversation_id", "session_id", "thread_id", "user_id")
"""Argument names with which a model may try to pass a scope or an identity."""

KNOBS: Mapping[str, Any] = {"max_result_tokens": 600, "preview_tokens": 200, "token_counter": ByteCounter()}
"""The settings of every offloader of a scenario, unless the scenario says otherwise. All frameworks use one counter,
with four UTF-8 bytes per token, so that a scenario can make text of exactly as many tokens as it needs."""

SMALL = TextBlock("small")
"""A result that stays."""

BIG = TextBlock(numbered_lines(400))
"""A result that is offloaded."""

MIDDLE = "line 200 of 400"
"""A part of ``BIG`` that no preview shows."""

Becomes: TypeAlias = Literal["kept", "offloaded", "truncated"]
Between: TypeAlias = Literal["nothing", "restart", "deletion", "another scope"]
Fault: TypeAlias = Literal[
    "none", "every save", "second save", "every load", "every offload", "every offload and save", "every retrieve"
]
"""What fails: the storage, or the offloader itself, which raises an exception that no real offloader raises."""

ScopeFrom: TypeAlias = Literal["argument", "tuple", "identity", "both", "ambient", "nowhere"]
"""What chooses the scope: an argument of the adapter, which may be a tuple, the framework's own identity, both,
``with coatcheck.scope(...):`` around the run, or nothing."""

Capability: TypeAlias = Literal[
    "sync",
    "async",
    "several blocks",
    "JSON values",
    "images",
    "audio",
    "video",
    "documents",
    "document names",
    "documents without names",
    "unknown blocks",
    "errors",
    "marked answers",
    "any tool names",
    "missing call ids",
    "repeated call ids",
    "missing identities",
    "shared adapters",
    "whole steps",
    "final answers",
    "cancelled calls",
    "interrupts",
    "results for code",
]
"""What a framework may lack. A scenario that needs it does not count for that framework."""

CAPABILITIES: frozenset[str] = frozenset(get_args(Capability))
"""All values of ``Capability``."""

_USUAL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_MEDIA: Mapping[str, Capability] = {"image": "images", "audio": "audio", "video": "video"}


def _needed_by(block: Block) -> Iterator[Capability]:
    match block:
        case JsonBlock():
            yield "JSON values"
        case OpaqueBlock():
            yield "unknown blocks"
        case MediaBlock():
            media = _MEDIA.get(block.media_type.partition("/")[0], "documents")
            yield media
            if media == "documents":
                yield "documents without names" if block.name is None else "document names"
        case TextBlock():
            pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call of the scripted model, and what the tool returns."""

    returns: tuple[Block, ...]
    """The content blocks. A harness turns each into its framework's own form."""

    becomes: Becomes = "offloaded"
    """What happens to the result."""

    tool: str = "fetch"
    """The tool's name. It may be hostile."""

    call_id: str | None = None
    """The id that the model gives the call. None: an ordinary id."""

    has_id: bool = True
    """Whether the model gives the call an id at all."""

    is_error: bool = False
    """Whether the tool reports the result as an error."""

    @property
    def needs(self) -> frozenset[Capability]:
        """What a framework must have to make such a call."""
        return frozenset(self._needs())

    def _needs(self) -> Iterator[Capability]:
        if len(self.returns) > 1:
            yield "several blocks"
        if self.is_error:
            yield "errors"
        if not _USUAL_NAME.fullmatch(self.tool):
            yield "any tool names"
        if self.call_id == "" or not self.has_id:
            yield "missing call ids"
        for block in self.returns:
            yield from _needed_by(block)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One use of the retrieval tool by the scripted model."""

    arguments: Mapping[str, object] = field(default_factory=dict)
    """What the model passes in addition to the reference."""

    undefined: Mapping[str, object] = field(default_factory=dict)
    """Further arguments for which the tool has no parameters. Frameworks ignore or refuse them, each in its own words,
    so the answer is not compared with the core's."""

    of: int = 0
    """The index of the reference to read, among those that the model was shown in all results, then a neighbour's."""

    reference: str | None = None
    """Passed literally instead. ``{}`` in it is replaced by the reference that the model was shown."""

    sees: tuple[str, ...] = ()
    """What the answer must contain."""

    hides: tuple[str, ...] = ()
    """What the answer must not contain."""

    to_the_end: bool = False
    """Whether to make the next call that each answer spells out; the pages together must be the stored text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One promise, as data."""

    name: str
    """What it shows. Used as the test id."""

    promise: str
    """What must hold, in one sentence."""

    steps: tuple[tuple[Call, ...], ...] = ()
    """What the model calls, step by step; the calls of one step are parallel."""

    knobs: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of ``Offloader`` in addition to ``KNOBS``, over which they take precedence."""

    sees: tuple[str, ...] = ()
    """What the model must find in the results."""

    hides: tuple[str, ...] = ()
    """What must not reach the model in the results."""

    final_tool: str | None = None
    """The tool that returns the answer to the user. The answer is never offloaded, and never sent to the model."""

    cancelled_tool: str | None = None
    """The tool that the host cancels. What it would return is the host's message instead. That message comes from the
    framework and the host, not from a tool, so the core is not asked about it."""

    interrupting_tool: str | None = None
    """The tool that stops the agent once before it returns, until the host resumes it."""

    kept_tool: str | None = None
    """The tool whose results the host asks to keep whole, in the framework's way: ``"coatcheck": "keep"``."""

    code_tool: str | None = None
    """The tool that only code calls, in the provider's container: its results never enter the model's context."""

    scope_from: ScopeFrom = "argument"
    """What chooses the scope."""

    has_neighbour: bool = False
    """Whether the same conversation runs in another scope, through the same adapter object, before the first one reads.
    Both are checked, and each model knows the other's references."""

    watches_tools: bool = False
    """Whether to compare the user's own tool objects before and after."""

    watches_threads: bool = False
    """Whether to check which threads the storage is called on."""

    holds: tuple[bytes, ...] | None = None
    """All content that the storage holds afterwards, without line indexes. None: checking the references is enough."""

    fault: Fault = "none"
    """What fails, in the storage or in the offloader."""

    between: Between = "nothing"
    """What happens before the reads. Anything but ``"nothing"`` makes them a second conversation."""

    reads: tuple[Read, ...] = ()
    """What the model reads back, one after another."""

    marks_failures: bool = False
    """Whether an answer that says what went wrong must be marked as an error, and no other answer may be."""

    @property
    def needs(self) -> frozenset[Capability]:
        """What a framework must have to run the scenario."""
        return frozenset(self._needs())

    @property
    def is_essential(self) -> bool:
        """Whether every framework must run it: about scopes, guards, bounds or reading back, and without ``needs``."""
        guards = self.fault != "none" or self.claims_our_name or self.watches_tools or self.watches_threads
        decides = guards or bool(self.reads) or self.scope_from != "argument" or "max_inline_tokens" in self.knobs
        return decides and not self.needs

    @property
    def fails_offloading(self) -> bool:
        """Whether the offloader itself fails at every result."""
        return self.fault in {"every offload", "every offload and save"}

    @property
    def claims_our_name(self) -> bool:
        """Whether a user's tool has the retrieval tool's name."""
        return any(call.tool == RETRIEVAL_TOOL for call in self.calls)

    def _needs(self) -> Iterator[Capability]:
        for call in self.calls:
            yield from call.needs
        ids = [call.call_id for call in self.calls if call.call_id is not None]
        if len(set(ids)) < len(ids):
            yield "repeated call ids"
        if self.scope_from == "nowhere":
            yield "missing identities"
        if self.has_neighbour:
            yield "shared adapters"
        if self.marks_failures:
            yield "marked answers"
        if self.knobs.get("max_step_tokens") is not None:
            yield "whole steps"
        needed: Mapping[Capability, str | None] = {
            "final answers": self.final_tool,
            "cancelled calls": self.cancelled_tool,
            "interrupts": self.interrupting_tool,
            "results for code": self.code_tool,
        }
        yield from (capability for capability, tool in needed.items() if tool is not None)

    @property
    def calls(self) -> tuple[Call, ...]:
        """Return every call, in order."""
        return tuple(call for step in self.steps for call in step)

    @property
    def answer(self) -> Call | None:
        """Return the call that answers the user, if there is one."""
        return next((call for call in self.calls if call.tool == self.final_tool), None)

    @property
    def for_model(self) -> tuple[Call, ...]:
        """Return the calls with results for the model: all but those of ``final_tool``."""
        return tuple(call for call in self.calls if call.tool != self.final_tool)

    @property
    def for_core(self) -> tuple[Call, ...]:
        """Return the calls with results that the core decides about: not those cancelled or made by code."""
        return tuple(call for call in self.for_model if call.tool not in {self.cancelled_tool, self.code_tool})
