"""How the last resort converts a result for an adapter without ``convert_plainly``: text as text, all else unchanged.

Whatever goes wrong in the adapter's conversions, nothing is lost, and nothing above the limit stays.
"""

# ruff: noqa: ANN401 - frameworks hold values of any type

from __future__ import annotations

import asyncio
import json
import logging
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from coatcheck import RETRIEVAL_TOOL, Event, InMemoryStorage, MediaBlock, Offloader, OpaqueBlock, TextBlock
from coatcheck.adapting import (
    MARK,
    Arrival,
    Batch,
    Delivery,
    asettle,
    json_value,
    mark_reference,
    read_marks,
    settle,
)
from coatcheck.testing.faults import FailingOffloader

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coatcheck import Block, Offloaded, Truncated

WAYS = pytest.mark.parametrize("way", ["sync", "async"])
LIMIT = 4 * 5_000
HUGE = "".join(f"line {number:,} is one of many\n" for number in range(2_000))
IMAGE = {"image": b"png"}
CONTENT = [{"text": HUGE}, IMAGE, {"text": "a caption"}]

logger = logging.getLogger("plain_conversion")


def blocks_of(content: Sequence[Any]) -> list[Block]:
    return [TextBlock(part["text"]) if "text" in part else MediaBlock(part["image"], "image/png") for part in content]


def part_of(block: Block) -> Any:
    match block:
        case TextBlock(text):
            return {"text": text}
        case MediaBlock(data):
            return {"image": data}
        case _:
            return block.native if isinstance(block, OpaqueBlock) else block


@dataclass(frozen=True, kw_only=True)
class Message(Delivery[Any]):
    raw: Any
    offloader: Offloader
    convert: Callable[[Any], Any] = blocks_of
    convert_plainly: Callable[[Any], Any] | None = None
    restore: Callable[[Block], Any] = part_of
    scope: Any = "mine"
    heavy: bool = False
    tool_name: str = "fetch"
    retrieval_tool: str | None = RETRIEVAL_TOOL

    def look(self) -> Sequence[Batch]:
        arrival = Arrival(
            content=self.raw,
            convert=self.convert,
            convert_plainly=self.convert_plainly,
            tool_name=self.tool_name,
            is_heavy=self.heavy,
        )
        return [
            Batch(arrivals=[arrival], offloader=self.offloader, scope=self.scope, retrieval_tool=self.retrieval_tool)
        ]

    def put_back(self, changed: Sequence[tuple[Arrival, Offloaded | Truncated]]) -> Any:
        ((_, outcome),) = changed
        return [self.restore(block) for block in outcome.blocks]


def settled(message: Message, way: str) -> Any:
    return settle(message, logger=logger) if way == "sync" else asyncio.run(asettle(message, logger=logger))


def failing() -> FailingOffloader:
    return FailingOffloader(InMemoryStorage(), max_inline_tokens=5_000)


def stored_by(offloader: Offloader) -> str:
    """Return the text of the only stored content."""
    (listed,) = offloader.list(scope="mine").contents
    return offloader.load(listed.reference, scope="mine").text


def first_text(content: Sequence[Any]) -> list[Block]:
    return [TextBlock(content[0]["text"])]


def broken(_: object) -> NoReturn:
    raise MemoryError


@WAYS
def test_text_is_stored_as_text_and_all_else_stays_unchanged(way: str) -> None:
    offloader = failing()

    shown, image = settled(Message(raw=CONTENT, offloader=offloader), way)

    assert stored_by(offloader) == f"{HUGE}\na caption"
    assert len(shown["text"]) < LIMIT
    assert image is IMAGE


@WAYS
@pytest.mark.parametrize(
    "convert",
    [
        broken,
        lambda content: blocks_of(content)[1:],
        lambda content: [*blocks_of(content)[:2], "no block"],
        lambda content: [TextBlock(part) for part in content],
        lambda _: None,
    ],
    ids=["raises", "loses a part", "returns what is no block", "holds what is no text", "returns nothing"],
)
def test_a_wrong_conversion_loses_nothing_and_does_not_bypass_the_limit(
    way: str, convert: Callable[[Any], Any]
) -> None:
    offloader = failing()

    shown, image = settled(Message(raw=CONTENT, offloader=offloader, convert=convert), way)

    assert [json.loads(line) for line in stored_by(offloader).splitlines()] == [{"text": HUGE}, {"text": "a caption"}]
    assert len(shown["text"]) < LIMIT
    assert image is IMAGE


@WAYS
def test_text_is_stored_as_text_when_the_conversion_fails(way: str) -> None:
    offloader = failing()

    settled(Message(raw=HUGE, offloader=offloader, convert=broken), way)

    assert stored_by(offloader) == HUGE


def nested(levels: int) -> Any:
    value: Any = HUGE
    for _ in range(levels):
        value = [value]
    return value


class Shy:
    def __repr__(self) -> str:
        raise LookupError


@WAYS
@pytest.mark.parametrize("held", [nested(100_000), {(1, 2): [Shy(), HUGE]}], ids=["many levels", "no repr"])
def test_an_unknown_value_that_cannot_be_serialized_does_not_bypass_the_limit(way: str, held: object) -> None:
    message = Message(raw=[held], offloader=failing(), convert=lambda content: list(map(OpaqueBlock, content)))

    (shown,) = settled(message, way)

    assert "is not shown]" in shown["text"]


@WAYS
def test_a_conversion_back_that_fails_on_media_does_not_bypass_the_limit(way: str) -> None:
    def restore(block: Block) -> Any:
        return broken(block) if isinstance(block, MediaBlock) else part_of(block)

    shown, image = settled(Message(raw=CONTENT, offloader=failing(), restore=restore), way)

    assert len(shown["text"]) < LIMIT
    assert image is IMAGE


@WAYS
def test_an_adapters_own_plain_conversion_is_the_only_one_used(way: str) -> None:
    offloader = failing()

    settled(Message(raw=CONTENT, offloader=offloader, convert=broken, convert_plainly=first_text), way)

    assert stored_by(offloader) == HUGE


def no_tenant() -> NoReturn:
    msg = "no such tenant"
    raise LookupError(msg)


@WAYS
@pytest.mark.parametrize(
    ("failing_part", "error_type", "reason"),
    [
        ({"scope": None}, "InvalidRequest", "no scope: require_scope=True"),
        ({"scope": no_tenant}, "LookupError", "could not offload a result: LookupError"),
        ({"scope": LookupError("no such tenant")}, "LookupError", "could not offload a result: LookupError"),
        ({"convert": broken}, "MemoryError", "could not offload a result: MemoryError"),
    ],
    ids=["no scope", "a scope that raises", "an error for a scope", "a conversion that raises"],
)
@pytest.mark.parametrize("text", ["short", HUGE], ids=["stays", "is stored or cut"])
def test_any_failure_in_an_adapter_is_counted_and_reported_once(
    way: str, failing_part: dict[str, Any], *, error_type: str, reason: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    events: list[Event] = []
    offloader = Offloader(require_scope=True, max_inline_tokens=5_000, on_event=events.append)

    settled(Message(raw=[{"text": text}], offloader=offloader, **failing_part), way)

    failed, *others = events
    assert (failed.kind, failed.tool_name, failed.error_type) == ("failed", "fetch", error_type)
    assert failed.scope == (None if "scope" in failing_part else "mine")
    assert reason in failed.reason
    assert "tenant" not in failed.reason
    assert [event.kind for event in others] == (
        [] if text == "short" else ["truncated" if "scope" in failing_part else "offloaded"]
    )
    assert offloader.stats().failed == 1
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.name == "plain_conversion"
    assert "it is kept or, above max_inline_tokens, stored as it is or cut" in warning.getMessage()


def test_a_failure_in_an_adapter_is_reported_off_the_event_loop() -> None:
    threads: list[threading.Thread] = []
    offloader = Offloader(on_event=lambda _: threads.append(threading.current_thread()))

    settled(Message(raw=[{"text": "short"}], offloader=offloader, convert=broken), "async")

    assert len(threads) == 1
    assert threading.current_thread() not in threads


@WAYS
@pytest.mark.parametrize("retrieval_tool", ["read", RETRIEVAL_TOOL, None])
def test_a_failure_is_counted_whatever_the_tools_name(way: str, retrieval_tool: str | None) -> None:
    events: list[Event] = []
    offloader = Offloader(on_event=events.append)
    text = [{"text": "short"}]
    message = Message(
        raw=text, offloader=offloader, convert=broken, tool_name=RETRIEVAL_TOOL, retrieval_tool=retrieval_tool
    )

    assert settled(message, way) is text

    assert [(event.kind, event.tool_name) for event in events] == [("failed", RETRIEVAL_TOOL)]
    assert offloader.stats().failed == 1


@dataclass(frozen=True, kw_only=True)
class Messages(Message):
    """Three results, one of which cannot be converted."""

    apart: bool

    def look(self) -> Sequence[Batch]:
        arrivals = [
            Arrival(content=[{"text": "short"}], convert=convert, native=self.raw, tool_name=name)
            for name, convert in (("one", blocks_of), ("two", broken), ("three", blocks_of))
        ]
        groups = [[arrival] for arrival in arrivals] if self.apart else [arrivals]
        return [Batch(arrivals=group, offloader=self.offloader, scope="mine") for group in groups]


@WAYS
@pytest.mark.parametrize("apart", [True, False])
def test_a_failure_among_several_results_is_reported_once_and_names_none_of_them(way: str, *, apart: bool) -> None:
    events: list[Event] = []
    offloader = Offloader(on_event=events.append)

    settled(Messages(raw=[], offloader=offloader, apart=apart), way)

    assert [event.tool_name for event in events if event.kind == "failed"] == [""]
    assert offloader.stats().failed == 1


def test_without_a_free_thread_a_heavy_result_does_not_bypass_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        msg = "can't start new thread"
        raise RuntimeError(msg)

    async def settle_it() -> Any:
        monkeypatch.setattr(threading.Thread, "start", refuse)
        return await asettle(Message(raw=CONTENT, offloader=Offloader(), heavy=True), logger=logger)

    shown, _ = asyncio.run(settle_it())

    assert len(shown["text"]) < LIMIT


def test_a_heavy_result_is_neither_converted_nor_put_back_on_the_event_loop_after_a_failure() -> None:
    threads: list[threading.Thread] = []

    def convert(content: Sequence[Any]) -> list[Block]:
        threads.append(threading.current_thread())
        return blocks_of(content)

    def restore(block: Block) -> Any:
        threads.append(threading.current_thread())
        return part_of(block)

    shown, _ = settled(Message(raw=CONTENT, offloader=failing(), convert=convert, restore=restore, heavy=True), "async")

    assert len(shown["text"]) < LIMIT
    assert threading.current_thread() not in threads
    assert len(threads) > 2


def ended(_: object) -> NoReturn:
    raise StopIteration


def test_a_conversion_that_raises_stop_iteration_on_a_thread_does_not_hang() -> None:
    events: list[Event] = []
    message = Message(raw=CONTENT, offloader=Offloader(on_event=events.append), convert=ended, heavy=True)

    async def settle_it() -> Any:
        return await asyncio.wait_for(asettle(message, logger=logger), 30)

    asyncio.run(settle_it())

    assert [event.kind for event in events][:1] == ["failed"]


def test_only_the_row_that_json_cannot_express_is_converted() -> None:
    assert json_value([{1}, {"a": 1}, (2,)], otherwise=str) == ["{1}", {"a": 1}, (2,)]
    with pytest.raises(TypeError):
        json_value([{1}, {"a": 1}])


def test_only_a_value_that_is_a_whole_mark_is_read_as_one() -> None:
    mark = mark_reference("r")

    assert read_marks({"mark": mark, "other": {**mark, "a": 1}, "damaged": {MARK: {"reference": 7}}}) == {"mark": "r"}


@WAYS
def test_a_result_that_is_not_of_a_step_is_not_decided_as_one(way: str) -> None:
    message = Message(
        raw=[{"text": "word " * 1_500}], offloader=Offloader(max_result_tokens=5_000, max_step_tokens=1_000)
    )

    assert settled(message, way) is message.raw
