"""The report of a replay as an HTML page: one self-contained file with charts and tables, for any browser.

Only presentation belongs here. The page's style and script are in the folder ``assets``, next to Chart.js 4.6.1, byte
for byte as published on npm (MIT, see ``LICENSE-chart.js``). Chart.js draws what is needed in 210 KB; ECharts takes
715, Bokeh 1,390, Plotly 4,830, and uPlot, with 51, draws no bars by name. The tables say what the charts show, even
with scripts off.
"""

from __future__ import annotations

import gzip
import json
import re
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from coatcheck.core.blocks import to_valid_unicode
from coatcheck.replay.billing import DEFINITION, OTHER
from coatcheck.replay.wording import DEFAULT_PREVIEW, NOT_A_TOOL, counted, details, knobs, result_in_words, share_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coatcheck.replay.report import Amount, ReplayReport, Row

__all__ = ("page",)

_MAX_BARS = 12
"""The most bars in a chart: as many names as fit on a phone. The tables have all."""

_NAME_END = 12
"""Characters of a name that a narrow table always shows."""

_MAX_LEAVING = 50
"""The most results in the table of what leaves the conversation; it lists the largest."""

_MIN_BIN, _BINS = 128, 10
"""The tokens of the first bin, and the number of bins: up to 128, up to 256, and so on; the last bin is open."""

_BAR_HEIGHT, _AXES_HEIGHT, _UPRIGHT_HEIGHT = 46, 110, 320
"""Pixels: a name with two bars, the axis with its legend, and a chart with vertical bars."""


def page(report: ReplayReport) -> str:
    """Return the page as HTML."""
    charts = [_thresholds_chart(report), _sizes_chart(report), _tools_chart(report), _conversations_chart(report)]
    shown = f"{report.shown:,}"
    given = report.assumptions
    of_cost = "share of the cost with a prompt cache" if given.decides_with_cache else "share"
    preview = f", all with {DEFAULT_PREVIEW}" if report.previews else ""
    billed = f"Billed tokens, and the {of_cost} that is saved{preview}; scroll sideways for all thresholds."
    read_backs = (
        "The share of the cost that is saved, at a plain price and with a prompt cache, and how many conversations"
        " would cost at least 2% more."
    )
    leaving = f"The {_MAX_LEAVING} largest results, in tokens, and what stays in their place above each threshold."
    sections = (
        _section("Tokens billed, by threshold", _by_threshold(report), chart=charts[0]),
        _section("Tool results by size", _by_size(report), chart=charts[1]),
        _section(f"By tool, offloading above {shown} tokens", "", chart=charts[2]),
        _section(f"Conversations that save most, above {shown} tokens", "", chart=charts[3]),
        _section("What it saves, by what the model reads back", _by_read_backs(report), about=read_backs),
        _by_preview(report),
        _section(
            "Every tool, at each threshold",
            _saved("Tool", report.tools, report),
            about=f"{billed} {DEFINITION} is that of the retrieval tool, which every turn sends.",
        ),
        _section(
            "Every conversation, at each threshold",
            _saved("Conversation", [each.row for each in report.by_savings], report),
            about=billed,
        ),
        _section("What leaves the conversation", _leaving(report), about=leaving),
    )
    held = files("coatcheck.replay") / "assets"
    filled = {
        "style": (held / "page.css").read_text("utf-8"),
        "outcome": "result" if report.best else "result none",
        "result": escape(result_in_words(report)),
        "knobs": f"<p><code>{escape(line)}</code></p>\n" if (line := knobs(report)) else "",
        "counted": escape(
            f"{details(report)} Replayed: {counted(report)}."
            f" {report.total.without.tokens:,} input tokens billed without offloading."
            + ("" if given.price is None else " Costs are in the unit of --price.")
        ),
        "sections": "".join(sections),
        "sentences": "".join(f"<li>{escape(sentence)}</li>\n" for sentence in given.sentences()),
        # Names come from recordings, and must not close the script element.
        "charts": json.dumps(charts).replace("<", "\\u003c"),
        "library_licence": (held / "LICENSE-chart.js").read_text("utf-8"),
        "library": gzip.decompress((held / "chart.umd.min.js.gz").read_bytes()).decode("utf-8"),
        "script": (held / "page.js").read_text("utf-8"),
    }
    # One pass, so that placeholders inside filled-in text are not filled in.
    made = re.sub(r"\{\{(\w+)\}\}", lambda found: filled[found[1]], (held / "page.html").read_text("utf-8"))
    return to_valid_unicode(made)


def _section(title: str, table: str, *, chart: dict[str, Any] | None = None, about: str = "") -> str:
    kind, drawn = ' class="wide"', f'<p class="about">{escape(about)}</p>\n'
    if chart is not None:
        kind = ""
        height = _UPRIGHT_HEIGHT
        if chart["sideways"]:
            height = _AXES_HEIGHT + _BAR_HEIGHT * len(chart["labels"])
        label = escape(f"{title}: {chart['about']}", quote=True)
        drawn = (
            f'<p class="about">{escape(chart["about"])}</p>\n<div class="chart" style="min-height: {height}px">'
            f'<canvas id="{chart["id"]}" role="img" aria-label="{label}"></canvas></div>\n'
        )
    return f"<section{kind}>\n<h2>{escape(title)}</h2>\n{drawn}{table}</section>\n"


def _thresholds_chart(report: ReplayReport) -> dict[str, Any]:
    best = report.total.best(report.assumptions)
    amounts = report.total.amounts
    return {
        "id": "thresholds",
        "about": "Input tokens of all conversations, without offloading and with it above each threshold.",
        "labels": ["without", *(f"{amount.threshold:,}" for amount in amounts)],
        "names": "max_result_tokens",
        "unit": "tokens billed",
        "sideways": False,
        "percent": False,
        "series": [
            {
                "label": "tokens billed",
                "values": [report.total.without.tokens, *(amount.billed.tokens for amount in amounts)],
                "colours": ["without", *("best" if amount is best else "with" for amount in amounts)],
            }
        ],
    }


def _sizes(report: ReplayReport) -> list[tuple[str, int, int]]:
    """Return, for each bin of sizes, its bounds in words, the number of results, and the sum of their tokens."""
    counts, held = [0] * _BINS, [0] * _BINS
    for size in (size for each in report.conversations for size in each.sizes):
        place = min((max(0, size - 1) // _MIN_BIN).bit_length(), _BINS - 1)
        counts[place] += 1
        held[place] += size
    bounds = [_MIN_BIN * 2**power for power in range(_BINS - 1)]
    names = [*(f"≤ {bound:,}" for bound in bounds), f"> {bounds[-1]:,}"]
    return list(zip(names, counts, held, strict=True))


def _sizes_chart(report: ReplayReport) -> dict[str, Any]:
    """Return the chart that shows where a threshold would cut."""
    names, counts, held = zip(*_sizes(report), strict=True)
    return {
        "id": "sizes",
        "about": "How many results are of each size, and how many of all result tokens those hold.",
        "labels": names,
        "names": "tokens of the result",
        "unit": "share",
        "sideways": False,
        "percent": True,
        "series": [
            {"label": "of the results", "values": _percent(counts), "colours": ["without"]},
            {"label": "of their tokens", "values": _percent(held), "colours": ["with"]},
        ],
    }


def _tools_chart(report: ReplayReport) -> dict[str, Any]:
    return {
        "id": "tools",
        "about": f"Tokens billed for their results, and for reading them back; the {_MAX_BARS} that are billed most.",
        **_pairs([row for row in report.tools if row.name not in {DEFINITION, OTHER}][:_MAX_BARS], report),
    }


def _conversations_chart(report: ReplayReport) -> dict[str, Any]:
    return {
        "id": "conversations",
        "about": f"Tokens billed without offloading and with it; the {_MAX_BARS} that save most.",
        **_pairs([each.row for each in report.by_savings[:_MAX_BARS]], report),
    }


def _pairs(rows: Sequence[Row], report: ReplayReport) -> dict[str, Any]:
    return {
        "labels": [row.name for row in rows],
        "names": "",
        "unit": "tokens billed",
        "sideways": True,
        "percent": False,
        "series": [
            {"label": "without", "values": [row.without.tokens for row in rows], "colours": ["without"]},
            {
                "label": f"above {report.shown:,}",
                "values": [row.at(report.shown).billed.tokens for row in rows],
                "colours": ["with"],
            },
        ],
    }


def _percent(counts: Sequence[int]) -> list[float]:
    total = sum(counts)
    return [round(100 * count / total, 2) if total else 0.0 for count in counts]


def _by_threshold(report: ReplayReport) -> str:
    given, total = report.assumptions, report.total
    at_price = ", with a cache" if given.decides_with_cache else ""
    costs = [] if given.price is None else [f"Cost{at_price}"]
    rows = [["without", "0", f"{total.without.tokens:,}", "", *(f"{given.weight(total.without):,.2f}" for _ in costs)]]
    rows += [
        [
            f"{amount.threshold:,}",
            f"{amount.offloaded:,}",
            f"{amount.billed.tokens:,}",
            _marked(total, amount, report),
            *(f"{given.weight(amount.billed):,.2f}" for _ in costs),
        ]
        for amount in total.amounts
    ]
    return _table(["Threshold", "Offloaded", "Billed", f"Saved{at_price}", *costs], rows)


def _by_read_backs(report: ReplayReport) -> str:
    given, total = report.assumptions, report.total
    prices = (given.plain, given.cached)
    return _table(
        [
            "Threshold",
            *("As assumed", "with a cache", "Nothing read back", "with a cache", "Each read back once", "with a cache"),
            *("Cost 2% more", "with a cache"),
        ],
        [
            [
                f"{amount.threshold:,}",
                *(
                    share_text(total.saved(share, price))
                    for share in (amount.billed, amount.never_read, amount.each_read)
                    for price in prices
                ),
                *(f"{report.dearer(amount.threshold, price):,}" for price in prices),
            ]
            for amount in total.amounts
        ],
    )


def _by_preview(report: ReplayReport) -> str:
    """Return the section about other preview sizes, if any were tried."""
    if not report.previews:
        return ""
    prices = (report.assumptions.plain, report.assumptions.cached)
    rows = []
    for each in report.by_preview:
        amount = each.total.at(report.shown)
        rows.append(
            [
                f"{each.assumptions.preview_at(report.shown):,}",
                f"{amount.read_back:,}",
                *(share_text(each.total.saved(amount.billed, price)) for price in prices),
                *(f"{each.dearer(report.shown, price):,}" for price in prices),
            ]
        )
    headings = ["Preview", "Read back", "Saved", "with a cache", "Cost 2% more", "with a cache"]
    about = "The tokens that a preview may have, and the share of the cost that is saved with it."
    title = f"What it saves, by the size of a preview, above {report.shown:,} tokens"
    return _section(title, _table(headings, rows), about=about)


def _by_size(report: ReplayReport) -> str:
    rows = [[name, f"{count:,}", f"{tokens:,}"] for name, count, tokens in _sizes(report)]
    return _table(["Tokens", "Results", "Their tokens"], rows)


def _saved(heading: str, rows: Iterable[Row], report: ReplayReport) -> str:
    given = report.assumptions
    return _table(
        [
            heading,
            f"Offloaded above {report.shown:,}",
            "Without",
            *(f"above {threshold:,}" for threshold in given.thresholds),
        ],
        [
            [
                row.name or NOT_A_TOOL,
                f"{row.at(report.shown).offloaded:,} of {row.results:,}" if row.results else "",
                f"{row.without.tokens:,}",
                *(_billed(row, amount, report) for amount in row.amounts),
            ]
            for row in rows
        ],
    )


def _leaving(report: ReplayReport) -> str:
    found = [(each.row.name, one) for each in report.conversations for one in each.leaving]
    found.sort(key=lambda pair: (-pair[1].tokens, pair[0], pair[1].turn))
    return _table(
        [
            "Tool",
            "Tokens",
            *(f"above {threshold:,}" for threshold in report.assumptions.thresholds),
            "Turn",
            "Conversation",
        ],
        [
            [
                one.tool,
                f"{one.tokens:,}",
                *(
                    f"{one.placeholder_tokens[threshold]:,}" if threshold in one.placeholder_tokens else "stays"
                    for threshold in report.assumptions.thresholds
                ),
                f"{one.turn:,}",
                escape(name),
            ]
            for name, one in found[:_MAX_LEAVING]
        ],
    )


def _billed(row: Row, amount: Amount, report: ReplayReport) -> str:
    """Return what is billed, and the share of the row that it saves, if the row is billed without offloading."""
    share = f" ({_marked(row, amount, report)})" if row.without.tokens else ""
    return f"{amount.billed.tokens:,}{share}"


def _marked(row: Row, amount: Amount, report: ReplayReport) -> str:
    """Return the share that is saved, marked if it is the best of its row, or a loss."""
    given = report.assumptions
    saved = row.saved(amount.billed, given.deciding)
    kind = "best" if amount is row.best(given) else "lost" if saved < 0 else ""
    return f'<span class="{kind}">{share_text(saved)}</span>' if kind else share_text(saved)


def _name(name: str) -> str:
    """Return a name in two parts. If it is too long, its middle is hidden, since names differ at their ends."""
    head, tail = name[:-_NAME_END], name[-_NAME_END:]
    return f'<div class="name"><span>{escape(head)}</span><span>{escape(tail)}</span></div>'


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table. The first cell of each row is its name, as plain text; the others are HTML."""
    head = "".join(f'<th scope="col">{heading}</th>' for heading in headings)
    body = "".join(
        f'<tr><th scope="row" title="{escape(name)}">{_name(name)}</th>'
        f"{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>\n"
        for name, *cells in rows
    )
    # What scrolls must be reachable by keyboard.
    return (
        f'<div class="table" tabindex="0"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>\n'
        "</table></div>\n"
    )
