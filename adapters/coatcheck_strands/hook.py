"""The plugin: it offloads large tool results, adds the retrieval tool, and deletes unused entries.

Only Strands' plugin interface belongs here. The guard is in ``coatcheck.adapting``; no Strands code runs inside it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from strands.hooks import AfterToolCallEvent, HookOrder, MessageAddedEvent
from strands.tools import PythonAgentTool
from strands.types.tools import AgentTool, ToolResult

from coatcheck import RETRIEVAL_TOOL, Never, Offloaded, Offloader, asks_to_keep
from coatcheck.adapting import Arrival, Batch, Delivery, RetrievalName, WarnOnce, asettle, check_flags
from coatcheck_strands.compat.calling import end_call
from coatcheck_strands.compat.storage_hooks import StorageHooks, hook
from coatcheck_strands.convert import blocks_of, plain_blocks_of, rewrite, texts_of
from coatcheck_strands.copies import Copies, disown_marks, put_back_copies
from coatcheck_strands.measuring import measure
from coatcheck_strands.offering import Offering
from coatcheck_strands.offloaders import Offloaders
from coatcheck_strands.options import DEFAULTS, check_callable, complete_options, identity_of
from coatcheck_strands.retrieval import RetrievalTool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from strands import Agent
    from typing_extensions import Unpack

    from coatcheck import Policy, Scope, Truncated
    from coatcheck.adapting import OfferTool, OtherOptions, ScopeOption
    from coatcheck_strands.compat.protocols import ShouldOffload

__all__ = ("ContextOffloader",)

logger: logging.Logger = logging.getLogger("coatcheck_strands")

_REPLACED = "The agent's own tool %r is replaced by coatcheck's: rename it, or pass include_retrieval_tool=False"

_direct_call: ContextVar[AfterToolCallEvent | None] = ContextVar("coatcheck_strands_direct_call", default=None)
"""The last direct call made in this context. If Strands records a direct call, it does so in the call's context."""


class _Recorded(AfterToolCallEvent):
    """The result of a direct call, when it enters the conversation."""


class ContextOffloader(StorageHooks):
    """Takes oversized tool results out of an agent's conversation; the model reads them back with one tool.

    Replaces ``strands.vended_plugins.context_offloader.ContextOffloader``. Results of cancelled calls, of delegating
    agents and of the retrieval tool itself stay, and so do all results while ``invocation_state["coatcheck"]`` is
    ``"keep"``. A direct call (``agent.tool.search(...)``) returns the real result, and the conversation records the
    placeholder. A tool's own result is never changed; a new one takes its place.
    """

    def __init__(
        self,
        storage: object = None,
        max_result_tokens: int = DEFAULTS["max_result_tokens"],
        preview_tokens: int = DEFAULTS["preview_tokens"],
        *,
        include_retrieval_tool: bool = True,
        offer_tool: OfferTool = "always",
        should_offload: ShouldOffload | None = None,
        evict_after_cycles: int | None = 20,
        scope: ScopeOption = None,
        native_media: bool = True,
        keep_structured_content: bool = False,
        **options: Unpack[OtherOptions],
    ) -> None:
        """Configure the plugin.

        Args:
            storage: where content goes: a storage of coatcheck, of ``strands.storage`` or of Strands' own offloader, or
                a ready ``Offloader``. None means ``agent.storage``, else this process's memory.
            max_result_tokens: the threshold. A larger result is offloaded; one of exactly this size stays.
            preview_tokens: the size of the preview that stays in the conversation.
            include_retrieval_tool: give the agent the tool to read back with. Without it, placeholders name the file if
                the storage keeps files, and your own tool may ``await storage.retrieve(reference)``.
            offer_tool: ``"when needed"`` hides the retrieval tool from the model until something was offloaded in the
                conversation, and offers it from then on. Use it with models that have no prompt cache. It needs
                ``strands-agents>=1.62``.
            should_offload: has the last word on a result above the threshold.
            evict_after_cycles: after how many cycles without use by the agent an entry in a storage of
                ``strands.storage`` is deleted; None means never. ``InMemoryStorage`` has its own number; other storages
                evict nothing.
            scope: who may read back: a scope, or a callable that takes the ``Call``, which has ``agent``, ``tool_use``
                and ``invocation_state``. If None, the ambient scope, else the session manager's session id, else
                ``"default"``, which all agents without a session manager share.
            native_media: the retrieval tool returns images and documents themselves instead of a description.
            keep_structured_content: leave the ``structuredContent`` and ``metadata`` of an MCP server's result alone.
                Else large ones are stored too, and ``restore`` restores them.
            **options: those of ``Offloader``, except ``max_step_tokens``. ``offload_errors`` is True here. Results are
                measured by the ``token_counter`` if there is one, else by the agent's ``model.count_tokens``, unless
                that ignores part of the result, as most models' counts ignore media. ``max_retrieval_tokens=None``
                returns the whole content if the model selects nothing.

        Raises:
            InvalidRequest: an argument is wrong, or options came with a ready ``Offloader``. It is a ``ValueError``.

        """
        check_callable("should_offload", should_offload)
        check_flags(include_retrieval_tool=include_retrieval_tool, keep_structured_content=keep_structured_content)
        is_whole = options.get("max_retrieval_tokens", 0) is None  # searches still use the core's default
        completed = complete_options(
            storage,
            max_result_tokens=max_result_tokens,
            preview_tokens=preview_tokens,
            has_tool=include_retrieval_tool,
            more=options,
            owner=ContextOffloader,
        )
        offloaders = Offloaders(storage, options=completed, evict_after_cycles=evict_after_cycles)
        super().__init__(offloaders, scope=scope)
        self._should_offload = should_offload
        self._include_retrieval_tool = include_retrieval_tool
        self._keep_structured_content = keep_structured_content
        asks_the_model = not isinstance(storage, Offloader) and completed.get("token_counter") is None
        self._measure = partial(measure, limit=max_result_tokens) if asks_the_model else None
        self._find_tool = RetrievalName(RETRIEVAL_TOOL, warn=WarnOnce(logger), is_ours=self._is_ours).find
        self.retrieve_offloaded_content: RetrievalTool = RetrievalTool(
            self.offloaders, scope=self.scope, native_media=native_media, whole=is_whole
        )
        self.offering: Offering = Offering(offer_tool, self.retrieve_offloaded_content)

    @property
    def tools(self) -> list[Any]:
        """The retrieval tool, if it is included."""
        return [self.retrieve_offloaded_content] if self._include_retrieval_tool else []

    def offloader_of(self, agent: Agent | None = None) -> Offloader:
        """Return an agent's offloader, so that the host can ``load`` whole content, ``delete_scope`` and ``sweep``."""
        return self.offloaders.of(agent).offloader

    def init_agent(self, agent: Agent) -> None:
        """Find the agent's storage, and warn if one of its own tools has the retrieval tool's name."""
        self.offloaders.of(agent)
        self.offering.begin(agent)
        # Runs before a session manager, a context manager or anyone else sees the message.
        agent.add_hook(self._offload_recorded, MessageAddedEvent, order=HookOrder.SDK_FIRST)
        if self._include_retrieval_tool and RETRIEVAL_TOOL in agent.tool_registry.registry:
            logger.warning(_REPLACED, RETRIEVAL_TOOL)  # Strands' own offloader replaces it too, silently

    def restore(self, result: ToolResult, agent: Agent | None = None, *, scope: Scope | None = None) -> ToolResult:
        """Return a tool result with its original ``structuredContent`` and ``metadata``, for the host.

        Args:
            result: the result in a message of the conversation or of a session. Its content stays as it is.
            agent: determines the storage and the session; None means the plugin's own storage.
            scope: the scope in which the result was stored. If None, the plugin's own scope unless that is a callable,
                else the ambient scope, else the session's id.

        Raises:
            ReferenceNotFound: the scope is wrong, or the content is gone.
            StorageError: the storage failed.
            InvalidRequest: ``scope`` is not a scope.

        """
        if scope is None and not callable(self.scope):
            scope = self.scope
        return put_back_copies(result, partial(self.offloader_of(agent).load, scope=scope, identity=identity_of(agent)))

    @hook
    async def offload_result(self, event: AfterToolCallEvent) -> None:
        """Replace an oversized result before it enters the conversation."""
        end_call(event.agent)
        if event.cancel_message is not None:
            return
        is_final = getattr(event.selected_tool, "delegate", None) is True
        if is_final or isinstance(event.selected_tool, RetrievalTool) or _is_stash_reader(event.selected_tool):
            return
        # A direct call returns its result to Python code. Only calls from an agent's event loop have a cycle id.
        if "event_loop_cycle_id" not in event.invocation_state and not isinstance(event, _Recorded):
            _direct_call.set(event)
            return
        raw = event.result = disown_marks(event.result)
        with self.storing(event) as scope:
            event.result = await asettle(Content(self, event, scope), logger=logger)
            if not self._keep_structured_content:
                copies = Copies(self, event, scope, is_stored=event.result is not raw)
                event.result = await asettle(copies, logger=logger)

    async def _offload_recorded(self, event: MessageAddedEvent) -> None:
        """Replace the result of a direct call in the message that records it. The caller keeps the real one."""
        for position, block in enumerate(event.message["content"]):
            result, call = block.get("toolResult"), _direct_call.get()
            if result is None or call is None or result["toolUseId"] != call.tool_use["toolUseId"]:
                continue
            recorded = _Recorded(
                agent=call.agent,
                selected_tool=call.selected_tool,
                tool_use=call.tool_use,
                invocation_state=call.invocation_state,
                result=result,
            )
            await self.offload_result(recorded)
            if recorded.result is not result:
                event.message["content"][position] = {"toolResult": recorded.result}

    def arrival_of(
        self, event: AfterToolCallEvent, content: object, *, native: str | None = None, policy: Policy | None = None
    ) -> Arrival:
        """Return content of a tool's result, with everything the core needs to know about it."""
        result, tool_use, agent = event.result, event.tool_use, event.agent
        name, arguments = str(tool_use["name"]), tool_use.get("input")

        return Arrival(
            content=content,
            native=native,
            convert=blocks_of,
            convert_plainly=plain_blocks_of,
            tool_name=name,
            tool_args=arguments if isinstance(arguments, Mapping) else {},
            is_error=result["status"] == "error",
            measured_tokens=self._measure and partial(self._measure, content, result, agent.model),
            confirm=None if self._should_offload is None else partial(self._should_offload, name),
            policy=policy or (Never() if asks_to_keep(event.invocation_state) else None),
        )

    def batch_of(
        self, event: AfterToolCallEvent, arrivals: Sequence[Arrival], *, scope: Callable[[], Scope | None]
    ) -> Batch:
        """Return the results of one call with their scope, which is an error if no storage can be found."""
        agent = event.agent
        try:
            offloader, error = self.offloader_of(agent), None
        except Exception as failed:  # noqa: BLE001 - the guard logs it
            offloader, error = self.offloader_of(), failed
        return Batch(
            arrivals=arrivals,
            offloader=offloader,
            scope=error or scope,
            identity=partial(identity_of, agent),
            retrieval_tool=self._find_tool(agent.tool_registry.registry) if self._include_retrieval_tool else None,
        )

    def _is_ours(self, tool: object) -> bool:
        # Anything that is not a tool is a mock in a host's test, and says nothing about the agent's tools.
        return tool is self.retrieve_offloaded_content or not isinstance(tool, AgentTool | None)


class Content(Delivery[ToolResult]):
    """The content of one tool result."""

    def __init__(self, plugin: ContextOffloader, event: AfterToolCallEvent, scope: Callable[[], Scope | None]) -> None:
        self.plugin: ContextOffloader = plugin
        self.event: AfterToolCallEvent = event
        self.scope: Callable[[], Scope | None] = scope
        self.raw: ToolResult = event.result

    def look(self) -> Sequence[Batch]:
        """Return the result, unless it is certain to stay."""
        content, name = self.raw["content"], self.event.tool_use["name"]
        if not isinstance(content, list):  # the tool's own mistake, which the model's client will report
            return ()
        texts, is_error = texts_of(content), self.raw["status"] == "error"
        if texts is not None and self.plugin.offloader_of(self.event.agent).keep_if_small(
            texts, tool_name=name, is_error=is_error
        ):
            return ()
        return self.look_again()

    def look_again(self) -> Sequence[Batch]:
        """Return the result."""
        arrival = self.plugin.arrival_of(self.event, self.raw["content"])
        return (self.plugin.batch_of(self.event, [arrival], scope=self.scope),)

    def put_back(self, changed: Sequence[tuple[Arrival, Offloaded | Truncated]]) -> ToolResult:
        """Return a new result, with what the model will see."""
        ((_, outcome),) = changed
        if isinstance(outcome, Offloaded):
            self.plugin.note_scope(self.event)
            self.plugin.offering.note(self.event.agent)
        return rewrite(self.raw, outcome)


def _is_stash_reader(tool: AgentTool | None) -> bool:
    """Return whether a tool reads back what Strands' context manager took out. Its results are bounded, and stay."""
    return isinstance(tool, PythonAgentTool) and tool.tool_name == "retrieve_context"
