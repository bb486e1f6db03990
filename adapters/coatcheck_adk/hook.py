"""The hook: what a tool returned, for the guard in ``coatcheck.adapting``, and whose conversation it is.

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
"""The user and the session that ``Runner.run_debug`` takes where nobody named any: all such runs share them."""

_NO_AGENT = "unknown"
"""ADK's name for the agent of a call that no agent made; a user may give an agent this name too."""


@dataclass(slots=True)
class _Running:
    """A call that a tool is running for. An agent that is a tool runs in a session of its own, made for one call."""

    conversation: tuple[str, str, str]
    call_id: str | None
    within: _Running | None
    ended: bool = False
    """Tasks that the tool leaves behind keep the context variable, and must not act for this conversation."""


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
        """Return the result, unless no model reads it, or ADK takes an image out of it."""
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
        """Return another result, with what the model gets to see."""
        return result_of(blocks, self.raw)


def identity_of(context: ToolContext) -> tuple[str, str, str] | None:
    """Return the app, the user and the session of a call: ADK's session ids are unique only within one user.

    An agent that runs inside a tool for the same user belongs to that tool's conversation. None where nobody named the
    user or the session, or where one of the three is empty: no part of a scope may be empty.
    """
    found = _conversation_of(context)
    return found if all(found) and found[1:] != _UNKNOWN else None


def is_for_others(context: ToolContext) -> bool:
    """Return whether no model reads the result of a call: it is for the user, or no agent made the call."""
    is_of_no_agent = context.agent_name == _NO_AGENT and context.get_invocation_context().agent is None
    return bool(context.actions.skip_summarization) or is_of_no_agent


def _is_of_a_computer(tool: BaseTool) -> bool:
    """Return whether ADK takes a screenshot out of the results of a tool. From a placeholder it could take none."""
    from google.adk.tools.computer_use.computer_use_tool import ComputerUseTool  # noqa: PLC0415 - ADK has loaded it

    return isinstance(tool, ComputerUseTool)


def begin_call(context: ToolContext) -> None:
    """Remember the conversation of a call for the agents that run inside its tool, which ADK calls in its own task."""
    _running.set(_Running(_conversation_of(context), context.function_call_id, _outer()))


def end_call(context: ToolContext) -> None:
    """Forget the conversation of a call. If another plugin answered before ours, an outer call is noted: it stays."""
    running = _running.get()
    if running is not None and running.call_id == context.function_call_id:
        running.ended = True


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
