"""The adapter contract fails every broken adapter and names its defect. Each adapter is the toy with one defect."""

from __future__ import annotations

import traceback
import unittest
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from coatcheck import RETRIEVAL_TOOL, JsonBlock, Kept, MediaBlock, Offloader, OpaqueBlock, TextBlock
from coatcheck.testing import SCENARIOS, ModelCall, Received, Run, Scenario, Transcript
from coatcheck.testing.adapter import AdapterContract, reason_to_skip
from coatcheck.testing.guard_scenarios import GUARD_SCENARIOS
from coatcheck.testing.reading_scenarios import READING_SCENARIOS
from coatcheck.testing.scenario import CAPABILITIES
from coatcheck.testing.toy import Interrupt, Message, ToyHarness, ToyTool

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from coatcheck.adapting import Delivery
    from coatcheck.testing import Returned


class DoesNotOffload(ToyHarness):
    """Forgets its one job."""

    def settle(self, delivery: Delivery[Message]) -> Message:
        return delivery.raw


class OffloadsDirectly(ToyHarness):
    """Calls the offloader itself, without the guard, so that a failure ends the agent."""

    def settle(self, delivery: Delivery[Message]) -> Message:
        (batch,) = delivery.look()
        (arrival,), (call,) = batch.arrivals, batch.convert()
        outcome = batch.offloader.offload(**call, **batch.common_arguments())
        return delivery.raw if isinstance(outcome, Kept) else delivery.put_back([(arrival, outcome)])


class FailsInItsHook(ToyHarness):
    """Raises in its own code before the guard."""

    def deliver(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Delivery[Message]:
        raise ValueError(call.tool)


class WorksOnce(ToyHarness):
    """Fails because of state that its first run left behind."""

    def __init__(self) -> None:
        self.has_run = False

    def adopt(self, tools: Mapping[str, ToyTool]) -> None:
        if self.has_run:
            raise ValueError(*tools)
        self.has_run = True


class MarksWhatItGot(ToyHarness):
    """Writes into the value that the tool returned."""

    def settle(self, delivery: Delivery[Message]) -> Message:
        message = super().settle(delivery)
        for block in delivery.raw.blocks:
            if isinstance(block, JsonBlock) and isinstance(block.value, dict):
                block.value["offloaded"] = True
        return message


class LosesABlock(ToyHarness):
    """Knows only text."""

    def deliver(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Delivery[Message]:
        known = tuple(block for block in result.blocks if isinstance(block, TextBlock))
        return super().deliver(call, replace(result, blocks=known), case, offloader)


class TakesImagesForPng(ToyHarness):
    """Ignores the type of an image: a provider then refuses what the model reads back."""

    def deliver(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Delivery[Message]:
        blocks = tuple(
            replace(block, media_type="image/png") if isinstance(block, MediaBlock) and block.name is None else block
            for block in result.blocks
        )
        return super().deliver(call, replace(result, blocks=blocks), case, offloader)


class ForgetsUnknownBlocks(ToyHarness):
    """Puts back only known blocks."""

    def settle(self, delivery: Delivery[Message]) -> Message:
        message = super().settle(delivery)
        return replace(message, blocks=tuple(one for one in message.blocks if not isinstance(one, OpaqueBlock)))


class JoinsBlocks(ToyHarness):
    """Joins all blocks into one text block."""

    def deliver(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Delivery[Message]:
        texts = [block.text for block in result.blocks if isinstance(block, TextBlock)]
        return super().deliver(call, replace(result, blocks=(TextBlock("\n".join(texts)),)), case, offloader)


class OffloadsTwice(ToyHarness):
    """Offloads its own output once more."""

    def settle(self, delivery: Delivery[Message]) -> Message:
        message = super().settle(delivery)
        again = tuple(TextBlock(f" {block.text}") for block in message.blocks if isinstance(block, TextBlock))
        (batch,) = delivery.look()
        scope = batch.common_arguments()["scope"]
        batch.offloader.offload(again, tool_name="again", scope=scope, policy=lambda _: True)
        return message


class OffloadsErrors(ToyHarness):
    """Ignores the framework's error mark."""

    def deliver(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Delivery[Message]:
        return super().deliver(call, replace(result, is_error=False), case, offloader)


class ClearsTheMarkOfErrors(ToyHarness):
    """Makes a new message, and forgets to mark it as an error."""

    def settle(self, delivery: Delivery[Message]) -> Message:
        message = super().settle(delivery)
        return message if message is delivery.raw else replace(message, is_error=False)


class ForgetsTheMark(ToyHarness):
    """Leaves no mark for a user interface."""

    def settle(self, delivery: Delivery[Message]) -> Message:
        return replace(super().settle(delivery), mark=None)


class MarksAllAsErrors(ToyHarness):
    """Reports a tool whose result was only large as failed."""

    def settle(self, delivery: Delivery[Message]) -> Message:
        message = super().settle(delivery)
        return message if message is delivery.raw else replace(message, is_error=True)


class ForgetsToMarkFailures(ToyHarness):
    """Answers the model what went wrong, as if it were content."""

    def retrieve(self, call: ModelCall, case: Run) -> Message:
        return replace(super().retrieve(call, case), is_error=False)


class MarksAnswersAsErrors(ToyHarness):
    """Takes a search without a match for a failure."""

    def retrieve(self, call: ModelCall, case: Run) -> Message:
        message = super().retrieve(call, case)
        (block,) = message.blocks
        assert isinstance(block, TextBlock)
        return replace(message, is_error=message.is_error or "No matches" in block.text)


class ForgetsTheScope(ToyHarness):
    """Stores everything in the default scope."""

    def deliver(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Delivery[Message]:
        return super().deliver(call, result, replace(case, scope="default"), offloader)


class CallsEveryToolTheSame(ToyHarness):
    """Does not know which tool was called."""

    def deliver(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Delivery[Message]:
        return super().deliver(replace(call, tool="tool"), result, case, offloader)


class TakesTheFirstToolName(ToyHarness):
    """Decides about every call as if it were a call of the first tool."""

    def deliver(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Delivery[Message]:
        return super().deliver(replace(call, tool=next(iter(case.tools))), result, case, offloader)


class MakesItsOwnWords(ToyHarness):
    """Adds words to the placeholder."""

    def settle(self, delivery: Delivery[Message]) -> Message:
        message = super().settle(delivery)
        added = (*message.blocks, TextBlock("Enjoy!"))
        return message if message is delivery.raw else replace(message, blocks=added)


class OffloadsWhatItReadsBack(ToyHarness):
    """Treats the retrieval tool like any other."""

    def retrieve(self, call: ModelCall, case: Run) -> Message:
        assert case.offloader is not None
        text = "\n".join(block.text for block in super().retrieve(call, case).blocks if isinstance(block, TextBlock))
        outcome = case.offloader.offload(
            (TextBlock(text),), tool_name=call.tool, scope=case.scope, policy=lambda _: True, retrieval_tool=None
        )
        return Message(outcome.blocks)


class DropsArguments(ToyHarness):
    """Passes on only the reference and ``pattern``."""

    def retrieve(self, call: ModelCall, case: Run) -> Message:
        known = {name: value for name, value in call.arguments.items() if name in {"reference", "pattern"}}
        return super().retrieve(replace(call, arguments=known), case)


class ReadsEveryScope(ToyHarness):
    """Lets a conversation read what another one stored."""

    def retrieve(self, call: ModelCall, case: Run) -> Message:
        return super().retrieve(call, replace(case, scope="conversation-1"))


class RaisesAtAMiss(ToyHarness):
    """Ends the agent instead of telling the model."""

    def retrieve(self, call: ModelCall, case: Run) -> Message:
        found = super().retrieve(call, case)
        if any("reference not found" in block.text for block in found.blocks if isinstance(block, TextBlock)):
            raise LookupError(call.arguments["reference"])
        return found


class ReturnsEverything(ToyHarness):
    """Reads back without a limit."""

    def retrieve(self, call: ModelCall, case: Run) -> Message:
        assert case.offloader is not None
        text = case.offloader.load(str(call.arguments["reference"]), scope=case.scope).text
        return Message((TextBlock(text),))


class OffersNoRetrievalTool(ToyHarness):
    """Leaves the model with references that it cannot read back."""

    def run(self, case: Run) -> Transcript:
        transcript = super().run(case)
        return replace(transcript, offered=transcript.offered - {RETRIEVAL_TOOL})


class MixesUpParallelCalls(ToyHarness):
    """Returns results in a different order from the calls."""

    def run(self, case: Run) -> Transcript:
        transcript = super().run(case)
        return replace(transcript, received=tuple(reversed(transcript.received)))


class ChangesWhatStays(ToyHarness):
    """Rewrites small results."""

    def run(self, case: Run) -> Transcript:
        transcript = super().run(case)
        changed = (Received(text=f"{received.text} ", raw=f"{received.raw} ") for received in transcript.received)
        return transcript if case.offloader is None else replace(transcript, received=tuple(changed))


class OffloadsFinalAnswers(ToyHarness):
    """Gives the user a placeholder, which is meant for a model."""

    def run(self, case: Run) -> Transcript:
        transcript = super().run(case)
        return transcript if transcript.answer is None else replace(transcript, answer="Tool result offloaded.")


class OffloadsCancelledCalls(ToyHarness):
    """Treats the host's answer as the tool's result."""

    def answer(self, call: ModelCall, case: Run, tools: Mapping[str, ToyTool]) -> Message:
        return super().answer(call, replace(case, cancelled_tools=frozenset()), tools)


class StoresCancelledCalls(ToyHarness):
    """Shows the host's answer, but stores it nonetheless."""

    def answer(self, call: ModelCall, case: Run, tools: Mapping[str, ToyTool]) -> Message:
        message = super().answer(call, case, tools)
        if case.offloader is not None and call.tool in case.cancelled_tools:
            super().answer(call, replace(case, cancelled_tools=frozenset()), tools)
        return message


class SwallowsInterrupts(ToyHarness):
    """Treats whatever a tool raises as a failure."""

    def answer(self, call: ModelCall, case: Run, tools: Mapping[str, ToyTool]) -> Message:
        try:
            return super().answer(call, case, tools)
        except Interrupt:
            return Message((TextBlock("the tool failed"),))


class WrapsInterrupts(ToyHarness):
    """Wraps the error that the framework raised, so the framework no longer recognizes it."""

    def answer(self, call: ModelCall, case: Run, tools: Mapping[str, ToyTool]) -> Message:
        try:
            return super().answer(call, case, tools)
        except Interrupt as error:
            if case.offloader is None:
                raise
            raise RuntimeError from error


class ChangesWhatRunsAgain(ToyHarness):
    """Changes the result of a call that runs again."""

    def __init__(self) -> None:
        self.ran: set[object] = set()

    def deliver(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Delivery[Message]:
        number = call.arguments["number"]
        again = (TextBlock("once more"),) if number in self.ran else ()
        self.ran.add(number)
        return super().deliver(call, replace(result, blocks=(*result.blocks, *again)), case, offloader)


class NeedsAnId(ToyHarness):
    """Looks every call up by its id."""

    def deliver(self, call: ModelCall, result: Returned, case: Run, offloader: Offloader) -> Delivery[Message]:
        kept = case if call.call_id is not None else replace(case, kept_tools=frozenset({call.tool}))
        return super().deliver(call, result, kept, offloader)


class ForgetsTheStep(ToyHarness):
    """Passes the results of a step to the core one by one."""


NOT_THE_CORES = "result 0 is not what the core makes of it"
BROKEN = {
    DoesNotOffload: ("just above the threshold", NOT_THE_CORES, "the two conversions"),
    OffloadsDirectly: ("offloading fails", "the agent run raised BrokenOnPurpose", "the guard"),
    FailsInItsHook: ("just above the threshold", "the agent run raised ValueError: fetch", "the hook"),
    WorksOnce: ("restart", "the agent run raised ValueError: fetch", "the hook"),
    MarksWhatItGot: (
        "JSON object block",
        "changed in place what a tool returned: tuple[0].value['offloaded']",
        "put_back",
    ),
    LosesABlock: ("mixed media", NOT_THE_CORES, "the two conversions"),
    TakesImagesForPng: ("more contents than are listed", NOT_THE_CORES, "the two conversions"),
    ForgetsUnknownBlocks: ("unknown block first", "the results lack 'unknown content'", "the two conversions"),
    JoinsBlocks: ("several texts", NOT_THE_CORES, "the two conversions"),
    OffloadsTwice: ("just above the threshold", "the storage holds 2 entries instead of 1", "the two conversions"),
    OffloadsErrors: ("error", "result 0 should stay as it is without offloading", "Arrival.is_error"),
    ClearsTheMarkOfErrors: (
        "huge error",
        "result 0 became no error",
        "put_back: the new message",
    ),
    ForgetsTheMark: ("just above the threshold", "result 0 is marked with () instead of (", "put_back: MARK"),
    MarksAllAsErrors: (
        "just above the threshold",
        "result 0 became an error",
        "put_back: the new message",
    ),
    ForgetsToMarkFailures: (
        "failure to read",
        "{'pattern': '(?=x)'} is no error",
        "the retrieval tool: its result is an error",
    ),
    MarksAnswersAsErrors: (
        "failure to read",
        "{'pattern': 'no such words'} is an error",
        "the retrieval tool: its result is an error",
    ),
    ForgetsTheScope: ("just above the threshold", NOT_THE_CORES, "the scope: Batch.scope and Batch.identity"),
    CallsEveryToolTheSame: ("just above the threshold", NOT_THE_CORES, "Arrival.tool_name, which look passes"),
    TakesTheFirstToolName: ("policy by exact name", "result 1 is not what the core makes of it", "Arrival.tool_name"),
    MakesItsOwnWords: ("just above the threshold", NOT_THE_CORES, "the two conversions"),
    OffloadsWhatItReadsBack: ("read by pattern", "was itself offloaded", "the retrieval tool"),
    DropsArguments: ("read by lines", "the answer to", "the retrieval tool"),
    ReadsEveryScope: ("reference from another scope", "the answer to", "the scope"),
    RaisesAtAMiss: ("unknown reference", "the agent run raised LookupError", "the retrieval tool"),
    ReturnsEverything: ("read by pattern", "the budget is 600", "the retrieval tool"),
    OffersNoRetrievalTool: ("below the threshold", "not offered the retrieval tool", "the retrieval tool"),
    MixesUpParallelCalls: ("parallel calls", NOT_THE_CORES, "the two conversions"),
    ChangesWhatStays: (
        "below the threshold",
        "result 0 should stay as it is without offloading",
        "the two conversions",
    ),
    OffloadsFinalAnswers: ("a final answer", "the answer to the user", "look: it returns nothing for final answers"),
    OffloadsCancelledCalls: (
        "a cancelled call",
        "result 0 should stay as it is without offloading",
        "look: it returns nothing for cancelled calls",
    ),
    StoresCancelledCalls: (
        "a cancelled call",
        "the storage holds 2 entries instead of 1",
        "look: it returns nothing for cancelled calls",
    ),
    SwallowsInterrupts: ("an interrupted call", "the agent was to be interrupted", "where the tool runs"),
    WrapsInterrupts: ("an interrupted call", "the agent run raised RuntimeError", "where the tool runs"),
    ChangesWhatRunsAgain: ("an interrupted call", NOT_THE_CORES, "where the tool runs"),
    NeedsAnId: ("call id that is missing", NOT_THE_CORES, "what the adapter looks up by call id"),
    ForgetsTheStep: (
        "parallel calls over the step budget",
        "result 1 is not what the core makes of it",
        "Batch.together",
    ),
}
"""For each defect: a scenario that must fail, words of its message about the defect, and the first place it names."""

BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


def play(name: str, harness: ToyHarness, folder: Path) -> None:
    AdapterContract().test_scenario(harness, scenario=BY_NAME[name], delivery="sync, files", tmp_path=folder)


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_defect_is_found_and_named(broken: type[ToyHarness], tmp_path: Path) -> None:
    name, words, place = BROKEN[broken]
    with pytest.raises(AssertionError) as raised:
        play(name, broken(), tmp_path)

    said, _, pointed_at = str(raised.value).partition("\nLook at ")
    assert words in said
    assert pointed_at.startswith(place)
    assert "\nLook at " not in pointed_at
    assert ("say why in lacks, under " in pointed_at) == bool(BY_NAME[name].needs)


class SettlesOnTheLoop(ToyHarness):
    """Uses the sync guard in its async path."""

    async def asettle(self, delivery: Delivery[Message]) -> Message:
        return self.settle(delivery)


def test_an_async_policy_that_was_not_awaited_points_at_the_async_path(tmp_path: Path) -> None:
    scenario = BY_NAME["async policy function"]

    with pytest.raises(AssertionError, match=f"{NOT_THE_CORES}(?s:.*)\nLook at the async path: asettle and aanswer"):
        AdapterContract().test_scenario(
            SettlesOnTheLoop(), scenario=scenario, delivery="async, memory", tmp_path=tmp_path
        )


def test_a_wrong_result_of_an_async_policy_in_the_sync_path_points_at_the_call(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"\nLook at Arrival.tool_name and Arrival.tool_args"):
        play("async policy function", DoesNotOffload(), tmp_path)


def test_an_adapter_cannot_change_the_scenario(tmp_path: Path) -> None:
    before = deepcopy(BY_NAME["JSON object block"].calls)

    with pytest.raises(AssertionError, match="changed in place"):
        play("JSON object block", MarksWhatItGot(), tmp_path)

    assert BY_NAME["JSON object block"].calls == before


def test_an_adapters_exception_stays_visible(tmp_path: Path) -> None:
    with pytest.raises(AssertionError) as raised:
        play("just above the threshold", FailsInItsHook(), tmp_path)

    assert isinstance(raised.value.__cause__, ValueError)
    assert "deliver" in [entry.name for entry in traceback.extract_tb(raised.value.__cause__.__traceback__)]


class Unspeakable(ValueError):
    def __str__(self) -> str:
        raise LookupError


class UnspeakableFailure(AssertionError):
    def __str__(self) -> str:
        raise LookupError


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("just above the threshold", "the agent run raised Unspeakable: .its __str__ raises LookupError"),
        ("a tool of the user's with the retrieval tool's name", "Unspeakable: .its __str__ raises LookupError"),
    ],
)
def test_an_error_whose_str_raises_is_named(name: str, words: str, tmp_path: Path) -> None:
    class Fails(ToyHarness):
        def adopt(self, tools: Mapping[str, ToyTool]) -> None:
            raise Unspeakable(*tools)

    with pytest.raises(AssertionError, match=f"{words}(?s:.*)\nLook at "):
        play(name, Fails(), tmp_path)


def test_a_failure_whose_str_raises_is_passed_on_unchanged(tmp_path: Path) -> None:
    class Fails(ToyHarness):
        def adopt(self, tools: Mapping[str, ToyTool]) -> None:
            raise UnspeakableFailure(*tools)

    with pytest.raises(UnspeakableFailure):
        play("just above the threshold", Fails(), tmp_path)


@pytest.mark.parametrize("name", ["just above the threshold", "read by pattern", "offloading fails"])
def test_an_error_that_also_occurs_without_an_adapter_points_at_none(name: str, tmp_path: Path) -> None:
    class HasNoTools(ToyHarness):
        def tools_of(self, case: Run) -> dict[str, ToyTool]:
            raise ValueError(sorted(case.tools))

    with pytest.raises(ValueError, match="fetch") as raised:
        play(name, HasNoTools(), tmp_path)
    assert "Look at" not in str(raised.value)


@pytest.mark.parametrize(
    "outcome",
    [
        KeyboardInterrupt(),
        pytest.skip.Exception("no server"),
        pytest.fail.Exception("a timeout"),
        pytest.xfail.Exception("known"),
        pytest.exit.Exception("enough"),
        unittest.SkipTest("no server"),
    ],
    ids=lambda outcome: type(outcome).__name__,
)
@pytest.mark.parametrize("name", ["offloading fails", "a tool of the user's with the retrieval tool's name"])
def test_an_exception_that_ends_or_skips_a_test_is_passed_on(name: str, outcome: BaseException, tmp_path: Path) -> None:
    class Ends(ToyHarness):
        def run(self, case: Run) -> Transcript:
            if case.offloader is not None:
                raise outcome
            return super().run(case)

    with pytest.raises(type(outcome)) as raised:
        play(name, Ends(), tmp_path)
    assert raised.value is outcome


def test_a_scenario_that_expects_what_the_core_does_not_do_is_reported(tmp_path: Path) -> None:
    wrong: Scenario = replace(BY_NAME["just above the threshold"], name="wrong", sees=("nobody says this",))

    with pytest.raises(AssertionError, match="the core's own results lack 'nobody says this'") as raised:
        AdapterContract().test_scenario(ToyHarness(), scenario=wrong, delivery="sync, memory", tmp_path=tmp_path)
    assert "Look at" not in str(raised.value)


def test_a_scenario_that_expects_another_outcome_than_the_core_points_at_no_adapter(tmp_path: Path) -> None:
    (kept,) = BY_NAME["below the threshold"].calls
    wrong: Scenario = replace(BY_NAME["just above the threshold"], steps=((replace(kept, becomes="offloaded"),),))

    with pytest.raises(AssertionError, match="the core itself kept the result 0") as raised:
        AdapterContract().test_scenario(ToyHarness(), scenario=wrong, delivery="sync, memory", tmp_path=tmp_path)
    assert "Look at" not in str(raised.value)


def test_a_model_that_is_shown_no_reference_is_reported(tmp_path: Path) -> None:
    reads = BY_NAME["read by pattern"].reads
    wrong: Scenario = replace(BY_NAME["below the threshold"], reads=reads)

    with pytest.raises(AssertionError, match="the model was shown 0 references"):
        AdapterContract().test_scenario(ToyHarness(), scenario=wrong, delivery="sync, memory", tmp_path=tmp_path)


def test_an_omission_must_exist_and_have_a_reason() -> None:
    class Unknown(AdapterContract):
        cannot = {"no such scenario": "because"}  # noqa: RUF012 - as subclasses write it

    class Unexplained(AdapterContract):
        cannot = {"video": " "}  # noqa: RUF012

    class LacksUnknown(AdapterContract):
        lacks = {"wings": "because"}  # type: ignore[dict-item] # noqa: RUF012

    class LacksUnexplained(AdapterContract):
        lacks = {"video": ""}  # noqa: RUF012

    for suite, words in (
        (Unknown, "unknown scenarios"),
        (Unexplained, "has no reason"),
        (LacksUnknown, "unknown capabilities"),
        (LacksUnexplained, "has no reason"),
    ):
        with pytest.raises(AssertionError, match=words):
            suite().test_what_cannot_be_expressed_has_a_reason()


def test_deliveries_must_exist_and_at_least_one_must_run() -> None:
    """Otherwise ``"Async, memory"`` runs the sync path, an empty tuple runs nothing, and both pass."""

    class Misspelled(AdapterContract):
        deliveries = ("sync, memory", "Async, memory")

    class NoDelivery(AdapterContract):
        deliveries = ()

    class Lacking(AdapterContract):
        deliveries = ("async, memory", "async, files")
        lacks = {"async": "it has no event loop"}  # noqa: RUF012

    for suite, words in (
        (Misspelled, r"names \['Async, memory'\]; there are \['sync, memory',"),
        (NoDelivery, "no scenario runs"),
        (Lacking, "no scenario runs"),
    ):
        with pytest.raises(AssertionError, match=words):
            suite().test_little_is_left_out()


@pytest.mark.parametrize("scenario", [one for one in SCENARIOS if one.is_essential], ids=lambda one: one.name)
def test_nothing_essential_can_be_left_out(scenario: Scenario) -> None:
    class Leaving(AdapterContract):
        cannot = {scenario.name: "it is too hard"}  # noqa: RUF012
        lacks = dict.fromkeys(CAPABILITIES - {"sync"}, "it has nothing")  # type: ignore[arg-type]

    assert reason_to_skip(scenario, lacks=Leaving.lacks, cannot={}) is None
    with pytest.raises(AssertionError, match="no adapter may leave out"):
        Leaving().test_little_is_left_out()


def test_at_most_a_tenth_of_the_rest_can_be_left_out() -> None:
    rest = [scenario.name for scenario in SCENARIOS if not scenario.is_essential]

    class Tenth(AdapterContract):
        cannot = dict.fromkeys(rest[: len(rest) // 10], "it is too hard")

    class More(AdapterContract):
        cannot = dict.fromkeys(rest[: len(rest) // 10 + 1], "it is too hard")

    class MoreThatNobodyCounts(AdapterContract):
        cannot = dict.fromkeys([one.name for one in SCENARIOS if one.needs], "it is too hard")
        lacks = dict.fromkeys(CAPABILITIES - {"sync"}, "it has nothing")  # type: ignore[arg-type]

    Tenth().test_little_is_left_out()
    MoreThatNobodyCounts().test_little_is_left_out()
    with pytest.raises(AssertionError, match="may be left out"):
        More().test_little_is_left_out()


def test_scopes_guards_bounds_and_read_backs_are_essential() -> None:
    essential = {scenario.name for scenario in SCENARIOS if scenario.is_essential}

    assert {scenario.name for scenario in GUARD_SCENARIOS if not scenario.needs} <= essential
    assert {"missing identities", "shared adapters"} == {
        need for scenario in GUARD_SCENARIOS for need in scenario.needs
    }
    assert {one.name for one in READING_SCENARIOS if not one.needs} <= essential
    assert {"never, above the inline limit", "storage fails on write of a huge result"} <= essential
