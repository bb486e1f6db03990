"""What happens around one tool call, or one run of a tool node, whatever hook brought us there.

Only the order of things belongs here: what is left alone, whose scope holds, what the model is told about reading back.
The framework's handler always runs outside every guard, so its exceptions and its control flow pass untouched.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from langchain_core.messages import ToolMessage

from coatcheck import failure_for_model
from coatcheck_langchain.options import ambient, resolved
from coatcheck_langchain.results import Step, answered_in, called_by_code_in, id_of, messages_in
from coatcheck_langchain.retrieval import RetrievalTool
from coatcheck_langchain.rewriting import logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from langchain_core.tools import BaseTool

    from coatcheck import Offloader
    from coatcheck_langchain.rewriting import Rewriter

__all__ = ("CallWrapper", "Request", "RetrievalName")

_ABSENT = (
    "The agent has no %r tool of coatcheck_langchain, so placeholders do not name one. Add retrieval_tool(offloader) to"
    " its tools, or pass retrieval_tool=None"
)
_TAKEN = (
    "The name %r is taken by another tool, so the agent cannot read offloaded content back, and results of that tool"
    " are treated like any other. Rename that tool, or share one Offloader among all middleware"
)


class Request(Protocol):
    """The members used of LangGraph's ``ToolCallRequest``."""

    @property
    def tool_call(self) -> Any:  # noqa: ANN401 - a ToolCall, as the model made it
        """Name, arguments and id."""

    @property
    def tool(self) -> BaseTool | None:
        """The tool, or None where the node does not know it."""

    @property
    def state(self) -> Any:  # noqa: ANN401 - the graph's state
        """The state that the call was made in."""

    @property
    def runtime(self) -> Any:  # noqa: ANN401 - a ToolRuntime, or None
        """The runtime that LangGraph injects."""


class RetrievalName:
    """The name under which the model has the retrieval tool, as far as the tools at hand show it."""

    def __init__(self, expected: str | None, *, offloader: Offloader, own: bool = False) -> None:
        """Expect the tool under a name, or none; with ``own``, only a tool that reads from ``offloader`` will do."""
        self._expected = expected
        self._offloader = offloader
        self._own = own
        self._warned = False

    def among(self, tools: Iterable[BaseTool]) -> str | None:
        """Return the name to show; None, after a warning, where ``tools`` lack it. Without tools, trust our user."""
        by_name: Mapping[str, BaseTool] = {tool.name: tool for tool in tools}
        if self._expected is None:
            return next((name for name, tool in by_name.items() if self._reads_ours(tool)), None)
        found = by_name.get(self._expected)
        if not by_name or (self._reads_ours(found) if self._own else isinstance(found, RetrievalTool)):
            return self._expected
        if not self._warned:
            self._warned = True
            logger.warning(_ABSENT if found is None else _TAKEN, self._expected)
        return None

    def _reads_ours(self, tool: object) -> bool:
        return isinstance(tool, RetrievalTool) and tool.reads(self._offloader)


class CallWrapper:
    """Wraps single tool calls: the functions that a ``ToolNode`` takes, and the methods of a middleware."""

    def __init__(self, rewriter: Rewriter, retrieval: RetrievalName) -> None:
        self._rewriter = rewriter
        self._retrieval = retrieval

    def wrap_tool_call(self, request: Request, handler: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - as the handler
        """Run the tool, then offload what is too large of its result."""
        if isinstance(request.tool, RetrievalTool):
            with ExitStack() as stack:
                if refusal := self._enter_scope(stack, request):
                    return refusal
                return handler(request)
        result = handler(request)
        if self._stays(request, result):
            return result
        return self._rewriter.rewrite(result, partial(self._step_of, request))

    async def awrap_tool_call(self, request: Request, handler: Callable[[Any], Awaitable[Any]]) -> Any:  # noqa: ANN401
        """Do what ``wrap_tool_call`` does, without blocking the event loop."""
        if isinstance(request.tool, RetrievalTool):
            with ExitStack() as stack:
                if refusal := self._enter_scope(stack, request):
                    return refusal
                return await handler(request)
        result = await handler(request)
        if self._stays(request, result):
            return result
        return await self._rewriter.arewrite(result, partial(self._step_of, request))

    def _enter_scope(self, stack: ExitStack, request: Request) -> ToolMessage | None:
        """Make our scope the ambient one for the retrieval tool; where that fails, refuse rather than read another."""
        try:
            stack.enter_context(ambient(resolved(self._rewriter.scope, request.runtime)))
        except Exception as error:  # noqa: BLE001 - the host's callable must not end the agent
            call = request.tool_call
            return ToolMessage(failure_for_model(error), tool_call_id=id_of(call), name=call["name"], status="error")
        return None

    def _stays(self, request: Request, result: object) -> bool:
        """Return whether a result certainly stays, whatever else is known of the call: most are one small text."""
        return isinstance(result, ToolMessage) and self._rewriter.keeps(result, tool_name=request.tool_call["name"])

    def _step_of(self, request: Request) -> Step:
        call, tool, runtime = request.tool_call, request.tool, request.runtime
        call_id = id_of(call)
        messages = messages_in(request.state, key=self._rewriter.key)
        return Step(
            calls={call_id: call},
            answered=answered_in(messages) - {call_id},
            called_by_code=called_by_code_in(messages),
            tools={} if tool is None else {call["name"]: tool},
            context=runtime,
            config=getattr(runtime, "config", None),
            retrieval_tool=self._retrieval.among(getattr(runtime, "tools", ())),
        )
