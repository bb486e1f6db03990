"""The sentences that a replay's screen and page share: what was counted, what saves most, and what to paste.

Only words belong here. The numbers come from ``report``; the screen and the page each format the sentences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coatcheck.core.plan import PREVIEW_SHARE
from coatcheck.core.preview.notation import count_of
from coatcheck.core.settings import DEFAULT_PREVIEW_TOKENS
from coatcheck.replay.conversation import SYSTEM, TOOLS

if TYPE_CHECKING:
    from coatcheck.replay.billing import Price
    from coatcheck.replay.report import ReplayReport

__all__ = (
    "DEFAULT_PREVIEW",
    "NOT_A_TOOL",
    "PREVIEW_BOUND",
    "counted",
    "details",
    "knobs",
    "result_in_words",
    "share_text",
)

NOT_A_TOOL = "(all else)"

PREVIEW_BOUND = f"at most {PREVIEW_SHARE:.0%} of the threshold"
DEFAULT_PREVIEW = f"the default preview of {DEFAULT_PREVIEW_TOKENS} tokens, {PREVIEW_BOUND}"

_PREFIX = {
    frozenset[str](): ("No system prompt and no other tools are counted", "their tokens"),
    frozenset({SYSTEM}): ("The recorded system message is counted", "only the tokens of the other tools"),
    frozenset({TOOLS}): ("The recorded definitions of tools are counted", "only the tokens of the system prompt"),
}
"""What is counted, and what to pass, by what all conversations hold of the prefix."""

_PREFIX_IN_PART = ("What was recorded of system prompt and tools is counted", "only the tokens of the rest")


def counted(report: ReplayReport) -> str:
    """Return how much was replayed, in words."""
    already = f", {report.already_offloaded:,} of them offloaded already" if report.already_offloaded else ""
    beginnings = f" ({count_of(report.beginnings, 'beginning')} of them left out)" if report.beginnings else ""
    unread = f"; {report.left_out:,} more could not be read"
    return (
        f"{count_of(len(report.conversations), 'conversation')}{beginnings}, {count_of(report.turns, 'turn')},"
        f" {count_of(report.total.results, 'tool result')}{already}{unread if report.left_out else ''}"
    )


def result_in_words(report: ReplayReport) -> str:
    """Return the recommendation, in a sentence that begins with the assumption that decides it and gives its bounds."""
    given = report.assumptions
    match given.retrievals:
        case None:
            reads = "reads back what it later used and the preview lacks"
        case 0:
            reads = "never reads a result back"
        case 1:
            reads = "reads each offloaded result back once"
        case times:
            reads = f"reads each offloaded result back {times} times"
    best = report.best
    if not report.total.results:
        return _nothing_to_offload(report)
    if best is None:
        return (
            f"If the model {reads}, offloading does not pay on these conversations at any of these thresholds"
            f"{_bounds(report, given.deciding)}{_with_a_cache(report)}."
        )
    plain, cached = (
        share_text(report.total.saved(best.billed, price)) + _bounds(report, price)
        for price in (given.plain, given.cached)
    )
    saved = f"{plain}, or {cached} with a prompt cache"
    if given.price is not None:
        before, after = given.weight(report.total.without), given.weight(best.billed)
        amounts = f"{before - after:,.2f} of {before:,.2f} in the unit of --price"
        # The amounts, and the share next to them, are at the deciding price.
        if given.decides_with_cache:
            saved = f"{amounts} with a prompt cache, which is {cached}; without one, {plain}"
        else:
            saved = f"{amounts}, which is {saved}"
    preview = "" if report.chosen is report else f" with preview_tokens={report.chosen.assumptions.preview_tokens}"
    return f"If the model {reads}, max_result_tokens={best.threshold}{preview} saves most: {saved}."


def details(report: ReplayReport) -> str:
    """Return what the headline is based on, and how many conversations would cost more."""
    given, chosen = report.assumptions, report.chosen
    amount = chosen.total.at(report.shown)
    plain, cached = (chosen.dearer(report.shown, price) for price in (given.plain, given.cached))
    dearer = cached if given.decides_with_cache else plain
    pays = report.best is not None
    said = (
        f"Above {report.shown:,} tokens, {count_of(amount.offloaded, 'result')} would be offloaded, with"
        f" {count_of(amount.read_back, 'read-back')}. Conversations that would cost at least 2% more: {plain:,} of"
        f" {len(report.conversations):,}, or {cached:,} with a prompt cache."
    )
    if pays and 2 * dearer > len(report.conversations):
        said += " Most cost more: a few large results pay for all."
    if pays and report.shown == min(given.thresholds) < max(given.thresholds):
        said += " This is the lowest threshold that was tried: lower ones may save more."
    gained = share_text(report.gained)
    if pays and chosen is not report.cheapest and gained != share_text(0):
        other = report.cheapest.assumptions.preview_tokens
        said += f" With preview_tokens={other} it would be {report.gained:.2%} more: too little to change the default."
    return said if given.prefix_tokens else f"{_prefix_to_pass(report)}{said}"


def knobs(report: ReplayReport) -> str:
    """Return the recommended settings as a line to paste; ``""`` if offloading does not pay."""
    return ", ".join(f"{name}={value}" for name, value in report.settings.items())


def share_text(share: float) -> str:
    """Format a share in percent, such as ``12.3%``. A loss has a minus sign, and no decimals from 100% on."""
    return f"{share:.1%}" if share > -1 else f"{share:,.0%}"


def _nothing_to_offload(report: ReplayReport) -> str:
    """Say what the retrieval tool's definition costs if no tool returned anything."""
    before = report.total.without.tokens
    extra = report.total.at(report.shown).billed.tokens - before
    return (
        "No tool result was recorded, so there was nothing to offload. The definition of the retrieval tool alone would"
        f" have cost {report.assumptions.definition_tokens:,} tokens with each turn, {extra:,} in all, on top of"
        f" {before:,}."
    )


def _prefix_to_pass(report: ReplayReport) -> str:
    """Say what to pass as ``--prefix-tokens``, unless all of it was recorded."""
    recorded = {each.counted for each in report.conversations}
    if recorded == {frozenset({SYSTEM, TOOLS})}:
        return ""
    known, missing = _PREFIX[recorded.pop()] if len(recorded) == 1 else _PREFIX_IN_PART
    return f"{known}: pass {missing} as --prefix-tokens, since they change all of these shares. "


def _bounds(report: ReplayReport, price: Price) -> str:
    """Say how much the assumed read-backs can change at most. At the price that does not decide, give only numbers."""
    given = report.assumptions
    if given.retrievals is not None:
        return ""
    amount = report.chosen.total.at(report.shown)
    never, each = (share_text(report.total.saved(share, price)) for share in (amount.never_read, amount.each_read))
    if price != given.deciding:
        return f" ({never}, {each})"
    return f" ({never} if it reads nothing back, {each} if it reads each offloaded result back once)"


def _with_a_cache(report: ReplayReport) -> str:
    """Say which threshold pays with a prompt cache if none does at the deciding price."""
    given, total = report.assumptions, report.total
    least = total.least(given.cached)
    saved = total.saved(least.billed, given.cached)
    if saved <= 0:
        return ""
    return f"; with a prompt cache, max_result_tokens={least.threshold} saves {share_text(saved)}"
