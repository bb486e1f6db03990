"""The ``after_tool`` hook: it offloads what is too large of a step's results, all of them together.

Only what Haystack asks of a hook belongs here. No tool and no control flow of Haystack's runs inside the guard: if our
rewriting fails, a warning says so and the raw results go on, but for those that the core's last resort finds far too
large.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from haystack.core.serialization import default_from_dict, default_to_dict
from haystack.hooks import tool_result_offloading as upstream

from coatcheck import RETRIEVAL_TOOL, Offloader, asks_to_keep, is_called_by_code, log_failure
from coatcheck_haystack.agents import final_tools, is_name_taken, retrieval_tools, tools_of
from coatcheck_haystack.options import (
    Scope,
    StoreOrOffloader,
    chosen_preview,
    context_of,
    is_short,
    settings_of,
    source_of,
)
from coatcheck_haystack.serialization import source_from_dict, source_to_dict, strategies_from_dict, strategies_to_dict
from coatcheck_haystack.step import New, Step, new_results
from coatcheck_haystack.strategies import NEVER, Strategies, policy_for, require_strategies

if TYPE_CHECKING:
    from collections.abc import Sequence

    from haystack.components.agents.state import State

    from coatcheck import Outcome

__all__ = ("ToolResultOffloadHook",)

logger = logging.getLogger("coatcheck_haystack")

FAILED = "coatcheck could not offload a tool result; it stays in the conversation as it is"
UNLIMITED = "coatcheck could not cut a tool result either; it stays in the conversation as it is, whatever its size"
TAKEN = (
    "The name %r is taken by another tool, so the agent cannot read offloaded content back. Rename that tool, or give"
    " the agent RetrievalTool(hook, name=...)"
)
ABSENT = (
    "A tool result left the conversation, and the agent has no tool to read it back with. Give it RetrievalTool(hook),"
    " beside its other tools"
)
PREVIEW_CHARS = 200
"""As Haystack's own hook."""

_THEIRS = f"{upstream.ToolResultOffloadHook.__module__}.ToolResultOffloadHook"

SETTLING = ("max_inline_tokens", "max_step_tokens", "offload_errors", "on_event", "token_counter")
"""Knobs that make the core look also at what a strategy keeps."""


class ToolResultOffloadHook:
    """Takes oversized tool results out of an agent's conversation: ``Agent(..., hooks={"after_tool": [hook]})``.

    Give the agent ``RetrievalTool(hook)`` too, so that the model can read them back. Results of tools in the agent's
    ``exit_conditions``, of the retrieval tool and of calls that code made (``ToolCall.extra["caller"]``) stay, as do
    errors and empty results. ``"coatcheck": "keep"`` keeps a result up to ``max_inline_tokens``: in ``ToolCall.extra``
    for one call, in ``hook_context`` for a run. Streaming callbacks and tracers
    see the raw result before any hook does. One hook serves any number of runs at once.
    """

    __module__ = "haystack_integrations.hooks.coatcheck"  # from where Haystack loads it without an allowlist

    allowed_hook_points = ("after_tool",)

    def __init__(
        self,
        store: StoreOrOffloader,
        offload_strategies: Strategies | None = None,
        *,
        preview_chars: int | None = None,
        preview_tokens: int | None = None,
        scope: Scope = None,
        keep_meta: bool = False,
        **knobs: Any,  # noqa: ANN401 - those of Offloader
    ) -> None:
        """Configure.

        Args:
            store: where results go: a ``ToolResultStore`` of Haystack's shape, whose own references the model is shown;
                a storage, such as ``FileStorage``; or a ready ``Offloader``. A run may bring another one in
                ``hook_context["tool_result_store"]``.
            offload_strategies: by tool name, by a tuple of names, or ``"*"``, the most specific first: an
                ``OffloadPolicy``, or one of the core's policies. A tool that none matches is not offloaded. Whatever
                they say, a result above ``max_inline_tokens`` (50,000 unless you set it) leaves. None: every result
                above ``max_result_tokens`` leaves, or what a ready ``Offloader`` says.
            preview_chars: size of the preview, in characters of which four make a token; None means 200 with
                strategies, else what ``Offloader`` has.
            preview_tokens: the same in exact tokens, instead.
            scope: who may read back: a text, or a callable on the ``State``. Else the ambient scope, else
                ``hook_context["coatcheck_scope"]``, else ``"default"``.
            keep_meta: leave a message's ``meta`` alone even where a value in it is the very text that left; else a
                small mark takes its place, and ``restore_meta`` gives it back.
            **knobs: those of ``Offloader``, where ``store`` is none; not ``policies``, which are the strategies.

        Raises:
            InvalidRequest: an argument is wrong, both previews were given, or a ready ``Offloader`` was passed together
                with knobs.

        """
        if offload_strategies is not None:
            require_strategies(offload_strategies)
        self._store = store
        self.offload_strategies = offload_strategies
        default = None if offload_strategies is None or isinstance(store, Offloader) else PREVIEW_CHARS
        self._preview_chars, self._preview_tokens = chosen_preview(
            store, preview_chars, tokens=preview_tokens, default=default
        )
        self.keep_meta = keep_meta
        self._knobs = knobs
        settings = settings_of(knobs, chars=self._preview_chars, tokens=preview_tokens)
        self.source = source_of(store, knobs if isinstance(store, Offloader) else settings, scope=scope)
        # What a strategy keeps, and neither a knob nor its size could make leave, the core need not be asked about.
        self._is_settled = not isinstance(store, Offloader) and knobs.keys().isdisjoint(SETTLING)
        self._warned = False

    @property
    def store(self) -> StoreOrOffloader:
        """Where results go, as given. Read-only, as the previews are: make another hook to change it."""
        return self._store

    @property
    def preview_chars(self) -> int | None:
        """Size of the preview in characters; None if it is given in tokens, or is that of the ``Offloader``."""
        return self._preview_chars

    @property
    def preview_tokens(self) -> int | None:
        """Size of the preview in tokens; None if it is given in characters, or is that of the ``Offloader``."""
        return self._preview_tokens

    @property
    def offloader(self) -> Offloader:
        """What serves every run without a store of its own, to ``load`` and to clean up."""
        return self.source.offloader

    def run(self, state: State) -> None:
        """Offload what is too large of the step's results, and write ``messages`` back if one changed."""
        try:
            step = self._step(state)
            if step is not None:
                self._put_back(step, step.offloader.offload_step(step.results(), **step.details))
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here must not end the agent
            log_failure(logger, FAILED, error=error)
            self._limit(state)

    async def run_async(self, state: State) -> None:
        """Do what ``run`` does, without blocking the event loop."""
        try:
            step = self._step(state)
            if step is not None:
                results = await asyncio.to_thread(step.results) if step.is_heavy else step.results()
                self._put_back(step, await step.offloader.aoffload_step(results, **step.details))
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here must not end the agent
            log_failure(logger, FAILED, error=error)
            await self._alimit(state)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``from_dict`` needs; what was given stays as it was given.

        Raises:
            SerializationError: the store, a strategy, the scope or a knob cannot be written down.

        """
        name, strategies = type(self).__name__, self.offload_strategies
        written = None if strategies is None else strategies_to_dict(strategies, name)
        previews = {"preview_chars": self.preview_chars, "preview_tokens": self.preview_tokens}
        given: dict[str, Any] = {key: size for key, size in previews.items() if size is not None}
        if self.keep_meta:
            given["keep_meta"] = True
        source = source_to_dict(self.source, name, knobs=self._knobs)
        return default_to_dict(self, offload_strategies=written, **given, **source)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ToolResultOffloadHook:
        """Make the hook that ``to_dict``, or that of Haystack's own hook, described."""
        if data.get("type") == _THEIRS:
            data = {**data, "type": f"{cls.__module__}.{cls.__name__}"}
        arguments = source_from_dict(data.get("init_parameters", {}))
        if arguments.get("offload_strategies") is not None:
            arguments["offload_strategies"] = strategies_from_dict(arguments["offload_strategies"])
        return default_from_dict(cls, {**data, "init_parameters": arguments})

    def _limit(self, state: State) -> None:
        """Cut what is far too large of a step's results, where offloading them failed."""
        try:
            step = self._raw_step(state)
            step.put_back([step.offloader.last_resort(**sent) for sent in step.last_resorts()])
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here must not end the agent
            log_failure(logger, UNLIMITED, error=error)

    async def _alimit(self, state: State) -> None:
        try:
            step = self._raw_step(state)
            step.put_back([await step.offloader.alast_resort(**sent) for sent in step.last_resorts()])
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here must not end the agent
            log_failure(logger, UNLIMITED, error=error)

    def _put_back(self, step: Step, outcomes: Sequence[Outcome]) -> None:
        if step.put_back(outcomes) and step.details["retrieval_tool"] is None and tools_of(step.state):
            self._warn(ABSENT)

    def _warn(self, message: str, *details: object) -> None:
        """Say once what keeps the model from reading back."""
        if not self._warned:
            self._warned = True
            logger.warning(message, *details)

    def _step(self, state: State) -> Step | None:
        """Return what the core shall decide about; None if nothing can leave."""
        new: list[New] = []
        strategies = self.offload_strategies
        keeps_all = asks_to_keep(context_of(state))
        for position, message, result in new_results(state):
            said = result.origin.extra or {}
            if is_called_by_code(said.get("caller")):  # never enters the model's context
                continue
            keep = keeps_all or asks_to_keep(said)
            policy = None if strategies is None else policy_for(result, strategies, state=state)
            policy = NEVER if keep else policy
            settled = self._is_settled and (policy is NEVER or result.error) and is_short(result.result)
            if keep or not settled:
                new.append(New(position=position, message=message, result=result, policy=policy))
        if not new:
            return None
        tools = tools_of(state)
        readers = retrieval_tools(tools, self.source)
        if is_name_taken(tools):
            self._warn(TAKEN, RETRIEVAL_TOOL)
        stay = {*readers, *final_tools()}
        new = [one for one in new if one.result.origin.tool_name not in stay]
        if not new:
            return None
        details = {
            **self.source.whose(state),
            "policies": [one.policy for one in new],
            "retrieval_tool": readers[0] if readers else None,
        }
        offloader = self.source.offloader_of(state)
        return Step(state=state, new=new, offloader=offloader, keep_meta=self.keep_meta, details=details)

    def _raw_step(self, state: State) -> Step:
        """Return the new results for the core's last resort, whatever it is that failed about them."""
        readers = retrieval_tools(tools_of(state), self.source)
        stay = {*readers, *final_tools()}
        found = [
            New(position=at, message=message, result=result, policy=None)
            for at, message, result in new_results(state)
            if not is_called_by_code((result.origin.extra or {}).get("caller"))
        ]
        try:
            offloader = self.source.offloader_of(state)
        except Exception:  # noqa: BLE001 - it was logged when it failed the first time
            offloader = self.offloader

        def whose(name: str) -> str | None:
            self.source.offloader_of(state)  # raises where nobody knows where to store: then nothing is stored
            return self.source.whose(state)[name]

        details = {
            "scope": partial(whose, "scope"),
            "identity": partial(whose, "identity"),
            "retrieval_tool": readers[0] if readers else None,
        }
        new = [one for one in found if one.result.origin.tool_name not in stay]
        return Step(state=state, new=new, offloader=offloader, keep_meta=self.keep_meta, details=details)
