"""The ``after_tool`` hook: it offloads what is too large in a step's results, taken together.

Only Haystack's hook interface belongs here. The guard is in ``coatcheck.adapting``; neither tools nor Haystack's
control flow run inside it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from haystack.components.agents.state.state_utils import replace_values
from haystack.core.serialization import default_from_dict, default_to_dict
from haystack.hooks import tool_result_offloading as upstream

from coatcheck import RETRIEVAL_TOOL, Offloader, asks_to_keep, is_called_by_code
from coatcheck.adapting import Arrival, Batch, Delivery, ScopeOption, WarnOnce, asettle, check_flags, settle
from coatcheck_haystack.agents import final_tools, is_name_taken, retrieval_tools, tools_of
from coatcheck_haystack.compat.previews import MAX_INLINE_TOKENS, add_preview, choose_preview
from coatcheck_haystack.compat.serialization import (
    source_from_dict,
    source_to_dict,
    strategies_from_dict,
    strategies_to_dict,
)
from coatcheck_haystack.compat.strategies import NEVER, Strategies, policy_for, require_strategies
from coatcheck_haystack.convert import MARK, blocks_of, plain_blocks_of, rewrite
from coatcheck_haystack.options import HookOptions, StoreOrOffloader, context_of, source_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from haystack.components.agents.state import State
    from haystack.dataclasses import ChatMessage, ToolCallResult
    from typing_extensions import Unpack

    from coatcheck import Offloaded, Policy, Truncated
    from coatcheck_haystack.options import Source

__all__ = ("ToolResultOffloadHook",)

logger: logging.Logger = logging.getLogger("coatcheck_haystack")

TAKEN = (
    "The name %r is taken by another tool, so the agent cannot read offloaded content back. Rename that tool, or give"
    " the agent RetrievalTool(hook, name=...)"
)
ABSENT = (
    "A tool result was offloaded, and the agent has no tool to read it back with. Add RetrievalTool(hook) to its tools"
)

_THEIRS = f"{upstream.ToolResultOffloadHook.__module__}.ToolResultOffloadHook"

SETTLING = ("max_inline_tokens", "max_step_tokens", "offload_errors", "on_event", "token_counter")
"""Options that require the core to look even at results that a strategy keeps."""


class ToolResultOffloadHook:
    """Takes oversized tool results out of an agent's conversation: ``Agent(..., hooks={"after_tool": [hook]})``.

    Give the agent ``RetrievalTool(hook)`` too, so that the model can read them back. Results of tools in the agent's
    ``exit_conditions``, of the retrieval tool and of calls made by code (``ToolCall.extra["caller"]``) stay, as do
    errors and empty results. ``"coatcheck": "keep"`` keeps a result up to ``max_inline_tokens``: in ``ToolCall.extra``
    for one call, in ``hook_context`` for a run. Streaming callbacks and tracers see the raw result before any hook
    does. One hook serves any number of runs at once.

    If your own hook calls this one on another thread, ``exit_conditions`` are hidden from it.
    """

    __module__ = "haystack_integrations.hooks.coatcheck"  # Haystack loads it from there without an allowlist

    allowed_hook_points: ClassVar[tuple[str, ...]] = ("after_tool",)

    def __init__(
        self,
        store: StoreOrOffloader,
        offload_strategies: Strategies | None = None,
        *,
        preview_chars: int | None = None,
        preview_tokens: int | None = None,
        scope: ScopeOption = None,
        keep_meta: bool = False,
        **options: Unpack[HookOptions],
    ) -> None:
        """Configure the hook.

        Args:
            store: where results go: a ``ToolResultStore`` with Haystack's interface, whose own references the model
                sees; a storage, such as ``FileStorage``; or a ready ``Offloader``. A run may override it with
                ``hook_context["tool_result_store"]``.
            offload_strategies: an ``OffloadPolicy`` or a policy of the core by tool name, tuple of names, or ``"*"``.
                The most specific one applies. Results of a tool that none matches stay. A result above
                ``max_inline_tokens`` (50,000 unless you set it) is offloaded whatever they say. If None, every result
                above ``max_result_tokens`` is offloaded, or a ready ``Offloader`` decides.
            preview_chars: size of the preview in characters, four to a token. None means 200 with strategies, else the
                size set in ``Offloader``.
            preview_tokens: the same, in exact tokens.
            scope: who may read back: a scope, or a callable that takes the ``State``. If None, the ambient scope, else
                ``hook_context["coatcheck_scope"]``, else ``"default"``.
            keep_meta: leave a message's ``meta`` alone even if a value in it equals the stored text. Else a small mark
                replaces that value, and ``restore_meta`` restores it.
            **options: the options of ``Offloader``. ``policies`` only without strategies; all only if ``store`` is not
                an ``Offloader``.

        Raises:
            InvalidRequest: an argument is wrong, or both preview sizes, or both strategies and policies, were given, or
                options came with a ready ``Offloader``.

        """
        if offload_strategies is not None:
            require_strategies(offload_strategies, policies=options.get("policies"))
        self._store = store
        self.offload_strategies = offload_strategies
        self._preview_chars, self._preview_tokens = choose_preview(
            store, preview_chars, tokens=preview_tokens, has_strategies=offload_strategies is not None
        )
        check_flags(keep_meta=keep_meta)
        self.keep_meta = keep_meta
        self._options = options
        completed: Mapping[str, Any] = options
        if not isinstance(store, Offloader):
            completed = add_preview(options, chars=self._preview_chars, tokens=preview_tokens)
        self.source: Source = source_of(store, completed, scope=scope, owner=ToolResultOffloadHook)
        # The core need not look at what a strategy keeps, if neither an option nor the result's size could offload it.
        self._is_settled = not isinstance(store, Offloader) and self._options.keys().isdisjoint(SETTLING)
        self.warn: WarnOnce = WarnOnce(logger)
        """Warns once about what keeps the model from reading back."""

    @property
    def store(self) -> StoreOrOffloader:
        """Where results go, as given. Read-only, like the preview sizes: create another hook to change it."""
        return self._store

    @property
    def preview_chars(self) -> int | None:
        """Size of the preview in characters; None if it was given in tokens, or is set in the ``Offloader``."""
        return self._preview_chars

    @property
    def preview_tokens(self) -> int | None:
        """Size of the preview in tokens; None if it was given in characters, or is set in the ``Offloader``."""
        return self._preview_tokens

    @property
    def offloader(self) -> Offloader:
        """The offloader of every run without its own store. The host uses it to ``load`` and to clean up."""
        return self.source.offloader

    def run(self, state: State) -> None:
        """Offload what is too large in the step's results, and write ``messages`` back if one changed."""
        settle(StepResults(hook=self, state=state), logger=logger)

    async def run_async(self, state: State) -> None:
        """Do what ``run`` does, without blocking the event loop."""
        await asettle(StepResults(hook=self, state=state), logger=logger)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``from_dict`` needs: the arguments as they were given.

        Raises:
            SerializationError: the store, a strategy, the scope or an option cannot be serialized.

        """
        name, strategies = type(self).__name__, self.offload_strategies
        written = None if strategies is None else strategies_to_dict(strategies, name)
        previews = {"preview_chars": self.preview_chars, "preview_tokens": self.preview_tokens}
        given: dict[str, Any] = {key: size for key, size in previews.items() if size is not None}
        if self.keep_meta:
            given["keep_meta"] = True
        source = source_to_dict(self.source, name, options=self._options)
        return default_to_dict(self, offload_strategies=written, **given, **source)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ToolResultOffloadHook:
        """Return the hook that this ``to_dict``, or that of Haystack's own hook, serialized."""
        if data.get("type") == _THEIRS:
            data = {**data, "type": f"{cls.__module__}.{cls.__name__}"}
        arguments = source_from_dict(data.get("init_parameters", {}))
        if arguments.get("offload_strategies") is not None:
            arguments["offload_strategies"] = strategies_from_dict(arguments["offload_strategies"])
        return default_from_dict(cls, {**data, "init_parameters": arguments})

    def policy_of(self, result: ToolCallResult, state: State) -> tuple[Policy | None, bool]:
        """Return the policy for a result, or None for the offloader's own, and whether the result certainly stays."""
        if asks_to_keep(context_of(state)) or asks_to_keep(result.origin.extra):
            return NEVER, False
        strategies = self.offload_strategies
        policy = None if strategies is None else policy_for(result, strategies, state=state)
        # A string has no more tokens than bytes, and a character has at most 4 bytes.
        is_short = isinstance(result.result, str) and len(result.result) <= MAX_INLINE_TOKENS // 4
        return policy, self._is_settled and is_short and (policy is NEVER or result.error)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResults(Delivery[None]):
    """The tool results at the end of the conversation, which are not decided yet."""

    raw: None = None
    hook: ToolResultOffloadHook
    state: State

    def look(self) -> Sequence[Batch]:
        """Return the results that may be offloaded, with their policies."""
        arrivals = []
        for position, message, result in self._new_results():
            policy, stays = self.hook.policy_of(result, self.state)
            if not stays:
                arrivals.append(_arrival(position, message, result, policy=policy))
        return self._batch(arrivals) if arrivals else ()

    def look_again(self) -> Sequence[Batch]:
        """Return all new results. If no storage can be found, nothing is stored."""
        arrivals = [_arrival(*new, policy=None) for new in self._new_results()]
        try:
            return self._batch(arrivals)
        except Exception as error:  # noqa: BLE001 - it was logged when it was raised the first time
            return self._batch(arrivals, error)

    def put_back(self, changed: Sequence[tuple[Arrival, Offloaded | Truncated]]) -> None:
        """Write the conversation back, with the changed messages replaced by copies."""
        messages = list(self.state.data["messages"])
        for arrival, outcome in changed:
            position, message = arrival.native
            messages[position] = rewrite(message, outcome, keep_meta=self.hook.keep_meta)
        # The schema's own handler would append.
        self.state.set("messages", messages, handler_override=replace_values)
        tools = tools_of(self.state)
        if tools and not retrieval_tools(tools, self.hook.source):
            self.hook.warn(ABSENT)

    def _new_results(self) -> Iterator[tuple[int, ChatMessage, ToolCallResult]]:
        """Yield the new results with their positions in the conversation, except those of calls made by code."""
        messages = self.state.data.get("messages") or ()
        first = len(messages)
        while first and messages[first - 1].tool_call_result is not None:
            first -= 1
        for position, message in enumerate(messages[first:], first):
            result = message.tool_call_result
            by_code = is_called_by_code((result.origin.extra or {}).get("caller"))
            if not by_code and not message.meta.get(MARK):
                yield position, message, result

    def _batch(self, arrivals: Sequence[Arrival], error: Exception | None = None) -> Sequence[Batch]:
        """Return the results with their storage and scope. If finding these failed, ``error`` is the scope."""
        source, tools = self.hook.source, tools_of(self.state)
        offloader = source.offloader_of(self.state) if error is None else source.offloader
        readers = retrieval_tools(tools, source)
        if is_name_taken(tools):
            self.hook.warn(TAKEN, RETRIEVAL_TOOL)
        stay = {*readers, *final_tools()}
        batch = Batch(
            arrivals=[arrival for arrival in arrivals if arrival.tool_name not in stay],
            offloader=offloader,
            scope=partial(source.scope_of, self.state) if error is None else error,
            identity=partial(source.identity_of, self.state),
            retrieval_tool=readers[0] if readers else None,
            together=True,
        )
        return (batch,)


def _arrival(position: int, message: ChatMessage, result: ToolCallResult, *, policy: Policy | None) -> Arrival:
    return Arrival(
        native=(position, message),
        content=result.result,
        convert=blocks_of,
        convert_plainly=plain_blocks_of,
        tool_name=result.origin.tool_name,
        tool_args=result.origin.arguments,
        is_error=result.error,
        is_heavy=not isinstance(result.result, str),
        policy=policy,
    )
