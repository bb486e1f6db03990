"""A host's token counter that raises at any call: the agent goes on, and the host is told."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

from coatcheck import (
    ByteCounter,
    InMemoryStorage,
    InvalidRequest,
    JsonBlock,
    Kept,
    MediaBlock,
    Offloaded,
    Offloader,
    TextBlock,
    TokenCounter,
    ToolResult,
    Truncated,
)
from coatcheck.core.vocabulary import BUNDLED, load_vocabulary
from tests.core.storages import FailingStorage

if TYPE_CHECKING:
    from collections.abc import Callable

    from coatcheck import Block, Event, Outcome

Answer = TypeVar("Answer")

MAX_CALLS = 2_000
"""More counter calls than any of these results needs."""


class Raising(ByteCounter):
    """Counts bytes. Raises at call number ``at``, from 1, whichever method is called."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.calls = 0

    def count(self, text: str) -> int:
        return self._called(lambda: super(Raising, self).count(text))

    def exceeds(self, text: str, limit: int) -> bool:
        return self._called(lambda: super(Raising, self).exceeds(text, limit))

    def head(self, text: str, limit: int) -> str:
        return self._called(lambda: super(Raising, self).head(text, limit))

    def tail(self, text: str, limit: int) -> str:
        return self._called(lambda: super(Raising, self).tail(text, limit))

    def _called(self, answer: Callable[[], Answer]) -> Answer:
        self.calls += 1
        if self.calls == self.at:
            message = "the words of a host's exception may quote the content"
            raise RuntimeError(message)
        return answer()


RESULTS: dict[str, list[Block]] = {
    "text": [TextBlock("".join(f"row {number} of a report\n" for number in range(200)))],
    "JSON": [JsonBlock([{"name": f"n{number}", "size": number} for number in range(60)])],
    "media": [MediaBlock(b"x" * 500, "image/png"), MediaBlock(b"y" * 500, "image/png"), TextBlock("a caption")],
    "several": [TextBlock("a line\n" * 400), TextBlock("another\n" * 400)],
    "many": [TextBlock(f"item {number}\n" * 30) for number in range(12)],
}

every_result = pytest.mark.parametrize("blocks", RESULTS.values(), ids=RESULTS)
both_drivers = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


def _offload(offloader: Offloader, blocks: list[Block], *, is_async: bool) -> Outcome:
    if is_async:
        return asyncio.run(offloader.aoffload(blocks, tool_name="t", scope="s"))
    return offloader.offload(blocks, tool_name="t", scope="s")


def _step(offloader: Offloader, blocks: list[Block], *, is_async: bool) -> Outcome:
    result = ToolResult(blocks=tuple(blocks), tool_name="t")
    if is_async:
        return asyncio.run(offloader.aoffload_step([result], scope="s"))[0]
    return offloader.offload_step([result], scope="s")[0]


@pytest.mark.no_cover
@both_drivers
@every_result
@pytest.mark.parametrize("offload", [_offload, _step])
def test_a_counter_that_raises_at_any_call_loses_no_result_and_is_reported(
    offload: Callable[..., Outcome], blocks: list[Block], *, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    for at in range(1, MAX_CALLS):
        caplog.clear()
        counter, storage = Raising(at), InMemoryStorage()
        offloader = Offloader(storage, token_counter=counter, max_result_tokens=200, max_step_tokens=300)

        outcome = offload(offloader, blocks, is_async=is_async)

        assert isinstance(outcome, Offloaded), f"call {at}"
        for reference in outcome.references:
            assert offloader.load(str(reference), scope="s").data, f"call {at}"
        if counter.calls < at:
            assert at > 4, "the counter was hardly called"
            assert not caplog.records
            return
        told = [record.message for record in caplog.records]
        assert any("RuntimeError" in message for message in told), f"call {at}"
        assert not any("quote the content" in message for message in told), f"call {at}"
    pytest.fail("the counter was called more often than expected")


@pytest.mark.no_cover
@both_drivers
@pytest.mark.parametrize("max_inline_tokens", [600, 1_000_000])
def test_a_counter_that_raises_while_the_storage_fails_keeps_or_cuts_the_result(
    max_inline_tokens: int, *, is_async: bool
) -> None:
    for at in range(1, MAX_CALLS):
        counter = Raising(at)
        offloader = Offloader(
            FailingStorage(after=0),
            token_counter=counter,
            max_result_tokens=200,
            max_inline_tokens=max_inline_tokens,
        )

        outcome = _offload(offloader, RESULTS["text"], is_async=is_async)

        assert isinstance(outcome, Truncated if max_inline_tokens == 600 else Kept), f"call {at}"
        if counter.calls < at:
            return
    pytest.fail("the counter was called more often than expected")


def test_the_host_is_told_which_counter_failed() -> None:
    events: list[Event] = []
    offloader = Offloader(token_counter=Raising(1), max_result_tokens=200, on_event=events.append)

    offloader.offload(RESULTS["text"], tool_name="t", scope="s")

    failed, offloaded = events
    assert replace(failed, milliseconds=0.0, queued_milliseconds=0.0) == replace(
        failed,
        kind="failed",
        scope="s",
        tool_name="t",
        reason="a result was not counted with Raising: RuntimeError; its bytes decide",
        error_type="RuntimeError",
        milliseconds=0.0,
        queued_milliseconds=0.0,
    )
    assert offloaded.kind == "offloaded"


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_host_callables_are_asked_once_even_if_the_counter_fails_at_any_call(*, is_async: bool) -> None:
    for at in range(1, MAX_CALLS):
        counter, asked = Raising(at), list[str]()
        offloader = Offloader(token_counter=counter, max_result_tokens=200)
        arguments: dict[str, Any] = {
            "tool_name": "t",
            "scope": "s",
            "measured_tokens": lambda asked=asked: asked.append("measured_tokens"),
            "policy": lambda _, asked=asked: asked.append("policy"),
            "confirm": lambda _, asked=asked: asked.append("confirm") is None,
        }

        if is_async:
            outcome = asyncio.run(offloader.aoffload(RESULTS["text"], **arguments))
        else:
            outcome = offloader.offload(RESULTS["text"], **arguments)

        assert isinstance(outcome, Offloaded), f"call {at}"
        assert asked == ["measured_tokens", "policy", "confirm"], f"call {at}"
        if counter.calls < at:
            assert at > 4, "the counter was hardly called"
            return
    raise AssertionError


class RaisingOn(ByteCounter):
    """Raises when the text holds ``word``, after it has let ``after`` such calls pass."""

    def __init__(self, word: str, *, after: int = 0) -> None:
        self.word, self.left = word, after

    def exceeds(self, text: str, limit: int) -> bool:
        return self._checked(text) and super().exceeds(text, limit)

    def count(self, text: str) -> int:
        return self._checked(text) and super().count(text)

    def _checked(self, text: str) -> bool:
        self.left -= self.word in text
        if self.left < 0:
            raise RuntimeError
        return True


@pytest.mark.parametrize(("after", "blamed"), [(0, "second"), (2, "")], ids=["one result", "the step"])
def test_a_counter_failure_in_a_step_is_reported_for_the_result_being_counted(after: int, blamed: str) -> None:
    events: list[Event] = []
    counter = RaisingOn("second", after=after)
    offloader = Offloader(token_counter=counter, max_result_tokens=5_000, max_step_tokens=700, on_event=events.append)
    results = [ToolResult(blocks=(TextBlock(f"{name} line\n" * 200),), tool_name=name) for name in ("first", "second")]

    offloader.offload_step(results, scope="s")

    assert [event.tool_name for event in events if event.kind == "failed"] == [blamed]


@pytest.mark.parametrize("is_step", [False, True], ids=["one result", "a step"])
def test_a_policy_that_returned_nonsense_is_reported_once_even_if_the_counter_fails_next(*, is_step: bool) -> None:
    events: list[Event] = []
    nonsense: Any = "nonsense"
    offloader = Offloader(token_counter=Raising(1), policies={"t": lambda _: nonsense}, on_event=events.append)
    blocks = (TextBlock("word " * 20_000),)

    if is_step:
        offloader.offload_step([ToolResult(blocks=blocks, tool_name="t")])
    else:
        offloader.offload(blocks, tool_name="t")

    assert [event.kind for event in events] == ["failed", "failed", "offloaded"]
    assert "returned str" in str(events[0].reason)
    assert "was not counted" in str(events[1].reason)


READS: dict[str, dict[str, Any]] = {
    "characters": {},
    "characters from an offset": {"offset": 900},
    "lines": {"line_range": "20-150"},
    "a long line": {"line_range": "1-1"},
    "matches": {"pattern": "row 1", "context_lines": 2},
    "no match": {"pattern": "no such words"},
    "a query": {"query": "[*].name"},
    "the list": {"reference": None},
    "a refused pattern": {"pattern": "(?=row)"},
}


def _read(offloader: Offloader, asked: dict[str, Any], *, is_async: bool) -> str:
    arguments: dict[str, Any] = {**asked, "scope": "s"}
    try:
        if is_async:
            return asyncio.run(offloader.aretrieve(**arguments)).text
        return offloader.retrieve(**arguments).text
    except InvalidRequest as refusal:
        return f"refused: {refusal}"


@pytest.mark.no_cover
@both_drivers
@pytest.mark.parametrize("asked", READS.values(), ids=READS)
def test_a_read_counts_bytes_if_the_counter_raises_at_any_call(
    asked: dict[str, Any], *, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    storage = InMemoryStorage()
    by_bytes = Offloader(storage, token_counter=ByteCounter(), max_result_tokens=300)
    rows: Block = JsonBlock([{"name": f"row {number} of a report"} for number in range(200)])
    text = TextBlock("a word " * 300 + "".join(f"\nrow {number} of a report" for number in range(200)))
    outcome = by_bytes.offload([rows if "query" in asked else text], tool_name="t", scope="s")
    assert isinstance(outcome, Offloaded)
    asked = {"reference": outcome.references[0], **asked}
    expected = _read(by_bytes, asked, is_async=False)
    for at in range(1, MAX_CALLS):
        caplog.clear()
        events: list[Event] = []
        counter = Raising(at)
        offloader = Offloader(storage, token_counter=counter, max_result_tokens=300, on_event=events.append)

        assert _read(offloader, asked, is_async=is_async) == expected, f"call {at}"

        if counter.calls < at:
            assert at > 1, "the counter was not called"
            assert not caplog.records
            return
        told = "an answer was not counted with Raising: RuntimeError; its bytes decide"
        assert caplog.messages == [told], f"call {at}"
        assert [event.reason for event in events if event.kind == "failed"] == [told], f"call {at}"
    pytest.fail("the counter was called more often than expected")


class PlainTiktoken(TokenCounter):
    """Counts as most hosts do at first. tiktoken's ``encode`` raises at the names of special tokens."""

    def count(self, text: str) -> int:
        return len(load_vocabulary(BUNDLED).encoding.encode(text))


@pytest.mark.parametrize(
    "asked", [{}, {"pattern": "tokenizer"}, {"line_range": "295-305"}, {"offset": 2_300}, {"pattern": "<.endoftext.>"}]
)
def test_text_that_the_counter_refuses_is_stored_shown_and_read_back(asked: dict[str, Any]) -> None:
    lines = [f"line {number}" for number in range(600)]
    lines[300] = "see <|endoftext|> in the documentation of the tokenizer"
    offloader = Offloader(token_counter=PlainTiktoken(), max_result_tokens=400)
    outcome = offloader.offload([TextBlock("\n".join(lines))], tool_name="t", scope="s")
    assert isinstance(outcome, Offloaded)
    assert "line 599" in str(outcome.blocks[0])

    answer = offloader.retrieve(outcome.references[0], scope="s", **asked)

    assert asked == {} or "<|endoftext|>" in answer.text
    assert ByteCounter().count(answer.text) <= 400 or PlainTiktoken().count(answer.text) <= 400
