"""What a conversation costs as it is billed: every turn sends all that stands before it once more.

Pure arithmetic on tokens, and the one place that does it: ``coatcheck replay`` and ``benchmarks.quality`` both call
it. What the tokens of a part are, and what offloading makes of them, is measured by whoever calls.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = (
    "CALL_TOKENS",
    "DEFINITION",
    "OTHER",
    "Bill",
    "BilledPart",
    "BilledResult",
    "BilledTurn",
    "BilledWords",
    "Share",
    "bill",
)

CALL_TOKENS = 60
"""A retrieval call with its reference and a pattern, as a model writes it: the reference alone has some 30."""

OTHER = ""
"""The name under which everything is billed that belongs to no tool. No tool has it."""

DEFINITION = "(the retrieval tool's definition)"
"""The name under which the definition is billed that offloading adds to every turn. APIs allow no such tool name."""


@dataclass(frozen=True, slots=True)
class BilledWords:
    """What the model was told."""

    tokens: int


@dataclass(frozen=True, slots=True)
class BilledTurn:
    """One call of the model: billed for all that stands before; what it wrote is sent from the next one on."""

    tokens: int


@dataclass(frozen=True, slots=True)
class BilledResult:
    """A tool result, or the placeholder in its place."""

    tool: str
    tokens: int

    read_back_tokens: int | None = None
    """Tokens of one answer of the retrieval tool about it; None where it was not offloaded."""

    @property
    def left(self) -> bool:
        """Whether it was offloaded."""
        return self.read_back_tokens is not None


BilledPart: TypeAlias = BilledWords | BilledTurn | BilledResult


@dataclass(frozen=True, slots=True)
class Share:
    """Input tokens that were billed."""

    tokens: int = 0
    """All of them."""

    new_tokens: int = 0
    """Those among them that no turn before had sent: with a prompt cache that never misses, the others are read from
    it."""

    def __add__(self, other: Share) -> Share:
        return Share(self.tokens + other.tokens, self.new_tokens + other.new_tokens)

    def cost(self, price: float, cached_price: float | None = None) -> float:
        """Return what the tokens cost, at prices for a million; without a price for cached ones, all cost the same."""
        cached = price if cached_price is None else cached_price
        return (self.new_tokens * price + (self.tokens - self.new_tokens) * cached) / 1e6


@dataclass(frozen=True, slots=True)
class Bill:
    """What one conversation was billed."""

    shares: dict[str, Share]
    """By tool, and under ``OTHER`` what the system, the user and the model said."""

    @property
    def total(self) -> Share:
        """Everything."""
        return sum(self.shares.values(), Share())


def bill(parts: Iterable[BilledPart], *, opening_tokens: int = 0, retrievals: int = 0) -> Bill:
    """Return what a conversation is billed.

    A result is billed to its tool in each turn that sends it. Before the turn that follows an offloaded result come
    ``retrievals`` turns more, one after the other; each writes a call of ``CALL_TOKENS``, gets an answer, and is billed
    to that tool whole, because without the offloading it would not be there. Its call and answer stay in the
    conversation, at the tool's expense. Results that no turn follows are sent to nobody and cost nothing.

    Args:
        parts: in the order of the conversation.
        opening_tokens: of the retrieval tool's definition, which every turn sends as well.
        retrievals: turns that read back, for each offloaded result.

    """
    sent, unsent = Counter[str](), Counter({DEFINITION: opening_tokens})
    shares: dict[str, Share] = {}
    to_read: list[BilledResult] = []

    def charge(owner: str, share: Share) -> None:
        shares[owner] = shares.get(owner, Share()) + share

    for part in parts:
        match part:
            case BilledWords():
                unsent[OTHER] += part.tokens
            case BilledResult():
                unsent[part.tool] += part.tokens
                to_read += [part] * (retrievals if part.left else 0)
            case BilledTurn():
                for result in to_read:
                    charge(result.tool, Share(sent.total() + unsent.total(), unsent.total()))
                    sent += unsent
                    unsent = Counter({result.tool: CALL_TOKENS + (result.read_back_tokens or 0)})
                to_read = []
                for owner in sent | unsent:
                    charge(owner, Share(sent[owner] + unsent[owner], unsent[owner]))
                sent += unsent
                unsent = Counter({OTHER: part.tokens})
    return Bill(shares)
