"""What a scenario is made of: frozen values that say what tools return, how the offloader is set, and what must follow.

A scenario names no framework. It is data: to add one, add a value to one of the lists in ``scenarios``; behaviour
belongs in ``trial``, which runs it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from coatcheck.tokens import ByteCounter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from coatcheck.blocks import Block

__all__ = ("KNOBS", "SCOPE", "Becomes", "Between", "Call", "Fault", "Read", "Scenario")

SCOPE = "conversation-1"
"""The scope of every scenario's first conversation."""

KNOBS: Mapping[str, Any] = {"max_result_tokens": 600, "preview_tokens": 200, "token_counter": ByteCounter()}
"""How every offloader of a scenario is set, unless the scenario says otherwise. One counter for all frameworks: four
UTF-8 bytes a token, so that a text can be made of exactly as many tokens as a scenario needs."""

Becomes: TypeAlias = Literal["kept", "offloaded", "truncated"]
Between: TypeAlias = Literal["nothing", "restart", "deletion", "another scope"]
Fault: TypeAlias = Literal["none", "every save", "second save", "every load"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One tool call of the scripted model, and what the tool returns."""

    returns: tuple[Block, ...]
    """The content blocks. A harness turns each into its framework's own."""

    becomes: Becomes = "offloaded"
    """What happens to the result."""

    tool: str = "fetch"
    """The tool's name, hostile ones included."""

    call_id: str | None = None
    """The id that the model gives the call; None for a usual one."""

    has_id: bool = True
    """Whether the model gives the call an id at all."""

    is_error: bool = False
    """Whether the tool reports the result as an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One use of the retrieval tool by the scripted model."""

    arguments: Mapping[str, object] = field(default_factory=dict)
    """What the model passes beside the reference."""

    of: int = 0
    """Which of the references that the model was shown, counted from 0 over all results."""

    reference: str | None = None
    """Passed instead, literally. ``{}`` in it stands for the reference that the model was shown."""

    sees: tuple[str, ...] = ()
    """What the answer must contain."""

    hides: tuple[str, ...] = ()
    """What the answer must not contain."""

    to_the_end: bool = False
    """Go on with the literal next call of each answer; the pages together must be the stored text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One promise, as data."""

    name: str
    """What it shows, in words that make a test id."""

    promise: str
    """What must hold, in one sentence."""

    steps: tuple[tuple[Call, ...], ...] = ()
    """What the model calls, step by step; the calls of one step are parallel."""

    knobs: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of ``Offloader`` beside and before ``KNOBS``."""

    sees: tuple[str, ...] = ()
    """What the model must find in the results."""

    hides: tuple[str, ...] = ()
    """What must not reach the model in the results."""

    final_tool: str | None = None
    """The tool whose result is the answer to the user: never offloaded, and never sent to the model."""

    cancelled_tool: str | None = None
    """The tool whose calls the host cancels, with the words that stand in what it returns. Framework and host made the
    message, and no tool, so the core is not asked about it."""

    interrupting_tool: str | None = None
    """The tool that stops the agent once before it returns, until the host lets the agent go on."""

    holds: tuple[bytes, ...] | None = None
    """Every content that the storage holds afterwards, beside indexes; None where the references say enough."""

    fault: Fault = "none"
    """What the storage fails at."""

    between: Between = "nothing"
    """What happens before the reads. Anything but nothing makes them a second conversation."""

    reads: tuple[Read, ...] = ()
    """What the model reads back, one after another."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """Return every call, in order."""
        return tuple(call for step in self.steps for call in step)

    @property
    def answer(self) -> Call | None:
        """Return the call whose result is the answer to the user, if there is one."""
        return next((call for call in self.calls if call.tool == self.final_tool), None)

    @property
    def for_model(self) -> tuple[Call, ...]:
        """Return the calls whose results go to the model: all others."""
        return tuple(call for call in self.calls if call.tool != self.final_tool)

    @property
    def for_core(self) -> tuple[Call, ...]:
        """Return the calls whose results the core decides about: those of them that a tool returned."""
        return tuple(call for call in self.for_model if call.tool != self.cancelled_tool)
