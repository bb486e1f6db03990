"""A runnable around a tool node, or around any runnable that returns tool messages. Needs only langchain-core.

Only the runnable belongs here. It sees a whole step of parallel calls at once, so ``max_step_tokens`` applies.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config

from coatcheck import RETRIEVAL_TOOL, InvalidRequest, log_failure
from coatcheck.adapting import (
    ScopeOption,
    asettle,
    enter_scope,
    make_offloader,
    resolve_scope,
    settle,
)
from coatcheck_langchain.hook import Hook, ToolMessages, logger
from coatcheck_langchain.messages import Calls, messages_in
from coatcheck_langchain.retrieval import find_tool

if TYPE_CHECKING:
    from collections.abc import Collection

    from langchain_core.tools import BaseTool
    from typing_extensions import Unpack

    from coatcheck import OffloaderOptions
    from coatcheck.adapting import RetrievalName, StorageOrOffloader

__all__ = ("offload_tool_node",)


class OffloadedNode(Runnable[Any, Any]):
    """Runs a node, then offloads what is too large in its results."""

    def __init__(self, node: Runnable[Any, Any], hook: Hook, retrieval: RetrievalName) -> None:
        self.name: str | None = node.get_name()
        self._node = node
        self._hook = hook
        self._retrieval = retrieval

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002, ANN401 - as Runnable's
        """Run the node, then offload what is too large in what it returned."""
        with ExitStack() as stack:
            self._enter_scope(stack, config)
            result = self._node.invoke(input, config, **kwargs)
        return settle(self._delivery(result, input, config), logger=logger)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002, ANN401 - as Runnable's
        """Do what ``invoke`` does, without blocking the event loop."""
        with ExitStack() as stack:
            self._enter_scope(stack, config)
            result = await self._node.ainvoke(input, config, **kwargs)
        return await asettle(self._delivery(result, input, config), logger=logger)

    def _enter_scope(self, stack: ExitStack, config: RunnableConfig | None) -> None:
        """Make our scope the ambient one, for a retrieval tool inside the node."""
        try:
            stack.enter_context(enter_scope(resolve_scope(self._hook.scope, ensure_config(config))))
        except Exception as error:  # noqa: BLE001 - the host's callable must not end the agent; the node's results will stay
            log_failure(logger, "coatcheck could not find the scope of a tool node", error=error)

    def _delivery(self, result: object, value: object, config: RunnableConfig | None) -> ToolMessages:
        return ToolMessages(raw=result, hook=self._hook, find_calls=partial(self._calls, value, config))

    def _calls(self, value: object, config: RunnableConfig | None) -> Calls:
        tools = getattr(self._node, "tools_by_name", None) or {}
        known = ensure_config(config)
        return find_calls(
            value, key=self._hook.key, tools=tools, config=known, retrieval_tool=self._retrieval.find(tools)
        )


def find_calls(
    value: object, *, key: str, tools: Mapping[str, BaseTool], config: RunnableConfig, retrieval_tool: str | None
) -> Calls:
    """Return what is known about the calls that a tool node is about to answer; ``value`` is its input."""
    state: object = value
    calls: list[Mapping[str, Any]] = []
    if isinstance(value, Mapping) and "tool_call" in value:  # create_agent sends this to its tool node
        state, calls = value.get("state"), [value["tool_call"]]
    messages = messages_in(state, key=key)
    if not calls:
        last = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
        calls = list(last.tool_calls) if last is not None else [call for call in messages if isinstance(call, Mapping)]
    ids = [call.get("id") or "" for call in calls]  # the answer to a call without an id has an empty id
    # If a model used an id twice in a step, only the message's own name tells which tool it comes from.
    by_id = {call_id: call if ids.count(call_id) == 1 else {} for call_id, call in zip(ids, calls, strict=True)}
    return Calls(
        by_id=by_id, messages=messages, tools=tools, context=config, config=config, retrieval_tool=retrieval_tool
    )


def offload_tool_node(
    node: Runnable[Any, Any],
    storage: StorageOrOffloader,
    *,
    scope: ScopeOption = None,
    retrieval_tool: str | None = RETRIEVAL_TOOL,
    exempt: Collection[str] = (),
    messages_key: str = "messages",
    keep_artifact: bool = False,
    **options: Unpack[OffloaderOptions],
) -> Runnable[Any, Any]:
    """Return a runnable that does what ``node`` does, and offloads what is too large in its results.

    It returns what ``node`` returns: a list, ``{"messages": [...]}``, a ``Command``, or a list of them, with every
    other message in its place. If the node shows its tools (``tools_by_name``), the same results stay as in
    ``OffloadMiddleware``. Other nodes do not tell which of their tools are ``return_direct``, so exempt those.

    Args:
        node: a ``ToolNode``, or any other runnable that returns tool messages.
        storage: a ready ``Offloader``, or a storage. The retrieval tool must use the same one.
        scope: who may read back: a scope, or a callable that takes the ``RunnableConfig``. If None, the ambient scope,
            else the ``thread_id``, else ``"default"``.
        retrieval_tool: the name of the retrieval tool, or None if the model has none.
        exempt: names of tools whose results stay, up to ``max_inline_tokens``.
        messages_key: the key of the messages in the state and in its updates.
        keep_artifact: as for ``OffloadMiddleware``.
        **options: the options of ``Offloader``; only if ``storage`` is not an ``Offloader``.

    Raises:
        InvalidRequest: an argument is wrong, or options came with a ready ``Offloader``.

    """
    if not isinstance(node, Runnable):
        msg = f"node must be a Runnable, such as a ToolNode or RunnableLambda(function), not {node!r}"
        raise InvalidRequest(msg)
    offloader = make_offloader(storage, options, owner=offload_tool_node)
    hook = Hook(
        offloader=offloader,
        scope=scope,
        exempt=exempt,
        key=messages_key,
        keep_artifact=keep_artifact,
        by_step=True,
    )
    return OffloadedNode(node, hook, find_tool(offloader, retrieval_tool))
