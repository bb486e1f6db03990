"""Reports to the host: several listeners, failing or blocking ones, log records, and what none of these may contain."""

from __future__ import annotations

import asyncio
import logging
import threading
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, NoReturn, get_args

import pytest

from coatcheck import (
    Always,
    Block,
    Event,
    InMemoryStorage,
    InvalidRequest,
    Kept,
    Offloaded,
    Offloader,
    ReferenceNotFound,
    Stats,
    StorageError,
    TextBlock,
    log_failure,
    scopes,
)
from coatcheck.engine import execution
from coatcheck.engine.events import About, Details, EventKind
from tests.core.storages import DictStorage, FailingStorage, Shelves
from tests.core.telemetry import BIG, SMALL, WHOSE, WORDS, Telemetry, run_through_everything

if TYPE_CHECKING:
    from collections.abc import Mapping

PATIENCE = 60.0
"""Seconds. What a test waits for happens at once, so a test that waits this long has failed."""


# Listeners.


def test_every_listener_is_called_in_turn_even_after_one_raises(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []

    def broken(_: Event) -> None:
        told.append("broken")
        msg = "metrics are down"
        raise RuntimeError(msg)

    offloader = Offloader(on_event=(lambda _: told.append("first"), broken, lambda _: told.append("last")))

    assert isinstance(offloader.offload([BIG], tool_name="t"), Offloaded)
    assert told == ["first", "broken", "last"]
    assert offloader.stats().failed == 1
    [record] = caplog.records
    assert vars(record)["coatcheck.outcome"] == "offloaded"
    assert "metrics are down" in caplog.text


def test_a_made_up_reference_is_not_logged_when_a_listener_raises(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: Event) -> None:
        msg = "metrics are down"
        raise RuntimeError(msg)

    offloader = Offloader(on_event=broken)
    with pytest.raises(ReferenceNotFound):
        offloader.retrieve("made-up-by-a-model-0123456789abcdef-0123")

    assert "metrics are down" in caplog.text
    assert "made-up" not in caplog.text


OF_EVERY_KIND = {"milliseconds", "queued_milliseconds"}
"""The fields that every event gets when it is made, whatever its kind."""


def test_every_detail_the_engine_may_report_is_a_field_of_the_event() -> None:
    names = {field.name for field in fields(Event)} - {"kind", *OF_EVERY_KIND}

    common = {field.name for field in fields(About)}

    assert common | Details.__annotations__.keys() == {*names, "started"}
    assert not common & Details.__annotations__.keys(), "one of the two values would be lost"


TOLD: dict[EventKind, list[set[str]]] = {
    "offloaded": [{"tool_name", "references", "size", "tokens", "tokens_saved"}],
    "kept": [{"tool_name", "reason"}],
    "truncated": [{"tool_name", "tokens", "reason", "error_type"}],
    "retrieved": [{"references", "tokens"}],
    "missed": [{"references", "reason"}],
    "expired": [{"references", "reason"}],
    "failed": [{"tool_name", "reason", "error_type"}, {"references", "reason", "error_type"}],
}
"""The fields that are set in events of each kind. ``failed`` has two sets: one for an offload, one for a read. A result
that stays has ``tokens`` only if somebody counted them."""


def test_events_of_each_kind_set_the_fields_of_the_table() -> None:
    events: list[Event] = []
    run_through_everything(events.append)

    told: dict[EventKind, list[set[str]]] = {}
    for event in events:
        unset = Event(kind=event.kind, scope=WHOSE)
        names = {each.name for each in fields(Event) if getattr(event, each.name) != getattr(unset, each.name)}
        sets = told.setdefault(event.kind, [])
        if names - OF_EVERY_KIND not in sets:
            sets.append(names - OF_EVERY_KIND)

    assert told == TOLD


def test_the_table_has_every_kind_and_every_field() -> None:
    assert TOLD.keys() == set(get_args(EventKind))
    names = {name for sets in TOLD.values() for each in sets for name in each}
    names |= {"kind", "scope", *OF_EVERY_KIND}

    assert names == {field.name for field in fields(Event)}, "name a new field in TOLD, for each kind that has it"


class _Broken(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise OSError(record.name)


@pytest.mark.parametrize("way", ["offload", "kept", "failed", "last resort", "listener", "no scope"])
def test_a_log_handler_that_raises_stops_nothing(
    way: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def listener(_: object) -> NoReturn:
        raise ValueError

    handler, log = _Broken(), logging.getLogger("coatcheck")
    monkeypatch.setattr(log, "handlers", [handler])
    caplog.set_level(logging.DEBUG, logger="coatcheck")  # a logger caches which levels are enabled
    monkeypatch.setattr(scopes, "_unwarned", [True])
    storage = FailingStorage(after=0) if way == "failed" else InMemoryStorage()
    offloader = Offloader(storage, on_event=listener if way == "listener" else None)
    blocks = [TextBlock("word " * (10 if way == "kept" else 5_000))]
    scope = None if way == "no scope" else "s"
    offload = offloader.last_resort if way == "last resort" else offloader.offload
    blocks = [TextBlock("word " * 90_000)] if way == "last resort" else blocks
    outcome = offload(blocks, tool_name="t", scope=scope)

    assert isinstance(outcome, Offloaded) or way in {"kept", "failed"}
    assert offloader.stats().results == 1


def test_a_listener_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="on_event must be a callable or a sequence of callables"):
        Offloader(on_event=[print, "print"])  # type: ignore[list-item]


def test_an_async_listener_is_refused_because_nothing_would_await_it() -> None:
    class Queue:
        async def __call__(self, event: Event) -> None:
            raise AssertionError(event)

    for listener in (Queue(), Queue().__call__):
        with pytest.raises(InvalidRequest, match="on_event must not be async"):
            Offloader(on_event=listener)


@pytest.mark.parametrize("in_a_list", [False, True])
def test_a_class_in_place_of_a_listener_is_refused(in_a_list: bool) -> None:
    class Watch:
        def __call__(self, event: Event) -> None:
            raise AssertionError(event)

    given: Any = [print, Watch] if in_a_list else Watch
    with pytest.raises(InvalidRequest, match=r"on_event must be .*Watch'> is a class: pass an instance"):
        Offloader(on_event=given)


@pytest.mark.parametrize("block", [SMALL, BIG], ids=["kept", "offloaded"])
async def test_a_listener_that_blocks_does_not_block_the_event_loop(block: Block) -> None:
    released = threading.Event()

    def blocking(_: Event) -> None:
        assert released.wait(PATIENCE), "the event loop did not go on"

    offloader = Offloader(on_event=blocking)
    waiting = asyncio.ensure_future(offloader.aoffload([block], tool_name="t"))
    asyncio.get_running_loop().call_later(0.01, released.set)
    await waiting

    assert offloader.stats().failed == 0


async def test_a_log_handler_that_blocks_does_not_block_the_event_loop(caplog: pytest.LogCaptureFixture) -> None:
    loop_thread = threading.get_ident()
    threads: list[int | None] = []

    class Slow(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            threads.append(record.thread)

    handler = Slow()
    logger = logging.getLogger("coatcheck")
    logger.addHandler(handler)
    try:
        with caplog.at_level(logging.DEBUG, logger="coatcheck"):
            await Offloader().aoffload([SMALL], tool_name="t")
    finally:
        logger.removeHandler(handler)

    assert len(threads) == 1
    assert loop_thread not in threads


# Log records.


def fields_of(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if "." in name}


def test_every_event_is_a_log_record_with_fields_and_a_level(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events: list[Event] = []
    with caplog.at_level(logging.DEBUG, logger="coatcheck"):
        run_through_everything(events.append)

    records = [record for record in caplog.records if fields_of(record)]
    assert len(records) == len(events) == 12
    for record, event in zip(records, events, strict=True):
        assert fields_of(record) == {**event.attributes, "coatcheck.operation.duration": event.milliseconds / 1e3}
        assert record.levelname == {"failed": "WARNING", "truncated": "ERROR"}.get(event.kind, "DEBUG")
    offloaded, *_ = caplog.records
    assert offloaded.getMessage() == "offloaded search"
    assert fields_of(offloaded) == {
        "coatcheck.outcome": "offloaded",
        "coatcheck.references": events[0].references,
        "coatcheck.stored.size": len(BIG.text),
        "coatcheck.token.count": events[0].tokens,
        "coatcheck.token.savings": events[0].tokens_saved,
        "coatcheck.operation.duration": events[0].milliseconds / 1e3,
        "gen_ai.tool.name": "search",
    }


def test_above_debug_only_failures_and_losses_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="coatcheck"):
        run_through_everything()

    outcomes = [vars(record)["coatcheck.outcome"] for record in caplog.records]
    assert outcomes == ["failed", "failed", "truncated", "failed"]


def test_a_failure_is_logged_in_one_line_and_its_origin_at_debug(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, logger="coatcheck"):
        run_through_everything()

    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert "the policy of 'odd' failed: KeyError; the default threshold decides" in warnings
    assert not any("\n" in each for each in warnings)
    places = [each for each in caplog.messages if "raised here" in each]
    assert "in _refuse\n    raise KeyError" in places[0]


def test_an_adapter_logs_a_storage_error_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    try:
        _fill_the_disk()
    except StorageError as error:
        with caplog.at_level(logging.DEBUG, logger="coatcheck_ours"):
            log_failure(logging.getLogger("coatcheck_ours"), "it stays", error=error)

    assert [record.levelname for record in caplog.records] == ["WARNING", "DEBUG"]
    assert caplog.messages[0] == "it stays: the disk is full"
    assert "in _fill_the_disk\n" in caplog.messages[1]


# What no report may contain.


def test_neither_content_nor_scope_nor_a_made_up_reference_is_in_telemetry_or_logs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    telemetry = Telemetry()
    with caplog.at_level(logging.DEBUG, logger="coatcheck"):
        run_through_everything(telemetry.listener)

    shown = "".join(span.to_json() for span in telemetry.spans)
    shown += "".join(metric.to_json() for metric in telemetry.metrics.values())
    shown += caplog.text + "".join(repr(vars(record)) for record in caplog.records)
    assert shown.count("coatcheck.outcome") > 20
    assert WORDS not in shown
    assert WHOSE not in shown


@pytest.mark.parametrize("words", ["my password is hunter2", "hunter2", "see {name} for my password"])
@pytest.mark.parametrize("fails", [True, False])
def test_text_a_model_writes_instead_of_a_storages_own_reference_is_in_no_telemetry_either(
    words: str, *, fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    events, shelves = list[Event](), Shelves()
    offloader = Offloader(shelves, policies={"*": Always()}, on_event=events.append)
    (named,) = offloader.offload([SMALL], tool_name="t", scope="s").references

    def load(key: str) -> None:
        if fails:
            raise ConnectionError

    shelves.load = load  # type: ignore[method-assign]
    with caplog.at_level(logging.DEBUG, logger="coatcheck"), pytest.raises((StorageError, ReferenceNotFound)):
        offloader.retrieve(words.format(name=named.id), scope="s")
    with pytest.raises((StorageError, ReferenceNotFound)):
        offloader.retrieve(named.id, scope="s")

    *_, quoting, naming = events
    assert "coatcheck.references" not in quoting.attributes
    assert naming.attributes["coatcheck.references"] == (named.id,)
    assert not any("password" in repr(vars(record)) or "hunter2" in repr(vars(record)) for record in caplog.records)


def test_a_storage_error_that_quotes_the_content_is_not_repeated(caplog: pytest.LogCaptureFixture) -> None:
    class Quoting(DictStorage):
        def save(self, key: str, content: bytes, *, content_type: str, metadata: Mapping[str, str]) -> None:
            msg = f"cannot encode {content[:100]!r}"
            raise ValueError(msg)

    events: list[Event] = []

    outcome = Offloader(Quoting(), on_event=events.append).offload([BIG], tool_name="t", scope=WHOSE)

    assert isinstance(outcome, Kept)
    assert [event.error_type for event in events] == ["ValueError", ""]
    assert "ValueError" in caplog.text
    assert WORDS not in repr(events) + caplog.text + "".join(repr(vars(record)) for record in caplog.records)


def test_an_adapter_logs_the_class_of_a_foreign_error_and_where_it_was_raised(caplog: pytest.LogCaptureFixture) -> None:
    try:
        _quote()
    except ValueError as error:
        log_failure(logging.getLogger("coatcheck_ours"), "it stays", error=error)

    assert caplog.messages[0].startswith("it stays: ValueError\n  File ")
    assert "in _quote\n" in caplog.text
    assert WORDS not in caplog.text


def test_an_adapter_logs_the_message_of_our_own_errors_because_it_says_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    try:
        _misuse()
    except InvalidRequest as error:
        log_failure(logging.getLogger("coatcheck_ours"), "it stays", error=error)

    assert caplog.messages == ["it stays: no scope: pass scope=..."]


def test_telemetry_leaves_out_what_does_not_apply() -> None:
    assert Event(kind="retrieved", scope="s").attributes == {"coatcheck.outcome": "retrieved"}


def test_telemetry_names_no_reference_that_the_scope_never_had() -> None:
    """It has the form of a reference, but its words are whatever a model wrote."""
    events: list[Event] = []
    offloader = Offloader(on_event=events.append)
    written = f"the_password_is_1234-{'0' * 16}-{'0' * 4}"

    with pytest.raises(ReferenceNotFound):
        offloader.retrieve(written, scope="s")

    assert (events[-1].kind, events[-1].references) == ("missed", (written,))
    assert "coatcheck.references" not in events[-1].attributes


def test_no_event_holds_content() -> None:
    events: list[Event] = []
    run_through_everything(events.append)

    told = [replace(event, references=()) if event.kind == "missed" else event for event in events]
    assert len(told) == 12
    assert WORDS not in repr(told)
    [missed] = [event for event in events if event.kind == "missed"]
    assert (missed.references, missed.reason) == ((WORDS,), "the scope never had such a reference")


def _misuse() -> None:
    msg = "no scope: pass scope=..."
    raise InvalidRequest(msg)


def _fill_the_disk() -> None:
    msg = "the disk is full"
    raise StorageError(msg)


def _quote() -> None:
    quoted = f"cannot encode {BIG}"
    raise ValueError(quoted)


def test_an_event_made_outside_the_library_reports_no_queue_time() -> None:
    queued = execution._Queued()
    queued.seconds = 7.0
    token = execution._queued.set(queued)
    try:
        assert Event(kind="kept", scope="s").queued_milliseconds == 0
    finally:
        execution._queued.reset(token)


def test_a_signal_handler_may_read_the_stats_while_its_thread_updates_them() -> None:
    offloader = Offloader()
    offloader.offload([SMALL], tool_name="t")
    asked: list[Stats] = []
    handler = threading.Thread(target=lambda: asked.append(offloader.stats()), daemon=True)
    with offloader._recorder._lock.held:
        handler.start()
        handler.join(PATIENCE)

    assert [stats.results for stats in asked] == [1]
