"""The ADK plugin that users add to their app. It sees the tool results of all the app's agents.

Only the public class belongs here. ``hook`` handles the results.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from google.adk.plugins.base_plugin import BasePlugin

from coatcheck.adapting import (
    RetrievalName,
    ScopeOption,
    WarnOnce,
    asettle,
    check_scope,
    make_offloader,
    needs_retrieval_tool,
    remember_latest,
    without_iterators,
)
from coatcheck_adk.convert import named, small_text_of
from coatcheck_adk.hook import Result, begin_call, end_call, is_for_others, logger
from coatcheck_adk.retrieval import RetrievalTool

if TYPE_CHECKING:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext
    from typing_extensions import Unpack

    from coatcheck import Offloader, OffloaderOptions
    from coatcheck.adapting import StorageOrOffloader

__all__ = ("OffloadPlugin",)

MAX_AGENTS = 1_000
"""The agents whose name for the retrieval tool is remembered: those that asked their models last."""

_NO_STEPS = "ADK passes on one call at a time, so omit it"


class OffloadPlugin(BasePlugin):
    """Takes oversized tool results out of a conversation; the model reads them back with one tool.

    One plugin serves all agents of an app, including sub-agents and agents as tools:
    ``App(name="app", root_agent=agent, plugins=[OffloadPlugin()])``. Agents with tools are offered the retrieval tool;
    the agents themselves are never changed. Results with ``skip_summarization`` stay, because they are for the user.
    If rewriting fails, a warning is logged. The result then stays as it is, or is stored or cut if it is above
    ``max_inline_tokens``.

    List it last. Once a plugin replaces a result, ADK calls neither later plugins nor the agent's
    ``after_tool_callback`` for it.
    """

    def __init__(
        self,
        storage: StorageOrOffloader | None = None,
        *,
        name: str = "coatcheck",
        scope: ScopeOption = None,
        native_media: bool = False,
        **options: Unpack[OffloaderOptions],
    ) -> None:
        """Configure the plugin.

        Args:
            storage: a storage, or a ready ``Offloader``. None means a new ``InMemoryStorage``, which is lost when the
                process ends.
            name: the plugin's name in the app.
            scope: who may read back: a scope, or a callable that takes the ``ToolContext``. If None, the ambient scope,
                else the app, the user and the session, else ``"default"``.
            native_media: the retrieval tool returns images and files themselves instead of a description.
            **options: the options of ``Offloader``, except ``max_step_tokens``, because ADK shows one call at a time.
                Only if ``storage`` is not an ``Offloader``.

        Raises:
            InvalidRequest: an argument is wrong, or options came with a ready ``Offloader``.

        """
        super().__init__(name)
        self.offloader: Offloader = make_offloader(
            storage, options, owner=OffloadPlugin, no_steps=_NO_STEPS, is_whole=True
        )
        self._scope = check_scope(scope)
        self.retrieval_tool: RetrievalTool = RetrievalTool(self.offloader, scope=scope, native_media=native_media)
        self._retrieval = RetrievalName(
            self.retrieval_tool.name,
            warn=WarnOnce(logger),
            is_ours=lambda tool: isinstance(tool, RetrievalTool) and tool.offloader is self.offloader,
            how_to_add="Add the plugin's retrieval_tool to its tools",
        )
        self._names: OrderedDict[str, str | None] = OrderedDict()  # the retrieval tool's name for each agent

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Offer the retrieval tool in every request of an agent that may need it."""
        tools = llm_request.tools_dict
        if _may_need(llm_request) and self.retrieval_tool.name not in tools:
            llm_request.append_tools([self.retrieval_tool])
        remember_latest(self._names, callback_context.agent_name, value=self._retrieval.find(tools), most=MAX_AGENTS)

    async def before_tool_callback(
        self,
        *,
        tool: BaseTool,  # noqa: ARG002 - ADK passes it by name
        tool_args: dict[str, Any],  # noqa: ARG002 - as above
        tool_context: ToolContext,
    ) -> None:
        """Record whose conversation a tool runs for, in case it runs agents."""
        begin_call(tool_context)

    async def after_tool_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        result: Any,  # noqa: ANN401 - ADK passes whatever the tool returned
    ) -> dict[str, Any] | None:
        """Return the replacement of a result that is too large, or None if it stays."""
        try:
            return await self._replacement(tool, tool_args, tool_context, result)
        finally:
            end_call(tool_context)

    async def on_tool_error_callback(
        self,
        *,
        tool: BaseTool,  # noqa: ARG002 - ADK passes it by name
        tool_args: dict[str, Any],  # noqa: ARG002 - as above
        tool_context: ToolContext,
        error: Exception,  # noqa: ARG002 - as above
    ) -> None:
        """Record that a tool has ended."""
        end_call(tool_context)

    async def _replacement(
        self, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, result: object
    ) -> dict[str, Any] | None:
        if isinstance(tool, RetrievalTool):
            return None
        text = small_text_of(result)
        if text is not None and self.offloader.keep_if_small((text,), tool_name=tool.name):
            return None
        # ADK serializes an iterator as a list, which consumes it.
        lasting = result if is_for_others(tool_context) else await without_iterators(result)
        delivery = Result(
            raw=lasting,
            tool=tool,
            arguments=tool_args,
            context=tool_context,
            offloader=self.offloader,
            scope=self._scope,
            retrieval_tool=self._name_for(tool_context),
        )
        settled = await asettle(delivery, logger=logger)
        if settled is result:
            return None
        return named(lasting) if settled is lasting else settled

    def _name_for(self, context: ToolContext) -> str | None:
        """Return the retrieval tool's name for an agent, even if ADK never showed us its requests.

        ADK shows none in live mode, or if an earlier plugin calls the model itself.
        """
        try:
            return self._names[context.agent_name]
        except KeyError:
            agent = context.get_invocation_context().agent
            return self._retrieval.find_in(getattr(agent, "tools", None))


def _may_need(request: LlmRequest) -> bool:
    """Return whether an agent has tools, or sees another agent's reference and can be offered a tool.

    Gemini refuses functions next to some of its own tools and next to a response schema, so a request with only those
    is left alone.
    """
    if request.tools_dict:
        return True
    config = request.config
    if config.tools or config.response_mime_type:
        return False
    texts = (part.text for content in request.contents for part in content.parts or () if part.text)
    return needs_retrieval_tool(texts, logger=logger)
