"""Policies: which results are offloaded, per tool.

A policy is one of five frozen values, or a callable that returns one of them. Only these values and their checks belong
here; ``plan`` finds a tool's policy, and applies it to a result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from coatcheck.core.blocks import ToolResult
from coatcheck.core.checks import is_number, require_positive
from coatcheck.core.errors import InvalidRequest

__all__ = (
    "Always",
    "Never",
    "OverChars",
    "OverShare",
    "OverTokens",
    "Policy",
    "PolicyFunction",
    "Rule",
    "Verdict",
    "require_policy",
)


def require_policy(name: object, policy: Policy) -> Policy:
    """Return ``policy`` if it is a rule or a callable, but not a rule's class.

    Raises:
        InvalidRequest: it is not; the message names the key of the policy.

    """
    if not (isinstance(policy, Rule) or callable(policy)) or isinstance(policy, type):
        msg = (
            f"the policy of {name!r} must be Always(), Never(), OverTokens, OverChars, OverShare or a callable,"
            f" not {policy!r}"
        )
        raise InvalidRequest(msg)
    return policy


@dataclass(frozen=True, slots=True)
class Always:
    """Offload at any size, even if the placeholder is longer than the result."""


@dataclass(frozen=True, slots=True)
class Never:
    """Keep a result up to the offloader's ``max_inline_tokens``; a larger one is offloaded even so."""


@dataclass(frozen=True, slots=True)
class OverTokens:
    """Offload a result of more than ``threshold`` tokens. A result of exactly that many stays."""

    threshold: int
    """Tokens, above 0."""

    def __post_init__(self) -> None:
        require_positive("OverTokens threshold", self.threshold)


@dataclass(frozen=True, slots=True)
class OverChars:
    """Offload a result with more than ``threshold`` characters of text and JSON. Media blocks do not count."""

    threshold: int
    """Characters, above 0."""

    def __post_init__(self) -> None:
        require_positive("OverChars threshold", self.threshold)


@dataclass(frozen=True, slots=True)
class OverShare:
    """Offload a result that would take more than ``share`` of the model's context window."""

    share: float
    """Above 0, at most 1: 0.02 is two percent."""

    context_window: int = field(kw_only=True)
    """Size of the model's window in tokens."""

    def __post_init__(self) -> None:
        require_positive("OverShare context_window", self.context_window)
        if not (is_number(self.share) and 0 < self.share <= 1):
            msg = f"OverShare share must be above 0 and at most 1 (0.02 for two percent), not {self.share!r}"
            raise InvalidRequest(msg)

    @property
    def threshold(self) -> int:
        """The share in tokens, at least 1."""
        return max(1, int(self.share * self.context_window))


Rule: TypeAlias = Always | Never | OverTokens | OverChars | OverShare
Verdict: TypeAlias = Rule | bool | None
PolicyFunction: TypeAlias = Callable[[ToolResult], Verdict | Awaitable[Verdict]]
Policy: TypeAlias = Rule | PolicyFunction
"""A rule, or a callable, sync or async, that gets the ``ToolResult`` and returns a rule, ``True`` for ``Always``,
``False`` for ``Never``, or ``None`` for no verdict. Without a verdict, or if it raises, ``max_result_tokens`` decides,
not the policy of ``"*"``. Any other return value counts as no verdict and is logged."""
