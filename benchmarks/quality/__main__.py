"""Measure how much of what agents later need a preview keeps, at the same token budget, on real conversations.

    python -m benchmarks.quality FOLDER                    tables on the screen
    python -m benchmarks.quality FOLDER --write            also write them and the plot into docs/quality.md
    python -m benchmarks.quality FOLDER --missed 250 JSON  what another way showed and ours did not

``FOLDER`` holds recorded conversations, at any depth: one ``{"id", "messages"}`` per line, one ``.jsonl`` per set. Only
results that exceed the budget count. Half of each set named by ``--hold-out`` is held out: its results come first, and
``--missed`` never shows it, so that no rule is chosen on it.

The exit code is 1 if a kind of content loses to a plain head, or to head and tail. It loses if it has 30 results or
more, and the whole 95% interval of the paired difference is below zero.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.quality.measured import lost_spans, measure
from benchmarks.quality.methods import OURS, all_ways
from benchmarks.quality.plot import plot
from benchmarks.quality.tables import find_losses, held_out, report
from benchmarks.quality.transcripts import HELD_OUT_SETS, read_results

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.quality.transcripts import Result

BUDGETS = (100, 250, 500, 1_000, 2_000)
DOCUMENT = Path(__file__).parents[2] / "docs/quality.md"
_BEGIN, _END = "<!-- figures: written by the benchmark -->", "<!-- end of figures -->"


def main(given: Sequence[str] | None = None) -> int:
    """Measure, print, write if asked to, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="write docs/quality.md and docs/quality.svg")
    parser.add_argument("--missed", nargs=2, metavar=("BUDGET", "KIND"), help="list what ours did not show")
    parser.add_argument("--hold-out", default=",".join(HELD_OUT_SETS), metavar="SETS", help="default: %(default)s")
    arguments = parser.parse_args(given)
    results = list(read_results(arguments.folder, hold_out=arguments.hold_out.split(",")))
    if not results:
        parser.error(f"{arguments.folder} holds no conversation that needed anything of a tool result")
    if arguments.missed:
        print_missed(results, int(arguments.missed[0]), kind=arguments.missed[1])
        return 0
    ways = all_ways()
    measured = {budget: list(measure(results, budget, ways=ways)) for budget in BUDGETS}
    text = report(measured)
    print(text)
    losses = list(find_losses(measured))
    print("", *map(str, losses), sep="\n")
    if not losses:
        print("No kind loses to a plain head, nor to head and tail.")
    if arguments.write:
        write(text, DOCUMENT)
        half = held_out(measured)
        plot(half if any(half.values()) else measured, DOCUMENT.with_suffix(".svg"))
    return 1 if losses else 0


def write(text: str, document: Path) -> None:
    """Put ``text`` between the marks in a page."""
    page = document.read_text(encoding="utf-8")
    marked = re.compile(rf"{re.escape(_BEGIN)}.*{re.escape(_END)}", re.DOTALL)
    document.write_text(marked.sub(lambda _: f"{_BEGIN}\n\n{text}\n\n{_END}", page), encoding="utf-8")


def print_missed(results: Sequence[Result], budget: int, *, kind: str) -> None:
    """List the results of a kind for which another way shows more, and what it shows."""
    ways = all_ways()
    chosen = [result for result in results if result.kind == kind and not result.held_out]
    for one in measure(chosen, budget, ways=ways):
        best, spans = lost_spans(one.result, budget, ways=ways)
        if one.shown[best] > one.shown[OURS]:
            print(f"=== {one.result.conversation}: ours {one.shown[OURS]:.0%}, {best} {one.shown[best]:.0%}: {spans}")
            print(one.result.text[:300])


if __name__ == "__main__":
    sys.exit(main())
