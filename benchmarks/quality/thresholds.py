"""Find the thresholds and previews that cost an agent least, on real conversations.

    python -m benchmarks.quality.thresholds FOLDER          tables on the screen
    python -m benchmarks.quality.thresholds FOLDER --write  also write them into docs/thresholds.md

Every turn sends a prefix (system prompt and other tools), the definition of the retrieval tool, and everything said
before. A result is read back only if a later turn wrote something that its placeholder does not show: by one search for
all of it, in an extra turn. ``FOLDER`` and the held-out half are those of ``benchmarks.quality``.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.quality.__main__ import write
from benchmarks.quality.transcripts import HELD_OUT_SETS, is_held_out, read_sets
from coatcheck import TiktokenCounter
from coatcheck.core.plan import PREVIEW_SHARE
from coatcheck.core.settings import DEFAULT_PREVIEW_TOKENS, MAX_RESULT_TOKENS
from coatcheck.replay.billing import CACHED, PLAIN, BilledWords, Share, bill
from coatcheck.replay.measure import (
    definition_tokens,
    find_left,
    offloaded_parts,
    offloader_for,
    plain_parts,
    reads_by_need,
    reads_of_each,
)
from coatcheck.replay.needs import find_needs
from coatcheck.replay.report import DEARER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from coatcheck.replay.billing import BilledPart, BilledReadBack
    from coatcheck.replay.conversation import Conversation
    from coatcheck.replay.measure import Left

    Knobs: TypeAlias = tuple[int, int]

THRESHOLDS = (1_000, 2_000, 2_500, 3_000, 4_000, 5_000, 10_000)
PREVIEWS = (250, 500, 1_000)

PREFIXES = (2_000, 10_000, 30_000)
PREFIX = 10_000
"""Tokens of the prefix in tables that show only one prefix."""

DEFAULTS = (MAX_RESULT_TOKENS, DEFAULT_PREVIEW_TOKENS)
DOCUMENT = Path(__file__).parents[2] / "docs/thresholds.md"

_COUNTER = TiktokenCounter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One conversation as recorded, and what is offloaded from it with each threshold and preview."""

    held_out: bool
    plain: Sequence[BilledPart]
    left: Mapping[Knobs, Mapping[int, Left]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What offloading saves and costs over some conversations, at plain prices and with a prompt cache."""

    saved: tuple[float, float]
    """Share of the total cost of all conversations."""

    dearer: tuple[float, float]
    """Share of the conversations that cost at least 2% more."""

    def __str__(self) -> str:
        saved = " / ".join(f"{share:.1%}" for share in self.saved)
        return f"{saved} | {' / '.join(f'{share:.1%}' for share in self.dearer)}"


def main(given: Sequence[str] | None = None) -> int:
    """Count, print, write if asked to, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write", action="store_true", help="write docs/thresholds.md")
    parser.add_argument("--hold-out", default=",".join(HELD_OUT_SETS), metavar="SETS", help="default: %(default)s")
    arguments = parser.parse_args(given)
    replayed = list(replay(arguments.folder, hold_out=arguments.hold_out.split(",")))
    if not replayed:
        parser.error(f"{arguments.folder} holds no conversation")
    text = "\n\n".join(report(replayed))
    print(text)
    if arguments.write:
        write(text, DOCUMENT)
    return 0


def replay(folder: Path, *, hold_out: Sequence[str]) -> Iterator[Replayed]:
    """Yield every conversation below ``folder`` that has a turn."""
    for source, conversation in read_sets(folder):
        plain = plain_parts(conversation.parts, _COUNTER)
        if bill(plain).total.tokens:
            yield Replayed(
                held_out=is_held_out(source, conversation.name, hold_out),
                plain=plain,
                left=dict(_left(conversation, plain)),
            )


def _left(conversation: Conversation, plain: Sequence[BilledPart]) -> Iterator[tuple[Knobs, dict[int, Left]]]:
    needs = find_needs(conversation.parts)
    for knobs in _grid():
        offloader = offloader_for(*knobs, counter=_COUNTER, answer_tokens=knobs[0])
        yield knobs, find_left(conversation.parts, plain, needs=needs, offloader=offloader)


def _grid() -> list[Knobs]:
    pairs = [
        (threshold, preview) for threshold in THRESHOLDS for preview in PREVIEWS if preview <= threshold * PREVIEW_SHARE
    ]
    return sorted({*pairs, DEFAULTS})


def report(replayed: Sequence[Replayed]) -> Iterator[str]:
    """Yield headings and tables."""
    half = [each for each in replayed if each.held_out]
    for name, chosen in (("The held-out half", half), ("All conversations", replayed)):
        if chosen:
            yield f"### {name}: {len(chosen)} conversations"
            yield (
                "Share of the cost saved, and share of conversations that cost at least 2% more, each at plain prices /"
                " with a prompt cache. The numbers in the column headings are the tokens of the prefix:"
            )
            yield _by_knobs(chosen)
            yield (
                f"The defaults with a prefix of {PREFIX:,} tokens, by when the tool is offered and how much is read"
                " back:"
            )
            yield _by_way(chosen)


def _by_knobs(chosen: Sequence[Replayed]) -> str:
    heads = " | ".join(f"saved, {prefix:,} | 2% more" for prefix in PREFIXES)
    rows = [f"| `max_result_tokens` | `preview_tokens` | {heads} |", "|" + "---|" * (2 + 2 * len(PREFIXES))]
    for knobs in _grid():
        cells = " | ".join(str(count(chosen, prefix, knobs=knobs)) for prefix in PREFIXES)
        threshold, preview = (f"**{knob:,}**" if knobs == DEFAULTS else f"{knob:,}" for knob in knobs)
        rows.append(f"| {threshold} | {preview} | {cells} |")
    return "\n".join(rows)


def _by_way(chosen: Sequence[Replayed]) -> str:
    tokens = definition_tokens(_COUNTER)
    ways = {
        f"{tokens} tokens, always offered": count(chosen, PREFIX),
        f"{tokens} tokens, offered once something has been offloaded": count(chosen, PREFIX, when_needed=True),
        "always offered, nothing is read back": count(chosen, PREFIX, reads=_never),
        "always offered, each result is read back once, in the longest answer allowed": count(
            chosen, PREFIX, reads=_each_once
        ),
    }
    rows = ["| retrieval tool | saved | 2% more |", "|---|---|---|"]
    return "\n".join([*rows, *(f"| {way} | {outcome} |" for way, outcome in ways.items())])


def _by_need(left: Mapping[int, Left], _: Sequence[BilledPart]) -> dict[int, list[BilledReadBack]]:
    return reads_by_need(left)


def _never(_: Mapping[int, Left], __: Sequence[BilledPart]) -> dict[int, list[BilledReadBack]]:
    return {}


def _each_once(left: Mapping[int, Left], plain: Sequence[BilledPart]) -> dict[int, list[BilledReadBack]]:
    return reads_of_each(left, plain, times=1, tokens=MAX_RESULT_TOKENS)


def count(
    chosen: Sequence[Replayed],
    prefix: int,
    *,
    knobs: Knobs = DEFAULTS,
    when_needed: bool = False,
    reads: Callable[[Mapping[int, Left], Sequence[BilledPart]], dict[int, list[BilledReadBack]]] = _by_need,
) -> Outcome:
    """Return what offloading saves and costs over the chosen conversations."""
    definition = definition_tokens(_COUNTER)
    bills: list[tuple[Share, Share]] = []
    for each in chosen:
        left = each.left[knobs]
        made = offloaded_parts(
            each.plain, left, reads=reads(left, each.plain), definition=definition, when_needed=when_needed
        )
        bills.append(
            (bill([BilledWords(prefix), *each.plain]).total, bill([BilledWords(prefix), *made]).total),
        )
    before, after = (sum(shares, Share()) for shares in zip(*bills, strict=True))
    plain, cached = (
        (
            1 - price.of(after) / price.of(before),
            sum(price.of(made) >= DEARER * price.of(was) for was, made in bills) / len(bills),
        )
        for price in (PLAIN, CACHED)
    )
    return Outcome(saved=(plain[0], cached[0]), dearer=(plain[1], cached[1]))


if __name__ == "__main__":
    sys.exit(main())
