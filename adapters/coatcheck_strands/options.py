"""Check and complete what users pass, and read the session's id: the part that is specific to Strands.

Only checking and choosing belong here. A scope comes from the host or from the framework, never from a model.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from coatcheck import InMemoryStorage, InvalidRequest, Offloader, Settings
from coatcheck.adapting import is_count, make_offloader, refuse_options

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strands import Agent

__all__ = ("DEFAULTS", "Call", "check_callable", "check_cycles", "complete_options", "identity_of")

logger: logging.Logger = logging.getLogger("coatcheck_strands")

DEFAULTS = {"max_result_tokens": 2_500, "preview_tokens": 1_000}
"""Defaults of the numbers that users may pass by position."""

_NOT_OURS = ("preview_strategy", "relevance_threshold", "reranker")
"""Keywords that Strands' own offloader will accept soon. Here the kind of content determines the preview."""

_NO_STEPS = "Strands passes on one call at a time, so omit it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The argument of a ``scope`` callable, both when a result is offloaded and when a reference is read."""

    agent: Agent | None
    """The agent that made the call; None if the retrieval tool is called as a method without one."""

    tool_use: Mapping[str, Any] = field(default_factory=dict)
    """The call as the model made it."""

    invocation_state: Mapping[str, Any] = field(default_factory=dict)
    """The state that the agent was invoked with: ``agent("...", invocation_state={"tenant": "t-7"})``."""


def complete_options(
    storage: object,
    *,
    max_result_tokens: int,
    preview_tokens: int,
    has_tool: bool,
    more: Mapping[str, Any],
    owner: type,
) -> dict[str, Any]:
    """Return the options for ``Offloader``; none if ``storage`` is a ready one.

    Raises:
        InvalidRequest: an argument is wrong, or options came with a ready offloader.
        TypeError: there is no such argument.

    """
    options = {name: value for name, value in more.items() if name not in _NOT_OURS}
    if ignored := more.keys() - options.keys():
        logger.warning(
            "coatcheck does not need %s: the kind of content chooses the preview", ", ".join(sorted(ignored))
        )
    numbers = {"max_result_tokens": max_result_tokens, "preview_tokens": preview_tokens}
    if isinstance(storage, Offloader):
        refuse_options([*options, *(name for name, number in numbers.items() if number != DEFAULTS[name])])
        make_offloader(storage, {}, no_steps=_NO_STEPS)  # for the warning
        return {}
    # Without our tool, the agent reads with its own, such as a shell, and needs a path.
    options = {"offload_errors": True, "show_path": not has_tool, **options, **numbers}
    if isinstance(max_result_tokens, int):
        # A higher threshold raises this limit, because Strands' own offloader has no such limit.
        options.setdefault("max_inline_tokens", max(Settings().max_inline_tokens, max_result_tokens))
    # Check the options now, even if the storage will be known only with the agent.
    make_offloader(InMemoryStorage(), options, owner=owner, no_steps=_NO_STEPS)
    return options


def check_callable(name: str, given: object) -> None:
    """Check that an argument is a callable or None.

    Raises:
        InvalidRequest: ``given`` is neither.

    """
    if not (given is None or callable(given)):
        msg = f"{name} must be a callable or None, not {given!r}"
        raise InvalidRequest(msg)


def check_cycles(name: str, cycles: int | None) -> int | None:
    """Return ``cycles`` if it is a valid number of cycles or None.

    Raises:
        InvalidRequest: ``cycles`` is neither an int above 0 nor None.

    """
    if cycles is None or is_count(cycles, least=1):
        return cycles
    msg = f"{name} must be a positive integer or None, not {cycles!r}"
    raise InvalidRequest(msg)


def identity_of(agent: object) -> str | None:
    """Return the id of an agent's session, if a session manager gives it one.

    ``agent.session_id`` is no use: without a session manager it is random, so it changes with a restart.
    """
    session_id = getattr(getattr(agent, "_session_manager", None), "session_id", None)
    return session_id if isinstance(session_id, str) and session_id else None
