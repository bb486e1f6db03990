"""The plugin: it offloads every tool's result, brings the retrieval tool, and lets go of what is not used any more.

Only what Strands asks of a plugin belongs here. Our own work runs inside a guard, and nothing of Strands does: a
failing rewrite leaves the raw result, unless the core's last resort finds it far too large, and the agent goes on.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from strands.hooks import (
    AfterInvocationEvent,
    AfterToolCallEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
    HookOrder,
    MessageAddedEvent,
)
from strands.plugins import Plugin, hook
from strands.tools import PythonAgentTool
from strands.types.tools import AgentTool

from coatcheck import (
    RETRIEVAL_TOOL,
    Always,
    Never,
    Offloaded,
    Offloader,
    Truncated,
    asks_to_keep,
    choose_scope,
    log_failure,
)
from coatcheck_strands.calling import begin_call, calling, end_calls
from coatcheck_strands.convert import (
    blocks_of,
    large_beside,
    plain_blocks_of,
    rewritten,
    set_apart,
    set_apart_in,
    texts_of,
)
from coatcheck_strands.cycles import used_by
from coatcheck_strands.offloaders import Offloaders
from coatcheck_strands.options import (
    Call,
    Scope,
    checked_cycles,
    checked_scope,
    identity_of,
    knobs_of,
    resolved,
)
from coatcheck_strands.retrieval import RetrievalTool

if TYPE_CHECKING:
    from strands import Agent
    from strands.types.tools import ToolResult

    from coatcheck import Outcome, Policy
    from coatcheck_strands.protocols import ShouldOffload

__all__ = ("ContextOffloader",)

logger = logging.getLogger("coatcheck_strands")

_DEFAULTS = (2_500, 1_000)

_REPLACED = "The agent's own tool %r is replaced by coatcheck's: rename it, or pass include_retrieval_tool=False"
_TAKEN = (
    "The name %r is taken by another tool, so placeholders do not name it, and its results are treated like any other"
)


_direct_call: ContextVar[AfterToolCallEvent | None] = ContextVar("coatcheck_strands_direct_call", default=None)
"""The direct call that was made here last. Strands records one, if it does, in the context in which it ran."""


def _is_stash_reader(tool: AgentTool | None) -> bool:
    """Return whether a tool reads back what Strands' context manager took out; its answers are bounded, and stay."""
    return isinstance(tool, PythonAgentTool) and tool.tool_name == "retrieve_context"


class _Recorded(AfterToolCallEvent):
    """The result of a direct call that enters the conversation."""


class ContextOffloader(Plugin):
    """Takes oversized tool results out of an agent's conversation; the model reads them back with one tool.

    Takes the place of ``strands.vended_plugins.context_offloader.ContextOffloader``. Results of cancelled calls, of
    delegating agents and of the retrieval tool itself stay, and so do all while ``invocation_state["coatcheck"]`` is
    ``"keep"``. A direct call (``agent.tool.search(...)``) returns the real result, and records the placeholder. A
    tool's own result is never changed: a new one takes its place.
    """

    name = "context_offloader"

    def __init__(
        self,
        storage: object = None,
        max_result_tokens: int = _DEFAULTS[0],
        preview_tokens: int = _DEFAULTS[1],
        *,
        include_retrieval_tool: bool = True,
        should_offload: ShouldOffload | None = None,
        evict_after_cycles: int | None = 20,
        scope: Scope = None,
        native_media: bool = True,
        keep_structured_content: bool = False,
        **knobs: Any,  # noqa: ANN401 - those of Offloader
    ) -> None:
        """Configure.

        Args:
            storage: where content goes: a storage of coatcheck, of ``strands.storage`` or of Strands' own offloader, or
                a ready ``Offloader``; None means ``agent.storage``, else this process's memory.
            max_result_tokens: the threshold; a result above it leaves the conversation, one at it stays.
            preview_tokens: tokens that stay in view.
            include_retrieval_tool: give the agent the tool to read back with. Without it, placeholders name the file
                where the storage keeps files, and a tool of your own may ``await storage.retrieve(reference)``.
            should_offload: has the last word on a result above the threshold.
            evict_after_cycles: in a storage of ``strands.storage``, what the agent has not used for so many of its
                cycles is deleted; None for never. ``InMemoryStorage`` has a number of its own; other storages evict
                nothing.
            scope: who may read back: a text, or a callable on the ``Call``, which has ``agent``, ``tool_use`` and
                ``invocation_state``. Else the ambient scope, else the session manager's session id, else
                ``"default"``, which all agents without a session manager share.
            native_media: the retrieval tool returns images and documents themselves instead of a description.
            keep_structured_content: leave the ``structuredContent`` and ``metadata`` of a tool of an MCP server where
                they are. Else they are stored too where they are large, and ``restore`` gives them back.
            **knobs: those of ``Offloader``, but for ``max_step_tokens``. ``offload_errors`` is True here. With a
                ``token_counter`` results are measured by it, else by the agent's ``model.count_tokens``, which does not
                count images and documents. ``max_retrieval_tokens=None`` returns the whole content where the model
                selects nothing.

        Raises:
            InvalidRequest: an argument is wrong, or a ready ``Offloader`` was passed together with knobs. It is a
                ``ValueError``.

        """
        super().__init__()
        checked_cycles("evict_after_cycles", evict_after_cycles)
        offloader_knobs = knobs_of(
            storage,
            max_result_tokens=max_result_tokens,
            preview_tokens=preview_tokens,
            has_tool=include_retrieval_tool,
            more=knobs,
            defaults=_DEFAULTS,
        )
        self._offloaders = Offloaders(storage, knobs=offloader_knobs, evict_after_cycles=evict_after_cycles)
        self._scope = checked_scope(scope)
        self._should_offload = should_offload
        self._include_retrieval_tool = include_retrieval_tool
        self._keep_structured_content = keep_structured_content
        self._asks_the_model = not isinstance(storage, Offloader) and offloader_knobs.get("token_counter") is None
        self._warned = False
        self.retrieve_offloaded_content = RetrievalTool(
            self._offloaders,
            scope=self._scope,
            native_media=native_media,
            whole=knobs.get("max_retrieval_tokens", 0) is None,
        )

    @property
    def tools(self) -> list[Any]:
        """The retrieval tool, if it is included."""
        return [self.retrieve_offloaded_content] if self._include_retrieval_tool else []

    def offloader_of(self, agent: Agent | None = None) -> Offloader:
        """Return what serves an agent, for the host: to ``load`` a content whole, to ``delete_scope``, to ``sweep``."""
        return self._offloaders.of(agent).offloader

    def init_agent(self, agent: Agent) -> None:
        """Find the agent's storage, and warn where a tool of its own has the retrieval tool's name."""
        self._offloaders.of(agent)
        # Before a session manager, a context manager or anybody else sees the message.
        agent.add_hook(self._offload_recorded, MessageAddedEvent, order=HookOrder.SDK_FIRST)
        if self._include_retrieval_tool and RETRIEVAL_TOOL in agent.tool_registry.registry:
            logger.warning(_REPLACED, RETRIEVAL_TOOL)  # as Strands' own offloader replaces it, without a word

    def restore(self, result: ToolResult, agent: Agent | None = None, *, scope: str | None = None) -> ToolResult:
        """Return a tool result with the ``structuredContent`` and ``metadata`` that it came with, for the host.

        Args:
            result: as it is in a message of the conversation, or of a session. Its content stays as it is.
            agent: whose storage and session; None for the plugin's own storage.
            scope: as it was when the result was stored; else the ambient one, else the session's id.

        Raises:
            ReferenceNotFound: the scope is another, or the content is gone.
            StorageError: the storage failed.

        """
        load = partial(self.offloader_of(agent).load, scope=scope, identity=identity_of(agent))
        found = {key: json.loads(load(reference).data) for key, reference in set_apart_in(result).items()}
        return cast("ToolResult", {**result, **found})

    @hook  # type: ignore[call-overload] # its types know no methods
    def begin_call(self, event: BeforeToolCallEvent) -> None:
        """Let the storages know for whom the tool reads that is about to run."""
        call = Call(agent=event.agent, tool_use=event.tool_use, invocation_state=event.invocation_state)
        begin_call(event.agent, partial(self._scope_of, call))

    @hook  # type: ignore[call-overload] # its types know no methods
    def end_calls(self, event: AfterInvocationEvent) -> None:
        """Let go of what calls left that were interrupted."""
        end_calls(event.agent)

    @hook  # type: ignore[call-overload] # its types know no methods
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
        try:
            await self._offload(event)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here must not end the agent
            log_failure(logger, "coatcheck could not offload a tool result; it stays as it is", error=error)
            await self._limit(event)

    @hook  # type: ignore[call-overload] # its types know no methods
    async def evict_unused(self, event: BeforeModelCallEvent) -> None:
        """Let go of what the agent has not used for too long."""
        end_calls(event.agent)
        try:
            await self._offloaders.of(event.agent).evict(event.agent)
        except Exception as error:  # noqa: BLE001 - it stays a little longer
            log_failure(logger, "coatcheck failed to evict what is not used any more", error=error)

    async def _offload_recorded(self, event: MessageAddedEvent) -> None:
        """Replace the result of a direct call in the message that records it; who made the call has the real one."""
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

    async def _offload(self, event: AfterToolCallEvent) -> None:
        result = event.result
        if not isinstance(result["content"], list):  # a tool's own mistake, which the model's client will name
            return
        name, is_error = event.tool_use["name"], result["status"] == "error"
        texts = texts_of(result["content"])
        if texts is not None and self.offloader_of(event.agent).keeps(texts, tool_name=name, is_error=is_error):
            outcome: Outcome | None = None
        else:
            outcome = await self._outcome(event, result, policy=self._policy_of(event))
        left = isinstance(outcome, Offloaded | Truncated)
        if isinstance(outcome, Offloaded | Truncated):
            event.result = rewritten(result, outcome)
        for key, value in ({} if self._keep_structured_content else large_beside(result)).items():
            alone: ToolResult = {
                "toolUseId": result["toolUseId"],
                "status": result["status"],
                "content": [{"json": value}],
            }
            apart = await self._outcome(event, alone, policy=Always() if left else self._policy_of(event))
            if isinstance(apart, Offloaded):
                event.result = set_apart(event.result, key, reference=apart.references[0])

    def _policy_of(self, event: AfterToolCallEvent) -> Policy | None:
        """Return what governs a result that the host asked to keep: above ``max_inline_tokens`` it leaves even so."""
        return Never() if asks_to_keep(event.invocation_state) else None

    async def _outcome(self, event: AfterToolCallEvent, result: ToolResult, *, policy: Policy | None) -> Outcome:
        agent, tool_use = event.agent, event.tool_use
        arguments = tool_use.get("input")

        async def measured() -> int:
            return await agent.model.count_tokens([{"role": "user", "content": [{"toolResult": result}]}])

        call = Call(agent=agent, tool_use=tool_use, invocation_state=event.invocation_state)
        scope, identity = resolved(self._scope, call), identity_of(agent)
        at_hand = choose_scope(scope, identity, required=False)
        served = self._offloaders.of(agent)
        with used_by(agent), calling(agent, at_hand):
            outcome = await served.offloader.aoffload(
                blocks_of(result["content"]),
                tool_name=tool_use["name"],
                tool_args=arguments if isinstance(arguments, Mapping) else None,
                scope=scope,
                identity=identity,
                is_error=result["status"] == "error",
                measured_tokens=measured if self._asks_the_model else None,
                confirm=None if self._should_offload is None else partial(self._should_offload, tool_use["name"]),
                policy=policy,
                retrieval_tool=self._retrieval_tool_of(agent),
            )
        if served.known_scopes is not None and isinstance(outcome, Offloaded):
            served.known_scopes.note(at_hand)
        return outcome

    def _scope_of(self, call: Call) -> str | tuple[str, ...]:
        return choose_scope(resolved(self._scope, call), identity_of(call.agent), required=False)

    async def _limit(self, event: AfterToolCallEvent) -> None:
        """Cut a result that is far too large, where offloading it failed."""
        try:
            outcome = await self._last_resort(event)
            if outcome is not None:
                event.result = rewritten(event.result, outcome)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here must not end the agent
            log_failure(logger, "coatcheck could not cut it either; it stays, whatever its size", error=error)

    async def _last_resort(self, event: AfterToolCallEvent) -> Offloaded | Truncated | None:
        agent, tool_use = event.agent, event.tool_use
        call = Call(agent=agent, tool_use=tool_use, invocation_state=event.invocation_state)
        try:
            offloader = self.offloader_of(agent)
        except Exception:  # noqa: BLE001 - it was logged when it failed the first time
            offloader = self.offloader_of()

        def scope() -> str | None:
            self.offloader_of(agent)  # raises where nobody knows where to store: then nothing is stored
            return resolved(self._scope, call)

        with used_by(agent):
            return await offloader.alast_resort(
                plain_blocks_of(event.result["content"]),
                tool_name=str(tool_use["name"]),
                scope=scope,
                identity=partial(identity_of, agent),
                retrieval_tool=self._retrieval_tool_of(agent),
            )

    def _retrieval_tool_of(self, agent: Agent) -> str | None:
        """Return the name of the retrieval tool; None where there is none, or another tool took its name later."""
        if not self._include_retrieval_tool:
            return None
        found = agent.tool_registry.registry.get(RETRIEVAL_TOOL)
        # What is no tool is a mock agent in a test of the host's, which knows nothing of its tools.
        if found is self.retrieve_offloaded_content or not isinstance(found, AgentTool | None):
            return RETRIEVAL_TOOL
        if not self._warned:
            self._warned = True
            logger.warning(_TAKEN, RETRIEVAL_TOOL)
        return None
