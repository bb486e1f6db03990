"""Decide whether a tool result stays in the conversation or is offloaded.

Pure. Content blocks, the rule for the tool, the settings and a counter go in; ``Keep`` or ``Offload`` comes out, with
the reason and the sizes that the placeholder needs. Nothing here stores anything or writes messages. If a tool's policy
is a callable, the engine calls it.
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
one, a placeholder may cost more than the threshold, so it gets no limit."""

PREVIEW_SHARE = 0.4
"""The preview's share of the threshold. The rest is room for the notice and the references."""

CHARACTERS_PER_TOKEN = 4
"""Converts a threshold in characters to a budget in tokens. The usual estimate."""

NOTICE_TOKENS = 160
"""Tokens of a placeholder for one block without its preview, rounded up. It takes about 85, with an odd tool name up to
111, and more with a path."""

REFERENCE_TOKENS = 60
"""Tokens of each further block, rounded up: the line of its reference, and its heading or media placeholder."""

_MEDIA_TOKENS = {"image": 1_600, "audio": 1_920, "video": 15_780}
"""Approximate tokens of one media block in a model's window, whatever its base64 length. Image: the most that Claude
uses for one at its usual resolution. Audio and video: one minute at Gemini's 32 and 263 tokens per second."""

_DOCUMENT_TOKENS = 3_000
"""Tokens of one dense page of a document, by Anthropic's number for PDF."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """The result stays in the conversation unchanged."""

    reason: KeepReason
    """Why it stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offload:
    """The result is stored, and a placeholder replaces it in the conversation."""

    limit: int | None
    """The most tokens of the whole placeholder: the threshold that fired. None for ``Always``, and for a threshold
    below ``SHRINK_FROM_TOKENS``."""

    preview_tokens: int
    """The most tokens of preview in the placeholder."""

    exact_up_to: int
    """How many tokens of the result are counted for the notice: as many as were counted for the decision. The rest is
    extrapolated."""


Decision: TypeAlias = Keep | Offload

_WITHIN = Keep(reason="within the threshold")
_POLICY = Keep(reason="policy")
_ERROR = Keep(reason="error")


class Measure:
    """The sizes of one result, counted as far as each question needs and no further."""

    def __init__(self, blocks: Sequence[Block], counter: TokenCounter, *, measured_tokens: int | None = None) -> None:
        """Prepare ``blocks``; ``measured_tokens`` is the framework's own count of the whole result, if it has one.

        Raises:
            InvalidRequest: a JsonBlock holds a value that is not JSON.

        """
        self.parts: list[Part] = []
        """Each block, with the text that is stored for it."""
        self.media: int = 0
        """Estimated tokens of all media blocks."""
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
        """The text of each block that has any."""
        self.exceeded: int = -1
        """The most tokens that the result is known to exceed, from the questions so far. Negative if nothing is
        known."""
        self.counter: CountedOnce = CountedOnce(counter)
        """Counts the result, its preview and its placeholder."""
        self._measured = measured_tokens
        self._estimates: dict[int, Estimate] = {}

    def exceeds(self, limit: int, *, as_measured: bool = True) -> bool:
        """Return whether the result has more than ``limit`` tokens, by the framework's count or by our counter."""
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
        return left < 0

    def estimate(self, *, exact_up_to: int) -> Estimate:
        """Return the tokens of the whole result, estimated once; see ``CountedOnce.estimate``."""
        if self._measured is not None:
            return Estimate(self._measured, exact=True)
        if exact_up_to in self._estimates:
            return self._estimates[exact_up_to]
        texts = self.texts
        if len(texts) > MAX_APART and self.exceeds(exact_up_to, as_measured=False):
            texts = ["\n".join(texts)]  # each one alone is small, and would be counted to its end
        estimates = [self.counter.estimate(text, exact_up_to=exact_up_to) for text in texts]
        exact = all(estimate.exact for estimate in estimates)
        tokens = self.media + sum(estimate.tokens for estimate in estimates)
        self._estimates[exact_up_to] = Estimate(tokens, exact=exact)
        return self._estimates[exact_up_to]


def policy_of(tool_name: str, settings: Settings) -> Policy:
    """Return a tool's policy: by its exact name, by a tuple that contains it, by ``"*"``, or else the default rule."""
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
    """Convert a callable's ``verdict`` to a rule: the default rule if it is not a verdict."""
    if verdict is True:
        return Always()
    if verdict is False:
        return Never()
    return verdict if isinstance(verdict, Rule) else settings.default_rule


def limit_of(policy: Policy, *, settings: Settings, is_error: bool) -> tuple[int, Keep]:
    """Return up to how many tokens a result stays, and why. A negative limit means that tokens alone do not decide."""
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
    """Decide what happens to a result under the rule for its tool."""
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
    """Return the decisions about all results of one step, adjusted so that the step fits into ``budget`` tokens.

    Results within their own threshold are offloaded too, the largest first. If that is not enough, all previews shrink,
    again the largest first. A result stays if a policy or its error mark keeps it, or if its placeholder would cost as
    much.
    """
    measures = [measure for measure, _ in decided]
    decisions = [decision for _, decision in decided]
    sizes = [measure.estimate(exact_up_to=budget).tokens for measure in measures]
    over = sum(map(_tokens_taken, measures, sizes, decisions)) - budget
    for number in sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True):
        size = sizes[number]
        if over > 0 and decisions[number] == _WITHIN and size > SHRINK_FROM_TOKENS:
            # The threshold is what the step has left for this result, which is less than its size.
            decisions[number] = _offload_above(size - 1, settings=settings)
            over += _tokens_taken(measures[number], size, decisions[number]) - size
    if over > 0:
        _shrink_previews(decisions, over)
    return decisions


def _tokens_taken(measure: Measure, size: int, decision: Decision) -> int:
    """Return the tokens that a result takes in the conversation: its ``size``, or about that of its placeholder."""
    if isinstance(decision, Keep):
        return size
    others = sum(1 for part in measure.parts if part.text is None)
    blocks = others + (1 if len(measure.texts) > MAX_APART else len(measure.texts))
    return min(size, decision.preview_tokens + NOTICE_TOKENS + REFERENCE_TOKENS * (min(blocks, MAX_LISTED) - 1))


def _shrink_previews(decisions: list[Decision], over: int) -> None:
    """Take ``over`` tokens from the previews. The largest shrink to equal sizes before a smaller one loses any."""
    offloaded = [(number, decision) for number, decision in enumerate(decisions) if isinstance(decision, Offload)]
    offloaded.sort(key=lambda numbered: numbered[1].preview_tokens)
    left = max(0, sum(decision.preview_tokens for _, decision in offloaded) - over)
    for position, (number, decision) in enumerate(offloaded):
        share = min(decision.preview_tokens, left // (len(offloaded) - position))
        decisions[number] = replace(decision, preview_tokens=share)
        left -= share


def media_tokens(block: MediaBlock) -> int:
    """Estimate the tokens of a media block in a model's window. A text document has at least those of its text."""
    tokens = _MEDIA_TOKENS.get(block.media_type.partition("/")[0], _DOCUMENT_TOKENS)
    return max(tokens, len(block.data) // CHARACTERS_PER_TOKEN) if is_text(block.media_type) else tokens


def _offload_above(threshold: int | None, *, settings: Settings) -> Offload:
    """Return the decision to offload a result above ``threshold`` tokens or, with None, of any size."""
    if threshold is None:
        return Offload(limit=None, preview_tokens=settings.preview_limit, exact_up_to=settings.preview_limit)
    preview = min(settings.preview_limit, int(threshold * PREVIEW_SHARE))
    limit = threshold if threshold >= SHRINK_FROM_TOKENS else None
    return Offload(limit=limit, preview_tokens=preview, exact_up_to=threshold)
