"""The sentences that the screen and the page of a replay share: what was counted, and what saves most.

Only words belong here. The numbers come from ``report``; each of the two decides how the sentences look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coatcheck.replay.report import ReplayReport

__all__ = ("NOT_A_TOOL", "counted", "result_in_words", "share_text")

NOT_A_TOOL = "(everything else)"


def counted(report: ReplayReport) -> str:
    """Return how much was replayed, in words."""
    already = f", {report.already_offloaded:,} of them offloaded already" if report.already_offloaded else ""
    beginnings = f" ({_number(report.beginnings, 'beginning')} of them left out)" if report.beginnings else ""
    return (
        f"{_number(len(report.conversations), 'conversation')}{beginnings}, {_number(report.turns, 'turn')},"
        f" {_number(report.total.results, 'tool result')}{already}"
    )


def result_in_words(report: ReplayReport) -> str:
    """Return what to do, in one sentence that begins with the assumption that decides it."""
    given = report.assumptions
    reads = {0: "never reads a result back", 1: "reads each offloaded result back once"}
    if_so = f"If the model {reads.get(given.retrievals, f'reads each offloaded result back {given.retrievals} times')}"
    best = report.total.best(given)
    if best is None:
        return f"{if_so}, offloading does not pay on these conversations at any of these thresholds."
    saved = share_text(report.total.saved(best, given))
    if given.price is not None:
        before, after = given.weight(report.total.without), given.weight(best.billed)
        saved = f"{before - after:,.2f} of {before:,.2f} in the unit of --price ({saved})"
    return (
        f"{if_so}, max_result_tokens={best.threshold} saves most: {saved},"
        f" with {_number(best.offloaded, 'result')} offloaded."
    )


def share_text(share: float) -> str:
    """Return a share in percent, such as ``12.3%``; what is lost has a minus, and from 100% on no decimals."""
    return f"{share:.1%}" if share > -1 else f"{share:,.0%}"


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
