"""Turns a recorded conversation into a report: counts its tokens, and passes each tool result through an ``Offloader``.

The offloader is real, with an ``InMemoryStorage``: a replay offloads what an agent would have offloaded, counts the
actual placeholder, and reads back through the actual retrieval tool. ``billing`` calculates what each part costs;
``needs`` finds what the agent needed of a result.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from coatcheck.core.arguments import MAX_SELECTOR_CHARACTERS
from coatcheck.core.blocks import Block, JsonBlock, MediaBlock, Offloaded, OpaqueBlock, TextBlock, json_text
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.notice import OPENINGS, RETRIEVAL_DESCRIPTION, RETRIEVAL_TOOL
from coatcheck.core.plan import media_tokens
from coatcheck.core.references import find_references
from coatcheck.core.settings import MAX_INLINE_TOKENS, MIN_BUDGET
from coatcheck.engine.failures import log_failure, logger
from coatcheck.offloader import Offloader
from coatcheck.replay.billing import (
    DEFINITION,
    OTHER,
    Bill,
    BilledDefinition,
    BilledPart,
    BilledReadBack,
    BilledResult,
    BilledTurn,
    BilledWords,
    Share,
    bill,
)
from coatcheck.replay.conversation import Conversation, Result, Turn, Words
from coatcheck.replay.needs import find_needs, holds
from coatcheck.replay.report import Amount, Assumptions, ConversationReport, Leaving, Row
from coatcheck.retrieval import retrieval_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coatcheck.core.blocks import JsonValue, ToolResult
    from coatcheck.core.tokens import TokenCounter
    from coatcheck.replay.conversation import Part
    from coatcheck.replay.needs import Need

__all__ = (
    "CountedConversation",
    "Left",
    "Search",
    "conversation_report",
    "count_conversation",
    "definition_tokens",
    "find_left",
    "offloaded_parts",
    "offloader_for",
    "plain_parts",
    "reads_by_need",
    "reads_of_each",
)

_STRANDS_OPENING = "[Offloaded: "
"""How a placeholder of Strands' own offloader begins."""

_SCOPE = "replay"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedConversation:
    """A conversation with everything that does not depend on the offloader's settings, counted once for all of them."""

    conversation: Conversation
    plain: Sequence[BilledPart]
    """Its parts as recorded, with their tokens."""

    needs: Mapping[int, Sequence[Need]]
    """What later turns used of its results, by the position of the result."""


@dataclass(frozen=True, slots=True)
class Search:
    """A read-back that the agent could not have done without."""

    turn: int
    """Position of the first turn that wrote what the placeholder does not show."""

    tokens: int
    """Tokens of the answers to a search for all that the placeholder does not show."""


@dataclass(frozen=True, slots=True)
class Left:
    """A result that is offloaded."""

    tool: str
    tokens: int
    placeholder_tokens: int
    search: Search | None
    """None if the placeholder shows everything that the agent used later."""


def definition_tokens(counter: TokenCounter) -> int:
    """Return the tokens of the retrieval tool's definition as OpenAI's clients send it, in compact JSON."""
    schema = retrieval_schema()
    function: JsonValue = {"name": RETRIEVAL_TOOL, "description": RETRIEVAL_DESCRIPTION, "parameters": schema}
    return counter.count(json_text({"type": "function", "function": function}))


def count_conversation(conversation: Conversation, counter: TokenCounter) -> CountedConversation:
    """Return a conversation with its tokens, and with what its later turns needed.

    Raises:
        InvalidRequest: it holds a JSON value that no tool can have returned, for example nested a thousand levels deep.

    """
    try:
        plain = plain_parts(conversation.parts, counter)
    except InvalidRequest as error:
        msg = f"{conversation.source}: {conversation.name}: {error}"
        raise InvalidRequest(msg) from None
    return CountedConversation(conversation=conversation, plain=plain, needs=find_needs(conversation.parts))


def conversation_report(
    counted: CountedConversation, assumptions: Assumptions, *, counter: TokenCounter
) -> ConversationReport:
    """Return what a conversation was billed, and what it would have been billed with offloading."""
    conversation, plain, parts = counted.conversation, counted.plain, counted.conversation.parts
    offloaded = {
        threshold: find_left(
            parts,
            plain,
            needs=counted.needs,
            offloader=offloader_for(
                threshold, assumptions.preview_tokens, counter=counter, answer_tokens=assumptions.retrieval_tokens
            ),
        )
        for threshold in assumptions.thresholds
    }
    without = bill([BilledWords(assumptions.prefix_tokens), *plain])
    already_offloaded = sum(isinstance(part, Result) and _is_offloaded(part) for part in parts)
    # If the recorded agent offloaded something, or could have, the definition was sent.
    definition = 0 if already_offloaded or conversation.has_tool else assumptions.definition_tokens
    billed = [
        _billed(plain, left, threshold, assumptions=assumptions, definition=definition)
        for threshold, left in offloaded.items()
    ]
    results = Counter(part.tool for part in plain if isinstance(part, BilledResult))
    return ConversationReport(
        row=_row(conversation.name, results.total(), without.total, billed=billed),
        source=conversation.source,
        recorded_as=conversation.recorded_as,
        counted=conversation.counted,
        turns=sum(isinstance(part, Turn) for part in parts),
        already_offloaded=already_offloaded,
        tools=tuple(
            _row(tool, results[tool], without.shares.get(tool, Share()), billed=billed, tool=tool)
            for tool in (*results, DEFINITION, OTHER)
        ),
        leaving=tuple(_leaving(plain, offloaded)),
        sizes=tuple(part.tokens for part in plain if isinstance(part, BilledResult)),
    )


def plain_parts(parts: Sequence[Part], counter: TokenCounter) -> list[BilledPart]:
    """Return the parts of a conversation as recorded, with their tokens."""
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


def offloader_for(
    threshold: int, preview_tokens: int | None, *, counter: TokenCounter, answer_tokens: int | None = None
) -> Offloader:
    """Return an ``Offloader`` with these settings, and all others at their defaults."""
    return Offloader(
        max_result_tokens=threshold,
        preview_tokens=None if preview_tokens is None else min(preview_tokens, threshold - 1),
        max_inline_tokens=max(MAX_INLINE_TOKENS, threshold),
        max_retrieval_tokens=None if answer_tokens is None else max(MIN_BUDGET, answer_tokens),
        token_counter=counter,
    )


def find_left(
    parts: Sequence[Part],
    plain: Sequence[BilledPart],
    *,
    needs: Mapping[int, Sequence[Need]],
    offloader: Offloader,
) -> dict[int, Left]:
    """Return the results that ``offloader`` takes out of a conversation, by position."""
    found: dict[int, Left] = {}
    for position, (part, billed) in enumerate(zip(parts, plain, strict=True)):
        if isinstance(part, Result) and not _is_offloaded(part):
            try:
                left = _left(part.result, billed.tokens, needs.get(position, ()), offloader=offloader)
            except Exception as error:  # noqa: BLE001 - one bad result of thousands must not fail the whole replay
                log_failure(logger, f"a result of {part.result.tool_name!r} was replayed as it is", error=error)
            else:
                found.update({position: left} if left else {})
    return found


def _left(result: ToolResult, tokens: int, needs: Sequence[Need], *, offloader: Offloader) -> Left | None:
    outcome = offloader.offload(result.blocks, tool_name=result.tool_name, is_error=result.is_error, scope=_SCOPE)
    if not isinstance(outcome, Offloaded):
        return None
    missing = [need for need in needs if not holds(outcome.text, need.span)]
    return Left(
        tool=result.tool_name,
        tokens=tokens,
        placeholder_tokens=_tokens(outcome.blocks, offloader.settings.counter),
        search=_search(offloader, outcome, missing) if missing else None,
    )


def _search(offloader: Offloader, outcome: Offloaded, missing: Sequence[Need]) -> Search:
    """Search the offloaded content for what is missing, one reference after another, until all of it is found."""
    spans = [need.span for need in missing]
    tokens = 0
    for reference in outcome.references:
        answer = offloader.retrieve(str(reference), pattern=_pattern(spans), scope=_SCOPE).text
        tokens += offloader.settings.counter.count(answer)
        spans = [span for span in spans if not holds(answer.partition("\n")[2], span)]
        if not spans:
            break
    return Search(turn=min(need.turn for need in missing), tokens=tokens)


def reads_by_need(left: Mapping[int, Left]) -> dict[int, list[BilledReadBack]]:
    """Return the read-backs that the agent needed to go on as it did, by the turn that follows them."""
    reads: dict[int, list[BilledReadBack]] = {}
    for each in left.values():
        if each.search is not None:
            reads.setdefault(each.search.turn, []).append(BilledReadBack(each.tool, each.search.tokens))
    return reads


def reads_of_each(
    left: Mapping[int, Left], plain: Sequence[BilledPart], *, times: int, tokens: int
) -> dict[int, list[BilledReadBack]]:
    """Return ``times`` read-backs of each offloaded result, right after it, by the turn that follows them.

    An answer has ``tokens`` tokens, but never more than the result.
    """
    turns = [position for position, part in enumerate(plain) if isinstance(part, BilledTurn)]
    reads: dict[int, list[BilledReadBack]] = {}
    for position, each in left.items():
        following = next((turn for turn in turns if turn > position), None)
        if following is not None:
            reads.setdefault(following, []).extend([BilledReadBack(each.tool, min(tokens, each.tokens))] * times)
    return reads


def offloaded_parts(
    plain: Sequence[BilledPart],
    left: Mapping[int, Left],
    *,
    reads: Mapping[int, Sequence[BilledReadBack]],
    definition: int,
    when_needed: bool = False,
) -> list[BilledPart]:
    """Return the parts of a conversation with offloading.

    Args:
        plain: the parts as recorded.
        left: the offloaded results, by position.
        reads: read-backs, by the position of the turn that follows them.
        definition: tokens of the retrieval tool's definition.
        when_needed: whether the tool is offered from the first offloaded result on, not from the beginning.

    """
    offered = min(left, default=None) if when_needed else 0
    made: list[BilledPart] = []
    for position, part in enumerate(plain):
        if position == offered:
            made.append(BilledDefinition(definition))
        made += reads.get(position, ())
        gone = left.get(position)
        made.append(part if gone is None else BilledResult(gone.tool, gone.placeholder_tokens))
    return made


def _pattern(spans: Sequence[str]) -> str:
    """Return a pattern for as many of the spans as fit into one."""
    pattern = re.escape(spans[0])
    for span in spans[1:]:
        longer = f"{pattern}|{re.escape(span)}"
        if len(longer) > MAX_SELECTOR_CHARACTERS:
            break
        pattern = longer
    return pattern


@dataclass(frozen=True, slots=True, kw_only=True)
class _Billed:
    threshold: int
    bill: Bill
    never_read: Bill
    each_read: Bill
    offloaded: Counter[str]
    read_back: Counter[str]


def _billed(
    plain: Sequence[BilledPart], left: dict[int, Left], threshold: int, *, assumptions: Assumptions, definition: int
) -> _Billed:
    tokens = assumptions.answer_at(threshold)
    once = reads_of_each(left, plain, times=1, tokens=tokens)
    if assumptions.retrievals is None:
        reads = reads_by_need(left)
    else:
        reads = reads_of_each(left, plain, times=assumptions.retrievals, tokens=tokens)

    def billed(reads: Mapping[int, Sequence[BilledReadBack]]) -> Bill:
        made = offloaded_parts(plain, left, reads=reads, definition=definition)
        return bill([BilledWords(assumptions.prefix_tokens), *made])

    return _Billed(
        threshold=threshold,
        bill=billed(reads),
        never_read=billed({}),
        each_read=billed(once),
        offloaded=Counter(each.tool for each in left.values()),
        read_back=Counter(read.tool for group in reads.values() for read in group),
    )


def _row(name: str, results: int, without: Share, *, billed: Sequence[_Billed], tool: str | None = None) -> Row:
    """Return the row of one tool, or of the whole conversation if ``tool`` is None."""

    def share(bill: Bill) -> Share:
        return bill.total if tool is None else bill.shares.get(tool, Share())

    def count(counts: Counter[str]) -> int:
        return counts.total() if tool is None else counts[tool]

    return Row(
        name=name,
        results=results,
        without=without,
        amounts=tuple(
            Amount(
                threshold=each.threshold,
                offloaded=count(each.offloaded),
                read_back=count(each.read_back),
                billed=share(each.bill),
                never_read=share(each.never_read),
                each_read=share(each.each_read),
            )
            for each in billed
        ),
    )


def _leaving(plain: Sequence[BilledPart], offloaded: Mapping[int, Mapping[int, Left]]) -> list[Leaving]:
    leaving: list[Leaving] = []
    turn = 0
    for position, part in enumerate(plain):
        turn += isinstance(part, BilledTurn)
        shown = {limit: left[position].placeholder_tokens for limit, left in offloaded.items() if position in left}
        if shown and isinstance(part, BilledResult):
            leaving.append(Leaving(tool=part.tool, turn=turn, tokens=part.tokens, placeholder_tokens=shown))
    return leaving


def _is_offloaded(part: Result) -> bool:
    """Return whether the recording shows a result as offloaded, by a mark or by the text of a placeholder."""
    first = next(iter(part.result.blocks), None)
    if part.offloaded or not isinstance(first, TextBlock):
        return part.offloaded
    text = first.text
    return text.startswith(_STRANDS_OPENING) or (text.startswith(OPENINGS) and any(find_references(text)))


def _tokens(blocks: Sequence[Block], counter: TokenCounter) -> int:
    return sum(_tokens_of(block, counter) for block in blocks)


def _tokens_of(block: Block, counter: TokenCounter) -> int:
    match block:
        case TextBlock():
            return counter.count(block.text)
        case JsonBlock():
            return counter.count(json_text(block.value))
        case MediaBlock():
            return media_tokens(block)
        case OpaqueBlock():  # unknown content costs tokens too; its JSON is the best estimate
            return counter.count(json_text(cast("JsonValue", block.native)))
