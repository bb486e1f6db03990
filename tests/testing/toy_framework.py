"""An agent framework of a hundred lines, and its adapter: it shows what a harness is, and lets the kit be tested.

The adapter is correct here; `test_broken_adapters.py` breaks it, one method at a time.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from coatcheck import (
    RETRIEVAL_TOOL,
    Block,
    CoatcheckError,
    JsonBlock,
    MediaBlock,
    Offloader,
    OpaqueBlock,
    Outcome,
    TextBlock,
)
from coatcheck.testing import ModelCall, Received, Run, Transcript

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coatcheck.testing import Returned

Message: TypeAlias = "tuple[Block, ...]"


class Interrupt(Exception):
    """Stops the agent, which goes on with the same step from its start."""


class ToyHarness:
    """The adapter and the agent in one. Its messages are tuples of content blocks; its wire is their text."""

    def run(self, case: Run) -> Transcript:
        messages: list[Message] = []
        went_on = case
        while calls := case.model([received(message) for message in messages]):
            if answer := final_answer(calls, case):
                return replace(transcript(messages, case), answer=answer)
            try:
                step = [self.answer(call, went_on) for call in calls]
            except Interrupt:
                went_on = replace(case, interrupting_tools=frozenset())
                step = [self.answer(call, went_on) for call in calls]
            messages += step
        return replace(transcript(messages, case), was_interrupted=went_on is not case)

    async def arun(self, case: Run) -> Transcript:
        messages: list[Message] = []
        went_on = case
        while calls := case.model([received(message) for message in messages]):
            if answer := final_answer(calls, case):
                return replace(transcript(messages, case), answer=answer)
            try:
                step = [await self.aanswer(call, went_on) for call in calls]
            except Interrupt:
                went_on = replace(case, interrupting_tools=frozenset())
                step = [await self.aanswer(call, went_on) for call in calls]
            messages += step
        return replace(transcript(messages, case), was_interrupted=went_on is not case)

    def answer(self, call: ModelCall, case: Run) -> Message:
        """Run one tool call, sync."""
        if call.tool == RETRIEVAL_TOOL:
            return self.retrieve(call, case)
        result = returned(call, case)
        if case.offloader is None or call.tool in case.cancelled_tools:
            return result.blocks
        return self.offload(call, result, case, case.offloader).blocks

    async def aanswer(self, call: ModelCall, case: Run) -> Message:
        """Run one tool call, async."""
        if call.tool == RETRIEVAL_TOOL:
            return self.retrieve(call, case)
        result = returned(call, case)
        if case.offloader is None or call.tool in case.cancelled_tools:
            return result.blocks
        outcome = await case.offloader.aoffload(
            result.blocks, tool_name=call.tool, tool_args=call.arguments, scope=case.scope, is_error=result.is_error
        )
        return outcome.blocks

    def offload(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Outcome:
        """Let the core decide about one result."""
        return offloader.offload(
            result.blocks, tool_name=call.tool, tool_args=call.arguments, scope=case.scope, is_error=result.is_error
        )

    def retrieve(self, call: ModelCall, case: Run) -> Message:
        """Answer a use of the retrieval tool."""
        assert case.offloader is not None
        arguments = dict(call.arguments)
        try:
            found = case.offloader.retrieve(str(arguments.pop("reference")), scope=case.scope, **arguments)  # type: ignore[arg-type]
        except CoatcheckError as error:
            return (TextBlock(error.for_model),)
        return found.blocks


def returned(call: ModelCall, case: Run) -> Returned:
    """Run a tool."""
    if call.tool in case.interrupting_tools:
        raise Interrupt
    number = call.arguments["number"]
    assert isinstance(number, int)
    return case.tools[call.tool][number]


def final_answer(calls: Sequence[ModelCall], case: Run) -> str | None:
    """Return what goes to the user instead of the model."""
    answers = [returned(call, case) for call in calls if call.tool in case.final_tools]
    return received(answers[0].blocks).text if answers else None


def received(message: Message) -> Received:
    texts = [block.text for block in message if isinstance(block, TextBlock)]
    return Received(text="\n".join(texts), raw=json.dumps([part(block) for block in message]))


def part(block: Block) -> object:
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
    offered = {*case.tools, *(() if case.offloader is None else (RETRIEVAL_TOOL,))}
    return Transcript(received=tuple(map(received, messages)), offered=frozenset(offered))
