"""What a conversation costs as it is billed: every turn sends everything before it once more.

Pure arithmetic on tokens, and the only place that does it: ``coatcheck replay`` and ``benchmarks.quality.thresholds``
both call it. The caller measures the tokens of each part, and what offloading makes of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = (
    "CACHED",
    "CALL_TOKENS",
    "DEFINITION",
    "OTHER",
    "PLAIN",
    "Bill",
    "BilledDefinition",
    "BilledPart",
    "BilledReadBack",
    "BilledResult",
    "BilledTurn",
    "BilledWords",
    "Price",
    "Share",
    "bill",
)

CALL_TOKENS = 60
"""A retrieval call with its reference and a pattern, as a model writes it: the reference alone takes about 30."""

OTHER = ""
"""The name under which everything that belongs to no tool is billed. No tool has this name."""

DEFINITION = "(definition)"
"""The name under which the definition of the retrieval tool is billed. APIs allow no such tool name."""


@dataclass(frozen=True, slots=True)
class BilledWords:
    """What the model was told."""

    tokens: int


@dataclass(frozen=True, slots=True)
class BilledDefinition:
    """The definition of the retrieval tool, which every later turn sends.

    Tools are sent before the messages, so where one is added, a prompt cache has to write the whole conversation again.
    """

    tokens: int


@dataclass(frozen=True, slots=True)
class BilledTurn:
    """One call of the model: billed for everything before it. What it wrote is sent from the next call on."""

    tokens: int


@dataclass(frozen=True, slots=True)
class BilledResult:
    """A tool result, or the placeholder that replaces it."""

    tool: str
    tokens: int


@dataclass(frozen=True, slots=True)
class BilledReadBack:
    """A call of the retrieval tool: a turn of its own, whose call and answer stay in the conversation.

    It is billed to the tool whose result it reads, whole, because without offloading it would not exist.
    """

    tool: str
    tokens: int
    """Of the answer."""


BilledPart: TypeAlias = BilledWords | BilledDefinition | BilledTurn | BilledResult | BilledReadBack


@dataclass(frozen=True, slots=True)
class Share:
    """Input tokens that were billed."""

    tokens: int = 0
    """All of them."""

    new_tokens: int = 0
    """Those that a prompt cache does not have yet, if it never forgets anything."""

    def __add__(self, other: Share) -> Share:
        return Share(self.tokens + other.tokens, self.new_tokens + other.new_tokens)


@dataclass(frozen=True, slots=True)
class Price:
    """What a token costs: in multiples of the price of an input token, or in money."""

    new: float
    """One that the prompt cache does not have."""

    cached: float
    """One that it has."""

    def of(self, share: Share) -> float:
        """Return what a share costs; without a cache, it does not matter how much of it is new."""
        return share.tokens * self.cached + share.new_tokens * (self.new - self.cached)


PLAIN = Price(new=1.0, cached=1.0)
"""Without a prompt cache."""

CACHED = Price(new=1.25, cached=0.1)
"""With one, at Anthropic's rates: a write costs a quarter more, a hit a tenth."""


@dataclass(frozen=True, slots=True)
class Bill:
    """What one conversation was billed."""

    shares: dict[str, Share]
    """By tool. ``DEFINITION`` stands for the definition, ``OTHER`` for what system, user and model said."""

    @property
    def total(self) -> Share:
        """Everything."""
        return sum(self.shares.values(), Share())


def bill(parts: Iterable[BilledPart]) -> Bill:
    """Return what a conversation is billed, from its parts in order.

    A result is billed to its tool in each turn that sends it. Results that no turn follows are sent to nobody and cost
    nothing.
    """
    sent, unsent = Counter[str](), Counter[str]()
    shares: dict[str, Share] = {}

    def charge(owner: str, share: Share) -> None:
        shares[owner] = shares.get(owner, Share()) + share

    for part in parts:
        match part:
            case BilledWords():
                unsent[OTHER] += part.tokens
            case BilledDefinition():
                unsent += sent
                unsent[DEFINITION] += part.tokens
                sent.clear()
            case BilledResult():
                unsent[part.tool] += part.tokens
            case BilledReadBack():
                charge(part.tool, Share(sent.total() + unsent.total(), unsent.total()))
                sent += unsent
                unsent = Counter({part.tool: CALL_TOKENS + part.tokens})
            case BilledTurn():
                for owner in sent | unsent:
                    charge(owner, Share(sent[owner] + unsent[owner], unsent[owner]))
                sent += unsent
                unsent = Counter({OTHER: part.tokens})
    return Bill(shares)
