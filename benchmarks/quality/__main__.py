"""How much of what agents later need a preview keeps, at the same budget of tokens, on real conversations.

    python -m benchmarks.quality FOLDER                    tables on the screen
    python -m benchmarks.quality FOLDER --write            the same into docs/quality.md, and its plot
    python -m benchmarks.quality FOLDER --missed 250 JSON  what ours did not show that another did

``FOLDER`` holds conversations as JSON Lines: ``{"id", "messages": [OpenAI chat messages]}`` a line, one file a source.
Only results that exceed the budget count. Shares are means over results. Intervals are 95%, from a seeded bootstrap
that draws whole conversations, because results of one conversation resemble each other; differences are paired.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.quality.billing import billed
from benchmarks.quality.methods import COUNTER, OURS, OVER_BUDGET, methods
from benchmarks.quality.plot import plot
from benchmarks.quality.transcripts import Result, holds, read_conversations, read_results, text_of
from coatcheck import Always, Offloader, TextBlock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

BUDGETS = (100, 250, 500, 1_000, 2_000)
LEAST_PROMISED = 250
"""The budget from which on ours is to keep more over all."""

ALL = "all"
SEED = 5
RESAMPLES = 2_000
LEAST_RESULTS = 5
"""Fewer results than this say nothing about a kind."""

READ_BACK_TOKENS = 2_500
DOCUMENT = Path(__file__).parents[2] / "docs/quality.md"
_BEGIN, _END = "<!-- figures: written by the benchmark -->", "<!-- end of figures -->"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One result under one budget: for each method, the share of the needed spans."""

    result: Result
    shown: dict[str, float]
    reached: dict[str, float]
    """In the preview, or in the answer to one retrieval call."""

    tokens: dict[str, int]


def main() -> None:
    """Measure, print, and write where asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="write docs/quality.md and docs/quality.svg")
    parser.add_argument("--missed", nargs=2, metavar=("BUDGET", "KIND"), help="list what ours did not show")
    arguments = parser.parse_args()
    results = list(read_results(arguments.folder))
    if arguments.missed:
        _print_missed(results, int(arguments.missed[0]), arguments.missed[1])
        return
    measured = {budget: measure(results, budget) for budget in BUDGETS}
    names = list(methods())
    undecided = explained(measured, names, [text_of(one) for one in _tool_messages(arguments.folder)])
    report = "\n\n".join((tables(measured, names), *undecided, *billed(read_conversations(arguments.folder))))
    print(report)
    if arguments.write:
        text = DOCUMENT.read_text(encoding="utf-8")
        made = re.sub(
            rf"{re.escape(_BEGIN)}.*{re.escape(_END)}",
            lambda _: f"{_BEGIN}\n\n{report}\n\n{_END}",
            text,
            flags=re.DOTALL,
        )
        DOCUMENT.write_text(made, encoding="utf-8")
        curves = {
            name: [interval([m.shown[name] for m in measured[b]], measured[b]) for b in BUDGETS] for name in names
        }
        plot(curves, BUDGETS, DOCUMENT.with_suffix(".svg"))


def measure(results: Sequence[Result], budget: int) -> list[Measured]:
    """Return what each method keeps of each result that exceeds ``budget`` tokens."""
    ways = methods()
    measured = []
    for result in results:
        if not COUNTER.exceeds(result.text, budget):
            continue
        previews = {name: way(result, budget) for name, way in ways.items()}
        read = read_back(result)
        measured.append(
            Measured(
                result=result,
                shown={name: share(result, made) for name, made in previews.items()},
                reached={name: share(result, f"{made}\n{read}") for name, made in previews.items()},
                tokens={name: COUNTER.count(made) for name, made in previews.items()},
            )
        )
    return measured


def share(result: Result, text: str) -> float:
    """Return the share of the needed spans that ``text`` holds."""
    return sum(holds(text, span) for span in result.needed) / len(result.needed)


_ANSWERS: dict[Result, str] = {}


def read_back(result: Result) -> str:
    """Return the answer to one search for what the agent knows, through our retrieval tool whatever the preview is."""
    if result not in _ANSWERS:
        offloader = Offloader(token_counter=COUNTER, max_retrieval_tokens=READ_BACK_TOKENS)
        outcome = offloader.offload([TextBlock(result.text)], tool_name="tool", policy=Always())
        pattern = "(?i)" + "|".join(map(re.escape, result.known))
        answer = (
            offloader.retrieve(str(outcome.references[0]), pattern=pattern, context_lines=2) if result.known else None
        )
        # What stands behind the header: that one repeats the pattern, and the last line the next call.
        _ANSWERS[result] = "" if answer is None else "\n".join(answer.text.split("\n")[1:])
    return _ANSWERS[result]


def interval(values: Sequence[float], measured: Sequence[Measured]) -> tuple[float, float, float]:
    """Return the mean and its 95% interval, drawing conversations."""
    # Not by random weights, as a Bayesian bootstrap has them: where no difference is negative, its interval is above
    # zero as soon as one is positive.
    totals, counts = np.array(_by_conversation(values, measured), dtype=float).T
    drawn = np.random.default_rng(SEED).multinomial(len(totals), np.full(len(totals), 1 / len(totals)), RESAMPLES)
    low, high = np.percentile(drawn @ totals / (drawn @ counts), [2.5, 97.5])
    return totals.sum() / counts.sum(), float(low), float(high)


def _by_conversation(values: Sequence[float], measured: Sequence[Measured]) -> list[tuple[float, int]]:
    """Return for each conversation the sum of its values, and how many they are."""
    conversations: dict[str, tuple[float, int]] = {}
    for value, one in zip(values, measured, strict=True):
        total, count = conversations.get(one.result.conversation, (0.0, 0))
        conversations[one.result.conversation] = (total + value, count + 1)
    return list(conversations.values())


def tables(measured: dict[int, list[Measured]], names: Sequence[str]) -> str:
    """Return the tables: share in the preview, in reach of one call, and by kind beside the best of the others."""
    parts = [
        "Share of needed spans in the preview, in percent, over all results that exceed the budget:",
        _table("way", [[name, *(_cell(name, measured[b], "shown") for b in measured)] for name in names], measured),
        "In the preview, or in the answer to one search for words that the agent knows:",
        _table("way", [[name, *(_cell(name, measured[b], "reached") for b in measured)] for name in names], measured),
        "Tokens of a preview, on average:",
        _table("way", [[name, *(_tokens(name, measured[b]) for b in measured)] for name in names], measured),
        (
            "By kind of content: ours, the best of the others that keep to the budget, the paired difference. The last"
            " row holds each result once for each of these budgets that it exceeds:"
        ),
    ]
    parts += [
        _by_kind(measured, names),
        "The same, for the half of the conversations that no rule was chosen on (at least 5 results each):",
        _by_kind({budget: [one for one in ones if held_out(one.result)] for budget, ones in measured.items()}, names),
    ]
    return "\n\n".join(parts)


def explained(measured: dict[int, list[Measured]], names: Sequence[str], texts: Sequence[str]) -> Iterator[str]:
    """Say of each budget whose interval over all is not above zero what it rests on, and what any preview could reach.

    ``texts`` are all tool results, with those that nothing was needed from.
    """
    for budget, ones in measured.items():
        best = _best(ones, names)
        if budget < LEAST_PROMISED or _gain(ones, best)[1] > 0:
            continue
        gains = [total for total, _ in _by_conversation([one.shown[OURS] - one.shown[best] for one in ones], ones)]
        missing = [1 - one.shown[best] for one in ones]
        missed = sum(total > 0 for total, _ in _by_conversation(missing, ones))
        reachable = interval(missing, ones)
        clear = [f"*{name}*" for name in names if name not in {OURS, OVER_BUDGET} and _gain(ones, name)[1] > 0]
        beyond = sum(COUNTER.exceeds(text, budget) for text in texts)
        said = [
            f"At {budget:,} tokens the interval over all is not above zero. The {len(ones)} results come from",
            f"{len(gains)} conversations; ours keeps more than *{best}* in {sum(gain > 0 for gain in gains)} of them,",
            f"less in {sum(gain < 0 for gain in gains)}. A preview that showed every needed span would keep more in",
            f"{missed}, with a difference of {_points(reachable)}.",
        ]
        if reachable[1] <= 0:
            said += [
                "So no preview can lift the interval above zero with these conversations:",
                f"{(1 - missed / len(gains)) ** len(gains):.1%} of all draws hold none of those {missed}, and an",
                f"interval of 95% leaves 2.5% below it. An exact two-sided test that flips the signs of {missed}",
                f"differences reaches no less than p = {min(1, 2 / 2**missed):.2g}. It takes more conversations.",
            ]
        said += [
            f"Above zero is the difference to {', '.join(clear) or 'none of the others'}. The transcripts hold",
            f"{beyond - len(ones)} more results beyond {budget:,} tokens, without a needed span.",
        ]
        yield " ".join(said)


def _tool_messages(folder: Path) -> Iterator[dict[str, Any]]:
    for _, messages in read_conversations(folder):
        yield from (message for message in messages if message["role"] == "tool")


def held_out(result: Result) -> bool:
    """Return whether a result belongs to the half of the conversations that no rule of a preview was chosen on."""
    return hashlib.sha256(result.conversation.encode()).digest()[0] % 2 == 1


def _by_kind(measured: dict[int, list[Measured]], names: Sequence[str]) -> str:
    rows = []
    for kind in (*sorted({one.result.kind for one in measured[BUDGETS[0]]}), ALL):
        for budget, ones in measured.items():
            chosen = [one for one in ones if kind in {ALL, one.result.kind}]
            if len(chosen) >= LEAST_RESULTS:
                rows.append([kind, f"{budget:,}", f"{len(chosen)}", *_compared(chosen, names)])
    promised = [one for budget, ones in measured.items() if budget >= LEAST_PROMISED for one in ones]
    rows.append([ALL, f"{LEAST_PROMISED:,} to {BUDGETS[-1]:,}", f"{len(promised)}", *_compared(promised, names)])
    head = "| kind | budget | results | ours | best of the others | difference |\n|---|---|---|---|---|---|\n"
    return head + "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _compared(chosen: Sequence[Measured], names: Sequence[str]) -> list[str]:
    best = _best(chosen, names)
    ours, other = (f"{_mean(chosen, name):.1%}" for name in (OURS, best))
    return [ours, f"{other} ({best})", _points(_gain(chosen, best))]


def _best(chosen: Sequence[Measured], names: Sequence[str]) -> str:
    """Return the best of the others that keep to the budget; chosen by the same figures, which favours it."""
    return max((name for name in names if name not in {OURS, OVER_BUDGET}), key=lambda name: _mean(chosen, name))


def _mean(chosen: Sequence[Measured], name: str) -> float:
    return float(np.mean([one.shown[name] for one in chosen]))


def _gain(chosen: Sequence[Measured], name: str) -> tuple[float, float, float]:
    return interval([one.shown[OURS] - one.shown[name] for one in chosen], chosen)


def _points(difference: tuple[float, float, float]) -> str:
    mean, low, high = (share * 100 for share in difference)
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}]"


def _cell(name: str, ones: Sequence[Measured], field: str) -> str:
    mean, low, high = interval([getattr(one, field)[name] for one in ones], ones)
    return f"{mean * 100:.1f} [{low * 100:.0f}, {high * 100:.0f}]"


def _tokens(name: str, ones: Sequence[Measured]) -> str:
    return f"{np.mean([one.tokens[name] for one in ones]):,.0f}"


def _table(corner: str, rows: Sequence[Sequence[str]], measured: dict[int, list[Measured]]) -> str:
    head = [corner, *(f"{budget:,} ({len(ones)})" for budget, ones in measured.items())]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _print_missed(results: Sequence[Result], budget: int, kind: str) -> None:
    for one in measure([result for result in results if result.kind == kind], budget):
        best = max(one.shown, key=one.shown.__getitem__)
        if one.shown[best] > one.shown[OURS]:
            made, other = (methods()[name](one.result, budget) for name in (OURS, best))
            lost = [span for span in one.result.needed if holds(other, span) and not holds(made, span)]
            print(f"=== {one.result.conversation}: ours {one.shown[OURS]:.0%}, {best} {one.shown[best]:.0%}: {lost}")
            print(made[:3000])


if __name__ == "__main__":
    main()
