"""Shows a replay on a screen of 80 columns or more: what saves most, the tables, what a recording cannot tell.

This module only presents. Names come from recordings, so they go through ``one_line`` and are never read as markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from coatcheck.cli.printing import one_line
from coatcheck.core.settings import MAX_RESULT_TOKENS
from coatcheck.replay.billing import DEFINITION
from coatcheck.replay.wording import (
    DEFAULT_PREVIEW,
    NOT_A_TOOL,
    PREVIEW_BOUND,
    counted,
    details,
    knobs,
    result_in_words,
    share_text,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from coatcheck.replay.billing import Share
    from coatcheck.replay.report import Amount, Assumptions, ReplayReport, Row

__all__ = ("show_replay",)

_MAX_ROWS = 15
"""The most rows of tools and of conversations; ``--json`` and ``--html`` have them all."""

_COLUMNS = (
    "Cached: with a prompt cache. Dearer: conversations that cost at least 2% more. Saved: of the cost of input tokens;"
    " * recommended."
)
_COST = "Cost: in the unit of --price."

_DEFAULT = {"max_result_tokens": MAX_RESULT_TOKENS}

_LAST_ROWS = 5
"""How many of these rows are for the conversations that save least, or cost more."""

_LONG_NUMBER = 10_000
_MIN_NAME, _OTHER_COLUMNS = 18, 63
"""Characters. Names get what the columns of five thresholds do not need, and never less than the first number."""


def show_replay(console: Console, report: ReplayReport) -> None:
    """Print the report."""
    given = report.assumptions
    console.print(Text(counted(report), "bold"))
    if not report.total.results:  # tables of what the definition costs would look like a loss by offloading
        console.print(result_in_words(report))
        return
    console.print(_by_threshold(report))
    console.print(_COLUMNS + ("" if given.price is None else f" {_COST}"))
    if report.previews:
        console.print(f"Above {report.shown:,} tokens, by the tokens that a preview may have, {PREVIEW_BOUND}:")
        console.print(_by_preview(report))
    console.print(Text(result_in_words(report), "bold green" if report.best else "bold yellow"))
    console.print(Text(details(report)))
    if line := knobs(report):
        default = " (the default; in Strands and Haystack previews may differ)" if report.settings == _DEFAULT else ""
        console.print(Text(f"To paste, where the Offloader or the adapter is made: {line}{default}"), soft_wrap=True)
    console.print()
    at_price = " with a prompt cache" if given.decides_with_cache else ""
    previews = f" with {DEFAULT_PREVIEW}" if report.previews else ""
    console.print(
        f"Results that are offloaded above {report.shown:,}, and what each threshold saves{at_price}{previews}"
        " (* most), by tool:"
    )
    names = max(_MIN_NAME, console.width - _OTHER_COLUMNS)
    # The definition comes first: it is the one row that everybody has, and that only costs.
    tools = sorted(report.tools, key=lambda row: row.name != DEFINITION)
    console.print(_saved("Tool", tools, report, longest=names))
    console.print(
        f"{DEFINITION} is that of the retrieval tool, which every turn sends; {NOT_A_TOOL} is what no tool returned."
    )
    console.print("The same by conversation, from most to least saved:")
    conversations = [each.row for each in report.by_savings]
    console.print(_saved("Conversation", conversations, report, longest=names, last=_LAST_ROWS))
    console.print("What a recording cannot tell, and what is assumed instead:")
    for sentence in given.sentences():
        console.print(Text(f"- {sentence}"))


def _by_threshold(report: ReplayReport) -> Table:
    given, total = report.assumptions, report.total
    table = _amounts("Threshold", given)
    table.add_row("none", "0", "0", f"{total.without.tokens:,}", "", "", "", "", *_costs(total.without, given))
    best = total.best(given)
    for amount in total.amounts:
        _add_amount(table, f"{amount.threshold:,}", amount, report, is_best=amount is best)
    return table


def _by_preview(report: ReplayReport) -> Table:
    table = _amounts("Preview", report.assumptions)
    for each in report.by_preview:
        name, amount = f"{each.assumptions.preview_at(report.shown):,}", each.total.at(report.shown)
        _add_amount(table, name, amount, each, is_best=each is report.chosen and report.best is not None)
    return table


def _amounts(heading: str, given: Assumptions) -> Table:
    costs = ["Cost", "Cost,\ncached"] if given.price is not None else []
    return _table(
        heading,
        "Results\noffloaded",
        "Read\nback",
        "Billed\ntokens",
        "Saved",
        "Saved,\ncached",
        "Dearer",
        "Dearer,\ncached",
        *costs,
    )


def _add_amount(table: Table, name: str, amount: Amount, report: ReplayReport, *, is_best: bool) -> None:
    given = report.assumptions
    table.add_row(
        name,
        f"{amount.offloaded:,}",
        f"{amount.read_back:,}",
        f"{amount.billed.tokens:,}",
        *(
            share_text(report.total.saved(amount.billed, price)) + ("*" if is_best and price == given.deciding else " ")
            for price in (given.plain, given.cached)
        ),
        *(f"{report.dearer(amount.threshold, price):,}" for price in (given.plain, given.cached)),
        *_costs(amount.billed, given),
        style="green" if is_best else None,
    )


def _costs(share: Share, given: Assumptions) -> list[str]:
    return [] if given.price is None else [f"{price.of(share):,.2f}" for price in (given.plain, given.cached)]


def _saved(heading: str, rows: Sequence[Row], report: ReplayReport, *, longest: int, last: int = 0) -> Table:
    """Return a table of the first rows and the ``last`` ones."""
    given = report.assumptions
    table = _table(
        heading, "Results\noffloaded", "Billed\ntokens", *(f"{threshold:,}" for threshold in given.thresholds)
    )
    hidden = len(rows) - _MAX_ROWS
    shown = [*rows[: _MAX_ROWS - last], *rows[len(rows) - last :]] if hidden > 0 else rows
    for place, row in enumerate(shown, 1):
        best = row.best(given)
        table.add_row(
            Text(_cut(one_line(row.name) or NOT_A_TOOL, longest)),
            f"{row.at(report.shown).offloaded}/{row.results}" if row.results else "",
            f"{row.without.tokens:,}",
            *(_share(row, amount, given, best=best) for amount in row.amounts),
            end_section=hidden > 0 and place == _MAX_ROWS - last,
        )
    if hidden > 0:
        where = "between these" if last else "more"
        table.caption = f"and {hidden:,} {where}: --json and --html have them all"
    return table


def _share(row: Row, amount: Amount, given: Assumptions, *, best: Amount | None) -> str:
    """Return the share that is saved or, for a row that only offloading bills, what it bills."""
    tokens = amount.billed.tokens
    if not row.without.tokens:
        return f"+{tokens:,} " if tokens < _LONG_NUMBER else f"+{tokens // 1_000:,}K "  # as wide as a share
    return share_text(row.saved(amount.billed, given.deciding)) + ("*" if amount is best else " ")


def _cut(name: str, longest: int) -> str:
    """Return a name cut in its middle: generated names often differ only at their ends."""
    head = longest // 3
    return name if len(name) <= longest else f"{name[:head]}…{name[head + 1 - longest :]}"


def _table(first: str, *others: str) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=0, expand=True, caption_justify="left")
    table.add_column(
        first, no_wrap=True, ratio=1, min_width=len(DEFINITION) if first == "Tool" else len(first)
    )  # a name is cut before a number is
    for heading in others:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
