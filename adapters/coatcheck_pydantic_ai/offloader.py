"""The capability that users give their agents. It offloads what tools return, and adds the retrieval tool.

Only the public class belongs here. ``hook`` handles the results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai.capabilities import AbstractCapability

from coatcheck.adapting import ScopeOption, asettle, check_scope, make_offloader
from coatcheck_pydantic_ai.hook import FAILURES, Hook, Output, is_for_others, lasting, logger, running
from coatcheck_pydantic_ai.retrieval import find_tool, is_retrieval, retrieval_toolset

if TYPE_CHECKING:
    from pydantic_ai import FunctionToolset, RunContext
    from pydantic_ai.capabilities import WrapToolExecuteHandler
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tools import ToolDefinition
    from typing_extensions import Unpack

    from coatcheck import Offloader, OffloaderOptions
    from coatcheck.adapting import StorageOrOffloader

__all__ = ("ToolOffloader",)

_NO_STEPS = "Pydantic AI passes on one call at a time, so omit it"


class ToolOffloader(AbstractCapability[Any]):
    """Takes oversized tool results out of a conversation; the model reads them back with one tool.

    One serves any number of agents: ``Agent(capabilities=[ToolOffloader(storage)])``. It sees the results of all tools,
    including those of MCP servers, after all other capabilities. Results of output tools stay, and so do those of calls
    made by code. If rewriting fails, a warning is logged. The result then stays as it is, or is stored or cut if it is
    above ``max_inline_tokens``.
    """

    def __init__(
        self,
        storage: StorageOrOffloader | None = None,
        *,
        scope: ScopeOption = None,
        native_media: bool = False,
        **options: Unpack[OffloaderOptions],
    ) -> None:
        """Configure the capability.

        Args:
            storage: a storage, or a ready ``Offloader``. None means a new ``InMemoryStorage``, which is lost when the
                process ends.
            scope: who may read back: a scope, or a callable that takes the ``RunContext``. If None, the ambient scope,
                else the ``conversation_id`` of the run.
            native_media: the retrieval tool returns images and files themselves instead of a description.
            **options: the options of ``Offloader``, except ``max_step_tokens``, because Pydantic AI shows one call at a
                time. Only if ``storage`` is not an ``Offloader``.

        Raises:
            InvalidRequest: an argument is wrong, or options came with a ready ``Offloader``.

        """
        self.offloader: Offloader = make_offloader(
            storage, options, owner=ToolOffloader, no_steps=_NO_STEPS, is_whole=True
        )
        retrieval = find_tool(self.offloader)
        self._hook = Hook(offloader=self.offloader, scope=check_scope(scope), retrieval=retrieval)
        self._toolset = retrieval_toolset(self.offloader, scope=scope, retrieval=retrieval, native_media=native_media)

    # The base class compares dataclass fields, and this class has none.
    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return object.__hash__(self)

    def get_toolset(self) -> FunctionToolset[Any]:
        """Return the retrieval tool's toolset, the same one each time, as durable execution requires."""
        return self._toolset

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> Any:  # noqa: ANN401 - as the tool
        """Run the tool, then offload what is too large in its result, or in the text of its error."""
        if is_retrieval(tool_def):
            return await handler(args)
        token = running.set(ctx.run_id)
        try:
            try:
                result = await handler(args)
            finally:
                running.reset(token)
            if not isinstance(result, str) and not is_for_others(ctx, call, tool_def):
                result = await lasting(result)
        except FAILURES as error:
            output = Output(raw=error, call=call, definition=tool_def, context=ctx, hook=self._hook, is_error=True)
            shown = await asettle(output, logger=logger)
            if shown is error:
                raise
            raise shown from error
        if isinstance(result, str) and self.offloader.keep_if_small((result,), tool_name=call.tool_name):
            return result
        output = Output(raw=result, call=call, definition=tool_def, context=ctx, hook=self._hook)
        return await asettle(output, logger=logger)
