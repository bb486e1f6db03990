"""What a replay comes to: frozen values that add up, what was assumed, and all of it as JSON.

Only facts belong here, named so that a program can use them: ``coatcheck replay --json`` prints them. How they are
measured is in ``measure``, how they look in ``cli/replay_screen.py`` and ``page``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from coatcheck.replay.billing import CALL_TOKENS, Share

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("Amount", "Assumptions", "ConversationReport", "Leaving", "ReplayReport", "Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What the user gave, and what a recording cannot tell."""

    thresholds: tuple[int, ...]
    """``max_result_tokens``, each tried with all else by default; ascending."""

    retrievals: int
    """Retrieval calls for each offloaded result, each a turn of its own."""

    retrieval_tokens: int
    """Tokens of each answer; where the result has fewer, so many."""

    definition_tokens: int
    """Tokens of the retrieval tool's definition, sent with every turn."""

    price: float | None
    """Of a million input tokens; None where none was given."""

    cached_price: float | None
    """Of a million input tokens that an earlier turn has sent; None where all cost the same."""

    def weight(self, share: Share) -> float:
        """Return what a share costs; without a price, its tokens."""
        return share.tokens if self.price is None else share.cost(self.price, self.cached_price)

    def sentences(self) -> tuple[str, ...]:
        """Return what no recording can tell, with what is assumed instead."""
        if self.retrievals:
            calls = (
                f"assumed: {self.retrievals} for each offloaded result, each in a turn of its own, with a call of"
                f" {CALL_TOKENS} tokens and an answer of {self.retrieval_tokens:,} (never more than the result), which"
                " both stay in the conversation"
            )
        else:
            calls = "assumed: none, so this is the most that can be saved"
        if self.price is None:
            cache = "tokens are counted alike, cached or not; --price and --cached-price tell them apart"
        elif self.cached_price is None:
            cache = "assumed: none, every token costs the full price"
        else:
            cache = "assumed: whatever an earlier turn has sent is read from it, and writing to it costs nothing extra"
        return (
            f"Which retrieval calls the model would have made; {calls}.",
            f"What a prompt cache would have done; {cache}.",
            (
                "What was sent beside the messages, unless it was recorded, and what a framework trimmed or summarized;"
                " assumed: every turn sends the whole recorded conversation."
            ),
            "What images, audio, video and documents cost; estimated by their type, 1,600 tokens each or more.",
            "How your model counts; counted with o200k_base. Only input tokens are billed here, no output.",
            (
                "With offloading, every turn also sends the definition of the retrieval tool:"
                f" {self.definition_tokens} tokens. Results that the recording shows as offloaded are left alone."
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """What was billed with offloading above one threshold."""

    threshold: int
    offloaded: int
    """Results that left."""

    billed: Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table: a tool, a conversation, or everything."""

    name: str
    results: int
    """Tool results that came in."""

    without: Share
    """Billed without offloading."""

    amounts: tuple[Amount, ...]
    """One for each threshold, ascending."""

    def best(self, assumptions: Assumptions) -> Amount | None:
        """Return what costs least, or None where nothing costs less than without offloading."""
        least = min(self.amounts, key=lambda amount: assumptions.weight(amount.billed))
        return least if assumptions.weight(least.billed) < assumptions.weight(self.without) else None

    def at(self, threshold: int) -> Amount:
        """Return what was billed with offloading above ``threshold``, one of those that were tried."""
        return next(amount for amount in self.amounts if amount.threshold == threshold)

    def saved(self, amount: Amount, assumptions: Assumptions) -> float:
        """Return the share of the cost or, without a price, of the tokens that is saved; below 0 it is lost."""
        before = assumptions.weight(self.without)
        return 1 - assumptions.weight(amount.billed) / before if before else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """One result that leaves the conversation at one threshold or more."""

    tool: str
    turn: int
    """After which turn it came, counted from 1."""

    tokens: int
    placeholder_tokens: dict[int, int]
    """By threshold: what stays in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationReport:
    """One conversation."""

    row: Row
    source: str
    recorded_as: str
    turns: int
    """Calls of the model that were recorded."""

    already_offloaded: int
    """Results that the recording shows as offloaded; they are left alone."""

    tools: tuple[Row, ...]
    """One for each tool that gave a result, one for the retrieval tool's definition, and one for everything else; they
    add up to ``row``."""

    leaving: tuple[Leaving, ...]
    sizes: tuple[int, ...]
    """Tokens of every tool result, in order."""


@dataclass(frozen=True, kw_only=True)
class ReplayReport:
    """All of a replay."""

    assumptions: Assumptions
    conversations: tuple[ConversationReport, ...]

    beginnings: int = 0
    """Conversations left out because another one continues them."""

    @cached_property
    def total(self) -> Row:
        """Everything."""
        return _added("all", [each.row for each in self.conversations])

    @cached_property
    def tools(self) -> tuple[Row, ...]:
        """One row for each tool and one for everything else, the most billed first; they add up to ``total``."""
        by_name: dict[str, list[Row]] = {}
        for each in self.conversations:
            for row in each.tools:
                by_name.setdefault(row.name, []).append(row)
        rows = [_added(name, rows) for name, rows in by_name.items()]
        return tuple(sorted(rows, key=lambda row: (-row.without.tokens, row.name)))

    @cached_property
    def by_savings(self) -> tuple[ConversationReport, ...]:
        """The conversations, those first that save most at the threshold that is best for all."""
        weight = self.assumptions.weight

        def added_by_offloading(each: ConversationReport) -> float:
            return weight(each.row.at(self.shown).billed) - weight(each.row.without)

        return tuple(sorted(self.conversations, key=added_by_offloading))

    @property
    def shown(self) -> int:
        """The threshold that details are shown for: the one that costs least, also where none saves anything."""
        weight = self.assumptions.weight
        return min(self.total.amounts, key=lambda amount: weight(amount.billed)).threshold

    @property
    def turns(self) -> int:
        """Calls of the model in all conversations."""
        return sum(each.turns for each in self.conversations)

    @property
    def already_offloaded(self) -> int:
        """Results that the recordings show as offloaded."""
        return sum(each.already_offloaded for each in self.conversations)

    def as_json(self) -> dict[str, Any]:
        """Return everything as a value of JSON."""
        given = self.assumptions
        return {
            "assumptions": {
                "retrievals": given.retrievals,
                "retrieval_tokens": given.retrieval_tokens,
                "definition_tokens": given.definition_tokens,
                "price": given.price,
                "cached_price": given.cached_price,
                "not_known": given.sentences(),
            },
            "beginnings_left_out": self.beginnings,
            "turns": self.turns,
            "already_offloaded": self.already_offloaded,
            "total": _facts(self.total, given),
            "tools": [_facts(row, given) for row in self.tools],
            "conversations": [
                {
                    **_facts(each.row, given),
                    "source": each.source,
                    "recorded_as": each.recorded_as,
                    "turns": each.turns,
                    "already_offloaded": each.already_offloaded,
                    "tools": [_facts(row, given) for row in each.tools],
                    "leaving": [
                        {
                            "tool": one.tool,
                            "turn": one.turn,
                            "tokens": one.tokens,
                            "placeholder_tokens": one.placeholder_tokens,
                        }
                        for one in each.leaving
                    ],
                }
                for each in self.conversations
            ],
        }


def _facts(row: Row, assumptions: Assumptions) -> dict[str, Any]:
    best = row.best(assumptions)
    return {
        "name": row.name or None,  # null: everything that is no tool's
        "results": row.results,
        "without": _billed(row.without, assumptions),
        "thresholds": [
            {
                "threshold": amount.threshold,
                "offloaded": amount.offloaded,
                **_billed(amount.billed, assumptions),
                "tokens_saved": row.without.tokens - amount.billed.tokens,
            }
            for amount in row.amounts
        ],
        "best_threshold": None if best is None else best.threshold,
    }


def _billed(share: Share, assumptions: Assumptions) -> dict[str, Any]:
    cost = {} if assumptions.price is None else {"cost": assumptions.weight(share)}
    return {"tokens": share.tokens, "new_tokens": share.new_tokens, **cost}


def _added(name: str, rows: Iterable[Row]) -> Row:
    listed = list(rows)
    return Row(
        name=name,
        results=sum(row.results for row in listed),
        without=sum((row.without for row in listed), Share()),
        amounts=tuple(
            Amount(
                threshold=same[0].threshold,
                offloaded=sum(amount.offloaded for amount in same),
                billed=sum((amount.billed for amount in same), Share()),
            )
            for same in zip(*(row.amounts for row in listed), strict=True)
        ),
    )
