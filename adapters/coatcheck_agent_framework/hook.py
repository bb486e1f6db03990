"""The hook: function middleware that replaces an oversized result with a placeholder.

The middleware hands an ``Output`` to the guard in ``coatcheck.adapting``. The rest of the chain, including the tool,
runs outside the guard. The framework's control flow passes untouched. Any other exception passes too, unless its text
is too large.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from agent_framework import (
    AgentMiddleware,
    Content,
    FunctionMiddleware,
    MiddlewareFailure,
    MiddlewareTermination,
    UserInputRequiredException,
)
from agent_framework.exceptions import ToolException

from coatcheck import Never, asks_to_keep
from coatcheck.adapting import Arrival, Batch, OneResult, RetrievalName, ScopeOption, asettle, resolve_scope
from coatcheck_agent_framework.convert import blocks_of, contents_of, plain_blocks_of
from coatcheck_agent_framework.retrieval import RetrievalTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agent_framework import AgentContext, AgentSession, FunctionInvocationContext

    from coatcheck import Block, Offloader

__all__ = ("Hook", "OffloadMiddleware", "Output", "SessionMiddleware", "Sessions", "logger")

logger: logging.Logger = logging.getLogger("coatcheck_agent_framework")

CONTROL_FLOW = (MiddlewareFailure, MiddlewareTermination, UserInputRequiredException)
"""Exceptions that end a loop or a run, or ask the user. The framework may show the model the text of any other."""


class Sessions:
    """The sessions that the host gave to runs, which tell conversations apart, and the agents of these runs.

    If a run has no session, the framework makes one for the context providers, with an id that no later run has.
    """

    def __init__(self) -> None:
        # Keyed by identity, because a subclass may compare by value.
        self._given: WeakValueDictionary[int, AgentSession] = WeakValueDictionary()
        self._agents: WeakValueDictionary[int, object] = WeakValueDictionary()

    def __deepcopy__(self, _: object) -> Sessions:
        """Return this object, because the tool in a copy of a provider must know the sessions that we record."""
        return self

    def add(self, session: AgentSession | None, *, agent: object) -> None:
        """Remember an agent and the session that it was given, as long as each lives."""
        self._agents[id(agent)] = agent
        if session is not None:
            self._given[id(session)] = session

    def identity_of(self, context: FunctionInvocationContext) -> str | None:
        """Return the id of a call's session; None if the host gave none."""
        session = context.session
        return session.session_id if session is not None and self._given.get(id(session)) is session else None

    def has_agent(self, agent: object) -> bool:
        """Return whether a run of this agent has passed our middleware."""
        return self._agents.get(id(agent)) is agent


class SessionMiddleware(AgentMiddleware):
    """Records an agent, and the session that a host gave to its run. Only agent middleware sees whether it did."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    async def process(self, context: AgentContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Record both, and continue."""
        self._sessions.add(context.session, agent=context.agent)
        await call_next()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """The configuration of the agent's middleware."""

    offloader: Offloader

    scope: ScopeOption

    retrieval: RetrievalName

    sessions: Sessions

    def reads_back(self, tool: object) -> bool:
        """Return whether a tool is a retrieval tool that reads what was offloaded here."""
        return isinstance(tool, RetrievalTool) and tool.offloader is self.offloader


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(OneResult[Any]):
    """What one call of a tool returned, or raised."""

    raw: Any

    context: FunctionInvocationContext

    hook: Hook

    restore: Callable[[Sequence[Block]], Any]
    """Makes a result, or an error, from blocks."""

    def look(self) -> Sequence[Batch]:
        """Return the result or, if the tool raised, the text of the error."""
        is_error = isinstance(self.raw, Exception)
        arrival = Arrival(
            content=str(self.raw) if is_error else self.raw,
            convert=blocks_of,
            convert_plainly=plain_blocks_of,
            tool_name=self.context.function.name,
            tool_args=_arguments_of(self.context.arguments),
            is_error=is_error,
            is_heavy=not is_error and _texts_of(self.raw) is None,
            policy=Never() if asks_to_keep(self.context.kwargs) else None,
        )
        batch = Batch(
            arrivals=[arrival],
            offloader=self.hook.offloader,
            scope=partial(resolve_scope, self.hook.scope, self.context),
            identity=partial(self.hook.sessions.identity_of, self.context),
            retrieval_tool=self.hook.retrieval.find_in(self.context.tools),
        )
        return (batch,)


class OffloadMiddleware(FunctionMiddleware):
    """Offloads what is too large in the result that the tool and later middleware return."""

    def __init__(self, hook: Hook) -> None:
        self._hook = hook

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Let the call run, then offload what is too large in its result, or in the text of its error.

        If the text of an error was offloaded, middleware before ours gets a ``ToolException``, whatever the class of
        the error, which becomes its cause.
        """
        if self._hook.reads_back(context.function):
            await call_next()
            return
        try:
            await call_next()
        except CONTROL_FLOW:
            raise
        except Exception as error:
            shown = await self._settle(error, context, restore=_error_of)
            if shown is error:
                raise
            raise shown from error
        result = context.result
        texts = _texts_of(result)
        if texts is not None and self._hook.offloader.keep_if_small(texts, tool_name=context.function.name):
            return
        if not _asks_the_user(result):
            context.result = await self._settle(result, context, restore=partial(contents_of, like=result))

    async def _settle(
        self, raw: object, context: FunctionInvocationContext, *, restore: Callable[[Sequence[Block]], Any]
    ) -> Any:  # noqa: ANN401 - any result
        return await asettle(Output(raw=raw, context=context, hook=self._hook, restore=restore), logger=logger)


def _error_of(blocks: Sequence[Block]) -> ToolException:
    """Return an error with the text of the blocks. The framework shows it to the model if it is configured to."""
    return ToolException("\n".join(item.text or "" for item in contents_of(blocks)))


def _asks_the_user(result: object) -> bool:
    """Return whether a result is an approval request, which the framework does not show to the model."""
    return isinstance(result, Content) and result.type == "function_approval_request"


def _texts_of(result: object) -> Sequence[str] | None:
    """Return the strings of a result that holds only text; None for any other."""
    if isinstance(result, str):
        return (result,)
    items = result if isinstance(result, list) else [result]
    texts = [item.text or "" for item in items if isinstance(item, Content) and item.type == "text"]
    return texts if len(texts) == len(items) and all(isinstance(text, str) for text in texts) else None


def _arguments_of(arguments: object) -> Mapping[str, Any]:
    dump = getattr(arguments, "model_dump", None)
    arguments = arguments if dump is None else dump()
    return arguments if isinstance(arguments, Mapping) else {}
