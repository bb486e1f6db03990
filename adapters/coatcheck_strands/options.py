"""What users pass, checked: numbers, storages, the scope; and what a scope or a session stands for.

Only checking and choosing belong here. A scope comes from the host or from the framework, never from a model.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from coatcheck import InvalidRequest, Offloader

if TYPE_CHECKING:
    from strands import Agent

__all__ = ("Call", "Scope", "checked_cycles", "checked_scope", "identity_of", "knobs_of", "resolved")

logger = logging.getLogger("coatcheck_strands")

_NOT_OURS = ("preview_strategy", "relevance_threshold", "reranker")
"""Keywords that Strands' own offloader is about to take. Here the kind of content chooses the preview."""

_MAX_INLINE_TOKENS = 50_000
"""As ``Offloader``; but a higher threshold raises it, because Strands' own offloader knows no such limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What a scope may be told by: the same for a result that leaves and for a reference that is read."""

    agent: Agent | None
    """The agent that made the call; None where the retrieval tool is called as a method without one."""

    tool_use: Mapping[str, Any] = field(default_factory=dict)
    """The call as the model made it."""

    invocation_state: Mapping[str, Any] = field(default_factory=dict)
    """What the agent was invoked with: ``agent("...", invocation_state={"tenant": "t-7"})``."""


Scope: TypeAlias = str | Callable[[Call], str | None] | None
"""A text, or a callable on the ``Call``; None, also from the callable, leaves it to the next in line."""


def knobs_of(
    storage: object,
    *,
    max_result_tokens: int,
    preview_tokens: int,
    has_tool: bool,
    more: Mapping[str, Any],
    defaults: tuple[int, int],
) -> dict[str, Any]:
    """Return the arguments for ``Offloader``; none beside a ready one.

    Raises:
        InvalidRequest: an argument is wrong, or a ready offloader was passed together with knobs.
        TypeError: there is no such argument.

    """
    knobs = {name: value for name, value in more.items() if name not in _NOT_OURS}
    if ignored := more.keys() - knobs.keys():
        logger.warning(
            "coatcheck does not need %s: the kind of content chooses the preview", ", ".join(sorted(ignored))
        )
    if isinstance(storage, Offloader):
        if knobs or (max_result_tokens, preview_tokens) != defaults:
            msg = "a ready Offloader has its own knobs; pass a storage with these, or set them on the Offloader"
            raise InvalidRequest(msg)
        return {}
    if knobs.get("max_step_tokens") is not None:
        msg = "max_step_tokens would do nothing here: Strands shows one call at a time, so leave it out"
        raise InvalidRequest(msg)
    if knobs.get("max_retrieval_tokens", 0) is None:  # the tool returns the whole then; what it searches stays bounded
        del knobs["max_retrieval_tokens"]
    # Without our tool the agent reads with one of its own, such as a shell, which needs a path.
    knobs = {
        "offload_errors": True,
        "show_path": not has_tool,
        **knobs,
        "max_result_tokens": max_result_tokens,
        "preview_tokens": preview_tokens,
    }
    if isinstance(max_result_tokens, int):
        knobs.setdefault("max_inline_tokens", max(_MAX_INLINE_TOKENS, max_result_tokens))
    Offloader(**knobs)  # checks them here and now, also where the storage is found only with the agent
    return knobs


def checked_cycles(name: str, cycles: int | None) -> int | None:
    """Return ``cycles`` if it can be a number of cycles, or None.

    Raises:
        InvalidRequest: it is neither a whole number above 0 nor None.

    """
    if cycles is None or (isinstance(cycles, int) and cycles > 0):
        return cycles
    msg = f"{name} must be a positive integer or None, not {cycles!r}"
    raise InvalidRequest(msg)


def checked_scope(scope: Scope) -> Scope:
    """Return ``scope`` if it can be one.

    Raises:
        InvalidRequest: it is neither a non-empty text nor a callable nor None.

    """
    if scope is None or callable(scope) or (isinstance(scope, str) and scope):
        return scope
    msg = f"scope must be a non-empty text, a callable or None, not {scope!r}"
    raise InvalidRequest(msg)


def resolved(scope: Scope, call: Call) -> str | None:
    """Return the scope for a call, asking a callable."""
    return scope(call) if callable(scope) else scope


def identity_of(agent: object) -> str | None:
    """Return the id of an agent's session, if a session manager gives it one.

    ``agent.session_id`` itself is of no use: without a session manager it is random, and another one after a restart.
    """
    session_id = getattr(getattr(agent, "_session_manager", None), "session_id", None)
    return session_id if isinstance(session_id, str) and session_id else None
