"""The plugin: it offloads every tool's result, adds the retrieval tool, and deletes what is no longer used.

Only what Strands asks of a plugin belongs here. The guard is in ``coatcheck.adapting``; nothing of Strands runs inside
it.
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
from coatcheck.adapting import Arrival, Batch, Delivery, OfferTool, RetrievalName, ScopeOption, WarnOnce, asettle
from coatcheck_strands.compat.calling import end_calls
from coatcheck_strands.compat.storage_hooks import StorageHooks, hook
from coatcheck_strands.convert import blocks_of, plain_blocks_of, rewrite, texts_of
from coatcheck_strands.copies import Copies, disown_marks, put_back_copies
from coatcheck_strands.measuring import measure
from coatcheck_strands.offering import Offering
from coatcheck_strands.offloaders import Offloaders
from coatcheck_strands.options import DEFAULTS, check_callable, check_cycles, complete_options, identity_of
from coatcheck_strands.retrieval import RetrievalTool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from strands import Agent
    from typing_extensions import Unpack

    from coatcheck import Policy, Scope, Truncated
    from coatcheck.adapting import OtherOptions
    from coatcheck_strands.compat.protocols import ShouldOffload

__all__ = ("ContextOffloader",)

logger: logging.Logger = logging.getLogger("coatcheck_strands")

_REPLACED = "The agent's own tool %r is replaced by coatcheck's: rename it, or pass include_retrieval_tool=False"

_direct_call: ContextVar[AfterToolCallEvent | None] = ContextVar("coatcheck_strands_direct_call", default=None)
"""The last direct call made in this context. If Strands records one, it does so in the context in which that ran."""


class _Recorded(AfterToolCallEvent):
    """The result of a direct call that enters the conversation."""


class ContextOffloader(StorageHooks):
    """Takes oversized tool results out of an agent's conversation; the model reads them back with one tool.

    Replaces ``strands.vended_plugins.context_offloader.ContextOffloader``. Results of cancelled calls, of delegating
    agents and of the retrieval tool itself stay, and so do all results while ``invocation_state["coatcheck"]`` is
    ``"keep"``. A direct call (``agent.tool.search(...)``) returns the real result, and records the placeholder. A
    tool's own result is never changed: a new one takes its place.
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
        """Configure.

        Args:
            storage: where content goes: a storage of coatcheck, of ``strands.storage`` or of Strands' own offloader, or
                a ready ``Offloader``; None means ``agent.storage``, else this process's memory.
            max_result_tokens: the threshold; a result above it is offloaded, one at it stays.
            preview_tokens: tokens that stay in view.
            include_retrieval_tool: give the agent the tool to read back with. Without it, placeholders name the file
                where the storage keeps files, and a tool of your own may ``await storage.retrieve(reference)``.
            offer_tool: ``"when needed"`` leaves the retrieval tool out of the model's requests until something was
                offloaded in the conversation, for models without a prompt cache; from then on it is always there. It
                needs ``strands-agents>=1.62``.
            should_offload: has the last word on a result above the threshold.
            evict_after_cycles: in a storage of ``strands.storage``, what the agent has not used for this many of its
                cycles is deleted; None for never. ``InMemoryStorage`` has a number of its own; other storages evict
                nothing.
            scope: who may read back: a scope, or a callable on the ``Call``, which has ``agent``, ``tool_use`` and
                ``invocation_state``. Else the ambient scope, else the session manager's session id, else
                ``"default"``, which all agents without a session manager share.
            native_media: the retrieval tool returns images and documents themselves instead of a description.
            keep_structured_content: do not touch the ``structuredContent`` and ``metadata`` of a tool of an MCP server.
                Else they are stored too where they are large, and ``restore`` gives them back.
            **options: those of ``Offloader``, except ``max_step_tokens``. ``offload_errors`` is True here. A
                ``token_counter`` measures results if there is one, else the agent's ``model.count_tokens``, unless that
                passes over what they hold, as most models' counts do over media.
                ``max_retrieval_tokens=None`` returns the whole content where the model selects nothing.

        Raises:
            InvalidRequest: an argument is wrong, or options came with a ready ``Offloader``. It is a ``ValueError``.

        """
        check_cycles("evict_after_cycles", evict_after_cycles)
        check_callable("should_offload", should_offload)
        is_whole = options.get("max_retrieval_tokens", 0) is None  # searches keep the core's default
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
        """Return an agent's offloader, for the host: to ``load`` whole content, to ``delete_scope``, to ``sweep``."""
        return self.offloaders.of(agent).offloader

    def init_agent(self, agent: Agent) -> None:
        """Find the agent's storage, and warn where a tool of its own has the retrieval tool's name."""
        self.offloaders.of(agent)
        self.offering.begin(agent)
        # Before a session manager, a context manager or anybody else sees the message.
        agent.add_hook(self._offload_recorded, MessageAddedEvent, order=HookOrder.SDK_FIRST)
        if self._include_retrieval_tool and RETRIEVAL_TOOL in agent.tool_registry.registry:
            logger.warning(_REPLACED, RETRIEVAL_TOOL)  # as Strands' own offloader replaces it, without a word

    def restore(self, result: ToolResult, agent: Agent | None = None, *, scope: Scope | None = None) -> ToolResult:
        """Return a tool result with the ``structuredContent`` and ``metadata`` that it came with, for the host.

        Args:
            result: as it is in a message of the conversation, or of a session. Its content stays as it is.
            agent: gives the storage and the session; None for the plugin's own storage.
            scope: as it was when the result was stored. Else the plugin's own, unless that is a callable; else the
                ambient one, else the session's id.

        Raises:
            ReferenceNotFound: the scope is another, or the content is gone.
            StorageError: the storage failed.
            InvalidRequest: ``scope`` is not a scope.

        """
        if scope is None and not callable(self.scope):
            scope = self.scope
        return put_back_copies(result, partial(self.offloader_of(agent).load, scope=scope, identity=identity_of(agent)))

    @hook
    async def offload_result(self, event: AfterToolCallEvent) -> None:
        """Replace a result that is too large, before it enters the conversation."""
        end_calls(event.agent)
        if event.cancel_message is not None:
            return
        is_final = getattr(event.selected_tool, "delegate", None) is True
        if is_final or isinstance(event.selected_tool, RetrievalTool) or _is_stash_reader(event.selected_tool):
            return
        # A direct call hands its result to Python code; only the event loop of an agent gives its calls a cycle.
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
        """Replace the result of a direct call in the message that records it; the caller has the real one."""
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
        """Return content of a tool's result, with all that the core asks about it."""
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
        """Return results of one call with their scope, which is an error where no storage can be found."""
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
        # Anything that is not a tool is a mock in a host's test, which knows nothing of its tools.
        return tool is self.retrieve_offloaded_content or not isinstance(tool, AgentTool | None)


class Content(Delivery[ToolResult]):
    """The content of one tool result."""

    def __init__(self, plugin: ContextOffloader, event: AfterToolCallEvent, scope: Callable[[], Scope | None]) -> None:
        self.plugin: ContextOffloader = plugin
        self.event: AfterToolCallEvent = event
        self.scope: Callable[[], Scope | None] = scope
        self.raw: ToolResult = event.result

    def look(self) -> Sequence[Batch]:
        """Return the result, unless it certainly stays."""
        content, name = self.raw["content"], self.event.tool_use["name"]
        if not isinstance(content, list):  # a tool's own mistake, which the model's client will name
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
        """Return another result, with what the model gets to see."""
        ((_, outcome),) = changed
        if isinstance(outcome, Offloaded):
            self.plugin.note_scope(self.event)
            self.plugin.offering.note(self.event.agent)
        return rewrite(self.raw, outcome)


def _is_stash_reader(tool: AgentTool | None) -> bool:
    """Return whether a tool reads back what Strands' context manager took out; its answers are bounded, and stay."""
    return isinstance(tool, PythonAgentTool) and tool.tool_name == "retrieve_context"
