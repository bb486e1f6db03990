"""An agent framework of a hundred lines, its adapter and its harness, for authors of other adapters to copy.

``ToyResult``, the methods of ``ToyHarness`` from ``adopt`` to ``aretrieve``, ``find`` and ``offloaded_references`` are
the adapter, built on ``coatcheck.adapting``. The rest is the framework, and the harness that runs it for the contract.
The framework's messages hold content blocks, so nothing has to be converted.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from coatcheck import RETRIEVAL_TOOL, Block, JsonBlock, MediaBlock, Never, OpaqueBlock, TextBlock
from coatcheck.adapting import (
    Arrival,
    Batch,
    Delivery,
    Failure,
    aanswer,
    answer,
    asettle,
    references_in,
    refuse_name_clash,
    settle,
)
from coatcheck.testing import Received, Transcript

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coatcheck import Offloaded, Offloader, Scope, Truncated
    from coatcheck.testing import ModelCall, Returned, Run

__all__ = ("Interrupt", "Message", "ToyHarness", "ToyResult", "ToyTool")

logger: logging.Logger = logging.getLogger("toy_adapter")


@dataclass(frozen=True, slots=True)
class Message:
    """A tool result in a conversation."""

    blocks: tuple[Block, ...]
    is_error: bool = False
    mark: Mapping[str, object] | None = None


class Interrupt(Exception):
    """Stops the agent, which then repeats the same step from its start."""


@dataclass
class ToyTool:
    """A user's tool in the framework."""

    name: str
    results: Mapping[int, Returned]

    def give(self, call: ModelCall) -> Returned:
        """Return what the tool returns for a call."""
        number = call.arguments["number"]
        if not isinstance(number, int):
            raise TypeError(number)
        return self.results[number]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToyResult(Delivery[Message]):
    """What a tool returned, on its way into the conversation: what an adapter hands to the guard."""

    raw: Message
    call: ModelCall
    offloader: Offloader
    scope: Scope | None
    identity: str | None
    is_kept: bool

    def look(self) -> Sequence[Batch]:
        """Return what the core must know about the result, and its scope."""
        arrival = Arrival(
            content=self.raw.blocks,
            convert=tuple,
            convert_plainly=tuple,  # the parts already are content blocks: none may end up inside another
            tool_name=self.call.tool,
            tool_args=self.call.arguments,
            is_error=self.raw.is_error,
            policy=Never() if self.is_kept else None,
        )
        batch = Batch(arrivals=[arrival], offloader=self.offloader, scope=self.scope, identity=self.identity)
        return (batch,)

    def put_back(self, changed: Sequence[tuple[Arrival, Offloaded | Truncated]]) -> Message:
        """Return the message for the conversation."""
        ((_, outcome),) = changed
        return replace(self.raw, blocks=outcome.blocks, mark=outcome.mark)


class ToyHarness:
    """Runs the agent, which calls the adapter around each tool."""

    def run(self, case: Run) -> Transcript:
        """Run the conversation, sync."""
        case = shared(case)
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
        case = shared(case)
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
            return Message(result.blocks, is_error=result.is_error)
        return self.settle(self.deliver(call, result, case, offloader))

    async def aanswer(self, call: ModelCall, case: Run, tools: Mapping[str, ToyTool]) -> Message:
        """Run one tool call, async."""
        if call.tool == RETRIEVAL_TOOL:
            return await self.aretrieve(call, case)
        result = returned(call, case, tools)
        offloader = case.offloader
        if offloader is None or call.tool in case.cancelled_tools | case.code_tools:
            return Message(result.blocks, is_error=result.is_error)
        return await self.asettle(self.deliver(call, result, case, offloader))

    # The adapter.

    def adopt(self, tools: Mapping[str, ToyTool]) -> None:
        """Refuse a tool with the name of the retrieval tool: a model could never call the real one."""
        refuse_name_clash(tools)

    def deliver(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Delivery[Message]:
        """Return the tool's result, with what is known of its call."""
        return ToyResult(
            raw=Message(result.blocks, is_error=result.is_error),
            call=call,
            offloader=offloader,
            scope=case.scope,
            identity=case.identity,
            is_kept=call.tool in case.kept_tools,
        )

    def settle(self, delivery: Delivery[Message]) -> Message:
        """Return what enters the conversation."""
        return settle(delivery, logger=logger)

    async def asettle(self, delivery: Delivery[Message]) -> Message:
        """Do the same, without blocking the event loop."""
        return await asettle(delivery, logger=logger)

    def retrieve(self, call: ModelCall, case: Run) -> Message:
        """Answer a call of the retrieval tool."""
        return said(answer(partial(find, case), call.arguments, convert_media=tuple))

    async def aretrieve(self, call: ModelCall, case: Run) -> Message:
        """Do the same, without blocking the event loop."""
        return said(await aanswer(partial(find, case), call.arguments, convert_media=tuple))


def shared(case: Run) -> Run:
    """Return a run with the adapter that users share. This adapter keeps nothing but an offloader."""
    offloader = case.offloader
    return case if offloader is None else replace(case, offloader=case.share(lambda: offloader))


def find(case: Run) -> tuple[Offloader, dict[str, Any]]:
    """Return the offloader that reads for the model and the scope it may read, which the host chose, not the model."""
    return offloader_of(case), {"scope": case.scope, "identity": case.identity}


def offloaded_references(message: Message) -> tuple[str, ...]:
    """Return the references in an offloaded result's message, for user interfaces."""
    return references_in(message.mark)


def said(answered: str | tuple[Block, ...] | Failure) -> Message:
    """Return an answer as a message."""
    is_error = isinstance(answered, Failure)
    content = answered.text if isinstance(answered, Failure) else answered
    return Message((TextBlock(content),) if isinstance(content, str) else content, is_error=is_error)


def offloader_of(case: Run) -> Offloader:
    """Return the offloader of a run. A run whose model reads back has one."""
    if case.offloader is None:
        raise LookupError(RETRIEVAL_TOOL)
    return case.offloader


def returned(call: ModelCall, case: Run, tools: Mapping[str, ToyTool]) -> Returned:
    """Run a tool."""
    if call.tool in case.interrupting_tools:
        raise Interrupt
    result = tools[call.tool].give(call)
    return replace(result, blocks=case.watch_result(result.blocks))


def final_answer(calls: Sequence[ModelCall], case: Run, tools: Mapping[str, ToyTool]) -> str | None:
    """Return what goes to the user instead of the model."""
    answers = [returned(call, case, tools) for call in calls if call.tool in case.final_tools]
    return received(Message(answers[0].blocks)).text if answers else None


def received(message: Message) -> Received:
    """Return a message as the model receives it."""
    texts = [block.text for block in message.blocks if isinstance(block, TextBlock)]
    raw = json.dumps([part(block) for block in message.blocks])
    references = offloaded_references(message)
    return Received(text="\n".join(texts), raw=raw, is_error=message.is_error, references=references)


def part(block: Block) -> object:
    """Return a content block as a JSON value."""
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
    """Return the outcome of a conversation."""
    offered = {*case.tools, *(() if case.offloader is None else (RETRIEVAL_TOOL,))}
    return Transcript(received=tuple(map(received, messages)), offered=frozenset(offered))
