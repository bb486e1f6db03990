"""What a conversation costs as it is billed: every turn sends everything before it again.

Pure arithmetic on tokens, and the only place that does it: ``coatcheck replay`` and ``benchmarks.quality.thresholds``
both call it. The caller counts the tokens of each part, with and without offloading.
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
"""Tokens of a retrieval call with a reference and a pattern, as a model writes it: a reference alone takes about 30."""

OTHER = ""
"""The name that everything without a tool is billed under. No tool has this name."""

DEFINITION = "(definition)"
"""The name that the retrieval tool's definition is billed under. APIs allow no such tool name."""


@dataclass(frozen=True, slots=True)
class BilledWords:
    """What the system, user or host told the model."""

    tokens: int


@dataclass(frozen=True, slots=True)
class BilledDefinition:
    """The definition of the retrieval tool, which every later turn sends.

    Tools are sent before the messages, so after adding one, a prompt cache has to write the whole conversation again.
    """

    tokens: int


@dataclass(frozen=True, slots=True)
class BilledTurn:
    """One call of the model, billed for everything before it. What it wrote is sent from the next call on."""

    tokens: int


@dataclass(frozen=True, slots=True)
class BilledResult:
    """A tool result, or the placeholder that replaces it."""

    tool: str
    tokens: int


@dataclass(frozen=True, slots=True)
class BilledReadBack:
    """A call of the retrieval tool: a separate turn, whose call and answer stay in the conversation.

    All of it is billed to the tool whose result it reads, because without offloading it would not exist.
    """

    tool: str
    tokens: int
    """Tokens of the answer."""


BilledPart: TypeAlias = BilledWords | BilledDefinition | BilledTurn | BilledResult | BilledReadBack


@dataclass(frozen=True, slots=True)
class Share:
    """Input tokens that were billed."""

    tokens: int = 0
    """All of them, cached or new."""

    new_tokens: int = 0
    """Those that a prompt cache does not have yet, if it never evicts anything."""

    def __add__(self, other: Share) -> Share:
        return Share(self.tokens + other.tokens, self.new_tokens + other.new_tokens)


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a token, in multiples of the price of an input token, or in money."""

    new: float
    """Of a token that the prompt cache does not have."""

    cached: float
    """Of a token that it has."""

    def of(self, share: Share) -> float:
        """Return what a share costs. Without a cache, it does not matter how much of it is new."""
        return share.tokens * self.cached + share.new_tokens * (self.new - self.cached)


PLAIN = Price(new=1.0, cached=1.0)
"""The price without a prompt cache."""

CACHED = Price(new=1.25, cached=0.1)
"""The price with a prompt cache, at Anthropic's rates: a write costs a quarter more, a hit a tenth."""


@dataclass(frozen=True, slots=True)
class Bill:
    """What one conversation was billed."""

    shares: dict[str, Share]
    """By tool. ``DEFINITION`` stands for the definition, ``OTHER`` for what system, user and model said."""

    @property
    def total(self) -> Share:
        """The sum of all shares."""
        return sum(self.shares.values(), Share())


def bill(parts: Iterable[BilledPart]) -> Bill:
    """Return the bill of a conversation, from its parts in order.

    A result is billed to its tool in each turn that sends it. Results after the last turn are never sent and cost
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
