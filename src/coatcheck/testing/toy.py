"""An agent framework of a hundred lines, its adapter and its harness: what an author of another adapter may copy.

``offload``, ``retrieve``, their async twins and ``last_resort`` are the adapter. The rest is the framework, and the
harness that runs it for the contract. Messages are tuples of content blocks here, so nothing has to be converted.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from coatcheck.core.blocks import Block, JsonBlock, MediaBlock, OpaqueBlock, TextBlock
from coatcheck.core.errors import InvalidRequest
from coatcheck.core.notice import RETRIEVAL_TOOL
from coatcheck.core.outcomes import Kept
from coatcheck.core.policy import Never
from coatcheck.engine.events import log_failure
from coatcheck.retrieval import failure_for_model, retrieval_arguments
from coatcheck.testing.harness import Received, Transcript

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coatcheck.core.outcomes import Outcome
    from coatcheck.offloader import Offloader
    from coatcheck.testing.harness import ModelCall, Returned, Run

__all__ = ("Interrupt", "Message", "ToyHarness", "ToyTool")

logger = logging.getLogger("toy_adapter")

Message: TypeAlias = "tuple[Block, ...]"


class Interrupt(Exception):
    """Stops the agent, which goes on with the same step from its start."""


@dataclass
class ToyTool:
    """A tool of the user's, as the framework has it."""

    name: str
    results: Mapping[int, Returned]

    def give(self, call: ModelCall) -> Returned:
        """Return what the tool returns for a call."""
        number = call.arguments["number"]
        if not isinstance(number, int):
            raise TypeError(number)
        return self.results[number]


class ToyHarness:
    """Runs the agent, which calls the adapter around each tool."""

    def run(self, case: Run) -> Transcript:
        """Run the conversation, sync."""
        tools = self.tools_of(case)
        messages: list[Message] = []
        went_on = case
        while calls := case.model([received(message) for message in messages]):
            if answer := final_answer(calls, case, tools):
                return replace(transcript(messages, case), answer=answer)
            try:
                step = [self.answer(call, went_on, tools) for call in calls]
            except Interrupt:
                went_on = replace(case, interrupting_tools=frozenset())
                step = [self.answer(call, went_on, tools) for call in calls]
            messages += step
        return replace(transcript(messages, case), was_interrupted=went_on is not case)

    async def arun(self, case: Run) -> Transcript:
        """Run the conversation, async."""
        tools = self.tools_of(case)
        messages: list[Message] = []
        went_on = case
        while calls := case.model([received(message) for message in messages]):
            if answer := final_answer(calls, case, tools):
                return replace(transcript(messages, case), answer=answer)
            try:
                step = [await self.aanswer(call, went_on, tools) for call in calls]
            except Interrupt:
                went_on = replace(case, interrupting_tools=frozenset())
                step = [await self.aanswer(call, went_on, tools) for call in calls]
            messages += step
        return replace(transcript(messages, case), was_interrupted=went_on is not case)

    def tools_of(self, case: Run) -> dict[str, ToyTool]:
        """Return the user's tools. The contract watches them: an adapter changes copies."""
        tools = {name: case.watch(ToyTool(name, results)) for name, results in case.tools.items()}
        if case.offloader is not None:
            self.adopt(tools)
        return tools

    def answer(self, call: ModelCall, case: Run, tools: Mapping[str, ToyTool]) -> Message:
        """Run one tool call, sync."""
        if call.tool == RETRIEVAL_TOOL:
            return self.retrieve(call, case)
        result = returned(call, case, tools)
        offloader = case.offloader
        if offloader is None or call.tool in case.cancelled_tools | case.code_tools:
            return result.blocks
        try:
            return self.offload(call, result, case, offloader).blocks
        except Exception as error:  # noqa: BLE001 - whatever goes wrong in an adapter must not end the agent
            log_failure(logger, "a tool result could not be offloaded", error=error)
            return self.last_resort(call, result, case, offloader)

    async def aanswer(self, call: ModelCall, case: Run, tools: Mapping[str, ToyTool]) -> Message:
        """Run one tool call, async."""
        if call.tool == RETRIEVAL_TOOL:
            return await self.aretrieve(call, case)
        result = returned(call, case, tools)
        offloader = case.offloader
        if offloader is None or call.tool in case.cancelled_tools | case.code_tools:
            return result.blocks
        try:
            return (await self.aoffload(call, result, case, offloader)).blocks
        except Exception as error:  # noqa: BLE001 - as in answer
            log_failure(logger, "a tool result could not be offloaded", error=error)
            return await self.alast_resort(call, result, case, offloader)

    # The adapter.

    def adopt(self, tools: Mapping[str, ToyTool]) -> None:
        """Refuse a tool with the name of the retrieval tool: a model could never call ours."""
        if RETRIEVAL_TOOL in tools:
            msg = f"the name {RETRIEVAL_TOOL!r} is taken by a tool of yours: rename it"
            raise InvalidRequest(msg)

    def offload(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Outcome:
        """Let the core decide about one result."""
        return offloader.offload(
            result.blocks,
            tool_name=call.tool,
            tool_args=call.arguments,
            scope=case.scope,
            identity=case.identity,
            is_error=result.is_error,
            policy=Never() if call.tool in case.kept_tools else None,
        )

    async def aoffload(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Outcome:
        """Do the same, without blocking the event loop."""
        return await offloader.aoffload(
            result.blocks,
            tool_name=call.tool,
            tool_args=call.arguments,
            scope=case.scope,
            identity=case.identity,
            is_error=result.is_error,
            policy=Never() if call.tool in case.kept_tools else None,
        )

    def last_resort(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Message:
        """Hold the hard limit where offloading failed."""
        outcome = offloader.last_resort(
            result.blocks, tool_name=call.tool, scope=case.scope, identity=case.identity
        ) or Kept(blocks=result.blocks, reason="storage failed")
        return outcome.blocks

    async def alast_resort(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Message:
        """Do the same, without blocking the event loop."""
        outcome = await offloader.alast_resort(
            result.blocks, tool_name=call.tool, scope=case.scope, identity=case.identity
        ) or Kept(blocks=result.blocks, reason="storage failed")
        return outcome.blocks

    def retrieve(self, call: ModelCall, case: Run) -> Message:
        """Answer a use of the retrieval tool."""
        try:
            arguments = retrieval_arguments(call.arguments)
            return offloader_of(case).retrieve(**arguments, scope=case.scope, identity=case.identity).blocks
        except Exception as error:  # noqa: BLE001 - whatever it is, the model is told, and the agent goes on
            return (TextBlock(failure_for_model(error)),)

    async def aretrieve(self, call: ModelCall, case: Run) -> Message:
        """Do the same, without blocking the event loop."""
        try:
            arguments = retrieval_arguments(call.arguments)
            found = await offloader_of(case).aretrieve(**arguments, scope=case.scope, identity=case.identity)
        except Exception as error:  # noqa: BLE001 - as in retrieve
            return (TextBlock(failure_for_model(error)),)
        return found.blocks


def offloader_of(case: Run) -> Offloader:
    """Return the offloader of a run whose model reads back, so it has one."""
    if case.offloader is None:
        raise LookupError(RETRIEVAL_TOOL)
    return case.offloader


def returned(call: ModelCall, case: Run, tools: Mapping[str, ToyTool]) -> Returned:
    """Run a tool."""
    if call.tool in case.interrupting_tools:
        raise Interrupt
    return tools[call.tool].give(call)


def final_answer(calls: Sequence[ModelCall], case: Run, tools: Mapping[str, ToyTool]) -> str | None:
    """Return what goes to the user instead of the model."""
    answers = [returned(call, case, tools) for call in calls if call.tool in case.final_tools]
    return received(answers[0].blocks).text if answers else None


def received(message: Message) -> Received:
    """Return a message as the model receives it."""
    texts = [block.text for block in message if isinstance(block, TextBlock)]
    return Received(text="\n".join(texts), raw=json.dumps([part(block) for block in message]))


def part(block: Block) -> object:
    """Return a content block as JSON has it."""
    match block:
        case TextBlock():
            return block.text
        case JsonBlock():
            return block.value
        case MediaBlock():
            return block.data.hex()
        case OpaqueBlock():
            return block.native


def transcript(messages: Sequence[Message], case: Run) -> Transcript:
    """Return what came of a conversation."""
    offered = {*case.tools, *(() if case.offloader is None else (RETRIEVAL_TOOL,))}
    return Transcript(received=tuple(map(received, messages)), offered=frozenset(offered))
