"""The results of a replay: frozen values that add up, the assumptions, and all of it as JSON.

Only facts belong here, named so that a program can use them: ``coatcheck replay --json`` prints them. ``measure``
measures them; ``cli/replay_screen.py`` and ``page`` present them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from coatcheck.core.plan import PREVIEW_SHARE
from coatcheck.core.settings import DEFAULT_PREVIEW_TOKENS
from coatcheck.replay.billing import CACHED, CALL_TOKENS, PLAIN, Price, Share

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ("DEARER", "Amount", "Assumptions", "ConversationReport", "Leaving", "ReplayReport", "Row")


_PRICED = 1_000_000
"""The number of tokens that a price is given for."""

_PREVIEWS = (250, 500, 1_000, 2_000)
"""Values of ``preview_tokens`` to try at the best threshold: from half the default to four times the default."""

_WORTH = 0.005
"""The share of the cost that another preview must save beyond the default one to be recommended."""

DEARER = 1.02
"""A conversation counts as dearer from this multiple of its cost without offloading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What the user gave, and what is assumed because a recording cannot tell."""

    thresholds: tuple[int, ...]
    """Values of ``max_result_tokens`` to try, ascending."""

    preview_tokens: int | None = None
    """``preview_tokens``. None: the library's default."""

    retrievals: int | None = None
    """Retrieval calls for each offloaded result, each a separate turn. None: one if it was needed."""

    retrieval_tokens: int | None = None
    """The most tokens of one answer. None: the threshold, as in an ``Offloader``."""

    definition_tokens: int
    """Tokens of the retrieval tool's definition, sent with every turn."""

    prefix_tokens: int = 0
    """Tokens that every turn sends and that were not recorded."""

    price: float | None = None
    """Price of a million input tokens. None: none was given."""

    cached_price: float | None = None
    """Price of a million input tokens that the prompt cache has. None: a tenth of ``price``."""

    written_price: float | None = None
    """Price of a million input tokens that are written to the prompt cache. None: a quarter more than ``price``."""

    @property
    def plain(self) -> Price:
        """What tokens cost without a prompt cache."""
        unit = self._unit
        return Price(new=PLAIN.new * unit, cached=PLAIN.cached * unit)

    @property
    def cached(self) -> Price:
        """What tokens cost with a prompt cache."""
        return Price(
            new=CACHED.new * self._unit if self.written_price is None else self.written_price / _PRICED,
            cached=CACHED.cached * self._unit if self.cached_price is None else self.cached_price / _PRICED,
        )

    @property
    def _unit(self) -> float:
        return 1.0 if self.price is None else self.price / _PRICED

    @property
    def deciding(self) -> Price:
        """The price that decides the best threshold: that with a cache if the user gave a price of the cache."""
        return self.plain if self.cached_price is None and self.written_price is None else self.cached

    def answer_at(self, threshold: int) -> int:
        """Return the most tokens of an answer if results above ``threshold`` are offloaded."""
        return threshold if self.retrieval_tokens is None else self.retrieval_tokens

    def preview_at(self, threshold: int) -> int:
        """Return the tokens that a preview may have above ``threshold``."""
        most = DEFAULT_PREVIEW_TOKENS if self.preview_tokens is None else self.preview_tokens
        return min(most, int(threshold * PREVIEW_SHARE))

    def other_previews(self, threshold: int) -> tuple[Assumptions, ...]:
        """Return these assumptions at ``threshold`` alone, once for each other preview size worth trying.

        There are none if the user chose a preview size. There are none either if the user gave a number of read-backs:
        it does not depend on the preview, so the smallest would always cost least.
        """
        if self.preview_tokens is not None or self.retrievals is not None:
            return ()
        sizes = (size for size in _PREVIEWS if size <= threshold * PREVIEW_SHARE and size != self.preview_at(threshold))
        return tuple(replace(self, thresholds=(threshold,), preview_tokens=size) for size in sizes)

    @property
    def decides_with_cache(self) -> bool:
        """Whether the deciding price is that with a prompt cache."""
        return self.deciding == self.cached

    def weight(self, share: Share) -> float:
        """Return what a share costs at the deciding price."""
        return self.deciding.of(share)

    def as_json(self) -> dict[str, Any]:
        """Return the assumptions as a JSON value."""
        return {
            "preview_tokens": self.preview_tokens,
            "retrievals": "by need" if self.retrievals is None else self.retrievals,
            "retrieval_tokens": self.retrieval_tokens,
            "definition_tokens": self.definition_tokens,
            "prefix_tokens": self.prefix_tokens,
            "price": self.price,
            "cached_price": self.cached_price,
            "written_price": self.written_price,
            "not_known": self.sentences(),
        }

    def sentences(self) -> tuple[str, ...]:
        """Return what no recording can tell, and what is assumed instead."""
        most = "the threshold" if self.retrieval_tokens is None else f"{self.retrieval_tokens:,} tokens"
        answer = (
            f"in a turn of its own, with a call of {CALL_TOKENS} tokens and an answer of at most {most}; both stay in"
            " the conversation"
        )
        match self.retrievals:
            case None:
                calls = (
                    "assumed: one search for each offloaded result of which a later turn wrote something that the"
                    f" placeholder does not show, {answer}"
                )
            case 0:
                calls = "assumed: none, so this is the most that can be saved"
            case times:
                calls = f"assumed: {times} for each offloaded result, each {answer}"
        hit, write = (price / self._unit if self._unit else 0.0 for price in (self.cached.cached, self.cached.new))
        return (
            f"Which retrieval calls the model would have made; {calls}.",
            (
                "What a prompt cache would have done; assumed: it has everything that an earlier turn sent. With a"
                f" cache, a hit costs {hit:g} times the price of an input token, a write {write:g} times."
            ),
            (
                "What was sent besides the messages, unless it was recorded; assumed:"
                f" {self.prefix_tokens:,} tokens of system prompt and other tools (--prefix-tokens). What a framework"
                " trimmed or summarized; assumed: every turn sends the whole recorded conversation. Whether what"
                " follows the last answer in a list of messages was sent; assumed: it was not."
            ),
            "What images, audio, video and documents cost; estimated by their type, 1,600 tokens each or more.",
            "How your model counts; counted with o200k_base. Only input tokens are billed here, no output.",
            (
                "With offloading, every turn also sends the definition of the retrieval tool:"
                f" {self.definition_tokens} tokens. Results that the recording shows as offloaded are left alone, and"
                " the definition was sent with them."
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """What was billed with offloading above one threshold."""

    threshold: int
    offloaded: int
    """Results that were offloaded."""

    read_back: int
    """Retrieval calls that were assumed."""

    billed: Share
    never_read: Share
    """Billed if the model read nothing back."""

    each_read: Share
    """Billed if it read each offloaded result back once, with answers as long as allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table: a tool, a conversation, or everything."""

    name: str
    results: int
    """The number of tool results."""

    without: Share
    """Billed without offloading."""

    amounts: tuple[Amount, ...]
    """One for each threshold, ascending."""

    def least(self, price: Price) -> Amount:
        """Return the cheapest amount, even if it costs more than without offloading."""
        return min(self.amounts, key=lambda amount: price.of(amount.billed))

    def best(self, assumptions: Assumptions) -> Amount | None:
        """Return the cheapest amount, or None if none costs less than without offloading."""
        least = self.least(assumptions.deciding)
        return least if assumptions.weight(least.billed) < assumptions.weight(self.without) else None

    def at(self, threshold: int) -> Amount:
        """Return the amount with offloading above ``threshold``, which must be one that was tried."""
        return next(amount for amount in self.amounts if amount.threshold == threshold)

    def saved(self, share: Share, price: Price) -> float:
        """Return the part of the cost that is saved if ``share`` is billed. Below 0 it is a loss."""
        before = price.of(self.without)
        return 1 - price.of(share) / before if before else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """One result that leaves the conversation at one threshold or more."""

    tool: str
    turn: int
    """The number of the turn that it follows, from 1."""

    tokens: int
    placeholder_tokens: dict[int, int]
    """By threshold, the tokens that stay in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationReport:
    """The report on one conversation."""

    row: Row
    source: str
    recorded_as: str
    counted: frozenset[str] = frozenset()
    """What was recorded of what every request sends before the conversation; see ``Conversation.counted``."""

    turns: int
    """The number of recorded calls of the model."""

    already_offloaded: int
    """The number of results that the recording shows as offloaded; they are left alone."""

    tools: tuple[Row, ...]
    """One for each tool that returned a result, one for the retrieval tool's definition, and one for everything else.
    They add up to ``row``."""

    leaving: tuple[Leaving, ...]
    sizes: tuple[int, ...]
    """Tokens of every tool result, in order."""

    def as_json(self, assumptions: Assumptions) -> dict[str, Any]:
        """Return the conversation as a JSON value."""
        return {
            **_facts(self.row, assumptions),
            "source": self.source,
            "recorded_as": self.recorded_as,
            "turns": self.turns,
            "already_offloaded": self.already_offloaded,
            "tools": [_facts(row, assumptions) for row in self.tools],
            "leaving": [asdict(one) for one in self.leaving],
        }


@dataclass(frozen=True, kw_only=True)
class ReplayReport:
    """The report on a whole replay."""

    assumptions: Assumptions
    conversations: tuple[ConversationReport, ...]

    beginnings: int = 0
    """Conversations left out because another one continues them."""

    left_out: int = 0
    """Files and conversations that could not be read or replayed."""

    previews: tuple[ReplayReport, ...] = ()
    """The same conversations, offloaded above the threshold that is ``shown``, with other preview sizes."""

    @cached_property
    def total(self) -> Row:
        """The sum of all conversations."""
        return _added("all", [each.row for each in self.conversations])

    @cached_property
    def tools(self) -> tuple[Row, ...]:
        """One row for each tool, the definition and everything else, most billed first. They add up to ``total``."""
        by_name: dict[str, list[Row]] = {}
        for each in self.conversations:
            for row in each.tools:
                by_name.setdefault(row.name, []).append(row)
        rows = [_added(name, rows) for name, rows in by_name.items()]
        return tuple(sorted(rows, key=lambda row: (-row.without.tokens, row.name)))

    @cached_property
    def by_savings(self) -> tuple[ConversationReport, ...]:
        """The conversations by what they save at the threshold that is ``shown``, the most first."""
        weight = self.assumptions.weight

        def added_by_offloading(each: ConversationReport) -> float:
            return weight(each.row.at(self.shown).billed) - weight(each.row.without)

        return tuple(sorted(self.conversations, key=added_by_offloading))

    @property
    def shown(self) -> int:
        """The threshold that details are shown for: the cheapest one, even if none saves anything."""
        return self.total.least(self.assumptions.deciding).threshold

    @property
    def by_preview(self) -> tuple[ReplayReport, ...]:
        """The reports for every preview size that was tried, including this one, the smallest size first."""
        shown = self.shown
        return tuple(sorted((self, *self.previews), key=lambda report: report.assumptions.preview_at(shown)))

    @cached_property
    def cheapest(self) -> ReplayReport:
        """The cheapest report of ``by_preview``."""
        weight, shown = self.assumptions.weight, self.shown
        return min((self, *self.previews), key=lambda report: weight(report.total.at(shown).billed))

    @property
    def gained(self) -> float:
        """The share of the cost that ``cheapest`` saves beyond this report."""
        price, shown = self.assumptions.deciding, self.shown
        saved, most = (each.total.saved(each.total.at(shown).billed, price) for each in (self, self.cheapest))
        return most - saved

    @property
    def chosen(self) -> ReplayReport:
        """The report of ``by_preview`` to recommend: ``cheapest``, unless this one costs about the same."""
        return self.cheapest if self.gained >= _WORTH else self

    @property
    def best(self) -> Amount | None:
        """The cheapest amount of the ``chosen`` report, or None if none costs less than without offloading."""
        return self.chosen.total.best(self.assumptions)

    @property
    def settings(self) -> dict[str, int]:
        """The recommended settings of an offloader, as replayed; none if offloading does not pay."""
        given, best = self.chosen.assumptions, self.best
        if best is None:
            return {}
        preview = {} if given.preview_tokens is None else {"preview_tokens": given.preview_at(best.threshold)}
        answer = {} if given.retrieval_tokens is None else {"max_retrieval_tokens": given.retrieval_tokens}
        return {"max_result_tokens": best.threshold, **preview, **answer}

    def dearer(self, threshold: int, price: Price) -> int:
        """Return how many conversations cost at least 2% more with offloading above ``threshold``."""
        rows = (each.row for each in self.conversations)
        return sum(
            price.of(row.at(threshold).billed) >= DEARER * price.of(row.without) for row in rows if row.without.tokens
        )

    @property
    def turns(self) -> int:
        """The number of calls of the model in all conversations."""
        return sum(each.turns for each in self.conversations)

    @property
    def already_offloaded(self) -> int:
        """The number of results that the recordings show as offloaded."""
        return sum(each.already_offloaded for each in self.conversations)

    def as_json(self) -> dict[str, Any]:
        """Return everything as a JSON value."""
        given, shown = self.assumptions, self.shown
        return {
            "assumptions": given.as_json(),
            "beginnings_left_out": self.beginnings,
            "unreadable_left_out": self.left_out,
            "turns": self.turns,
            "already_offloaded": self.already_offloaded,
            "total": _facts(self.total, given),
            "best_settings": self.settings,
            "dearer": [{"threshold": threshold, **_dearer(self, threshold)} for threshold in given.thresholds],
            "previews": [
                {
                    "preview_tokens": each.assumptions.preview_at(shown),
                    **_amount(each.total, each.total.at(shown), given),
                    "dearer": _dearer(each, shown),
                }
                for each in self.by_preview
            ],
            "tools": [_facts(row, given) for row in self.tools],
            "conversations": [each.as_json(given) for each in self.conversations],
        }


def _dearer(report: ReplayReport, threshold: int) -> dict[str, int]:
    given = report.assumptions
    return {"plain": report.dearer(threshold, given.plain), "cached": report.dearer(threshold, given.cached)}


def _facts(row: Row, assumptions: Assumptions) -> dict[str, Any]:
    best = row.best(assumptions)
    return {
        "name": row.name or None,  # null: everything that belongs to no tool
        "results": row.results,
        "without": _billed(row.without, assumptions),
        "thresholds": [_amount(row, amount, assumptions) for amount in row.amounts],
        "best_threshold": None if best is None else best.threshold,
    }


def _amount(row: Row, amount: Amount, assumptions: Assumptions) -> dict[str, Any]:
    return {
        "threshold": amount.threshold,
        "offloaded": amount.offloaded,
        "read_back": amount.read_back,
        **_billed(amount.billed, assumptions),
        "tokens_saved": row.without.tokens - amount.billed.tokens,
        "saved": _saved(row, amount.billed, assumptions),
        "saved_if_never_read": _saved(row, amount.never_read, assumptions),
        "saved_if_each_read": _saved(row, amount.each_read, assumptions),
    }


def _saved(row: Row, share: Share, assumptions: Assumptions) -> dict[str, float]:
    return {"plain": row.saved(share, assumptions.plain), "cached": row.saved(share, assumptions.cached)}


def _billed(share: Share, assumptions: Assumptions) -> dict[str, Any]:
    cost = (
        {}
        if assumptions.price is None
        else {"cost": assumptions.plain.of(share), "cached_cost": assumptions.cached.of(share)}
    )
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
                read_back=sum(amount.read_back for amount in same),
                billed=sum((amount.billed for amount in same), Share()),
                never_read=sum((amount.never_read for amount in same), Share()),
                each_read=sum((amount.each_read for amount in same), Share()),
            )
            for same in zip(*(row.amounts for row in listed), strict=True)
        ),
    )
