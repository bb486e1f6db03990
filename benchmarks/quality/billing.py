"""What conversations cost as they are billed, by source; what ``coatcheck replay`` computes, as a table for the page.

Three ways: nothing offloaded; offloaded with the defaults; and offloaded with one read-back of each offloaded result,
as long as an answer may be, in a turn of its own: more than most results need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from benchmarks.quality.methods import COUNTER
from coatcheck.replay.billing import BilledResult, bill
from coatcheck.replay.formats import read_messages
from coatcheck.replay.measure import definition_tokens, offloaded_parts, plain_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

THRESHOLD = READ_BACK_TOKENS = 2_500
"""The library's defaults."""


def billed(conversations: Iterable[tuple[str, list[dict[str, Any]]]]) -> Iterator[str]:
    """Yield a heading and a table of input tokens by source."""
    rows: dict[str, list[int]] = {}
    for source, messages in conversations:
        row = rows.setdefault(source, [0, 0, 0, 0, 0])
        for index, value in enumerate((1, *_bill(messages))):
            row[index] += value
    rows["all"] = [sum(column) for column in zip(*rows.values(), strict=True)]
    yield "Input tokens as billed, whole conversations, defaults (2,500 tokens stay, previews of up to 1,000):"
    head = "| source | conversations | offloaded | without | with | saved | with, each read back once | saved |"
    lines = [head, "|" + "---|" * 8]
    for source, (count, results, plain, offloaded, read) in rows.items():
        lines.append(
            f"| {source} | {count} | {results} | {plain:,} | {offloaded:,} | {1 - offloaded / plain:.1%}"
            f" | {read:,} | {1 - read / plain:.1%} |"
        )
    yield "\n".join(lines)


def _bill(messages: list[dict[str, Any]]) -> tuple[int, int, int, int]:
    """Return the results that leave, and the tokens billed in the three ways."""
    _, parts = read_messages(messages)
    plain = plain_parts(parts, COUNTER)
    made = offloaded_parts(parts, plain, threshold=THRESHOLD, counter=COUNTER, read_back_tokens=READ_BACK_TOKENS)
    definition = definition_tokens(COUNTER)
    return (
        sum(isinstance(part, BilledResult) and part.left for part in made),
        bill(plain).total.tokens,
        bill(made, opening_tokens=definition).total.tokens,
        bill(made, opening_tokens=definition, retrievals=1).total.tokens,
    )
