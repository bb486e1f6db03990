"""What becomes of a tool result: a frozen value for each way an offload can end.

What is read back later is in ``retrieved``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from coatcheck.core.blocks import Block
    from coatcheck.core.errors import CoatcheckError
    from coatcheck.core.facts import Estimate, Reference
    from coatcheck.core.plan import KeepReason

__all__ = ("Kept", "Offloaded", "Outcome", "Truncated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The result stays in the conversation as it is."""

    blocks: tuple[Block, ...]
    """The very same objects that came in, in the same order."""

    reason: KeepReason
    """Why it stays."""

    @property
    def references(self) -> tuple[Reference, ...]:
        """Empty: nothing to refer to."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Offloaded:
    """The result was stored whole and left the conversation."""

    blocks: tuple[Block, ...]
    """What goes into the conversation: the notice with the previews, marks for media, unknown blocks as they came."""

    references: tuple[Reference, ...]
    """One for each stored content, in order. The last is that of the ``index``, if there is one."""

    tokens: Estimate
    """Tokens that the result would have cost."""

    index: Reference | None = None
    """The stored list of all references, if there are more than the notice shows."""

    @property
    def mark(self) -> dict[str, Any]:
        """What the message keeps for the host: all references, or that of the index with how many blocks it lists."""
        if self.index is None:
            return {"references": [reference.id for reference in self.references]}
        size = sum(reference.size for reference in self.references[:-1])
        return {"references": [self.index.id], "blocks": len(self.references) - 1, "bytes": size}


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    """The storage failed and the result was above ``max_inline_tokens``: it was cut, and the notice says so."""

    blocks: tuple[Block, ...]
    """What goes into the conversation."""

    error: CoatcheckError
    """Why it could not be stored."""

    @property
    def references(self) -> tuple[Reference, ...]:
        """Empty: nothing was stored that the conversation could refer to."""
        return ()

    @property
    def mark(self) -> dict[str, Any]:
        """What the message keeps for the host: that it has no references."""
        return {"references": []}


Outcome: TypeAlias = Kept | Offloaded | Truncated
"""What became of a tool result."""
