"""The hook: the one place where results of LangChain's tools are rewritten, sync and async.

Every integration hands ``ToolMessages`` to the guard in ``coatcheck.adapting``. Middleware and tool nodes share
``CallWrapper``. The framework's handler always runs outside the guard, so its exceptions and its control flow pass
untouched.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.messages import ToolMessage

from coatcheck import Never, asks_to_keep, failure_for_model
from coatcheck.adapting import (
    MARK,
    Arrival,
    Batch,
    Delivery,
    ScopeOption,
    asettle,
    check_flags,
    check_names,
    check_scope,
    enter_scope,
    resolve_scope,
    settle,
)
from coatcheck_langchain.artifacts import take_out_copy
from coatcheck_langchain.convert import blocks_of, content_of, is_media_held, plain_blocks_of
from coatcheck_langchain.messages import Calls, find_messages, identity_of, is_for_others, messages_in, replace_messages
from coatcheck_langchain.retrieval import RetrievalTool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence

    from langgraph.prebuilt.tool_node import ToolCallRequest

    from coatcheck import Offloaded, Offloader, Truncated
    from coatcheck.adapting import RetrievalName

__all__ = ("NO_STEPS", "CallWrapper", "Hook", "ToolMessages", "logger")

logger: logging.Logger = logging.getLogger("coatcheck_langchain")

NO_STEPS = "each call is seen alone, so omit it, or use offload_tool_node"
"""The hint in the error about ``max_step_tokens`` when single calls are wrapped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """The configuration of one middleware, tool node or tool."""

    offloader: Offloader

    scope: ScopeOption

    exempt: Collection[str] = ()

    key: str = "messages"
    """The key of the messages in a state."""

    keep_artifact: bool = False

    by_step: bool = False
    """Whether a result is a whole step of parallel calls, so that ``max_step_tokens`` applies."""

    def __post_init__(self) -> None:
        """Check what users passed.

        Raises:
            InvalidRequest: an argument is wrong.

        """
        check_scope(self.scope)
        check_names("exempt", self.exempt)
        check_flags(keep_artifact=self.keep_artifact)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolMessages(Delivery[Any]):
    """The tool messages in a result that are new to the conversation."""

    raw: Any
    hook: Hook

    find_calls: Callable[[], Calls]
    """Returns what is known about the calls. It runs inside the guard, because it reads the host's own objects."""

    def look(self) -> Sequence[Batch]:
        """Return the new results that are for the model."""
        calls = self.find_calls()
        settled, arrivals = calls.find_answered(), list[Arrival]()
        run = calls.config.get("metadata") if isinstance(calls.config, dict) else None
        for native, message in find_messages(self.raw, key=self.hook.key):
            call = calls.by_id.get(message.tool_call_id, {})
            name = str(call.get("name") or message.name or "")
            tool = calls.tools.get(name)
            if message.tool_call_id in settled or isinstance(tool, RetrievalTool) or is_for_others(tool, message):
                continue
            holders = (run, getattr(tool, "metadata", None), message.additional_kwargs)
            # The mark does not lift the hard limit: a tool can write it too, or add to a message that has it.
            is_marked = isinstance(message.additional_kwargs.get(MARK), dict)
            stays = is_marked or name in self.hook.exempt or any(map(asks_to_keep, holders))
            arrival = Arrival(
                native=(native, message),
                content=message.content,
                convert=blocks_of,
                convert_plainly=plain_blocks_of,
                tool_name=name,
                tool_args=call.get("args") or {},
                is_error=message.status == "error",
                is_heavy=message.artifact is not None or is_media_held(message.content),
                policy=Never() if stays else None,
            )
            arrivals.append(arrival)
        scope = self.hook.scope
        batch = partial(
            Batch,
            offloader=self.hook.offloader,
            scope=calls.error or (partial(scope, calls.context) if callable(scope) else scope),
            identity=identity_of(calls.config),
            retrieval_tool=calls.retrieval_tool,
        )
        if not self.hook.by_step:
            return [batch(arrivals=arrivals)]
        together = [arrival for arrival in arrivals if arrival.policy is None]
        alone = [arrival for arrival in arrivals if arrival.policy is not None]
        return [batch(arrivals=alone), batch(arrivals=together, together=True)]

    def look_again(self) -> Sequence[Batch]:
        """Do the same even if nothing is known about the calls. Nothing is stored then, for lack of a scope."""
        try:
            return self.look()
        except Exception as error:  # noqa: BLE001 - it was logged when it was raised the first time
            return replace(self, find_calls=partial(Calls, error=error)).look()

    def put_back(self, changed: Sequence[tuple[Arrival, Offloaded | Truncated]]) -> Any:  # noqa: ANN401 - as it came
        """Return the result with the changed messages replaced by copies."""
        copies = {}
        for arrival, outcome in changed:
            native, message = arrival.native
            artifact = message.artifact
            if artifact is not None and not self.hook.keep_artifact:
                artifact = take_out_copy(message, outcome)
            # Checkpoints keep additional_kwargs, and no model sees them.
            marked = {**message.additional_kwargs, MARK: outcome.mark}
            content = content_of(outcome.blocks, like=message.content)
            update = {"content": content, "artifact": artifact, "additional_kwargs": marked}
            copies[id(native)] = message.model_copy(update=update)
        return replace_messages(self.raw, copies, key=self.hook.key)


class CallWrapper:
    """Wraps single tool calls. A ``ToolNode`` takes its methods as functions, and a middleware inherits them."""

    def __init__(self, hook: Hook, retrieval: RetrievalName) -> None:
        self._hook = hook
        self._retrieval = retrieval

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:  # noqa: ANN401 - as the handler
        """Run the tool, then offload what is too large in its result."""
        if isinstance(request.tool, RetrievalTool):
            with self._reading(request) as refusal:
                return refusal or handler(request)
        result = handler(request)
        if self._certainly_stays(request, result):
            return result
        messages = ToolMessages(raw=result, hook=self._hook, find_calls=partial(self._find_calls, request))
        return settle(messages, logger=logger)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:  # noqa: ANN401 - as the handler
        """Do what ``wrap_tool_call`` does, without blocking the event loop."""
        if isinstance(request.tool, RetrievalTool):
            with self._reading(request) as refusal:
                return refusal or await handler(request)
        result = await handler(request)
        if self._certainly_stays(request, result):
            return result
        messages = ToolMessages(raw=result, hook=self._hook, find_calls=partial(self._find_calls, request))
        return await asettle(messages, logger=logger)

    @contextmanager
    def _reading(self, request: ToolCallRequest) -> Iterator[ToolMessage | None]:
        """Make our scope the ambient one for the retrieval tool. If that fails, refuse rather than use another."""
        with ExitStack() as stack:
            refusal = None
            try:
                stack.enter_context(enter_scope(resolve_scope(self._hook.scope, request.runtime)))
            except Exception as error:  # noqa: BLE001 - the host's callable must not end the agent
                call, said = request.tool_call, failure_for_model(error)
                refusal = ToolMessage(said, tool_call_id=call.get("id") or "", name=call["name"], status="error")
            yield refusal

    def _certainly_stays(self, request: ToolCallRequest, result: object) -> bool:
        """Return whether a result is one small string, as most are. It stays, whatever else is known about the call."""
        return (
            isinstance(result, ToolMessage)
            and isinstance(result.content, str)
            and self._hook.offloader.keep_if_small(
                (result.content,), tool_name=request.tool_call["name"], is_error=result.status == "error"
            )
        )

    def _find_calls(self, request: ToolCallRequest) -> Calls:
        call, tool, runtime = request.tool_call, request.tool, request.runtime
        return Calls(
            by_id={call.get("id") or "": call},
            messages=messages_in(request.state, key=self._hook.key),
            tools={} if tool is None else {call["name"]: tool},
            context=runtime,
            config=getattr(runtime, "config", None),
            retrieval_tool=self._retrieval.find({tool.name: tool for tool in getattr(runtime, "tools", ())}),
        )
