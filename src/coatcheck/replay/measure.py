"""A recorded conversation becomes a report: its tokens are counted, and each tool result goes through an ``Offloader``.

The real one, with an ``InMemoryStorage``, so that a replay offloads what an agent would have offloaded and counts the
very placeholder. What a part costs in the end is the arithmetic of ``billing``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from coatcheck.core.blocks import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock, json_text
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.notice import RETRIEVAL_DESCRIPTION, RETRIEVAL_TOOL, is_placeholder
from coatcheck.core.outcomes import Offloaded
from coatcheck.core.plan import media_tokens
from coatcheck.core.references import find_references
from coatcheck.core.settings import MAX_INLINE_TOKENS
from coatcheck.engine.events import log_failure, logger
from coatcheck.offloader import Offloader
from coatcheck.replay.billing import (
    DEFINITION,
    OTHER,
    Bill,
    BilledPart,
    BilledResult,
    BilledTurn,
    BilledWords,
    Share,
    bill,
)
from coatcheck.replay.conversation import Conversation, Result, Turn, Words
from coatcheck.replay.report import Amount, Assumptions, ConversationReport, Leaving, Row
from coatcheck.retrieval import retrieval_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coatcheck.core.blocks import JsonValue, ToolResult
    from coatcheck.core.outcomes import Outcome
    from coatcheck.core.tokens import TokenCounter
    from coatcheck.replay.conversation import Part

__all__ = ("conversation_report", "definition_tokens", "offloaded_parts", "plain_parts")

_STRANDS_OPENING = "[Offloaded: "
"""How a placeholder of Strands' own offloader opens."""

_SCOPE = "replay"


def definition_tokens(counter: TokenCounter) -> int:
    """Return the tokens of the retrieval tool's definition as OpenAI's clients send it: in compact JSON."""
    schema = retrieval_schema()
    function: JsonValue = {"name": RETRIEVAL_TOOL, "description": RETRIEVAL_DESCRIPTION, "parameters": schema}
    return counter.count(json_text({"type": "function", "function": function}))


def conversation_report(
    conversation: Conversation, assumptions: Assumptions, *, counter: TokenCounter
) -> ConversationReport:
    """Return what a conversation was billed, and what it would have been billed with offloading.

    Raises:
        InvalidRequest: it holds a JSON value that no tool can have returned, such as one nested a thousand levels deep.

    """
    parts = conversation.parts
    try:
        plain = plain_parts(parts, counter)
        offloaded = {
            threshold: offloaded_parts(
                parts, plain, threshold=threshold, counter=counter, read_back_tokens=assumptions.retrieval_tokens
            )
            for threshold in assumptions.thresholds
        }
    except InvalidRequest as error:
        msg = f"{conversation.source}: {conversation.name}: {error}"
        raise InvalidRequest(msg) from None
    without = bill(plain)
    billed = [
        _Billed(
            threshold=threshold,
            bill=bill(made, opening_tokens=assumptions.definition_tokens, retrievals=assumptions.retrievals),
            offloaded=Counter(part.tool for part in made if isinstance(part, BilledResult) and part.left),
        )
        for threshold, made in offloaded.items()
    ]
    results = Counter(part.tool for part in plain if isinstance(part, BilledResult))
    return ConversationReport(
        row=_row(conversation.name, results.total(), without.total, billed=billed),
        source=conversation.source,
        recorded_as=conversation.recorded_as,
        turns=sum(isinstance(part, Turn) for part in parts),
        already_offloaded=sum(isinstance(part, Result) and _is_offloaded(part) for part in parts),
        tools=tuple(
            _row(tool, results[tool], without.shares.get(tool, Share()), billed=billed, tool=tool)
            for tool in (*results, DEFINITION, OTHER)
        ),
        leaving=tuple(_leaving(plain, offloaded)),
        sizes=tuple(part.tokens for part in plain if isinstance(part, BilledResult)),
    )


def plain_parts(parts: Sequence[Part], counter: TokenCounter) -> list[BilledPart]:
    """Return the parts of a conversation with their tokens, as it was recorded."""
    plain: list[BilledPart] = []
    for part in parts:
        match part:
            case Words():
                plain.append(BilledWords(_tokens(part.blocks, counter)))
            case Turn():
                plain.append(BilledTurn(_tokens(part.blocks, counter)))
            case Result():
                plain.append(BilledResult(part.result.tool_name, _tokens(part.result.blocks, counter)))
    return plain


def offloaded_parts(
    parts: Sequence[Part],
    plain: Sequence[BilledPart],
    *,
    threshold: int,
    counter: TokenCounter,
    read_back_tokens: int = 0,
) -> list[BilledPart]:
    """Return the parts with a placeholder for each result that an ``Offloader`` with this threshold takes out.

    Args:
        parts: of the conversation.
        plain: the same parts with their tokens.
        threshold: ``max_result_tokens``.
        counter: counts everything.
        read_back_tokens: of one answer of the retrieval tool; it never has more than the result itself.

    """
    offloader = Offloader(
        max_result_tokens=threshold, max_inline_tokens=max(MAX_INLINE_TOKENS, threshold), token_counter=counter
    )
    made: list[BilledPart] = []
    for part, billed in zip(parts, plain, strict=True):
        if isinstance(part, Result) and not _is_offloaded(part):
            given = part.result
            outcome = _outcome(offloader, given)
            if isinstance(outcome, Offloaded):
                shown = _tokens(outcome.blocks, counter)
                made.append(BilledResult(given.tool_name, shown, read_back_tokens=min(read_back_tokens, billed.tokens)))
                continue
        made.append(billed)
    return made


def _outcome(offloader: Offloader, given: ToolResult) -> Outcome | None:
    """Offload a result; None where that raises, since the agent would go on with the result as it is."""
    try:
        return offloader.offload(given.blocks, tool_name=given.tool_name, is_error=given.is_error, scope=_SCOPE)
    except Exception as error:  # noqa: BLE001 - one result among thousands must not cost the figures of the others
        log_failure(logger, f"a result of {given.tool_name!r} was replayed as it is", error=error)
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Billed:
    threshold: int
    bill: Bill
    offloaded: Counter[str]


def _row(name: str, results: int, without: Share, *, billed: Sequence[_Billed], tool: str | None = None) -> Row:
    """Return the row of one tool, or with None of the whole conversation."""
    return Row(
        name=name,
        results=results,
        without=without,
        amounts=tuple(
            Amount(
                threshold=each.threshold,
                offloaded=each.offloaded.total() if tool is None else each.offloaded[tool],
                billed=each.bill.total if tool is None else each.bill.shares.get(tool, Share()),
            )
            for each in billed
        ),
    )


def _leaving(plain: Sequence[BilledPart], offloaded: dict[int, list[BilledPart]]) -> list[Leaving]:
    leaving: list[Leaving] = []
    turn = 0
    for position, part in enumerate(plain):
        turn += isinstance(part, BilledTurn)
        made = {threshold: parts[position] for threshold, parts in offloaded.items()}
        shown = {limit: each.tokens for limit, each in made.items() if isinstance(each, BilledResult) and each.left}
        if shown and isinstance(part, BilledResult):
            leaving.append(Leaving(tool=part.tool, turn=turn, tokens=part.tokens, placeholder_tokens=shown))
    return leaving


def _is_offloaded(part: Result) -> bool:
    """Return whether the recording shows a result as offloaded, by a mark or by the words of a placeholder."""
    first = next(iter(part.result.blocks), None)
    if part.offloaded or not isinstance(first, TextBlock):
        return part.offloaded
    return first.text.startswith(_STRANDS_OPENING) or (is_placeholder(first.text) and any(find_references(first.text)))


def _tokens(blocks: Sequence[Block], counter: TokenCounter) -> int:
    return sum(_tokens_of(block, counter) for block in blocks)


def _tokens_of(block: Block, counter: TokenCounter) -> int:
    match block:
        case TextBlock():
            return counter.count(block.text)
        case JsonBlock():
            return counter.count(json_text(block.value))
        case MediaBlock():
            return media_tokens(block.media_type)
        case OpaqueBlock():  # what is not understood costs something too; its JSON is the nearest guess
            return counter.count(json_text(cast("JsonValue", block.native)))
