"""Runs one scenario through an adapter and, beside it, through the core alone, and compares what the model gets.

The core is the oracle: the same blocks, settings and scope give the same words in every framework. What the words must
be stands in the scenario. Running and checking belong here, data in the scenarios, frameworks in the harnesses.
"""

# ruff: noqa: S101 - assert is how pytest asks

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from coatcheck.blocks import TextBlock, ToolResult, to_valid_unicode
from coatcheck.errors import CoatcheckError
from coatcheck.notice import RETRIEVAL_TOOL
from coatcheck.offloader import Offloader
from coatcheck.outcomes import Kept, Offloaded, Truncated
from coatcheck.storage.memory import InMemoryStorage
from coatcheck.storage.protocol import Deletes, Lists, Storage
from coatcheck.testing.faults import FaultyStorage
from coatcheck.testing.harness import Returned, Run
from coatcheck.testing.scenario import KNOBS, SCOPE
from coatcheck.testing.scripting import Script, page_content, shown_references
from coatcheck.testing.suite import require_same, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coatcheck.blocks import Block
    from coatcheck.outcomes import Outcome
    from coatcheck.testing.harness import Harness, Received, Transcript
    from coatcheck.testing.scenario import Becomes, Read, Scenario

__all__ = ("Trial",)

OTHER_SCOPE = "conversation-2"
SURVIVING = 200
"""Characters that Strands' default conversation manager keeps of a result's beginning when the window overflows."""
_BECOMES: dict[type, Becomes] = {Kept: "kept", Offloaded: "offloaded", Truncated: "truncated"}


class _Keeping(Storage, Lists, Deletes, Protocol):
    """What the trial asks of a storage, to look into it."""


class Trial:
    """One scenario, one harness, one way to run it, one kind of storage."""

    def __init__(
        self, harness: Harness, scenario: Scenario, *, is_async: bool, open_storage: Callable[[], _Keeping]
    ) -> None:
        """Prepare a trial.

        Args:
            harness: runs the framework's agent.
            scenario: what to play.
            is_async: whether through the framework's async path.
            open_storage: opens the same storage again, as after a restart.

        """
        self._harness = harness
        self._scenario = scenario
        self._is_async = is_async
        self._open_storage = open_storage
        # The oracle's own storage: a storage contract of its own makes sure that storages are alike.
        self._oracle_storage = InMemoryStorage()
        self._oracle = self._offloader(self._oracle_storage)
        self._scope = SCOPE

    def check(self) -> None:
        """Play the scenario, and check all that it says.

        Raises:
            AssertionError: the adapter does something else than the scenario says, or than the core does.

        """
        script = Script(self._scenario)
        offloader = self._offloader(self._open_storage())
        transcript = self._converse(offloader, script)
        if self._scenario.interrupting_tool is not None:
            assert transcript.was_interrupted, "the agent was to be interrupted, and was not"
        results = transcript.received[: len(self._scenario.for_model)]
        self._check_results(results)
        if self._scenario.answer is not None:
            check_equal(str(transcript.answer), _texts(self._scenario.answer.returns), "the answer to the user")
        for answer in (answer for answers in script.answers for answer in answers):
            assert not shown_references(answer.text), "an answer of the retrieval tool was itself offloaded"
        self._check_stored(results)
        assert RETRIEVAL_TOOL in transcript.offered, "the model was not offered the retrieval tool"
        if self._scenario.between != "nothing":
            script = self._second_conversation(results)
        for read, answers in zip(self._scenario.reads, script.answers, strict=True):
            self._check_answers(read, answers, results)
        self._check_stored(results, when="after reading back", expired=self._scenario.between == "deletion")

    def _offloader(self, storage: Storage) -> Offloader:
        faulty = storage if self._scenario.fault == "none" else FaultyStorage(storage, self._scenario.fault)
        return Offloader(faulty, **{**KNOBS, **self._scenario.knobs})

    def _converse(self, offloader: Offloader | None, script: Script) -> Transcript:
        tools: dict[str, dict[int, Returned]] = {}
        for number, call in enumerate(self._scenario.calls):
            tools.setdefault(call.tool, {})[number] = Returned(blocks=call.returns, is_error=call.is_error)
        case = Run(
            offloader=offloader,
            scope=self._scope,
            tools=tools,
            model=script,
            final_tools=_named(self._scenario.final_tool),
            cancelled_tools=_named(self._scenario.cancelled_tool),
            interrupting_tools=_named(self._scenario.interrupting_tool),
        )
        return asyncio.run(self._harness.arun(case)) if self._is_async else self._harness.run(case)

    # The results of the scenario's own tools.

    def _check_results(self, results: Sequence[Received]) -> None:
        calls = self._scenario.for_model
        assert len(results) == len(calls), f"the model received {len(results)} results for {len(calls)} calls"
        untouched: Sequence[Received] | None = None
        outcomes = iter(self._expected())
        for number, (call, received) in enumerate(zip(calls, results, strict=True)):
            outcome = next(outcomes) if call in self._scenario.for_core else Kept(blocks=call.returns, reason="policy")
            assert _BECOMES[type(outcome)] == call.becomes, (
                f"the core itself {_BECOMES[type(outcome)]} the result {number}"
            )
            if call.becomes == "kept":
                untouched = self._without_offloading() if untouched is None else untouched
                check_equal(
                    received.raw, untouched[number].raw, f"result {number} should stay as it is without offloading"
                )
            else:
                check_equal(received.text, _text(outcome), f"result {number} is not what the core makes of it")
            if call.becomes == "offloaded":
                check_early(received.text)
        seen = "\n".join(f"{received.text}\n{received.raw}" for received in results)
        check_contains(seen, sees=self._scenario.sees, hides=self._scenario.hides, what="the results")

    def _expected(self) -> list[Outcome]:
        """Return what the core makes of each result, step by step; what is not for it, it does not get to see."""
        numbers = iter(range(len(self._scenario.calls)))
        steps = [
            [
                ToolResult(
                    blocks=call.returns, tool_name=call.tool, tool_args={"number": number}, is_error=call.is_error
                )
                for call, number in zip(step, numbers, strict=False)
                if call in self._scenario.for_core
            ]
            for step in self._scenario.steps
        ]
        return [outcome for step in steps for outcome in self._oracle.offload_step(step, scope=SCOPE)]

    def _without_offloading(self) -> Sequence[Received]:
        """Run the same conversation without the adapter, and without reads, which need it."""
        return self._converse(None, Script(replace(self._scenario, reads=()))).received

    # What the storage holds.

    def _check_stored(
        self, results: Sequence[Received], *, when: str = "after offloading", expired: bool = False
    ) -> None:
        contents = {} if expired else _contents(self._oracle_storage)
        found = _contents(self._open_storage())
        assert found.keys() == contents.keys(), (
            f"the storage holds {len(found)} entries instead of {len(contents)}, {when}"
        )
        for key, content in contents.items():
            require_same(found[key], content, f"the content under {key} is not what the tool returned, {when}")
        if expired:
            return
        if self._scenario.holds is not None:
            whole = sorted(content for key, content in found.items() if not key.endswith("-lines"))
            same = whole == sorted(self._scenario.holds)  # outside the assertion, which would print megabytes
            assert same, (
                f"the storage holds something else than the scenario says, {when}: {[len(one) for one in whole]} bytes"
            )
        self._check_references(results)

    def _check_references(self, results: Sequence[Received]) -> None:
        reader = Offloader(self._open_storage())
        for reference in self._shown(results):
            content = reader.load(reference, scope=SCOPE)
            assert content.data in _contents(self._oracle_storage).values(), f"{reference} names other content"

    def _shown(self, results: Sequence[Received]) -> list[str]:
        """Return the references that the model was shown in place of results; a kept one may hold whatever it wants."""
        offloaded = [
            received
            for call, received in zip(self._scenario.for_model, results, strict=True)
            if call.becomes == "offloaded"
        ]
        return [reference for received in offloaded for reference in shown_references(received.text)]

    # What the retrieval tool answers.

    def _second_conversation(self, results: Sequence[Received]) -> Script:
        references = self._shown(results)
        if self._scenario.between == "another scope":
            self._scope = OTHER_SCOPE
        if self._scenario.between == "deletion":
            for storage in (self._open_storage(), self._oracle_storage):
                assert Offloader(storage).delete_scope(SCOPE) > 0, "there was nothing to delete"
        script = Script(self._scenario, references=references)
        self._converse(self._offloader(self._open_storage()), script)
        return script

    def _check_answers(self, read: Read, answers: Sequence[Received], results: Sequence[Received]) -> None:
        assert answers, f"the model got no answer to {read}"
        references = self._shown(results)
        for answer in answers:
            self._check_budget(answer.text)
        reference = (read.reference or "{}").format(references[read.of])
        check_equal(
            answers[0].text, self._answer_of_the_core(reference, read), f"the answer to {reference} {read.arguments}"
        )
        seen = "\n".join(answer.text for answer in answers)
        check_contains(seen, sees=read.sees, hides=read.hides, what=f"the answer to {read.arguments}")
        if read.to_the_end:
            whole = Offloader(self._open_storage()).load(references[read.of], scope=SCOPE).text
            pages = "".join(page_content(answer.text) for answer in answers)
            check_equal(pages, to_valid_unicode(whole), "the pages together are not the stored text")

    def _check_budget(self, text: str) -> None:
        knobs = {**KNOBS, **self._scenario.knobs}
        budget = knobs.get("max_retrieval_tokens") or knobs["max_result_tokens"]
        took = knobs["token_counter"].count(text)
        assert took <= budget, f"an answer of the retrieval tool has {took} tokens; the budget is {budget}"

    def _answer_of_the_core(self, reference: str, read: Read) -> str:
        try:
            return self._oracle.retrieve(reference, scope=self._scope, **read.arguments).text  # type: ignore[arg-type]
        except CoatcheckError as error:
            return error.for_model


def check_equal(found: str, expected: str, what: str) -> None:
    """Fail, naming the first difference, if two texts differ."""
    require_same(found.encode("utf-8", "surrogatepass"), expected.encode("utf-8", "surrogatepass"), what)


def check_contains(text: str, *, sees: Sequence[str], hides: Sequence[str], what: str) -> None:
    """Fail if a text lacks something that it must contain, or contains what it must not."""
    for wanted in sees:
        assert wanted in text, f"{what} lack {wanted!r}: {_shortened(text)}"
    for unwanted in hides:
        assert unwanted not in text, f"{what} contain {unwanted!r}, which must not reach the model"


def check_early(text: str) -> None:
    """Fail unless the first reference survives what frameworks do to old results: keep their first characters."""
    reference = shown_references(text)[0]
    end = text.index(reference) + len(reference)
    assert end < SURVIVING, f"the first reference ends at character {end}; {SURVIVING} are what is left of old results"


def _named(tool: str | None) -> frozenset[str]:
    return frozenset(() if tool is None else (tool,))


def _shortened(text: str) -> str:
    return text if len(text) <= 2_000 else f"{text[:1_200]} … {text[-800:]}"  # noqa: PLR2004 - what a reader takes in


def _text(outcome: Outcome) -> str:
    return _texts(outcome.blocks)


def _texts(blocks: Sequence[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


def _contents(storage: _Keeping) -> dict[str, bytes]:
    """Return all that a storage holds."""
    keys = [listed.key for listed in settle(storage.entries(""))]
    found = {key: settle(storage.load(key)) for key in keys}
    return {key: entry.content for key, entry in found.items() if entry is not None}
