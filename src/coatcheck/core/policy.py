"""Policies: which results are offloaded, per tool.

A policy is one of five frozen values, or a callable that returns one of them. ``Policies`` finds the policy of a tool;
the engine calls a callable and passes its verdict on. ``plan`` compares a result with its policy: nothing here looks at
content.

Providers and hosts put marks on a single call: code made it, or its result must stay. Each framework keeps these marks
in a place of its own; the values are the same everywhere, so what they mean is decided here, for all adapters.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from coatcheck.core.blocks import ToolResult
from coatcheck.core.errors import InvalidRequest

__all__ = (
    "Always",
    "MaybeAwaitable",
    "Never",
    "OverChars",
    "OverShare",
    "OverTokens",
    "Policies",
    "Policy",
    "PolicyFunction",
    "Rule",
    "Verdict",
    "asks_to_keep",
    "is_called_by_code",
    "is_count",
    "is_for_code_only",
    "require_flag",
    "require_policy",
    "require_positive",
)

_CODE_EXECUTION = "code_execution"
"""Anthropic's name for code as a caller, without the date that follows."""

_CODE = frozenset({"program", "programmatic"})
"""OpenAI's names for code as a caller, and in ``allowed_callers``."""

Result = TypeVar("Result")
MaybeAwaitable: TypeAlias = Result | Awaitable[Result]
"""What a method or callback returns that may be plain or ``async``."""


def is_count(value: object, *, least: int = 0) -> bool:
    """Return whether ``value`` is a whole number of at least ``least``."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def require_positive(name: str, value: object) -> int:
    """Return ``value`` if it is a whole number above zero.

    Raises:
        InvalidRequest: it is not; the message names the argument.

    """
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        msg = f"{name} must be positive, a whole number above 0, not {value!r}"
        raise InvalidRequest(msg)
    return value


def require_flag(name: str, value: object) -> bool:
    """Return ``value`` if it is True or False. A str such as ``"false"`` is neither, and would count as true.

    Raises:
        InvalidRequest: it is not; the message names the argument.

    """
    if not isinstance(value, bool):
        msg = f"{name} must be True or False, not {value!r}"
        raise InvalidRequest(msg)
    return value


def require_policy(name: object, policy: Policy) -> Policy:
    """Return ``policy`` if it is a rule or a callable, and not the class of a rule.

    Raises:
        InvalidRequest: it is not; the message names what it is the policy of.

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
    """Keep, up to the offloader's ``max_inline_tokens``; a larger result is offloaded even so."""


@dataclass(frozen=True, slots=True)
class OverTokens:
    """Offload a result of more than ``threshold`` tokens. A result of exactly that many stays."""

    threshold: int
    """Tokens, above 0."""

    def __post_init__(self) -> None:
        require_positive("OverTokens threshold", self.threshold)


@dataclass(frozen=True, slots=True)
class OverChars:
    """Offload a result with more than ``threshold`` characters of text and JSON. Media do not count."""

    threshold: int
    """Characters, above 0."""

    def __post_init__(self) -> None:
        require_positive("OverChars threshold", self.threshold)


@dataclass(frozen=True, slots=True)
class OverShare:
    """Offload a result that would take more than ``share`` of the model's context window."""

    share: float
    """The share: above 0, at most 1. 0.02 is two percent."""

    context_window: int = field(kw_only=True)
    """Size of the model's window in tokens."""

    def __post_init__(self) -> None:
        require_positive("OverShare context_window", self.context_window)
        if isinstance(self.share, bool) or not isinstance(self.share, int | float) or not 0 < self.share <= 1:
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
``False`` for ``Never``, or ``None`` for no verdict. Without a verdict, or if it raises, the default applies."""


@dataclass(frozen=True, slots=True)
class Policies:
    """The policy of each tool: its exact name first, then a tuple that holds it, then ``"*"``, then the default."""

    by_tool: Mapping[str | tuple[str, ...], Policy]
    """The policies as the user gave them, by name, by tuple of names, and by ``"*"``."""

    default: Rule
    """The rule of a tool that no key names."""

    def __post_init__(self) -> None:
        for names, policy in self.by_tool.items():
            if not (
                isinstance(names, str) or (isinstance(names, tuple) and all(isinstance(name, str) for name in names))
            ):
                msg = f"a key of policies must be a tool name, a tuple of tool names or '*', not {names!r}"
                raise InvalidRequest(msg)
            require_policy(names, policy)

    def of(self, tool_name: str) -> Policy:
        """Return the policy of ``tool_name``."""
        if not self.by_tool:
            return self.default
        exact = self.by_tool.get(tool_name)
        if exact is not None:
            return exact
        for names, policy in self.by_tool.items():
            if isinstance(names, tuple) and tool_name in names:
                return policy
        return self.by_tool.get("*", self.default)

    def rule_for(self, verdict: Verdict) -> Rule:
        """Return the rule that a callable's ``verdict`` means; the default if it is not a verdict."""
        if verdict is True:
            return Always()
        if verdict is False:
            return Never()
        return verdict if isinstance(verdict, Rule) else self.default


def is_called_by_code(caller: object) -> bool:
    """Return whether a call's ``caller`` is code in a provider's container: its result never enters the context."""
    return _is_code(caller.get("type") if isinstance(caller, Mapping) else None)


def is_for_code_only(allowed_callers: object) -> bool:
    """Return whether a tool's ``allowed_callers`` allow code only."""
    if isinstance(allowed_callers, str) or not isinstance(allowed_callers, Collection):
        return False
    return bool(allowed_callers) and all(map(_is_code, allowed_callers))


def asks_to_keep(holder: object) -> bool:
    """Return whether ``holder``, such as a message's metadata, holds ``"coatcheck": "keep"``."""
    return isinstance(holder, Mapping) and holder.get("coatcheck") == "keep"


def _is_code(name: object) -> bool:
    return isinstance(name, str) and (name in _CODE or name.startswith(_CODE_EXECUTION))
