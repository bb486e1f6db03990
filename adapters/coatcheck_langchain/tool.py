"""Copy one tool so that what its function returns is offloaded. Needs only langchain-core.

Only the wrapping of functions belongs here. The function's signature stays visible, because LangChain finds injected
arguments by it. The user's own tool is never touched.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from langchain_core.messages import ToolMessage
from langchain_core.messages.tool import ToolOutputMixin
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.tools import BaseTool, StructuredTool, Tool
from langchain_core.tools.base import TOOL_MESSAGE_BLOCK_TYPES

from coatcheck import RETRIEVAL_TOOL, InvalidRequest, log_failure
from coatcheck.adapting import (
    FAILED,
    ScopeOption,
    asettle,
    call_off_loop,
    check_name,
    make_offloader,
    settle,
)
from coatcheck_langchain.hook import NO_STEPS, Hook, ToolMessages, logger
from coatcheck_langchain.messages import Calls
from coatcheck_langchain.retrieval import RetrievalTool

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from coatcheck import OffloaderOptions
    from coatcheck.adapting import StorageOrOffloader

__all__ = ("offload_tool",)

AnyTool = TypeVar("AnyTool", bound=BaseTool)
"""``@tool`` promises no narrower return type."""

_CONFIG = "coatcheck_config"
"""Our own parameter. Its annotation tells LangChain to pass the configuration."""

_CALL = ""
"""Stands in for the id of the call, which a function does not know."""


def offload_tool(
    tool: AnyTool,
    storage: StorageOrOffloader,
    *,
    scope: ScopeOption = None,
    retrieval_tool: str | None = RETRIEVAL_TOOL,
    keep_artifact: bool = False,
    **options: Unpack[OffloaderOptions],
) -> AnyTool:
    """Return a copy of ``tool`` that returns a preview and a reference if its result is too large.

    Everything else is as before: name, description, schema, response format, artifact, metadata, sync and async.
    Exceptions pass. A ``return_direct`` tool, which gives a final answer, and a retrieval tool are returned as they
    are. Code that calls the copy gets the placeholder too. So does code in a provider's container, because a tool does
    not know who calls it, unless the tool's ``extras["allowed_callers"]`` names only code.

    Args:
        tool: a tool made by ``@tool`` or ``StructuredTool``.
        storage: a ready ``Offloader``, or a storage. The retrieval tool must use the same one.
        scope: who may read back: a scope, or a callable that takes the ``RunnableConfig``. If None, the ambient scope,
            else the ``thread_id``, else ``"default"``.
        retrieval_tool: the name of the retrieval tool, or None if the model has none.
        keep_artifact: as for ``OffloadMiddleware``.
        **options: the options of ``Offloader``, except ``max_step_tokens``; only if ``storage`` is not one.

    Raises:
        InvalidRequest: ``tool`` does not run a function, or has the retrieval tool's name, or an argument is wrong.

    """
    name = check_name("retrieval_tool", retrieval_tool)
    functions = _functions_of(tool)
    if functions is None:
        msg = (
            f"offload_tool accepts tools made by @tool or StructuredTool, not {type(tool).__name__}; for any other"
            " tool, use offload_tool_node or OffloadMiddleware"
        )
        raise InvalidRequest(msg)
    offloader = make_offloader(storage, options, owner=offload_tool, no_steps=NO_STEPS)
    hook = Hook(offloader=offloader, scope=scope, keep_artifact=keep_artifact)
    if tool.return_direct or isinstance(tool, RetrievalTool):
        return tool
    if tool.name == name:
        msg = (
            f"this tool has the retrieval tool's name {name!r}: rename one of them; for the retrieval tool, pass the"
            " new name as retrieval_tool="
        )
        raise InvalidRequest(msg)
    results = _Results(tool, hook, name)
    func, coroutine = functions
    wrapped: AnyTool = tool.model_copy(
        update={
            "func": func and results.around(func),
            "coroutine": coroutine and results.around_async(coroutine),
        }
    )
    return wrapped


class _Results:
    """Offloads what one tool's function returns, in the form of the message that LangChain would make of it."""

    def __init__(self, tool: BaseTool, hook: Hook, retrieval_tool: str | None) -> None:
        self._tool = tool
        self._hook = hook
        self._retrieval_tool = retrieval_tool
        self._arguments = tuple(tool.args)
        self._with_artifact = tool.response_format == "content_and_artifact"

    def around(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if isinstance(func, partial):  # LangChain looks through a partial to find annotations
            return partial(self.around(func.func), *func.args, **func.keywords)

        @wraps(func)
        def offloading(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as func
            value = func(*args, **kwargs)
            messages = self._messages_of(value)
            new = settle(self._delivery(messages, args, kwargs), logger=logger)
            return value if new is messages else self._unpack(value, new)

        return offloading

    def around_async(self, coroutine: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        if isinstance(coroutine, partial):
            return partial(self.around_async(coroutine.func), *coroutine.args, **coroutine.keywords)

        own = _config_parameter(coroutine)

        @wraps(coroutine)
        async def offloading(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as coroutine
            config = kwargs.pop(_CONFIG, None) if own is None else kwargs.get(own)
            value = await coroutine(*args, **kwargs)
            messages = await call_off_loop(not isinstance(value, str), self._messages_of, value)
            new = await asettle(self._delivery(messages, args, kwargs, config), logger=logger)
            return value if new is messages else self._unpack(value, new)

        if own is None:  # on Python 3.10, older LangChain cannot pass a coroutine its configuration otherwise
            offloading.__annotations__ = {**offloading.__annotations__, _CONFIG: RunnableConfig}
        return offloading

    def _messages_of(self, value: object) -> object:
        """Return the messages that a function returned, or the message that LangChain would make of its value."""
        content = self._content_of(value)
        if _is_message_result(content):
            return content
        try:
            artifact = value[1] if self._splits(value) else None  # type: ignore[index]
            return ToolMessage(_formatted(content), tool_call_id=_CALL, name=self._tool.name, artifact=artifact)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here must not end the agent
            log_failure(logger, FAILED, error=error)
            return None

    def _unpack(self, value: Any, new: Any) -> Any:  # noqa: ANN401 - what a tool returned
        if _is_message_result(self._content_of(value)):
            return (new, value[1]) if self._splits(value) else new
        return (new.content, new.artifact) if self._splits(value) else new.content

    def _content_of(self, value: Any) -> Any:  # noqa: ANN401 - what a tool returned
        return value[0] if self._splits(value) else value

    def _splits(self, value: object) -> bool:
        return self._with_artifact and isinstance(value, tuple) and len(value) == 2  # noqa: PLR2004 - content, artifact

    def _delivery(
        self,
        messages: object,
        args: Sequence[object],
        kwargs: dict[str, object],
        config: RunnableConfig | None = None,
    ) -> ToolMessages:
        return ToolMessages(raw=messages, hook=self._hook, find_calls=partial(self._calls, args, kwargs, config))

    def _calls(self, args: Sequence[object], kwargs: dict[str, object], config: RunnableConfig | None) -> Calls:
        given = {**dict(zip(self._arguments, args, strict=False)), **kwargs}
        arguments = {name: given[name] for name in self._arguments if name in given}  # omits what LangChain injects
        config = ensure_config(config)
        return Calls(
            by_id={_CALL: {"name": self._tool.name, "args": arguments}},
            tools={self._tool.name: self._tool},
            context=config,
            config=config,
            retrieval_tool=self._retrieval_tool,
        )


def _is_message_result(value: object) -> bool:
    """Return whether LangChain treats ``value``, returned by a tool's function, as messages and commands."""
    values = value if isinstance(value, list) and value else [value]
    return all(isinstance(item, ToolOutputMixin) for item in values)


def _functions_of(tool: object) -> tuple[Callable[..., Any] | None, Callable[..., Awaitable[Any]] | None] | None:
    """Return ``func`` and ``coroutine`` of a tool that does nothing but call them; None for any other tool."""
    for made in (StructuredTool, Tool):
        if isinstance(tool, made) and type(tool)._run is made._run and type(tool)._arun is made._arun:  # noqa: SLF001 - who overrides them?
            return tool.func, tool.coroutine
    return None


def _config_parameter(function: Callable[..., Any]) -> str | None:
    """Return the parameter in which LangChain passes the ``RunnableConfig``, if the function has one."""
    try:
        hints = get_type_hints(function)
    except Exception:  # noqa: BLE001 - as LangChain does, which then passes no configuration
        return None
    return next((name for name, hint in hints.items() if hint in (RunnableConfig, RunnableConfig | None)), None)


def _formatted(content: Any) -> Any:  # noqa: ANN401 - what a tool returned
    """Return a result as LangChain puts it into a message: strings and content blocks unchanged, else JSON or text."""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence) and not isinstance(content, bytes) and all(map(_is_content_block, content)):
        return list(content)
    try:
        return json.dumps(content, ensure_ascii=False)
    except Exception:  # noqa: BLE001 - as LangChain does
        return str(content)


def _is_content_block(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, dict) and value.get("type") in TOOL_MESSAGE_BLOCK_TYPES)
