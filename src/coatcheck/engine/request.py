"""One tool result with everything that the decision about it needs, as ``Offloader`` hands it to the engine.

Only values belong here: this module is loaded with ``offloader``, the engine itself with the first offloader.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from coatcheck.core.blocks import ToolResult
    from coatcheck.core.plan import Keep
    from coatcheck.core.policy import Policy
    from coatcheck.core.references import Scope
    from coatcheck.engine.events import About
    from coatcheck.storage.protocol import MaybeAwaitable

__all__ = ("OffloadRequest",)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffloadRequest:
    """One tool result on its way through the engine."""

    result: ToolResult
    scope: Scope
    about: About
    """What every event of this call has in common, its scope included."""
    policy: Policy
    retrieval_tool: str | None
    measured_tokens: int | Callable[[], MaybeAwaitable[int | None]] | None = None
    confirm: Callable[[int], MaybeAwaitable[bool]] | None = None
    decided_on_arrival: Keep | None = None
    """Why the result stays, if that was certain without measuring it."""
    answers: dict[str, object] = field(default_factory=dict)
    """The answer of each of the host's callables. If the counter fails, the decision is made again, but nobody is asked
    again: ``confirm`` may ask a person."""
