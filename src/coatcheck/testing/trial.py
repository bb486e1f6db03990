"""Runs one scenario through an adapter and through the core alone, and compares what the model gets.

The core is the oracle: the same blocks, settings and scope give the same words in every framework. The scenario says
what the words must be. This module runs and checks; data belongs in the scenarios, frameworks in the harnesses.
"""

# ruff: noqa: S101 - assert is how pytest asks

from __future__ import annotations

import asyncio
import unittest
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from coatcheck.adapting import references_in
from coatcheck.core.blocks import Kept, Offloaded, OpaqueBlock, TextBlock, ToolResult, Truncated, to_valid_unicode
from coatcheck.core.notice import RETRIEVAL_TOOL
from coatcheck.core.policy import Never
from coatcheck.core.references import Key
from coatcheck.offloader import Offloader
from coatcheck.retrieval import failure_for_model
from coatcheck.scopes import DEFAULT_SCOPE
from coatcheck.scopes import scope as ambient_scope
from coatcheck.storage.memory import InMemoryStorage
from coatcheck.storage.protocol import Deletes, Lists, Storage
from coatcheck.testing.faults import BrokenOnPurpose, FailingOffloader, FailingReader, FaultyStorage, WatchedStorage
from coatcheck.testing.harness import NamesScopes, Returned, Run
from coatcheck.testing.places import (
    IN_PLACE,
    MARK_OF_ERRORS,
    MARK_OF_FAILURES,
    MARK_OF_REFERENCES,
    OFF_THE_LOOP,
    RETRIEVAL,
    SHARING,
    TOOLS,
    place_of_answers,
    place_of_error,
    place_of_references,
    place_of_results,
    pointing_at,
)
from coatcheck.testing.scenario import IDENTITY, KNOBS, PARTS, SCOPE
from coatcheck.testing.scripting import Script, page_content, reference_of, shown_references
from coatcheck.testing.suite import require_same, wait_for, words_of
from coatcheck.testing.watching import ResultWatch, ToolWatch, warnings_logged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from logging import LogRecord

    from coatcheck.core.blocks import Block, Outcome
    from coatcheck.core.references import Scope
    from coatcheck.testing.harness import Harness, Received, Transcript
    from coatcheck.testing.scenario import Becomes, Read, Scenario

__all__ = ("Trial",)

OTHER_SCOPE = "conversation-2"
SURVIVING = 200
"""Characters of a result's head that Strands' default conversation manager keeps when the window overflows."""
OTHER_IDENTITY = "thread-2"
NO_ERRORS = (pytest.exit.Exception, unittest.SkipTest)
"""What a harness may raise to end or skip a test. Pytest's other outcomes do not derive from ``Exception``."""
_BECOMES: dict[type, Becomes] = {Kept: "kept", Offloaded: "offloaded", Truncated: "truncated"}


class _Keeping(Storage, Lists, Deletes, Protocol):
    """What the trial needs of a storage to look into it."""


class _SharedAdapter:
    """The adapter that the harness makes in the first of several runs, shared by all of them."""

    def __init__(self) -> None:
        self.runs: int = 0
        self._made: Any = None

    def share(self, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - an adapter of any framework
        """Return what was made in the first run."""
        self.runs += 1
        if self.runs == 1:
            self._made = make()
        return self._made


class Trial:
    """One scenario, one harness, one way to run it, one kind of storage."""

    def __init__(
        self,
        harness: Harness,
        scenario: Scenario,
        *,
        is_async: bool,
        open_storage: Callable[[], _Keeping],
        adapter: _SharedAdapter | None = None,
    ) -> None:
        """Prepare a trial.

        Args:
            harness: runs the framework's agent.
            scenario: what to play.
            is_async: whether to use the framework's async path.
            open_storage: opens the same storage again, as after a restart.
            adapter: the first conversation's adapter, for a neighbour.

        """
        self._harness = harness
        self._scenario = scenario
        self._is_async = is_async
        self._open_storage = open_storage
        # The oracle may use another storage: the storage contract makes sure that storages behave alike.
        self._oracle_storage = InMemoryStorage()
        self._oracle = Offloader(self._faulty(self._oracle_storage), **self._knobs)
        self._is_second = False
        self._watch = ToolWatch()
        self._results = ResultWatch()
        self._watched_storages: list[WatchedStorage] = []
        self._is_neighbour = adapter is not None
        self._adapter = adapter or _SharedAdapter()
        self._neighbour_checked: Future[None] | None = None

    def check(self) -> None:
        """Play the scenario, and check all that it says.

        Raises:
            AssertionError: the adapter does something other than the scenario says, or than the core does.

        """
        place = place_of_results(self._scenario, is_async=self._is_async)
        if self._scenario.claims_our_name:
            with pointing_at(place):
                self._check_name_clash()
            return
        script = Script(self._scenario, others=self._others, meanwhile=self._run_neighbour)
        offloader = self._offloader(self._open_storage())
        with pointing_at(place), warnings_logged() as warnings:
            transcript = self._converse_with_adapter(offloader, script)
        self._check_neighbour()
        if self._scenario.interrupting_tool is not None:
            with pointing_at(place):
                assert transcript.was_interrupted, "the agent was to be interrupted, and was not"
        results = transcript.received[: len(self._scenario.for_model)]
        outcomes = self._outcomes()
        with pointing_at(place):
            self._check_results(results, outcomes)
            self._check_marks(results, outcomes)
            self._check_warnings([*map(_words, warnings)])
            self._check_answer_to_the_user(transcript)
        self._check_what_the_core_says(outcomes)
        with pointing_at(place):
            self._check_what_is_seen(results)
        with pointing_at(IN_PLACE):
            self._check_what_tools_returned()
        with pointing_at(TOOLS):
            self._check_tools()
        with pointing_at(RETRIEVAL):
            for answer in (answer for answers in script.answers for answer in answers):
                assert not shown_references(answer.text), "an answer of the retrieval tool was itself offloaded"
            assert RETRIEVAL_TOOL in transcript.offered, "the model was not offered the retrieval tool"
        with pointing_at(place):
            self._check_stored(results)
        with pointing_at(place_of_answers(self._scenario)):
            if self._scenario.between != "nothing":
                script, transcript = self._second_conversation(results)
            all_answers = _marked(script, transcript) if self._scenario.marks_failures else script.answers
            for read, answers in zip(self._scenario.reads, all_answers, strict=True):
                self._check_answers(read, answers, results)
            self._check_stored(results, when="after reading back", expired=self._scenario.between == "deletion")
        with pointing_at(OFF_THE_LOOP):
            self._check_threads()

    @property
    def _knobs(self) -> dict[str, Any]:
        return {**KNOBS, **self._scenario.knobs}

    @property
    def _stored_in(self) -> Scope:
        """The scope of the conversation that stores."""
        return self._elsewhere if self._is_neighbour else self._first_scope

    @property
    def _first_scope(self) -> Scope:
        scopes: dict[str, Scope] = {"identity": self._scope_of(IDENTITY), "nowhere": DEFAULT_SCOPE, "tuple": PARTS}
        return scopes.get(self._scenario.scope_from, SCOPE)

    @property
    def _reads_in(self) -> Scope:
        """The scope of the conversation that reads."""
        return self._elsewhere if self._is_elsewhere else self._stored_in

    @property
    def _is_elsewhere(self) -> bool:
        return self._is_neighbour or (self._is_second and self._scenario.between == "another scope")

    @property
    def _elsewhere(self) -> Scope:
        return self._scope_of(OTHER_IDENTITY) if self._scenario.scope_from == "identity" else OTHER_SCOPE

    def _scope_of(self, identity: str) -> Scope:
        """Return the scope of the conversation with this id."""
        return self._harness.scope_of(identity) if isinstance(self._harness, NamesScopes) else identity

    def _faulty(self, storage: Storage) -> Storage:
        return storage if self._scenario.fault == "none" else FaultyStorage(storage, self._scenario.fault)

    def _offloader(self, storage: Storage) -> Offloader:
        """Return the offloader that the adapter gets."""
        kind = Offloader
        if self._scenario.fails_offloading:
            kind = FailingOffloader
        if self._scenario.fault == "every retrieve":
            kind = FailingReader
        faulty = self._faulty(storage)
        if self._scenario.watches_threads:
            faulty = WatchedStorage(faulty)
            self._watched_storages.append(faulty)
        return kind(faulty, **self._knobs)

    def _converse_with_adapter(self, offloader: Offloader, script: Script) -> Transcript:
        """Run a conversation. An error raised only with the adapter gets a place to look at."""
        try:
            return self._converse(offloader, script)
        except (AssertionError, *NO_ERRORS):
            raise
        except Exception as error:
            if self._fails_without_adapter():
                raise
            with pointing_at(place_of_error(self._scenario, is_reading=script.is_reading)):
                message = f"the agent run raised {type(error).__name__}: {words_of(error)}"
                raise AssertionError(message) from error

    def _fails_without_adapter(self) -> bool:
        try:
            self._without_offloading()
        except Exception:  # noqa: BLE001 - the harness or the framework raises it, perhaps in other words
            return True
        return False

    def _converse(self, offloader: Offloader | None, script: Script) -> Transcript:
        tools: dict[str, dict[int, Returned]] = {}
        for number, call in enumerate(self._scenario.calls):
            blocks = deepcopy(call.returns)  # what an adapter changes in place must not change the scenario
            tools.setdefault(call.tool, {})[number] = Returned(blocks=blocks, is_error=call.is_error)
        case = Run(
            offloader=offloader,
            scope=self._reads_in if self._scenario.scope_from in {"argument", "tuple", "both"} else None,
            identity=self._identity,
            tools=tools,
            model=script,
            final_tools=_named(self._scenario.final_tool),
            cancelled_tools=_named(self._scenario.cancelled_tool),
            interrupting_tools=_named(self._scenario.interrupting_tool),
            kept_tools=_named(self._scenario.kept_tool),
            code_tools=_named(self._scenario.code_tool),
            watch=self._watch.watch,
            watch_result=self._results.watch,
        )
        if offloader is not None and self._scenario.has_neighbour:
            case = replace(case, share=self._adapter.share)
        with ambient_scope(self._reads_in) if self._scenario.scope_from == "ambient" else nullcontext():
            return asyncio.run(self._harness.arun(case)) if self._is_async else self._harness.run(case)

    @property
    def _identity(self) -> str | None:
        if self._scenario.scope_from not in {"identity", "both"}:
            return None
        return OTHER_IDENTITY if self._is_elsewhere and self._scenario.scope_from == "identity" else IDENTITY

    # The neighbour.

    @property
    def _others(self) -> list[str]:
        """The references that the core shows the other model. The oracle then holds what both conversations stored."""
        if not self._scenario.has_neighbour:
            return []
        outcomes = self._expected(scope=self._first_scope if self._is_neighbour else self._elsewhere)
        return [str(each) for outcome in outcomes if isinstance(outcome, Offloaded) for each in outcome.references]

    def _run_neighbour(self) -> None:
        """Run the neighbour's whole conversation on a separate thread: this one may belong to an event loop."""
        if not self._scenario.has_neighbour or self._is_neighbour:
            return
        neighbour = Trial(
            self._harness,
            self._scenario,
            is_async=self._is_async,
            open_storage=self._open_storage,
            adapter=self._adapter,
        )
        with ThreadPoolExecutor(1) as pool:
            self._neighbour_checked = pool.submit(neighbour.check)

    def _check_neighbour(self) -> None:
        if self._neighbour_checked is not None:
            self._neighbour_checked.result()
            with pointing_at(SHARING):
                assert self._adapter.runs == 2, (  # noqa: PLR2004 - this one and its neighbour
                    "the harness makes an adapter for each conversation, or two in one: make it through Run.share"
                )

    # What else must hold.

    def _check_name_clash(self) -> None:
        """Check that a user's tool with our tool's name is refused, or warned about."""
        script = Script(replace(self._scenario, reads=()))
        refusal = ""
        with warnings_logged() as warnings:
            try:
                self._converse(self._offloader(self._open_storage()), script)
            except NO_ERRORS:
                raise
            except Exception as error:  # noqa: BLE001 - whatever the adapter or its framework refuses it with
                refusal = f"{type(error).__name__}: {words_of(error)}"
        assert any(RETRIEVAL_TOOL in words for words in [refusal, *map(_words, warnings)]), (
            f"a tool of the user's own is named {RETRIEVAL_TOOL!r}, and this was neither refused nor warned about,"
            f" by that name: {refusal}"
        )

    def _check_warnings(self, warnings: Sequence[str]) -> None:
        """Check that warnings name what failed in the offloader, but not too often, and that a scope is missing."""
        if self._scenario.fails_offloading:
            told = sum(BrokenOnPurpose.__name__ in words for words in warnings)
            most = len(self._scenario.for_core) + len(self._scenario.reads)  # an answer read back is a result too
            assert 1 <= told <= most, (
                f"the offloader failed, and {told} warnings name its error instead of one for each call or step"
            )
        if self._scope_is_missing:
            told = sum("require_scope" in words for words in warnings)
            assert told > len(self._scenario.reads), (
                f"a scope is required, and {told} warnings say so instead of one for each result and each read"
            )

    def _check_tools(self) -> None:
        """Check that the adapter changed none of the user's tools; the framework itself may change them."""
        if not self._scenario.watches_tools:
            return
        assert self._watch.saw_any, "the harness watched no tool: pass every tool that it makes through Run.watch"
        assert self._results.saw_any, (
            "the harness watched no result: pass everything that a tool returns through Run.watch_result"
        )
        changed = self._watch.changes()
        self._watch = ToolWatch()
        self._without_offloading()
        changed -= self._watch.changes()
        assert not changed, f"the adapter changed the user's own tools: {sorted(changed)}; change a copy"

    def _check_what_tools_returned(self) -> None:
        """Check that the adapter changed nothing in place that a tool returned; the framework itself may."""
        changed = self._results.changes()
        if changed:
            self._results = ResultWatch()
            with suppress(Exception):  # a client may refuse what is not offloaded; the tools have returned by then
                self._without_offloading()
            changed -= self._results.changes()
        first = ", ".join([*sorted(changed)[:3], *(["…"] if len(changed) > 3 else [])])  # noqa: PLR2004 - enough to look at
        assert not changed, f"the adapter changed in place what a tool returned: {first}; change a copy"

    def _check_threads(self) -> None:
        """Check that no sync storage was called on the thread of an event loop."""
        if self._is_async:
            called = [name for storage in self._watched_storages for name in storage.on_a_loop]
            assert not called, (
                f"calls of the storage that blocked the event loop: {called};"
                " await aoffload, alast_resort and aretrieve"
            )

    # The results of the scenario's own tools.

    def _outcomes(self) -> list[Outcome]:
        """Return what the core makes of each result for the model, and check it against ``Call.becomes``."""
        expected = iter(self._expected(scope=self._stored_in))
        outcomes: list[Outcome] = []
        for number, call in enumerate(self._scenario.for_model):
            is_for_core = call in self._scenario.for_core
            outcome = next(expected) if is_for_core else Kept(blocks=call.returns, reason="policy")
            assert _BECOMES[type(outcome)] == call.becomes, (
                f"the core itself {_BECOMES[type(outcome)]} the result {number}"
            )
            outcomes.append(outcome)
        return outcomes

    def _check_results(self, results: Sequence[Received], outcomes: Sequence[Outcome]) -> None:
        calls = self._scenario.for_model
        assert len(results) == len(calls), f"the model received {len(results)} results for {len(calls)} calls"
        untouched: Sequence[Received] | None = None
        for number, (received, outcome) in enumerate(zip(results, outcomes, strict=True)):
            if isinstance(outcome, Kept):
                untouched = self._without_offloading() if untouched is None else untouched
                check_equal(
                    received.raw, untouched[number].raw, f"result {number} should stay as it is without offloading"
                )
            else:
                expected = outcome.text
                place = place_of_references(shown_references(received.text), shown_references(expected))
                with pointing_at(place):
                    check_equal(received.text, expected, f"result {number} is not what the core makes of it")

    def _check_marks(self, results: Sequence[Received], outcomes: Sequence[Outcome]) -> None:
        """Check what the framework's messages hold besides the content, as far as the harness reports it."""
        for number, (call, received) in enumerate(zip(self._scenario.for_model, results, strict=True)):
            if received.is_error is not None and call in self._scenario.for_core:
                found = "an error" if received.is_error else "no error"
                with pointing_at(MARK_OF_ERRORS):
                    assert received.is_error == call.is_error, f"result {number} became {found}"
            if received.references is not None:
                expected = references_in(getattr(outcomes[number], "mark", None))
                with pointing_at(MARK_OF_REFERENCES):
                    assert received.references == expected, (
                        f"result {number} is marked with {received.references} instead of {expected}"
                    )

    def _check_what_the_core_says(self, outcomes: Sequence[Outcome]) -> None:
        """Check what the scenario says about the core alone: no adapter can fix what fails here."""
        for outcome in outcomes:
            if isinstance(outcome, Offloaded):
                check_early(outcome.text)
        said = "\n".join(
            str(block.native) if isinstance(block, OpaqueBlock) else _texts([block])
            for outcome in outcomes
            for block in outcome.blocks
        )
        check_contains(said, sees=self._scenario.sees, hides=self._scenario.hides, what="the core's own results")

    def _check_what_is_seen(self, results: Sequence[Received]) -> None:
        """Check the same for the results: by now their text is known to match, their other content is not."""
        seen = "\n".join(f"{received.text}\n{received.raw}" for received in results)
        check_contains(seen, sees=self._scenario.sees, hides=self._scenario.hides, what="the results")

    def _check_answer_to_the_user(self, transcript: Transcript) -> None:
        if self._scenario.answer is not None:
            check_equal(str(transcript.answer), _texts(self._scenario.answer.returns), "the answer to the user")

    def _expected(self, *, scope: Scope) -> list[Outcome]:
        """Return what the core makes of each result, step by step. It sees only the results in ``for_core``."""
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
        if self._scenario.fails_offloading or self._scope_is_missing:
            return [self._limited(result) for step in steps for result in step]
        policies = {self._scenario.kept_tool: Never()}
        return [
            outcome
            for step in steps
            for outcome in self._oracle.offload_step(
                step, scope=scope, policies=[policies.get(result.tool_name) for result in step]
            )
        ]

    @property
    def _scope_is_missing(self) -> bool:
        return self._scenario.scope_from == "nowhere" and bool(self._knobs.get("require_scope"))

    def _limited(self, result: ToolResult) -> Outcome:
        """Return what the last resort of the core makes of a result."""
        scope = None if self._scope_is_missing else self._stored_in
        outcome = self._oracle.last_resort(result.blocks, tool_name=result.tool_name, scope=scope)
        return Kept(blocks=result.blocks, reason="storage failed") if outcome is None else outcome

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
            whole = sorted(content for key, content in found.items() if Key.parse(key).is_content)
            same = whole == sorted(self._scenario.holds)  # outside the assertion, which would print megabytes
            assert same, (
                f"the storage holds something other than the scenario says, {when}: {[len(one) for one in whole]} bytes"
            )
        self._check_references(results)

    def _check_references(self, results: Sequence[Received]) -> None:
        reader = Offloader(self._open_storage())
        for reference in self._shown(results):
            content = reader.load(reference, scope=self._stored_in)
            assert content.data in _contents(self._oracle_storage).values(), f"{reference} names other content"

    def _shown(self, results: Sequence[Received]) -> list[str]:
        """Return the references that the model was shown in place of results; a kept result may contain anything."""
        offloaded = [
            received
            for call, received in zip(self._scenario.for_model, results, strict=True)
            if call.becomes == "offloaded"
        ]
        return [reference for received in offloaded for reference in shown_references(received.text)]

    # What the retrieval tool answers.

    def _second_conversation(self, results: Sequence[Received]) -> tuple[Script, Transcript]:
        references = self._shown(results)
        self._is_second = True
        if self._scenario.between == "deletion":
            for storage in (self._open_storage(), self._oracle_storage):
                assert Offloader(storage).delete_scope(self._stored_in) > 0, "there was nothing to delete"
        script = Script(self._scenario, references=references)
        return script, self._converse_with_adapter(self._offloader(self._open_storage()), script)

    def _check_answers(self, read: Read, answers: Sequence[Received], results: Sequence[Received]) -> None:
        assert answers, f"the model got no answer to {read}"
        references = [*self._shown(results), *self._others]
        for answer in answers:
            self._check_budget(answer.text)
        reference = reference_of(read, references)
        if not read.undefined:
            expected, fails = self._answer_of_the_core(reference, read)
            check_equal(answers[0].text, expected, f"the answer to {reference} {read.arguments}")
            if self._scenario.marks_failures:
                with pointing_at(MARK_OF_FAILURES):
                    found = "an error" if answers[0].is_error else "no error"
                    assert bool(answers[0].is_error) is fails, f"the answer to {reference} {read.arguments} is {found}"
        seen = "\n".join(answer.text for answer in answers)
        check_contains(seen, sees=read.sees, hides=read.hides, what=f"the answer to {read.arguments}")
        if read.to_the_end:
            whole = Offloader(self._open_storage()).load(references[read.of], scope=self._stored_in).text
            pages = "".join(page_content(answer.text) for answer in answers)
            check_equal(pages, to_valid_unicode(whole), "the pages together are not the stored text")

    def _check_budget(self, text: str) -> None:
        knobs = self._knobs
        budget = knobs.get("max_retrieval_tokens") or knobs["max_result_tokens"]
        took = knobs["token_counter"].count(text)
        assert took <= budget, f"an answer of the retrieval tool has {took} tokens; the budget is {budget}"

    def _answer_of_the_core(self, reference: str, read: Read) -> tuple[str, bool]:
        """Return the core's own answer, and whether it says what went wrong."""
        try:
            if self._scenario.fault == "every retrieve":
                raise BrokenOnPurpose  # noqa: TRY301 - as the adapter's offloader does
            scope = None if self._scope_is_missing else self._reads_in
            return self._oracle.retrieve(reference, scope=scope, **read.arguments).text, False  # type: ignore[arg-type]
        except Exception as error:  # noqa: BLE001 - the model is told of any, in the core's words
            return failure_for_model(error), True


def _marked(script: Script, transcript: Transcript) -> Iterator[list[Received]]:
    """Yield the answers to each read as the last request has them: only there are they marked as errors."""
    count = sum(map(len, script.answers))
    last = iter(transcript.received[len(transcript.received) - count :])
    for answers in script.answers:
        yield list(islice(last, len(answers)))


def check_equal(found: str, expected: str, what: str) -> None:
    """Fail, naming the first difference, if two strings differ."""
    require_same(found.encode("utf-8", "surrogatepass"), expected.encode("utf-8", "surrogatepass"), what)


def check_contains(text: str, *, sees: Sequence[str], hides: Sequence[str], what: str) -> None:
    """Fail if a string lacks something that it must contain, or contains what it must not."""
    for wanted in sees:
        assert wanted in text, f"{what} lack {wanted!r}: {_shortened(text)}"
    for unwanted in hides:
        assert unwanted not in text, f"{what} contain {unwanted!r}, which must not reach the model"


def check_early(text: str) -> None:
    """Fail unless the first reference survives in frameworks that keep only the first characters of old results."""
    reference = shown_references(text)[0]
    end = text.index(reference) + len(reference)
    assert end < SURVIVING, f"the first reference ends at character {end}; {SURVIVING} are what is left of old results"


def _words(record: LogRecord) -> str:
    """Return the message of a log record, and the name of its error."""
    error = record.exc_info[0] if isinstance(record.exc_info, tuple) else None
    return f"{record.getMessage()} {'' if error is None else error.__name__}"


def _named(tool: str | None) -> frozenset[str]:
    return frozenset(() if tool is None else (tool,))


def _shortened(text: str) -> str:
    return text if len(text) <= 2_000 else f"{text[:1_200]} … {text[-800:]}"  # noqa: PLR2004 - what a reader takes in


def _texts(blocks: Sequence[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


def _contents(storage: _Keeping) -> dict[str, bytes]:
    """Return the content of every entry in a storage, by key."""
    keys = [listed.key for listed in wait_for(storage.entries(""))]
    found = {key: wait_for(storage.load(key)) for key in keys}
    return {key: entry.content for key, entry in found.items() if entry is not None}
