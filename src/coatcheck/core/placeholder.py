"""Assemble a placeholder within its token limit: the notice, the previews and the media placeholders.

Pure. The wording comes from ``notice``, the previews from ``preview``. This module decides what goes where, how several
blocks share the budget, and what to omit if it does not fit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from coatcheck.core import preview
from coatcheck.core.arguments import PROPOSED
from coatcheck.core.blocks import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock, to_valid_unicode
from coatcheck.core.notice import (
    block_heading,
    list_line,
    media_placeholder,
    notice,
    reference_line,
    truncation_notice,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coatcheck.core.facts import Estimate, Reference
    from coatcheck.core.plan import Offload
    from coatcheck.core.preview import Previewed
    from coatcheck.core.tokens import CountedOnce

__all__ = (
    "FIRST_SHOWN",
    "LAST_SHOWN",
    "Placeholder",
    "ReadyPreview",
    "Slot",
    "build_placeholder",
    "cut_to",
)

FIRST_SHOWN = 4
LAST_SHOWN = 2

_BEGINS_JSON = re.compile(
    r"""\ufeff? (?: [\s\[]* \{ \s* ["}]
      | \s* \[ [\s\[]* (?: ["\]] | (?: -?\d[\d.eE+-]* | true | false | null | NaN | -?Infinity ) \s* [,\]] ) )""",
    re.VERBOSE,
)
"""A list or object up to its first value or key. A bracket is not enough: logs begin with one too, and so does ``str``
of a list."""

_BEGINNING = 1_000
"""The number of leading characters that are checked."""

_ROUNDS = 3
"""How often the previews are made, smaller each time, before the placeholder does without them."""


class ReadyPreview(NamedTuple):
    """A preview that was made before the placeholder was assembled."""

    budget: int
    """Tokens that it was made for. For another budget, another preview is made."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One content block of a result, with what the placeholder can say about it."""

    block: Block
    """The original block."""

    content: Previewed | None = None
    """Its text, if it has any."""

    reference: Reference | None = None
    """Where it was stored; None if it was not."""

    path: str | None = None
    """The local file that holds it, if the notice is to name it."""

    preview: ReadyPreview | None = None
    """The preview of ``content``, if it was made before the content was saved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placeholder:
    """What goes into the conversation in place of a result."""

    blocks: tuple[Block, ...]
    """First the notice with the previews, then the media placeholders and opaque blocks in their order."""

    tokens: int
    """Tokens of all text blocks."""


def build_placeholder(
    slots: Sequence[Slot],
    decision: Offload,
    *,
    counter: CountedOnce,
    tokens: Estimate,
    retrieval_tool: str | None,
    full_list: Reference | None,
    max_query_bytes: int,
) -> Placeholder | None:
    """Return the placeholder, or None if nothing that fits would say enough.

    Args:
        slots: one for each block of the result; that of a stored block has its reference.
        decision: sets the budget of the previews and the limit of the whole placeholder.
        counter: counts both.
        tokens: what the result would have cost.
        retrieval_tool: the agent's name for the retrieval tool, or None.
        full_list: the stored list of all references; None if they are to be named one by one.
        max_query_bytes: the largest content that can be queried, in bytes.

    """
    stored = [(slot, slot.reference) for slot in slots if slot.reference is not None]
    shown = stored if full_list is None else [*stored[:FIRST_SHOWN], *stored[-LAST_SHOWN:]]
    # Parsing all of it would take as long as its preview, so only its beginning is checked.
    texts = [(slot.content.text, reference) for slot, reference in stored if slot.content is not None]
    is_json = any(
        reference.size <= max_query_bytes and _BEGINS_JSON.match(text, 0, _BEGINNING) for text, reference in texts
    )
    selectors = {name: form for name, form in PROPOSED.items() if texts and (is_json or name != "query")}
    for listed, marks in ((shown, True), (shown, False), ([], False)):
        lines = [reference_line(reference, path=slot.path) for slot, reference in listed]
        if full_list is not None:
            lines.append(list_line(full_list, hidden=len(stored) - len(listed)))
        if not lines:
            return None
        head = partial(
            notice,
            lines,
            blocks=sum(reference.items or 1 for _, reference in stored),
            tokens=tokens,
            retrieval_tool=retrieval_tool,
            selectors=selectors,
        )
        fitted = _fit(head, [slot for slot, _ in listed], _rest(slots, marks=marks), decision, counter)
        if fitted is not None:
            return fitted
    return None


def cut_to(
    slots: Sequence[Slot], limit: int, *, counter: CountedOnce, tool_name: str, tokens: Estimate, reason: str
) -> tuple[Block, ...]:
    """Return the blocks of a result that could not be stored, cut to ``limit`` tokens, with a notice that says why."""
    head = truncation_notice(tool_name=tool_name, tokens=tokens, reason=reason)
    lost = [replace(slot, reference=None) for slot in slots]
    rest = _rest(lost, marks=True)
    budget = limit - _assemble(head, "", rest, counter).tokens
    if budget < 0:  # for thousands of images, even the placeholders are too much
        rest = _rest(lost, marks=False)
        budget = limit - _assemble(head, "", rest, counter).tokens
    while True:
        previews = _previews(lost, counter, budget=budget)
        made = _assemble(head, previews, rest, counter)
        over = made.tokens - limit
        if over <= 0 or not previews:
            return made.blocks
        budget -= over


def _fit(
    head: Callable[..., str], listed: Sequence[Slot], rest: tuple[Block, ...], decision: Offload, counter: CountedOnce
) -> Placeholder | None:
    """Return the placeholder with previews as large as the limit allows, or None if it is too large even without them.

    ``head`` is ``notice`` with every argument but ``whole``, which depends on the previews.
    """
    budget = decision.preview_tokens
    for _ in range(_ROUNDS):
        previews = _previews(listed, counter, budget=budget)
        content = listed[0].content if len(listed) == 1 and not rest else None
        whole = content is not None and previews == content.text
        made = _assemble(head(whole=whole), previews, rest, counter)
        over = 0 if decision.limit is None else made.tokens - decision.limit
        if over <= 0:
            return made
        budget = max(0, min(budget, counter.count(previews)) - over)
    made = _assemble(head(), "", rest, counter)
    return made if decision.limit is None or made.tokens <= decision.limit else None


def _assemble(head: str, previews: str, rest: tuple[Block, ...], counter: CountedOnce) -> Placeholder:
    parts = (to_valid_unicode(f"{head}\n\n"), to_valid_unicode(previews)) if previews else (to_valid_unicode(head),)
    tokens = counter.count_parts(*parts) + sum(
        counter.count(block.text) for block in rest if isinstance(block, TextBlock)
    )
    return Placeholder(blocks=(TextBlock("".join(parts)), *rest), tokens=tokens)


def _rest(slots: Sequence[Slot], *, marks: bool) -> tuple[Block, ...]:
    """Return what follows the notice: placeholders for media blocks, if ``marks``, and opaque blocks unchanged."""
    rest: list[Block] = []
    for slot in slots:
        match slot.block:
            case MediaBlock() as media if media.data:
                if marks:
                    reference = slot.reference.id if slot.reference is not None else None
                    mark = media_placeholder(media.media_type, len(media.data), name=media.name, reference=reference)
                    rest.append(TextBlock(to_valid_unicode(mark)))
            case MediaBlock() | OpaqueBlock():
                rest.append(slot.block)
            case TextBlock() | JsonBlock():
                pass
    return tuple(rest)


def _previews(slots: Sequence[Slot], counter: CountedOnce, *, budget: int) -> str:
    """Return the previews of the text in ``slots``. What short text does not need of the budget goes to longer text."""
    texts = [(slot, slot.content) for slot in slots if slot.content is not None and slot.content.text]
    if len(texts) == 1:
        [(slot, content)] = texts
        ready = slot.preview
        return ready.text if ready and ready.budget == budget else preview.preview(content, counter, budget=budget)
    made: dict[int, str] = {}
    left = budget
    by_length = sorted(enumerate(texts), key=lambda numbered: len(numbered[1][1].text))
    for position, (number, (slot, content)) in enumerate(by_length):
        heading = f"{block_heading(slot.reference)}\n" if slot.reference is not None else ""
        share = left // (len(texts) - position) - counter.count(heading)
        shown = preview.preview(content, counter, budget=share) if share > 0 else ""
        if shown:
            made[number] = f"{heading}{shown}"
            left -= counter.count(made[number]) + 1
    joined = "\n\n".join(made[number] for number in sorted(made))
    more = counter.count(joined) - budget  # joined previews may take more tokens than separate ones
    return joined if more <= 0 or not joined else _previews(slots, counter, budget=budget - more)
