"""The functions that LangGraph's ``ToolNode`` accepts to wrap the calls of its tools.

Only making them belongs here. ``hook`` does the work around a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from coatcheck import RETRIEVAL_TOOL
from coatcheck.adapting import ScopeOption, make_offloader
from coatcheck_langchain.hook import NO_STEPS, CallWrapper, Hook
from coatcheck_langchain.retrieval import find_tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from langchain_core.messages import ToolMessage
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command
    from typing_extensions import Unpack

    from coatcheck import OffloaderOptions
    from coatcheck.adapting import StorageOrOffloader

__all__ = ("ToolCallWrappers", "offload_tool_calls")


class ToolCallWrappers(TypedDict):
    """Both functions, under the names of ``ToolNode``'s arguments."""

    wrap_tool_call: Callable[
        [ToolCallRequest, Callable[[ToolCallRequest], ToolMessage | Command[Any]]], ToolMessage | Command[Any]
    ]
    awrap_tool_call: Callable[
        [ToolCallRequest, Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]],
        Awaitable[ToolMessage | Command[Any]],
    ]


def offload_tool_calls(
    storage: StorageOrOffloader,
    *,
    scope: ScopeOption = None,
    retrieval_tool: str | None = RETRIEVAL_TOOL,
    exempt: Collection[str] = (),
    messages_key: str = "messages",
    keep_artifact: bool = False,
    **options: Unpack[OffloaderOptions],
) -> ToolCallWrappers:
    """Return arguments that make a node offload: ``ToolNode([*tools, retrieval_tool(o)], **offload_tool_calls(o))``.

    They work for sync and async runs. Each call is seen alone; ``offload_tool_node`` sees a whole step. What stays, and
    what happens on failure, is as in ``OffloadMiddleware``.

    Args:
        storage: a ready ``Offloader``, or a storage. The retrieval tool must use the same one.
        scope: who may read back: a scope, or a callable that takes the ``ToolRuntime``. If None, the ambient scope,
            else the ``thread_id``, else ``"default"``.
        retrieval_tool: the name of the retrieval tool, or None if the model has none. If the node lacks it, a warning
            is logged and placeholders do not name it.
        exempt: names of tools whose results stay, up to ``max_inline_tokens``.
        messages_key: the key of the messages in a state update, as for the ``ToolNode``.
        keep_artifact: as for ``OffloadMiddleware``.
        **options: the options of ``Offloader``, except ``max_step_tokens``; only if ``storage`` is not one.

    Raises:
        InvalidRequest: an argument is wrong, or options came with a ready ``Offloader``.

    """
    offloader = make_offloader(storage, options, owner=offload_tool_calls, no_steps=NO_STEPS)
    hook = Hook(offloader=offloader, scope=scope, exempt=exempt, key=messages_key, keep_artifact=keep_artifact)
    wrapper = CallWrapper(hook, find_tool(offloader, retrieval_tool))
    return {"wrap_tool_call": wrapper.wrap_tool_call, "awrap_tool_call": wrapper.awrap_tool_call}
