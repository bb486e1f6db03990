"""The hook: the outcome of a tool call, on its way into the conversation.

``Output`` is what the capability hands to the guard in ``coatcheck.adapting``. In Pydantic AI, a tool that fails
raises. So the text of its error is extracted and offloaded, and the error is raised again with the new text.
"""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_ai import ModelRetry, ToolReturn
from pydantic_ai.exceptions import ToolFailed, ToolFailedError, ToolRetryError
from pydantic_ai.messages import ModelResponse, ToolCallPart

from coatcheck import Never, asks_to_keep
from coatcheck.adapting import (
    Arrival,
    Batch,
    OneResult,
    RetrievalName,
    ScopeOption,
    resolve_scope,
    without_iterators,
)
from coatcheck_pydantic_ai.convert import blocks_of, plain_blocks_of, result_of, text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai import RunContext
    from pydantic_ai.tools import ToolDefinition

    from coatcheck import Block, Offloader

__all__ = ("FAILURES", "Hook", "Output", "identity_of", "is_for_others", "lasting", "logger", "running")

logger: logging.Logger = logging.getLogger("coatcheck_pydantic_ai")

FAILURES = (ToolFailedError, ToolRetryError, ToolFailed, ModelRetry, ValidationError)
"""Errors that Pydantic AI reports to the model. Anything else that a tool raises ends the run, or is control flow."""

running: ContextVar[str | None] = ContextVar("coatcheck_pydantic_ai_running", default=None)
"""The id of the run whose tool is running. Code in that tool may call other tools of the same run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """The configuration of the capability."""

    offloader: Offloader

    scope: ScopeOption

    retrieval: RetrievalName


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(OneResult[Any]):
    """The outcome of one tool call."""

    raw: Any
    """What the tool returned, or the error that it raised, which is one of ``FAILURES``."""

    call: ToolCallPart

    definition: ToolDefinition

    context: RunContext[Any]

    hook: Hook

    is_error: bool = False
    """Whether ``raw`` was raised. A tool may also return an error as a value."""

    def look(self) -> Sequence[Batch]:
        """Return the result, unless the model does not read it."""
        if is_for_others(self.context, self.call, self.definition):
            return ()
        arrival = Arrival(
            content=self.raw,
            convert=(lambda error: blocks_of(said_by(error))) if self.is_error else blocks_of,
            convert_plainly=(lambda error: plain_blocks_of(said_by(error))) if self.is_error else plain_blocks_of,
            tool_name=self.call.tool_name,
            tool_args=self.call.args_as_dict(),
            is_error=self.is_error,
            is_heavy=not isinstance(self.raw, str),
            policy=Never() if any(map(asks_to_keep, (self.definition.metadata, self.context.metadata))) else None,
        )
        batch = Batch(
            arrivals=[arrival],
            offloader=self.hook.offloader,
            scope=partial(resolve_scope, self.hook.scope, self.context),
            identity=partial(identity_of, self.context),
            retrieval_tool=self.hook.retrieval.find(self.context.tools),
        )
        return (batch,)

    def restore(self, blocks: Sequence[Block]) -> Any:  # noqa: ANN401 - any result
        """Return a new result, or a new error, with what the model will see."""
        return saying(self.raw, text_of(blocks)) if self.is_error else result_of(blocks, self.raw)


def is_for_others(context: RunContext[Any], call: ToolCallPart, definition: ToolDefinition) -> bool:
    """Return whether no model reads the result of a call, because Pydantic AI does, or code that made the call.

    Code, such as that of a sandbox, calls tools with its own ids, which are not in the model's response. A realtime
    session gets a call before it is in a response, and has no such code. ``run_stream`` adds the last response to the
    messages only after its calls have run. There, a call was made by code if it runs inside another call.
    """
    kind = definition.tool_kind
    if kind is not None and "." not in kind:  # Pydantic AI's own tool: it needs the results to find others
        return True
    answer = next((message for message in reversed(context.messages) if isinstance(message, ModelResponse)), None)
    made = {part.tool_call_id for part in answer.parts if isinstance(part, ToolCallPart)} if answer else set()
    if call.tool_call_id in made or getattr(context, "realtime", False):
        return False
    is_answered = isinstance(context.messages[-1], ModelResponse) if context.messages else False
    return is_answered or running.get() == context.run_id


async def lasting(result: Any) -> Any:  # noqa: ANN401 - a tool may return anything
    """Return a result that can be read more than once. Pydantic AI serializes an iterator, which consumes it."""
    if not isinstance(result, ToolReturn):
        return await without_iterators(result)
    value = await without_iterators(result.return_value)
    return result if value is result.return_value else replace(result, return_value=value)


def identity_of(context: RunContext[Any]) -> str | None:
    """Return the conversation's id: the one that the host gave, or that of the history, or one made for this run.

    Return None if the host gave an empty one.
    """
    return context.conversation_id or None


def said_by(error: Any) -> Any:  # noqa: ANN401 - one of FAILURES has text, or what is wrong with each argument
    """Return what the model is told about a failure."""
    if isinstance(error, ToolFailedError):
        return error.tool_failed.content
    if isinstance(error, ToolRetryError):
        return error.tool_retry.content
    return json.loads(error.json(include_url=False)) if isinstance(error, ValidationError) else error.message


def saying(error: Any, said: str) -> Exception:  # noqa: ANN401 - as above
    """Return the same failure with other text."""
    if isinstance(error, ToolFailedError):
        return ToolFailedError(replace(error.tool_failed, content=said))
    if isinstance(error, ToolRetryError):
        return ToolRetryError(replace(error.tool_retry, content=said))
    return ToolFailed(said) if isinstance(error, ToolFailed) else ModelRetry(said)
