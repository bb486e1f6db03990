"""What conversations cost as they are billed: every turn sends the whole conversation again.

Three ways: nothing offloaded; offloaded with the defaults; and offloaded with a whole read-back of each offloaded
result in the turn after it, which costs one more turn: more than most results need.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from benchmarks.quality.methods import COUNTER
from benchmarks.quality.transcripts import text_of
from coatcheck import RETRIEVAL_ARGUMENTS, RETRIEVAL_DESCRIPTION, Offloaded, Offloader, TextBlock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CALL_TOKENS = 60
"""A retrieval call with its reference and a pattern, as the model writes it."""


def billed(conversations: Iterable[tuple[str, list[dict[str, Any]]]]) -> Iterator[str]:
    """Yield a heading and a table of input tokens by source."""
    rows: dict[str, list[int]] = {}
    for source, messages in conversations:
        row = rows.setdefault(source, [0, 0, 0, 0, 0])
        plain, offloaded, read, results = _bill(messages)
        for index, value in enumerate((1, results, plain, offloaded, read)):
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
    tool = COUNTER.count(json.dumps([RETRIEVAL_DESCRIPTION, RETRIEVAL_ARGUMENTS]))
    offloader = Offloader(token_counter=COUNTER)
    plain = offloaded = read = sent = sent_offloaded = sent_read = results = 0
    for message in messages:
        if message["role"] == "assistant":
            plain += sent
            offloaded += sent_offloaded + tool
            read += sent_read + tool
        text = text_of(message)
        cost = after = COUNTER.count(text)
        back = 0
        if message["role"] == "tool" and text:
            outcome = offloader.offload([TextBlock(text)], tool_name="tool")
            if isinstance(outcome, Offloaded):
                results += 1
                after = sum(COUNTER.count(block.text) for block in outcome.blocks if isinstance(block, TextBlock))
                answer = offloader.retrieve(str(outcome.references[0]))
                back = _CALL_TOKENS + COUNTER.count(answer.text)
                read += sent_read + after + tool
        sent += cost
        sent_offloaded += after
        sent_read += after + back
    return plain, offloaded, read, results
