"""The adapter contract catches leaks, blocking and crashes: the toy adapter, with one rule broken at a time."""

from __future__ import annotations

import logging
from contextvars import Context, copy_context
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from coatcheck import RETRIEVAL_TOOL, JsonBlock, TextBlock
from coatcheck.adapting import Delivery, asettle, settle
from coatcheck.testing import SCENARIOS
from coatcheck.testing.adapter import AdapterContract
from coatcheck.testing.harness import Returned, Run
from coatcheck.testing.toy import Message, ToyHarness, ToyResult, ToyTool, returned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from coatcheck import Offloader
    from coatcheck.adapting import Batch
    from coatcheck.testing import ModelCall, Transcript

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def with_(case: Run, **changed: object) -> Run:
    """Return a changed copy of a run: ``dataclasses.replace`` without type checks."""
    fields = {name: getattr(case, name) for name in Run.__slots__}
    return Run(**{**fields, **changed})


def made_as(kind: type[ToyResult], made: Delivery[Message]) -> ToyResult:
    """Return a copy of the toy's delivery as another class."""
    assert isinstance(made, ToyResult)
    slots: tuple[str, ...] = ToyResult.__slots__
    return kind(**{name: getattr(made, name) for name in slots})


class IgnoresTheIdentity(ToyHarness):
    """Treats all conversations as one."""

    def run(self, case: Run) -> Transcript:
        return super().run(with_(case, identity=None))

    async def arun(self, case: Run) -> Transcript:
        return await super().arun(with_(case, identity=None))


class PrefersTheIdentity(ToyHarness):
    """Lets the framework overrule its host."""

    def run(self, case: Run) -> Transcript:
        return super().run(with_(case, scope=case.identity or case.scope))

    async def arun(self, case: Run) -> Transcript:
        return await super().arun(with_(case, scope=case.identity or case.scope))


class MakesUpAnIdentity(ToyHarness):
    """Gives each run an id of its own, so that ``require_scope`` never holds."""

    def run(self, case: Run) -> Transcript:
        return super().run(with_(case, identity=case.identity or "made up"))

    async def arun(self, case: Run) -> Transcript:
        return await super().arun(with_(case, identity=case.identity or "made up"))


class RemembersTheFirstIdentity(ToyHarness):
    """Uses the first conversation's identity for all later ones."""

    def __init__(self) -> None:
        self.first: str | None = None

    def run(self, case: Run) -> Transcript:
        return super().run(self.remembering(case))

    async def arun(self, case: Run) -> Transcript:
        return await super().arun(self.remembering(case))

    def remembering(self, case: Run) -> Run:
        self.first = self.first or case.identity
        return with_(case, identity=self.first)


class ReadsForTheLatestIdentity(ToyHarness):
    """Notes the identity when a run begins, and reads for the latest one, whoever asks."""

    def __init__(self) -> None:
        self.latest: str | None = None

    def run(self, case: Run) -> Transcript:
        self.latest = case.identity
        return super().run(case)

    async def arun(self, case: Run) -> Transcript:
        self.latest = case.identity
        return await super().arun(case)

    def retrieve(self, call: ModelCall, case: Run) -> Message:
        return super().retrieve(call, with_(case, identity=self.latest))

    async def aretrieve(self, call: ModelCall, case: Run) -> Message:
        return await super().aretrieve(call, with_(case, identity=self.latest))


class ReadsWhereTheModelSays(ToyHarness):
    """Takes the scope of a read-back from the call's arguments, if the model names one there."""

    field = "scope"

    def retrieve(self, call: ModelCall, case: Run) -> Message:
        return super().retrieve(*self.chosen(call, case))

    async def aretrieve(self, call: ModelCall, case: Run) -> Message:
        return await super().aretrieve(*self.chosen(call, case))

    def chosen(self, call: ModelCall, case: Run) -> tuple[ModelCall, Run]:
        arguments = dict(call.arguments)
        named = arguments.pop(self.field, None)
        scope = named if isinstance(named, str) else case.scope
        return replace(call, arguments=arguments), with_(case, scope=scope)


class ReadsInTheThreadThatTheModelNames(ReadsWhereTheModelSays):
    """Does the same with the framework's identity."""

    field = "thread_id"


class ReadsForTheFirstIdentity(RemembersTheFirstIdentity):
    """Stores for each conversation, but reads for the first."""

    def remembering(self, case: Run) -> Run:
        super().remembering(case)
        return case

    def retrieve(self, call: ModelCall, case: Run) -> Message:
        return super().retrieve(call, with_(case, identity=self.first))

    async def aretrieve(self, call: ModelCall, case: Run) -> Message:
        return await super().aretrieve(call, with_(case, identity=self.first))


class RemembersTheFirstContext(ToyHarness):
    """Works for everybody in the context of the first caller, as a worker thread may."""

    def __init__(self) -> None:
        self.first: Context | None = None

    def settle(self, delivery: Delivery[Message]) -> Message:
        self.first = self.first or copy_context()
        return self.first.run(super().settle, delivery)

    async def asettle(self, delivery: Delivery[Message]) -> Message:
        return self.settle(delivery)


class HasNoGuard(ToyHarness):
    """Lets its own failures end the agent."""

    def settle(self, delivery: Delivery[Message]) -> Message:
        require_offloading(delivery)
        return super().settle(delivery)

    async def asettle(self, delivery: Delivery[Message]) -> Message:
        require_offloading(delivery)
        return await super().asettle(delivery)


def require_offloading(delivery: Delivery[Message]) -> None:
    """Offload outside any guard."""
    for batch in delivery.look():
        for arrival in batch.arrivals:
            batch.offloader.offload(arrival.content, tool_name=arrival.tool_name)


class FailsSilently(ToyHarness):
    """Passes the raw result on, and logs nothing."""

    def settle(self, delivery: Delivery[Message]) -> Message:
        return settle(delivery, logger=SILENT)

    async def asettle(self, delivery: Delivery[Message]) -> Message:
        return await asettle(delivery, logger=SILENT)


SILENT = logging.getLogger("toy_adapter.silent")
SILENT.disabled = True


class KnowsNoLastResort(ToyHarness):
    """Passes the raw result on, whatever its size."""

    def deliver(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Delivery[Message]:
        return made_as(WithoutLastResort, super().deliver(call, result, case, offloader))


class WithoutLastResort(ToyResult):
    """Returns nothing for the last resort."""

    def look_again(self) -> Sequence[Batch]:
        return ()


class ConvertsPlainlyInItsOwnWay(ToyHarness):
    """Converts differently for the last resort than for everything else."""

    def deliver(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Delivery[Message]:
        return made_as(WithOtherTexts, super().deliver(call, result, case, offloader))


class WithOtherTexts(ToyResult):
    """Converts every part to text."""

    def look(self) -> Sequence[Batch]:
        (batch,) = super().look()
        arrivals = [
            replace(each, convert_plainly=lambda parts: [*map(TextBlock, map(repr, parts))]) for each in batch.arrivals
        ]
        return (replace(batch, arrivals=arrivals),)


class CutsWithoutStoring(KnowsNoLastResort):
    """Cuts with a last resort of its own."""

    def settle(self, delivery: Delivery[Message]) -> Message:
        return cut(super().settle(delivery), delivery)

    async def asettle(self, delivery: Delivery[Message]) -> Message:
        return cut(await super().asettle(delivery), delivery)


def cut(message: Message, delivery: Delivery[Message]) -> Message:
    """Cut a result that was not offloaded."""
    if message is not delivery.raw:
        return message
    texts = (block.text[:1_000] for block in message.blocks if isinstance(block, TextBlock))
    return replace(message, blocks=tuple(map(TextBlock, texts)))


class HasNoGuardForReads(ToyHarness):
    """Ends the agent when a read-back fails."""

    def retrieve(self, call: ModelCall, case: Run) -> Message:
        assert case.offloader is not None
        found = case.offloader.retrieve(**call.arguments, scope=case.scope, identity=case.identity)  # type: ignore[arg-type]
        return Message(found.blocks)

    async def aretrieve(self, call: ModelCall, case: Run) -> Message:
        assert case.offloader is not None
        found = await case.offloader.aretrieve(**call.arguments, scope=case.scope, identity=case.identity)  # type: ignore[arg-type]
        return Message(found.blocks)


class ReadsOnTheLoop(ToyHarness):
    """Uses sync ``retrieve`` in its async tool."""

    async def aretrieve(self, call: ModelCall, case: Run) -> Message:
        return self.retrieve(call, case)


class OffloadsOnTheLoop(ToyHarness):
    """Uses the sync guard, and so sync ``offload`` and ``last_resort``, in its async path."""

    async def asettle(self, delivery: Delivery[Message]) -> Message:
        return self.settle(delivery)


class ResortsOnTheLoop(OffloadsOnTheLoop):
    """Uses the sync guard in its async path, in the scenario where offloading fails."""


class PatchesTools(ToyHarness):
    """Wraps a method of the user's own object."""

    def adopt(self, tools: Mapping[str, ToyTool]) -> None:
        super().adopt(tools)
        for tool in tools.values():
            tool.give = tool.give  # type: ignore[method-assign]


class RenamesTools(ToyHarness):
    """Changes a field of the user's own object."""

    def adopt(self, tools: Mapping[str, ToyTool]) -> None:
        super().adopt(tools)
        for tool in tools.values():
            tool.name = f"offloading_{tool.name}"


class TakesAnyName(ToyHarness):
    """Lets its own tool shadow the user's."""

    def adopt(self, tools: Mapping[str, ToyTool]) -> None:
        """Refuse nothing."""

    def retrieve(self, call: ModelCall, case: Run) -> Message:
        return Message((TextBlock("reference is missing"),))

    async def aretrieve(self, call: ModelCall, case: Run) -> Message:
        return self.retrieve(call, case)


class DropsToolArguments(ToyHarness):
    """Passes calls to policies without their arguments."""

    def deliver(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Delivery[Message]:
        return super().deliver(replace(call, arguments={}), result, case, offloader)


class KeepsNothing(ToyHarness):
    """Ignores ``"coatcheck": "keep"``."""

    def run(self, case: Run) -> Transcript:
        return super().run(with_(case, kept_tools=frozenset()))

    async def arun(self, case: Run) -> Transcript:
        return await super().arun(with_(case, kept_tools=frozenset()))


class OffloadsForCode(ToyHarness):
    """Ignores who made the call."""

    def run(self, case: Run) -> Transcript:
        return super().run(with_(case, code_tools=frozenset()))

    async def arun(self, case: Run) -> Transcript:
        return await super().arun(with_(case, code_tools=frozenset()))


IDENTITIES = "two conversations of the framework through one adapter"
LEAKING = {
    IgnoresTheIdentity: (
        "reference from another conversation of the framework",
        "result 0 is not what the core",
        "the scope",
    ),
    PrefersTheIdentity: ("a scope and an identity", "result 0 is not what the core makes of it", "the scope"),
    MakesUpAnIdentity: ("no identity where a scope is required", "result 0 should stay", "the scope"),
    RemembersTheFirstIdentity: (IDENTITIES, "result 0 is not what the core makes of it", "the scope"),
    ReadsForTheLatestIdentity: (IDENTITIES, "the answer to fetch-", "the scope"),
    ReadsForTheFirstIdentity: (IDENTITIES, "the answer to fetch-", "the scope"),
    ReadsWhereTheModelSays: ("reference from another scope", "contain 'line 1 of 400'", "the scope"),
    ReadsInTheThreadThatTheModelNames: (
        "reference from another conversation of the framework",
        "contain 'line 1 of",
        "the scope",
    ),
    RemembersTheFirstContext: (
        "two ambient scopes through one adapter",
        "result 0 is not what the core makes of it",
        "the scope",
    ),
    HasNoGuard: ("offloading fails", "the agent run raised BrokenOnPurpose", "the guard"),
    FailsSilently: ("offloading fails", "0 warnings name its error", "the guard"),
    KnowsNoLastResort: (
        "offloading a huge result fails",
        "result 1 is not what the core makes of it",
        "Arrival.convert_plainly",
    ),
    ConvertsPlainlyInItsOwnWay: (
        "reading what offloading failed on",
        "is not what the core",
        "Arrival.convert_plainly",
    ),
    CutsWithoutStoring: (
        "offloading a huge result fails",
        "result 1 is not what the core makes of it",
        "Arrival.convert_plainly",
    ),
    HasNoGuardForReads: (
        "reading back fails",
        "the agent run raised BrokenOnPurpose",
        "the retrieval tool",
    ),
    PatchesTools: ("the user's own tools", "ToyTool.give", "what the adapter does to the user's tools"),
    RenamesTools: ("the user's own tools", "ToyTool.name", "what the adapter does to the user's tools"),
    TakesAnyName: (
        "a tool of the user's with the retrieval tool's name",
        "neither refused nor warned",
        "refuse_name_clash",
    ),
    DropsToolArguments: (
        "policy function that looks at arguments",
        "result 0 should stay",
        "Arrival.tool_name and Arrival.tool_args",
    ),
    KeepsNothing: ("a result that the host keeps", "result 0 should stay", "Arrival.policy"),
    OffloadsForCode: ("a result for code", "result 0 should stay", "look: it returns nothing for results that code"),
}
"""For each break, sync and async: a scenario that must fail, words in its message, and the first place it names."""

BLOCKING = {
    ReadsOnTheLoop: ("the event loop", "blocked the event loop: ['load'", "the async path"),
    OffloadsOnTheLoop: ("the event loop", "blocked the event loop: ['save'", "the async path"),
    ResortsOnTheLoop: ("the event loop where offloading fails", "blocked the event loop: ['save'", "the async path"),
}
"""The same for breaks only in the async path."""


def killed(broken: type[ToyHarness], scenario: str, *, delivery: str, folder: Path) -> str:
    """Play a scenario that must fail; return its message."""
    with pytest.raises(AssertionError) as raised:
        AdapterContract().test_scenario(broken(), scenario=BY_NAME[scenario], delivery=delivery, tmp_path=folder)
    return str(raised.value)


@pytest.mark.parametrize("delivery", ["sync, memory", "async, memory"])
@pytest.mark.parametrize("broken", LEAKING, ids=lambda broken: broken.__name__)
def test_a_leak_is_found_and_named(broken: type[ToyHarness], delivery: str, tmp_path: Path) -> None:
    scenario, words, place = LEAKING[broken]

    said = killed(broken, scenario, delivery=delivery, folder=tmp_path)

    assert words in said
    assert said.partition("\nLook at ")[2].startswith(place)


@pytest.mark.parametrize("broken", BLOCKING, ids=lambda broken: broken.__name__)
def test_a_block_of_the_event_loop_is_found_and_named(broken: type[ToyHarness], tmp_path: Path) -> None:
    scenario, words, place = BLOCKING[broken]

    said = killed(broken, scenario, delivery="async, memory", folder=tmp_path)

    assert words in said
    assert said.partition("\nLook at ")[2].startswith(place)


def test_a_harness_that_shows_no_tool_is_reported(tmp_path: Path) -> None:
    class ShowsNoTool(ToyHarness):
        def tools_of(self, case: Run) -> dict[str, ToyTool]:
            return super().tools_of(with_(case, watch=lambda tool: tool))

    assert "the harness watched no tool" in killed(
        ShowsNoTool, "the user's own tools", delivery="sync, memory", folder=tmp_path
    )


def test_a_harness_that_shows_no_result_is_reported(tmp_path: Path) -> None:
    class ShowsNoResult(ToyHarness):
        def run(self, case: Run) -> Transcript:
            return super().run(with_(case, watch_result=lambda result: result))

    assert "the harness watched no result" in killed(
        ShowsNoResult, "the user's own tools", delivery="sync, memory", folder=tmp_path
    )


@pytest.mark.parametrize("made", [0, 2], ids=["by itself", "twice"])
@pytest.mark.parametrize("delivery", ["sync, memory", "async, memory"])
def test_a_harness_that_shares_no_adapter_is_reported(made: int, delivery: str, tmp_path: Path) -> None:
    class SharesNone(ToyHarness):
        def run(self, case: Run) -> Transcript:
            return super().run(self.alone(case))

        async def arun(self, case: Run) -> Transcript:
            return await super().arun(self.alone(case))

        def alone(self, case: Run) -> Run:
            for _ in range(made if case.offloader else 0):
                case.share(object)
            return with_(case, share=lambda make: make())

    assert "the harness makes an adapter for each conversation" in killed(
        SharesNone, IDENTITIES, delivery=delivery, folder=tmp_path
    )


def test_a_harness_that_shares_no_adapter_passes_everything_else(tmp_path: Path) -> None:
    class SharesNone(ToyHarness):
        def run(self, case: Run) -> Transcript:
            return super().run(with_(case, share=lambda make: make()))

    for scenario in SCENARIOS:
        if not scenario.needs & {"shared adapters", "whole steps"}:
            AdapterContract().test_scenario(
                SharesNone(), scenario=scenario, delivery="sync, memory", tmp_path=tmp_path / "all"
            )


def test_a_change_that_the_framework_makes_to_tools_is_not_blamed_on_the_adapter(tmp_path: Path) -> None:
    class Counting(ToyHarness):
        def answer(self, call: ModelCall, case: Run, tools: Mapping[str, ToyTool]) -> Message:
            if call.tool != RETRIEVAL_TOOL:
                tools[call.tool].results = dict(tools[call.tool].results)
                returned(call, case, tools)
            return super().answer(call, case, tools)

    AdapterContract().test_scenario(
        Counting(), scenario=BY_NAME["the user's own tools"], delivery="sync, memory", tmp_path=tmp_path
    )


class NumbersResults(ToyHarness):
    """A framework that itself writes into results."""

    def answer(self, call: ModelCall, case: Run, tools: Mapping[str, ToyTool]) -> Message:
        message = super().answer(call, case, tools)
        if call.tool != RETRIEVAL_TOOL:
            (block,) = case.tools[call.tool][0].blocks
            assert isinstance(block, JsonBlock)
            assert isinstance(block.value, dict)
            block.value["number"] = 1
        return message


class RefusesWhatIsLarge(NumbersResults):
    """Also has a client that sends no large results, so that it fails without an adapter."""

    def run(self, case: Run) -> Transcript:
        transcript = super().run(case)
        if case.offloader is None:
            raise OverflowError
        return transcript


@pytest.mark.parametrize("framework", [NumbersResults, RefusesWhatIsLarge])
def test_a_change_that_the_framework_makes_to_a_result_is_not_blamed_on_the_adapter(
    framework: type[ToyHarness], tmp_path: Path
) -> None:
    AdapterContract().test_scenario(
        framework(), scenario=BY_NAME["JSON object block"], delivery="sync, memory", tmp_path=tmp_path
    )
