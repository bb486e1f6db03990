"""The decision whether a tool result stays in the conversation or is offloaded.

Pure: content blocks, the rule that governs the tool, the settings and a counter go in; ``Keep`` or ``Offload`` comes
out, with the reason and the sizes that the placeholder needs. Nothing here stores, words or asks anything: where the
policy of a tool is a callable, the engine calls it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from coatcheck.core.blocks import (
    Block,
    JsonBlock,
    KeepReason,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    is_text,
    json_text,
)
from coatcheck.core.facts import Estimate
from coatcheck.core.items import MAX_APART, Part
from coatcheck.core.notice import MAX_LISTED
from coatcheck.core.policy import Always, Never, OverChars, OverShare, OverTokens, Rule
from coatcheck.core.tokens import CountedOnce, TokenCounter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coatcheck.core.policy import Policy, Verdict
    from coatcheck.core.settings import Settings

__all__ = (
    "PREVIEW_SHARE",
    "Decision",
    "Keep",
    "Measure",
    "Offload",
    "decide",
    "fit_step",
    "limit_of",
    "media_tokens",
    "policy_of",
    "rule_of",
)

SHRINK_FROM_TOKENS = 512
"""A threshold of at least this many tokens has room for the notice, a reference and a useful preview. With a smaller
one, a placeholder cannot be promised to cost less than the threshold, which is then taken at its word."""

PREVIEW_SHARE = 0.4
"""The part of the threshold that the preview gets. The rest is room for the notice and the references."""

CHARACTERS_PER_TOKEN = 4
"""Turns a threshold in characters into a budget in tokens. The usual estimate."""

NOTICE_TOKENS = 160
"""What a placeholder of one block takes without its preview, rounded up. It takes 95, with an odd tool name 120, and
more with a path."""

REFERENCE_TOKENS = 60
"""What each further block takes: the line of its reference, and the heading or the mark, rounded up."""

_MEDIA_TOKENS = {"image": 1_600, "audio": 1_920, "video": 15_780}
"""About how many tokens one takes in a model's window, whatever its base64 length. An image: the most that Claude makes
of one at its usual resolution. Audio and video: one minute at Gemini's 32 and 263 tokens a second."""

_DOCUMENT_TOKENS = 3_000
"""One dense page of a document, by Anthropic's figure for PDF."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """The result stays as it is."""

    reason: KeepReason
    """Why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload:
    """The result is stored, and a placeholder replaces it in the conversation."""

    limit: int | None
    """Tokens that the whole placeholder may cost: the threshold that fired. None for ``Always``, and where a threshold
    is so small that it is taken at its word."""

    preview_tokens: int
    """Tokens of preview that the placeholder may hold."""

    exact_up_to: int
    """How many tokens of the result are counted for the notice: as many as were counted to decide. What is beyond that
    is extrapolated."""


Decision: TypeAlias = Keep | Offload

_WITHIN = Keep(reason="within the threshold")
_POLICY = Keep(reason="policy")
_ERROR = Keep(reason="error")


class Measure:
    """The sizes of one result, counted as far as each question needs and no further."""

    def __init__(self, blocks: Sequence[Block], counter: TokenCounter, *, measured_tokens: int | None = None) -> None:
        """Look at ``blocks``; ``measured_tokens`` is the framework's own count of the whole result, if it has one.

        Raises:
            InvalidRequest: a JsonBlock holds no JSON value.

        """
        self.parts: list[Part] = []
        """Each block, with the text that it is stored as."""
        self.media: int = 0
        """Tokens of all media."""
        for block in blocks:
            match block:
                case TextBlock():
                    part = Part(block=block, text=block.text)
                case JsonBlock():
                    part = Part(block=block, text=json_text(block.value), content_type="application/json")
                case MediaBlock():
                    part = Part(block=block, content_type=block.media_type)
                    self.media += media_tokens(block) if block.data else 0
                case OpaqueBlock():
                    part = Part(block=block)
            self.parts.append(part)
        self.texts: list[str] = [part.text for part in self.parts if part.text]
        """All texts that are not empty."""
        self.exceeded: int = -1
        """Tokens that the result is known to exceed, from what was asked so far; below 0 nothing is known."""
        self.counter: CountedOnce = CountedOnce(counter)
        """Counts the result, its preview and its placeholder."""
        self._measured = measured_tokens
        self._estimates: dict[int, Estimate] = {}

    def exceeds(self, limit: int, *, as_measured: bool = True) -> bool:
        """Return whether the result has more than ``limit`` tokens: as the framework measured it, or by our counter."""
        if as_measured and self._measured is not None:
            return self._measured > limit
        if limit <= self.exceeded:
            return True
        left = limit - self.media
        for position, text in enumerate(self.texts):
            if left < 0 or self.counter.exceeds(text, left):
                self.exceeded = limit
                return True
            if position + 1 < len(self.texts):
                left -= self.counter.count(text)
        if left < 0:
            self.exceeded = limit
        return left < 0

    def estimate(self, *, exact_up_to: int) -> Estimate:
        """Return the tokens of the whole result, estimated once; see ``CountedOnce.estimate``."""
        if self._measured is not None:
            return Estimate(self._measured, exact=True)
        if exact_up_to in self._estimates:
            return self._estimates[exact_up_to]
        texts = self.texts
        if len(texts) > MAX_APART and self.exceeds(exact_up_to, as_measured=False):
            texts = ["\n".join(texts)]  # each of them alone is small, and would be counted to its end
        estimates = [self.counter.estimate(text, exact_up_to=exact_up_to) for text in texts]
        exact = all(estimate.exact for estimate in estimates)
        tokens = self.media + sum(estimate.tokens for estimate in estimates)
        self._estimates[exact_up_to] = Estimate(tokens, exact=exact)
        return self._estimates[exact_up_to]


def policy_of(tool_name: str, settings: Settings) -> Policy:
    """Return the policy of a tool: that of its exact name, of a tuple that holds it, of ``"*"``, or the threshold."""
    policies = settings.policies
    if not policies:
        return settings.default_rule
    exact = policies.get(tool_name)
    if exact is not None:
        return exact
    for names, policy in policies.items():
        if isinstance(names, tuple) and tool_name in names:
            return policy
    return policies.get("*", settings.default_rule)


def rule_of(verdict: Verdict, settings: Settings) -> Rule:
    """Return the rule that a callable's ``verdict`` means; the default if it is not a verdict."""
    if verdict is True:
        return Always()
    if verdict is False:
        return Never()
    return verdict if isinstance(verdict, Rule) else settings.default_rule


def limit_of(policy: Policy, *, settings: Settings, is_error: bool) -> tuple[int, Keep]:
    """Return with how many tokens a result stays, and why; below 0 if its tokens alone do not decide."""
    if is_error and not settings.offload_errors:
        return settings.max_inline_tokens, _ERROR
    if not isinstance(policy, Rule):  # a callable
        return -1, _WITHIN
    match policy:
        case Never():
            return settings.max_inline_tokens, _POLICY
        case OverTokens() | OverShare():
            return min(policy.threshold, settings.max_inline_tokens), _WITHIN
        case Always() | OverChars():
            return -1, _WITHIN


def decide(measure: Measure, rule: Rule, *, settings: Settings, is_error: bool) -> Decision:
    """Return what happens to a result, given the rule that governs its tool."""
    if not measure.texts and not measure.media:
        return Keep(reason="nothing to store")
    limit, reason = limit_of(rule, settings=settings, is_error=is_error)
    if limit < 0:
        match rule:
            case Always():
                return _offload_above(None, settings=settings)
            case OverChars():
                if sum(map(len, measure.texts)) > rule.threshold:
                    return _offload_above(max(1, rule.threshold // CHARACTERS_PER_TOKEN), settings=settings)
            case Never() | OverTokens() | OverShare():
                pass  # each has a limit
        limit = settings.max_inline_tokens
    return _offload_above(limit, settings=settings) if measure.exceeds(limit) else reason


def fit_step(decided: Sequence[tuple[Measure, Decision]], budget: int, *, settings: Settings) -> list[Decision]:
    """Return the decisions about all results of one step, adjusted until the step fits into ``budget`` tokens.

    Results within their own threshold are offloaded too, the largest first. If that is not enough, all previews become
    smaller, the largest first again. A result that a policy or an error mark keeps stays, and so does one that is so
    small that its placeholder would cost as much.
    """
    measures = [measure for measure, _ in decided]
    decisions = [decision for _, decision in decided]
    sizes = [measure.estimate(exact_up_to=budget).tokens for measure in measures]
    over = sum(map(_tokens_taken, measures, sizes, decisions)) - budget
    for number in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
        size = sizes[number]
        if over > 0 and decisions[number] == _WITHIN and size > SHRINK_FROM_TOKENS:
            # The threshold that fired is what the step had left for this result, which is less than the result takes.
            decisions[number] = _offload_above(size - 1, settings=settings)
            over += _tokens_taken(measures[number], size, decisions[number]) - size
    if over > 0:
        _shrink_previews(decisions, over)
    return decisions


def _tokens_taken(measure: Measure, size: int, decision: Decision) -> int:
    """Return what a result takes in the conversation: its own ``size``, or about that of its placeholder."""
    if isinstance(decision, Keep):
        return size
    others = sum(1 for part in measure.parts if part.text is None)
    blocks = others + (1 if len(measure.texts) > MAX_APART else len(measure.texts))
    return min(size, decision.preview_tokens + NOTICE_TOKENS + REFERENCE_TOKENS * (min(blocks, MAX_LISTED) - 1))


def _shrink_previews(decisions: list[Decision], over: int) -> None:
    """Take ``over`` tokens from the previews, so that the largest become equal before a smaller one loses any."""
    offloaded = [(number, decision) for number, decision in enumerate(decisions) if isinstance(decision, Offload)]
    offloaded.sort(key=lambda numbered: numbered[1].preview_tokens)
    left = max(0, sum(decision.preview_tokens for _, decision in offloaded) - over)
    for position, (number, decision) in enumerate(offloaded):
        share = min(decision.preview_tokens, left // (len(offloaded) - position))
        decisions[number] = replace(decision, preview_tokens=share)
        left -= share


def media_tokens(block: MediaBlock) -> int:
    """Return about what a medium costs in a model's window, in tokens; a document of text, at least its text."""
    tokens = _MEDIA_TOKENS.get(block.media_type.partition("/")[0], _DOCUMENT_TOKENS)
    return max(tokens, len(block.data) // CHARACTERS_PER_TOKEN) if is_text(block.media_type) else tokens


def _offload_above(threshold: int | None, *, settings: Settings) -> Offload:
    """Return the decision to offload a result, because of ``threshold`` tokens or, with None, whatever its size."""
    if threshold is None:
        return Offload(limit=None, preview_tokens=settings.preview_limit, exact_up_to=settings.preview_limit)
    preview = min(settings.preview_limit, int(threshold * PREVIEW_SHARE))
    limit = threshold if threshold >= SHRINK_FROM_TOKENS else None
    return Offload(limit=limit, preview_tokens=preview, exact_up_to=threshold)
