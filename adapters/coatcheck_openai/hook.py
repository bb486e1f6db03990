"""The hook: it wraps the invoker of a function tool, so that an oversized output never reaches the SDK.

The wrappers of function tools and of MCP servers both hand an ``Output`` to the guard in ``coatcheck.adapting``. The
tool runs outside the guard, so its exceptions pass untouched.
"""

from __future__ import annotations

import copy
import inspect
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, get_type_hints

from agents.tool import invoke_function_tool
from agents.tool_context import ToolContext

from coatcheck import Never, asks_to_keep, is_called_by_code
from coatcheck.adapting import (
    Arrival,
    Batch,
    OneResult,
    RetrievalName,
    ScopeOption,
    asettle,
    call_off_loop,
    resolve_scope,
)
from coatcheck_openai.convert import blocks_of, has_media_as_text, output_of, plain_blocks_of, tokens_as_text
from coatcheck_openai.custom_data import CustomData
from coatcheck_openai.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents import FunctionTool

    from coatcheck import Block, Offloader

__all__ = ("Hook", "Invoker", "Output", "identity_of", "logger", "wrap_tool")

logger: logging.Logger = logging.getLogger("coatcheck_openai")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """The user's configuration of an agent's tools."""

    offloader: Offloader

    scope: ScopeOption

    retrieval: RetrievalName


@dataclass(frozen=True, slots=True, kw_only=True)
class Output(OneResult[Any]):
    """The output of one tool call."""

    raw: Any

    content: Any
    """The part of ``raw`` that the model would get."""

    name: str
    """The tool's name, as the model knows it."""

    sent: object
    """The arguments: the model's JSON text, or its parsed value."""

    context: Any
    """The SDK's ``ToolContext``. A host that invokes a tool itself may pass anything."""

    hook: Hook

    convert: Callable[[Any], Sequence[Block]] = blocks_of

    convert_plainly: Callable[[Any], Sequence[Block]] = plain_blocks_of

    restore: Callable[[Sequence[Block]], Any] = output_of
    """Converts blocks into an output."""

    measured_tokens: Callable[[], int] | None = None
    """Counts the tokens of an output whose media the SDK shows as text; None for any other output."""

    is_error: bool = False
    """Whether the output is an error. Only MCP servers say so: a function tool's error is a ``str`` like any other."""

    def look(self) -> Sequence[Batch]:
        """Return the output as a batch; nothing if the model does not read it."""
        if is_for_others(self.context, self.name):
            return ()
        holders = (getattr(self.context, "context", None), getattr(_config_of(self.context), "trace_metadata", None))
        arrival = Arrival(
            content=self.content,
            convert=self.convert,
            convert_plainly=self.convert_plainly,
            tool_name=self.name,
            tool_args=_arguments_of(self.sent),
            is_error=self.is_error,
            is_heavy=not isinstance(self.content, str),
            policy=Never() if any(map(asks_to_keep, holders)) else None,
            measured_tokens=self.measured_tokens,
        )
        batch = Batch(
            arrivals=[arrival],
            offloader=self.hook.offloader,
            scope=partial(resolve_scope, self.hook.scope, self.context),
            identity=partial(identity_of, self.context),
            retrieval_tool=self.hook.retrieval.find_in(getattr(getattr(self.context, "agent", None), "tools", None)),
        )
        return (batch,)


class Invoker(Proxy):
    """Invokes a tool as its own invoker does, and offloads what comes back.

    The tool's time limit covers the tool alone. Otherwise, a slow storage would turn a good result into "timed out".
    """

    def __init__(self, tool: FunctionTool, hook: Hook) -> None:
        super().__init__(tool.on_invoke_tool)
        self._tool = tool
        self._hook = hook
        self.custom_data: CustomData = CustomData()
        # Only the SDK can apply the time limit, and build the smaller context that some invokers ask for.
        self._needs_sdk = tool.timeout_seconds is not None or _takes_base_context(tool.on_invoke_tool)

    async def __call__(self, context: ToolContext[Any], arguments: str) -> Any:  # noqa: ANN401 - as the tool
        """Run the tool, then offload what is too large in its output."""
        invoke = self._invoke_by_sdk if self._needs_sdk else self._inner
        output = await invoke(context, arguments)
        name = getattr(context, "tool_name", self._tool.name)  # a copy of our tool may have another name
        if isinstance(output, str) and self._hook.offloader.keep_if_small((output,), tool_name=name):
            return output
        is_text = await call_off_loop(isinstance(output, list | tuple), has_media_as_text, output)
        delivery = Output(
            raw=output,
            content=output,
            name=name,
            sent=arguments,
            context=context,
            hook=self._hook,
            measured_tokens=partial(tokens_as_text, output) if is_text else None,
        )
        shown = await asettle(delivery, logger=logger)
        if shown is not output:
            self.custom_data.note(context, shown, output=output)
        return shown

    async def _invoke_by_sdk(self, context: ToolContext[Any], arguments: str) -> Any:  # noqa: ANN401 - as the tool
        # A host that invokes a tool itself, perhaps without a context, gets no time limit.
        if not isinstance(context, ToolContext):
            return await self._inner(context, arguments)
        # Through this call, the SDK can no longer tell its own errors apart. That matters only for outputs with a
        # schema, and tools with one are never wrapped.
        return await invoke_function_tool(function_tool=self._tool, context=context, arguments=arguments)


def _takes_base_context(invoke: Callable[..., Any]) -> bool:
    """Return whether an invoker seems to ask for the SDK's ``RunContextWrapper``, such as to serialize it."""
    try:
        parameters = inspect.signature(invoke).parameters
    except (TypeError, ValueError):  # it cannot be inspected
        return False
    declared = {name: parameter.annotation for name, parameter in parameters.items()}
    with suppress(Exception):  # names may not resolve at run time; the SDK then reads the annotation's text
        declared |= get_type_hints(invoke)
    return "RunContextWrapper" in str(declared[next(iter(parameters))]) if parameters else False


def wrap_tool(tool: FunctionTool, hook: Hook) -> FunctionTool:
    """Return a copy of a tool that offloads its output.

    The rest is as in the tool, except the time limit and the custom data extractor, which ``Invoker`` applies.
    """
    copied = _copy_of(tool)
    limited = _copy_of(copied)
    limited.on_invoke_tool = copied.on_invoke_tool  # copying rebinds the invoker to the new copy
    copied.on_invoke_tool = invoker = Invoker(limited, hook)
    if copied.custom_data_extractor is not None:
        copied.custom_data_extractor = partial(invoker.custom_data.extract, copied.custom_data_extractor)
    copied.timeout_seconds = None
    return copied


def _copy_of(tool: FunctionTool) -> FunctionTool:
    try:
        return copy.copy(tool)
    except TypeError:  # older SDKs call the constructor, which a subclass such as the shell tool may have changed
        copied = object.__new__(type(tool))
        vars(copied).update(vars(tool))
        return copied


def is_for_others(context: object, name: str) -> bool:
    """Return whether the output of a call is not for the model: it is the final answer, or code asked for it."""
    caller = getattr(getattr(context, "tool_call", None), "caller", None)
    caller = caller if isinstance(caller, Mapping) else {"type": getattr(caller, "type", None)}
    behavior = getattr(getattr(context, "agent", None), "tool_use_behavior", None)
    final = behavior.get("stop_at_tool_names", ()) if isinstance(behavior, Mapping) else ()
    names = {name, getattr(context, "qualified_tool_name", name)}
    return behavior == "stop_on_first_tool" or not names.isdisjoint(final) or is_called_by_code(caller)


def identity_of(context: object) -> str | None:
    """Return the ``group_id`` of the run, which is how the SDK names a conversation; None if there is none.

    The SDK does not show the session id to tools.
    """
    return getattr(_config_of(context), "group_id", None) or None


def _config_of(context: object) -> object:
    return getattr(context, "run_config", None)


def _arguments_of(sent: object) -> Mapping[str, Any]:
    try:
        arguments = json.loads(sent) if isinstance(sent, str) else sent
    except ValueError:
        return {}
    return arguments if isinstance(arguments, Mapping) else {}
