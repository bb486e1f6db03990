"""A runnable around a tool node, or around any runnable that returns tool messages. Needs langchain-core only.

Only the runnable belongs here. It sees a whole step of parallel calls at once, so ``max_step_tokens`` holds.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import Runnable, RunnableConfig, ensure_config

from coatcheck import RETRIEVAL_TOOL, InvalidRequest, log_failure
from coatcheck_langchain.options import (
    Scope,
    StorageOrOffloader,
    ambient,
    checked_exempt,
    checked_name,
    checked_scope,
    offloader_of,
    resolved,
)
from coatcheck_langchain.results import Step, step_of_input
from coatcheck_langchain.rewriting import Rewriter, logger
from coatcheck_langchain.wrapping import RetrievalName

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ("offload_tool_node",)


class OffloadedNode(Runnable[Any, Any]):
    """Runs a node, then offloads what is too large of its results."""

    def __init__(self, node: Runnable[Any, Any], rewriter: Rewriter, retrieval: RetrievalName) -> None:
        self.name = node.get_name()
        self._node = node
        self._rewriter = rewriter
        self._retrieval = retrieval

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002, ANN401 - as Runnable's
        """Run the node, then rewrite what it returned."""
        with ExitStack() as stack:
            self._enter_scope(stack, config)
            result = self._node.invoke(input, config, **kwargs)
        return self._rewriter.rewrite(result, partial(self._step_of, input, config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002, ANN401 - as Runnable's
        """Do what ``invoke`` does, without blocking the event loop."""
        with ExitStack() as stack:
            self._enter_scope(stack, config)
            result = await self._node.ainvoke(input, config, **kwargs)
        return await self._rewriter.arewrite(result, partial(self._step_of, input, config))

    def _enter_scope(self, stack: ExitStack, config: RunnableConfig | None) -> None:
        """Make our scope the ambient one, for a retrieval tool inside the node."""
        try:
            stack.enter_context(ambient(resolved(self._rewriter.scope, ensure_config(config))))
        except Exception as error:  # noqa: BLE001 - the host's callable must not end the agent; what the node returns will stay
            log_failure(logger, "coatcheck could not find the scope of a tool node", error=error)

    def _step_of(self, value: object, config: RunnableConfig | None) -> Step:
        tools = getattr(self._node, "tools_by_name", None) or {}
        return step_of_input(
            value,
            key=self._rewriter.key,
            tools=tools,
            config=ensure_config(config),
            retrieval_tool=self._retrieval.among(tools.values()),
        )


def offload_tool_node(
    node: Runnable[Any, Any],
    storage: StorageOrOffloader,
    *,
    scope: Scope = None,
    retrieval_tool: str | None = RETRIEVAL_TOOL,
    exempt: Collection[str] = (),
    messages_key: str = "messages",
    keep_artifact: bool = False,
    **knobs: Any,  # noqa: ANN401 - those of Offloader
) -> Runnable[Any, Any]:
    """Return a runnable that does what ``node`` does, and offloads what is too large of its results.

    It returns what ``node`` returns: a list, ``{"messages": [...]}``, a ``Command``, or a list of them, with every
    other message in its place. A node that shows its tools (``tools_by_name``) gets the same care as in
    ``OffloadMiddleware``; of others it is not known which tools are ``return_direct``: exempt them.

    Args:
        node: the runnable; a ``ToolNode``, or any other that returns tool messages.
        storage: a ready ``Offloader``, or a storage; the retrieval tool must be made of the same.
        scope: who may read back: a text, or a callable on the ``RunnableConfig``. Else the ambient scope, else the
            ``thread_id``, else ``"default"``.
        retrieval_tool: the name of the retrieval tool, or None if the model has none.
        exempt: names of tools whose results stay, up to ``max_inline_tokens``.
        messages_key: where the messages stand in the state and in its updates.
        keep_artifact: as for ``OffloadMiddleware``.
        **knobs: those of ``Offloader``, where ``storage`` is one.

    Raises:
        InvalidRequest: an argument is wrong, or a ready ``Offloader`` was passed together with knobs.

    """
    if not isinstance(node, Runnable):
        msg = f"node must be a Runnable, such as a ToolNode or RunnableLambda(function), not {node!r}"
        raise InvalidRequest(msg)
    offloader = offloader_of(storage, knobs, of_a_step=True)
    rewriter = Rewriter(
        offloader=offloader,
        scope=checked_scope(scope),
        exempt=checked_exempt(exempt),
        key=messages_key,
        keep_artifact=keep_artifact,
        by_step=True,
    )
    return OffloadedNode(
        node, rewriter, RetrievalName(checked_name("retrieval_tool", retrieval_tool), offloader=offloader)
    )
