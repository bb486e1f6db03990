"""Convert Haystack's offload strategies to policies of the core: choose a tool's strategy, and ask for its verdict.

Only choosing and asking belong here; the core acts on the verdict. A strategy's verdict holds whatever the size of the
result. If no strategy matches, the result stays, as Haystack's users expect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from haystack.dataclasses import FileContent, ImageContent, TextContent
from haystack.hooks.tool_result_offloading import AlwaysOffload, NeverOffload, OffloadOverChars, OffloadPolicy

from coatcheck import Always, InvalidRequest, Never, OverChars, OverShare, OverTokens, Policy
from coatcheck_haystack.compat.policy import OffloadOverTokens

if TYPE_CHECKING:
    from haystack.components.agents.state import State
    from haystack.dataclasses import ToolCallResult

__all__ = ("NEVER", "RULES", "Strategies", "policy_for", "require_strategies")

Strategies: TypeAlias = "Mapping[Any, OffloadPolicy | Policy]"
"""By tool name, tuple of names, or ``"*"``. The keys are Any, because a ``dict[str, ...]`` would not fit otherwise."""

ALWAYS, NEVER = Always(), Never()
RULES = (Always, Never, OverTokens, OverChars, OverShare)


def require_strategies(strategies: object, *, policies: object) -> None:
    """Check the strategies that a user passed, and that no policies came with them, because nothing would ask those.

    Raises:
        InvalidRequest: ``strategies`` is not a mapping of tool names, tuples of names and ``"*"`` to policies, or both
            were given.

    """
    if policies is not None:
        msg = "offload_strategies and policies set the same thing: pass only one of them"
        raise InvalidRequest(msg)
    if not isinstance(strategies, Mapping):
        msg = f"offload_strategies must map tool names, tuples of names or '*' to policies, not {strategies!r}"
        raise InvalidRequest(msg)
    for key, strategy in strategies.items():
        if not (isinstance(key, str) or (isinstance(key, tuple) and all(isinstance(name, str) for name in key))):
            msg = f"a key of offload_strategies must be a tool name, a tuple of tool names or '*', not {key!r}"
            raise InvalidRequest(msg)
        if key != "*" and any("*" in name for name in ((key,) if isinstance(key, str) else key)):  # would match no tool
            msg = f"'*' works only alone, for all other tools, not in {key!r}: name each tool, or several in a tuple"
            raise InvalidRequest(msg)
        if isinstance(strategy, type) or not (
            hasattr(strategy, "should_offload") or isinstance(strategy, RULES) or callable(strategy)
        ):
            msg = f"the strategy of {key!r} must be an OffloadPolicy, such as AlwaysOffload(), not {strategy!r}"
            raise InvalidRequest(msg)


def policy_for(result: ToolCallResult, strategies: Strategies, *, state: State) -> Policy:
    """Return the core's policy for one result: a rule if the verdict is certain, else a callable that asks for it."""
    tool_name = result.origin.tool_name
    strategy = _governing(tool_name, strategies)
    kind = type(strategy)
    if strategy is None or kind is NeverOffload:
        return NEVER
    if kind is AlwaysOffload:
        return ALWAYS
    if isinstance(strategy, OffloadOverTokens) and kind is OffloadOverTokens:  # a subclass is asked
        return strategy.rule
    ask = getattr(strategy, "should_offload", None)
    if ask is None:
        return strategy  # type: ignore[return-value] # require_strategies checked that it is one of the core's
    if kind is OffloadOverChars:  # fast, and runs no user code
        return ALWAYS if ask(tool_name, payload_of(result.result), state) else NEVER
    return lambda _: bool(ask(tool_name=tool_name, result=payload_of(result.result), state=state))


def payload_of(content: object) -> str:
    """Return the ``str`` that Haystack's policies judge: all text and all base64, joined."""
    if isinstance(content, str):
        return content
    return "".join(map(_payload, content)) if isinstance(content, Sequence) else ""


def _payload(part: object) -> str:
    match part:
        case TextContent():
            return part.text
        case ImageContent():
            return part.base64_image
        case FileContent():
            return part.base64_data
        case _:
            return ""


def _governing(tool_name: str, strategies: Strategies) -> OffloadPolicy | Policy | None:
    """Return the strategy for a tool: that of its name, else of a tuple that contains it, else of ``"*"``."""
    exact = strategies.get(tool_name)
    if exact is not None:
        return exact
    for key, strategy in strategies.items():
        if isinstance(key, tuple) and tool_name in key:
            return strategy
    return strategies.get("*")
