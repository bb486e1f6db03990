"""The decision whether a tool result stays in the conversation or leaves it.

Pure: content blocks, the rule that governs the tool, the limits and a counter go in; ``Keep`` or ``Leave`` comes out,
with the reason and the sizes that the placeholder needs. Nothing here stores, words or asks anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from coatcheck.blocks import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock, json_text
from coatcheck.policy import Always, Never, OverChars, OverShare, OverTokens, Rule
from coatcheck.tokens import Estimate, TokenCounter, estimate_tokens, fits_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = (
    "Decision",
    "Keep",
    "KeepReason",
    "Leave",
    "Limits",
    "Measure",
    "certainly_within",
    "choose_for_step",
    "decide",
    "leave",
    "media_tokens",
)

SHRINK_FROM_TOKENS = 512
"""A threshold of at least this many tokens has room for the notice, a reference and a useful preview, so below it the
promise that a placeholder costs less cannot be kept; a smaller threshold is taken at its word."""

PREVIEW_SHARE = 0.4
"""Of the threshold that fired. The rest is room for the notice and the references."""

CHARACTERS_PER_TOKEN = 4
"""For thresholds in characters, where a budget in tokens is needed: the convention that such thresholds come from."""

EXACT_UP_TO = 4
"""Times the threshold: how far ``~T tokens`` is counted rather than extrapolated."""

_MEDIA_TOKENS = {"image": 1_600, "audio": 1_920, "video": 15_780}
"""What one costs at least in a model's window, never by its base64 length. An image: the most that Claude makes of one
at its usual resolution. Audio and video: one minute at Gemini's 32 and 263 tokens a second."""

_DOCUMENT_TOKENS = 3_000
"""One dense page of a document, by Anthropic's figure for PDF."""

KeepReason: TypeAlias = Literal[
    "within the threshold", "policy", "error", "nothing to store", "would not shrink", "storage failed", "exempt"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The numbers of an offloader that a decision needs."""

    preview_tokens: int
    """Tokens of preview at most."""

    max_inline_tokens: int
    """Above this even what a policy or an error mark would keep leaves."""

    offload_errors: bool
    """Whether results marked as errors follow their tool's policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """The result stays as it is."""

    reason: KeepReason
    """Why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """The result leaves the conversation."""

    threshold: int | None
    """The threshold that fired, in tokens; None where the policy is ``Always``."""

    preview_tokens: int
    """Tokens of preview that the placeholder may hold."""

    exact_up_to: int
    """How many tokens of the result are counted, for the notice, rather than extrapolated. The counting is left to
    whoever words the notice: on large content there is a better moment for it than this one."""

    @property
    def limit(self) -> int | None:
        """Tokens that the whole placeholder may cost, or None where a small threshold is taken at its word."""
        return self.threshold if self.threshold is not None and self.threshold >= SHRINK_FROM_TOKENS else None


Decision: TypeAlias = Keep | Leave


class Measure:
    """The sizes of one result, counted as far as each question needs and no further."""

    def __init__(self, blocks: Sequence[Block], counter: TokenCounter, *, measured_tokens: int | None = None) -> None:
        """Look at ``blocks``; ``measured_tokens`` is the framework's own count of the whole result, if it has one.

        Raises:
            InvalidRequest: a JsonBlock holds no JSON value.

        """
        self.texts = tuple(_text_of(block) for block in blocks)
        self.media = sum(
            media_tokens(block.media_type) for block in blocks if isinstance(block, MediaBlock) and block.data
        )
        self.storable = any(text for text in self.texts) or any(
            isinstance(block, MediaBlock) and block.data for block in blocks
        )
        self._counter = counter
        self._measured = measured_tokens
        self._estimates: dict[int, Estimate] = {}

    def exceeds(self, limit: int) -> bool:
        """Return whether the result has more than ``limit`` tokens."""
        return self._measured > limit if self._measured is not None else self.local_exceeds(limit)

    def local_exceeds(self, limit: int) -> bool:
        """Return whether the result has more than ``limit`` tokens by our own counter."""
        left = limit - self.media
        texts = [text for text in self.texts if text]
        for position, text in enumerate(texts):
            if left < 0 or self._counter.exceeds(text, left):
                return True
            if position + 1 < len(texts):
                left -= self._counter.count(text)
        return left < 0

    def characters_exceed(self, limit: int) -> bool:
        """Return whether text and JSON together have more than ``limit`` characters."""
        return sum(len(text) for text in self.texts if text) > limit

    def estimate(self, *, exact_up_to: int) -> Estimate:
        """Return the tokens of the whole result, estimated once; see ``tokens.estimate_tokens``."""
        if self._measured is not None:
            return Estimate(self._measured, exact=True)
        if exact_up_to not in self._estimates:
            self._estimates[exact_up_to] = self._estimate(exact_up_to)
        return self._estimates[exact_up_to]

    def _estimate(self, exact_up_to: int) -> Estimate:
        estimates = [estimate_tokens(text, self._counter, exact_up_to=exact_up_to) for text in self.texts if text]
        exact = all(estimate.exact for estimate in estimates)
        return Estimate(self.media + sum(estimate.tokens for estimate in estimates), exact=exact)


def certainly_within(blocks: Iterable[Block], limit: int) -> bool:
    """Return True if the blocks are text of at most ``limit`` UTF-8 bytes, hence no more tokens; False is unknown."""
    for block in blocks:
        if not isinstance(block, TextBlock) or not fits_bytes(block.text, limit):
            return False
        limit -= len(block.text) if block.text.isascii() else len(block.text) * 4
        if limit < 0:
            return False
    return True


def decide(measure: Measure, rule: Rule, *, limits: Limits, is_error: bool) -> Decision:
    """Return what happens to a result, given the rule that governs its tool."""
    if not measure.storable:
        return Keep(reason="nothing to store")
    if is_error and not limits.offload_errors:
        return _leave_above(limits.max_inline_tokens, measure, limits=limits, reason="error")
    match rule:
        case Always():
            decision: Decision = leave(None, limits=limits)
        case Never():
            decision = _leave_above(limits.max_inline_tokens, measure, limits=limits, reason="policy")
        case OverChars() if measure.characters_exceed(rule.threshold):
            decision = leave(max(1, rule.threshold // CHARACTERS_PER_TOKEN), limits=limits)
        case OverChars():
            decision = _leave_above(limits.max_inline_tokens, measure, limits=limits, reason="within the threshold")
        case OverTokens() | OverShare():
            threshold = min(rule.threshold, limits.max_inline_tokens)
            decision = _leave_above(threshold, measure, limits=limits, reason="within the threshold")
    return decision


def choose_for_step(results: Sequence[tuple[int, int] | None], budget: int, *, spent: int) -> list[int]:
    """Return which kept results of one step must leave as well, largest first, until the step fits.

    Args:
        results: for each result that may leave, its tokens and those of the placeholder in its stead; None for others.
        budget: tokens that the whole step may take.
        spent: tokens of everything that stays or has left already.

    """
    movable = sorted((*sizes, -index) for index, sizes in enumerate(results) if sizes is not None)
    total = spent + sum(size for size, _, _ in movable)
    chosen = []
    while movable and total > budget:
        size, placeholder, negative_index = movable.pop()
        total -= size - placeholder
        chosen.append(-negative_index)
    return sorted(chosen)


def media_tokens(media_type: str) -> int:
    """Return what one medium of this type costs in a model's window, in tokens."""
    return _MEDIA_TOKENS.get(media_type.partition("/")[0], _DOCUMENT_TOKENS)


def _leave_above(threshold: int, measure: Measure, *, limits: Limits, reason: KeepReason) -> Decision:
    return leave(threshold, limits=limits) if measure.exceeds(threshold) else Keep(reason=reason)


def leave(threshold: int | None, *, limits: Limits) -> Leave:
    """Return the decision that a result leaves, because of ``threshold`` tokens or, with None, whatever its size."""
    preview = limits.preview_tokens if threshold is None else min(limits.preview_tokens, int(threshold * PREVIEW_SHARE))
    exact_up_to = EXACT_UP_TO * (threshold if threshold is not None else limits.preview_tokens)
    return Leave(threshold=threshold, preview_tokens=preview, exact_up_to=exact_up_to)


def _text_of(block: Block) -> str | None:
    """Return the text that a block is stored as, or None for media and unknown blocks."""
    match block:
        case TextBlock():
            return block.text
        case JsonBlock():
            return json_text(block.value)
        case MediaBlock() | OpaqueBlock():
            return None
