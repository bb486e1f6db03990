"""The one seam where results of LangChain's tools are rewritten, sync and async, and where our failures end.

Nothing of the framework runs inside the guard: no tool, no handler, no control flow. If our rewriting fails, a warning
says so and the raw result goes on, but for messages that the core's last resort finds far too large.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from coatcheck import Never, ToolResult, asks_to_keep, is_for_code_only, log_failure
from coatcheck_langchain.artifacts import without_copy
from coatcheck_langchain.convert import blocks_of, holds_media, is_marked, plain_blocks_of, rewritten
from coatcheck_langchain.options import Scope, identity_of, resolved
from coatcheck_langchain.results import Step, map_tool_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from langchain_core.messages import ToolMessage

    from coatcheck import Offloader, Outcome

__all__ = ("FAILED", "Rewriter", "is_for_code", "is_kept", "logger", "off_loop")

logger = logging.getLogger("coatcheck_langchain")

FAILED = "coatcheck could not offload a tool result; it stays in the conversation as it is"

UNLIMITED = "coatcheck could not cut a tool result either; it stays in the conversation as it is, whatever its size"

Result = TypeVar("Result")
New = tuple[object, "ToolMessage"]
"""What stands in a result, a message or a mapping that describes one, and the message that it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Results that the core decides about together, or the one that it decides about alone."""

    new: Sequence[New]
    results: Sequence[ToolResult]
    together: bool
    details: dict[str, Any]

    def with_messages(self, outcomes: Sequence[Outcome]) -> Iterable[tuple[New, Outcome]]:
        """Return each outcome with the message that it is about."""
        return zip(self.new, outcomes, strict=True)

    def run(self, offloader: Offloader) -> Sequence[Outcome]:
        """Return one outcome for each result."""
        if self.together:
            return offloader.offload_step(self.results, **self.details)
        return [offloader.offload(result.blocks, **_call(result), **self.details) for result in self.results]

    async def arun(self, offloader: Offloader) -> Sequence[Outcome]:
        """Do what ``run`` does, without blocking the event loop."""
        if self.together:
            return await offloader.aoffload_step(self.results, **self.details)
        return [await offloader.aoffload(result.blocks, **_call(result), **self.details) for result in self.results]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriter:
    """Rewrites the tool messages in a result, and only those that are new to the conversation."""

    offloader: Offloader
    scope: Scope
    exempt: Collection[str] = ()
    key: str = "messages"
    keep_artifact: bool = False
    """Whether an artifact stays even where it is a copy of the text that left."""

    by_step: bool = False
    """Whether a result is a whole step of parallel calls, so that ``max_step_tokens`` holds."""

    def rewrite(self, result: Any, look: Callable[[], Step]) -> Any:  # noqa: ANN401 - as it came
        """Return ``result`` with oversized tool messages replaced by copies; the raw one if that fails.

        ``look`` finds out about the calls, here, so that its failures end here too.
        """
        try:
            step = look()
            jobs = self._jobs(self._new_messages(result, step), step)
            decided = [(job, job.run(self.offloader)) for job in jobs]
            return self._replaced(result, [pair for job, outcomes in decided for pair in job.with_messages(outcomes)])
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here must not end the agent
            log_failure(logger, FAILED, error=error)
        try:
            raw = self._raw_results(result, look)
            return self._replaced(result, [(new, self.offloader.last_resort(**sent)) for new, sent in raw])
        except Exception as error:  # noqa: BLE001 - as above
            log_failure(logger, UNLIMITED, error=error)
            return result

    async def arewrite(self, result: Any, look: Callable[[], Step]) -> Any:  # noqa: ANN401 - as it came
        """Do what ``rewrite`` does, without blocking the event loop."""
        try:
            step = look()
            new = self._new_messages(result, step)
            heavy = any(holds_media(message.content) for _, message in new)
            jobs = await off_loop(heavy, self._jobs, new, step)
            decided = [(job, await job.arun(self.offloader)) for job in jobs]
            heavy = any(message.artifact is not None for _, message in new)
            pairs = [pair for job, outcomes in decided for pair in job.with_messages(outcomes)]
            return await off_loop(heavy, self._replaced, result, pairs)
        except Exception as error:  # noqa: BLE001 - whatever goes wrong here must not end the agent
            log_failure(logger, FAILED, error=error)
        try:
            raw = self._raw_results(result, look)
            return self._replaced(result, [(new, await self.offloader.alast_resort(**sent)) for new, sent in raw])
        except Exception as error:  # noqa: BLE001 - as above
            log_failure(logger, UNLIMITED, error=error)
            return result

    def keeps(self, message: ToolMessage, *, tool_name: str) -> bool:
        """Return whether a message certainly stays, found out at next to no cost; see ``Offloader.keeps``."""
        content = message.content
        return isinstance(content, str) and self.offloader.keeps(
            (content,), tool_name=tool_name, is_error=message.status == "error"
        )

    def _new_messages(self, result: object, step: Step) -> list[New]:
        found: list[New] = []

        def visit(native: object, message: ToolMessage) -> object:
            if message.tool_call_id not in step.answered and not is_marked(message):
                found.append((native, message))
            return native

        map_tool_messages(result, visit, key=self.key)
        return found

    def _jobs(self, new: Sequence[New], step: Step) -> list[Job]:
        whose = {"scope": resolved(self.scope, step.context), "identity": identity_of(step.config)} if new else {}
        details = {**whose, "retrieval_tool": step.retrieval_tool}
        keeps_all = asks_to_keep(step.config.get("metadata")) if isinstance(step.config, dict) else False
        jobs: list[Job] = []
        together: list[tuple[New, ToolResult]] = []
        for native, message in new:
            result = _described(message, step)
            tool = step.tools.get(result.tool_name)
            if self._is_not_for_the_model(message, step, tool):
                continue
            asked = keeps_all or is_kept(tool) or asks_to_keep(message.additional_kwargs)
            keep = asked or result.tool_name in self.exempt
            if self.by_step and not keep:
                together.append(((native, message), result))
                continue
            policy = {"policy": Never()} if keep else {}
            jobs.append(Job(new=[(native, message)], results=[result], together=False, details={**details, **policy}))
        if together:
            messages, results = zip(*together, strict=True)
            jobs.append(Job(new=messages, results=results, together=True, details=details))
        return jobs

    def _is_not_for_the_model(self, message: ToolMessage, step: Step, tool: object) -> bool:
        """Return whether a result is a final answer for the user, or for code in a provider's container."""
        is_final = getattr(tool, "return_direct", False)
        return is_final or message.tool_call_id in step.called_by_code or is_for_code(tool)

    def _raw_results(self, result: object, look: Callable[[], Step]) -> list[tuple[New, dict[str, Any]]]:
        """Return each new message with what the core's last resort is told of it, as far as anything is known."""
        try:
            step = look()
        except Exception:  # noqa: BLE001 - it was logged when it failed the first time
            step = Step(
                calls={}, answered=(), called_by_code=(), tools={}, context=None, config=None, retrieval_tool=None
            )
        found = []
        for new in self._new_messages(result, step):
            message = new[1]
            name = str(step.calls.get(message.tool_call_id, {}).get("name") or message.name or "")
            if not self._is_not_for_the_model(message, step, step.tools.get(name)):
                sent = {
                    "blocks": plain_blocks_of(message.content),
                    "tool_name": name,
                    "scope": lambda: resolved(self.scope, look().context),
                    "identity": lambda: identity_of(look().config),
                    "retrieval_tool": step.retrieval_tool,
                }
                found.append((new, sent))
        return found

    def _replaced(self, result: Any, decided: Iterable[tuple[New, Outcome | None]]) -> Any:  # noqa: ANN401 - as it came
        copies = {
            id(native): copy
            for (native, message), outcome in decided
            if outcome is not None
            and (copy := rewritten(message, outcome, artifact=self._artifact_of(message, outcome))) is not message
        }
        return map_tool_messages(result, lambda native, _: copies.get(id(native), native), key=self.key)

    def _artifact_of(self, message: ToolMessage, outcome: Outcome) -> object:
        return message.artifact if self.keep_artifact else without_copy(message, outcome)


def is_kept(tool: object) -> bool:
    """Return whether the host marked a tool with ``metadata={"coatcheck": "keep"}``."""
    return asks_to_keep(getattr(tool, "metadata", None))


def is_for_code(tool: object) -> bool:
    """Return whether the host lets nobody but code call a tool, with ``extras={"allowed_callers": [...]}``."""
    extras = getattr(tool, "extras", None)
    return is_for_code_only(extras.get("allowed_callers")) if isinstance(extras, dict) else False


async def off_loop(heavy: bool, function: Callable[..., Result], *args: object) -> Result:  # noqa: FBT001 - a private verb
    """Call ``function``, on a thread where it may take a while."""
    return await asyncio.to_thread(function, *args) if heavy else function(*args)


def _described(message: ToolMessage, step: Step) -> ToolResult:
    call = step.calls.get(message.tool_call_id, {})
    return ToolResult(
        blocks=blocks_of(message.content),
        tool_name=str(call.get("name") or message.name or ""),
        tool_args=call.get("args") or {},
        is_error=message.status == "error",
    )


def _call(result: ToolResult) -> dict[str, Any]:
    return {"tool_name": result.tool_name, "tool_args": result.tool_args, "is_error": result.is_error}
