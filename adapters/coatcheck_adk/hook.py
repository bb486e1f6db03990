"""The hook: hands what a tool returned to the guard in ``coatcheck.adapting``, and finds out whose conversation it is.

Only these belong here. ADK calls the plugin after the tool, so the tool's exceptions never pass through our guard.
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from coatcheck import Never, asks_to_keep
from coatcheck.adapting import Arrival, Batch, OneResult, ScopeOption, resolve_scope
from coatcheck_adk.convert import blocks_of, is_error, may_be_of_mcp, media_tokens, plain_blocks_of, result_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext

    from coatcheck import Block, Offloader

__all__ = ("Result", "begin_call", "end_call", "identity_of", "is_for_others", "logger")

logger: logging.Logger = logging.getLogger("coatcheck_adk")

_UNKNOWN = ("debug_user_id", "debug_session_id")
"""The default user and session of ``Runner.run_debug``. All runs that name none share them."""

_NO_AGENT = "unknown"
"""ADK's agent name for a call that no agent made. Users may give an agent this name too."""


@dataclass(slots=True)
class _Running:
    """A call whose tool is running. An agent used as a tool runs in its own session, made for one call."""

    conversation: tuple[str, str, str]
    call_id: str | None
    within: _Running | None
    ended: bool = False
    """Whether the call is over. Tasks that its tool left behind keep the context variable, but must not use it then."""


_running: ContextVar[_Running | None] = ContextVar("coatcheck_adk_running", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(OneResult[Any]):
    """What one call of a tool returned."""

    raw: Any

    tool: BaseTool

    arguments: dict[str, Any]

    context: ToolContext

    offloader: Offloader

    scope: ScopeOption

    retrieval_tool: str | None

    def look(self) -> Sequence[Batch]:
        """Return the result, unless no model reads it, or ADK extracts a screenshot from it."""
        if is_for_others(self.context) or _is_of_a_computer(self.tool):
            return ()
        holders = (self.tool.custom_metadata, getattr(self.context.run_config, "custom_metadata", None))
        arrival = Arrival(
            content=self.raw,
            convert=blocks_of,
            convert_plainly=plain_blocks_of,
            tool_name=self.tool.name,
            tool_args=self.arguments,
            is_error=is_error(self.raw),
            is_heavy=not isinstance(self.raw, str),
            policy=Never() if any(map(asks_to_keep, holders)) else None,
            measured_tokens=partial(media_tokens, self.raw) if may_be_of_mcp(self.raw) else None,
        )
        batch = Batch(
            arrivals=[arrival],
            offloader=self.offloader,
            scope=partial(resolve_scope, self.scope, self.context),
            identity=partial(identity_of, self.context),
            retrieval_tool=self.retrieval_tool,
        )
        return (batch,)

    def restore(self, blocks: Sequence[Block]) -> dict[str, Any]:
        """Return a new result, with what the model will see."""
        return result_of(blocks, self.raw)


def identity_of(context: ToolContext) -> tuple[str, str, str] | None:
    """Return the app, the user and the session of a call, because ADK's session ids are unique only within one user.

    An agent that runs inside a tool for the same user belongs to that tool's conversation. Return None if nobody named
    the user and the session, or if one of the three is empty, because no part of a scope may be empty.
    """
    found = _conversation_of(context)
    return found if all(found) and found[1:] != _UNKNOWN else None


def is_for_others(context: ToolContext) -> bool:
    """Return whether no model reads the result of a call, because it is for the user, or no agent made the call."""
    is_of_no_agent = context.agent_name == _NO_AGENT and context.get_invocation_context().agent is None
    return bool(context.actions.skip_summarization) or is_of_no_agent


def _is_of_a_computer(tool: BaseTool) -> bool:
    """Return whether ADK extracts a screenshot from a tool's results. It could extract none from a placeholder."""
    from google.adk.tools.computer_use.computer_use_tool import ComputerUseTool  # noqa: PLC0415 - ADK has loaded it

    return isinstance(tool, ComputerUseTool)


def begin_call(context: ToolContext) -> None:
    """Remember the conversation of a call for agents that run inside its tool, which ADK runs in its own task."""
    _running.set(_Running(_conversation_of(context), context.function_call_id, _outer()))


def end_call(context: ToolContext) -> None:
    """Forget the conversation of a call. If another plugin answered before ours, an outer call is current. It stays."""
    if (running := _running.get()) is not None and running.call_id == context.function_call_id:
        running.ended = True
        running.within = _outer()  # calls that each begin in a task left by the one before would add up


def _outer() -> _Running | None:
    """Return the innermost call that has not ended."""
    running = _running.get()
    while running is not None and running.ended:
        running = running.within
    return running


def _conversation_of(context: ToolContext) -> tuple[str, str, str]:
    session, outer = context.session, _outer()
    own = (session.app_name, session.user_id, session.id)
    return outer.conversation if outer is not None and outer.conversation[:2] == own[:2] else own
